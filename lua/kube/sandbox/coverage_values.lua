-- Values that are right under any rule, for the tables of kube.sandbox.coverage: each function returns,
-- or is, one that tells whether a value is one of them.
local names = require "kube.sandbox.names"
local quantity = require "kube.sandbox.quantity"

local values = {}

--- One of the given ones.
function values.one_of(...)
  local known = {}
  for _, value in ipairs { ... } do known[value] = true end
  return function(value) return known[value] == true end
end

--- A number, not below `least`.
function values.at_least(least)
  return function(value) return type(value) == "number" and value >= least end
end

--- A text of which a check as those of kube.sandbox.names has nothing to say.
function values.is_right(check)
  return function(value) return type(value) == "string" and check(value) == nil end
end

--- Labels.
function values.labels(value)
  for key, text in pairs(value) do
    if names.qualified(key) or names.label_value(text) then return false end
  end
  return true
end

--- A number from `first` to `last`.
function values.between(first, last)
  return function(value) return type(value) == "number" and value >= first and value <= last end
end

--- A number of pods, or a share of them.
function values.share(value)
  if type(value) == "number" then return value >= 0 end
  local percent = tonumber(value:match("^(%d+)%%$"))
  return percent ~= nil and percent <= 100
end

--- A quantity of something.
function values.amount(value) return (quantity.number(value) or 0) > 0 end

--- A selector that names labels only.
function values.selector(value)
  return value.matchExpressions == nil and (value.matchLabels == nil or values.labels(value.matchLabels))
end

return values
