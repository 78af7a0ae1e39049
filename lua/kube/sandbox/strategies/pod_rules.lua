-- What a pod spec must be, wherever it stands: in pods and in the templates of workloads.
local field = require "kube.sandbox.field"
local json = require "kube.sandbox.json"
local names = require "kube.sandbox.names"
local quantity = require "kube.sandbox.quantity"

local pod_rules = {}

local PULL_POLICIES = { "Always", "IfNotPresent", "Never" }
local RESTART_POLICIES = { "Always", "OnFailure", "Never" }
local DNS_POLICIES = { "ClusterFirstWithHostNet", "ClusterFirst", "Default", "None" }
local PROTOCOLS = { "SCTP", "TCP", "UDP" }

local function add(errors, e) errors[#errors + 1] = e end

local function check_one_of(errors, value, path, known)
  for _, name in ipairs(known) do
    if value == name then return end
  end
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

local function check_ports(errors, ports, path)
  local seen = {}
  for i, port in ipairs(ports or {}) do
    local at = ("%s[%d]"):format(path, i - 1)
    local name = port.name or ""
    if name ~= "" then
      for _, problem in ipairs { names.port(name) } do add(errors, field.invalid(at .. ".name", name, problem)) end
      if seen[name] then add(errors, field.duplicate(at .. ".name", name)) end
    end
    seen[name] = true
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

local ENV_NAME = "a valid environment variable name must consist only of printable ASCII characters other than '='"

local function check_env(errors, env, path)
  for i, variable in ipairs(env or {}) do
    local at, name = ("%s[%d].name"):format(path, i - 1), variable.name or ""
    if name == "" then
      add(errors, field.required(at))
    elseif name:find("[^ -~]") or name:find("=", 1, true) then
      add(errors, field.invalid(at, name, ENV_NAME))
    end
  end
end

local function check_mounts(errors, mounts, path, volumes)
  local seen = {}
  for i, mount in ipairs(mounts or {}) do
    local at = ("%s[%d]"):format(path, i - 1)
    local name, where = mount.name or "", mount.mountPath or ""
    if name == "" then
      add(errors, field.required(at .. ".name"))
    elseif not volumes[name] then
      add(errors, field.not_found(at .. ".name", name))
    end
    if where == "" then
      add(errors, field.required(at .. ".mountPath"))
    elseif seen[where] then
      add(errors, field.invalid(at .. ".mountPath", where, "must be unique"))
    end
    seen[where] = true
  end
end

local function check_resources(errors, resources, path)
  local limits, requests = json.get(resources, "limits") or {}, json.get(resources, "requests") or {}
  for _, name in ipairs(sorted_keys(requests)) do
    local request, limit = quantity.number(requests[name]), limits[name] and quantity.number(limits[name])
    if request and limit and request > limit then
      add(errors, field.invalid(path .. ".requests", requests[name],
        ("must be less than or equal to %s limit of %s"):format(name, limits[name])))
    end
  end
end

local function check_container(errors, c, path, volumes, seen)
  local name = c.name or ""
  if name == "" then
    add(errors, field.required(path .. ".name"))
  else
    local problem = names.label(name)
    if problem then add(errors, field.invalid(path .. ".name", name, problem)) end
    if seen[name] then add(errors, field.duplicate(path .. ".name", name)) end
    seen[name] = true
  end
  if (c.image or "") == "" then add(errors, field.required(path .. ".image")) end
  check_ports(errors, c.ports, path .. ".ports")
  check_env(errors, c.env, path .. ".env")
  check_mounts(errors, c.volumeMounts, path .. ".volumeMounts", volumes)
  check_one_of(errors, c.imagePullPolicy, path .. ".imagePullPolicy", PULL_POLICIES)
  check_resources(errors, c.resources, path .. ".resources")
end

-- In the order in which the server looks for them.
local SOURCES = { "emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs",
  "iscsi",
  "glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "downwardAPI", "fc", "azureFile",
    "configMap",
  "vsphereVolume", "quobyte", "azureDisk", "storageos", "portworxVolume", "photonPersistentDisk", "projected",
    "scaleIO",
  "csi", "ephemeral", "image" }

local function check_source(errors, volume, path)
  local first
  for _, name in ipairs(SOURCES) do
    if volume[name] ~= nil and first then
      add(errors, field.forbidden(path .. "." .. name, "may not specify more than 1 volume type"))
    end
    first = first or volume[name]
  end
end

local function check_volumes(errors, volumes, path)
  local known = {}
  for i, volume in ipairs(volumes or {}) do
    local at, name = ("%s[%d].name"):format(path, i - 1), volume.name or ""
    check_source(errors, volume, ("%s[%d]"):format(path, i - 1))
    local problem = name ~= "" and names.label(name)
    if name == "" then
      add(errors, field.required(at))
    elseif problem then
      add(errors, field.invalid(at, name, problem))
    elseif known[name] then
      add(errors, field.duplicate(at, name))
    end
    known[name] = true
  end
  return known
end

--- Adds what is wrong with a pod spec at `path`.
function pod_rules.check(errors, spec, path)
  local volumes, seen = check_volumes(errors, json.get(spec, "volumes"), path .. ".volumes"), {}
  local containers = json.get(spec, "containers") or {}
  if not containers[1] then add(errors, field.required(path .. ".containers")) end
  for _, group in ipairs { "containers", "initContainers" } do
    for i, c in ipairs(json.get(spec, group) or {}) do
      check_container(errors, c, ("%s.%s[%d]"):format(path, group, i - 1), volumes, seen)
    end
  end
  check_one_of(errors, spec.restartPolicy, path .. ".restartPolicy", RESTART_POLICIES)
  check_one_of(errors, spec.dnsPolicy, path .. ".dnsPolicy", DNS_POLICIES)
end

return pod_rules
