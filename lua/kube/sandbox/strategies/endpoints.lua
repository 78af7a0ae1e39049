-- Endpoints, and slices of them: addresses that can be reached, ports that are told apart.
local field = require "kube.sandbox.field"
local ip = require "kube.sandbox.ip"
local json = require "kube.sandbox.json"
local names = require "kube.sandbox.names"
local pod_spec = require "kube.sandbox.strategies.pod_spec"

local endpoints = {}

local PROTOCOLS, ADDRESS_TYPES = { "SCTP", "TCP", "UDP" }, { "FQDN", "IPv4", "IPv6" }
local MOST_ADDRESSES, MOST_PORTS, MOST_ENDPOINTS, MOST_HINTS = 100, 20000, 1000, 8

local function add(errors, e) errors[#errors + 1] = e end

local function check_text(errors, value, path, ...)
  for _, problem in ipairs { ... } do add(errors, field.invalid(path, value, problem)) end
end

local function check_port(errors, port, at)
  local name = json.get(port, "name") or ""
  if name ~= "" then check_text(errors, name, at .. ".name", names.label(name)) end
  if not field.is_one_of(port.protocol, PROTOCOLS) then
    add(errors, field.not_supported(at .. ".protocol", port.protocol, PROTOCOLS))
  end
  local app = json.get(port, "appProtocol")
  if app then check_text(errors, app, at .. ".appProtocol", names.qualified(app)) end
end

-- ---- endpoints ----

local function default_endpoints(_, document)
  pod_spec.each(document, "subsets", function(subset)
    pod_spec.each(subset, "ports", function(port) pod_spec.set(port, "protocol", "TCP") end)
  end)
  return document
end

local function check_address(errors, address, at)
  local text, path = json.get(address, "ip") or "", at .. ".ip"
  local problem = ip.problem(text)
  if problem then add(errors, field.invalid(path, text, problem)) end
  local host, node = json.get(address, "hostname") or "", json.get(address, "nodeName")
  if host ~= "" then check_text(errors, host, at .. ".hostname", names.label(host)) end
  if node then check_text(errors, node, at .. ".nodeName", names.subdomain(node)) end
  problem = ip.family(text) and ip.unreachable(text) or not ip.family(text) and "must be a valid IP address" or nil
  if problem then add(errors, field.invalid(path, text, problem)) end
end

local function check_subset(errors, subset, at)
  if not json.get(subset, "addresses", 1) and not json.get(subset, "notReadyAddresses", 1) then
    add(errors, field.required(at, "must specify `addresses` or `notReadyAddresses`"))
  end
  for _, name in ipairs { "addresses", "notReadyAddresses" } do
    for i, address in ipairs(json.get(subset, name) or {}) do
      check_address(errors, address, ("%s.%s[%d]"):format(at, name, i - 1))
    end
  end
  local ports = json.get(subset, "ports") or {}
  for i, port in ipairs(ports) do
    local path = ("%s.ports[%d]"):format(at, i - 1)
    if #ports > 1 and (port.name or "") == "" then add(errors, field.required(path .. ".name")) end
    check_port(errors, port, path)
    if port.port < 1 or port.port > 65535 then
      add(errors, field.invalid(path .. ".port", port.port, "must be between 1 and 65535, inclusive"))
    end
  end
end

local function validate_endpoints(_, new, _, errors)
  for i, subset in ipairs(json.get(new, "subsets") or {}) do
    check_subset(errors, subset, ("subsets[%d]"):format(i - 1))
  end
end

-- ---- slices ----

local function default_slice(_, document)
  pod_spec.each(document, "ports", function(port)
    pod_spec.set(port, "name", "")
    pod_spec.set(port, "protocol", "TCP")
  end)
  return document
end

local function check_domain(errors, name, at)
  local bare = name:gsub("%.$", "")
  if bare == "" then return add(errors, field.required(at)) end
  local problem = names.subdomain(bare)
  if problem then
    add(errors, field.invalid(at, name, problem))
  elseif not bare:find(".", 1, true) then
    add(errors, field.invalid(at, name, "should be a domain with at least two segments separated by dots"))
  end
end

local function check_typed(errors, address, kind, path, at)
  if kind == "FQDN" then check_domain(errors, address, at) end
  if kind ~= "IPv4" and kind ~= "IPv6" then return end
  local problem = ip.problem(address)
  if problem then
    add(errors, field.invalid(at, address, problem))
    return
  end
  if ip.family(address) ~= kind then
    add(errors, field.invalid(path, address, ("must be an %s address"):format(kind)))
  end
  problem = ip.unreachable(address)
  if problem then add(errors, field.invalid(at, address, problem)) end
end

local function check_hints(errors, hints, name, check, path)
  local list, seen = json.get(hints, name) or {}, {}
  path = path .. "." .. name
  if #list > MOST_HINTS then
    add(errors, field.too_many(path, #list, MOST_HINTS))
    return
  end
  for i, hint in ipairs(list) do
    local at, text = ("%s[%d].name"):format(path, i - 1), hint.name or ""
    if seen[text] then add(errors, field.duplicate(at, text)) end
    seen[text] = true
    check_text(errors, text, at, check(text))
  end
end

local function check_endpoint(errors, endpoint, kind, at)
  local addresses, path = json.get(endpoint, "addresses") or {}, at .. ".addresses"
  if not addresses[1] then
    add(errors, field.required(path, "must contain at least 1 address"))
  elseif #addresses > MOST_ADDRESSES then
    add(errors, field.too_many(path, #addresses, MOST_ADDRESSES))
  end
  for i, address in ipairs(addresses) do
    check_typed(errors, address, kind, path, ("%s[%d]"):format(path, i - 1))
  end
  local node, host = json.get(endpoint, "nodeName"), json.get(endpoint, "hostname")
  if node then check_text(errors, node, at .. ".nodeName", names.subdomain(node)) end
  if host then check_text(errors, host, at .. ".hostname", names.label(host)) end
  local hints = json.get(endpoint, "hints")
  if not hints then return end
  check_hints(errors, hints, "forZones", names.label_value, at .. ".hints")
  check_hints(errors, hints, "forNodes", names.subdomain, at .. ".hints")
end

local function check_slice_ports(errors, ports)
  if #ports > MOST_PORTS then return add(errors, field.too_many("ports", #ports, MOST_PORTS)) end
  local seen = {}
  for i, port in ipairs(ports) do
    local at, name = ("ports[%d]"):format(i - 1), port.name or ""
    if seen[name] then add(errors, field.duplicate(at .. ".name", name)) end
    seen[name] = true
    check_port(errors, port, at)
  end
end

local function validate_slice(ctx, new, old, errors)
  local kind, list = new.addressType, json.get(new, "endpoints") or {}
  if (kind or "") == "" then
    add(errors, field.required("addressType"))
  elseif not field.is_one_of(kind, ADDRESS_TYPES) then
    add(errors, field.not_supported("addressType", kind, ADDRESS_TYPES))
  end
  check_slice_ports(errors, json.get(new, "ports") or {})
  -- Endpoints that were right once stay right.
  if not old or not json.equal(list, json.get(old, "endpoints") or json.array {}) then
    if #list > MOST_ENDPOINTS then add(errors, field.too_many("endpoints", #list, MOST_ENDPOINTS)) end
    for i = 1, #list <= MOST_ENDPOINTS and #list or 0 do
      check_endpoint(errors, list[i], kind, ("endpoints[%d]"):format(i - 1))
    end
  end
  if old and kind ~= old.addressType then add(errors, field.immutable("addressType", kind)) end
  if kind == "FQDN" and not errors[1] then ctx:warn "spec.addressType: FQDN endpoints are deprecated" end
end

function endpoints.of(R)
  if R.kind == "EndpointSlice" then return { default = default_slice, validate = validate_slice } end
  return { default = default_endpoints, validate = validate_endpoints }
end

return endpoints
