-- What is special about single built-in kinds.
local json = require "spec.probes.json"
local samples = require "spec.probes.samples"

local lease_version = "/apis/coordination.k8s.io/v1"
local rbac = "/apis/rbac.authorization.k8s.io/v1"

local function deployments(p)
  p:setup("POST", p:path("/apis/apps/v1", "deployments"), samples.deployment(p:name "d"))
  return p:path("/apis/apps/v1", "deployments", p:name "d")
end

local function generation(v) return v.metadata and v.metadata.generation or v end

return {
  { name = "the generation of a deployment", run = function(p)
    local path = deployments(p)
    p:patch("merge", path, { metadata = { annotations = { a = "1" } } }, { pick = generation })
    p:patch("merge", path, { metadata = { labels = { a = "1" } } }, { pick = generation })
    p:patch("merge", path .. "/status", { status = { replicas = 3 } }, { pick = generation })
    p:patch("merge", path, { spec = { replicas = 3 } }, { pick = generation })
    p:patch("merge", path, { status = { replicas = 9 } })
    p:patch("merge", path .. "/status", { metadata = { labels = { s = "1" }, annotations = { s = "1" } },
      spec = { replicas = 7 }, status = { replicas = 4 } })
  end },
  { name = "the selector of a deployment", run = function(p)
    local path = deployments(p)
    p:patch("merge", path, { spec = { selector = { matchLabels = { app = "other" } } } })
    local d = samples.deployment(p:name "e")
    d.spec.template.metadata.labels = { other = "x" }
    p:post(p:path("/apis/apps/v1", "deployments"), d)
    d.spec.selector = nil
    p:post(p:path("/apis/apps/v1", "deployments"), d)
    d.spec = json.object {}
    p:post(p:path("/apis/apps/v1", "deployments"), d)
    p:patch("merge", path, { spec = { replicas = -1 } })
    p:patch("merge", path, { spec = { strategy = { type = "Bogus" } } })
  end },
  { name = "the scale of a deployment", run = function(p)
    local path = deployments(p)
    local scale = p:get(path .. "/scale").json
    p:patch("merge", path .. "/scale", { spec = { replicas = 5 } })
    p:put(path .. "/scale", scale)
    scale.metadata.resourceVersion = nil
    scale.spec.replicas = 2
    p:put(path .. "/scale", scale)
    p:patch("merge", path .. "/scale", { spec = { replicas = -1 } })
    p:get(path)
    p:get(p:path("/apis/apps/v1", "deployments", p:name "zzz") .. "/scale")
  end },
  { name = "secrets", run = function(p)
    local path = p:core "secrets"
    p:post(path, { metadata = { name = p:name "a" }, stringData = { k = "v" }, data = { k = "eA==", l = "eQ==" } })
    p:post(path, { metadata = { name = p:name "b" }, data = { k = "%%%" } })
    p:post(path, { metadata = { name = p:name "c" }, data = { k = "eA" } })
    p:post(path, { metadata = { name = p:name "d" }, type = "kubernetes.io/tls" })
    p:post(path, { metadata = { name = p:name "e" }, type = "kubernetes.io/dockerconfigjson", stringData = {
      [".dockerconfigjson"] = "x" } })
    p:patch("merge", path .. "/" .. p:name "a", { type = "other" })
    p:patch("merge", path .. "/" .. p:name "a", { stringData = { n = "new" } })
  end },
  { name = "leases", run = function(p)
    local path = p:path(lease_version, "leases")
    local name = p:name "a"
    local function lease(spec, metadata)
      local object = { apiVersion = "coordination.k8s.io/v1", kind = "Lease", metadata = metadata or {}, spec = spec }
      object.metadata.name = name
      return object
    end
    p:put(path .. "/" .. name, lease { holderIdentity = "me", leaseDurationSeconds = 15,
      renewTime = "2001-01-01T00:00:00.000000Z" })
    p:put(path .. "/" .. name, lease { holderIdentity = "you" })
    local object = p:get(path .. "/" .. name).json
    object.spec.holderIdentity = "you"
    p:put(path .. "/" .. name, object)
    p:put(path .. "/" .. name, object)
    p:post(path, { metadata = { name = p:name "b" }, spec = { renewTime = "2001-01-01T00:00:00Z" } })
    p:post(path, { metadata = { name = p:name "c" }, spec = { leaseDurationSeconds = 0 } })
    p:post(path, { metadata = { name = p:name "d" }, spec = { leaseTransitions = -1 } })
    p:post(path, { metadata = { name = p:name "e" }, spec = { renewTime = "2001-01-01T00:00:00.123456+01:00" } })
  end },
  { name = "events in both views", run = function(p)
    local core, new = p:core "events", p:path("/apis/events.k8s.io/v1", "events")
    p:post(core, { metadata = { name = p:name "a" }, reason = "Because", type = "Normal", message = "text", count = 3,
      firstTimestamp = "2001-01-01T00:00:00Z", lastTimestamp = "2001-01-01T00:00:01Z", source = { component = "me" },
      involvedObject = { kind = "Pod", name = "x", namespace = p:namespace() } })
    p:get(new .. "/" .. p:name "a")
    p:post(new, { metadata = { name = p:name "b" }, reason = "Because", type = "Warning", note = "text",
      eventTime = "2001-01-01T00:00:00.000000Z", reportingController = "example.com/me", reportingInstance = "me-1",
      action = "Doing", regarding = { kind = "Pod", name = "x", namespace = p:namespace() } })
    p:get(core .. "/" .. p:name "b")
    p:patch("strategic", core .. "/" .. p:name "a", { count = 4, lastTimestamp = "2001-01-01T00:00:02Z" })
    p:get(core)
    p:get(new)
    p:get("/apis/events.k8s.io/v1/events?fieldSelector=metadata.namespace%3D" .. p:namespace())
  end },
  { name = "events that are refused", run = function(p)
    local core, new = p:core "events", p:path("/apis/events.k8s.io/v1", "events")
    p:post(core, { metadata = { name = p:name "a" }, involvedObject = { kind = "Pod", name = "x",
      namespace = "other" } })
    p:post(core, { metadata = { name = p:name "a" } })
    p:post(core, { metadata = { name = p:name "c" }, involvedObject = { namespace = p:namespace() } })
    p:post(new, { metadata = { name = p:name "b" } })
    p:post(new, { metadata = { name = p:name "b" }, reason = "R", type = "Bogus",
      eventTime = "2001-01-01T00:00:00.000000Z", reportingController = "example.com/me",
      reportingInstance = "me-1", action = "A", regarding = { kind = "Pod", name = "x", namespace = p:namespace() } })
  end },
  { name = "services", run = function(p)
    local path = p:core "services"
    p:post(path, { metadata = { name = p:name "a" }, spec = { selector = { a = "b" }, ports = { { port = 80 } } } })
    p:post(path, { metadata = { name = p:name "b" }, spec = { ports = { { port = 80 }, { port = 81 } } } })
    p:post(path, { metadata = { name = p:name "c" }, spec = {} })
    p:post(path, { metadata = { name = p:name "d" }, spec = { clusterIP = "None", selector = { a = "b" } } })
    p:post(path, { metadata = { name = p:name "e" }, spec = { type = "ExternalName", externalName = "example.com" } })
    p:post(path, { metadata = { name = p:name "f" }, spec = { type = "Bogus", ports = { { port = 80 } } } })
    p:post(path, { metadata = { name = p:name "g" }, spec = { ports = { { port = 0 } } } })
    p:patch("merge", path .. "/" .. p:name "a", { spec = { clusterIP = "10.1.2.3" } })
  end },
  { name = "jobs and cron jobs", run = function(p)
    local pod = { spec = { restartPolicy = "Never", containers = { samples.container "main" } } }
    local jobs, crons = p:path("/apis/batch/v1", "jobs"), p:path("/apis/batch/v1", "cronjobs")
    p:post(jobs, { metadata = { name = p:name "a" }, spec = { template = pod } })
    p:post(jobs, { metadata = { name = p:name "b" }, spec = { template = { spec = { containers = {
      samples.container "main" } } } } })
    p:patch("merge", jobs .. "/" .. p:name "a", { spec = { suspend = true } }, { pick = generation })
    p:patch("merge", jobs .. "/" .. p:name "a", { spec = { completions = 5 } })
    p:post(crons, { metadata = { name = p:name "c" }, spec = { schedule = "*/5 * * * *", jobTemplate = {
      spec = { template = pod } } } })
    p:post(crons, { metadata = { name = p:name "d" }, spec = { schedule = "bogus", jobTemplate = {
      spec = { template = pod } } } })
    p:setup("DELETE", jobs .. "/" .. p:name "a" .. "?propagationPolicy=Background")
  end },
  { name = "sets", run = function(p)
    local template = { metadata = { labels = { app = "x" } }, spec = { containers = { samples.container "main" } } }
    local selector = { matchLabels = { app = "x" } }
    p:post(p:path("/apis/apps/v1", "statefulsets"), { metadata = { name = p:name "a" }, spec = { serviceName = "s",
      selector = selector, template = template } })
    p:post(p:path("/apis/apps/v1", "daemonsets"), { metadata = { name = p:name "b" }, spec = { selector = selector,
      template = template } })
    p:post(p:path("/apis/apps/v1", "replicasets"), { metadata = { name = p:name "c" }, spec = { selector = selector,
      template = template } })
    p:patch("merge", p:path("/apis/apps/v1", "statefulsets", p:name "a"), { spec = { serviceName = "t" } })
  end },
  { name = "roles and bindings", run = function(p)
    local path = p:path(rbac, "roles")
    p:post(path, { metadata = { name = p:name "a" }, rules = { { apiGroups = { "" }, resources = { "pods" },
      verbs = { "get" } } } })
    p:post(path, { metadata = { name = "system:x:" .. p:name "b" }, rules = { { resources = { "pods" } } } })
    p:post(p:path(rbac, "rolebindings"), { metadata = { name = p:name "c" }, roleRef = { kind = "Role",
      name = p:name "a", apiGroup = "rbac.authorization.k8s.io" }, subjects = { { kind = "ServiceAccount",
      name = "default" } } })
    p:post(p:path(rbac, "rolebindings"), { metadata = { name = p:name "d" }, roleRef = { kind = "Role",
      name = p:name "a", apiGroup = "rbac.authorization.k8s.io" }, subjects = { { kind = "User", name = "me" } } })
    p:patch("merge", p:path(rbac, "rolebindings", p:name "d"), { roleRef = { kind = "Role", name = "other",
      apiGroup = "rbac.authorization.k8s.io" } })
  end },
  { name = "budgets, claims, quotas and ingresses", run = function(p)
    p:post(p:path("/apis/policy/v1", "poddisruptionbudgets"), { metadata = { name = p:name "a" },
      spec = { maxUnavailable = "50%", selector = { matchLabels = { a = "b" } } } })
    p:release(p:core("persistentvolumeclaims", p:name "b"))
    p:post(p:core "persistentvolumeclaims", { metadata = { name = p:name "b" }, spec = {
      accessModes = { "ReadWriteOnce" }, resources = { requests = { storage = "1Gi" } } } })
    p:post(p:core "persistentvolumeclaims", { metadata = { name = p:name "c" }, spec = json.object {} })
    p:post(p:core "resourcequotas", { metadata = { name = p:name "d" }, spec = { hard = { pods = "10" } } })
    p:post(p:path("/apis/networking.k8s.io/v1", "ingresses"), { metadata = { name = p:name "e" }, spec = {
      rules = { { host = "example.com", http = { paths = { { path = "/", pathType = "Prefix", backend = { service = {
        name = "s", port = { number = 80 } } } } } } } } } })
    p:post(p:path("/apis/networking.k8s.io/v1", "networkpolicies"), { metadata = { name = p:name "f" },
      spec = { podSelector = json.object {} } })
    p:post(p:path("/apis/autoscaling/v2", "horizontalpodautoscalers"), { metadata = { name = p:name "g" },
      spec = { maxReplicas = 3, scaleTargetRef = { kind = "Deployment", name = "x", apiVersion = "apps/v1" } } })
    p:get(p:path("/apis/autoscaling/v1", "horizontalpodautoscalers", p:name "g"))
  end },
  { name = "reviews", run = function(p)
    local version = "/apis/authorization.k8s.io/v1/"
    p:post(version .. "selfsubjectaccessreviews", { apiVersion = "authorization.k8s.io/v1",
      kind = "SelfSubjectAccessReview", spec = { resourceAttributes = { verb = "get", resource = "pods",
        namespace = "default" } } }, { pick = function(v) v.status.reason = nil return v end })
    p:post(version .. "selfsubjectaccessreviews", { spec = { nonResourceAttributes = { path = "/x", verb = "get" } } },
      { pick = function(v) v.status.reason = nil return v end })
    p:post(version .. "selfsubjectaccessreviews", { spec = json.object {} })
    p:post("/apis/authentication.k8s.io/v1/tokenreviews", { spec = { token = "nope" } },
      { pick = function(v) v.status.error = nil return v end })
    p:post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, { pick = function(v)
      return json.object { kind = v.kind, user = json.get(v, "status", "userInfo", "username") ~= nil }
    end })
  end },
}
