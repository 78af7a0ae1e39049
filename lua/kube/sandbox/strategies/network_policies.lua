-- Network policies: peers of one sort, ports that are in order.
local field = require "kube.sandbox.field"
local ip = require "kube.sandbox.ip"
local json = require "kube.sandbox.json"
local label_selector = require "kube.sandbox.label_selector"
local names = require "kube.sandbox.names"
local pod_spec = require "kube.sandbox.strategies.pod_spec"

local network_policies = {}

local PROTOCOLS, DIRECTIONS = { "TCP", "UDP", "SCTP" }, { "Ingress", "Egress" }
local RANGE = "must be between 1 and 65535, inclusive"

local function add(errors, e) errors[#errors + 1] = e end

local function default_ports(t)
  pod_spec.each(t, "ports", function(port) pod_spec.set(port, "protocol", "TCP") end)
end

-- A policy is about what comes in, and about what goes out if it says something about it.
local function default(_, document)
  local spec = json.shallow(document.spec)
  document.spec = spec
  for _, direction in ipairs { "ingress", "egress" } do pod_spec.each(spec, direction, default_ports) end
  if not spec.policyTypes then
    spec.policyTypes = json.array { "Ingress", json.get(spec, "egress") and "Egress" or nil }
  end
  return document
end

local function is_port(number) return number >= 1 and number <= 65535 end

local function check_end(errors, port, last, path)
  if type(port) ~= "number" then
    add(errors, field.invalid(path, last, ("may not be specified when `port` is %s"):format(
      port and "non-numeric" or "not specified")))
    return
  end
  if last < port then add(errors, field.invalid(path, port, "must be greater than or equal to `port`")) end
  if not is_port(last) then add(errors, field.invalid(path, last, RANGE)) end
end

local function check_port(errors, entry, at)
  local port, last = json.get(entry, "port"), json.get(entry, "endPort")
  if not field.is_one_of(entry.protocol, PROTOCOLS) then
    add(errors, field.not_supported(at .. ".protocol", entry.protocol, PROTOCOLS))
  end
  if type(port) == "number" and not is_port(port) then add(errors, field.invalid(at .. ".port", port, RANGE)) end
  if last then check_end(errors, port, last, at .. ".endPort") end
  if type(port) == "string" then
    for _, problem in ipairs { names.port(port) } do add(errors, field.invalid(at .. ".port", port, problem)) end
  end
end

local function check_block(errors, block, at)
  local network = json.get(block, "cidr") or ""
  if network == "" then
    add(errors, field.required(at .. ".cidr"))
    return
  end
  local problem = ip.network_problem(network)
  if problem then add(errors, field.invalid(at .. ".cidr", network, problem)) end
  for i, part in ipairs(json.get(block, "except") or {}) do
    local path, inside = ("%s.except[%d]"):format(at, i - 1), ip.contains(network, part)
    problem = ip.network_problem(part)
    if problem then add(errors, field.invalid(path, part, problem)) end
    if inside == false then add(errors, field.invalid(path, part, "must be a strict subset of `cidr`")) end
  end
end

local function check_peer(errors, peer, at)
  local selectors = 0
  for _, name in ipairs { "podSelector", "namespaceSelector" } do
    local selector = json.get(peer, name)
    if selector then
      selectors = selectors + 1
      label_selector.check(errors, selector, at .. "." .. name)
    end
  end
  local block = json.get(peer, "ipBlock")
  if block then check_block(errors, block, at .. ".ipBlock") end
  if not block and selectors == 0 then
    add(errors, field.required(at, "must specify a peer"))
  elseif block and selectors > 0 then
    add(errors, field.forbidden(at, "may not specify both ipBlock and another peer"))
  end
end

local function check_rules(errors, rules, path, peers)
  for i, rule in ipairs(rules or {}) do
    local at = ("%s[%d]"):format(path, i - 1)
    for j, port in ipairs(json.get(rule, "ports") or {}) do
      check_port(errors, port, ("%s.ports[%d]"):format(at, j - 1))
    end
    for j, peer in ipairs(json.get(rule, peers) or {}) do
      check_peer(errors, peer, ("%s.%s[%d]"):format(at, peers, j - 1))
    end
  end
end

local function validate(_, new, _, errors)
  local spec = new.spec
  label_selector.check(errors, json.get(spec, "podSelector") or {}, "spec.podSelector")
  check_rules(errors, json.get(spec, "ingress"), "spec.ingress", "from")
  check_rules(errors, json.get(spec, "egress"), "spec.egress", "to")
  local types = json.get(spec, "policyTypes") or {}
  if #types > #DIRECTIONS then
    add(errors, field.invalid("spec.policyTypes", types, "may not specify more than two policyTypes"))
    return
  end
  for i, kind in ipairs(types) do
    if not field.is_one_of(kind, DIRECTIONS) then
      add(errors, field.not_supported(("spec.policyTypes[%d]"):format(i - 1), kind, DIRECTIONS))
    end
  end
end

function network_policies.of() return { default = default, validate = validate } end

return network_policies
