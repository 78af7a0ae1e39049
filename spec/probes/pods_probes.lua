-- Pods: defaults, binding, graceful deletion, eviction.
local json = require "spec.probes.json"
local samples = require "spec.probes.samples"

local function ready(p)
  p:poll(p:core("serviceaccounts", "default"), function(a) return a.status == 200 end, { quiet = true })
  return p:core "pods"
end

local function seconds(text)
  local y, mo, d, h, mi, s = text:match("(%d+)-(%d+)-(%d+)T(%d+):(%d+):(%d+)Z")
  return os.time { year = y, month = mo, day = d, hour = h, min = mi, sec = s }
end

-- The server shows what differs between its internal structs, which have other names than the API.
local function without_diff(v)
  local function cut(t) t.message = t.message:gsub("\n@@.*", "") end
  cut(v)
  cut(v.details.causes[1])
  return v
end

local function binding(p, label)
  return { apiVersion = "v1", kind = "Binding", metadata = { name = p:name(label or "a") },
    target = { apiVersion = "v1", kind = "Node", name = p:name "node" } }
end

return {
  { name = "a pod has its defaults", run = function(p)
    local path = ready(p)
    local spec = { containers = { { name = "main", image = "example.com/x:1", ports = { { containerPort = 80 } },
      env = { { name = "A", valueFrom = { fieldRef = { fieldPath = "metadata.name" } } } },
      livenessProbe = { httpGet = { port = 80 } }, resources = { limits = { cpu = "500m", memory = "1Gi" } } },
      { name = "latest", image = "example.com/y" } },
      volumes = { { name = "c", configMap = { name = "x" } }, { name = "e", emptyDir = json.object {} } } }
    p:post(path, samples.pod(p:name "a", { labels = { app = "x" } }, spec))
  end },
  { name = "a pod gets a token of its service account", run = function(p)
    local path = ready(p)
    local pod = samples.pod(p:name "a")
    pod.spec.automountServiceAccountToken = nil
    p:post(path, pod, { pick = function(v)
      local text = json.encode(v):gsub("kube%-api%-access%-%w+", "kube-api-access-<suffix>")
      return json.decode(text)
    end })
    pod.metadata.name, pod.spec.serviceAccountName = p:name "b", p:name "nosa"
    p:post(path, pod)
  end },
  { name = "pods that are refused", run = function(p)
    local path = ready(p)
    local function try(spec) p:post(path, samples.pod(p:name "bad", nil, spec)) end
    try { containers = json.array {} }
    try { containers = { { image = "x" } } }
    try { containers = { { name = "a" } } }
    try { containers = { samples.container "a", samples.container "a" } }
    try { containers = { samples.container "Bad_Name" } }
    try { restartPolicy = "Bogus" }
    try { dnsPolicy = "Bogus" }
    try { containers = { { name = "a", image = "x", ports = { { containerPort = 0 } } } } }
    try { containers = { { name = "a", image = "x", ports = { { containerPort = 70000 } } } } }
    try { containers = { { name = "a", image = "x", env = { { name = "" } } } } }
    try { containers = { { name = "a", image = "x", volumeMounts = { { name = "v", mountPath = "/x" } } } } }
    try { containers = { { name = "a", image = "x", imagePullPolicy = "Bogus" } } }
    try { containers = { { name = "a", image = "x", resources = { requests = { cpu = "2" },
      limits = { cpu = "1" } } } } }
    try { containers = { { name = "a", image = "x", resources = { requests = { cpu = "abc" } } } } }
    try { terminationGracePeriodSeconds = -1 }
    p:post(path, { metadata = { name = p:name "bad" } })
  end },
  { name = "most of a pod cannot be changed", run = function(p)
    local path = ready(p)
    p:setup("POST", path, samples.pod(p:name "a"))
    local item = path .. "/" .. p:name "a"
    p:patch("strategic", item, { spec = { containers = { { name = "main", image = "example.com/new:2" } } } })
    p:patch("merge", item, { spec = { restartPolicy = "Never" } }, { pick = without_diff })
    p:patch("merge", item, { spec = { nodeName = "x" } }, { pick = without_diff })
    p:patch("merge", item, { status = { phase = "Running" } })
  end },
  { name = "the status has its own way in", run = function(p)
    local path = ready(p)
    p:setup("POST", path, samples.pod(p:name "a"))
    local item = path .. "/" .. p:name "a"
    p:patch("strategic", item .. "/status", { status = { phase = "Running", podIP = "10.0.0.1",
      podIPs = { { ip = "10.0.0.1" } },
      conditions = { { type = "Ready", status = "True", lastTransitionTime = "2001-01-01T00:00:00Z" } } } })
    p:patch("strategic", item .. "/status", { status = { conditions = { { type = "Ready", status = "False" } } } })
    p:get(item .. "/status")
    p:patch("merge", item .. "/status", { spec = { restartPolicy = "Never" }, metadata = { labels = { l = "1" } } })
  end },
  { name = "binding", run = function(p)
    local path = ready(p)
    p:setup("POST", path, samples.pod(p:name "a"))
    local item = path .. "/" .. p:name "a"
    p:post(item .. "/binding", binding(p))
    p:post(item .. "/binding", binding(p))
    p:get(item)
    p:post(path .. "/" .. p:name "zzz" .. "/binding", binding(p, "zzz"))
  end },
  { name = "deletion leaves time to end", run = function(p)
    local path = ready(p)
    p:setup("POST", path, samples.pod(p:name "a", nil, { nodeName = p:name "node" }))
    local item = path .. "/" .. p:name "a"
    local first = p:delete(item)
    local object = first.json.metadata
    local left = seconds(object.deletionTimestamp) - seconds(object.creationTimestamp)
    p:note("thirty seconds later", left >= 30 and left <= 33)
    p:delete(item)
    p:delete(item .. "?gracePeriodSeconds=60")
    p:delete(item .. "?gracePeriodSeconds=5")
    p:delete(item .. "?gracePeriodSeconds=0")
    p:get(item)
  end },
  { name = "a pod without a node goes at once", run = function(p)
    local path = ready(p)
    p:setup("POST", path, samples.pod(p:name "a"))
    p:delete(path .. "/" .. p:name "a")
    p:get(path .. "/" .. p:name "a")
  end },
  { name = "eviction", run = function(p)
    local path = ready(p)
    p:setup("POST", path, samples.pod(p:name "a", { labels = { app = "x" } }))
    p:setup("POST", path, samples.pod(p:name "b", { labels = { app = "y" } }, { nodeName = p:name "node" }))
    p:setup("POST", p:path("/apis/policy/v1", "poddisruptionbudgets"), { metadata = { name = p:name "budget" },
      spec = { minAvailable = 1, selector = { matchLabels = { app = "y" } } } })
    p:patch("merge", path .. "/" .. p:name "b" .. "/status", { status = { phase = "Running", conditions = {
      { type = "Ready", status = "True" } } } }, { quiet = true })
    local function evict(label)
      p:post(path .. "/" .. p:name(label) .. "/eviction", { apiVersion = "policy/v1", kind = "Eviction",
        metadata = { name = p:name(label) } })
    end
    evict "a"
    p:get(path .. "/" .. p:name "a")
    evict "b"
    evict "zzz"
  end },
  { name = "logs and the like need a node", run = function(p)
    local path = ready(p)
    p:setup("POST", path, samples.pod(p:name "a"))
    p:get(path .. "/" .. p:name "a" .. "/log")
    p:get(path .. "/" .. p:name "zzz" .. "/log")
  end },
}
