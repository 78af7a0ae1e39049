-- What a schema node says about ownership. An atom holds up to one of each:
--   scalar  numeric, string, boolean or untyped
--   list    { atomic =, keys = sorted names or nil for a set, defaults =, names = in schema order }
--   map     { atomic =, properties = name -> node }
-- A node without a type allows all three; which one counts is the value's business (atom.kind).
-- Atoms are made on first use and kept as long as their node lives.
local json = require "kube.sandbox.json"
local schema = require "kube.sandbox.schema"

local atom = {}

local RAW_EXTENSION = "io.k8s.apimachinery.pkg.runtime.RawExtension"

-- Values nobody declared: maps are walked, lists are one thing.
local UNTYPED, DEDUCED = { scalar = "untyped" }, { scalar = "untyped" }
UNTYPED.list = { atomic = true, element = UNTYPED }
UNTYPED.map = { atomic = true, properties = {}, element = UNTYPED, children = {} }
DEDUCED.list = { atomic = true, element = UNTYPED }
DEDUCED.map = { properties = {}, element = DEDUCED, children = {} }

local ARRAY, OBJECT, NULL = getmetatable(json.array {}), getmetatable(json.object {}), json.null

local function is_array(value)
  local mark = getmetatable(value)
  return mark == ARRAY or mark ~= OBJECT and json.is_array(value)
end

--- The value as an array, or nil.
function atom.array(value) return type(value) == "table" and is_array(value) and value or nil end

--- The value as an object, or nil.
function atom.object(value) return type(value) == "table" and not is_array(value) and value or nil end

--- Which part of the atom applies to the value: "map", "list" or "scalar".
function atom.kind(self, value)
  if type(value) == "table" then
    if is_array(value) then
      if self.list then return "list" end
    elseif self.map then
      return "map"
    end
  elseif value ~= nil and value ~= NULL and self.scalar then
    return "scalar"
  end
  return self.map and "map" or self.scalar and "scalar" or "list"
end

local SCALARS = { integer = "numeric", number = "numeric", boolean = "boolean" }

local function scalar_of(node)
  if node.type == "string" then
    local format = node.format
    return (format == nil or format == "" or format == "byte") and "string" or "untyped"
  end
  return SCALARS[node.type]
end

local function list_keys(list, node)
  local names
  if node["x-kubernetes-list-type"] == "map" then
    names = node["x-kubernetes-list-map-keys"]
  elseif node["x-kubernetes-patch-merge-key"] and not node["x-kubernetes-list-type"] then
    names = { node["x-kubernetes-patch-merge-key"] }
  end
  if not names then return end
  list.names, list.keys, list.defaults = names, {}, {}
  local properties = schema.resolve(node.items).properties or {}
  for i, name in ipairs(names) do
    list.keys[i] = name
    list.defaults[name] = properties[name] and properties[name].default
  end
  table.sort(list.keys)
end

local MERGED = { merge = true, ["merge,retainKeys"] = true }

local function list_of(node, preserve)
  local kind = node["x-kubernetes-list-type"]
  local merged = kind == "map" or kind == "set" or kind == nil and MERGED[node["x-kubernetes-patch-strategy"]]
  local list = { atomic = not merged, items = node.items, preserve = preserve }
  if not node.items then list.element = UNTYPED end
  if merged then list_keys(list, node) end
  return list
end

local STRING = json.object { type = "string" }
local METADATA = json.object { ["$ref"] = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta" }

-- An object inside another has what every object has.
local function embedded(properties)
  local out = { apiVersion = STRING, kind = STRING }
  for name, node in pairs(properties) do out[name] = node end
  out.metadata = METADATA
  return out
end

local function map_of(node, preserve)
  local properties, values = node.properties or {}, node.additionalProperties
  if node["x-kubernetes-embedded-resource"] then properties = embedded(properties) end
  local map = {
    atomic = node["x-kubernetes-map-type"] == "atomic",
    properties = properties,
    children = {},
    preserve = preserve,
  }
  if type(values) == "table" then
    map.values = values
  elseif values == true or values == nil and (preserve or next(properties) == nil) then
    map.element = DEDUCED
  end
  return map
end

local made = { [true] = setmetatable({}, { __mode = "k" }), [false] = setmetatable({}, { __mode = "k" }) }

--- The atom of a schema node; `preserve` says that a node above keeps unknown fields.
function atom.of(node, preserve)
  preserve = preserve or false
  local self = made[preserve][node]
  if self then return self end
  local inherited = preserve
  if node["$ref"] == RAW_EXTENSION then
    self = UNTYPED
  else
    if node["$ref"] then inherited = false end
    local resolved = schema.resolve(node)
    inherited = inherited or resolved["x-kubernetes-preserve-unknown-fields"] == true
    self = { scalar = scalar_of(resolved) }
    local kind = resolved.type
    if kind == nil then self.scalar = "untyped" end
    if kind == nil or kind == "array" then self.list = list_of(resolved, inherited) end
    if kind == nil or kind == "object" then self.map = map_of(resolved, inherited) end
  end
  made[preserve][node] = self
  return self
end

--- The atom of a map's member, nil when the schema does not have it; second, whether it is declared
--- by name.
function atom.member(map, name)
  local found = map.children[name]
  if found then return found, true end
  local property = map.properties[name]
  if property then
    found = atom.of(property, map.preserve)
    map.children[name] = found
    return found, true
  end
  if map.values and not map.element then map.element = atom.of(map.values, map.preserve) end
  return map.element, false
end

--- The atom of a list's elements.
function atom.element(list)
  local found = list.element
  if not found then
    found = atom.of(list.items, list.preserve)
    list.element = found
  end
  return found
end

return atom
