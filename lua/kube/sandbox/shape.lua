-- Documents of built-in kinds as Go's structs give them back: null is absent, and so is an empty
-- map or list that need not be there; what Go always writes is there. Custom resources keep what they
-- were given.
local always = require "kube.sandbox.always"
local json = require "kube.sandbox.json"
local schema = require "kube.sandbox.schema"

local shape = {}

local function required(node)
  local set = {}
  for _, name in ipairs(node.required or {}) do set[name] = true end
  return set
end

-- A map, as opposed to a struct, which is kept also when it is empty.
local function is_map(node) return node ~= nil and node.properties == nil and node.additionalProperties ~= nil end

local function is_dropped(value, node)
  if type(value) ~= "table" or next(value) ~= nil then return false end
  return json.is_array(value) or is_map(node)
end

-- An empty list of it is a wish: to have nobody own anything.
local KEPT = "managedFields"

local normalize

local function normalize_array(value, node)
  local items = schema.items(node)
  local out
  for i, item in ipairs(value) do
    local new = items and normalize(item, items) or item
    if new ~= item and not out then out = json.shallow(value) end
    if out then out[i] = new end
  end
  return out or value
end

local function normalize_object(value, node)
  local needed, out = required(node), nil
  for name, child in pairs(value) do
    local child_node = schema.field(node, name)
    local new = child_node and normalize(child, child_node) or child
    local dropped = not needed[name] and name ~= KEPT and is_dropped(new, child_node)
    if new == json.null or dropped then new = nil end
    if new ~= child then
      out = out or json.shallow(value)
      out[name] = new
    end
  end
  return out or value
end

function normalize(value, node)
  if type(value) ~= "table" then return value end
  node = schema.resolve(node)
  if json.is_array(value) then return normalize_array(value, node) end
  return normalize_object(value, node)
end

--- The document as Go would write it after it read it; shares what stays the same.
function shape.read(R, document)
  if not R.builtin then return document end
  return always.fill(R, normalize(document, schema.of(R)))
end

return shape
