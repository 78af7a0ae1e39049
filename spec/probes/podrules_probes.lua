-- The rules of pod specs, in pods and in templates: probes, hooks, ports of nodes, places, variables
-- and volumes.
local json = require "spec.probes.json"
local samples = require "spec.probes.samples"

local function ready(p)
  p:poll(p:core("serviceaccounts", "default"), function(a) return a.status == 200 end, { quiet = true })
  return p:core "pods"
end

-- For `pick`: of what was accepted the part that a rule is about, refusals whole.
local function spec_only(v) return v.kind == "Pod" and v.spec or v end

local function tries(p)
  local path = ready(p)
  local function try(spec) p:post(path .. "?dryRun=All", samples.pod(p:name "a", nil, spec), { pick = spec_only }) end
  local function container(more)
    local c = samples.container "main"
    for key, value in pairs(more) do c[key] = value end
    try { containers = { c } }
  end
  return try, container
end

local function get(more)
  local probe = { httpGet = { port = 80 } }
  for key, value in pairs(more or {}) do probe[key] = value end
  return probe
end

return {
  { name = "probes have one handler", run = function(p)
    local _, container = tries(p)
    container { livenessProbe = json.object {} }
    container { livenessProbe = { exec = { command = { "x" } }, tcpSocket = { port = 1 }, grpc = { port = 2 } } }
    container { readinessProbe = { exec = json.object {} } }
    container { startupProbe = { grpc = { port = 0 } } }
    container { startupProbe = { grpc = { port = 99, service = "s" } } }
  end },
  { name = "probes ask ports", run = function(p)
    local _, container = tries(p)
    for _, port in ipairs { 0, 65536, "web", "80", "Not_A_Port", "a--b", "-a", ("x"):rep(16), "" } do
      container { livenessProbe = { tcpSocket = { port = port } } }
    end
    container { readinessProbe = { httpGet = { port = 80, path = "", scheme = "" } } }
    container { readinessProbe = { httpGet = { port = "web", path = "x", scheme = "FTP" } } }
    container { readinessProbe = { httpGet = { port = 80, httpHeaders = { { name = "X Y", value = "1" },
      { name = "", value = "2" }, { name = "X-Y", value = "3" } } } } }
  end },
  { name = "probes count", run = function(p)
    local _, container = tries(p)
    for _, name in ipairs { "initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold",
      "failureThreshold", "terminationGracePeriodSeconds" } do
      container { livenessProbe = get { [name] = -1 } }
      container { readinessProbe = get { [name] = 0 } }
      container { startupProbe = get { [name] = 2 } }
    end
    container { readinessProbe = get { successThreshold = 3, terminationGracePeriodSeconds = 5 } }
  end },
  { name = "hooks have one handler", run = function(p)
    local try, container = tries(p)
    container { lifecycle = { postStart = json.object {}, preStop = { exec = { command = { "x" } } } } }
    container { lifecycle = { postStart = { httpGet = { port = "web" } }, preStop = { tcpSocket = { port = 0 } } } }
    container { lifecycle = { preStop = { sleep = { seconds = 31 } } } }
    container { lifecycle = { preStop = { sleep = { seconds = -1 }, exec = { command = { "x" } } } } }
    container { lifecycle = { preStop = { sleep = { seconds = 0 } } } }
    try { terminationGracePeriodSeconds = 5, containers = { { name = "main", image = "x",
      lifecycle = { preStop = { sleep = { seconds = 6 } } } } } }
  end },
  { name = "containers that end first have no probes", run = function(p)
    local try = tries(p)
    local function init(more)
      local c = samples.container "first"
      for key, value in pairs(more) do c[key] = value end
      try { initContainers = { c } }
    end
    init { livenessProbe = get(), readinessProbe = get(), startupProbe = get(),
      lifecycle = { preStop = { exec = { command = { "x" } } } } }
    init { restartPolicy = "Always", livenessProbe = get { successThreshold = 2 } }
    init { restartPolicy = "Always", livenessProbe = get(), lifecycle = { preStop = json.object {} } }
  end },
  { name = "a port of the node is had once", run = function(p)
    local try = tries(p)
    local function c(name, ...) return { name = name, image = "x", ports = { ... } } end
    local function port(number, more)
      local t = { containerPort = 80, hostPort = number }
      for key, value in pairs(more or {}) do t[key] = value end
      return t
    end
    try { containers = { c("a", port(0)), c("b", port(-1)), c("c", port(65536)) } }
    try { containers = { c("a", port(8080)), c("b", port(8080)) } }
    try { containers = { c("a", port(8080), port(8080, { protocol = "UDP" }), port(8080)) } }
    try { initContainers = { c("i", port(8080)), c("j", port(8080), port(8080)) }, containers = { c("a", port(8080)) } }
    try { containers = { c("a", port(1, { name = "web" }), port(2, { name = "web" }), port(3, { name = "Bad_" }),
      port(4, { name = "Bad_" })) } }
  end },
  { name = "nodes are selected by labels", run = function(p)
    local try = tries(p)
    try { nodeSelector = { disk = "ssd", ["example.com/zone"] = "" } }
    try { nodeSelector = { ["Bad Key"] = "x" } }
    try { nodeSelector = { disk = "not a value" } }
    -- One at a time: the server looks at a map in any order.
    try { nodeSelector = { ["a/b/c"] = "x" } }
    try { nodeSelector = { [""] = "y" } }
  end },
  { name = "tolerations", run = function(p)
    local try = tries(p)
    local function tolerate(t) try { tolerations = { t } } end
    tolerate { key = "a", operator = "Equal", value = "b", effect = "NoSchedule" }
    tolerate { operator = "Exists" }
    tolerate { key = "a" }
    tolerate { operator = "Equal", value = "b" }
    tolerate { value = "b" }
    tolerate { key = "Bad Key", operator = "Exists" }
    tolerate { key = "a", operator = "Bogus" }
    tolerate { key = "a", operator = "Gt", value = "5" }
    tolerate { key = "a", operator = "Lt", value = "five" }
    tolerate { key = "a", operator = "Exists", value = "b" }
    tolerate { key = "a", operator = "Equal", value = "not a value" }
    tolerate { key = "a", operator = "Exists", effect = "Bogus" }
    tolerate { key = "a", operator = "Exists", effect = "NoSchedule", tolerationSeconds = 5 }
    tolerate { key = "a", operator = "Exists", effect = "NoExecute", tolerationSeconds = -5 }
    tolerate { key = "a", operator = "Exists", tolerationSeconds = 0 }
  end },
  { name = "names and times of a spec", run = function(p)
    local try = tries(p)
    try { nodeName = "Bad_Node", hostname = "a.b", subdomain = "Bad_", activeDeadlineSeconds = 0 }
    try { nodeName = "a.b", hostname = "a", subdomain = "b", activeDeadlineSeconds = 2147483647 }
    try { activeDeadlineSeconds = 2147483648, schedulerName = "any thing" }
  end },
  { name = "variables come from somewhere", run = function(p)
    local _, container = tries(p)
    local function from(source, value)
      container { env = { { name = "A", value = value, valueFrom = source } } }
    end
    from(json.object {})
    from({ configMapKeyRef = { name = "c", key = "k" } })
    from({ configMapKeyRef = { name = "c", key = "k" } }, "x")
    from { configMapKeyRef = { name = "c", key = "k" }, secretKeyRef = { name = "s", key = "k" } }
    from { configMapKeyRef = { name = "Bad_", key = "not a key" } }
    from { secretKeyRef = { name = "", key = "" } }
    for _, path in ipairs { "metadata.name", "spec.host", "status.podIPs", "metadata.labels", "status.phase", "bogus",
      "", "metadata.labels['a']", "metadata.annotations['A/b']", "metadata.labels['not a key']",
      "metadata.name['a']" } do
      from { fieldRef = { fieldPath = path } }
    end
    from { fieldRef = { apiVersion = "v2", fieldPath = "metadata.name" } }
  end },
  { name = "variables come from whole maps", run = function(p)
    local _, container = tries(p)
    container { envFrom = { { prefix = "P_", configMapRef = { name = "c" } }, { secretRef = { name = "s" } } } }
    container { envFrom = { { prefix = "P=" }, { configMapRef = { name = "c" }, secretRef = { name = "s" } } } }
    container { envFrom = { { configMapRef = { name = "" } }, { secretRef = { name = "Bad_" } } } }
  end },
  { name = "volumes of the usual kinds", run = function(p)
    local try = tries(p)
    local function volume(source)
      source.name = source.name or "v"
      try { volumes = { source }, containers = { { name = "a", image = "x", volumeMounts = { { name = "v",
        mountPath = "/v" } } } } }
    end
    volume { configMap = { name = "", defaultMode = 512 } }
    volume { configMap = { name = "c", defaultMode = 511, items = { { key = "k", path = "p", mode = 0 } } } }
    volume { configMap = { name = "c", items = { { key = "", path = "" }, { key = "k", path = "/p", mode = -1 } } } }
    volume { secret = { secretName = "s", items = { { key = "k", path = "a/../b" }, { key = "k", path = "..a" },
      { key = "k", path = "../a" } } } }
    volume { secret = { secretName = "", defaultMode = -1 } }
    volume { persistentVolumeClaim = { claimName = "" } }
    volume { persistentVolumeClaim = { claimName = "c", readOnly = true } }
    volume { emptyDir = { medium = "Memory", sizeLimit = "1Gi" } }
    volume { emptyDir = { sizeLimit = "-1" } }
    volume { hostPath = { path = "" } }
    volume { hostPath = { path = "/a/..", type = "Bogus" } }
    volume { hostPath = { path = "/a", type = "Directory" } }
    volume { name = "w", emptyDir = json.object {}, configMap = { name = "" } }
  end },
  { name = "amounts and policies of containers", run = function(p)
    local _, container = tries(p)
    container { resources = { limits = { cpu = "-1" } } }
    container { resources = { requests = { memory = "-1Mi" } } }
    container { terminationMessagePolicy = "Bogus" }
    container { terminationMessagePolicy = "", terminationMessagePath = "", imagePullPolicy = "" }
    container { volumeMounts = { { name = "", mountPath = "" } } }
  end },
  { name = "templates have the same rules", run = function(p)
    local template = { metadata = { labels = { app = "x" } }, spec = { nodeSelector = { ["Bad Key"] = "x" },
      serviceAccountName = "Bad_", containers = { { name = "a", image = "x", livenessProbe = json.object {} } } } }
    p:post(p:path("/apis/apps/v1", "deployments"), { metadata = { name = p:name "a" }, spec = {
      selector = { matchLabels = { app = "x" } }, template = template } })
    p:post(p:core "podtemplates", { metadata = { name = p:name "a" }, template = template })
    template.spec.restartPolicy = "Never"
    p:post(p:path("/apis/batch/v1", "jobs"), { metadata = { name = p:name "a" }, spec = { template = template } })
    p:post(p:path("/apis/batch/v1", "cronjobs"), { metadata = { name = p:name "a" }, spec = { schedule = "@daily",
      jobTemplate = { spec = { template = template } } } })
  end },
}
