-- What a pod spec must be, wherever it stands: in pods and in the templates of workloads. What is
-- not looked at here stands in no table of kube.sandbox.coverage_fields, and its author is told.
local field = require "kube.sandbox.field"
local json = require "kube.sandbox.json"
local names = require "kube.sandbox.names"
local pod_env = require "kube.sandbox.strategies.pod_env"
local pod_handlers = require "kube.sandbox.strategies.pod_handlers"
local pod_placement = require "kube.sandbox.strategies.pod_placement"
local pod_volumes = require "kube.sandbox.strategies.pod_volumes"
local quantity = require "kube.sandbox.quantity"

local pod_rules = {}

local PULL_POLICIES = { "Always", "IfNotPresent", "Never" }
local RESTART_POLICIES = { "Always", "OnFailure", "Never" }
local DNS_POLICIES = { "ClusterFirstWithHostNet", "ClusterFirst", "Default", "None" }
local MESSAGE_POLICIES = { "File", "FallbackToLogsOnError" }
local PROTOCOLS = { "SCTP", "TCP", "UDP" }

local function add(errors, e) errors[#errors + 1] = e end

local function check_one_of(errors, value, path, known)
  if field.is_one_of(value, known) then return end
  add(errors, (value or "") == "" and field.required(path) or field.not_supported(path, value, known))
end

local function sorted_keys(t)
  local keys = {}
  for key in pairs(t or {}) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end

local function check_port_number(errors, value, path)
  if value >= 1 and value <= 65535 then return end
  add(errors, field.invalid(path, value, "must be between 1 and 65535, inclusive"))
end

local function check_port_name(errors, name, path, seen)
  if name == "" then return end
  local problems = { names.port(name) }
  for _, problem in ipairs(problems) do add(errors, field.invalid(path, name, problem)) end
  if problems[1] then return end
  if seen[name] then add(errors, field.duplicate(path, name)) end
  seen[name] = true
end

local function check_ports(errors, ports, path)
  local seen = {}
  for i, port in ipairs(ports or {}) do
    local at = ("%s[%d]"):format(path, i - 1)
    check_port_name(errors, port.name or "", at .. ".name", seen)
    local number = port.containerPort or 0
    if number == 0 then
      add(errors, field.required(at .. ".containerPort"))
    else
      check_port_number(errors, number, at .. ".containerPort")
    end
    if (port.hostPort or 0) ~= 0 then check_port_number(errors, port.hostPort, at .. ".hostPort") end
    check_one_of(errors, port.protocol, at .. ".protocol", PROTOCOLS)
  end
end

-- Two containers cannot have one port of their node.
local function check_host_ports(errors, containers, path)
  local seen = {}
  for i, c in ipairs(containers) do
    for j, port in ipairs(json.get(c, "ports") or {}) do
      local text = ("%s/%s/%d"):format(port.protocol, port.hostIP or "", port.hostPort or 0)
      if (port.hostPort or 0) ~= 0 and seen[text] then
        add(errors, field.duplicate(("%s[%d].ports[%d].hostPort"):format(path, i - 1, j - 1), text))
      end
      seen[text] = true
    end
  end
end

local function check_mounts(errors, mounts, path, volumes)
  local seen = {}
  for i, mount in ipairs(mounts or {}) do
    local at = ("%s[%d]"):format(path, i - 1)
    local name, where = mount.name or "", mount.mountPath or ""
    if name == "" then add(errors, field.required(at .. ".name")) end
    if not volumes[name] then add(errors, field.not_found(at .. ".name", name)) end
    if where == "" then add(errors, field.required(at .. ".mountPath")) end
    if seen[where] then add(errors, field.invalid(at .. ".mountPath", where, "must be unique")) end
    seen[where] = true
  end
end

local function check_amount(errors, amount, path)
  if (quantity.number(amount) or 0) >= 0 then return end
  add(errors, field.invalid(path, amount, "must be greater than or equal to 0"))
end

local function check_resources(errors, resources, path)
  local limits, requests = json.get(resources, "limits") or {}, json.get(resources, "requests") or {}
  for _, name in ipairs(sorted_keys(limits)) do
    check_amount(errors, limits[name], ("%s.limits[%s]"):format(path, name))
  end
  for _, name in ipairs(sorted_keys(requests)) do
    check_amount(errors, requests[name], ("%s.requests[%s]"):format(path, name))
    local request, limit = quantity.number(requests[name]), limits[name] and quantity.number(limits[name])
    if request and limit and request > limit then
      add(errors, field.invalid(path .. ".requests", requests[name],
        ("must be less than or equal to %s limit of %s"):format(name, limits[name])))
    end
  end
end

--- Adds what is wrong with an image.
function pod_rules.check_image(errors, image, path)
  if image == "" then
    add(errors, field.required(path))
  elseif image:find("^%s") or image:find("%s$") then
    add(errors, field.invalid(path, image, "must not have leading or trailing whitespace"))
  end
end

-- What containers of every sort have to be.
local function check_container(errors, c, path, volumes)
  local name = c.name or ""
  local problem = name ~= "" and names.label(name)
  if name == "" then add(errors, field.required(path .. ".name")) end
  if problem then add(errors, field.invalid(path .. ".name", name, problem)) end
  pod_rules.check_image(errors, c.image or "", path .. ".image")
  check_one_of(errors, c.terminationMessagePolicy, path .. ".terminationMessagePolicy", MESSAGE_POLICIES)
  check_ports(errors, json.get(c, "ports"), path .. ".ports")
  pod_env.check(errors, json.get(c, "env"), path .. ".env")
  pod_env.check_from(errors, json.get(c, "envFrom"), path .. ".envFrom")
  check_mounts(errors, json.get(c, "volumeMounts"), path .. ".volumeMounts", volumes)
  check_one_of(errors, c.imagePullPolicy, path .. ".imagePullPolicy", PULL_POLICIES)
  check_resources(errors, c.resources, path .. ".resources")
end

local function check_containers(errors, spec, path, volumes, seen)
  local containers = json.get(spec, "containers") or {}
  if not containers[1] then add(errors, field.required(path)) end
  for i, c in ipairs(containers) do
    local at, name = ("%s[%d]"):format(path, i - 1), c.name or ""
    check_container(errors, c, at, volumes)
    if seen[name] then add(errors, field.duplicate(at .. ".name", name)) end
    seen[name] = true
    pod_handlers.check(errors, c, at, json.get(spec, "terminationGracePeriodSeconds"))
  end
  check_host_ports(errors, containers, path)
end

local function check_init_containers(errors, spec, path, volumes, seen)
  for i, c in ipairs(json.get(spec, "initContainers") or {}) do
    local at, name = ("%s[%d]"):format(path, i - 1), c.name or ""
    check_container(errors, c, at, volumes)
    if seen[name] then add(errors, field.duplicate(at .. ".name", name)) end
    seen[name] = name ~= "" or seen[name]
    -- They run one by one; the server calls each of them the first.
    check_host_ports(errors, { c }, path)
    if c.restartPolicy == "Always" then
      pod_handlers.check(errors, c, at, json.get(spec, "terminationGracePeriodSeconds"))
    else
      pod_handlers.refuse(errors, c, at)
    end
  end
end

--- Adds what is wrong with a pod spec at `path`.
function pod_rules.check(errors, spec, path)
  local volumes, seen = pod_volumes.check(errors, json.get(spec, "volumes"), path .. ".volumes"), {}
  check_containers(errors, spec, path .. ".containers", volumes, seen)
  check_init_containers(errors, spec, path .. ".initContainers", volumes, seen)
  check_one_of(errors, spec.restartPolicy, path .. ".restartPolicy", RESTART_POLICIES)
  check_one_of(errors, spec.dnsPolicy, path .. ".dnsPolicy", DNS_POLICIES)
  pod_placement.check(errors, spec, path)
end

return pod_rules
