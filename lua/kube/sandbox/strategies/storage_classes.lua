-- Classes of volumes: who provides them, which is set for good; and the class of those who name none.
local field = require "kube.sandbox.field"
local json = require "kube.sandbox.json"
local names = require "kube.sandbox.names"
local pod_spec = require "kube.sandbox.strategies.pod_spec"

local storage_classes = {}

local RECLAIM, BINDING = { "Delete", "Retain" }, { "Immediate", "WaitForFirstConsumer" }
local FIXED = { "parameters", "provisioner", "reclaimPolicy", "volumeBindingMode" }
local DEFAULT = { "storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class" }

local function add(errors, e) errors[#errors + 1] = e end

--- Finalizers (nil for none) and one more.
function storage_classes.protect(finalizers, name)
  finalizers = json.shallow(finalizers or json.array {})
  for _, one in ipairs(finalizers) do
    if one == name then return finalizers end
  end
  finalizers[#finalizers + 1] = name
  return finalizers
end

local function is_default(class)
  for _, name in ipairs(DEFAULT) do
    if json.get(class.metadata, "annotations", name) == "true" then return true end
  end
  return false
end

--- The name of the class of claims that name none, the newest one; or nil.
function storage_classes.default_name(S)
  local found
  for _, class in ipairs((S.store:scan("storage.k8s.io/storageclasses"))) do
    local m = class.metadata
    if is_default(class) and (not found or m.creationTimestamp > found.creationTimestamp
      or m.creationTimestamp == found.creationTimestamp and m.name < found.name) then
      found = m
    end
  end
  return found and found.name
end

local function default(_, document)
  pod_spec.set(document, "reclaimPolicy", "Delete")
  pod_spec.set(document, "volumeBindingMode", "Immediate")
  return document
end

local function check_one_of(errors, value, path, known)
  if field.is_one_of(value, known) then return end
  add(errors, field.not_supported(path, value, known))
end

local function validate(_, new, old, errors)
  local provisioner = new.provisioner or ""
  if provisioner == "" then
    add(errors, field.required("provisioner"))
  else
    local text = provisioner:lower()
    for _, problem in ipairs { names.qualified(text) } do add(errors, field.invalid("provisioner", text, problem)) end
  end
  if json.get(new, "parameters", "") ~= nil then
    add(errors, field.invalid("parameters", "", "field can not be empty."))
  end
  check_one_of(errors, new.reclaimPolicy, "reclaimPolicy", RECLAIM)
  check_one_of(errors, new.volumeBindingMode, "volumeBindingMode", BINDING)
  for _, name in ipairs(old and FIXED or {}) do
    if not json.equal(json.get(new, name), json.get(old, name)) then add(errors, field.immutable(name, new[name])) end
  end
end

function storage_classes.of() return { default = default, validate = validate } end

return storage_classes
