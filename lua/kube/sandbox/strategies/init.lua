-- What each built-in kind does differently (see kube.sandbox.strategy), by storage. Kinds that are
-- not here are checked against their schema only, and the sandbox says so once per kind.
local strategies = {}

local MODULES = {
  configmaps = "configmaps",
  endpoints = "endpoints",
  events = "events",
  namespaces = "namespaces",
  nodes = "nodes",
  persistentvolumeclaims = "claims",
  persistentvolumes = "volumes",
  pods = "pods",
  podtemplates = "workloads",
  replicationcontrollers = "workloads",
  resourcequotas = "plain",
  secrets = "secrets",
  serviceaccounts = "plain",
  services = "services",
  ["apps/daemonsets"] = "workloads",
  ["apps/deployments"] = "workloads",
  ["apps/replicasets"] = "workloads",
  ["apps/statefulsets"] = "workloads",
  ["apiextensions.k8s.io/customresourcedefinitions"] = "definitions",
  ["authentication.k8s.io/selfsubjectreviews"] = "reviews",
  ["authentication.k8s.io/tokenreviews"] = "reviews",
  ["authorization.k8s.io/localsubjectaccessreviews"] = "reviews",
  ["authorization.k8s.io/selfsubjectaccessreviews"] = "reviews",
  ["authorization.k8s.io/selfsubjectrulesreviews"] = "reviews",
  ["authorization.k8s.io/subjectaccessreviews"] = "reviews",
  ["autoscaling/horizontalpodautoscalers"] = "autoscalers",
  ["batch/cronjobs"] = "jobs",
  ["batch/jobs"] = "jobs",
  ["coordination.k8s.io/leases"] = "leases",
  ["discovery.k8s.io/endpointslices"] = "endpoints",
  ["networking.k8s.io/ingresses"] = "ingresses",
  ["networking.k8s.io/networkpolicies"] = "network_policies",
  ["policy/poddisruptionbudgets"] = "disruption",
  ["scheduling.k8s.io/priorityclasses"] = "priorities",
  ["storage.k8s.io/storageclasses"] = "storage_classes",
  ["rbac.authorization.k8s.io/clusterrolebindings"] = "rbac",
  ["rbac.authorization.k8s.io/clusterroles"] = "rbac",
  ["rbac.authorization.k8s.io/rolebindings"] = "rbac",
  ["rbac.authorization.k8s.io/roles"] = "rbac",
}

--- Gives each descriptor of the registry its strategy.
function strategies.install(kinds)
  for _, R in ipairs(kinds:all()) do
    local name = MODULES[R.storage] or "unchecked"
    R.strategy = require("kube.sandbox.strategies." .. name).of(R)
  end
end

return strategies
