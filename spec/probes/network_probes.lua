-- Ingresses, network policies and endpoints: rules between the fields of one, and between it and what
-- it was. Accepted writes are dry runs.
local json = require "spec.probes.json"
local samples = require "spec.probes.samples"

local function refusal(v) return v.kind == "Status" and samples.sorted_causes(v) or "accepted" end

local function tries(p, version, plural)
  return function(document, name)
    document.metadata = document.metadata or {}
    document.metadata.name = name or p:name "a"
    p:post(p:path(version, plural) .. "?dryRun=All", document, { pick = refusal })
  end
end

local function made(p, version, plural, document)
  document.metadata = { name = p:name "m" }
  p:setup("POST", p:path(version, plural), document)
  return function(patch, subresource)
    p:patch("merge", p:path(version, plural, p:name "m") .. (subresource and "/" .. subresource or "") .. "?dryRun=All",
      patch, { pick = refusal })
  end
end

local NETWORK, DISCOVERY = "/apis/networking.k8s.io/v1", "/apis/discovery.k8s.io/v1"

local function backend(more, port)
  local service = { name = "s", port = port or { number = 80 } }
  for key, value in pairs(more or {}) do service[key] = value end
  return { service = service }
end

local function rules(path, host)
  return { spec = { rules = { { host = host, http = { paths = { path } } } } } }
end

