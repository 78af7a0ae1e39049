-- Rules of single kinds: generations, leases, events, reviews, secrets, services, workloads.
local json = require "spec.probes.json"
local samples = require "spec.probes.samples"

local config, container = samples.config, samples.container

local function generation(v)
  return v.code and v or json.object { generation = v.metadata.generation, deleting = v.metadata.deletionTimestamp }
end

local function workload(name, more)
  local spec = { selector = { matchLabels = { app = name } },
    template = { metadata = { labels = { app = name } }, spec = { containers = { container "main" } } } }
  for key, value in pairs(more or {}) do spec[key] = value end
  return { metadata = { name = name }, spec = spec }
end

return {
  { name = "generations of every kind", run = function(p)
    local name = p:name "g"
    local template = workload(name).spec.template
    template.spec.restartPolicy = "Never"
    local kinds = {
      { "/apis/apps/v1", "replicasets", workload(name), { spec = { replicas = 3 } }, { status = { replicas = 2 } } },
      { "/apis/apps/v1", "statefulsets", workload(name, { serviceName = "s" }), { spec = { replicas = 3 } },
        { status = { replicas = 2 } } },
      { "/apis/apps/v1", "daemonsets", workload(name), { spec = { minReadySeconds = 3 } },
        { status = { numberReady = 2 } } },
      { "/apis/batch/v1", "jobs", { metadata = { name = name }, spec = { template = template, suspend = true } },
        { spec = { suspend = false } }, { status = { ready = 0 } } },
      { "/apis/batch/v1", "cronjobs", { metadata = { name = name }, spec = { schedule = "* * * * *",
        suspend = true, jobTemplate = { spec = { template = template } } } }, { spec = { schedule = "1 * * * *" } },
        { status = { lastScheduleTime = "2001-01-01T00:00:00Z" } } },
      { "/api/v1", "replicationcontrollers", { metadata = { name = name }, spec = { selector = { app = name },
        template = workload(name).spec.template } }, { spec = { replicas = 2 } }, { status = { replicas = 0 } } },
      { "/api/v1", "services", { metadata = { name = name }, spec = { ports = { { port = 80 } } } },
        { spec = { selector = { a = "b" } } } },
      { "/api/v1", "pods", samples.pod(name), { spec = { activeDeadlineSeconds = 5 } },
        { status = { message = "m" } } },
      { "/api/v1", "configmaps", config(name), { data = { k = "v" } } },
      { "/api/v1", "serviceaccounts", { metadata = { name = name } }, { automountServiceAccountToken = false } },
      { "/apis/policy/v1", "poddisruptionbudgets", { metadata = { name = name }, spec = { minAvailable = 1,
        selector = { matchLabels = { a = "b" } } } }, { spec = { minAvailable = 2 } },
          { status = { observedGeneration = 9 } } },
      { "/apis/networking.k8s.io/v1", "networkpolicies", { metadata = { name = name },
        spec = { podSelector = json.object {} } },
        { spec = { podSelector = { matchLabels = { a = "b" } } } } },
      { "/apis/coordination.k8s.io/v1", "leases", { metadata = { name = name }, spec = { holderIdentity = "a" } },
        { spec = { holderIdentity = "b" } } },
    }
    for _, kind in ipairs(kinds) do
      local path = p:path(kind[1], kind[2])
      local one = path .. "/" .. name
      local pick = { pick = generation }
      p:post(path, kind[3], pick)
      p:patch("merge", one, { metadata = { labels = { l = "1" } } }, pick)
      p:patch("merge", one, { metadata = { annotations = { n = "1" } } }, pick)
      p:patch("merge", one, kind[4], pick)
      p:patch("merge", one, kind[4], pick)
      if kind[5] then
        p:patch("merge", one, kind[5], pick)
        p:patch("merge", one .. "/status", kind[5], pick)
        p:patch("merge", one .. "/status", { metadata = { labels = { t = "1" }, annotations = { t = "1" } } },
          { pick = function(v) return v.code and v or json.object { labels = v.metadata.labels,
            annotations = v.metadata.annotations } end })
      end
      p:patch("merge", one, { metadata = { finalizers = { "example.com/f" } } }, pick)
      p:release(one)
      p:delete(one, { propagationPolicy = "Background" }, pick)
    end
  end },
  { name = "metadata that a write of the status brings", run = function(p)
    local name = p:name "g"
    local objects = {
      { "/apis/apps/v1", "deployments", workload(name) },
      { "/api/v1", "services", { metadata = { name = name }, spec = { ports = { { port = 80 } } } } },
      { "/api/v1", "persistentvolumeclaims", { metadata = { name = name }, spec = { accessModes = { "ReadWriteOnce" },
        resources = { requests = { storage = "1Gi" } } } } },
      { "/api/v1", "resourcequotas", { metadata = { name = name }, spec = { hard = { pods = "5" } } } },
      { "/apis/networking.k8s.io/v1", "ingresses", { metadata = { name = name }, spec = { defaultBackend = {
        service = { name = "s", port = { number = 80 } } } } } },
      { "/apis/autoscaling/v2", "horizontalpodautoscalers", { metadata = { name = name }, spec = { maxReplicas = 2,
        scaleTargetRef = { kind = "Deployment", name = "x", apiVersion = "apps/v1" } } } },
    }
    local function pick(v)
      return v.code and v or json.object { labels = v.metadata.labels, annotations = v.metadata.annotations,
        finalizers = v.metadata.finalizers }
    end
    for _, object in ipairs(objects) do
      p:setup("POST", p:path(object[1], object[2]), object[3])
      local path = p:path(object[1], object[2], name)
      p:release(path)
      p:patch("merge", path .. "/status", { metadata = { labels = { t = "1" }, annotations = { t = "1" },
        finalizers = { "example.com/t" } } }, { pick = pick })
    end
    local space = "/api/v1/namespaces/" .. p:namespace()
    p:patch("merge", space .. "/status", { metadata = { labels = { t = "1" }, annotations = { t = "1" } } },
      { pick = pick })
    local w = samples.widgets(p)
    p:patch("merge",
      "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" .. w.plural .. "." .. w.group .. "/status",
      { metadata = { labels = { t = "1" }, annotations = { t = "1" } } }, { pick = pick })
  end },
  { name = "leases that are refused", run = function(p)
    local path, name = p:path("/apis/coordination.k8s.io/v1", "leases"), p:name "l"
    local function create(spec) p:post(path, { metadata = { name = name }, spec = spec }) end
    create { leaseDurationSeconds = 0 }
    create { leaseDurationSeconds = -1, leaseTransitions = -1 }
    create { leaseDurationSeconds = "15" }
    create { leaseDurationSeconds = 1.5 }
    create { acquireTime = "2001-01-01T00:00:00Z" }
    create { acquireTime = "2001-01-01T00:00:00.5Z" }
    create { renewTime = "now" }
    create { holderIdentity = "" }
    create { strategy = "Bogus" }
    create { preferredHolder = "x" }
    create { holderIdentity = "a", leaseDurationSeconds = 15, acquireTime = "2001-01-01T00:00:00.000000Z",
      renewTime = "2001-01-01T00:00:00.123456+01:00", leaseTransitions = 0 }
    local one = path .. "/" .. name
    local lease = p:get(one).json
    lease.spec.renewTime = "2001-01-01T00:00:01.000000Z"
    p:put(one, lease)
    p:put(one, lease)
    p:patch("merge", one, { spec = { leaseTransitions = -1 } })
    p:patch("merge", one, { spec = { leaseDurationSeconds = json.null, holderIdentity = "" } })
    p:patch("apply", one .. "?fieldManager=m", { apiVersion = "coordination.k8s.io/v1", kind = "Lease",
      metadata = { name = name }, spec = { holderIdentity = "b" } })
    p:put(path .. "/" .. p:name "m", { metadata = { name = p:name "m" }, spec = { holderIdentity = "z" } })
    p:delete(one)
  end },
  { name = "events of recorders", run = function(p)
    local core, new = p:core "events", p:path("/apis/events.k8s.io/v1", "events")
    local ns = p:namespace()
    local function event(name, more)
      local e = { metadata = { name = name }, involvedObject = { kind = "Pod", namespace = ns, name = "p" },
        reason = "r", message = "m", type = "Normal", count = 1, source = { component = "c" },
        firstTimestamp = "2001-01-01T00:00:00Z", lastTimestamp = "2001-01-01T00:00:00Z" }
      for key, value in pairs(more or {}) do e[key] = value end
      return e
    end
    local a = p:name "a"
    p:post(core, event(a))
    p:patch("strategic", core .. "/" .. a, { count = 2, lastTimestamp = "2001-01-01T00:00:09Z", message = "n" })
    p:patch("merge", core .. "/" .. a, { reason = "other", type = "Warning" })
    p:get(new .. "/" .. a)
    p:post(core, event(p:name "b", { type = "Bogus" }))
    p:post(core, event(p:name "c", { involvedObject = { kind = "Node", name = "n" } }))
    p:post(core, event(p:name "d", { involvedObject = { kind = "Pod", namespace = "other", name = "x" } }))
    p:post(core, { metadata = { generateName = p:name "e" .. "-" }, involvedObject = { namespace = ns } })
    local modern = { metadata = { name = p:name "f" }, eventTime = "2001-01-01T00:00:00.000000Z", action = "Do",
      reason = "R", type = "Normal", reportingController = "e.com/c", reportingInstance = "i", note = "n",
      regarding = { kind = "Pod", namespace = ns, name = "p", uid = "11111111-0000-0000-0000-000000000000" } }
    p:post(new, modern)
    p:patch("merge", new .. "/" .. p:name "f", { series = { count = 2,
      lastObservedTime = "2001-01-01T00:00:05.000000Z" } })
    p:patch("merge", new .. "/" .. p:name "f", { note = "changed" })
    p:patch("merge", new .. "/" .. p:name "f", { reason = "Changed" })
    p:patch("merge", new .. "/" .. p:name "f", { metadata = { labels = { a = "b" } } })
    p:get(core .. "/" .. p:name "f")
    modern.metadata.name, modern.note = p:name "g", ("x"):rep(1025)
    p:post(new, modern)
    modern.note, modern.action, modern.reportingInstance, modern.type = "n", nil, nil, "Odd"
    p:post(new, modern)
    modern.type, modern.action, modern.series = "Normal", "A", { count = 0 }
    p:post(new, modern)
    p:delete(core .. "?fieldSelector=involvedObject.kind%3DPod", nil,
      { pick = function(v) return #(v.items or {}) end })
  end },
  { name = "reviews of every kind", run = function(p)
    local base = "/apis/authorization.k8s.io/v1/"
    for _, spec in ipairs { json.object {}, { resourceAttributes = { verb = "get", resource = "pods" } },
      { resourceAttributes = { verb = "get" }, nonResourceAttributes = { path = "/x", verb = "get" } },
      { nonResourceAttributes = { path = "/healthz", verb = "get" } }, { resourceAttributes = json.object {} },
      { resourceAttributes = { namespace = "x", verb = "*", group = "apps", resource = "deployments",
        subresource = "scale",
        name = "n", version = "v1" } } } do
      p:post(base .. "selfsubjectaccessreviews", { spec = spec })
      p:post(base .. "subjectaccessreviews", { spec = spec })
    end
    p:post(base .. "selfsubjectrulesreviews", { spec = json.object {} })
    p:post(base .. "localsubjectaccessreviews", json.object {})
    p:post(p:path("/apis/authorization.k8s.io/v1", "localsubjectaccessreviews"), { spec = json.object {} })
    p:get(base .. "selfsubjectaccessreviews")
    p:post("/apis/authentication.k8s.io/v1/selfsubjectreviews", json.object {}, { pick = function(v)
      return v.kind end })
    p:post("/apis/authentication.k8s.io/v1/tokenreviews", { spec = json.object {} })
  end },
  { name = "secrets and config maps of every kind", run = function(p)
    local secrets, count = p:core "secrets", 0
    local function secret(kind, data, more)
      count = count + 1
      local s = { metadata = { name = p:name("s" .. count) }, type = kind, stringData = data }
      for key, value in pairs(more or {}) do s[key] = value end
      return p:post(secrets, s)
    end
    secret("kubernetes.io/tls", { ["tls.crt"] = "a" })
    secret("kubernetes.io/dockercfg", { [".dockercfg"] = "{}" })
    secret("kubernetes.io/dockerconfigjson", { [".dockerconfigjson"] = '{"auths":{}}' })
    secret("kubernetes.io/dockerconfigjson", { x = "y" })
    secret("kubernetes.io/basic-auth", { username = "u" })
    secret("kubernetes.io/basic-auth", { x = "y" })
    secret("kubernetes.io/ssh-auth", { x = "y" })
    secret("kubernetes.io/service-account-token", { x = "y" })
    secret("bootstrap.kubernetes.io/token", { x = "y" })
    secret("own/type", nil, { data = { ["bad key"] = "eA==" } })
    secret(nil, { a = "1" }, { immutable = true })
    local fixed = secrets .. "/" .. p:name("s" .. count)
    p:patch("merge", fixed, { stringData = { a = "2" } })
    p:patch("merge", fixed, { immutable = false })
    p:patch("merge", fixed, { metadata = { labels = { ok = "1" } } })
    local maps = p:core "configmaps"
    p:post(maps, { metadata = { name = p:name "m" }, data = { k = "v" }, binaryData = { k = "eA==" } })
    p:post(maps, { metadata = { name = p:name "m" }, data = { k = "v" }, binaryData = { b = "?" } })
    p:post(maps, { metadata = { name = p:name "m" }, data = { ["."] = "v", [".."] = "w", ["..x"] = "y" } },
      { pick = samples.sorted_causes })
    p:post(maps, { metadata = { name = p:name "m" }, data = { [("k"):rep(254)] = "v" } })
    p:post(maps, { metadata = { name = p:name "m" }, data = { k = "v" }, binaryData = { b = "eA==" },
      immutable = true })
    p:patch("merge", maps .. "/" .. p:name "m", { binaryData = { b = "eQ==" } })
    p:patch("merge", maps .. "/" .. p:name "m", { data = { k = json.null }, immutable = json.null })
  end },
  { name = "workloads that are refused", run = function(p)
    local name = p:name "d"
    local path = p:path("/apis/apps/v1", "deployments")
    local function deployment(spec, change)
      local d = workload(name, spec)
      if change then change(d.spec.template.spec) end
      p:post(path, d, { pick = samples.sorted_causes })
    end
    deployment { replicas = -1 }
    deployment { strategy = { type = "RollingUpdate", rollingUpdate = { maxSurge = 0, maxUnavailable = 0 } } }
    deployment { strategy = { rollingUpdate = { maxSurge = "x%", maxUnavailable = "200%" } } }
    deployment { strategy = { type = "Recreate", rollingUpdate = { maxSurge = 1 } } }
    deployment { progressDeadlineSeconds = 5, minReadySeconds = 5 }
    deployment { revisionHistoryLimit = -1, minReadySeconds = -1 }
    deployment { selector = json.object {} }
    deployment { selector = { matchExpressions = { { key = "app", operator = "Foo" } } } }
    deployment { selector = { matchExpressions = { { key = "app", operator = "In" } } } }
    deployment(nil, function(spec) spec.restartPolicy = "Never" end)
    deployment(nil, function(spec) spec.containers = json.array {} end)
    deployment(nil, function(spec) spec.containers = { container "a", container "a" } end)
    deployment(nil, function(spec) spec.containers[1].image = nil end)
    deployment(nil, function(spec) spec.containers[1].ports = { { containerPort = 70000 }, { containerPort = 0 } } end)
    deployment(nil, function(spec) spec.containers[1].ports = { { containerPort = 80, protocol = "X",
      name = "UP" } } end)
    deployment(nil, function(spec) spec.containers[1].env = { { name = "" }, { name = "a=b", value = "x" } } end)
    deployment(nil, function(spec) spec.containers[1].resources = { limits = { cpu = "1" },
      requests = { cpu = "2" } } end)
    deployment(nil, function(spec) spec.containers[1].resources = { limits = { cpu = "-1", memory = "x" } } end)
    deployment(nil, function(spec) spec.containers[1].imagePullPolicy = "Sometimes" end)
    deployment(nil, function(spec) spec.containers[1].volumeMounts = { { name = "none", mountPath = "" } } end)
    deployment(nil, function(spec) spec.volumes = { { name = "v" }, { name = "v", emptyDir = json.object {} } } end)
    deployment(nil, function(spec) spec.initContainers = { container "main" } end)
    deployment(nil, function(spec) spec.dnsPolicy = "X" end)
  end },
  { name = "services and jobs that are refused or changed", run = function(p)
    local services = p:core "services"
    local function service(name, spec) return p:post(services, { metadata = { name = name }, spec = spec },
      { pick = samples.sorted_causes }) end
    service("Bad.Name", { ports = { { port = 80 } } })
    service("1abc", { ports = { { port = 80 } } })
    service(p:name "a", { ports = json.array {} })
    service(p:name "a", { ports = { { port = 0 } } })
    service(p:name "a", { ports = { { port = 80 }, { port = 81 } } })
    service(p:name "a", { ports = { { name = "x", port = 80 }, { name = "x", port = 81 } } })
    service(p:name "a", { ports = { { port = 80, protocol = "FOO" } } })
    service(p:name "a", { type = "Foo", ports = { { port = 80 } } })
    service(p:name "a", { type = "ExternalName" })
    service(p:name "a", { type = "ExternalName", externalName = "a.example.com" })
    service(p:name "b", { clusterIP = "None", selector = { a = "b" } })
    service(p:name "c", { clusterIP = "bad", ports = { { port = 80 } } })
    service(p:name "c", { sessionAffinity = "ClientIP", ports = { { port = 80 } } })
    service(p:name "d", { ports = { { port = 80, targetPort = "not a name" } } })
    local c = services .. "/" .. p:name "c"
    p:patch("merge", c, { spec = { clusterIP = "10.0.0.200" } }, { pick = function(v) return v.code or 200 end })
    p:patch("merge", c, { spec = { sessionAffinity = "None" } })
    p:patch("merge", c, { spec = { type = "ExternalName", externalName = "x.example.com" } })
    local jobs = p:path("/apis/batch/v1", "jobs")
    local template = { spec = { restartPolicy = "Never", containers = { container "main" } } }
    local function job(spec) spec.template = spec.template or template
      return p:post(jobs, { metadata = { name = p:name "j" }, spec = spec }, { pick = function(v)
        return v.code and samples.sorted_causes(v) or 201 end }) end
    job { parallelism = -1, completions = -1, backoffLimit = -1, activeDeadlineSeconds = -1 }
    job { template = { spec = { containers = { container "main" } } } }
    job { template = { spec = { restartPolicy = "Always", containers = { container "main" } } } }
    job { completionMode = "Indexed" }
    job { manualSelector = true }
    job { ttlSecondsAfterFinished = -1 }
    job { suspend = true, completions = 2 }
    local one = jobs .. "/" .. p:name "j"
    local function pick(v) return v.code and v or v.spec.parallelism end
    p:patch("merge", one, { spec = { parallelism = 3 } }, { pick = pick })
  end },
  { name = "pods through their side doors", run = function(p)
    local name = p:name "p"
    local path = p:core("pods", name)
    p:post(p:core "pods", samples.pod(name, nil, { schedulingGates = { { name = "e.com/g" } } }))
    p:patch("merge", path, { spec = { schedulingGates = { { name = "e.com/g" }, { name = "e.com/h" } } } })
    p:patch("merge", path, { spec = { schedulingGates = json.array {} } })
    p:patch("strategic", path, { spec = { containers = { { name = "main", image = "example.com/main:2" } } } })
    p:patch("strategic", path, { spec = { containers = { container "second" } } })
    p:patch("merge", path, { spec = { tolerations = { { key = "t", operator = "Exists" } } } })
    p:patch("merge", path, { spec = { activeDeadlineSeconds = 100 } })
    p:patch("merge", path, { spec = { activeDeadlineSeconds = 200 } })
    p:patch("merge", path .. "/status", { status = { phase = "Odd", podIP = "x", conditions = { { type = "a" } } } })
    p:patch("merge", path .. "/status", { status = { phase = "Running", podIP = "10.1.2.3",
      containerStatuses = { { name = "main", ready = true, restartCount = 0, image = "i", imageID = "i" } } } })
    p:get(path)
  end },
  { name = "namespaces in their corners", run = function(p)
    local name = p:name "n"
    local path = "/api/v1/namespaces/" .. name
    p:later(function() p:put(path .. "/finalize", { metadata = { name = name }, spec = { finalizers = json.array {} } },
      { quiet = "unseen" }) end)
    p:post("/api/v1/namespaces", { metadata = { name = name, namespace = "x" },
      spec = { finalizers = { "example.com/f" } }, status = { phase = "Odd" } })
    p:patch("merge", path, { spec = { finalizers = json.array {} } })
    p:patch("merge", path, { metadata = { labels = { ["kubernetes.io/metadata.name"] = "other" } } })
    p:patch("merge", path .. "/status", { status = { phase = "Terminating" } })
    p:delete(path .. "?dryRun=All")
    p:put(path .. "/finalize", { metadata = { name = "other" }, spec = { finalizers = { "kubernetes" } } })
    p:put(path .. "/finalize", { metadata = { name = name }, spec = { finalizers = { "bad", "example.com/g" } } })
    p:get(path)
    p:delete("/api/v1/namespaces")
    p:post("/api/v1/namespaces", { metadata = { name = "a.b" } })
    p:post("/api/v1/namespaces", { metadata = { name = ("n"):rep(64) } })
  end },
  { name = "headers and types of bodies", run = function(p)
    local path, name = p:core "configmaps", p:name "a"
    local body = json.encode(config(name, nil, { k = "v" }))
    local function post(options) p:post(path .. "?dryRun=All", body, options) end
    post { type = "application/json; charset=utf-8" }
    post { type = "application/json;charset=latin-1" }
    post { type = "APPLICATION/JSON" }
    post { type = "application/yaml" }
    post { type = "application/x-www-form-urlencoded" }
    post { type = "*/*" }
    post { type = "application/merge-patch+json" }
    post { accept = "application/json;q=0.1, application/yaml", raw = true }
    post { accept = "application/*" }
    post { accept = "text/plain, */*;q=0.1" }
    post { accept = "application/json;as=Table;g=meta.k8s.io;v=v2" }
    post { accept = "application/json;as=Table;g=meta.k8s.io;v=v1,application/json" }
    post { accept = "application/vnd.kubernetes.protobuf" , pick = function(v) return v.kind end, quiet = true }
    post { accept = "application/cbor" }
    p:setup("POST", path, config(name))
    for _, kind in ipairs { "application/merge-patch+json; charset=utf-8", "application/json", "text/json", "",
      "application/strategic-merge-patch+yaml", "application/apply-patch+json" } do
      p:patch("merge", path .. "/" .. name .. "?fieldManager=m", { data = { k = "w" } }, { type = kind })
    end
  end },
}
