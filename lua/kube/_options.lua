-- Options tables: every key is known, every type is right, or the call raises and says so.
local errors = require "kube._error"

local options = {}

-- Edit distance, for did-you-mean.
local function distance(a, b)
  local previous = {}
  for j = 0, #b do previous[j] = j end
  for i = 1, #a do
    local current = { [0] = i }
    for j = 1, #b do
      local cost = a:byte(i) == b:byte(j) and 0 or 1
      current[j] = math.min(previous[j] + 1, current[j - 1] + 1, previous[j - 1] + cost)
    end
    previous = current
  end
  return previous[#b]
end

--- The name among `known` (a map by name) that is closest to `word`, or nil when none is near.
function options.nearest(word, known)
  local best, best_distance = nil, math.max(2, math.floor(#word / 3)) + 1
  for name in pairs(known) do
    local d = type(name) == "string" and distance(word, name) or math.huge
    if d < best_distance or (d == best_distance and best and name < best) then
      best, best_distance = name, d
    end
  end
  return best
end

--- " (did you mean 'x'?)", or the list of what there is.
function options.hint(word, known)
  local near = options.nearest(word, known)
  if near then return (" (did you mean '%s'?)"):format(near) end
  local names = {}
  for name in pairs(known) do names[#names + 1] = name end
  table.sort(names)
  return ("; it has: %s"):format(table.concat(names, ", "))
end

local function type_fits(value, wanted)
  for kind in wanted:gmatch("[%w_.]+") do
    if type(value) == kind then return true end
    if kind == "client" and type(value) == "userdata" then return true end
    if kind == "null" and type(value) == "userdata" then return true end
  end
  return false
end

--- Checks `given` against `known` (name -> "type" or "type|type") and returns it, {} for nil.
--- what names the function in messages.
function options.check(what, given, known)
  if given == nil then return {} end
  if type(given) ~= "table" then
    errors.misuse("%s takes a table of options, not a %s", what, type(given))
  end
  for name, value in pairs(given) do
    local wanted = known[name]
    if not wanted then
      errors.misuse("%s has no option '%s'%s", what, tostring(name),
        options.hint(tostring(name), known))
    elseif not type_fits(value, wanted) then
      errors.misuse("%s: option '%s' must be a %s, not a %s", what, name,
        (wanted:gsub("|", " or ")), type(value))
    end
  end
  return given
end

return options
