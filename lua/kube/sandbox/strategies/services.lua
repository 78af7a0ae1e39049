-- Services: defaults, addresses and ports from a pool, and what a type needs.
local field = require "kube.sandbox.field"
local ip = require "kube.sandbox.ip"
local json = require "kube.sandbox.json"
local names = require "kube.sandbox.names"
local pod_spec = require "kube.sandbox.strategies.pod_spec"

local services = {}

local set, each = pod_spec.set, pod_spec.each

local function has_address(spec) return spec.type ~= "ExternalName" end

local function has_node_ports(spec)
  return spec.type == "NodePort" or spec.type == "LoadBalancer" and spec.allocateLoadBalancerNodePorts ~= false
end

local function default(_, document)
  if not json.is_object(document.spec) then return document end
  local spec = json.shallow(document.spec)
  document.spec = spec
  set(spec, "sessionAffinity", "None")
  set(spec, "type", "ClusterIP")
  if spec.sessionAffinity == "None" then
    spec.sessionAffinityConfig = nil
  elseif spec.sessionAffinity == "ClientIP" then
    set(spec, "sessionAffinityConfig", json.object { clientIP = json.object { timeoutSeconds = 10800 } })
  end
  each(spec, "ports", function(port)
    set(port, "protocol", "TCP")
    if port.targetPort == nil or port.targetPort == 0 or port.targetPort == "" then port.targetPort = port.port end
  end)
  if has_address(spec) then set(spec, "internalTrafficPolicy", "Cluster") end
  if spec.type == "NodePort" or spec.type == "LoadBalancer" then set(spec, "externalTrafficPolicy", "Cluster") end
  if spec.type == "LoadBalancer" then set(spec, "allocateLoadBalancerNodePorts", true) end
  return document
end

-- 192.0.2.0/24 and 203.0.113.0/24 are nobody's; .1 is the server's own.
local NETWORKS = { "192.0.2.", "203.0.113." }
local FIRST_NODE_PORT, LAST_NODE_PORT = 30000, 32767

local function used_by(S, read)
  local used = {}
  for _, service in ipairs((S.store:scan("services"))) do read(service.spec or {}, used) end
  return used
end

local function free_address(S)
  local used = used_by(S, function(spec, set_of) if spec.clusterIP then set_of[spec.clusterIP] = true end end)
  for _, network in ipairs(NETWORKS) do
    for i = 1, 254 do
      if not used[network .. i] then return network .. i end
    end
  end
end

local function free_port(S, taken)
  local used = used_by(S, function(spec, set_of)
    for _, port in ipairs(spec.ports or {}) do
      if port.nodePort then set_of[port.nodePort] = true end
    end
  end)
  for port = FIRST_NODE_PORT, LAST_NODE_PORT do
    if not used[port] and not taken[port] then
      taken[port] = true
      return port
    end
  end
end

local function allocate(ctx, spec)
  if has_address(spec) then
    set(spec, "clusterIP", free_address(ctx.S))
    set(spec, "clusterIPs", json.array { spec.clusterIP })
    -- Nobody looks for pods of both families, so it may have both.
    local free = spec.clusterIP == "None" and not spec.selector
    set(spec, "ipFamilies", free and json.array { "IPv4", "IPv6" } or json.array { "IPv4" })
    set(spec, "ipFamilyPolicy", free and "RequireDualStack" or "SingleStack")
  end
  if has_node_ports(spec) then
    local taken = {}
    each(spec, "ports", function(port)
      if not port.nodePort or port.nodePort == 0 then port.nodePort = free_port(ctx.S, taken) end
    end)
  end
end

local function prepare_create(ctx, document)
  document.spec = json.shallow(document.spec)
  allocate(ctx, document.spec)
  return document
end

local KEPT = { "clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy" }

