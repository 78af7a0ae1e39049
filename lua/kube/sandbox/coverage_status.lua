-- What the sandbox knows of the statuses of built-in kinds, for kube.sandbox.coverage, as
-- kube.sandbox.coverage_fields has it of their specs. Every kind with rules and a status stands here.
local CONTAINERS = { each = { fields = { containerID = true, image = true, imageID = true, lastState = true,
  name = true, ready = true, restartCount = true, started = true, state = true } } }

local POD = { conditions = true, containerStatuses = CONTAINERS, hostIP = true, initContainerStatuses = CONTAINERS,
  message = true, nominatedNodeName = true, observedGeneration = true, phase = true, podIP = true, podIPs = true,
  qosClass = true, reason = true, startTime = true }

local NODE = { addresses = true, allocatable = true, capacity = true, conditions = true, daemonEndpoints = true,
  features = true, images = true, phase = true, runtimeHandlers = true, volumesAttached = true, volumesInUse = true,
  nodeInfo = { open = true, fields = { swap = false } } }

local function status(node) return { open = true, fields = { status = node } } end

return {
  namespaces = status(true),
  nodes = status { fields = NODE },
  persistentvolumeclaims = status { fields = { accessModes = true, capacity = true, conditions = true, phase = true } },
  persistentvolumes = status(true),
  pods = status { fields = POD },
  replicationcontrollers = status(true),
  resourcequotas = status { fields = {} },
  services = status { fields = { loadBalancer = true } },
  ["apiextensions.k8s.io/customresourcedefinitions"] = status(true),
  ["apps/daemonsets"] = status(true),
  ["apps/deployments"] = status(true),
  ["apps/replicasets"] = status(true),
  ["apps/statefulsets"] = status(true),
  ["autoscaling/horizontalpodautoscalers"] = status(true),
  ["batch/cronjobs"] = status(true),
  ["batch/jobs"] = status(true),
  ["networking.k8s.io/ingresses"] = status(true),
  ["policy/poddisruptionbudgets"] = status(true),
}
