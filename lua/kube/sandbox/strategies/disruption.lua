-- Disruption budgets: one of two numbers.
local field = require "kube.sandbox.field"
local json = require "kube.sandbox.json"

local disruption = {}

local function validate(_, new, _, errors)
  local spec = new.spec
  if json.get(spec, "minAvailable") == nil or json.get(spec, "maxUnavailable") == nil then return end
  -- Shown as the server's own struct has it.
  local function text(name) return json.encode(spec[name] == nil and json.null or spec[name]) end
  errors[#errors + 1] = field.shown("spec",
    ('{"MinAvailable":%s,"Selector":%s,"MaxUnavailable":%s,"UnhealthyPodEvictionPolicy":%s}'):format(
      text "minAvailable", text "selector", text "maxUnavailable", text "unhealthyPodEvictionPolicy"),
    "minAvailable and maxUnavailable cannot be both set")
end

function disruption.of() return { validate = validate } end

return disruption