-- What was given out stays, as long as the type needs it.
local function prepare_update(ctx, new, old, subresource)
  if subresource == "status" or not json.is_object(new.spec) then return new end
  local spec = json.shallow(new.spec)
  new.spec = spec
  if has_address(spec) then
    -- Two names of one field: who changes the older one means both.
    if spec.clusterIP and spec.clusterIP ~= old.spec.clusterIP and json.equal(spec.clusterIPs, old.spec.clusterIPs) then
      spec.clusterIPs = json.array { spec.clusterIP }
    end
    for _, name in ipairs(KEPT) do set(spec, name, old.spec[name]) end
  else
    for _, name in ipairs(KEPT) do spec[name] = nil end
    if has_address(old.spec) then spec.internalTrafficPolicy = nil end
  end
  local ports = {}
  for _, port in ipairs(old.spec.ports or {}) do ports[(port.protocol or "TCP") .. port.port] = port.nodePort end
  each(spec, "ports", function(port)
    if has_node_ports(spec) then
      set(port, "nodePort", ports[port.protocol .. port.port])
    elseif old.spec.type ~= spec.type then
      port.nodePort = nil
    end
  end)
  allocate(ctx, spec)
  return new
end

local TYPES = { "ClusterIP", "ExternalName", "LoadBalancer", "NodePort" }

local RANGE = "must be between 1 and 65535, inclusive"

local PROTOCOLS = { "SCTP", "TCP", "UDP" }

local function check_protocol(errors, protocol, path)
  for _, known in ipairs(PROTOCOLS) do
    if protocol == known then return end
  end
  errors[#errors + 1] = field.not_supported(path .. ".protocol", protocol, PROTOCOLS)
end

local function check_target(errors, target, path)
  if type(target) == "number" and (target < 1 or target > 65535) then
    errors[#errors + 1] = field.invalid(path .. ".targetPort", target, RANGE)
  elseif type(target) == "string" then
    for _, problem in ipairs { names.port(target) } do
      errors[#errors + 1] = field.invalid(path .. ".targetPort", target, problem)
    end
  end
end

local function check_ports(errors, spec)
  local ports = spec.ports or {}
  local headless = spec.clusterIP == "None"
  if not ports[1] and not headless and spec.type ~= "ExternalName" then
    errors[#errors + 1] = field.required("spec.ports")
  end
  local seen = {}
  for i, port in ipairs(ports) do
    local path = ("spec.ports[%d]"):format(i - 1)
    if #ports > 1 and (port.name or "") == "" then errors[#errors + 1] = field.required(path .. ".name") end
    if port.name and seen[port.name] then errors[#errors + 1] = field.duplicate(path .. ".name", port.name) end
    seen[port.name or i] = true
    if type(port.port) ~= "number" or port.port < 1 or port.port > 65535 then
      errors[#errors + 1] = field.invalid(path .. ".port", port.port or 0, RANGE)
    end
    check_protocol(errors, port.protocol, path)
    check_target(errors, port.targetPort, path)
  end
end

local function validate(_, new, old, errors)
  local spec = new.spec or json.object {}
  local known = false
  for _, name in ipairs(TYPES) do known = known or spec.type == name end
  if spec.type and not known then errors[#errors + 1] = field.not_supported("spec.type", spec.type, TYPES) end
  check_ports(errors, spec)
  for i, address in ipairs(spec.clusterIPs or {}) do
    local problem = address ~= "None" and ip.problem(address)
    if problem then errors[#errors + 1] = field.invalid(("spec.clusterIPs[%d]"):format(i - 1), address, problem) end
  end
  if spec.type == "ExternalName" and (spec.externalName or "") == "" then
    errors[#errors + 1] = field.required("spec.externalName")
  end
  if old and old.spec.clusterIP and spec.clusterIP ~= old.spec.clusterIP and has_address(spec)
    and has_address(old.spec) then
    errors[#errors + 1] = field.invalid("spec.clusterIPs[0]", spec.clusterIPs, "may not change once set")
  end
end

function services.of()
  return {
    default = default,
    prepare_create = prepare_create,
    prepare_update = prepare_update,
    validate = validate,
  }
end

return services
