-- Disruption budgets: one of two numbers.
local field = require "kube.sandbox.field"
local json = require "kube.sandbox.json"
local label_selector = require "kube.sandbox.label_selector"
local shares = require "kube.sandbox.strategies.shares"

local disruption = {}

local POLICIES = { "AlwaysAllow", "IfHealthyBudget" }

local function check_status(errors, status)
  for _, name in ipairs { "disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods" } do
    local value = tonumber(json.get(status, name)) or 0
    if value < 0 then
      errors[#errors + 1] = field.invalid("status." .. name, value, "must be greater than or equal to 0")
    end
  end
end

local function check_both(errors, spec)
  if json.get(spec, "minAvailable") == nil or json.get(spec, "maxUnavailable") == nil then return end
  -- Shown as the server's own struct has it.
  local function text(name) return json.encode(spec[name] == nil and json.null or spec[name]) end
  errors[#errors + 1] = field.shown("spec",
    ('{"MinAvailable":%s,"Selector":%s,"MaxUnavailable":%s,"UnhealthyPodEvictionPolicy":%s}'):format(
      text "minAvailable", text "selector", text "maxUnavailable", text "unhealthyPodEvictionPolicy"),
    "minAvailable and maxUnavailable cannot be both set")
end

local function validate(_, new, _, errors, subresource)
  if subresource == "status" then return check_status(errors, new.status) end
  local spec = new.spec or json.object {}
  check_both(errors, spec)
  for _, name in ipairs { "minAvailable", "maxUnavailable" } do
    local value = json.get(spec, name)
    if value ~= nil then
      shares.check(errors, value, "spec." .. name)
      shares.check_within_all(errors, value, "spec." .. name)
    end
  end
  if json.get(spec, "selector") then label_selector.check(errors, spec.selector, "spec.selector") end
  local policy = json.get(spec, "unhealthyPodEvictionPolicy")
  if policy and policy ~= POLICIES[1] and policy ~= POLICIES[2] then
    errors[#errors + 1] = field.not_supported("spec.unhealthyPodEvictionPolicy", policy, POLICIES)
  end
end

function disruption.of() return { validate = validate } end

return disruption
