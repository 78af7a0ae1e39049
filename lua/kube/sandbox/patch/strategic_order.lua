-- The order of a list that a strategic merge patch changed: what the patch names stands in the
-- patch's order, what only the server has stands where it stood relative to that.
local json = require "kube.sandbox.json"

local order = {}

--- What identifies an element: the value of its merge key, or itself among scalars.
function order.key_of(element, merge_key)
  if not merge_key then return element end
  return json.is_object(element) and element[merge_key] or nil
end

--- The position of the element with that key, or nil.
function order.index(list, key, merge_key)
  for i, element in ipairs(list) do
    local found = order.key_of(element, merge_key)
    if found ~= nil and found == key then return i end
  end
end

-- Sorts by the position in `reference`. An insertion sort, because the server's comparison counts an
-- element that `reference` lacks as smaller than anything and its result hangs on the method.
local function arrange(list, reference, merge_key)
  local position = {}
  for _, element in ipairs(list) do
    position[element] = order.index(reference, order.key_of(element, merge_key), merge_key) or false
  end
  local function before(a, b)
    if position[a] and position[b] then return position[a] < position[b] end
    return true
  end
  for i = 2, #list do
    local j = i
    while j > 1 and before(list[j], list[j - 1]) do
      list[j], list[j - 1] = list[j - 1], list[j]
      j = j - 1
    end
  end
end

-- Interleaves two sorted lists: an element that only the server has goes before the first element of
-- the patch that the server had after it.
local function interleave(server_only, patched, server, merge_key)
  local function server_first(l, r)
    local left = order.index(server, order.key_of(l, merge_key), merge_key)
    local right = order.index(server, order.key_of(r, merge_key), merge_key)
    return left and right and left < right
  end
  local out, i, j = json.array {}, 1, 1
  while i <= #server_only or j <= #patched do
    if i <= #server_only and (j > #patched or server_first(server_only[i], patched[j])) then
      out[#out + 1] = server_only[i]
      i = i + 1
    else
      out[#out + 1] = patched[j]
      j = j + 1
    end
  end
  return out
end

--- `merged` put in order: elements that `wanted` names follow it, the rest follows `server`.
function order.enforce(merged, wanted, server, merge_key)
  local patched, server_only = {}, {}
  for _, element in ipairs(merged) do
    local named = order.index(wanted, order.key_of(element, merge_key), merge_key)
    local part = named and patched or server_only
    part[#part + 1] = element
  end
  arrange(patched, wanted, merge_key)
  arrange(server_only, server, merge_key)
  return interleave(server_only, patched, server, merge_key)
end

return order
