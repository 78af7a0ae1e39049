-- Objects inside custom resources (x-kubernetes-embedded-resource): each is one of its own, with
-- apiVersion, kind and valid metadata.
local json = require "kube.sandbox.json"
local field = require "kube.sandbox.field"
local meta = require "kube.sandbox.meta"
local names = require "kube.sandbox.names"
local values = require "kube.sandbox.validate.value"

local embedded = {}

local function add(errors, e) errors[#errors + 1] = e end

local function child(path, key) return path == "" and key or path .. "." .. key end

local function check_version(errors, value, path)
  if type(value) ~= "string" then
    add(errors, field.invalid(path, value, "must be a string"))
  elseif value == "" then
    add(errors, field.invalid(path, value, "must not be empty"))
  elseif select(2, value:gsub("/", "")) > 1 then
    add(errors, field.invalid(path, value, "unexpected GroupVersion string: " .. value))
  end
end

local function check_kind(errors, value, path)
  if type(value) ~= "string" then
    add(errors, field.invalid(path, value, "must be a string"))
  elseif value == "" then
    add(errors, field.invalid(path, value, "must not be empty"))
  else
    local problem = names.dns1035(value:lower())
    if problem then
      add(errors, field.invalid(path, value, "may have mixed case, but should otherwise match: " .. problem))
    end
  end
end

local PATH_NAMES = { rules = { name = "path" }, builtin = true }

local function check_metadata(errors, value, path)
  if not json.is_object(value) then return end
  local m = meta.normalize(value)
  m.name = m.name or "fakename"
  for _, e in ipairs(meta.validate(PATH_NAMES, json.object { metadata = m })) do
    add(errors, { type = e.type, message = e.message, field = path .. e.field:sub(#"metadata" + 1) })
  end
end

local function check_resource(errors, value, path)
  for _, key in ipairs { "apiVersion", "kind" } do
    if value[key] == nil then add(errors, field.required(child(path, key))) end
  end
  if value.apiVersion ~= nil then check_version(errors, value.apiVersion, child(path, "apiVersion")) end
  if value.kind ~= nil then check_kind(errors, value.kind, child(path, "kind")) end
  if value.metadata ~= nil then check_metadata(errors, value.metadata, child(path, "metadata")) end
end

local function check(errors, node, value, path)
  if type(value) ~= "table" or not node then return end
  if json.is_array(value) then
    for i, item in ipairs(value) do check(errors, node.items, item, ("%s[%d]"):format(path, i - 1)) end
    return
  end
  if node["x-kubernetes-embedded-resource"] then check_resource(errors, value, path) end
  local additional = type(node.additionalProperties) == "table" and node.additionalProperties
  for _, key in ipairs(values.sorted_keys(value)) do
    local property = node.properties and node.properties[key]
    if property then
      check(errors, property, value[key], child(path, key))
    elseif additional then
      check(errors, additional, value[key], path .. "[" .. key .. "]")
    end
  end
end

--- The field errors of the objects inside a document.
function embedded.validate(node, value)
  local errors = {}
  check(errors, node, value, "")
  return errors
end

return embedded
