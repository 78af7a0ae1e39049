-- The cells of services and what belongs to them.
local json = require "kube.sandbox.json"
local text = require "kube.sandbox.printers.text"

local network = {}

local get, since = json.get, text.since

local MOST = 3

-- Addresses of a load balancer, each once, in order.
local function balancer(document)
  local seen, list = {}, {}
  for _, ingress in ipairs(get(document, "status", "loadBalancer", "ingress") or {}) do
    local address = text.either(ingress.ip, ingress.hostname)
    if address and not seen[address] then
      seen[address] = true
      list[#list + 1] = address
    end
  end
  table.sort(list)
  return list
end

local function external(d)
  local kind, given = get(d, "spec", "type"), get(d, "spec", "externalIPs") or {}
  if kind == "ExternalName" then return get(d, "spec", "externalName") or "" end
  if kind == "LoadBalancer" then
    local list = balancer(d)
    for _, address in ipairs(given) do list[#list + 1] = address end
    return list[1] and table.concat(list, ",") or "<pending>"
  end
  if kind == "ClusterIP" or kind == "NodePort" then return text.either(table.concat(given, ","), "<none>") end
  return "<unknown>"
end

local function service_ports(d)
  local parts = {}
  for i, port in ipairs(get(d, "spec", "ports") or {}) do
    local node = (get(port, "nodePort") or 0) > 0 and (":%d"):format(port.nodePort) or ""
    parts[i] = ("%d%s/%s"):format(port.port, node, port.protocol or "")
  end
  return text.either(table.concat(parts, ","), "<none>")
end

network["v1/services"] = function(d, now)
  local addresses = get(d, "spec", "clusterIPs") or {}
  return { d.metadata.name, get(d, "spec", "type") or "", addresses[1] or "<none>", external(d), service_ports(d),
    since(d.metadata.creationTimestamp, now), text.labels(get(d, "spec", "selector")) }
end

local function with_port(address, port)
  return address:find(":", 1, true) and ("[%s]:%d"):format(address, port) or ("%s:%d"):format(address, port)
end

network["v1/endpoints"] = function(d, now)
  local list, subsets = {}, get(d, "subsets") or {}
  for _, subset in ipairs(subsets) do
    for _, port in ipairs(#(subset.ports or {}) > 0 and subset.ports or { false }) do
      for _, address in ipairs(subset.addresses or {}) do
        list[#list + 1] = port and with_port(address.ip, port.port) or address.ip
      end
    end
  end
  local shown = #subsets == 0 and "<none>" or text.some(list, MOST)
  return { d.metadata.name, shown, since(d.metadata.creationTimestamp, now) }
end

local function some_or_unset(list) return #list == 0 and "<unset>" or text.some(list, MOST) end

network["discovery.k8s.io/v1/endpointslices"] = function(d, now)
  local ports, addresses = {}, {}
  for i, port in ipairs(get(d, "ports") or {}) do
    ports[i] = get(port, "port") and ("%d"):format(port.port) or get(port, "name") or "*"
  end
  for _, endpoint in ipairs(get(d, "endpoints") or {}) do
    for _, address in ipairs(endpoint.addresses or {}) do addresses[#addresses + 1] = address end
  end
  return { d.metadata.name, get(d, "addressType") or "", some_or_unset(ports), some_or_unset(addresses),
    since(d.metadata.creationTimestamp, now) }
end

-- ---- ingresses ----

local function hosts(d)
  local rules, list, more = get(d, "spec", "rules") or {}, {}, false
  for _, rule in ipairs(rules) do
    if #list == MOST then more = true end
    if not more and text.either(rule.host) then list[#list + 1] = rule.host end
  end
  if #list == 0 then return "*" end
  local shown = table.concat(list, ",")
  return more and ("%s + %d more..."):format(shown, #rules - MOST) or shown
end

network["networking.k8s.io/v1/ingresses"] = function(d, now)
  local secure = #(get(d, "spec", "tls") or {}) > 0
  return { d.metadata.name, get(d, "spec", "ingressClassName") or "<none>", hosts(d), table.concat(balancer(d), ","),
    secure and "80, 443" or "80", since(d.metadata.creationTimestamp, now) }
end

network["networking.k8s.io/v1/ingressclasses"] = function(d, now)
  local default = get(d, "metadata", "annotations", "ingressclass.kubernetes.io/is-default-class") == "true"
  local parameters, shown = get(d, "spec", "parameters"), "<none>"
  if parameters then
    local group = get(parameters, "apiGroup")
    shown = ("%s%s/%s"):format(parameters.kind, group and "." .. group or "", parameters.name)
  end
  return { d.metadata.name .. (default and " (default)" or ""), get(d, "spec", "controller") or "", shown,
    since(d.metadata.creationTimestamp, now) }
end

network["networking.k8s.io/v1/networkpolicies"] = function(d, now)
  return { d.metadata.name, text.selector_or_none(get(d, "spec", "podSelector")),
    since(d.metadata.creationTimestamp, now) }
end

network["networking.k8s.io/v1/servicecidrs"] = function(d, now)
  return { d.metadata.name, text.join(get(d, "spec", "cidrs")), since(d.metadata.creationTimestamp, now) }
end

network["networking.k8s.io/v1/ipaddresses"] = function(d, now)
  local parent, shown = get(d, "spec", "parentRef"), "<none>"
  if parent then
    local group, namespace = text.either(parent.group), text.either(parent.namespace)
    shown = ("%s%s%s/%s"):format((parent.resource or ""):lower(), group and "." .. group:lower() or "",
      namespace and "/" .. namespace or "", parent.name or "")
  end
  return { d.metadata.name, shown, since(d.metadata.creationTimestamp, now) }
end

return network
