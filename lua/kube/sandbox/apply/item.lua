-- The path elements of a list's items, for lists whose items are owned one by one.
local atom = require "kube.sandbox.apply.atom"
local element = require "kube.sandbox.apply.path_element"
local json = require "kube.sandbox.json"

local item = {}

local function quoted(names)
  local out = {}
  for i, name in ipairs(names) do out[i] = ('"%s"'):format(name) end
  return "[" .. table.concat(out, " ") .. "]"
end

local function keyed(list, value)
  if value == json.null then return nil, "associative list with keys may not have a null element" end
  if not atom.object(value) then return nil, "associative list with keys may not have non-map elements" end
  local pe = element.key(value, list.keys, list.defaults)
  if pe then return pe end
  return nil, ("associative list with keys has an element that omits all key fields %s " ..
    "(and doesn't have default values for any key fields)"):format(quoted(list.names))
end

--- The path element of one item; nil and the problem when it cannot have one.
function item.element(list, value)
  if list.keys then return keyed(list, value) end
  if value == json.null then return nil, "associative list without keys has an element that's an explicit null" end
  if atom.array(value) then return nil, "not supported: associative list with lists as elements" end
  if type(value) == "table" then return nil, "associative list without keys has an element that's a map type" end
  return element.value(value)
end

--- The path elements of all items, in order; raises the problem as a text.
function item.elements(list, values)
  local out = {}
  for i = 1, #values do
    local pe, problem = item.element(list, values[i])
    if not pe then error(("element %d: %s"):format(i - 1, problem), 0) end
    out[i] = pe
  end
  return out
end

return item
