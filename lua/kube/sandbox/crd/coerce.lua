-- Metadata inside custom resources, their own and that of objects in them, read as ObjectMeta.
local json = require "kube.sandbox.json"
local field = require "kube.sandbox.field"
local typed = require "kube.sandbox.validate.typed"
local values = require "kube.sandbox.validate.value"

local coerce = {}

local function child(path, key) return path == "" and key or path .. "." .. key end

-- Reads one metadata; a refusal is told as it is at the root, inside with where and what it was.
local function read_metadata(state, value, path)
  local inner = { unknown = function(_, at) state:unknown(at) end }
  function inner.refuse(_, at, text, fatal)
    if path ~= "metadata" then text = path .. ": " .. field.invalid(path, value, text).message end
    state:refuse(at, text, fatal)
  end
  return typed.read(inner, typed.OBJECT_META, value, path)
end

local function read_resource(state, value, path)
  local out = value
  for _, key in ipairs { "apiVersion", "kind" } do
    if path ~= "" and value[key] ~= nil and type(value[key]) ~= "string" then
      local at = child(path, key)
      state:refuse(at, at .. ": " .. field.invalid(at, value[key], "must be a string").message)
    end
  end
  if value.metadata ~= nil and value.metadata ~= json.null then
    local metadata = read_metadata(state, value.metadata, child(path, "metadata"))
    if not rawequal(metadata, value.metadata) then out = json.with(out, "metadata", metadata) end
  elseif value.metadata == json.null then
    out = json.with(out, "metadata", json.object {})
  end
  return out
end

local function walk(state, node, value, path, root)
  if type(value) ~= "table" or not node and not root then return value end
  node = node or {}
  local out = value
  if json.is_array(value) then
    for i, item in ipairs(value) do
      local new = walk(state, node.items, item, ("%s[%d]"):format(path, i - 1))
      if not rawequal(new, item) then
        if out == value then out = json.shallow(value) end
        out[i] = new
      end
    end
    return out
  end
  if root or node["x-kubernetes-embedded-resource"] then out = read_resource(state, value, path) end
  local additional = type(node.additionalProperties) == "table" and node.additionalProperties or nil
  for _, key in ipairs(values.sorted_keys(value)) do
    local property = node.properties and node.properties[key] or additional
    if property and not (root and key == "metadata") then
      local new = walk(state, property, value[key], child(path, key))
      if not rawequal(new, value[key]) then
        if out == value then out = json.shallow(value) end
        out[key] = new
      end
    end
  end
  return out
end

--- The document with every metadata in it as ObjectMeta keeps it. `state` is told of unknown fields
--- and refusals, as by kube.sandbox.validate.typed.
function coerce.metadata(state, node, document) return walk(state, node, document, "", true) end

return coerce
