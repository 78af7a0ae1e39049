-- Pruning: what a structural schema does not specify does not get stored, unless it says
-- x-kubernetes-preserve-unknown-fields.
local json = require "kube.sandbox.json"

local prune = {}

local META = { apiVersion = true, kind = true, metadata = true }

local walk

local function child(path, key) return path == "" and key or path .. "." .. key end

-- What becomes of a field: its new value (nil: gone), by the schema of the object that it is in.
local function field_of(node, key, value, path, unknown, keep, embedded)
  if embedded and META[key] then return value end
  local property = node and node.properties and node.properties[key]
  if property then return walk(property, value, child(path, key), unknown, false) end
  local additional = node and node.additionalProperties
  if additional ~= nil then
    return walk(type(additional) == "table" and additional or nil, value, child(path, key), unknown, false)
  end
  if keep then return value end
  if not (META[key] and path == "") then unknown[#unknown + 1] = child(path, key) end
  return nil
end

-- `inherited`: an array inside what preserves its fields passes that on to its items.
function walk(node, value, path, unknown, inherited, root)
  if type(value) ~= "table" then return value end
  local keep = inherited or node and node["x-kubernetes-preserve-unknown-fields"] == true
  if keep and not node then return value end
  local out, changed = value, false
  local function set(key, new)
    if rawequal(new, value[key]) then return end
    if not changed then out, changed = json.shallow(value), true end
    out[key] = new
  end
  if json.is_array(value) then
    for i, item in ipairs(value) do
      local new = walk(node and node.items, item, ("%s[%d]"):format(path, i - 1), unknown, keep)
      set(i, new)
    end
    return out
  end
  local embedded = root or node and node["x-kubernetes-embedded-resource"] == true
  for key, item in pairs(value) do
    set(key, field_of(node, key, item, path, unknown, keep, embedded))
  end
  return out
end

--- The document without what `node` does not know, and the paths of that, in order. The given one is
--- not changed; what stays is shared. The document is a whole resource unless `part` is given.
function prune.prune(document, node, part)
  local unknown = {}
  local out = walk(node, document, "", unknown, false, not part)
  table.sort(unknown)
  return out, unknown
end

return prune
