-- Services: what they get from the server's pools, and the rules between their fields and between them.
-- Ports that a probe chooses are below 30086, where the server gives out none by itself.
local json = require "spec.probes.json"
local samples = require "spec.probes.samples"

-- For `pick`: a service with its addresses and ports as they relate, not as they are.
local function related(chosen)
  return function(v)
    if v.kind ~= "Service" then return samples.sorted_causes(v) end
    local spec, given, count = v.spec, {}, 0
    local function name(port)
      if not port or port < 30000 or port > 32767 or chosen[port] then return port end
      if not given[port] then
        count = count + 1
        given[port] = "<port" .. count .. ">"
      end
      return given[port]
    end
    for _, port in ipairs(spec.ports or {}) do port.nodePort = name(port.nodePort) end
    spec.healthCheckNodePort = name(spec.healthCheckNodePort)
    return json.object { spec = spec, status = v.status }
  end
end

-- What a probe does with services: create(name, spec), change(name, patch), remove(name).
local function hands(p, ...)
  local path, chosen = p:core "services", {}
  for _, port in ipairs { ... } do chosen[port] = true end
  local options = { pick = related(chosen) }
  local function create(label, spec, metadata)
    metadata = metadata or {}
    metadata.name = p:name(label)
    local one = path .. "/" .. metadata.name
    -- Before its namespace goes, so that the next run finds its ports free.
    p:later(function() p:request("DELETE", one, nil, { quiet = "unseen" }) end)
    return p:post(path, { metadata = metadata, spec = spec }, options)
  end
  local function change(label, spec) return p:patch("merge", path .. "/" .. p:name(label), { spec = spec }, options) end
  local function remove(label) return p:delete(path .. "/" .. p:name(label), nil, { pick = function(v)
    return v.code or 200 end }) end
  return create, change, remove
end

local function http(more)
  local port = { port = 80 }
  for key, value in pairs(more or {}) do port[key] = value end
  return port
end

