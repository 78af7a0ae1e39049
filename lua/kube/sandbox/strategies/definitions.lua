-- CustomResourceDefinitions: checked when they are written, kept until their objects are gone.
local crd_status = require "kube.sandbox.crd.status"
local definition = require "kube.sandbox.crd.definition"
local definition_warnings = require "kube.sandbox.crd.definition_warnings"
local json = require "kube.sandbox.json"
local object = require "kube.sandbox.object"

local definitions = {}

local function default(_, document) return definition.default(document) end

local function prepare_create(_, document)
  document.status = crd_status.initial(document)
  return document
end

local function prepare_update(_, new, old, subresource)
  if subresource ~= "status" then
    new.status = crd_status.carry(new, old)
  elseif not json.get(new, "status", "storedVersions", 1) then
    new.status = json.with(new.status, "storedVersions", json.array { definition.storage_version(new) })
  end
  return new
end

-- Who writes the status says what was stored: that is how versions are given up.
local function validate(ctx, new, old, errors, subresource)
  if subresource == "status" then return end
  for _, e in ipairs(definition.validate(new, old)) do errors[#errors + 1] = e end
  if errors[1] or ctx.request.internal then return end
  for _, text in ipairs(definition_warnings.of(new, old)) do ctx:warn(text) end
end

-- The first deletion only marks it: the controller deletes its objects, then lets it go.
local function delete(ctx, document, options)
  local m = document.metadata
  if m.deletionTimestamp then
    if m.finalizers then return 200, document end
    return nil
  end
  local new = crd_status.pending(document, ctx.S.clock:stamp())
  local finalizers = m.finalizers and json.shallow(m.finalizers) or json.array {}
  finalizers[#finalizers + 1] = crd_status.FINALIZER
  local metadata = json.with(m, "deletionTimestamp", ctx.S.clock:stamp())
  metadata.finalizers = finalizers
  new = json.with(new, "metadata", metadata)
  if options.dry_run then return 200, new end
  return 200, ctx.S.store:update(ctx.R, object.key_of(ctx.R, new), new)
end

function definitions.of()
  return {
    default = default,
    prepare_create = prepare_create,
    prepare_update = prepare_update,
    validate = validate,
    delete = delete,
    keeps_status = true,
  }
end

return definitions
