-- Pods and their templates: rules between fields, what a change may do, and what the server warns about.
local json = require "spec.probes.json"
local samples = require "spec.probes.samples"

-- A refusal that shows how two structs differ is compared up to there.
local function refusal(v)
  if v.kind ~= "Status" then return "accepted" end
  for _, cause in ipairs(v.details and v.details.causes or {}) do
    if cause.message:find("may not change fields other than", 1, true) then
      cause.message, v.message = cause.message:match("^[^\n]*"), nil
    end
  end
  return v.message and samples.sorted_causes(v) or v
end

local function ready(p)
  p:poll(p:core("serviceaccounts", "default"), function(a) return a.status == 200 end, { quiet = true })
  return p:core "pods"
end

local function tries(p)
  local path = ready(p)
  return function(spec)
    p:post(path .. "?dryRun=All", samples.pod(p:name "a", nil, spec), { pick = refusal })
  end
end

local function container(more, name)
  local c = samples.container(name or "main")
  for key, value in pairs(more or {}) do c[key] = value end
  return c
end

return {
  { name = "pods and how they change", run = function(p)
    local path = ready(p)
    p:setup("POST", path, samples.pod(p:name "m", nil, { nodeName = "n", initContainers = { container(nil, "first") },
      volumes = { { name = "v", emptyDir = json.object {} } }, tolerations = { { key = "a", operator = "Exists",
        effect = "NoExecute", tolerationSeconds = 60 } } }))
    local function change(spec, kind)
      p:patch(kind or "strategic", path .. "/" .. p:name "m" .. "?dryRun=All", { spec = spec }, { pick = refusal })
    end
    change { containers = { { name = "main", image = "example.com/other:1" } } }
    change { containers = { { name = "main", image = "" } } }
    change { containers = { { name = "main", image = " x " } } }
    change { containers = { { name = "main", command = { "x" } } } }
    change { containers = { { name = "main", resources = { requests = { cpu = "1" } } } } }
    change { initContainers = { { name = "first", image = "example.com/other:1" } } }
    change { initContainers = { container(nil, "second") } }
    change { nodeName = "m" }
    change { serviceAccountName = "other" }
    change { nodeSelector = { a = "b" } }
    change { volumes = { { name = "w", emptyDir = json.object {} } } }
    change { restartPolicy = "Never" }
    change { priority = 5 }
    change { terminationGracePeriodSeconds = 5 }
    change { activeDeadlineSeconds = 5 }
    change { activeDeadlineSeconds = 0 }
    change({ tolerations = { { key = "b", operator = "Exists" } } }, "merge")
    change({ tolerations = { { key = "a", operator = "Exists", effect = "NoExecute", tolerationSeconds = 90 },
      { key = "node.kubernetes.io/not-ready", operator = "Exists", effect = "NoExecute", tolerationSeconds = 300 },
      { key = "node.kubernetes.io/unreachable", operator = "Exists", effect = "NoExecute",
        tolerationSeconds = 300 } } }, "merge")
    change({ tolerations = { { key = "a", operator = "Exists", effect = "NoExecute", tolerationSeconds = 60 },
      { key = "node.kubernetes.io/not-ready", operator = "Exists", effect = "NoExecute", tolerationSeconds = 300 },
      { key = "node.kubernetes.io/unreachable", operator = "Exists", effect = "NoExecute",
        tolerationSeconds = 300 }, { key = "c", operator = "Exists" } } }, "merge")
    change { hostname = "x" }
    change { enableServiceLinks = false }
    change({ containers = json.array {} }, "merge")
  end },
  { name = "pods and their nodes", run = function(p)
    local path = ready(p)
    local function bind(name, target, more)
      local binding = { apiVersion = "v1", kind = "Binding", metadata = { name = name }, target = target }
      for key, value in pairs(more or {}) do binding[key] = value end
      p:post(path .. "/" .. name .. "/binding", binding, { pick = samples.sorted_causes })
    end
    p:setup("POST", path, samples.pod(p:name "m"))
    p:setup("POST", path, samples.pod(p:name "g", nil, { schedulingGates = { { name = "e.com/g" } } }))
    bind(p:name "m", { kind = "Pod", name = "n" })
    bind(p:name "m", { kind = "Node" })
    bind(p:name "m", json.object {})
    bind(p:name "g", { kind = "Node", name = "n" })
    bind(p:name "m", { kind = "Node", name = "n" })
    bind(p:name "m", { kind = "Node", name = "o" })
    p:setup("POST", path, samples.pod(p:name "d", { finalizers = { "e.com/f" } }))
    p:release(path .. "/" .. p:name "d")
    p:setup("DELETE", path .. "/" .. p:name "d")
    bind(p:name "d", { kind = "Node", name = "n" })
    bind(p:name "z", { kind = "Node", name = "n" })
  end },
  { name = "pods and their deadlines", run = function(p)
    local path = ready(p)
    p:setup("POST", path, samples.pod(p:name "m", nil, { activeDeadlineSeconds = 50 }))
    local function change(seconds)
      p:patch("merge", path .. "/" .. p:name "m" .. "?dryRun=All", { spec = { activeDeadlineSeconds = seconds } },
        { pick = refusal })
    end
    change(60)
    change(40)
    change(-1)
    change(json.null)
  end },
  { name = "names within a pod", run = function(p)
    local try = tries(p)
    local v = { name = "v", emptyDir = json.object {} }
    try { containers = { container(), container() } }
    try { containers = { container() }, initContainers = { container() } }
    try { initContainers = { container(nil, "a"), container(nil, "a") } }
    try { volumes = { v, v } }
    try { containers = { container { volumeMounts = { { name = "none", mountPath = "/a" } } } } }
    try { volumes = { v }, containers = { container { volumeMounts = { { name = "v", mountPath = "/a" },
      { name = "v", mountPath = "/a" } } } } }
    try { volumes = { v }, containers = { container { volumeMounts = { { name = "v", mountPath = "a:b" } } } } }
    try { volumes = { v }, containers = { container { volumeMounts = { { name = "v", mountPath = "a" } } } } }
    try { containers = { container { ports = { { name = "web", containerPort = 80 }, { name = "web",
      containerPort = 81 } } } } }
    try { initContainers = { container({ restartPolicy = "Never" }, "a") } }
    try { containers = { container { restartPolicy = "Always" } } }
    try { containers = { container { image = " x" } } }
    try { serviceAccountName = "a", serviceAccount = "b" }
  end },
  { name = "pods that are warned about", run = function(p)
    local try = tries(p)
    try { containers = { container { env = { { name = "A", value = "1" }, { name = "A", value = "2" },
      { name = "A", value = "$(A)3" } } } } }
    try { containers = { container { ports = { { containerPort = 80 }, { containerPort = 80 },
      { containerPort = 80, hostPort = 8080 }, { containerPort = 80, protocol = "UDP" } } } } }
    try { containers = { container { ports = { { name = "web", containerPort = 80 } } },
      container({ ports = { { name = "web", containerPort = 81 } } }, "second") } }
    try { initContainers = { container({ ports = { { name = "web", containerPort = 80 } } }, "first") },
      containers = { container { ports = { { name = "web", containerPort = 81 } } } } }
    try { imagePullSecrets = { { name = "a" }, { name = "a" }, { name = "" } } }
    try { terminationGracePeriodSeconds = -1 }
    try { containers = { container { resources = { limits = { memory = "1500m" }, requests = { memory = "100m",
      ["ephemeral-storage"] = "0.5" } } } } }
    try { nodeSelector = { ["beta.kubernetes.io/os"] = "linux" } }
  end },
  { name = "templates that are warned about", run = function(p)
    local spec = { terminationGracePeriodSeconds = -1, containers = { container { env = { { name = "A", value = "1" },
      { name = "A", value = "2" } } } } }
    local template = { metadata = { labels = { a = "b" } }, spec = spec }
    local function post(version, plural, body)
      body.metadata = { name = p:name "a" }
      p:post(p:path(version, plural) .. "?dryRun=All", body, { pick = refusal })
    end
    for _, plural in ipairs { "deployments", "replicasets", "statefulsets", "daemonsets" } do
      post("/apis/apps/v1", plural, { spec = { selector = { matchLabels = { a = "b" } }, template = template } })
    end
    post("/api/v1", "replicationcontrollers", { spec = { selector = { a = "b" }, template = template } })
    post("/api/v1", "podtemplates", { template = template })
    spec.restartPolicy = "Never"
    post("/apis/batch/v1", "jobs", { spec = { template = template } })
    post("/apis/batch/v1", "cronjobs", { spec = { schedule = "@daily", jobTemplate = { spec = {
      template = template } } } })
  end },
  { name = "names that are no labels", run = function(p)
    local template = { metadata = { labels = { a = "b" } }, spec = { containers = { container() } } }
    local name = p:name "a" .. ".b"
    local function post(version, plural, body)
      body.metadata = { name = name }
      p:post(p:path(version, plural) .. "?dryRun=All", body, { pick = refusal })
    end
    ready(p)
    post("/api/v1", "pods", samples.pod(name))
    for _, plural in ipairs { "deployments", "replicasets", "statefulsets", "daemonsets" } do
      post("/apis/apps/v1", plural, { spec = { selector = { matchLabels = { a = "b" } }, template = template } })
    end
    post("/api/v1", "replicationcontrollers", { spec = { selector = { a = "b" }, template = template } })
    post("/api/v1", "podtemplates", { template = template })
    template.spec.restartPolicy = "Never"
    post("/apis/batch/v1", "jobs", { spec = { template = template } })
    post("/apis/batch/v1", "cronjobs", { spec = { schedule = "@daily", jobTemplate = { spec = {
      template = template } } } })
  end },
}
