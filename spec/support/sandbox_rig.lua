-- A sandbox without sockets: requests go straight to the instance, answers come back decoded.
--
--   local rig = require "spec.support.sandbox_rig"
--   local box = rig.new { seed = 1 }
--   local code, document, headers = box:post("/api/v1/namespaces", { metadata = { name = "a" } })
--   local events = box:watch("/api/v1/configmaps?watch=1")   -- grows as things happen
local host = require "spec.support.sandbox_env"
local instance = require "kube.sandbox.instance"
local json = require "kube.sandbox.json"

local rig = {}

local Box = {}
Box.__index = Box

--- Options are those of kube.sandbox.instance.
function rig.new(options)
  options = options or {}
  options.token = "token"
  return setmetatable({ S = instance.new(options) }, Box)
end

-- Plain Lua tables in specs are objects unless they have a first item.
local function marked(value)
  if type(value) ~= "table" or getmetatable(value) then return value end
  local copy = {}
  for key, item in pairs(value) do copy[key] = marked(item) end
  return value[1] ~= nil and json.array(copy) or json.object(copy)
end

local function run_timers()
  for _ = 1, 100 do
    local due
    for i, timer in ipairs(host.timers) do
      if timer.seconds == 0 then due = table.remove(host.timers, i) break end
    end
    if not due then return end
    due.fn()
  end
end

--- Any request: code, decoded body (or its text when it is not JSON), response.
function Box:request(method, target, body, headers)
  local all = { authorization = "Bearer token", ["user-agent"] = "spec/1", ["content-type"] = "application/json" }
  for name, value in pairs(headers or {}) do all[name] = value end
  if type(body) == "table" then body = json.encode(marked(body)) end
  local response = self.S:handle {
    method = method,
    target = target,
    header = function(name) return all[name] end,
    body = body or "",
  }
  if not response.stream then self:settle() end
  local decoded = response.body and json.decode(response.body)
  return response.status, decoded == nil and response.body or decoded, response
end

--- Lets controllers and watches do what is due now.
function Box:settle()
  self.S:settle()
  run_timers()
end

function Box:get(target) return self:request("GET", target) end
function Box:post(target, body) return self:request("POST", target, body) end
function Box:put(target, body) return self:request("PUT", target, body) end
function Box:delete(target, body) return self:request("DELETE", target, body) end
function Box:merge(target, body)
  return self:request("PATCH", target, body, { ["content-type"] = "application/merge-patch+json" })
end
function Box:apply(target, body)
  return self:request("PATCH", target, body, { ["content-type"] = "application/apply-patch+yaml" })
end

--- Creates or dies; returns the document.
function Box:create(target, body)
  local code, document = self:post(target, body)
  assert(code == 201, json.encode(document))
  return document
end

--- A watch: an array of decoded events that grows; `.over` is set at its end.
function Box:watch(target, headers)
  local events = {}
  local code, document, response = self:request("GET", target, nil, headers)
  assert(response.stream, code .. " " .. tostring(document))
  local rest = ""
  response.stream {
    write = function(_, bytes)
      rest = rest .. bytes
      rest = rest:gsub("([^\n]*)\n", function(line)
        events[#events + 1] = json.decode(line)
        return ""
      end)
      return true
    end,
    finish = function() events.over = "finished" end,
    reset = function() events.over = "reset" end,
    on_gone = function() end,
  }
  self:settle()
  return events
end

--- A header of an answer, or nil.
function rig.header(response, name)
  for _, pair in ipairs(response.headers) do
    if pair[1] == name then return pair[2] end
  end
end

--- "ADDED a, DELETED b": types and names of events.
function rig.summary(events)
  local texts = {}
  for i, e in ipairs(events) do texts[i] = e.type .. " " .. tostring(json.get(e, "object", "metadata", "name")) end
  return table.concat(texts, ", ")
end

return rig
