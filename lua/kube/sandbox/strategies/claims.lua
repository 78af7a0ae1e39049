-- Claims of volumes: they wait for a volume that nobody provides here.
local field = require "kube.sandbox.field"
local json = require "kube.sandbox.json"
local pod_spec = require "kube.sandbox.strategies.pod_spec"

local claims = {}

local PROTECTION = "kubernetes.io/pvc-protection"

local function default(_, document)
  document.spec = json.shallow(document.spec)
  pod_spec.set(document.spec, "volumeMode", "Filesystem")
  return document
end

local function prepare_create(_, document)
  document.status = json.object { phase = "Pending" }
  local finalizers, there = json.shallow(document.metadata.finalizers or json.array {}), false
  for _, name in ipairs(finalizers) do there = there or name == PROTECTION end
  if not there then finalizers[#finalizers + 1] = PROTECTION end
  document.metadata.finalizers = finalizers
  return document
end

local function validate(_, new, old, errors)
  local spec = new.spec
  if not json.get(spec, "accessModes", 1) then
    errors[#errors + 1] = field.required("spec.accessModes", "at least 1 access mode is required")
  end
  if not json.get(spec, "resources", "requests", "storage") then
    errors[#errors + 1] = field.required("spec.resources[storage]")
  end
  if old and not json.equal(spec.accessModes, old.spec.accessModes) then
    errors[#errors + 1] = field.forbidden("spec", "spec is immutable after creation except resources.requests and "
      .. "volumeAttributesClassName for bound claims")
  end
end

function claims.of() return { default = default, prepare_create = prepare_create, validate = validate } end

return claims
