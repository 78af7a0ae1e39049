-- Everything that a schema demands of a custom resource, in the order in which kube-apiserver tells
-- it: the schema itself, objects inside the object, lists without duplicates, rules in CEL.
local field = require "kube.sandbox.field"
local embedded = require "kube.sandbox.validate.embedded"
local lists = require "kube.sandbox.validate.lists"
local rules = require "kube.sandbox.crd.rules"
local scale_rules = require "kube.sandbox.validate.scale_rules"
local schema = require "kube.sandbox.validate.schema"

local openapi = {}

local UNCHECKED = "some validation rules were not checked because the object was invalid; correct the existing errors "
  .. "to complete validation"

-- Errors after which rules could fail for the wrong reason.
local BLOCKING = {
  FieldValueNotSupported = true, FieldValueRequired = true, FieldValueTooLong = true, FieldValueTooMany = true,
  FieldValueTypeInvalid = true,
}

local function append(to, from)
  for _, e in ipairs(from) do to[#to + 1] = e end
end

local function is_blocked(errors)
  for _, e in ipairs(errors) do
    if BLOCKING[e.type] then return true end
  end
  return false
end

-- The part that comes last: it looks at the whole object and needs the rest to be right.
local function check_whole(errors, node, value, old)
  if old == nil or #lists.validate(node, old) == 0 then append(errors, lists.validate(node, value)) end
  if not rules.present(node) then return errors, {} end
  if is_blocked(errors) then
    errors[#errors + 1] = field.invalid("<nil>", nil, UNCHECKED)
    return errors, {}
  end
  local broken, warnings = rules.validate(node, value, old)
  append(errors, broken)
  return errors, warnings
end

--- The field errors of `value`, and warnings about what was not checked. `old` (nil on create) forgives
--- what was wrong before; `path` is where the value stands, nil for a whole object.
function openapi.validate(node, value, path, old)
  local errors = schema.validate(node, value, path, old)
  append(errors, embedded.validate(node, value))
  return check_whole(errors, node, value, old)
end

--- The same for an object of a custom resource R, with what its scale subresource demands. A write of
--- its status is checked as one.
function openapi.validate_resource(R, new, old, subresource)
  local node, errors = R.schema, {}
  if subresource == "status" then
    local part = node.properties and node.properties.status
    if part and new.status ~= nil then errors = schema.validate(part, new.status, "status", old.status) end
    append(errors, scale_rules.status(R.scale, new))
    return check_whole(errors, node, new, old)
  end
  errors = schema.validate(node, new, nil, old)
  append(errors, scale_rules.spec(R.scale, new))
  append(errors, scale_rules.status(R.scale, new))
  append(errors, embedded.validate(node, new))
  return check_whole(errors, node, new, old)
end

return openapi
