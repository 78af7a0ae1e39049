-- Volumes of the cluster: one source each, which is set for good.
local claim_rules = require "kube.sandbox.strategies.claim_rules"
local field = require "kube.sandbox.field"
local json = require "kube.sandbox.json"
local names = require "kube.sandbox.names"
local pod_spec = require "kube.sandbox.strategies.pod_spec"
local pod_volumes = require "kube.sandbox.strategies.pod_volumes"
local quantity = require "kube.sandbox.quantity"
local storage_classes = require "kube.sandbox.strategies.storage_classes"

local volumes = {}

local PROTECTION = "kubernetes.io/pv-protection"
local RECLAIM, MODES = { "Delete", "Recycle", "Retain" }, { "Block", "Filesystem" }

-- In the order in which the server looks for them.
local SOURCES = { "hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker", "nfs", "rbd",
  "quobyte", "cephfs", "iscsi", "cinder", "fc", "vsphereVolume", "photonPersistentDisk", "portworxVolume",
  "azureDisk", "scaleIO", "local", "storageos", "azureFile", "csi" }

local function add(errors, e) errors[#errors + 1] = e end

local function default(_, document)
  document.spec = json.shallow(document.spec)
  pod_spec.set(document.spec, "persistentVolumeReclaimPolicy", "Retain")
  pod_spec.set(document.spec, "volumeMode", "Filesystem")
  pod_spec.inside(document.spec, "hostPath", function(path) pod_spec.set(path, "type", "") end)
  return document
end

local function prepare_create(_, document)
  document.status = json.object { phase = "Pending" }
  document.metadata.finalizers = storage_classes.protect(document.metadata.finalizers, PROTECTION)
  return document
end

-- ---- sources ----

local checks = {}

checks.hostPath = pod_volumes.checks.hostPath

function checks.nfs(errors, source, path)
  local where = json.get(source, "path") or ""
  if (json.get(source, "server") or "") == "" then add(errors, field.required(path .. ".server")) end
  if where == "" then add(errors, field.required(path .. ".path")) end
  if where:sub(1, 1) ~= "/" then add(errors, field.invalid(path .. ".path", where, "must be an absolute path")) end
end

function checks.csi(errors, source, path)
  local driver = json.get(source, "driver") or ""
  if driver == "" then
    add(errors, field.required(path .. ".driver"))
  else
    for _, problem in ipairs { names.subdomain(driver:lower()) } do
      add(errors, field.invalid(path .. ".driver", driver, problem))
    end
  end
  if (json.get(source, "volumeHandle") or "") == "" then add(errors, field.required(path .. ".volumeHandle")) end
end

checks["local"] = function(errors, source, path)
  local where = json.get(source, "path") or ""
  if where == "" then return add(errors, field.required(path .. ".path")) end
  pod_volumes.check_no_backsteps(errors, where, path .. ".path")
end

local function check_sources(errors, spec)
  local found = false
  for _, name in ipairs(SOURCES) do
    local source, path = json.get(spec, name), "spec." .. name
    if source and found then
      add(errors, field.forbidden(path, "may not specify more than 1 volume type"))
    elseif source then
      found = true
      if checks[name] then checks[name](errors, source, path) end
      if name == "local" and not json.get(spec, "nodeAffinity") then
        add(errors, field.required("spec.nodeAffinity", "Local volume requires node affinity"))
      end
    end
  end
  if not found then add(errors, field.required("spec", "must specify a volume type")) end
end

-- ---- the whole ----

local function check_capacity(errors, capacity)
  local size = json.get(capacity, "storage")
  if next(capacity) == nil then add(errors, field.required("spec.capacity")) end
  if size == nil or next(capacity, next(capacity)) ~= nil then
    add(errors, field.not_supported("spec.capacity", capacity, { "storage" }))
  end
  if size and (quantity.number(size) or 0) <= 0 then
    add(errors, field.invalid("spec.capacity[storage]", size, "must be greater than zero"))
  end
end

local function check_policies(errors, spec)
  local policy, class = spec.persistentVolumeReclaimPolicy, json.get(spec, "storageClassName") or ""
  if not field.is_one_of(policy, RECLAIM) then
    add(errors, field.not_supported("spec.persistentVolumeReclaimPolicy", policy, RECLAIM))
  elseif policy == "Recycle" and json.get(spec, "hostPath", "path") == "/" then
    add(errors, field.forbidden("spec.persistentVolumeReclaimPolicy",
      "may not be 'recycle' for a hostPath mount of '/'"))
  end
  for _, problem in ipairs { class ~= "" and names.subdomain(class) or nil } do
    add(errors, field.invalid("spec.storageClassName", class, problem))
  end
  if not field.is_one_of(spec.volumeMode, MODES) then
    add(errors, field.not_supported("spec.volumeMode", spec.volumeMode, MODES))
  end
end

local function check_change(errors, new, old)
  for _, name in ipairs(SOURCES) do
    if not json.equal(new[name], old[name]) then
      add(errors, field.forbidden("spec.persistentvolumesource",
        "spec.persistentvolumesource is immutable after creation"))
      break
    end
  end
  if new.volumeMode ~= old.volumeMode then add(errors, field.immutable("volumeMode", new.volumeMode)) end
end

local function validate(_, new, old, errors, subresource)
  if subresource == "status" then return end
  local spec = new.spec
  local modes = json.get(spec, "accessModes") or {}
  if not modes[1] then add(errors, field.required("spec.accessModes")) end
  claim_rules.check_modes(errors, modes, "spec.accessModes")
  check_capacity(errors, json.get(spec, "capacity") or json.object {})
  check_sources(errors, spec)
  check_policies(errors, spec)
  if old then check_change(errors, spec, old.spec) end
end

function volumes.of() return { default = default, prepare_create = prepare_create, validate = validate } end

return volumes
