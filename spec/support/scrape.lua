-- What a process that was started with --metrics-listen 127.0.0.1:0 serves.
--
--   local seen = scrape.of(proc)             -- waits until it listens
--   seen:get("/readyz")                      -- status, body, headers
--   seen:metrics()                           -- parsed, see exposition.lua
--   seen:wait_value(1, "up", { job = "x" })  -- until a sample has this value
local cleanup = require "spec.support.cleanup"
local exposition = require "spec.support.exposition"
local http_client = require "spec.support.http_client"
local uv = require "luv"

local scrape = {}
local Scrape = {}
Scrape.__index = Scrape

scrape.args = { "--metrics-listen", "127.0.0.1:0" }

function scrape.of(proc)
  proc:wait_stderr("serving metrics and probes[^\n]*127%.0%.0%.1:%d+", 10)
  local address = proc.stderr:match("serving metrics and probes[^\n]*(127%.0%.0%.1:%d+)")
  local client = http_client.new { url = "http://" .. address }
  cleanup.later(function() client:close() end)
  return setmetatable({ client = client, address = address, proc = proc }, Scrape)
end

function Scrape:request(method, path, body)
  local answer = self.client:request { method = method, path = path, body = body }
  return answer.status, answer.body, answer.headers
end

function Scrape:get(path) return self:request("GET", path) end

function Scrape:metrics()
  local status, body = self:get("/metrics")
  assert(status == 200, body)
  return exposition.parse(body)
end

--- Asks until done(...) of what ask() returned holds; raises after ten seconds.
function Scrape:wait(ask, done, what)
  local deadline, results = uv.hrtime() + 10e9
  repeat
    results = { ask() }
    if done(unpack(results)) then return unpack(results) end
    uv.update_time()
    http_client.wait(function() return false end, 0.02)
  until uv.hrtime() > deadline
  error(("%s did not come true; last: %s %s\n%s"):format(what, tostring(results[1]), tostring(results[2]),
    self.proc.stderr), 2)
end

--- Waits until this path answers with this status; its body.
function Scrape:wait_status(status, path)
  local _, body = self:wait(function() return self:get(path) end, function(got) return got == status end, path)
  return body
end

--- Waits until the sample has this value, or value(v) holds.
function Scrape:wait_value(value, name, labels)
  local function fits(got)
    if type(value) == "function" then return got ~= nil and value(got) end
    return got == value
  end
  return self:wait(function() return exposition.value(self:metrics(), name, labels) end, fits, name)
end

return scrape
