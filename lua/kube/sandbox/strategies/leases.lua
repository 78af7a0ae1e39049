-- Leases: numbers that make sense.
local field = require "kube.sandbox.field"
local json = require "kube.sandbox.json"

local leases = {}

local function validate(_, new, _, errors)
  local seconds, transitions = json.get(new, "spec", "leaseDurationSeconds"), json.get(new, "spec", "leaseTransitions")
  if seconds and seconds <= 0 then
    errors[#errors + 1] = field.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")
  end
  if transitions and transitions < 0 then
    errors[#errors + 1] = field.invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0")
  end
end

function leases.of() return { validate = validate } end

return leases
