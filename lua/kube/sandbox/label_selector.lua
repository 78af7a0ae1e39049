-- metav1.LabelSelector, as specs of objects have them: { matchLabels, matchExpressions }.
local field = require "kube.sandbox.field"
local json = require "kube.sandbox.json"
local meta = require "kube.sandbox.meta"
local names = require "kube.sandbox.names"

local label_selector = {}

local function holds(e, labels)
  local value = labels[e.key]
  if e.operator == "Exists" then return value ~= nil end
  if e.operator == "DoesNotExist" then return value == nil end
  local found = false
  for _, one in ipairs(e.values or {}) do found = found or value == one end
  return found == (e.operator == "In")
end

--- Whether it takes these labels (nil for none). An empty selector takes everything.
function label_selector.matches(selector, labels)
  labels = labels or {}
  for key, value in pairs(selector.matchLabels or {}) do
    if labels[key] ~= value then return false end
  end
  for _, e in ipairs(selector.matchExpressions or {}) do
    if not holds(e, labels) then return false end
  end
  return true
end

local OPERATORS = { In = true, NotIn = true, Exists = false, DoesNotExist = false }

local function add_all(errors, path, value, ...)
  for _, problem in ipairs { ... } do errors[#errors + 1] = field.invalid(path, value, problem) end
end

local function check_expression(errors, e, at)
  local takes_values, values = OPERATORS[e.operator], json.get(e, "values") or {}
  if takes_values == nil then
    errors[#errors + 1] = field.invalid(at .. ".operator", e.operator or "", "not a valid selector operator")
  elseif takes_values and not values[1] then
    errors[#errors + 1] = field.required(at .. ".values", "must be specified when `operator` is 'In' or 'NotIn'")
  elseif not takes_values and values[1] then
    errors[#errors + 1] = field.forbidden(at .. ".values",
      "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
  end
  add_all(errors, at .. ".key", e.key or "", names.qualified(e.key or "", "a valid label key"))
  for i, value in ipairs(values) do
    add_all(errors, ("%s.values[%d]"):format(at, i - 1), value, names.label_value(value))
  end
end

--- Adds what is wrong with a selector at `path`.
function label_selector.check(errors, selector, path)
  meta.check_labels(errors, json.get(selector, "matchLabels") or {}, path .. ".matchLabels")
  for i, e in ipairs(json.get(selector, "matchExpressions") or {}) do
    check_expression(errors, e, ("%s.matchExpressions[%d]"):format(path, i - 1))
  end
end

--- Whether it asks for nothing.
function label_selector.is_empty(selector)
  return next(selector.matchLabels or {}) == nil and next(selector.matchExpressions or {}) == nil
end

return label_selector
