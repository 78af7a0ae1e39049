-- What makes pods: rules between the fields of one, and between it and what it was. Accepted writes are
-- dry runs, so that no controller comes in between.
local json = require "spec.probes.json"
local samples = require "spec.probes.samples"

-- For `pick`: refusals whole, and of what was accepted the spec without its template, or the status.
local function short(v)
  if v.kind == "Status" then return samples.sorted_causes(v) end
  if v.spec then v.spec.template = nil end
  return json.object { spec = v.spec }
end
local function accepted(v) return v.kind == "Status" and samples.sorted_causes(v) or "accepted" end

local function template(more, labels)
  local spec = { containers = { samples.container "main" } }
  for key, value in pairs(more or {}) do spec[key] = value end
  return { metadata = { labels = labels or { app = "x" } }, spec = spec }
end

-- try(spec) creates one in a dry run.
local function tries(p, plural, pick)
  return function(spec, version)
    local full = { selector = { matchLabels = { app = "x" } }, template = template() }
    for key, value in pairs(spec) do full[key] = value end
    local base = version or "/apis/apps/v1"
    if base == "/api/v1" and not spec.selector then full.selector = { app = "x" } end
    p:post(p:path(base, plural) .. "?dryRun=All", { metadata = { name = p:name "a" }, spec = full },
      { pick = pick or short })
  end
end

-- Creates one for good, and returns change(patch, subresource), a dry run.
local function made(p, plural, spec)
  local full = { selector = { matchLabels = { app = "x" } }, template = template(), replicas = 0 }
  if plural == "daemonsets" then full.replicas = nil end
  for key, value in pairs(spec or {}) do full[key] = value end
  local path = p:path("/apis/apps/v1", plural)
  p:setup("POST", path, { metadata = { name = p:name "m" }, spec = full })
  return function(patch, subresource)
    p:patch("merge", path .. "/" .. p:name "m" .. (subresource and "/" .. subresource or "") .. "?dryRun=All", patch,
      { pick = accepted })
  end
end

