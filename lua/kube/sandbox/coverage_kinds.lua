-- What the sandbox knows of the kinds that hold no pods, for kube.sandbox.coverage, as
-- kube.sandbox.coverage_fields has it of those that do. A kind with rules that stands in neither is
-- known whole.
local ip = require "kube.sandbox.ip"
local names = require "kube.sandbox.names"
local values = require "kube.sandbox.coverage_values"

local one_of, at_least, between, is_right = values.one_of, values.at_least, values.between, values.is_right
local labels, selector, share = values.labels, values.selector, values.share

local function document(spec)
  return { open = true, fields = { spec = { fields = spec } } }
end

local PORT_NUMBER = between(1, 65535)
local PROTOCOL = one_of("TCP", "UDP", "SCTP")

local SERVICE_PORT = { fields = { appProtocol = true, name = true, nodePort = true, port = true, protocol = true,
  targetPort = true } }

local ADDRESS = { fields = { ip = is_right(ip.problem), hostname = is_right(names.label),
  nodeName = is_right(names.subdomain), targetRef = true } }

local BACKEND = { fields = { service = { fields = { name = is_right(names.dns1035),
  port = { fields = { name = is_right(names.port), number = PORT_NUMBER } } } } } }

-- A path of an ingress with nothing in it that could be a trick.
local function plain_path(path)
  return path:find("^/[%w._/-]*$") ~= nil and not path:find("//", 1, true) and not path:find("/.", 1, true)
end

local PATH = { fields = { backend = BACKEND, path = plain_path,
  pathType = one_of("Exact", "Prefix", "ImplementationSpecific") } }

local TAINT = { fields = { key = is_right(names.qualified), value = is_right(names.label_value),
  effect = one_of("NoSchedule", "PreferNoSchedule", "NoExecute"), timeAdded = true } }

local METRIC = { fields = { type = one_of "Resource", resource = { fields = { name = one_of("cpu", "memory"),
  target = { fields = { type = one_of "Utilization", averageUtilization = at_least(1) } } } } } }

local RBAC = "rbac.authorization.k8s.io"

local function subject(value)
  if value.kind == "ServiceAccount" then
    return names.subdomain(value.name or "") == nil and (value.namespace or "") ~= "" and (value.apiGroup or "") == ""
  end
  return (value.kind == "User" or value.kind == "Group") and (value.name or "") ~= "" and value.apiGroup == RBAC
    and (value.namespace or "") == ""
end

local function binding(...)
  return { open = true, fields = { subjects = { each = subject },
    roleRef = { fields = { apiGroup = one_of(RBAC), kind = one_of(...), name = is_right(names.path) } } } }
end

return {
  endpoints = { open = true, fields = { subsets = { each = { fields = {
    addresses = { each = ADDRESS }, notReadyAddresses = { each = ADDRESS },
    ports = { each = { fields = { name = is_right(names.label), port = true, protocol = PROTOCOL } } },
  } } } } },
  nodes = document {
    providerID = true, taints = { each = TAINT }, unschedulable = true,
  },
  persistentvolumeclaims = document {
    accessModes = { each = one_of("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany") },
    resources = { fields = { requests = { fields = { storage = values.amount } } } },
    storageClassName = is_right(names.subdomain), volumeMode = one_of("Filesystem", "Block"),
    volumeName = is_right(names.subdomain),
  },
  resourcequotas = document {},
  services = document {
    allocateLoadBalancerNodePorts = true, clusterIP = true, clusterIPs = true, externalName = true,
    externalTrafficPolicy = true, healthCheckNodePort = true, internalTrafficPolicy = true, ipFamilies = true,
    ipFamilyPolicy = true, loadBalancerClass = true, loadBalancerIP = true, ports = { each = SERVICE_PORT },
    publishNotReadyAddresses = true, selector = labels, sessionAffinity = true, trafficDistribution = true,
    sessionAffinityConfig = { fields = { clientIP = { fields = { timeoutSeconds = between(1, 86400) } } } },
    type = true,
  },
  ["autoscaling/horizontalpodautoscalers"] = document {
    maxReplicas = true, metrics = { each = METRIC }, minReplicas = at_least(1), scaleTargetRef = true,
    targetCPUUtilizationPercentage = at_least(1),
  },
  ["coordination.k8s.io/leases"] = document {
    acquireTime = true, holderIdentity = true, leaseDurationSeconds = true, leaseTransitions = true,
    renewTime = true,
  },
  ["networking.k8s.io/ingresses"] = document {
    defaultBackend = BACKEND, ingressClassName = is_right(names.subdomain),
    rules = { each = { fields = { host = is_right(names.subdomain),
      http = { fields = { paths = { each = PATH } } } } } },
  },
  ["networking.k8s.io/networkpolicies"] = document {
    podSelector = selector, policyTypes = { each = one_of("Ingress", "Egress") },
  },
  ["policy/poddisruptionbudgets"] = document {
    maxUnavailable = share, minAvailable = share, selector = selector,
    unhealthyPodEvictionPolicy = one_of("IfHealthyBudget", "AlwaysAllow"),
  },
  [RBAC .. "/clusterroles"] = { open = true, fields = { aggregationRule = false } },
  [RBAC .. "/clusterrolebindings"] = binding "ClusterRole",
  [RBAC .. "/rolebindings"] = binding("ClusterRole", "Role"),
}
