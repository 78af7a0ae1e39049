-- Claims of volumes: they wait for a volume that nobody provides here.
local claim_rules = require "kube.sandbox.strategies.claim_rules"
local field = require "kube.sandbox.field"
local json = require "kube.sandbox.json"
local pod_spec = require "kube.sandbox.strategies.pod_spec"
local quantity = require "kube.sandbox.quantity"
local storage_classes = require "kube.sandbox.strategies.storage_classes"

local claims = {}

local PROTECTION = "kubernetes.io/pvc-protection"
local CLASS = "volume.beta.kubernetes.io/storage-class"

local function default(_, document)
  document.spec = json.shallow(document.spec)
  pod_spec.set(document.spec, "volumeMode", "Filesystem")
  return document
end

local function prepare_create(ctx, document)
  document.status = json.object { phase = "Pending" }
  document.metadata.finalizers = storage_classes.protect(document.metadata.finalizers, PROTECTION)
  if json.get(document.spec, "storageClassName") == nil and not json.get(document.metadata, "annotations", CLASS) then
    local class = storage_classes.default_name(ctx.S)
    if class then document.spec = json.with(document.spec, "storageClassName", class) end
  end
  return document
end

local function size_of(spec) return quantity.number(json.get(spec, "resources", "requests", "storage") or "0") or 0 end

-- A claim that has its volume may grow, and change what that is like.
local function fixed_part(spec, bound)
  spec = json.shallow(spec)
  if bound then
    spec.volumeAttributesClassName = nil
    spec.resources = json.shallow(spec.resources or json.object {})
    if json.get(spec.resources, "requests") then
      spec.resources.requests = json.with(spec.resources.requests, "storage", nil)
    end
  end
  return spec
end

local FIXED = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound "
  .. "claims"

local function check_change(errors, new, old)
  local bound = json.get(new, "status", "phase") == "Bound"
  local spec, before = fixed_part(new.spec, bound), fixed_part(old.spec, bound)
  if (json.get(before, "volumeName") or "") == "" then before.volumeName = spec.volumeName end
  -- Who waits without a class may get one.
  if json.get(before, "storageClassName") == nil then before.storageClassName = spec.storageClassName end
  if not json.equal(spec, before) then errors[#errors + 1] = field.forbidden("spec", FIXED) end
  local capacity = quantity.number(json.get(old, "status", "capacity", "storage") or "0") or 0
  if size_of(new.spec) < size_of(old.spec) and size_of(new.spec) <= capacity then
    errors[#errors + 1] = field.forbidden("spec.resources.requests.storage",
      "field can not be less than status.capacity")
  end
  if new.spec.volumeMode ~= old.spec.volumeMode then
    errors[#errors + 1] = field.immutable("volumeMode", new.spec.volumeMode)
  end
end

local function check_status(errors, status)
  for name, amount in pairs(json.get(status, "capacity") or {}) do
    local number = quantity.number(amount) or 0
    if number < 0 then
      errors[#errors + 1] = field.invalid(("status.capacity[%s]"):format(name), math.ceil(number),
        "must be a valid resource quantity")
    end
  end
end

local function validate(_, new, old, errors, subresource)
  if subresource == "status" then return check_status(errors, new.status) end
  claim_rules.check(errors, new.spec, "spec")
  if old then check_change(errors, new, old) end
end

function claims.of() return { default = default, prepare_create = prepare_create, validate = validate } end

return claims
