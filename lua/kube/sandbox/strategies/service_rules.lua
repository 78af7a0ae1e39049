-- What services must be, once they have their addresses and ports.
local field = require "kube.sandbox.field"
local ip = require "kube.sandbox.ip"
local json = require "kube.sandbox.json"
local names = require "kube.sandbox.names"
local service_ports = require "kube.sandbox.strategies.service_ports"

local service_rules = {}

local TYPES = { "ClusterIP", "ExternalName", "LoadBalancer", "NodePort" }
local PROTOCOLS = { "SCTP", "TCP", "UDP" }
local AFFINITIES = { "ClientIP", "None" }
local SCOPES = { "Cluster", "Local" }
local DISTRIBUTIONS = { "PreferClose", "PreferSameZone", "PreferSameNode" }

local RANGE = "must be between 1 and 65535, inclusive"
local BALANCER_ONLY = "may only be used when `type` is 'LoadBalancer'"

--- Whether somebody outside of the cluster can reach a service.
function service_rules.is_reachable(spec)
  return service_ports.possible(spec) or spec.type == "ClusterIP" and json.get(spec, "externalIPs", 1) ~= nil
end

local function is_headless(spec) return spec.type == "ClusterIP" and spec.clusterIP == "None" end

local function add(errors, e) errors[#errors + 1] = e end

local function check_one_of(errors, value, path, known)
  if field.is_one_of(value, known) then return end
  add(errors, field.not_supported(path, value, known))
end

local function check_qualified(errors, value, path)
  for _, problem in ipairs { names.qualified(value) } do add(errors, field.invalid(path, value, problem)) end
end

-- ---- what a change may not do ----

local function check_addresses_kept(errors, new, old)
  if new.type == "ExternalName" or old.type == "ExternalName" or is_headless(new) and is_headless(old) then return end
  if json.get(old, "clusterIPs", 1) and new.clusterIPs[1] ~= old.clusterIPs[1] then
    add(errors, field.invalid("spec.clusterIPs[0]", new.clusterIPs, "may not change once set"))
  end
end

-- The first family is for good, where the address is.
local function check_family_kept(errors, new, old)
  if new.type == "ExternalName" or old.type == "ExternalName" or is_headless(new) ~= is_headless(old) then return end
  local first = json.get(old, "ipFamilies", 1)
  if first and new.ipFamilies[1] ~= first and not is_headless(new) then
    add(errors, field.invalid("spec.ipFamilies[0]", new.ipFamilies, "may not change once set"))
  end
end

local function check_class(errors, spec)
  local class = json.get(spec, "loadBalancerClass")
  if class and spec.type == "LoadBalancer" then
    check_qualified(errors, class, "spec.loadBalancerClass")
  elseif class then
    add(errors, field.forbidden("spec.loadBalancerClass", BALANCER_ONLY))
  end
end

local function check_change(errors, new, old)
  check_addresses_kept(errors, new, old)
  check_family_kept(errors, new, old)
  if new.type == "LoadBalancer" and old.type == "LoadBalancer"
    and json.get(new, "loadBalancerClass") ~= json.get(old, "loadBalancerClass") then
    add(errors, field.invalid("spec.loadBalancerClass", json.get(new, "loadBalancerClass"), "may not change once set"))
  end
  check_class(errors, new) -- the server does so once more for every service
  if service_ports.needs_health_check(old) and service_ports.needs_health_check(new)
    and new.healthCheckNodePort ~= old.healthCheckNodePort then
    add(errors, field.forbidden("spec.healthCheckNodePort", "field is immutable"))
  end
end

-- ---- what a type needs ----

local function check_headless(errors, spec)
  if service_ports.possible(spec) and spec.clusterIP == "None" then
    add(errors, field.invalid("spec.clusterIPs[0]", "None",
      ("may not be set to 'None' for %s services"):format(spec.type)))
  end
end

local function check_external_name(errors, spec)
  if spec.type ~= "ExternalName" then return end
  for _, name in ipairs { "clusterIPs", "ipFamilies", "ipFamilyPolicy" } do
    local value = json.get(spec, name)
    if value and (type(value) ~= "table" or value[1]) then
      add(errors, field.forbidden("spec." .. name, "may not be set for ExternalName services"))
    end
  end
  local target = (spec.externalName or ""):gsub("%.$", "")
  if target == "" then
    add(errors, field.required("spec.externalName"))
  else
    for _, problem in ipairs { names.subdomain(target) } do
      add(errors, field.invalid("spec.externalName", target, problem))
    end
  end
end

-- ---- ports ----

local function check_target(errors, target, path)
  if type(target) == "number" and (target < 1 or target > 65535) then
    add(errors, field.invalid(path .. ".targetPort", target, RANGE))
  elseif type(target) == "string" then
    for _, problem in ipairs { names.port(target) } do
      add(errors, field.invalid(path .. ".targetPort", target, problem))
    end
  end
end

local function check_ports(errors, ports)
  local seen = {}
  for i, port in ipairs(ports) do
    local path, name = ("spec.ports[%d]"):format(i - 1), port.name or ""
    if name == "" then
      if #ports > 1 then add(errors, field.required(path .. ".name")) end
    else
      for _, problem in ipairs { names.label(name) } do add(errors, field.invalid(path .. ".name", name, problem)) end
      if seen[name] then add(errors, field.duplicate(path .. ".name", name)) end
      seen[name] = true
    end
    if type(port.port) ~= "number" or port.port < 1 or port.port > 65535 then
      add(errors, field.invalid(path .. ".port", port.port or 0, RANGE))
    end
    check_one_of(errors, port.protocol, path .. ".protocol", PROTOCOLS)
    check_target(errors, port.targetPort, path)
    if json.get(port, "appProtocol") then check_qualified(errors, port.appProtocol, path .. ".appProtocol") end
  end
end

-- Ports are told apart by number and protocol.
local function check_twins(errors, ports, name, show)
  local seen = {}
  for i, port in ipairs(ports) do
    local number = port[name]
    local text = ("%s %s"):format(port.protocol, tostring(number))
    if number and seen[text] then add(errors, show(("spec.ports[%d]"):format(i - 1), port)) end
    seen[text] = true
  end
end

local function twin_of_node(path, port) return field.duplicate(path .. ".nodePort", port.nodePort) end

-- Shown as the server's own struct has it.
local function twin(path, port)
  local e = field.duplicate(path, json.null)
  e.message = e.message:gsub("null$", ('{"Name":"","Protocol":"%s","AppProtocol":null,"Port":%d,"TargetPort":0,'
    .. '"NodePort":0}'):format(port.protocol, port.port))
  return e
end

local function check_node_ports(errors, spec)
  local ports = spec.ports or {}
  for i, port in ipairs(spec.type == "ClusterIP" and ports or {}) do
    if port.nodePort then
      add(errors, field.forbidden(("spec.ports[%d].nodePort"):format(i - 1),
        "may not be used when `type` is 'ClusterIP'"))
    end
  end
  check_twins(errors, ports, "nodePort", twin_of_node)
  check_twins(errors, ports, "port", twin)
end

-- ---- who may come, and how ----

local SOURCES = "service.beta.kubernetes.io/load-balancer-source-ranges"

local function check_balancer(errors, new)
  local spec, is_balancer = new.spec, new.spec.type == "LoadBalancer"
  if json.get(spec, "loadBalancerSourceRanges", 1) then
    if not is_balancer then add(errors, field.forbidden("spec.LoadBalancerSourceRanges", BALANCER_ONLY)) end
  elseif json.get(new.metadata, "annotations", SOURCES) and not is_balancer then
    add(errors, field.forbidden(("metadata.annotations[%s]"):format(SOURCES), BALANCER_ONLY))
  end
  if json.get(spec, "allocateLoadBalancerNodePorts") ~= nil and not is_balancer then
    add(errors, field.forbidden("spec.allocateLoadBalancerNodePorts", BALANCER_ONLY))
  end
  check_class(errors, spec)
end

local function check_traffic(errors, spec)
  local policy, port = json.get(spec, "externalTrafficPolicy"), json.get(spec, "healthCheckNodePort")
  if service_rules.is_reachable(spec) then
    check_one_of(errors, policy, "spec.externalTrafficPolicy", SCOPES)
  elseif policy then
    add(errors, field.invalid("spec.externalTrafficPolicy", policy,
      "may only be set for externally-accessible services"))
  end
  if port and not service_ports.needs_health_check(spec) then
    add(errors, field.invalid("spec.healthCheckNodePort", port,
      "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"))
  end
  local internal, distribution = json.get(spec, "internalTrafficPolicy"), json.get(spec, "trafficDistribution")
  if internal then check_one_of(errors, internal, "spec.internalTrafficPolicy", SCOPES) end
  if distribution then check_one_of(errors, distribution, "spec.trafficDistribution", DISTRIBUTIONS) end
end

-- ---- what the server warns about ----

local function warn(ctx, spec)
  local function given(name)
    local value = json.get(spec, name)
    return value ~= nil and (type(value) ~= "table" or value[1] ~= nil)
  end
  if is_headless(spec) then
    for _, name in ipairs { "loadBalancerIP", "externalIPs" } do
      if given(name) then ctx:warn(("spec.%s is ignored for headless services"):format(name)) end
    end
    if spec.sessionAffinity ~= "None" then ctx:warn "spec.SessionAffinity is ignored for headless services" end
  elseif given "externalIPs" and spec.type ~= "ExternalName" then
    ctx:warn "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
  end
  if given "externalIPs" and spec.type == "ExternalName" then
    ctx:warn 'spec.externalIPs is ignored when spec.type is "ExternalName"'
  elseif given "externalName" and spec.type ~= "ExternalName" then
    ctx:warn 'spec.externalName is ignored when spec.type is not "ExternalName"'
  end
  if spec.trafficDistribution == "PreferClose" then
    ctx:warn 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'
  end
end

-- ---- where a balancer is ----

local MODES = { "Proxy", "VIP" }

local function check_entry(errors, entry, path)
  local address, host = json.get(entry, "ip") or "", json.get(entry, "hostname") or ""
  local mode = json.get(entry, "ipMode")
  local problem = address ~= "" and ip.problem(address)
  if problem then add(errors, field.invalid(path .. ".ip", address, problem)) end
  if mode and address == "" then
    add(errors, field.forbidden(path .. ".ipMode", "may not be specified when `ip` is not set"))
  elseif mode then
    check_one_of(errors, mode, path .. ".ipMode", MODES)
  end
  if host == "" then return end
  for _, wrong in ipairs { names.subdomain(host) } do add(errors, field.invalid(path .. ".hostname", host, wrong)) end
  if ip.family(host) then
    add(errors, field.invalid(path .. ".hostname", host, "must be a DNS name, not an IP address"))
  end
end

local function check_status(errors, status, spec)
  local entries, path = json.get(status, "loadBalancer", "ingress") or {}, "status.loadBalancer.ingress"
  if entries[1] and spec.type ~= "LoadBalancer" then
    add(errors, field.forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'"))
    return
  end
  for i, entry in ipairs(entries) do check_entry(errors, entry, ("%s[%d]"):format(path, i - 1)) end
end

--- Adds what is wrong with a service.
function service_rules.validate(ctx, new, old, errors, subresource)
  local spec = new.spec
  if subresource == "status" then return check_status(errors, new.status, spec) end
  if old then check_change(errors, spec, old.spec) end
  if not json.get(spec, "ports", 1) and not is_headless(spec) and spec.type ~= "ExternalName" then
    add(errors, field.required("spec.ports"))
  end
  check_headless(errors, spec)
  check_external_name(errors, spec)
  check_ports(errors, spec.ports or {})
  check_one_of(errors, spec.sessionAffinity, "spec.sessionAffinity", AFFINITIES)
  check_one_of(errors, spec.type, "spec.type", TYPES)
  check_node_ports(errors, spec)
  check_balancer(errors, new)
  check_traffic(errors, spec)
  if not errors[1] then warn(ctx, spec) end
end

return service_rules
