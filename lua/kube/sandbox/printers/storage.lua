-- The cells of volumes and what makes them.
local json = require "kube.sandbox.json"
local text = require "kube.sandbox.printers.text"

local storage = {}

local get, since = json.get, text.since

local MODES = {
  { "ReadWriteOnce", "RWO" }, { "ReadOnlyMany", "ROX" }, { "ReadWriteMany", "RWX" }, { "ReadWriteOncePod", "RWOP" },
}

local function access_modes(modes)
  local given, list = {}, {}
  for _, mode in ipairs(modes or {}) do given[mode] = true end
  for _, mode in ipairs(MODES) do
    if given[mode[1]] then list[#list + 1] = mode[2] end
  end
  return table.concat(list, ",")
end

local function class_of(d)
  return get(d, "metadata", "annotations", "volume.beta.kubernetes.io/storage-class")
    or get(d, "spec", "storageClassName") or ""
end

local function phase_of(d) return d.metadata.deletionTimestamp and "Terminating" or get(d, "status", "phase") or "" end

local function size(list) return tostring(get(list, "storage") or "0") end

storage["v1/persistentvolumes"] = function(d, now)
  local claim = get(d, "spec", "claimRef")
  return {
    d.metadata.name, size(get(d, "spec", "capacity")), access_modes(get(d, "spec", "accessModes")),
    get(d, "spec", "persistentVolumeReclaimPolicy") or "", phase_of(d),
    claim and ("%s/%s"):format(claim.namespace or "", claim.name or "") or "", class_of(d),
    get(d, "spec", "volumeAttributesClassName") or "<unset>", get(d, "status", "reason") or "",
    since(d.metadata.creationTimestamp, now), get(d, "spec", "volumeMode") or "<unset>",
  }
end

storage["v1/persistentvolumeclaims"] = function(d, now)
  local volume = get(d, "spec", "volumeName") or ""
  local bound = volume ~= ""
  return {
    d.metadata.name, phase_of(d), volume, bound and size(get(d, "status", "capacity")) or "",
    bound and access_modes(get(d, "status", "accessModes")) or "", class_of(d),
    get(d, "spec", "volumeAttributesClassName") or "<unset>", since(d.metadata.creationTimestamp, now),
    get(d, "spec", "volumeMode") or "<unset>",
  }
end

local DEFAULT = "storageclass.kubernetes.io/is-default-class"
local BETA_DEFAULT = "storageclass.beta.kubernetes.io/is-default-class"

storage["storage.k8s.io/v1/storageclasses"] = function(d, now)
  local annotations = d.metadata.annotations
  local default = get(annotations, DEFAULT) == "true" or get(annotations, BETA_DEFAULT) == "true"
  return { d.metadata.name .. (default and " (default)" or ""), get(d, "provisioner") or "",
    get(d, "reclaimPolicy") or "Delete", get(d, "volumeBindingMode") or "Immediate",
    get(d, "allowVolumeExpansion") or false, since(d.metadata.creationTimestamp, now) }
end

storage["storage.k8s.io/v1/csidrivers"] = function(d, now)
  local spec = d.spec or json.object {}
  local attach, requests = get(spec, "attachRequired"), get(spec, "tokenRequests")
  return {
    d.metadata.name, attach == nil or attach, get(spec, "podInfoOnMount") or false,
    get(spec, "storageCapacity") or false, requests and text.join(requests, "audience") or "<unset>",
    get(spec, "requiresRepublish") or false, text.either(text.join(get(spec, "volumeLifecycleModes")), "<none>"),
    since(d.metadata.creationTimestamp, now),
  }
end

storage["storage.k8s.io/v1/csinodes"] = function(d, now)
  return { d.metadata.name, #(get(d, "spec", "drivers") or {}), since(d.metadata.creationTimestamp, now) }
end

storage["storage.k8s.io/v1/volumeattachments"] = function(d, now)
  return { d.metadata.name, get(d, "spec", "attacher") or "", get(d, "spec", "source", "persistentVolumeName") or "",
    get(d, "spec", "nodeName") or "", get(d, "status", "attached") or false, since(d.metadata.creationTimestamp, now) }
end

storage["storage.k8s.io/v1/volumeattributesclasses"] = function(d, now)
  return { d.metadata.name, get(d, "driverName") or "", since(d.metadata.creationTimestamp, now) }
end

return storage
