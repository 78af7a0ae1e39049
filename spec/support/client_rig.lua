-- Scripts that use a client, against a server that answers what the spec says.
--
--   local server = client_rig.serve(function(request) return { body = "{}" } end)
--   client_rig.run(server, source)      -- to its end; see script_rig.lua
--   client_rig.lines(server)            -- what it sent: { "GET /api/v1/...", ... }
--
-- A script is behind its load phase and has `client`; session(more), the session of a controller `web`, which writes
-- what it observes to `heard` and reads `cache["resource key"]`; config_map(name, data); failure(fn, ...), the error
-- of a call that must fail.
local cleanup = require "spec.support.cleanup"
local rig = require "spec.support.script_rig"
local script_server = require "spec.support.script_server"

local client_rig = {}

local prelude = [[
  local verbs = require "kube._verbs"
  local heard, cache = {}, {}
  local function session(more)
    local opts = { field_manager = "web", observe = function(verb, resource, key, object, sent)
      heard[#heard + 1] = table.concat({ verb, resource, tostring(key), type(object), type(sent) }, " ")
    end, cached = function(resource, key) return cache[resource .. " " .. key] end }
    for name, value in pairs(more or {}) do opts[name] = value or nil end
    return verbs.session(opts)
  end
  local function config_map(name, data)
    return { apiVersion = "v1", kind = "ConfigMap", metadata = { namespace = "d", name = name }, data = data }
  end
  local function failure(fn, ...)
    local ok, err = pcall(fn, ...)
    assert(not ok, "it did not fail")
    return err
  end
  kube.sleep(0)
  local client = kube.client
]]

function client_rig.serve(script)
  local server = script_server.new(script)
  cleanup.later(function() server:close() end)
  return server
end

--- Starts a script; see script_rig.lua.
function client_rig.start(server, source) return rig.start(server, prelude .. source) end

--- Runs a script to its end.
function client_rig.run(server, source) return rig.run(server, prelude .. source) end

--- Turns the server until a condition holds.
function client_rig.pump(server, condition)
  local stop = os.time() + 15
  while not condition() do
    assert(os.time() < stop, "it did not come true")
    server.turn()
  end
end

--- What was sent: "METHOD target", and with `bodies` the body behind it.
function client_rig.lines(server, bodies)
  local out = {}
  for i, request in ipairs(server.requests) do
    out[i] = ("%s %s%s"):format(request.method, request.target,
      bodies and request.body ~= "" and " " .. request.body or "")
  end
  return out
end

--- The answer that is a Status.
function client_rig.status(code, reason, message, more)
  return { status = code, body = ('{"kind":"Status","apiVersion":"v1","status":"Failure","message":"%s",'
    .. '"reason":"%s","code":%d%s}'):format(message, reason, code, more or "") }
end

--- A ConfigMap as JSON.
function client_rig.config_map(name, version, data)
  return ('{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s","namespace":"d","uid":"u-%s",'
    .. '"resourceVersion":"%s"},"data":%s}'):format(name, name, version or "5", data or '{"a":"1"}')
end

--- Answers writes with what they brought, reads with a ConfigMap of that name.
function client_rig.echo(request)
  if request.method == "POST" or request.method == "PUT" then return { body = request.body } end
  return { body = client_rig.config_map(request.path:match("[^/]+$")) }
end

return client_rig
