-- Values that are right under any rule, for the tables of kube.sandbox.coverage: each function returns,
-- or is, one that tells whether a value is one of them.
local names = require "kube.sandbox.names"

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

return values
