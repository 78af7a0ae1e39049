-- The old value that belongs to a part of a new one, for ratcheting: what was invalid before and did
-- not change may stay. Fields belong together by name, items only in lists of type map, by their keys.
local json = require "kube.sandbox.json"

local correlate = {}
correlate.__index = correlate

--- A pair of values with the schema that both have.
function correlate.new(node, value, old)
  return setmetatable({ node = node, value = value, old = old, children = {} }, correlate)
end

local function schema_of_field(node, name)
  local property = node.properties and node.properties[name]
  if property then return property end
  return type(node.additionalProperties) == "table" and node.additionalProperties or nil
end

--- The pair of a field, nil when one side lacks it.
function correlate:key(name)
  if self.children[name] then return self.children[name] end
  if not json.is_object(self.value) or not json.is_object(self.old) then return nil end
  local value, old = self.value[name], self.old[name]
  local node = schema_of_field(self.node, name)
  if value == nil or old == nil or not node then return nil end
  local child = correlate.new(node, value, old)
  self.children[name] = child
  return child
end

-- What identifies an item of a list of type map; defaults stand in for keys that are not there. nil
-- when one is missing for good, or no scalar.
local function identity(node, item)
  if not json.is_object(item) then return nil end
  local parts = {}
  for i, key in ipairs(node["x-kubernetes-list-map-keys"] or {}) do
    local part = item[key]
    if part == nil then part = json.get(node.items, "properties", key, "default") end
    if part == nil or type(part) == "table" then return nil end
    parts[i] = json.encode(part)
  end
  return table.concat(parts, "\0")
end

local function index_of(self)
  if self.by_identity then return self.by_identity end
  self.by_identity = {}
  for _, item in ipairs(self.old) do
    local id = identity(self.node, item)
    if id then self.by_identity[id] = self.by_identity[id] or item end
  end
  return self.by_identity
end

--- The pair of an item (counted from 1), nil when the list cannot be matched or the item is new.
function correlate:index(i)
  if self.children[i] then return self.children[i] end
  if not json.is_array(self.value) or not json.is_array(self.old) then return nil end
  if self.node["x-kubernetes-list-type"] ~= "map" or not self.node.items then return nil end
  local item = self.value[i]
  local old = index_of(self)[identity(self.node, item) or false]
  if not old then return nil end
  local child = correlate.new(self.node.items, item, old)
  self.children[i] = child
  return child
end

local function size(object)
  local n = 0
  for _ in pairs(object) do n = n + 1 end
  return n
end

local function equal_objects(self)
  if size(self.value) ~= size(self.old) then return false end
  for name in pairs(self.value) do
    local child = self:key(name)
    if not child or not child:equal() then return false end
  end
  return true
end

local function equal_lists(self)
  if #self.value ~= #self.old then return false end
  for i in ipairs(self.value) do
    local child = self:index(i)
    if not child then return not self.by_identity and json.equal(self.value, self.old) end
    if not child:equal() then return false end
  end
  return true
end

--- True when the value is what it was. The items of a list of type map may have moved.
function correlate:equal()
  if self.same == nil then
    if json.is_object(self.value) and json.is_object(self.old) then
      self.same = equal_objects(self)
    elseif json.is_array(self.value) and json.is_array(self.old) then
      self.same = equal_lists(self)
    else
      self.same = json.equal(self.value, self.old)
    end
  end
  return self.same
end

return correlate
