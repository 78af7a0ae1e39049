-- What the sandbox knows of the kinds that hold no pods, for kube.sandbox.coverage, as
-- kube.sandbox.coverage_fields has it of those that do. A kind with rules that stands in neither is
-- known whole.
local values = require "kube.sandbox.coverage_values"

local at_least, between, labels = values.at_least, values.between, values.labels

local function document(spec)
  return { open = true, fields = { spec = { fields = spec } } }
end

local SERVICE_PORT = { fields = { appProtocol = true, name = true, nodePort = true, port = true, protocol = true,
  targetPort = true } }

local PORT = { fields = { appProtocol = true, name = true, port = true, protocol = true } }

local ADDRESSES = { each = { fields = { hostname = true, ip = true, nodeName = true, targetRef = true } } }

local BACKEND = { fields = { resource = true, service = { fields = { name = true,
  port = { fields = { name = true, number = true } } } } } }

local PEERS = { each = { fields = { ipBlock = true, namespaceSelector = true, podSelector = true } } }

local METRIC = { fields = { type = true, resource = true } }

return {
  endpoints = { open = true, fields = { subsets = { each = { fields = { addresses = ADDRESSES,
    notReadyAddresses = ADDRESSES, ports = { each = PORT } } } } } },
  nodes = document {
    podCIDR = true, podCIDRs = true, providerID = true, taints = true, unschedulable = true,
  },
  persistentvolumeclaims = document {
    accessModes = true, resources = { fields = { requests = { fields = { storage = true } } } }, selector = true,
    storageClassName = true, volumeAttributesClassName = true, volumeMode = true, volumeName = true,
  },
  persistentvolumes = document {
    accessModes = true, capacity = true, claimRef = true, csi = { fields = { driver = true, fsType = true,
      readOnly = true, volumeAttributes = true, volumeHandle = true } }, hostPath = true, ["local"] = true, nfs = true,
    persistentVolumeReclaimPolicy = true, storageClassName = true, volumeMode = true,
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
    maxReplicas = true, metrics = { each = METRIC }, minReplicas = true, scaleTargetRef = true,
    targetCPUUtilizationPercentage = at_least(1),
  },
  ["coordination.k8s.io/leases"] = document {
    acquireTime = true, holderIdentity = true, leaseDurationSeconds = true, leaseTransitions = true,
    renewTime = true,
  },
  ["discovery.k8s.io/endpointslices"] = { open = true, fields = {
    endpoints = { each = { fields = { addresses = true, conditions = true, deprecatedTopology = labels, hints = true,
      hostname = true, nodeName = true, targetRef = true, zone = true } } },
    ports = { each = PORT } } },
  ["networking.k8s.io/ingresses"] = document {
    defaultBackend = BACKEND, ingressClassName = true, rules = { each = { fields = { host = true,
      http = { fields = { paths = { each = { fields = { backend = BACKEND, path = true, pathType = true } } } } } } } },
    tls = { each = { fields = { hosts = true, secretName = true } } },
  },
  ["networking.k8s.io/networkpolicies"] = document {
    egress = { each = { fields = { ports = true, to = PEERS } } },
    ingress = { each = { fields = { from = PEERS, ports = true } } }, podSelector = true, policyTypes = true,
  },
  ["policy/poddisruptionbudgets"] = document {
    maxUnavailable = true, minAvailable = true, selector = true, unhealthyPodEvictionPolicy = true,
  },
  ["scheduling.k8s.io/priorityclasses"] = { fields = { apiVersion = true, kind = true, metadata = true,
    description = true, globalDefault = true, preemptionPolicy = true, value = true } },
  ["storage.k8s.io/storageclasses"] = { fields = { apiVersion = true, kind = true, metadata = true,
    allowVolumeExpansion = true, mountOptions = true, parameters = true, provisioner = true, reclaimPolicy = true,
    volumeBindingMode = true } },
}
