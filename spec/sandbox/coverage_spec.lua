-- What the sandbox did not check it says: which fields of a pod, or of a template, only had their schema.
require "spec.support.sandbox_env"
local coverage = require "kube.sandbox.coverage"
local coverage_fields = require "kube.sandbox.coverage_fields"
local json = require "kube.sandbox.json"
local rig = require "spec.support.sandbox_rig"

local PODS = "/api/v1/namespaces/default/pods"
local ONLY = "sandbox: checked against its schema only: "

local function warnings(response)
  local found = {}
  for _, header in ipairs(response.headers) do
    if header[1] == "Warning" then found[#found + 1] = header[2]:match('^299 %- "(.*)"$') end
  end
  return found
end

describe("a write to the sandbox", function()
  local box
  before_each(function() box = rig.new { seed = 7 } end)

  local function post(path, body)
    local code, document, response = box:post(path, body)
    assert.equal(201, code, document.message)
    return warnings(response), document
  end

  local function pod(name, spec, container)
    local main = { name = "main", image = "example.com/a:1" }
    for key, value in pairs(container or {}) do main[key] = value end
    spec = spec or {}
    spec.containers = { main }
    return { metadata = { name = name }, spec = spec }
  end

  it("that is checked whole says nothing", function()
    assert.same({}, (post(PODS, pod("a", { nodeName = "n", hostname = "h", activeDeadlineSeconds = 5,
      nodeSelector = { disk = "ssd" }, tolerations = { { operator = "Exists" } },
      volumes = { { name = "v", configMap = { name = "c" } } } }, {
        livenessProbe = { httpGet = { port = 80 } }, volumeMounts = { { name = "v", mountPath = "/v" } },
        command = { "x" }, ports = { { name = "web", containerPort = 80 } }, resources = { limits = { cpu = "1" } },
        env = { { name = "A", value = "1" },
          { name = "B", valueFrom = { fieldRef = { fieldPath = "metadata.name" } } } } }))))
  end)

  it("names the fields that were not, the first three of them", function()
    assert.same({ ONLY .. "spec.containers[0].lifecycle.stopSignal" },
      (post(PODS, pod("a", nil, { lifecycle = { stopSignal = "SIGTERM" } }))))
    assert.same({ "sandbox: checked against their schema only: spec.affinity, spec.containers[0].securityContext, "
      .. "spec.hostAliases and 1 more" }, (post(PODS, pod("b", {
        affinity = { nodeAffinity = { requiredDuringSchedulingIgnoredDuringExecution = { nodeSelectorTerms = {
          { matchFields = { { key = "metadata.name", operator = "In", values = { "n" } } } } } } } },
        hostAliases = { { ip = "10.0.0.1", hostnames = { "x" } } },
        topologySpreadConstraints = { { maxSkew = 1, topologyKey = "zone", whenUnsatisfiable = "DoNotSchedule" } },
      }, { securityContext = { runAsUser = 5 } }))))
  end)

  it("names values that a rule might refuse, and no others", function()
    assert.same({}, (post(PODS, pod("a", { hostname = "h" }))))
    assert.same({ ONLY .. "spec.hostNetwork" }, (post(PODS, pod("b", { hostNetwork = true }))))
    local annotated = pod "c"
    annotated.metadata.annotations = { ["seccomp.security.alpha.kubernetes.io/pod"] = "x" }
    assert.same({ ONLY .. "metadata.annotations" }, (post(PODS, annotated)))
  end)

  it("is told once: not again when something else changes, nor with a status", function()
    post(PODS, pod("a", { shareProcessNamespace = true, schedulingGates = { { name = "x" } } }))
    local _, _, labelled = box:merge(PODS .. "/a", { metadata = { labels = { l = "1" } } })
    assert.same({}, warnings(labelled))
    local _, _, status = box:merge(PODS .. "/a/status", { status = { phase = "Running" } })
    assert.same({}, warnings(status))
  end)

  it("names the fields of templates and of what makes pods", function()
    local template = { metadata = { labels = { app = "x" } }, spec = { containers = { { name = "main",
      image = "example.com/a:1" } }, runtimeClassName = "r" } }
    local selector = { matchLabels = { app = "x" } }
    for _, kind in ipairs { "deployments", "statefulsets", "daemonsets", "replicasets" } do
      assert.same({ ONLY .. "spec.template.spec.runtimeClassName" },
        (post("/apis/apps/v1/namespaces/default/" .. kind,
          { metadata = { name = "a" }, spec = { selector = selector, template = template } })), kind)
    end
    assert.same({ ONLY .. "template.spec.runtimeClassName" },
      (post("/api/v1/namespaces/default/podtemplates", { metadata = { name = "a" }, template = template })))
    template.spec.restartPolicy = "Never"
    assert.same({ ONLY .. "spec.template.spec.runtimeClassName" }, (post("/apis/batch/v1/namespaces/default/jobs", {
      metadata = { name = "a" }, spec = { template = template } })))
    assert.same({ "sandbox: checked against their schema only: spec.jobTemplate.spec.template.spec.runtimeClassName, "
      .. "spec.timeZone" }, (post("/apis/batch/v1/namespaces/default/cronjobs", {
        metadata = { name = "a" }, spec = { schedule = "0 5 * * MON", timeZone = "Europe/Atlantis",
          jobTemplate = { spec = { template = template } } } })))
  end)

  it("names the fields of kinds without pods", function()
    local network = "/apis/networking.k8s.io/v1/namespaces/default/"
    assert.same({}, (post("/api/v1/namespaces/default/services", { metadata = { name = "a" },
      spec = { type = "NodePort", selector = { app = "x" }, ports = { { port = 80 } } } })))
    assert.same({ "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
      ONLY .. "spec.externalIPs" }, (post("/api/v1/namespaces/default/services", {
      metadata = { name = "b" }, spec = { externalIPs = { "1.2.3.4" }, ports = { { port = 80 } } } })))
    assert.same({}, (post(network .. "networkpolicies", { metadata = { name = "a" },
      spec = { podSelector = {}, ingress = { { ports = { { port = 80 } } } } } })))
    local backend = { service = { name = "a", port = { number = 80 } } }
    assert.same({}, (post(network .. "ingresses", { metadata = { name = "b" }, spec = { tls = { { secretName = "s" } },
      rules = { { host = "*.example.com", http = { paths = { { path = "/a", pathType = "Prefix",
        backend = backend } } } } } } })))
    assert.same({ ONLY .. "allowedTopologies" }, (post("/apis/storage.k8s.io/v1/storageclasses", {
      metadata = { name = "a" }, provisioner = "e.com/p", allowedTopologies = { { matchLabelExpressions = {
        { key = "zone", values = { "a" } } } } } })))
    assert.same({ ONLY .. "spec.behavior" },
      (post("/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", { metadata = { name = "a" },
        spec = { maxReplicas = 2, scaleTargetRef = { kind = "Deployment", name = "d", apiVersion = "apps/v1" },
          behavior = { scaleUp = { stabilizationWindowSeconds = 5 } } } })))
  end)

  it("of a pod template is refused as a pod is", function()
    local code, refusal = box:post("/api/v1/namespaces/default/podtemplates", { metadata = { name = "a" },
      template = { spec = { containers = { { name = "main" } } } } })
    assert.equal(422, code)
    assert.equal("template.spec.containers[0].image", refusal.details.causes[1].field)
  end)

  it("that brings rules in CEL is told that nobody counts what they cost", function()
    local schema = { type = "object", properties = { spec = { type = "object",
      ["x-kubernetes-validations"] = { { rule = "self.size > 0" } },
      properties = { size = { type = "integer" } } } } }
    local definition = { metadata = { name = "wheels.example.com" }, spec = { group = "example.com",
      scope = "Namespaced", names = { plural = "wheels", singular = "wheel", kind = "Wheel", listKind = "WheelList" },
      versions = { { name = "v1", served = true, storage = true, schema = { openAPIV3Schema = schema } } } } }
    local path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert.same({ "sandbox: the cost of rules in CEL is not estimated: kube-apiserver may refuse them as too "
      .. "expensive" }, (post(path, definition)))
    local _, _, again = box:merge(path .. "/wheels.example.com", { metadata = { labels = { l = "1" } } })
    assert.same({}, warnings(again))
  end)
end)

describe("the sentence about unchecked fields", function()
  it("stays short, however long the paths are", function()
    local paths = {}
    for i = 1, 1000 do paths[i] = "spec." .. ("x"):rep(5000) .. i end
    assert.is_true(#coverage.sentence(paths) < 500)
    assert.matches("and 997 more$", coverage.sentence(paths))
  end)

  it("is made of fields that exist", function()
    local function load(group)
      local file = assert(io.open(("lua/kube/sandbox/data/schema/io.k8s.api.%s.v1.json"):format(group)))
      local document = json.decode(file:read "*a")
      file:close()
      return document
    end
    local groups = {}
    for _, group in ipairs { "core", "apps", "batch", "networking", "policy", "coordination", "discovery", "scheduling",
      "storage" } do
      groups[group] = load(group)
    end
    local function resolve(schema)
      local group, name = (schema["$ref"] or ""):match("^io%.k8s%.api%.(%w+)%.v1%.(.+)$")
      return group and groups[group] and groups[group][name] or schema
    end
    local count = 0
    local function compare(node, schema, path)
      if type(node) ~= "table" or not schema then return end
      schema = resolve(schema)
      if node.each then return compare(node.each, assert(schema.items, path), path .. "[]") end
      if not schema.properties then return end
      for name, child in pairs(node.fields) do
        assert.is_truthy(schema.properties[name], path .. "." .. name)
        count = count + 1
        compare(child, schema.properties[name], path .. "." .. name)
      end
    end
    for storage, kind in pairs { pods = "core.Pod", podtemplates = "core.PodTemplate",
      replicationcontrollers = "core.ReplicationController", ["apps/replicasets"] = "apps.ReplicaSet",
      ["apps/deployments"] = "apps.Deployment", ["apps/daemonsets"] = "apps.DaemonSet",
      ["apps/statefulsets"] = "apps.StatefulSet", ["batch/jobs"] = "batch.Job",
      ["batch/cronjobs"] = "batch.CronJob", services = "core.Service", endpoints = "core.Endpoints",
      nodes = "core.Node", persistentvolumeclaims = "core.PersistentVolumeClaim",
      ["networking.k8s.io/ingresses"] = "networking.Ingress",
      ["networking.k8s.io/networkpolicies"] = "networking.NetworkPolicy",
      ["policy/poddisruptionbudgets"] = "policy.PodDisruptionBudget",
      persistentvolumes = "core.PersistentVolume", ["discovery.k8s.io/endpointslices"] = "discovery.EndpointSlice",
      ["scheduling.k8s.io/priorityclasses"] = "scheduling.PriorityClass",
      ["storage.k8s.io/storageclasses"] = "storage.StorageClass",
      ["coordination.k8s.io/leases"] = "coordination.Lease" } do
      local group, name = kind:match("(%w+)%.(%w+)")
      compare(assert(coverage_fields[storage], storage), groups[group][name], kind)
    end
    assert.is_true(count > 300)
  end)
end)
