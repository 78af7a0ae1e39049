-- Namespaces: born with a finalizer, marked when they are to go, gone when the controller is done.
local field = require "kube.sandbox.field"
local json = require "kube.sandbox.json"
local object = require "kube.sandbox.object"
local status = require "kube.sandbox.status"

local namespaces = {}

local NAME_LABEL = "kubernetes.io/metadata.name"
local IMMORTAL = { default = true, ["kube-system"] = true, ["kube-public"] = true }

local function default(_, document)
  local name = document.metadata.name
  if name then
    local labels = document.metadata.labels and json.shallow(document.metadata.labels) or json.object {}
    labels[NAME_LABEL] = name
    document.metadata.labels = labels
  end
  return document
end

local function prepare_create(_, document)
  local finalizers = json.array {}
  for i, name in ipairs(json.get(document, "spec", "finalizers") or {}) do finalizers[i] = name end
  local has
  for _, name in ipairs(finalizers) do has = has or name == "kubernetes" end
  if not has then finalizers[#finalizers + 1] = "kubernetes" end
  document.spec = json.object { finalizers = finalizers }
  document.status = json.object { phase = "Active" }
  return document
end

local function prepare_update(_, new, old, subresource)
  if subresource ~= "finalize" then new.spec = old.spec end
  new.status = subresource == "status" and new.status or old.status
  return new
end

local PHASE = "may only be '%s' if `deletionTimestamp` is %sempty"

local function validate(_, new, _, errors)
  local going = new.metadata.deletionTimestamp ~= nil
  local phase, wanted = json.get(new, "status", "phase"), going and "Terminating" or "Active"
  if phase ~= wanted then
    errors[#errors + 1] = field.invalid("status.Phase", phase, PHASE:format(wanted, going and "not " or ""))
  end
  for i, name in ipairs(json.get(new, "spec", "finalizers") or {}) do
    if name ~= "kubernetes" and not name:find("/", 1, true) then
      errors[#errors + 1] = field.invalid(("spec.finalizers[%d]"):format(i - 1), name,
        "name is neither a standard finalizer name nor is it fully qualified")
    end
  end
end

local function holds(document) return json.get(document, "spec", "finalizers", 1) ~= nil end

local function delete(ctx, document, options)
  local name = document.metadata.name
  if IMMORTAL[name] then error(status.forbidden(ctx.R, name, "this namespace may not be deleted")) end
  if document.metadata.deletionTimestamp then
    if holds(document) or document.metadata.finalizers then return 200, document end
    return nil
  end
  local new = json.shallow(document)
  new.metadata = json.with(document.metadata, "deletionTimestamp", ctx.S.clock:stamp())
  new.status = json.with(document.status, "phase", "Terminating")
  if options.dry_run then return 200, new end
  return 200, ctx.S.store:update(ctx.R, object.key_of(ctx.R, document), new)
end

function namespaces.of()
  return {
    default = default,
    prepare_create = prepare_create,
    prepare_update = prepare_update,
    validate = validate,
    holds = holds,
    delete = delete,
    keeps_status = true,
  }
end

return namespaces