return {
  { name = "ingresses have somewhere to go", run = function(p)
    local try = tries(p, NETWORK, "ingresses")
    try { spec = json.object {} }
    try { spec = { defaultBackend = json.object {} } }
    try { spec = { defaultBackend = backend { name = "" } } }
    try { spec = { defaultBackend = backend { name = "Bad_" } } }
    try { spec = { defaultBackend = backend { name = "1a" } } }
    try { spec = { defaultBackend = backend(nil, { number = 80, name = "web" }) } }
    try { spec = { defaultBackend = backend(nil, json.object {}) } }
    try { spec = { defaultBackend = backend(nil, { number = 70000 }) } }
    try { spec = { defaultBackend = backend(nil, { name = "Bad_" }) } }
    try { spec = { defaultBackend = { service = backend().service, resource = { kind = "K", name = "n" } } } }
    try { spec = { defaultBackend = { resource = { kind = "", name = "" } } } }
    try { spec = { defaultBackend = { resource = { kind = "K", name = "n", apiGroup = "Bad_" } } } }
    try { spec = { defaultBackend = { resource = { kind = "K", name = "n", apiGroup = "e.com" } } } }
    try { spec = { rules = { { host = "a.example.com" } } } }
    try { spec = { rules = { { http = { paths = json.array {} } } } } }
  end },
  { name = "ingresses have paths and hosts", run = function(p)
    local try = tries(p, NETWORK, "ingresses")
    local function path(kind, text) try(rules { path = text, pathType = kind, backend = backend() }) end
    for _, text in ipairs { "a", "/a//b", "/a/./b", "/a/../b", "/a/..", "/a/.", "/a%2fb", "/a b", "" } do
      path("Prefix", text)
    end
    path("Exact", nil)
    path("Bogus", "/")
    path("ImplementationSpecific", "x")
    path("ImplementationSpecific", nil)
    path("ImplementationSpecific", "/a/../*")
    for _, host in ipairs { "Bad_", "10.0.0.1", "*.example.com", "*", "a.*.com", "*.*.com" } do
      try(rules({ path = "/", pathType = "Prefix", backend = backend() }, host))
    end
    try { spec = { defaultBackend = backend(), tls = { { hosts = { "Bad_", "*.example.com", "a.*" },
      secretName = "Bad_" } } } }
    try { spec = { defaultBackend = backend(), tls = { { hosts = { "a.example.com" }, secretName = "s" } },
      ingressClassName = "Bad_" } }
    try { metadata = { annotations = { ["kubernetes.io/ingress.class"] = "x" } },
      spec = { defaultBackend = backend(), ingressClassName = "y" } }
    try { metadata = { annotations = { ["kubernetes.io/ingress.class"] = "x" } },
      spec = { defaultBackend = backend(), ingressClassName = "x" } }
    try { metadata = { annotations = { ["kubernetes.io/ingress.class"] = "x" } },
      spec = { defaultBackend = backend() } }
    local change = made(p, NETWORK, "ingresses", { spec = { defaultBackend = backend(), ingressClassName = "y" } })
    change { metadata = { annotations = { ["kubernetes.io/ingress.class"] = "x" } } }
    change({ status = { loadBalancer = { ingress = { { ip = "x" }, { hostname = "Bad_" }, { hostname = "10.0.0.1" },
      { ip = "10.0.0.1" } } } } }, "status")
  end },
  { name = "network policies have peers and ports", run = function(p)
    local try = tries(p, NETWORK, "networkpolicies")
    local function port(t) try { spec = { podSelector = json.object {}, ingress = { { ports = { t } } } } } end
    local function peer(t) try { spec = { podSelector = json.object {}, egress = { { to = { t } } } } } end
    port { protocol = "Bogus" }
    port { port = 0 }
    port { port = "Bad_Name" }
    port { port = 80, endPort = 79 }
    port { port = 80, endPort = 70000 }
    port { port = "web", endPort = 80 }
    port { endPort = 80 }
    port { port = 80, endPort = 90, protocol = "UDP" }
    peer(json.object {})
    peer { podSelector = json.object {}, namespaceSelector = json.object {} }
    peer { podSelector = json.object {}, ipBlock = { cidr = "10.0.0.0/8" } }
    peer { podSelector = { matchLabels = { a = "not a value" } } }
    peer { namespaceSelector = { matchExpressions = { { key = "a", operator = "Bogus" } } } }
    peer { ipBlock = { cidr = "" } }
    peer { ipBlock = { cidr = "10.0.0.0" } }
    peer { ipBlock = { cidr = "10.0.0.1/8" } }
    peer { ipBlock = { cidr = "10.0.0.0/33" } }
    peer { ipBlock = { cidr = "10.00.0.0/8" } }
    peer { ipBlock = { cidr = "10.0.0.0/08" } }
    peer { ipBlock = { cidr = "::ffff:10.0.0.0/104" } }
    peer { ipBlock = { cidr = "10.0.0.0/8", except = { "10.1.0.0/16", "11.0.0.0/16", "10.0.0.0/8", "x" } } }
    peer { ipBlock = { cidr = "2001:db8::/32", except = { "2001:db8:1::/48", "2001:db9::/48" } } }
    try { spec = { podSelector = { matchLabels = { ["Bad Key"] = "x" } } } }
    try { spec = { podSelector = json.object {}, policyTypes = { "Bogus" } } }
    try { spec = { podSelector = json.object {}, policyTypes = { "Ingress", "Egress", "Ingress" } } }
    try { spec = { podSelector = json.object {}, policyTypes = { "Ingress", "Ingress" } } }
  end },
  { name = "endpoints have addresses", run = function(p)
    local try = tries(p, "/api/v1", "endpoints")
    local function subset(t)
      try { subsets = { t } }
    end
    subset { addresses = { { ip = "x" } } }
    subset { addresses = { { ip = "127.0.0.1" }, { ip = "0.0.0.0" }, { ip = "169.254.1.1" }, { ip = "224.0.0.1" } } }
    subset { addresses = { { ip = "10.0.0.1", hostname = "Bad_", nodeName = "Bad_" } } }
    subset { addresses = { { ip = "10.0.0.1" } }, ports = { { port = 80 }, { port = 81 } } }
    subset { addresses = { { ip = "10.0.0.1" } }, ports = { { name = "Bad_", port = 80, protocol = "Bogus" } } }
    subset { addresses = { { ip = "10.0.0.1" } }, ports = { { name = "a", port = 80 }, { name = "a", port = 81 } } }
    subset { notReadyAddresses = { { ip = "10.0.0.1" } }, ports = { { name = "a", port = 80, appProtocol = "a b" } } }
    subset { addresses = { { ip = "2001:db8::1" } }, ports = { { port = 80 } } }
    local change = made(p, "/api/v1", "endpoints", { subsets = { { addresses = { { ip = "10.0.0.1" } },
      ports = { { port = 80 } } } } })
    change { subsets = { { addresses = { { ip = "10.0.0.1", nodeName = "n" } }, ports = { { port = 80 } } } } }
  end },
  { name = "slices of endpoints", run = function(p)
    local try = tries(p, DISCOVERY, "endpointslices")
    local function slice(endpoints, more)
      local document = { addressType = "IPv4", endpoints = endpoints }
      for key, value in pairs(more or {}) do document[key] = value end
      try(document)
    end
    local one = { { addresses = { "10.0.0.1" } } }
    slice(one)
    slice(one, { addressType = "Bogus" })
    slice(one, { addressType = "IPv6" })
    slice(one, { addressType = "FQDN" })
    slice({ { addresses = { "a.example.com" } } }, { addressType = "FQDN" })
    slice({ { addresses = { "one", "Bad_.com", "" } } }, { addressType = "FQDN" })
    slice { { addresses = json.array {} } }
    slice { { addresses = { "x" } } }
    slice { { addresses = { "2001:db8::1" } } }
    slice { { addresses = { "127.0.0.1" } } }
    slice({ { addresses = { "2001:db8::1" } } }, { addressType = "IPv6" })
    slice { { addresses = { "10.0.0.1" }, nodeName = "Bad_", hostname = "Bad_" } }
    slice { { addresses = { "10.0.0.1" }, deprecatedTopology = { ["Bad Key"] = "x" } } }
    local function hints(t) slice { { addresses = { "10.0.0.1" }, hints = t } } end
    hints { forZones = { { name = "a" }, { name = "a" }, { name = "b c" } } }
    hints { forNodes = { { name = "a" }, { name = "a" }, { name = "B_" } } }
    slice(one, { ports = { { port = 80 }, { port = 81 } } })
    slice(one, { ports = { { name = "Bad_", protocol = "Bogus", appProtocol = "a b" } } })
    slice(one, { ports = { { name = "a", port = 80 }, { name = "b", port = 70000 } } })
    local many = {}
    for i = 1, 101 do many[i] = "10.0.0." .. i end
    slice { { addresses = many } }
    local change = made(p, DISCOVERY, "endpointslices", { addressType = "IPv4", endpoints = one,
      ports = { { port = 80 } } })
    change { addressType = "IPv6" }
    change { endpoints = { { addresses = { "10.0.0.2" }, conditions = { ready = true } } } }
    p:get(p:path(DISCOVERY, "endpointslices", p:name "m"))
  end },
}
