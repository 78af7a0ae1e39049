-- What autoscalers must be: numbers in order, a target, and metrics with one source each. Of the sources
-- only resources are looked at; kube.sandbox.coverage_kinds has the others.
local field = require "kube.sandbox.field"
local json = require "kube.sandbox.json"
local names = require "kube.sandbox.names"
local quantity = require "kube.sandbox.quantity"

local autoscaler_rules = {}

local SOURCES = { ContainerResource = "containerResource", External = "external", Object = "object", Pods = "pods",
  Resource = "resource" }
local SOURCE_TYPES = { "ContainerResource", "External", "Object", "Pods", "Resource" }
local TARGETS = { Utilization = true, Value = true, AverageValue = true }

local function add(errors, e) errors[#errors + 1] = e end

local function check_numbers(errors, spec)
  local least, most = json.get(spec, "minReplicas"), json.get(spec, "maxReplicas") or 0
  if least and least < 1 then
    add(errors, field.invalid("spec.minReplicas", least, "must be greater than or equal to 1"))
  end
  if most == 0 then
    add(errors, field.required("spec.maxReplicas", "must be set and greater than 0"))
  elseif most < 0 then
    add(errors, field.invalid("spec.maxReplicas", most, "must be greater than or equal to 1"))
  end
  if least and most < least then
    add(errors, field.invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"))
  end
end

local function version_problem(target)
  local version = json.get(target, "apiVersion") or ""
  if select(2, version:gsub("/", "")) > 1 then return "unexpected GroupVersion string: " .. version end
  local is_core = not version:find("/", 1, true)
  if is_core and target.kind ~= "ReplicationController" then return "apiVersion must specify API group" end
end

local function check_target_ref(errors, target)
  local path = "spec.scaleTargetRef"
  for _, name in ipairs { "kind", "name" } do
    local value = json.get(target, name) or ""
    if value == "" then
      add(errors, field.required(path .. "." .. name))
    else
      for _, problem in ipairs { names.path(value) } do
        add(errors, field.invalid(path .. "." .. name, value, problem))
      end
    end
  end
  local problem = version_problem(target)
  if problem then add(errors, field.invalid(path .. ".apiVersion", target.apiVersion or "", problem)) end
end

local function check_target(errors, target, path)
  local kind = json.get(target, "type") or ""
  if kind == "" then add(errors, field.required(path .. ".type", "must specify a metric target type")) end
  if not TARGETS[kind] then
    add(errors, field.invalid(path .. ".type", kind, "must be either Utilization, Value, or AverageValue"))
  end
  for _, name in ipairs { "value", "averageValue" } do
    local amount = json.get(target, name)
    if amount and (quantity.number(amount) or 0) <= 0 then
      add(errors, field.invalid(path .. "." .. name, amount, "must be positive"))
    end
  end
  local share = json.get(target, "averageUtilization")
  if share and share < 1 then
    add(errors, field.invalid(path .. ".averageUtilization", share, "must be greater than 0"))
  end
end

local function check_resource(errors, source, path)
  if (json.get(source, "name") or "") == "" then
    add(errors, field.required(path .. ".name", "must specify a resource name"))
  end
  local target = json.get(source, "target") or json.object {}
  check_target(errors, target, path .. ".target")
  local share, amount = json.get(target, "averageUtilization"), json.get(target, "averageValue")
  if share == nil and amount == nil then
    add(errors, field.required(path .. ".target.averageUtilization",
      "must set either a target raw value or a target utilization"))
  elseif share ~= nil and amount ~= nil then
    add(errors, field.forbidden(path .. ".target.averageValue",
      "may not set both a target raw value and a target utilization"))
  end
end

-- The first of these is looked at, and only that of the type may be there.
local ORDER = { "object", "external", "pods", "resource", "containerResource" }

local function check_metric(errors, metric, path)
  local kind, expected = metric.type or "", SOURCES[metric.type]
  if kind == "" then add(errors, field.required(path .. ".type", "must specify a metric source type")) end
  if not expected then add(errors, field.not_supported(path .. ".type", kind, SOURCE_TYPES)) end
  local present = {}
  for _, name in ipairs(ORDER) do
    if json.get(metric, name) then present[#present + 1] = name end
  end
  if present[1] == "resource" then check_resource(errors, metric.resource, path .. ".resource") end
  if expected and not json.get(metric, expected) then
    add(errors, field.required(path .. "." .. expected, "must populate information for the given metric source"))
  elseif not expected then
    add(errors, field.not_supported(path .. ".type", kind, SOURCE_TYPES))
  end
  if #present == 1 then return end
  for _, name in ipairs(present) do
    if name ~= expected then
      add(errors, field.forbidden(path .. "." .. name, "must populate the given metric source only"))
    end
  end
end

local function check_status(errors, status)
  for _, name in ipairs { "currentReplicas", "desiredReplicas" } do
    local value = json.get(status, name) or 0
    if value < 0 then
      add(errors, field.invalid("status." .. name, value, "must be greater than or equal to 0"))
    end
  end
end

--- Adds what is wrong with an autoscaler.
function autoscaler_rules.validate(_, new, _, errors, subresource)
  if subresource == "status" then return check_status(errors, new.status) end
  local spec = new.spec or json.object {}
  check_numbers(errors, spec)
  check_target_ref(errors, json.get(spec, "scaleTargetRef") or json.object {})
  local wakes = false
  for i, metric in ipairs(json.get(spec, "metrics") or {}) do
    check_metric(errors, metric, ("spec.metrics[%d]"):format(i - 1))
    wakes = wakes or metric.type == "Object" or metric.type == "External"
  end
  if json.get(spec, "minReplicas") == 0 and not wakes then
    add(errors, field.forbidden("spec.metrics",
      "must specify at least one Object or External metric to support scaling to zero replicas"))
  end
end

return autoscaler_rules
