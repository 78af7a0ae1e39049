-- Where a pod may run and what it is called there: selectors of nodes, tolerations, names.
local field = require "kube.sandbox.field"
local json = require "kube.sandbox.json"
local meta = require "kube.sandbox.meta"
local names = require "kube.sandbox.names"

local pod_placement = {}

local function add(errors, e) errors[#errors + 1] = e end

local EFFECTS = { "NoSchedule", "PreferNoSchedule", "NoExecute" }
local OPERATORS = { "Equal", "Exists" }
local COMPARING = { "Equal", "Exists", "Lt", "Gt" }

local operators = {}

function operators.Equal(errors, value, path)
  local problem = names.label_value(value)
  if problem then add(errors, field.invalid(path, value, problem)) end
end
operators[""] = operators.Equal

function operators.Exists(errors, value, path)
  if value ~= "" then add(errors, field.invalid(path, value, "value must be empty when `operator` is 'Exists'")) end
end

-- Behind a feature gate that is off.
function operators.Lt(errors, _, path, name) add(errors, field.not_supported(path, name, COMPARING)) end
operators.Gt = operators.Lt

local function check_effect(errors, effect, path)
  for _, known in ipairs(EFFECTS) do
    if effect == known then return end
  end
  add(errors, field.not_supported(path, effect, EFFECTS))
end

local function check_toleration(errors, t, path)
  local key, operator, effect = t.key or "", t.operator or "", t.effect or ""
  if key ~= "" then
    for _, problem in ipairs { names.qualified(key, "a valid label key") } do
      add(errors, field.invalid(path .. ".key", key, problem))
    end
  elseif operator ~= "Exists" then
    add(errors, field.invalid(path .. ".operator", operator,
      'operator must be Exists when `key` is empty, which means "match all values and all keys"'))
  end
  if json.get(t, "tolerationSeconds") and effect ~= "NoExecute" then
    add(errors, field.invalid(path .. ".effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"))
  end
  local check = operators[operator]
  if check then
    check(errors, t.value or "", path .. ".operator", operator)
  else
    add(errors, field.not_supported(path .. ".operator", operator, OPERATORS))
  end
  if effect ~= "" then check_effect(errors, effect, path .. ".effect") end
end

-- The names of a spec that must be names, in the order of the server.
local NAMES = {
  { "serviceAccountName", names.subdomain }, { "nodeName", names.subdomain }, { "hostname", names.label },
  { "subdomain", names.label },
}

local LAST_SECOND = 2147483647

local function check_deadline(errors, deadline, path)
  if not deadline or deadline >= 1 and deadline <= LAST_SECOND then return end
  add(errors, field.invalid(path, deadline, ("must be between 1 and %d, inclusive"):format(LAST_SECOND)))
end

--- Adds what is wrong with the places that a pod spec at `path` names.
function pod_placement.check(errors, spec, path)
  meta.check_labels(errors, json.get(spec, "nodeSelector") or {}, path .. ".nodeSelector")
  for _, entry in ipairs(NAMES) do
    local name, check = entry[1], entry[2]
    local value = json.get(spec, name) or ""
    local problem = value ~= "" and check(value)
    if problem then add(errors, field.invalid(path .. "." .. name, value, problem)) end
    if name == "nodeName" then
      check_deadline(errors, json.get(spec, "activeDeadlineSeconds"), path .. ".activeDeadlineSeconds")
    end
  end
  for i, toleration in ipairs(json.get(spec, "tolerations") or {}) do
    check_toleration(errors, toleration, ("%s.tolerations[%d]"):format(path, i - 1))
  end
end

return pod_placement
