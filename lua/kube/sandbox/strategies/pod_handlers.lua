-- Probes and hooks of containers: one handler each, a port that can be one, numbers that make sense.
local field = require "kube.sandbox.field"
local json = require "kube.sandbox.json"
local names = require "kube.sandbox.names"

local pod_handlers = {}

local NOT_NEGATIVE = "must be greater than or equal to 0"
local HEADER = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used "
  .. "for validation is '[-A-Za-z0-9]+')"
local SCHEMES = { "HTTP", "HTTPS" }

local function add(errors, e) errors[#errors + 1] = e end

-- A number, or the name of a port of the container.
local function check_port(errors, port, path)
  if type(port) == "string" then
    for _, problem in ipairs { names.port(port) } do add(errors, field.invalid(path, port, problem)) end
    return
  end
  port = port or 0
  if port < 1 or port > 65535 then add(errors, field.invalid(path, port, "must be between 1 and 65535, inclusive")) end
end

local checks = {}

function checks.exec(errors, action, path)
  if not json.get(action, "command", 1) then add(errors, field.required(path .. ".command")) end
end

function checks.httpGet(errors, action, path)
  check_port(errors, json.get(action, "port"), path .. ".port")
  if action.scheme ~= "HTTP" and action.scheme ~= "HTTPS" then
    add(errors, field.not_supported(path .. ".scheme", action.scheme, SCHEMES))
  end
  for _, header in ipairs(json.get(action, "httpHeaders") or {}) do
    local name = header.name or ""
    if not name:find("^[-%w]+$") then add(errors, field.invalid(path .. ".httpHeaders", name, HEADER)) end
  end
end

function checks.tcpSocket(errors, action, path) check_port(errors, json.get(action, "port"), path .. ".port") end

checks.grpc = checks.tcpSocket

function checks.sleep(errors, action, path, grace)
  local seconds = action.seconds or 0
  if grace and (seconds < 0 or seconds > grace) then
    add(errors, field.invalid(path, seconds,
      ("must be non-negative and less than terminationGracePeriodSeconds (%d)"):format(grace)))
  end
end

-- In the order in which the server looks for them.
local HANDLERS = { "exec", "httpGet", "tcpSocket", "grpc", "sleep" }

local function check_handler(errors, handler, path, grace)
  local found = false
  for _, name in ipairs(HANDLERS) do
    local action = json.get(handler, name)
    if action and found then
      add(errors, field.forbidden(path .. "." .. name, "may not specify more than 1 handler type"))
    elseif action then
      found = true
      checks[name](errors, action, path .. "." .. name, grace)
    end
  end
  if not found then add(errors, field.required(path, "must specify a handler type")) end
end

local NUMBERS = { "initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold" }

local function check_probe(errors, probe, path)
  check_handler(errors, probe, path)
  for _, name in ipairs(NUMBERS) do
    local value = json.get(probe, name) or 0
    if value < 0 then add(errors, field.invalid(path .. "." .. name, value, NOT_NEGATIVE)) end
  end
  local grace = json.get(probe, "terminationGracePeriodSeconds")
  if grace and grace <= 0 then
    add(errors, field.invalid(path .. ".terminationGracePeriodSeconds", grace, "must be greater than 0"))
  end
end

local function check_once(errors, probe, path)
  if probe.successThreshold ~= 1 then
    add(errors, field.invalid(path .. ".successThreshold", probe.successThreshold, "must be 1"))
  end
end

local function check_no_grace(errors, probe, path)
  local grace = json.get(probe, "terminationGracePeriodSeconds")
  if grace then
    add(errors, field.invalid(path .. ".terminationGracePeriodSeconds", grace, "must not be set for readinessProbes"))
  end
end

local PROBES = {
  { "livenessProbe", check_once }, { "readinessProbe", check_no_grace }, { "startupProbe", check_once },
}

--- Adds what is wrong with the probes and hooks of a container that stays. `grace` is that of its pod.
function pod_handlers.check(errors, container, path, grace)
  for _, name in ipairs { "postStart", "preStop" } do
    local hook = json.get(container, "lifecycle", name)
    if hook then check_handler(errors, hook, ("%s.lifecycle.%s"):format(path, name), grace) end
  end
  for _, entry in ipairs(PROBES) do
    local probe, at = json.get(container, entry[1]), path .. "." .. entry[1]
    if probe then
      check_probe(errors, probe, at)
      entry[2](errors, probe, at)
    end
  end
end

--- The same for a container that ends before the others begin: it has neither.
function pod_handlers.refuse(errors, container, path)
  for _, name in ipairs { "lifecycle", "livenessProbe", "readinessProbe", "startupProbe" } do
    if json.get(container, name) then
      add(errors, field.forbidden(path .. "." .. name,
        "may not be set for init containers without restartPolicy=Always"))
    end
  end
end

return pod_handlers
