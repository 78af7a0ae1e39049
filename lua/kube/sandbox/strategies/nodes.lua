-- Nodes: nothing runs on them here, but they look as they do before a kubelet has reported.
local field = require "kube.sandbox.field"
local ip = require "kube.sandbox.ip"
local json = require "kube.sandbox.json"
local names = require "kube.sandbox.names"
local quantity = require "kube.sandbox.quantity"

local nodes = {}

local NOT_READY = "node.kubernetes.io/not-ready"

local function prepare_create(_, document)
  local spec = json.shallow(document.spec)
  local taints = spec.taints and json.shallow(spec.taints) or json.array {}
  local there
  for _, taint in ipairs(taints) do there = there or taint.key == NOT_READY end
  if not there then taints[#taints + 1] = json.object { key = NOT_READY, effect = "NoSchedule" } end
  spec.taints = taints
  document.spec = spec
  return document
end

-- What there is can be used, unless somebody says otherwise.
local function default(_, document)
  -- Two names of one field.
  local network, networks = json.get(document, "spec", "podCIDR"), json.get(document, "spec", "podCIDRs")
  if network and not networks then
    document.spec = json.with(document.spec, "podCIDRs", json.array { network })
  elseif networks and networks[1] and not network then
    document.spec = json.with(document.spec, "podCIDR", networks[1])
  end
  local capacity = json.get(document, "status", "capacity")
  if capacity and not json.get(document, "status", "allocatable") then
    document.status = json.with(document.status, "allocatable", capacity)
  end
  return document
end

local EFFECTS = { "NoSchedule", "PreferNoSchedule", "NoExecute" }

local function add(errors, e) errors[#errors + 1] = e end

-- The server speaks of them as metadata.
local function check_taint(errors, taint, path)
  local key, value, effect = taint.key or "", json.get(taint, "value") or "", taint.effect or ""
  for _, problem in ipairs { names.qualified(key) } do add(errors, field.invalid(path .. ".key", key, problem)) end
  for _, problem in ipairs { names.label_value(value) } do
    add(errors, field.invalid(path .. ".value", value, problem))
  end
  if effect == "" then
    add(errors, field.required(path .. ".effect"))
  elseif effect ~= EFFECTS[1] and effect ~= EFFECTS[2] and effect ~= EFFECTS[3] then
    add(errors, field.not_supported(path .. ".effect", effect, EFFECTS))
  end
end

local function check_taints(errors, taints)
  local seen = {}
  for i, taint in ipairs(taints) do
    local path, text = ("metadata.taints[%d]"):format(i - 1), ("%s %s"):format(taint.effect, taint.key)
    check_taint(errors, taint, path)
    if seen[text] then
      local e = field.duplicate(path, json.null)
      e.message = ('Duplicate value: {"Key":%s,"Value":%s,"Effect":%s,"TimeAdded":%s}: taints must be unique by key '
        .. "and effect pair"):format(field.show(taint.key), field.show(json.get(taint, "value") or ""),
          field.show(taint.effect), field.show(json.get(taint, "timeAdded")))
      add(errors, e)
    end
    seen[text] = true
  end
end

local function check_networks(errors, networks)
  local families = {}
  for i, network in ipairs(networks) do
    local problem = ip.network_problem(network)
    if problem then add(errors, field.invalid(("spec.podCIDRs[%d]"):format(i - 1), network, problem)) end
    families[ip.family(network:match("^[^/]*")) or i] = true
  end
  if #networks > 1 and not (#networks == 2 and families.IPv4 and families.IPv6) then
    add(errors, field.invalid("spec.podCIDRs", networks, "may specify no more than one CIDR for each IP family"))
  end
end

local function check_amounts(errors, status)
  for _, part in ipairs { "capacity", "allocatable" } do
    for name, amount in pairs(json.get(status, part) or {}) do
      if (quantity.number(amount) or 0) < 0 then
        add(errors, field.invalid(("status.%s.%s"):format(part, name), amount, "must be greater than or equal to 0"))
      end
    end
  end
end

local ONCE = 'node updates may not change %s except from "" to valid'

local function check_change(errors, new, old)
  local seen = {}
  for i, address in ipairs(json.get(new, "status", "addresses") or {}) do
    local text = ('{"Type":%s,"Address":%s}'):format(field.show(address.type), field.show(address.address))
    if seen[text] then
      local e = field.duplicate(("status.addresses[%d]"):format(i - 1), json.null)
      e.message = "Duplicate value: " .. text
      add(errors, e)
    end
    seen[text] = true
  end
  local networks, provider = json.get(old, "spec", "podCIDRs"), json.get(old, "spec", "providerID") or ""
  if networks and networks[1] and not json.equal(networks, json.get(new, "spec", "podCIDRs")) then
    add(errors, field.forbidden("spec.podCIDRs", ONCE:format("podCIDR")))
  end
  if provider ~= "" and provider ~= json.get(new, "spec", "providerID") then
    add(errors, field.forbidden("spec.providerID", ONCE:format("providerID")))
  end
end

local function validate(_, new, old, errors)
  local spec = new.spec or json.object {}
  check_taints(errors, json.get(spec, "taints") or {})
  check_amounts(errors, new.status)
  check_networks(errors, json.get(spec, "podCIDRs") or {})
  if old then check_change(errors, new, old) end
end

function nodes.of()
  return { default = default, prepare_create = prepare_create, validate = validate, keeps_status = true }
end

return nodes
