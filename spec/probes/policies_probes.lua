-- Kinds that say what others may do: rules between their fields, between them, and what is set for good.
local json = require "spec.probes.json"
local samples = require "spec.probes.samples"

local function refusal(v) return v.kind == "Status" and samples.sorted_causes(v) or "accepted" end

local function tries(p, path)
  return function(document, name)
    document.metadata = document.metadata or {}
    document.metadata.name = name or document.metadata.name or p:name "a"
    p:post(path .. "?dryRun=All", document, { pick = refusal })
  end
end

local function changes(p, path, document)
  document.metadata = document.metadata or {}
  document.metadata.name = document.metadata.name or p:name "m"
  local one = path .. "/" .. document.metadata.name
  p:later(function() p:request("DELETE", one, nil, { quiet = "unseen" }) end)
  p:setup("POST", path, document)
  return function(patch, subresource)
    p:patch("merge", one .. (subresource and "/" .. subresource or "") .. "?dryRun=All", patch, { pick = refusal })
  end
end

local RBAC = "rbac.authorization.k8s.io"

return {
  { name = "budgets", run = function(p)
    local try = tries(p, p:path("/apis/policy/v1", "poddisruptionbudgets"))
    local function budget(spec) try { spec = spec } end
    budget { minAvailable = -1 }
    budget { maxUnavailable = "101%" }
    budget { minAvailable = "x" }
    budget { minAvailable = 1, maxUnavailable = 1 }
    budget { minAvailable = 1, selector = { matchLabels = { a = "not a value" } } }
    budget { minAvailable = 1, selector = { matchExpressions = { { key = "a", operator = "Bogus" } } } }
    budget { minAvailable = 1, unhealthyPodEvictionPolicy = "Bogus" }
    budget(json.object {})
    local change = changes(p, p:path("/apis/policy/v1", "poddisruptionbudgets"), { spec = { minAvailable = 1 } })
    change { spec = { minAvailable = json.null, maxUnavailable = 1 } }
    change({ status = { disruptionsAllowed = -1, currentHealthy = -1, desiredHealthy = -1, expectedPods = -1,
      observedGeneration = 1 } }, "status")
  end },
  { name = "autoscalers", run = function(p)
    local try = tries(p, p:path("/apis/autoscaling/v2", "horizontalpodautoscalers"))
    local function scaler(spec)
      spec.maxReplicas = spec.maxReplicas or 3
      spec.scaleTargetRef = spec.scaleTargetRef or { kind = "Deployment", name = "d", apiVersion = "apps/v1" }
      try { spec = spec }
    end
    scaler { minReplicas = 4 }
    scaler { minReplicas = 0 }
    scaler { minReplicas = -1 }
    scaler { maxReplicas = 0 }
    scaler { scaleTargetRef = { kind = "", name = "" } }
    scaler { scaleTargetRef = { kind = "a/b", name = "a/b", apiVersion = "apps/v1" } }
    scaler { scaleTargetRef = { kind = "Deployment", name = "d", apiVersion = "v1" } }
    scaler { scaleTargetRef = { kind = "Deployment", name = "d", apiVersion = "a/b/c" } }
    local function resource(target, name) scaler { metrics = { { type = "Resource", resource = { name = name or "cpu",
      target = target } } } } end
    resource { type = "Utilization", averageUtilization = 0 }
    resource { type = "Utilization" }
    resource { type = "AverageValue", averageValue = "0" }
    resource { type = "AverageValue", averageValue = "1", averageUtilization = 5 }
    resource { type = "Value", value = "1" }
    resource { type = "Bogus", averageUtilization = 5 }
    resource({ type = "Utilization", averageUtilization = 5 }, "")
    scaler { metrics = { { type = "Resource" } } }
    scaler { metrics = { { type = "Bogus" } } }
    scaler { metrics = { { type = "Pods", resource = { name = "cpu", target = { type = "Utilization",
      averageUtilization = 5 } } } } }
  end },
  { name = "roles and bindings", run = function(p)
    local roles = p:path("/apis/" .. RBAC .. "/v1", "roles")
    local function role(rule) tries(p, roles) { rules = { rule } } end
    role { verbs = json.array {}, apiGroups = { "" }, resources = { "pods" } }
    role { verbs = { "get" }, resources = { "pods" } }
    role { verbs = { "get" }, apiGroups = { "" } }
    role { verbs = { "get" }, nonResourceURLs = { "/x" } }
    local function cluster(document) tries(p, "/apis/" .. RBAC .. "/v1/clusterroles")(document) end
    cluster { rules = { { verbs = { "get" }, nonResourceURLs = { "/x" }, resources = { "pods" } } } }
    cluster { rules = { { verbs = { "get" }, nonResourceURLs = { "/x" } } } }
    cluster { aggregationRule = { clusterRoleSelectors = { { matchLabels = { a = "not a value" } } } } }
    cluster { aggregationRule = { clusterRoleSelectors = json.array {} } }
    local bindings = p:path("/apis/" .. RBAC .. "/v1", "rolebindings")
    local function binding(reference, subjects)
      tries(p, bindings) { roleRef = reference or { kind = "Role", name = "r", apiGroup = RBAC }, subjects = subjects }
    end
    binding { kind = "Bogus", name = "r", apiGroup = RBAC }
    binding { kind = "Role", name = "", apiGroup = RBAC }
    binding { kind = "Role", name = "a/b", apiGroup = RBAC }
    binding { kind = "Role", name = "r", apiGroup = "e.com" }
    binding(nil, { { kind = "User", name = "" } })
    binding(nil, { { kind = "Robot", name = "x" } })
    binding(nil, { { kind = "User", name = "x", apiGroup = "e.com" } })
    binding(nil, { { kind = "User", name = "x", apiGroup = RBAC, namespace = "n" } })
    binding(nil, { { kind = "ServiceAccount", name = "x" } })
    binding(nil, { { kind = "ServiceAccount", name = "Bad_", namespace = "n" } })
    binding(nil, { { kind = "ServiceAccount", name = "x", namespace = "n", apiGroup = "e.com" } })
    binding(nil, { { kind = "Group", name = "g", apiGroup = RBAC }, { kind = "ServiceAccount", name = "x",
      namespace = "n" } })
    tries(p, "/apis/" .. RBAC .. "/v1/clusterrolebindings") { roleRef = { kind = "Role", name = "r",
      apiGroup = RBAC } }
    tries(p, "/apis/" .. RBAC .. "/v1/clusterrolebindings") { roleRef = { kind = "ClusterRole", name = "r",
      apiGroup = RBAC }, subjects = { { kind = "ServiceAccount", name = "x" } } }
    p:setup("POST", roles, { metadata = { name = p:name "r" } })
    local change = changes(p, bindings, { roleRef = { kind = "Role", name = p:name "r", apiGroup = RBAC } })
    change { roleRef = { name = "other" } }
    change { subjects = { { kind = "User", name = "x", apiGroup = RBAC } } }
  end },
  { name = "classes of priority", run = function(p)
    local path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    local try = tries(p, path)
    try { value = 1000000001 }
    try({ value = 5 }, "system-" .. p:name "s")
    try { value = 5, preemptionPolicy = "Bogus" }
    try { value = 5, globalDefault = true, description = "x" }
    try({ value = -5 }, "Bad_Name")
    local change = changes(p, path, { value = 7, globalDefault = true })
    change { value = 8 }
    change { preemptionPolicy = "Never" }
    change { description = "y" }
    change { globalDefault = false }
    try { value = 5, globalDefault = true }
    p:poll(p:core("serviceaccounts", "default"), function(a) return a.status == 200 end, { quiet = true })
    local function pod(spec)
      p:post(p:core "pods" .. "?dryRun=All", samples.pod(p:name "p", nil, spec), { pick = function(v)
        return v.kind == "Pod" and json.object { priority = v.spec.priority, class = v.spec.priorityClassName,
          preemption = v.spec.preemptionPolicy } or v end })
    end
    pod {}
    pod { priorityClassName = p:name "m" }
    pod { priorityClassName = "missing" }
    pod { priorityClassName = "system-node-critical" }
    pod { priorityClassName = p:name "m", priority = 5 }
    pod { priorityClassName = p:name "m", priority = 7 }
    pod { priority = 5 }
    pod { priorityClassName = p:name "m", preemptionPolicy = "Never" }
    pod { preemptionPolicy = "Bogus" }
  end },
  { name = "nodes", run = function(p)
    local try = tries(p, "/api/v1/nodes")
    local function taints(list) try { spec = { taints = list } } end
    taints { { key = "a", effect = "NoSchedule" }, { key = "a", effect = "NoSchedule", value = "b" } }
    taints { { key = "a", effect = "NoSchedule" }, { key = "a", effect = "NoExecute" } }
    taints { { key = "Bad Key", effect = "NoSchedule" } }
    taints { { key = "a", effect = "Bogus" } }
    taints { { key = "a", value = "not a value", effect = "NoSchedule" } }
    try { spec = { podCIDR = "x" } }
    try { spec = { podCIDR = "10.0.0.0/24", podCIDRs = { "10.0.0.0/24" } } }
    try { spec = { podCIDRs = { "10.0.0.0/24", "10.0.1.0/24" } } }
    local change = changes(p, "/api/v1/nodes", { spec = { podCIDR = "10.0.0.0/24", providerID = "x" } })
    change { spec = { podCIDR = "10.0.1.0/24", podCIDRs = json.null } }
    change { spec = { providerID = "y" } }
    change { spec = { unschedulable = true } }
    change({ status = { capacity = { cpu = "-1" }, addresses = { { type = "InternalIP", address = "10.0.0.1" },
      { type = "InternalIP", address = "10.0.0.1" } } } }, "status")
  end },
  { name = "secrets and accounts and how they change", run = function(p)
    local change = changes(p, p:core "secrets", { type = "e.com/t", stringData = { a = "b" } })
    change { type = "e.com/u" }
    change { type = json.null }
    change { immutable = true, stringData = { a = "c" } }
    local accounts = changes(p, p:core "serviceaccounts", { metadata = { name = p:name "s" } })
    accounts { secrets = { { name = "Bad_" } }, imagePullSecrets = { { name = "" } } }
    accounts { automountServiceAccountToken = false }
  end },
}
