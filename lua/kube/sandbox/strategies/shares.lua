-- A number of pods, or a share of them: 3 or "25%".
local field = require "kube.sandbox.field"

local shares = {}

local PERCENT = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', "
  .. "regex used for validation is '[0-9]+%')"

local function percent_of(share) return type(share) == "string" and tonumber(share:match("^(%d+)%%$")) or nil end

--- Adds what is wrong with one.
function shares.check(errors, value, path)
  if type(value) == "string" then
    if not percent_of(value) then errors[#errors + 1] = field.invalid(path, value, PERCENT) end
  elseif (tonumber(value) or 0) < 0 then
    errors[#errors + 1] = field.invalid(path, value, "must be greater than or equal to 0")
  end
end

--- Refuses more than all of them.
function shares.check_within_all(errors, value, path)
  if (percent_of(value) or 0) > 100 then
    errors[#errors + 1] = field.invalid(path, value, "must not be greater than 100%")
  end
end

function shares.is_nothing(value) return (percent_of(value) or type(value) == "number" and value or 0) == 0 end

return shares
