-- Scripts in the real binary against an API server in this process.
--
--   local rig = require "spec.support.script_rig"
--   local server = rig.pods { a = {}, b = { app = "db" } }   -- see list_watch_server.lua
--   local proc = rig.start(server, source)       -- a process that talks to it
--   rig.finish(proc)                             -- it ends by itself, with code 0
--   rig.stop(proc)                               -- it ends in order when asked to
--
-- A script has `kube` and two helpers: eventually(condition), which waits up to ten seconds, and
-- same(wanted, got), which compares two values by what they print. It says what went wrong by
-- failing, and then the spec shows it. Everything is taken down by spec/support/cleanup.lua.
local cleanup = require "spec.support.cleanup"
local list_watch_server = require "spec.support.list_watch_server"
local run = require "spec.support.run"
local script_server = require "spec.support.script_server"

local rig = {}

local prelude = [[
local kube = require "kube"
local function eventually(condition)
  for _ = 1, 2000 do
    if condition() then return end
    kube.sleep(0.005)
  end
  error("it did not come true in ten seconds", 2)
end
local function text(value)
  if type(value) ~= "table" then return tostring(value) end
  local parts = {}
  for i, part in ipairs(value) do parts[i] = tostring(part) end
  return table.concat(parts, " ")
end
local function same(wanted, got)
  if text(wanted) ~= text(got) then
    error(("wanted: %s\ngot: %s"):format(text(wanted), text(got)), 2)
  end
end
]]

--- A kubeconfig for the API server at url; its path.
function rig.kubeconfig(url)
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write(('{"apiVersion":"v1","kind":"Config","current-context":"c",' ..
    '"contexts":[{"name":"c","context":{"cluster":"s","user":"u"}}],' ..
    '"clusters":[{"name":"s","cluster":{"server":"%s"}}],' ..
    '"users":[{"name":"u","user":{"token":"t"}}]}'):format(url))
  file:close()
  cleanup.later(function() os.remove(path) end)
  return path
end

--- An API server for pods with these: { name = more }, put in the order of their names.
function rig.pods(initial)
  local server = list_watch_server.new()
  cleanup.later(function() server:close() end)
  local names = {}
  for name in pairs(initial or {}) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do server:put(name, initial[name]) end
  return server
end

local kinds = { services = "Service", pods = "Pod", webs = "Web" }

local function kind_of(request) return kinds[request.path:match("[^/]+$")] or "Unknown" end

local Objects = {}
Objects.__index = Objects

local function event(type, json) return ('{"type":"%s","object":%s}\n'):format(type, json) end

--- Sends an event into every open watch.
function Objects:send(type, json)
  for _, stream in ipairs(self.http.streams) do stream:send(event(type, json)) end
end

function Objects:url() return self.http:url() end

--- An API server of any kind whose streaming list has these JSON texts; send() does the rest.
function rig.objects(initial)
  local self = setmetatable({}, Objects)
  self.http = script_server.new(function(request)
    local chunks = {}
    if request.query.sendInitialEvents then
      for _, json in ipairs(initial) do chunks[#chunks + 1] = event("ADDED", json) end
      chunks[#chunks + 1] = event("BOOKMARK", ('{"apiVersion":"%s","kind":"%s","metadata":{' ..
        '"resourceVersion":"100","annotations":{"k8s.io/initial-events-end":"true"}}}'):format(
        request.path:match("^/apis/(.+)/[^/]+$") or "v1", kind_of(request)))
    end
    return self.missing or { chunks = chunks, open = true }
  end)
  cleanup.later(function() self.http:close() end)
  return self
end

--- Starts a script, or a file when source is the path of one. options as for run.start_script.
function rig.start(server, source, options)
  options = options or {}
  options.kubeconfig = options.kubeconfig or rig.kubeconfig(server:url())
  if not source:find("^[^\n]*%.lua$") then source = prelude .. source end
  local proc = run.start_script(source, options)
  cleanup.later(function() proc:kill("sigkill") end)
  return proc
end

--- Waits until the script has ended by itself, without an error.
function rig.finish(proc)
  local ended = proc:ends_within(15)
  if not ended then proc:kill("sigkill") end
  if not ended or proc:wait_exit(5) ~= 0 then
    error(("%s\nstdout:\n%s\nstderr:\n%s"):format(ended and "the script failed"
      or "the script did not end", proc.stdout, proc.stderr), 2)
  end
  return proc.stdout, proc.stderr
end

--- Asks the script to stop and waits until it has, in order.
function rig.stop(proc)
  proc:kill("sigterm")
  return rig.finish(proc)
end

--- Runs a script to its end.
function rig.run(server, source, options) return rig.finish(rig.start(server, source, options)) end

return rig
