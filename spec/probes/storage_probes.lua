-- Claims, volumes and their classes: what they must be and what is set for good. Accepted writes are
-- dry runs, but for a class that others refer to.
local json = require "spec.probes.json"
local samples = require "spec.probes.samples"

-- A refusal that shows how two structs differ is compared up to there.
local function refusal(v)
  if v.kind ~= "Status" then return "accepted" end
  for _, cause in ipairs(v.details and v.details.causes or {}) do
    if cause.message:find("immutable after creation", 1, true) then
      cause.message, v.message = cause.message:match("^[^\n]*"), nil
    end
  end
  return v.message and samples.sorted_causes(v) or v
end

local function claim(more)
  local spec = { accessModes = { "ReadWriteOnce" }, resources = { requests = { storage = "1Gi" } } }
  for key, value in pairs(more or {}) do spec[key] = value end
  return spec
end

local function volume(more)
  local spec = { accessModes = { "ReadWriteOnce" }, capacity = { storage = "1Gi" }, hostPath = { path = "/x" } }
  for key, value in pairs(more or {}) do spec[key] = value end
  return spec
end

local CLASSES = "/apis/storage.k8s.io/v1/storageclasses"

return {
  { name = "claims", run = function(p)
    local path = p:core "persistentvolumeclaims"
    local function try(spec, annotations)
      p:post(path .. "?dryRun=All", { metadata = { name = p:name "a", annotations = annotations }, spec = spec },
        { pick = refusal })
    end
    try(claim { accessModes = json.array {} })
    try(claim { accessModes = { "Bogus" } })
    try(claim { accessModes = { "ReadWriteOncePod", "ReadWriteOnce" } })
    try(claim { accessModes = { "ReadWriteOncePod" } })
    try(claim { resources = json.object {} })
    try(claim { resources = { requests = { storage = "0" } } })
    try(claim { resources = { requests = { storage = "-1Gi" } } })
    try(claim { storageClassName = "Bad_" })
    try(claim { storageClassName = "" })
    try(claim { volumeMode = "Bogus" })
    try(claim { volumeMode = "Block" })
    try(claim { selector = { matchExpressions = { { key = "a", operator = "Bogus" } } } })
    try(claim { selector = { matchLabels = { a = "not a value" } } })
    try(claim { volumeAttributesClassName = "Bad_" })
    p:setup("POST", path, { metadata = { name = p:name "m" }, spec = claim { storageClassName = p:name "c" } })
    p:release(path .. "/" .. p:name "m")
    local function change(spec, subresource)
      p:patch("merge", path .. "/" .. p:name "m" .. (subresource and "/" .. subresource or "") .. "?dryRun=All",
        subresource and { status = spec } or { spec = spec }, { pick = refusal })
    end
    change { accessModes = { "ReadOnlyMany" } }
    change { resources = { requests = { storage = "2Gi" } } }
    change { resources = { requests = { storage = "1Mi" } } }
    change { storageClassName = "other" }
    change { volumeMode = "Block" }
    change { selector = { matchLabels = { a = "b" } } }
    change { volumeName = "v" }
    change({ capacity = { storage = "-1" } }, "status")
  end },
  { name = "volumes", run = function(p)
    local path = "/api/v1/persistentvolumes"
    local function try(spec)
      p:post(path .. "?dryRun=All", { metadata = { name = p:name "a" }, spec = spec }, { pick = refusal })
    end
    try(volume { accessModes = json.array {} })
    try(volume { accessModes = { "Bogus", "ReadWriteOncePod" } })
    try(volume { accessModes = { "ReadWriteOnce", "ReadWriteOncePod" } })
    try(volume { capacity = json.object {} })
    try(volume { capacity = { storage = "1Gi", cpu = "1" } })
    try(volume { capacity = { storage = "0" } })
    try(volume { persistentVolumeReclaimPolicy = "Bogus" })
    try(volume { hostPath = json.null })
    try(volume { nfs = { server = "s", path = "/p" } })
    try(volume { hostPath = { path = "/" }, persistentVolumeReclaimPolicy = "Recycle" })
    try(volume { hostPath = { path = "/a/../b" } })
    try(volume { storageClassName = "Bad_" })
    try(volume { volumeMode = "Bogus" })
    try(volume { hostPath = json.null, csi = { driver = "", volumeHandle = "" } })
    try(volume { hostPath = json.null, csi = { driver = "Bad_", volumeHandle = "h" } })
    try(volume { hostPath = json.null, csi = { driver = "d.example.com", volumeHandle = "h" } })
    try(volume { hostPath = json.null, nfs = { server = "", path = "" } })
    try(volume { hostPath = json.null, ["local"] = { path = "/x" } })
    try(volume { hostPath = json.null, ["local"] = { path = "/x" }, nodeAffinity = { required = {
      nodeSelectorTerms = { { matchExpressions = { { key = "k", operator = "In", values = { "v" } } } } } } } })
    try(volume())
    local name = p:name "m"
    p:later(function()
      p:patch("merge", path .. "/" .. name, { metadata = { finalizers = json.null } }, { quiet = "unseen" })
      p:request("DELETE", path .. "/" .. name, nil, { quiet = "unseen" })
    end)
    p:setup("POST", path, { metadata = { name = name }, spec = volume() })
    local function change(spec) p:patch("merge", path .. "/" .. name .. "?dryRun=All", { spec = spec },
      { pick = refusal }) end
    change { hostPath = { path = "/y" } }
    change { capacity = { storage = "2Gi" } }
    change { persistentVolumeReclaimPolicy = "Delete" }
    change { volumeMode = "Block" }
    change { storageClassName = "x" }
  end },
  { name = "classes of volumes", run = function(p)
    local function try(document)
      document.metadata = { name = p:name "a" }
      p:post(CLASSES .. "?dryRun=All", document, { pick = function(v)
        return v.kind == "StorageClass" and json.object { reclaimPolicy = v.reclaimPolicy,
          volumeBindingMode = v.volumeBindingMode, expansion = v.allowVolumeExpansion } or refusal(v) end })
    end
    try {}
    try { provisioner = "" }
    try { provisioner = "Bad Name" }
    try { provisioner = "e.com/p" }
    try { provisioner = "e.com/p", reclaimPolicy = "Recycle" }
    try { provisioner = "e.com/p", reclaimPolicy = "Bogus" }
    try { provisioner = "e.com/p", volumeBindingMode = "Bogus" }
    try { provisioner = "e.com/p", parameters = { [""] = "x" } }
    try { provisioner = "e.com/p", allowVolumeExpansion = true, volumeBindingMode = "WaitForFirstConsumer" }
    local claims, claimed = p:core "persistentvolumeclaims" .. "?dryRun=All", { pick = function(v)
      return v.kind == "PersistentVolumeClaim" and json.object { class = v.spec.storageClassName } or v end }
    local chosen = p:name "d"
    p:later(function() p:request("DELETE", CLASSES .. "/" .. chosen, nil, { quiet = "unseen" }) end)
    p:setup("POST", CLASSES, { metadata = { name = chosen, annotations = {
      ["storageclass.kubernetes.io/is-default-class"] = "true" } }, provisioner = "e.com/p" })
    -- The server learns of the class a moment later.
    local stop = os.time() + p.target.patience
    local bare = { metadata = { name = p:name "b" }, spec = claim() }
    repeat
      local answer = p:request("POST", claims, bare, { quiet = "unseen" })
    until answer.json.spec.storageClassName or os.time() > stop
    p:post(claims, bare, claimed)
    p:post(claims, { metadata = { name = p:name "b" }, spec = claim { storageClassName = "" } }, claimed)
    p:post(claims, { metadata = { name = p:name "b" }, spec = claim { storageClassName = "own" } }, claimed)
    local name = p:name "m"
    p:later(function() p:request("DELETE", CLASSES .. "/" .. name, nil, { quiet = "unseen" }) end)
    p:setup("POST", CLASSES, { metadata = { name = name }, provisioner = "e.com/p", parameters = { a = "b" } })
    local function change(patch)
      p:patch("merge", CLASSES .. "/" .. name .. "?dryRun=All", patch, { pick = refusal })
    end
    change { provisioner = "e.com/q" }
    change { parameters = { a = "c" } }
    change { reclaimPolicy = "Retain" }
    change { volumeBindingMode = "WaitForFirstConsumer" }
    change { allowVolumeExpansion = true, mountOptions = { "ro" } }
  end },
}
