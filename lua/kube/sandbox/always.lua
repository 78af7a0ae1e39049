-- What Go writes though nobody set it, and leaves out though somebody did. A struct that is not a
-- pointer is always there ("resources":{}, "status":{}), and so is a field without omitempty, as null
-- or zero; a zero with omitempty never is. Objects of built-in kinds are like this in every answer of
-- the server, whatever their client sent.
local go_time = require "kube.sandbox.go_time"
local json = require "kube.sandbox.json"
local messages = require "kube.sandbox.messages"
local quantity = require "kube.sandbox.quantity"

local always = {}

local META = "io.k8s.apimachinery.pkg.apis.meta.v1."
local CRD = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."

-- What the zero value of a struct with a JSON form of its own is. These have no fields to look into.
local ZEROS = {
  [META .. "Time"] = json.null,
  [META .. "MicroTime"] = json.null,
  [META .. "FieldsV1"] = json.null,
  ["io.k8s.apimachinery.pkg.runtime.RawExtension"] = json.null,
  ["io.k8s.apimachinery.pkg.api.resource.Quantity"] = "0",
  ["io.k8s.apimachinery.pkg.util.intstr.IntOrString"] = 0,
  [CRD .. "JSON"] = json.null,
  [CRD .. "JSONSchemaProps"] = json.null,
}

-- How values with a JSON form of their own are written back.
local WRITERS = {
  [META .. "Time"] = function(value) return type(value) == "string" and go_time.utc(value, 0) or value end,
  [META .. "MicroTime"] = function(value) return type(value) == "string" and go_time.utc(value, 6) or value end,
  ["io.k8s.apimachinery.pkg.api.resource.Quantity"] = quantity.canonical,
}

local SCALAR_ZEROS = { string = "", bytes = json.null, bool = false, int32 = 0, int64 = 0, double = 0 }

local fill

-- The value of a field that is absent, nil when Go leaves it out.
local function absent(field)
  if field.pointer or field.repeated or field.map then return field.kept and json.null or nil end
  if field.scalar then
    if field.kept then return SCALAR_ZEROS[field.scalar] end
    return nil
  end
  if field.omitted then return nil end
  local zero = ZEROS[field.message]
  if zero ~= nil then return zero end
  return fill(field.message, json.object {})
end

-- Whether a value that is there is left out.
local function is_omitted(field, value)
  if not field.scalar or field.pointer or field.repeated or field.map or field.kept then return false end
  return value == SCALAR_ZEROS[field.scalar] or field.scalar == "bytes" and value == ""
end

local function fill_all(name, list)
  local out
  for key, item in pairs(list) do
    local new = fill(name, item)
    if new ~= item then
      out = out or json.shallow(list)
      out[key] = new
    end
  end
  return out or list
end

local function write_all(write, list)
  local out
  for key, item in pairs(type(list) == "table" and list or {}) do
    local new = write(item)
    if new ~= item then
      out = out or json.shallow(list)
      out[key] = new
    end
  end
  return out or list
end

-- Changes `out`, a copy of `object` that is made for the first change.
local function fill_fields(name, object, out)
  for _, field in pairs(messages.of(name) or {}) do
    if field.name == "" then
      out = fill_fields(field.message, object, out)
    else
      local value = object[field.name]
      local new = value
      if value == nil then
        new = absent(field)
      elseif is_omitted(field, value) then
        new = nil
      elseif WRITERS[field.message] then
        new = (field.repeated or field.map) and write_all(WRITERS[field.message], value)
          or WRITERS[field.message](value)
      elseif field.message and ZEROS[field.message] == nil then
        new = (field.repeated or field.map) and type(value) == "table" and fill_all(field.message, value)
          or fill(field.message, value)
      end
      if new ~= value then
        out = out or json.shallow(object)
        out[field.name] = new
      end
    end
  end
  return out
end

-- Anything else in the place of a struct is left to those who validate.
function fill(name, object)
  if not json.is_object(object) then return object end
  return fill_fields(name, object) or object
end

--- The document of a built-in kind with what Go always writes and without what it never does; shares
--- what is complete.
function always.fill(R, document)
  if not R.definition then return document end
  return fill(R.definition, document)
end

local empties = {}

--- The object of a built-in kind (by the name of its definition) that nobody has written to.
function always.empty(definition)
  empties[definition] = empties[definition] or fill(definition, json.object {})
  return empties[definition]
end

return always
