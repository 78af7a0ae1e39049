-- Field errors: one cause of an Invalid status each, worded as kube-apiserver words them.
-- Paths are texts: spec.containers[0].name, metadata.labels[app].
local json = require "kube.sandbox.json"
local values = require "kube.sandbox.validate.value"

local field = {}

local ESCAPES = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }

-- A value as Go prints it inside such a message: strings as %q does, doubles as %v, the rest as JSON.
local function show(value)
  if value == nil or value == json.null then return "null" end
  if values.kind(value) == "number" then return values.float_text(values.double(value)) end
  if type(value) ~= "string" then return json.encode(value) end
  return '"' .. value:gsub('[%c"\\]', function(c) return ESCAPES[c] or ("\\x%02x"):format(c:byte()) end) .. '"'
end
field.show = show

local function new(kind, path, message) return { type = kind, field = path, message = message } end

local function with_detail(head, detail) return detail and detail ~= "" and head .. ": " .. detail or head end

function field.required(path, detail) return new("FieldValueRequired", path, with_detail("Required value", detail)) end

function field.invalid(path, value, detail)
  return new("FieldValueInvalid", path, with_detail("Invalid value: " .. show(value), detail))
end

--- The same for a value that is shown as `text`.
function field.shown(path, text, detail)
  return new("FieldValueInvalid", path, with_detail("Invalid value: " .. text, detail))
end

function field.type_invalid(path, value, detail)
  return new("FieldValueTypeInvalid", path, with_detail("Invalid value: " .. show(value), detail))
end

function field.not_supported(path, value, supported)
  local texts = {}
  for i, v in ipairs(supported) do texts[i] = show(v) end
  return new("FieldValueNotSupported", path,
    ("Unsupported value: %s: supported values: %s"):format(show(value), table.concat(texts, ", ")))
end

--- Whether a value is in a list of those that there are.
function field.is_one_of(value, known)
  for _, name in ipairs(known) do
    if value == name then return true end
  end
  return false
end

function field.duplicate(path, value) return new("FieldValueDuplicate", path, "Duplicate value: " .. show(value)) end

function field.forbidden(path, detail) return new("FieldValueForbidden", path, with_detail("Forbidden", detail)) end

--- `max` in bytes; the value itself is not shown.
function field.too_long(path, max)
  local unit = max == 1 and "byte" or "bytes"
  return new("FieldValueTooLong", path, ("Too long: may not be more than %d %s"):format(max, unit))
end

function field.too_many(path, count, max)
  return new("FieldValueTooMany", path,
    ("Too many: %d: must have at most %d item%s"):format(count, max, max == 1 and "" or "s"))
end

function field.not_found(path, value) return new("FieldValueNotFound", path, "Not found: " .. show(value)) end

function field.immutable(path, value) return field.invalid(path, value, "field is immutable") end

return field
