-- The rules of structural schemas: types everywhere, and nothing but value checks inside allOf, anyOf,
-- oneOf and not. Schemas are tables of JSON; what is empty there counts as absent.
local json = require "kube.sandbox.json"
local field = require "kube.sandbox.field"
local regex = require "kube.sandbox.validate.regex"
local values = require "kube.sandbox.validate.value"

local structural = {}

--- True for what Go would not call the zero value of a field.
function structural.is_set(value)
  if value == nil or value == json.null or value == "" or value == false then return false end
  return not (type(value) == "table" and next(value) == nil)
end

local is_set = structural.is_set

local function add(errors, e) errors[#errors + 1] = e end

local function text(value) return type(value) == "string" and value or "" end

-- ---- inside allOf, anyOf, oneOf, not ----

local FORBIDDEN = {
  { "type", "must be empty to be structural" },
  { "additionalProperties", "must be undefined to be structural" },
  { "default", "must be undefined to be structural" },
  { "title", "must be empty to be structural" },
  { "description", "must be empty to be structural" },
  { "nullable", "must be false to be structural" },
  { "x-kubernetes-preserve-unknown-fields", "must be false to be structural" },
  { "x-kubernetes-embedded-resource", "must be false to be structural" },
  { "x-kubernetes-int-or-string", "must be false to be structural" },
  { "x-kubernetes-list-map-keys", "must be empty to be structural" },
  { "x-kubernetes-list-type", "must be undefined to be structural" },
  { "x-kubernetes-map-type", "must be undefined to be structural" },
  { "x-kubernetes-validations", "must be empty to be structural" },
}

local ALWAYS_COUNTS = { default = true, ["x-kubernetes-list-type"] = true, ["x-kubernetes-map-type"] = true }

local check_values

local function check_nested(errors, node, skip_any, path)
  if not node then return end
  check_values(errors, node, skip_any, false, path)
  check_nested(errors, node.items, false, path .. ".items")
  for _, key in ipairs(values.sorted_keys(node.properties or {})) do
    check_nested(errors, node.properties[key], false, ("%s.properties[%s]"):format(path, key))
  end
  for _, rule in ipairs(FORBIDDEN) do
    local value = node[rule[1]]
    local counts = is_set(value) or value ~= nil and value ~= json.null and
      (ALWAYS_COUNTS[rule[1]] or type(value) == "table" and rule[1] == "additionalProperties")
    if counts then add(errors, field.forbidden(path .. "." .. rule[1], rule[2])) end
  end
  if node.properties and node.properties.metadata then
    add(errors, field.forbidden(path .. ".properties[metadata]", "must not be specified in a nested context"))
  end
end

-- anyOf: [{type: integer}, {type: string}] belongs to int-or-string and is no violation.
local function is_int_or_string(branches)
  if not branches or #branches ~= 2 then return false end
  local int, str = branches[1], branches[2]
  return json.equal(int, json.object { type = "integer" }) and json.equal(str, json.object { type = "string" })
end

function check_values(errors, node, skip_any, skip_first_any, path)
  if not skip_any then
    for i, branch in ipairs(node.anyOf or {}) do
      check_nested(errors, branch, false, ("%s.anyOf[%d]"):format(path, i - 1))
    end
  end
  for i, branch in ipairs(node.allOf or {}) do
    check_nested(errors, branch, skip_first_any and i == 1, ("%s.allOf[%d]"):format(path, i - 1))
  end
  for i, branch in ipairs(node.oneOf or {}) do
    check_nested(errors, branch, false, ("%s.oneOf[%d]"):format(path, i - 1))
  end
  check_nested(errors, node["not"], false, path .. ".not")
  if is_set(node.pattern) then
    local ok, problem = regex.compile(node.pattern)
    if not ok then
      add(errors, field.invalid(path .. ".pattern", node.pattern,
        "must be a valid regular expression, but isn't: " .. problem))
    end
  end
end

-- ---- the skeleton ----

local EMPTY_TYPE = {
  root = "must not be empty at the root",
  item = "must not be empty for specified array items",
  field = "must not be empty for specified object fields",
}

local function check_type(errors, node, level, path)
  local type_name = text(node.type)
  local embedded = node["x-kubernetes-embedded-resource"] == true
  if embedded and type_name ~= "object" then
    local detail = "must be object if x-kubernetes-embedded-resource is true"
    add(errors, type_name == "" and field.required(path .. ".type", detail)
      or field.invalid(path .. ".type", type_name, detail))
  elseif type_name == "" and not is_set(node["x-kubernetes-int-or-string"])
    and not is_set(node["x-kubernetes-preserve-unknown-fields"]) then
    add(errors, field.required(path .. ".type", EMPTY_TYPE[level]))
  end
  if embedded and node.additionalProperties ~= nil then
    add(errors, field.forbidden(path .. ".additionalProperties",
      "must not be used if x-kubernetes-embedded-resource is set"))
  end
  if level == "root" and type_name ~= "" and type_name ~= "object" then
    add(errors, field.invalid(path .. ".type", type_name, "must be object at the root"))
  end
end

local META_MAY_HAVE = { type = true, default = true, id = true, ["$schema"] = true, ["$ref"] = true }

local function is_plain_metadata(node)
  for key, value in pairs(node) do
    if key == "properties" then
      for name in pairs(value) do
        if name ~= "name" and name ~= "generateName" then return false end
      end
    elseif key == "additionalProperties" or not META_MAY_HAVE[key] and is_set(value) then
      return false
    end
  end
  return true
end

local function check_meta(errors, node, level, path)
  local properties = node.properties or {}
  local is_resource = level == "root" or node["x-kubernetes-embedded-resource"] == true
  for _, key in ipairs { "kind", "apiVersion" } do
    local property = properties[key]
    if property and is_resource and property.type ~= "string" then
      add(errors, field.invalid(("%s.properties[%s].type"):format(path, key), text(property.type), "must be string"))
    end
  end
  local metadata = properties.metadata
  if not metadata then return end
  local at = path .. ".properties[metadata]"
  if is_resource and metadata.type ~= "object" then
    add(errors, field.invalid(at .. ".type", text(metadata.type), "must be object"))
  end
  if level == "root" and not is_plain_metadata(metadata) then
    add(errors, field.forbidden(at,
      "must not specify anything other than name and generateName, but metadata is implicitly specified"))
  end
end

local function check_int_or_string(errors, node, path)
  if not is_set(node["x-kubernetes-int-or-string"]) then return end
  for _, key in ipairs { "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource" } do
    if is_set(node[key]) then
      add(errors, field.invalid(path .. "." .. key, true, "must be false if x-kubernetes-int-or-string is true"))
    end
  end
end

local function check(errors, node, level, path)
  if node.type == "array" and not node.items then add(errors, field.required(path .. ".items", "must be specified")) end
  if node.items then check(errors, node.items, "item", path .. ".items") end
  for _, key in ipairs(values.sorted_keys(node.properties or {})) do
    check(errors, node.properties[key], "field", ("%s.properties[%s]"):format(path, key))
  end
  if node.additionalProperties ~= nil then
    if level == "root" then
      add(errors, field.forbidden(path .. ".additionalProperties", "must not be used at the root"))
    end
    if type(node.additionalProperties) == "table" then
      check(errors, node.additionalProperties, "field", path .. ".additionalProperties")
    end
  end
  check_int_or_string(errors, node, path)
  local first = node.allOf and node.allOf[1]
  check_values(errors, node, is_int_or_string(node.anyOf), first and is_int_or_string(first.anyOf), path)
  check_type(errors, node, level, path)
  check_meta(errors, node, level, path)
  if node["x-kubernetes-embedded-resource"] == true and not is_set(node["x-kubernetes-preserve-unknown-fields"])
    and not is_set(node.properties) then
    add(errors, field.required(path .. ".properties",
      "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"))
  end
end

-- ---- completeness: what a branch looks at has to be specified outside ----

local complete

local function complete_branches(errors, branch, node, path, branch_path)
  if branch["not"] then complete(errors, branch["not"], node, path, branch_path .. ".not") end
  for _, name in ipairs { "allOf", "anyOf", "oneOf" } do
    for i, inner in ipairs(branch[name] or {}) do
      complete(errors, inner, node, path, ("%s.%s[%d]"):format(branch_path, name, i - 1))
    end
  end
end

function complete(errors, branch, node, path, branch_path)
  if not node then
    add(errors, field.required(path, "because it is defined in " .. branch_path))
    return
  end
  complete_branches(errors, branch, node, path, branch_path)
  if branch.items then complete(errors, branch.items, node.items, path .. ".items", branch_path .. ".items") end
  for _, key in ipairs(values.sorted_keys(branch.properties or {})) do
    local at = (".properties[%s]"):format(key)
    complete(errors, branch.properties[key], node.properties and node.properties[key], path .. at, branch_path .. at)
  end
end

-- ---- schemas that are not even looked at ----

local UNSUPPORTED = {
  { "id", "id" }, { "$schema", "schema" }, { "$ref", "$ref" }, { "patternProperties", "patternProperties" },
  { "dependencies", "dependencies" }, { "additionalItems", "additionalItems" }, { "definitions", "definitions" },
}

local function own_problem(node)
  for _, keyword in ipairs(UNSUPPORTED) do
    local value = node[keyword[1]]
    if is_set(value) or keyword[1] == "additionalItems" and value ~= nil then
      return ("OpenAPIV3Schema '%s' is not supported"):format(keyword[2])
    end
  end
  if node["x-kubernetes-preserve-unknown-fields"] == false then
    return "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"
  end
  if json.is_array(node.items) then return "OpenAPIV3Schema 'items' must be a schema, but is an array" end
end

--- Calls visit(child) for every schema in a schema, until it returns something.
function structural.each_child(node, visit)
  local children = { node["not"], json.is_object(node.items) and node.items or nil }
  for _, name in ipairs { "allOf", "anyOf", "oneOf" } do
    for _, branch in ipairs(node[name] or {}) do children[#children + 1] = branch end
  end
  for _, key in ipairs(values.sorted_keys(node.properties or {})) do children[#children + 1] = node.properties[key] end
  if type(node.additionalProperties) == "table" then children[#children + 1] = node.additionalProperties end
  for _, child in pairs(children) do
    local found = visit(child)
    if found then return found end
  end
end

--- Why a schema cannot be structural at all, nil when it could.
function structural.problem(node) return own_problem(node) or structural.each_child(node, structural.problem) end

--- The field errors of a schema that is not structural, in the server's order (by their text).
function structural.validate(node, path)
  local errors = {}
  check(errors, node, "root", path)
  complete_branches(errors, node, node, path, path)
  table.sort(errors, function(a, b) return a.field .. ": " .. a.message < b.field .. ": " .. b.message end)
  return errors
end

return structural