return {
  { name = "selectors match templates", run = function(p)
    for _, plural in ipairs { "deployments", "replicasets", "statefulsets", "daemonsets" } do
      local try = tries(p, plural, accepted)
      try { template = template(nil, { app = "y" }) }
      try { template = { spec = template().spec } }
      try { selector = { matchExpressions = { { key = "app", operator = "In", values = { "x", "y" } } } } }
      try { selector = { matchExpressions = { { key = "app", operator = "NotIn", values = { "x" } } } } }
      try { selector = { matchExpressions = { { key = "app", operator = "DoesNotExist" } } } }
      try { selector = { matchLabels = { app = "not a value" } } }
      try { selector = { matchExpressions = { { key = "app", operator = "Exists", values = { "x" } } } } }
      try { selector = json.object {} }
      try { selector = json.null }
    end
  end },
  { name = "replication controllers and their selectors", run = function(p)
    local try = tries(p, "replicationcontrollers")
    local function rc(spec) try(spec, "/api/v1") end
    rc { selector = { app = "y" } }
    rc { selector = json.object {} }
    rc { selector = json.object {}, template = { spec = template().spec } }
    rc { replicas = -1, minReadySeconds = -1 }
    rc { template = json.null }
    rc { template = template { restartPolicy = "Never" } }
    rc { template = template { activeDeadlineSeconds = 5 } }
  end },
  { name = "templates of those that never end", run = function(p)
    for _, plural in ipairs { "deployments", "replicasets", "statefulsets", "daemonsets" } do
      local try = tries(p, plural, accepted)
      try { template = template { activeDeadlineSeconds = 5 } }
      try { template = template { restartPolicy = "OnFailure" } }
      try { minReadySeconds = -1 }
      try { revisionHistoryLimit = -1 }
    end
  end },
  { name = "selectors are for good", run = function(p)
    for _, plural in ipairs { "deployments", "replicasets", "statefulsets", "daemonsets" } do
      local change = made(p, plural)
      change { spec = { selector = { matchLabels = { app = json.null, b = "c" } },
        template = { metadata = { labels = { b = "c" } } } } }
      change { spec = { selector = { matchLabels = { b = "c" } } } }
      change { spec = { template = { metadata = { labels = { app = "y" } } } } }
      change { spec = { template = { metadata = { labels = { b = "c" } } } } }
    end
  end },
  { name = "stateful sets and how they change", run = function(p)
    local change = made(p, "statefulsets", { serviceName = "s" })
    change { spec = { serviceName = "t" } }
    change { spec = { podManagementPolicy = "Parallel" } }
    change { spec = { volumeClaimTemplates = { { metadata = { name = "c" }, spec = { accessModes = { "ReadWriteOnce" },
      resources = { requests = { storage = "1Gi" } } } } } } }
    change { spec = { replicas = 3, minReadySeconds = 3, revisionHistoryLimit = 2, ordinals = { start = 1 },
      updateStrategy = { type = "OnDelete", rollingUpdate = json.null } } }
    change { spec = { replicas = -1 } }
  end },
  { name = "stateful sets and their strategies", run = function(p)
    local try = tries(p, "statefulsets")
    try { podManagementPolicy = "Bogus" }
    try { updateStrategy = { type = "Bogus" } }
    try { updateStrategy = { type = "OnDelete", rollingUpdate = { partition = 1 } } }
    try { updateStrategy = { type = "OnDelete" } }
    try { updateStrategy = { rollingUpdate = { partition = -1 } } }
    try { updateStrategy = { rollingUpdate = { maxUnavailable = 0 } } }
    try { updateStrategy = { rollingUpdate = { maxUnavailable = "200%" } } }
    try { persistentVolumeClaimRetentionPolicy = { whenDeleted = "Bogus", whenScaled = "Bogus" } }
    try { ordinals = { start = -1 } }
    try { serviceName = "Not_A_Name" }
    try { replicas = -1 }
  end },
  { name = "stateful sets and their claims", run = function(p)
    local try = tries(p, "statefulsets", accepted)
    local function claim(name, spec) return { metadata = { name = name }, spec = spec } end
    local good = { accessModes = { "ReadWriteOnce" }, resources = { requests = { storage = "1Gi" } } }
    local mounts = { { name = "main", image = "x", volumeMounts = { { name = "data", mountPath = "/d" } } } }
    try { volumeClaimTemplates = { claim("data", good) }, template = template { containers = mounts } }
    try { template = template { containers = mounts } }
    try { volumeClaimTemplates = { claim("data", good) }, template = template { containers = mounts,
      volumes = { { name = "data", emptyDir = json.object {} } } } }
    try { volumeClaimTemplates = { claim("data", json.object {}) } }
    try { volumeClaimTemplates = { claim("data", { accessModes = { "Bogus" }, resources = { requests = {
      storage = "-1Gi" } } }) } }
    try { template = template { hostname = "Not_A_Name", subdomain = "Not_A_Name" } }
  end },
  { name = "daemon sets and their strategies", run = function(p)
    local try = tries(p, "daemonsets")
    local function rolling(more) try { updateStrategy = { type = "RollingUpdate", rollingUpdate = more } } end
    try { updateStrategy = { type = "Bogus" } }
    try { updateStrategy = { type = "OnDelete", rollingUpdate = { maxUnavailable = 1 } } }
    rolling { maxUnavailable = 0 }
    rolling { maxUnavailable = 1, maxSurge = 1 }
    rolling { maxUnavailable = 0, maxSurge = "10%" }
    rolling { maxUnavailable = "101%" }
    rolling { maxUnavailable = "x" }
    rolling { maxUnavailable = -1 }
  end },
  { name = "what workloads say of themselves adds up", run = function(p)
    local odd = {
      { replicas = 1, readyReplicas = 2 },
      { replicas = 2, readyReplicas = 1, availableReplicas = 2 },
      { replicas = 1, availableReplicas = 2, readyReplicas = 1 },
      { replicas = -1 },
      { replicas = 1, readyReplicas = -1, observedGeneration = -1 },
      { replicas = 2, readyReplicas = 2, availableReplicas = 1 },
    }
    for _, plural in ipairs { "deployments", "replicasets", "statefulsets" } do
      local change = made(p, plural)
      for _, status in ipairs(odd) do change({ status = status }, "status") end
      change({ status = { replicas = 1, updatedReplicas = 2, currentReplicas = 2, fullyLabeledReplicas = 2,
        collisionCount = -1 } }, "status")
    end
    local change = made(p, "daemonsets")
    change({ status = { numberReady = -1, desiredNumberScheduled = -1, currentNumberScheduled = -1,
      numberMisscheduled = -1, updatedNumberScheduled = -1, numberAvailable = -1, numberUnavailable = -1,
      observedGeneration = -1 } }, "status")
    change({ status = { numberReady = 5, desiredNumberScheduled = 1 } }, "status")
  end },
}
