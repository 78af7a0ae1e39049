-- Custom resources: what their definition says.
local default = require "kube.sandbox.crd.default"
local json = require "kube.sandbox.json"
local openapi = require "kube.sandbox.validate.openapi"
local status = require "kube.sandbox.status"

local custom = {}

local UNQUALIFIED = 'metadata.finalizers: "%s": prefer a domain-qualified finalizer name to avoid accidental conflicts '
  .. "with other finalizer writers"

local STANDARD = { orphan = true, foregroundDeletion = true }

local function warn_of_finalizers(ctx, document)
  for _, name in ipairs(document.metadata.finalizers or {}) do
    if not name:find("/", 1, true) and not STANDARD[name] then ctx:warn(UNQUALIFIED:format(name)) end
  end
end

local function validate(ctx, new, old, errors, subresource)
  warn_of_finalizers(ctx, new)
  if not ctx.R.schema then return end
  local found, warnings = openapi.validate_resource(ctx.R, new, old, subresource)
  for _, e in ipairs(found) do errors[#errors + 1] = e end
  for _, text in ipairs(warnings or {}) do ctx:warn(text) end
end

local function prepare_create(ctx, document)
  if json.get(ctx.R.crd, "metadata", "deletionTimestamp") then
    error(status.forbidden(ctx.R, document.metadata.name,
      "create not allowed while custom resource definition is terminating"))
  end
end

function custom.of(R)
  return {
    prepare_create = prepare_create,
    default = R.schema and function(_, document) return default.apply(document, R.schema) end or nil,
    validate = validate,
  }
end

return custom
