-- Defaults of a structural schema: fields that are missing, or null where null is not allowed, get
-- the default; nulls that are not allowed and have none go away.
local json = require "kube.sandbox.json"

local default = {}

local function resolved(node)
  if not node or not node["$ref"] then return node end
  return require("kube.sandbox.schema").resolve(node)
end

local function is_bare_null(value, node) return value == json.null and node ~= nil and not node.nullable end

local function additional_of(node)
  return type(node.additionalProperties) == "table" and resolved(node.additionalProperties) or nil
end

local walk

local function walk_list(node, value)
  local items = resolved(node.items)
  if not items then return value end
  local out = value
  for i, item in ipairs(value) do
    local new = item
    if is_bare_null(item, items) and items.default ~= nil then new = json.copy(items.default) end
    new = walk(items, new)
    if not rawequal(new, item) then
      if out == value then out = json.shallow(value) end
      out[i] = new
    end
  end
  return out
end

-- The value of a field with its default; nil when the field should not be there.
local function field_value(node, value)
  if is_bare_null(value, node) then value = nil end
  if value == nil and node.default ~= nil and node.default ~= json.null then return json.copy(node.default) end
  return value
end

local function walk_object(node, value)
  local out = value
  local function set(key, new)
    if rawequal(new, out[key]) then return end
    if out == value then out = json.shallow(value) end
    out[key] = new
  end
  for key, property in pairs(node.properties or {}) do
    property = resolved(property)
    if value[key] ~= nil or property.default ~= nil then set(key, field_value(property, value[key])) end
    if out[key] ~= nil then set(key, walk(property, out[key])) end
  end
  local additional = additional_of(node)
  if not additional then return out end
  for key, item in pairs(value) do
    if not (node.properties and node.properties[key]) then
      local new = field_value(additional, item)
      if new ~= nil then new = walk(additional, new) end
      set(key, new)
    end
  end
  return out
end

function walk(node, value)
  if type(value) ~= "table" then return value end
  if json.is_array(value) then return walk_list(node, value) end
  return walk_object(node, value)
end

--- The document with its defaults. The given one is not changed; what stays is shared.
function default.apply(document, node)
  if not node then return document end
  return walk(resolved(node), document)
end

return default
