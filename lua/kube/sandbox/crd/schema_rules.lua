-- What else a schema of a custom resource may not say: keywords that are not supported, lists and maps
-- whose types contradict each other, defaults where none can be, rules without text.
local json = require "kube.sandbox.json"
local field = require "kube.sandbox.field"
local structural = require "kube.sandbox.crd.structural"
local values = require "kube.sandbox.validate.value"

local schema_rules = {}

local is_set = structural.is_set

local function add(errors, e) errors[#errors + 1] = e end

local function text(value) return type(value) == "string" and value or "" end

local TYPES = { array = true, boolean = true, integer = true, number = true, object = true, string = true }
local TYPE_LIST = { "array", "boolean", "integer", "number", "object", "string" }

-- Keywords of JSON Schema that the server does not take, and whether an empty one counts.
local UNSUPPORTED = {
  { "id" }, { "additionalItems", true }, { "patternProperties" }, { "definitions" }, { "dependencies", true },
  { "$ref", true },
}

-- `place` says where the schema is: forbid_defaults (why), in_meta.
local function check_keywords(errors, node, path, place)
  if is_set(node.type) and not TYPES[node.type] then
    add(errors, field.not_supported(path .. ".type", node.type, TYPE_LIST))
  end
  if node.default ~= nil and node.default ~= json.null and place.forbid_defaults then
    add(errors, field.forbidden(path .. ".default", "must not be set " .. place.forbid_defaults))
  end
  for _, keyword in ipairs(UNSUPPORTED) do
    local name = keyword[1]
    if is_set(node[name]) or keyword[2] and node[name] ~= nil and node[name] ~= json.null then
      add(errors, field.forbidden(path .. "." .. name, name .. " is not supported"))
    end
  end
  if node.type == "null" then
    add(errors, field.forbidden(path .. ".type", "type cannot be set to null, use nullable as an alternative"))
  end
  if json.is_array(node.items) then
    add(errors, field.forbidden(path .. ".items", "items must be a schema object and not an array"))
  end
  if place.in_meta and is_set(node["x-kubernetes-embedded-resource"]) then
    add(errors, field.forbidden(path .. ".x-kubernetes-embedded-resource", "must not be used inside of resource meta"))
  end
  if is_set(node.uniqueItems) then
    add(errors, field.forbidden(path .. ".uniqueItems",
      "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"))
  end
end

-- ---- lists and maps ----

local function wrong_type(errors, node, path, wanted, keyword)
  local detail = ("must be %s if %s is specified"):format(wanted, keyword)
  add(errors, is_set(node.type) and field.invalid(path .. ".type", node.type, detail)
    or field.required(path .. ".type", detail))
end

local function check_map_type(errors, node, path)
  local map_type = node["x-kubernetes-map-type"]
  if map_type == nil then return end
  if node.type ~= "object" then wrong_type(errors, node, path, "object", "x-kubernetes-map-type") end
  if map_type ~= "atomic" and map_type ~= "granular" then
    add(errors, field.not_supported(path .. ".x-kubernetes-map-type", map_type, { "atomic", "granular" }))
  end
end

local function check_set(errors, node, path)
  local items = node.items
  if not json.is_object(items) then return end
  local detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
  local list_type, map_type = items["x-kubernetes-list-type"], items["x-kubernetes-map-type"]
  if items.type == "array" and list_type ~= nil and list_type ~= "atomic" then
    add(errors, field.invalid(path .. ".items.x-kubernetes-list-type", list_type, detail))
  elseif items.type == "object" and map_type ~= "atomic" then
    add(errors, field.invalid(path .. ".items.x-kubernetes-map-type", list_type, detail))
  end
end

local function check_keys(errors, node, path)
  local items, keys, seen = node.items, node["x-kubernetes-list-map-keys"] or {}, {}
  for _, key in ipairs(keys) do
    local property = items.properties and items.properties[key]
    local at = path .. ".x-kubernetes-list-map-keys"
    if not property then
      add(errors, field.invalid(at, keys, "entries must all be names of item properties"))
    elseif property.type == "array" or property.type == "object" then
      add(errors, field.invalid(("%s.items.properties[%s].type"):format(path, key), items.type,
        "must be a scalar type if parent array's x-kubernetes-list-type is map"))
    end
    if seen[key] then add(errors, field.invalid(at, keys, "must not contain duplicate entries")) end
    seen[key] = true
  end
end

local function check_list_map(errors, node, path)
  if not is_set(node["x-kubernetes-list-map-keys"]) then
    add(errors, field.required(path .. ".x-kubernetes-list-map-keys",
      "must not be empty if x-kubernetes-list-type is map"))
  end
  local items = node.items
  if items == nil then
    add(errors, field.required(path .. ".items", "must have a schema if x-kubernetes-list-type is map"))
  elseif json.is_object(items) then
    if items.type ~= "object" then
      add(errors, field.invalid(path .. ".items.type", text(items.type),
        "must be object if parent array's x-kubernetes-list-type is map"))
    else
      check_keys(errors, node, path)
    end
  end
end

-- Keys have to be there, and so have items.
local function check_identity(errors, node, path)
  local list_type, items = node["x-kubernetes-list-type"], node.items
  if not json.is_object(items) or list_type ~= "set" and list_type ~= "map" then return end
  if is_set(items.nullable) then
    add(errors, field.forbidden(path .. ".items.nullable",
      "cannot be nullable when x-kubernetes-list-type is " .. list_type))
  end
  if list_type == "set" then return end
  local required = {}
  for _, name in ipairs(items.required or {}) do required[name] = true end
  for _, key in ipairs(node["x-kubernetes-list-map-keys"] or {}) do
    local property = items.properties and items.properties[key]
    local at = ("%s.items.properties[%s]"):format(path, key)
    if property and not required[key] and property.default == nil then
      add(errors, field.required(at .. ".default", "this property is in x-kubernetes-list-map-keys, so it must have a "
        .. "default or be a required property"))
    end
    if property and is_set(property.nullable) then
      add(errors, field.forbidden(at .. ".nullable",
        "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"))
    end
  end
end

local LIST_TYPES = { atomic = true, set = true, map = true }

local function check_list_type(errors, node, path)
  local list_type = node["x-kubernetes-list-type"]
  if list_type ~= nil and node.type ~= "array" then
    wrong_type(errors, node, path, "array", "x-kubernetes-list-type")
  elseif list_type == "set" then
    check_set(errors, node, path)
  end
  if list_type ~= nil and not LIST_TYPES[list_type] then
    add(errors, field.not_supported(path .. ".x-kubernetes-list-type", list_type, { "atomic", "set", "map" }))
  end
  if is_set(node["x-kubernetes-list-map-keys"]) and list_type ~= "map" then
    local at, detail = path .. ".x-kubernetes-list-type", "must be map if x-kubernetes-list-map-keys is non-empty"
    add(errors, list_type == nil and field.required(at, detail) or field.invalid(at, list_type, detail))
  end
  if list_type == "map" then check_list_map(errors, node, path) end
  check_identity(errors, node, path)
end

-- ---- rules in CEL: what can be said about them without reading them ----

local REASONS = { "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired" }
local IS_REASON = {}
for _, reason in ipairs(REASONS) do IS_REASON[reason] = true end

local function trimmed(value) return (text(value):gsub("^%s+", ""):gsub("%s+$", "")) end

local function check_rule(errors, rule, path)
  local source, message = trimmed(rule.rule), trimmed(rule.message)
  if source == "" then
    add(errors, field.required(path .. ".rule", "rule is not specified"))
  elseif is_set(rule.message) and message == "" then
    add(errors, field.invalid(path .. ".message", rule.message, "must be non-empty if specified"))
  elseif message:find("[\r\n]") then
    add(errors, field.invalid(path .. ".message", rule.message, "must not contain line breaks"))
  elseif source:find("[\r\n]") and message == "" then
    add(errors, field.required(path .. ".message", "message must be specified if rule contains line breaks"))
  end
  if is_set(rule.messageExpression) and trimmed(rule.messageExpression) == "" then
    add(errors, field.required(path .. ".messageExpression", "messageExpression must be non-empty if specified"))
  end
  if is_set(rule.reason) and not IS_REASON[rule.reason] then
    add(errors, field.not_supported(path .. ".reason", rule.reason, REASONS))
  end
  if is_set(rule.fieldPath) and trimmed(rule.fieldPath) == "" then
    add(errors, field.invalid(path .. ".fieldPath", rule.fieldPath, "must be non-empty if specified"))
  end
end

-- ---- the walk ----

local META = { metadata = true, kind = true, apiVersion = true }

local check

local function with(place, changes)
  return { forbid_defaults = changes.forbid_defaults or place.forbid_defaults,
    in_meta = changes.in_meta or place.in_meta }
end

local function check_properties(errors, node, path, place, root)
  local additional = node.additionalProperties
  if additional ~= nil and is_set(node.properties) and additional ~= true then
    add(errors, field.forbidden(path .. ".additionalProperties",
      "additionalProperties and properties are mutual exclusive"))
  end
  if type(additional) == "table" then
    local why = place.in_meta and "inside additionalProperties applying to object metadata" or nil
    check(errors, additional, path .. ".additionalProperties", with(place, { forbid_defaults = why }))
  end
  for _, key in ipairs(values.sorted_keys(node.properties or {})) do
    local inner = place
    if (root or is_set(node["x-kubernetes-embedded-resource"])) and META[key] then
      inner = with(place, { in_meta = true, forbid_defaults = root and "in top-level " .. key or nil })
    end
    check(errors, node.properties[key], ("%s.properties[%s]"):format(path, key), inner)
  end
end

function check(errors, node, path, place, root)
  check_keywords(errors, node, path, place)
  check_properties(errors, node, path, place, root)
  if node["not"] then check(errors, node["not"], path .. ".not", place) end
  for _, name in ipairs { "allOf", "oneOf", "anyOf" } do
    for i, branch in ipairs(node[name] or {}) do
      check(errors, branch, ("%s.%s[%d]"):format(path, name, i - 1), place)
    end
  end
  if json.is_object(node.items) then check(errors, node.items, path .. ".items", place) end
  if node["x-kubernetes-preserve-unknown-fields"] == false then
    add(errors, field.invalid(path .. ".x-kubernetes-preserve-unknown-fields", false, "must be true or undefined"))
  end
  check_map_type(errors, node, path)
  check_list_type(errors, node, path)
  for i, rule in ipairs(node["x-kubernetes-validations"] or {}) do
    check_rule(errors, rule, ("%s.x-kubernetes-validations[%d]"):format(path, i - 1))
  end
end

--- The field errors of a version's schema.
function schema_rules.validate(node, path)
  local errors = {}
  check(errors, node, path, {}, true)
  return errors
end

return schema_rules
