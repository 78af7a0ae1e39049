-- Services: defaults, what they get from the server's pools, and what a change leaves of it.
local json = require "kube.sandbox.json"
local pod_spec = require "kube.sandbox.strategies.pod_spec"
local service_addresses = require "kube.sandbox.strategies.service_addresses"
local service_ports = require "kube.sandbox.strategies.service_ports"
local service_rules = require "kube.sandbox.strategies.service_rules"

local services = {}

local set, each, inside = pod_spec.set, pod_spec.each, pod_spec.inside

local function has_address(spec) return spec.type ~= "ExternalName" end

-- An address of a balancer is its own unless somebody says otherwise.
local function default_modes(document)
  inside(document, "status", function(status)
    inside(status, "loadBalancer", function(balancer)
      each(balancer, "ingress", function(entry)
        if (entry.ip or "") ~= "" then set(entry, "ipMode", "VIP") end
      end)
    end)
  end)
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
  if service_rules.is_reachable(spec) then set(spec, "externalTrafficPolicy", "Cluster") end
  if spec.type == "LoadBalancer" then
    set(spec, "allocateLoadBalancerNodePorts", true)
    default_modes(document)
  end
  return document
end

-- What is nothing in the server's structs.
local NOTHING = { clusterIP = "", externalTrafficPolicy = "", healthCheckNodePort = 0, externalName = "" }

-- A copy of a spec that may be changed, ports included.
local function own_spec(spec)
  spec = json.shallow(spec)
  for name, nothing in pairs(NOTHING) do
    if spec[name] == nothing or spec[name] == json.null then spec[name] = nil end
  end
  each(spec, "ports", function(port)
    if port.nodePort == 0 then port.nodePort = nil end
  end)
  return spec
end

local function prepare_create(ctx, document)
  local spec, name = own_spec(document.spec), document.metadata.name
  document.spec = spec
  if spec.clusterIP and not json.get(spec, "clusterIPs", 1) then spec.clusterIPs = json.array { spec.clusterIP } end
  if has_address(spec) then
    service_addresses.settle(ctx, name, spec)
    service_addresses.give(ctx, name, spec)
  else
    spec.internalTrafficPolicy = nil
  end
  service_ports.give(ctx, name, spec)
  return document
end

-- Two names of one thing: who changes or leaves out one of them means both.
local function keep_address(spec, old)
  if not has_address(spec) or not has_address(old) then return end
  spec.clusterIP = spec.clusterIP or old.clusterIP
  if not json.get(spec, "clusterIPs", 1) then spec.clusterIPs = old.clusterIPs end
  if spec.clusterIP ~= old.clusterIP and json.equal(spec.clusterIPs, old.clusterIPs) then
    spec.clusterIPs = json.array { spec.clusterIP }
  end
end

-- What was given for a type that it no longer has goes, unless somebody changed it, too.
local function drop_leftovers(spec, old)
  local function drop(name)
    if json.equal(spec[name], old[name]) then spec[name] = nil end
  end
  if has_address(old) and not has_address(spec) then
    if spec.clusterIP == old.clusterIP then drop "clusterIPs" end
    drop "clusterIP"
    drop "ipFamilies"
    drop "ipFamilyPolicy"
  end
  if service_ports.possible(old) and not service_ports.possible(spec) and service_ports.has_no_others(spec, old) then
    each(spec, "ports", function(port) port.nodePort = nil end)
  end
  if service_ports.needs_health_check(old) and not service_ports.needs_health_check(spec) then
    drop "healthCheckNodePort"
  end
  if old.type == "LoadBalancer" and spec.type ~= "LoadBalancer" then
    drop "allocateLoadBalancerNodePorts"
    drop "loadBalancerClass"
  end
  if service_rules.is_reachable(old) and not service_rules.is_reachable(spec) then drop "externalTrafficPolicy" end
end

local function prepare_update(ctx, new, old, subresource)
  if subresource == "status" or not json.is_object(new.spec) then return new end
  local spec, name = own_spec(new.spec), new.metadata.name
  new.spec = spec
  keep_address(spec, old.spec)
  if has_address(spec) then
    service_addresses.settle(ctx, name, spec, old.spec)
    if not has_address(old.spec) then service_addresses.give(ctx, name, spec) end
  else
    spec.internalTrafficPolicy = nil
  end
  service_ports.give(ctx, name, spec, old.spec)
  drop_leftovers(spec, old.spec)
  return new
end

function services.of()
  return {
    default = default,
    prepare_create = prepare_create,
    prepare_update = prepare_update,
    validate = service_rules.validate,
  }
end

return services