return {
  { name = "ports of nodes are had once", run = function(p)
    local create, change, remove = hands(p, 30001, 30002)
    create("a", { type = "NodePort", ports = { http { nodePort = 30001 } } })
    create("b", { type = "NodePort", ports = { http { nodePort = 30001 } } })
    create("b", { type = "LoadBalancer", ports = { http { name = "x" }, { name = "y", port = 81, nodePort = 30001 } } })
    create("b", { type = "NodePort", ports = { http { nodePort = 30001, protocol = "UDP" } } })
    create("b", { type = "NodePort", ports = { http { nodePort = 30002 } } })
    change("b", { ports = { http { nodePort = 30001 } } })
    remove "a"
    change("b", { ports = { http { nodePort = 30001 } } })
    create("c", { type = "NodePort", ports = { http { nodePort = 30002 } } })
  end },
  { name = "ports of nodes are within a range", run = function(p)
    local create = hands(p)
    for _, port in ipairs { 29999, 32768, 80, -1, 70000 } do
      create("a", { type = "NodePort", ports = { http { nodePort = port } } })
    end
    create("a", { type = "NodePort", ports = { http { nodePort = 0 } } })
  end },
  { name = "ports of nodes are given", run = function(p)
    local create, change = hands(p, 30003, 30004, 30005)
    create("a", { type = "NodePort", ports = { http() } })
    create("b", { type = "LoadBalancer", ports = { http { name = "x" }, { name = "y", port = 81 } } })
    create("c", { type = "NodePort", ports = { { name = "t", port = 53 }, { name = "u", port = 53, protocol = "UDP" },
      { name = "v", port = 54 } } })
    create("d", { type = "NodePort", ports = { { name = "t", port = 53 },
      { name = "u", port = 53, protocol = "UDP", nodePort = 30003 } } })
    create("e", { type = "NodePort", ports = { { name = "t", port = 53, nodePort = 30004 },
      { name = "u", port = 53, protocol = "UDP", nodePort = 30005 } } })
    create("f", { type = "LoadBalancer", allocateLoadBalancerNodePorts = false, ports = { http() } })
    change("a", { ports = { http { port = 81 } } })
    change("a", { ports = { http { name = "x", port = 81 }, { name = "y", port = 82 } } })
    change("f", { allocateLoadBalancerNodePorts = true })
  end },
  { name = "ports of nodes belong to types", run = function(p)
    local create, change = hands(p, 30006, 30007, 30008)
    create("a", { ports = { http { nodePort = 30006 } } })
    create("a", { type = "NodePort", ports = { http { nodePort = 30006 } } })
    change("a", { type = "ClusterIP", ports = { http { nodePort = 30007 } } })
    change("a", { type = "ClusterIP" })
    change("a", { type = "LoadBalancer" })
    change("a", { type = "NodePort" })
    change("a", { type = "ExternalName", externalName = "a.example.com" })
    change("a", { type = "ClusterIP" })
    create("b", { type = "LoadBalancer", allocateLoadBalancerNodePorts = false,
      ports = { http { nodePort = 30006 } } })
    create("c", { type = "NodePort", allocateLoadBalancerNodePorts = true, ports = { http { nodePort = 30008 } } })
  end },
  { name = "ports of one service are told apart", run = function(p)
    local create, change = hands(p, 30009, 30010)
    create("a", { ports = { http { name = "x" }, http { name = "y" } } })
    create("a", { ports = { http { name = "x" }, http { name = "y", protocol = "UDP" } } })
    create("b", { type = "NodePort", ports = { { name = "x", port = 80, nodePort = 30009 },
      { name = "y", port = 81, nodePort = 30009 } } })
    create("b", { type = "NodePort", ports = { { name = "x", port = 80, nodePort = 30009 },
      { name = "y", port = 80, protocol = "UDP", nodePort = 30009 } } })
    change("b", { ports = { { name = "x", port = 80, nodePort = 30009 }, { name = "y", port = 81,
      nodePort = 30009 } } })
    create("c", { ports = { http { name = "Bad_" }, { name = "x", port = 81, appProtocol = "not a name" } } })
    create("c", { ports = { http { appProtocol = "kubernetes.io/h2c" } } })
  end },
  { name = "addresses are had once", run = function(p)
    local create, change, remove = hands(p)
    local address = "192.0.2.9"
    create("a", { clusterIP = address, ports = { http() } })
    create("b", { clusterIP = address, ports = { http() } })
    create("b", { clusterIP = "192.0.2.1", ports = { http() } })
    remove "a"
    create("b", { clusterIP = address, clusterIPs = { address }, ports = { http() } })
    change("b", { clusterIP = "192.0.2.8" })
    change("b", { clusterIP = "", clusterIPs = json.null })
    change("b", { clusterIP = "None" })
    create("c", { clusterIP = "10.1.2.3", ports = { http() } })
    create("c", { clusterIP = "192.0.2.0", ports = { http() } })
    create("c", { clusterIP = "192.0.2.255", ports = { http() } })
    create("c", { clusterIP = "192.0.2.010", ports = { http() } })
  end },
  { name = "addresses have two names", run = function(p)
    local create = hands(p)
    local function try(clusterIP, clusterIPs) create("a", { clusterIP = clusterIP, clusterIPs = clusterIPs,
      ports = { http() } }) end
    try("192.0.2.8", { "192.0.2.9" })
    try(nil, { "192.0.2.9" })
    try("None", { "None", "192.0.2.9" })
    try("192.0.2.8", { "192.0.2.8", "192.0.2.9" })
    try("192.0.2.8", { "192.0.2.8", "2001:db8::1" })
    try("192.0.2.8", { "192.0.2.8", "2001:db8::1", "192.0.2.9" })
    try("2001:db8::1")
    try("bad", { "bad", "worse" })
  end },
  { name = "families of addresses", run = function(p)
    local create, change = hands(p)
    local function try(spec)
      spec.ports = { http() }
      create("a", spec)
    end
    try { ipFamilyPolicy = "Bogus" }
    try { ipFamilies = { "IPv5" } }
    try { ipFamilies = { "IPv4", "IPv4" } }
    try { ipFamilies = { "IPv6" } }
    try { ipFamilies = { "IPv4", "IPv6" } }
    try { ipFamilyPolicy = "RequireDualStack" }
    try { ipFamilies = { "IPv6" }, clusterIP = "192.0.2.8" }
    try { ipFamilyPolicy = "SingleStack", clusterIP = "None", selector = { a = "b" }, ipFamilies = { "IPv4", "IPv6" } }
    try { ipFamilyPolicy = "PreferDualStack", clusterIP = "192.0.2.7" }
    change("a", { ipFamilyPolicy = "SingleStack" })
    change("a", { ipFamilies = { "IPv6" } })
    create("b", { clusterIP = "None" })
    change("b", { ipFamilies = { "IPv4" } })
    change("b", { ipFamilyPolicy = "SingleStack" })
    create("c", { clusterIP = "None", ipFamilyPolicy = "SingleStack", ipFamilies = { "IPv6" } })
    create("d", { clusterIP = "None", ipFamilyPolicy = "PreferDualStack", selector = { a = "b" } })
  end },
  { name = "types and what belongs to them", run = function(p)
    local create, change = hands(p, 30011)
    local function try(spec)
      spec.ports = spec.ports or { http() }
      create("a", spec)
    end
    try { type = "NodePort", clusterIP = "None" }
    try { type = "LoadBalancer", clusterIP = "None" }
    try { type = "ExternalName", externalName = "a.example.com.", clusterIP = "192.0.2.8" }
    try { type = "ExternalName", externalName = "a.example.com", ipFamilies = { "IPv4" },
      ipFamilyPolicy = "SingleStack" }
    try { type = "ExternalName", externalName = "Bad_" }
    try { loadBalancerClass = "e.com/x" }
    try { loadBalancerSourceRanges = { "10.0.0.0/8" } }
    try { allocateLoadBalancerNodePorts = false }
    try { externalTrafficPolicy = "Local" }
    try { healthCheckNodePort = 30011 }
    try { type = "NodePort", externalTrafficPolicy = "Bogus" }
    try { type = "NodePort", externalTrafficPolicy = "Local", healthCheckNodePort = 30011 }
    try { internalTrafficPolicy = "Bogus" }
    try { sessionAffinity = "Bogus" }
    try { trafficDistribution = "Bogus" }
    try { type = "LoadBalancer", loadBalancerClass = "not a name" }
    try { type = "LoadBalancer", loadBalancerClass = "e.com/x", trafficDistribution = "PreferClose" }
    change("a", { loadBalancerClass = "e.com/y" })
    change("a", { type = "ClusterIP", loadBalancerClass = "e.com/y" })
    change("a", { type = "ClusterIP" })
  end },
  { name = "ports for the health of a balancer", run = function(p)
    local create, change = hands(p, 30012, 30013, 30014)
    local function balancer(more)
      local spec = { type = "LoadBalancer", externalTrafficPolicy = "Local", ports = { http() } }
      for key, value in pairs(more or {}) do spec[key] = value end
      return spec
    end
    create("a", balancer())
    create("b", balancer { healthCheckNodePort = 30012 })
    create("c", balancer { healthCheckNodePort = 30012 })
    create("c", balancer { healthCheckNodePort = 80 })
    create("c", { type = "NodePort", ports = { http { nodePort = 30012 } } })
    change("b", { healthCheckNodePort = 30013 })
    change("b", { healthCheckNodePort = json.null })
    change("b", { externalTrafficPolicy = "Cluster" })
    create("c", { type = "NodePort", ports = { http { nodePort = 30012 } } })
    change("b", { externalTrafficPolicy = "Local", healthCheckNodePort = 30014 })
    change("b", { type = "ClusterIP" })
  end },
  { name = "services that are warned about", run = function(p)
    local create = hands(p)
    create("a", { clusterIP = "None", sessionAffinity = "ClientIP", loadBalancerIP = "192.0.2.8",
      externalIPs = { "192.0.2.7" } })
    create("b", { externalName = "a.example.com", ports = { http() }, externalIPs = { "192.0.2.7" } })
    create("c", { type = "ExternalName", externalName = "a.example.com", externalIPs = { "192.0.2.7" } })
  end },
}
