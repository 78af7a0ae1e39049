-- Parts of one version of a definition: its deprecation, subresources, columns and selectable fields.
local json = require "kube.sandbox.json"
local field = require "kube.sandbox.field"
local structural = require "kube.sandbox.crd.structural"

local version_rules = {}

local is_set = structural.is_set

local function add(errors, e) errors[#errors + 1] = e end

function version_rules.deprecation(errors, version, path)
  local warning = version.deprecationWarning
  if warning == nil or warning == json.null then return end
  local function refuse(detail) add(errors, field.invalid(path .. ".deprecationWarning", warning, detail)) end
  if not version.deprecated then
    refuse("can only be set for deprecated versions")
    return
  end
  if #warning > 256 then refuse("must be <= 256 characters long") end
  if #warning == 0 then refuse("must not be an empty string") end
  local at = warning:find("[%c]")
  if at then
    refuse(("must only contain printable UTF-8 characters; non-printable character found at index %d"):format(at - 1))
  end
end

-- A path in the dot notation; true when it is one.
local function check_path(errors, value, path)
  if value:sub(1, 1) ~= "." then
    add(errors, field.invalid(path, value, "must be a simple json path starting with ."))
    return false
  end
  return true
end

local function check_scale_path(errors, value, path, roots, detail)
  if not check_path(errors, value, path) then return end
  for _, root in ipairs(roots) do
    if value:sub(1, #root) == root then return end
  end
  add(errors, field.invalid(path, value, detail))
end

function version_rules.subresources(errors, version, path)
  local scale = json.get(version, "subresources", "scale")
  if not scale then return end
  path = path .. ".subresources.scale"
  for _, part in ipairs { "spec", "status" } do
    local at, value = ("%s.%sReplicasPath"):format(path, part), scale[part .. "ReplicasPath"]
    if not is_set(value) then
      add(errors, field.required(at))
    else
      check_scale_path(errors, value, at, { "." .. part .. "." }, "should be a json path under ." .. part)
    end
  end
  if is_set(scale.labelSelectorPath) then
    check_scale_path(errors, scale.labelSelectorPath, path .. ".labelSelectorPath", { ".spec.", ".status." },
      "should be a json path under either .spec or .status")
  end
end

local COLUMN_TYPES = { boolean = true, date = true, integer = true, number = true, string = true }
local ONE_OF_TYPES = "must be one of boolean,date,integer,number,string"
local FORMATS = "byte,date,date-time,double,float,int32,int64,password"

function version_rules.columns(errors, version, path)
  for i, column in ipairs(version.additionalPrinterColumns or {}) do
    local at = ("%s.additionalPrinterColumns[%d]"):format(path, i - 1)
    if not is_set(column.name) then add(errors, field.required(at .. ".name")) end
    if not is_set(column.type) then
      add(errors, field.required(at .. ".type", ONE_OF_TYPES))
    elseif not COLUMN_TYPES[column.type] then
      add(errors, field.invalid(at .. ".type", column.type, ONE_OF_TYPES))
    end
    if is_set(column.format) and not ("," .. FORMATS .. ","):find("," .. column.format .. ",", 1, true) then
      add(errors, field.invalid(at .. ".format", column.format, "must be one of " .. FORMATS))
    end
    if not is_set(column.jsonPath) then
      add(errors, field.required(at .. ".JSONPath"))
    else
      check_path(errors, column.jsonPath, at .. ".JSONPath")
    end
  end
end

-- Follows .a.b through the schema: the node there, or nil and what is wrong with the path.
local function follow(node, path)
  local i = 1
  while i <= #path do
    local c = path:sub(i, i)
    if c == "[" then return nil, "array notation is not allowed" end
    local name = path:match("^[^.%[%]]*", i)
    if c ~= "." then return nil, "expected [ or . but got: " .. (name ~= "" and name or c) end
    name = path:match("^[^.%[%]]+", i + 1)
    if not name then return nil, i == #path and "unexpected end of JSON path" or "does not refer to a valid field" end
    local additional = node.additionalProperties
    if is_set(node.properties) then
      node = node.properties[name]
    elseif additional ~= nil then
      node = type(additional) == "table" and additional or {}
    else
      node = nil
    end
    if not node then return nil, "does not refer to a valid field" end
    i = i + 1 + #name
  end
  return node
end

local SELECTABLE = { string = true, boolean = true, integer = true }
local MAX_SELECTABLE = 8

--- `missing` is what is said when there is no schema to look into.
function version_rules.selectable(errors, version, path, node, missing)
  if not is_set(version.selectableFields) then return end
  if not node then
    add(errors, field.invalid(path .. ".selectableFields", "", missing))
    return
  end
  local seen, count = {}, 0
  for i, selectable in ipairs(version.selectableFields) do
    local at, value = ("%s.selectableFields[%d].jsonPath"):format(path, i - 1), selectable.jsonPath
    if not is_set(value) then
      add(errors, field.required(at))
    else
      local found, problem = follow(node, value)
      if not found then
        add(errors, field.invalid(at, value, "is an invalid path: " .. problem))
      else
        if value:find("^%.metadata") then
          add(errors, field.invalid(at, value, "must not point to fields in metadata"))
        end
        if not SELECTABLE[found.type] then
          add(errors, field.invalid(at, value, "must point to a field of type string, boolean or integer. Enum string "
            .. "fields and strings with formats are allowed."))
        end
        if seen[value] then add(errors, field.duplicate(at, value)) else count = count + 1 end
        seen[value] = true
      end
    end
  end
  if count > MAX_SELECTABLE then add(errors, field.too_many(path .. ".selectableFields", count, MAX_SELECTABLE)) end
end

return version_rules
