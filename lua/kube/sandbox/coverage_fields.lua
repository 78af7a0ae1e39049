-- What the sandbox knows of the kinds that hold pods (of the others: kube.sandbox.coverage_kinds), for
-- kube.sandbox.coverage: `true` where
-- strategies/ has the rules of a field or its schema says all there is, a function where some values
-- are right under any rule. By storage.
local kinds = require "kube.sandbox.coverage_kinds"
local names = require "kube.sandbox.names"
local values = require "kube.sandbox.coverage_values"

local one_of, at_least, is_right, labels = values.one_of, values.at_least, values.is_right, values.labels

-- The annotations of pods that have rules of their own begin like these.
local RULED = { "^[%w.]*seccomp%.security%.", "^[%w.]*apparmor%.security%.", "^scheduler%.alpha%.kubernetes%.io/",
  "^kubernetes%.io/config%.", "^controller%.kubernetes%.io/pod%-deletion%-cost$" }

local function annotations(value)
  for key in pairs(value) do
    if names.qualified(key:lower()) then return false end
    for _, pattern in ipairs(RULED) do
      if key:find(pattern) then return false end
    end
  end
  return true
end

-- ---- pods ----

local PORT = { fields = { name = true, containerPort = true, hostPort = true, protocol = true } }

local RESOURCES = { fields = { cpu = true, memory = true, ["ephemeral-storage"] = true } }

local PROBE = { fields = { exec = true, httpGet = true, tcpSocket = true, grpc = true, initialDelaySeconds = true,
  timeoutSeconds = true, periodSeconds = true, successThreshold = true, failureThreshold = true,
  terminationGracePeriodSeconds = true } }

local HOOK = { fields = { exec = true, httpGet = true, tcpSocket = true, sleep = true } }

local SOURCE = { fields = { fieldRef = true, configMapKeyRef = true, secretKeyRef = true } }

local function container(restart)
  return { fields = {
    name = true, image = true, imagePullPolicy = true, command = true, args = true, workingDir = true,
    stdin = true, stdinOnce = true, tty = true, terminationMessagePath = true, terminationMessagePolicy = true,
    env = { each = { fields = { name = true, value = true, valueFrom = SOURCE } } },
    envFrom = { each = { fields = { prefix = true, configMapRef = true, secretRef = true } } },
    ports = { each = PORT },
    resources = { fields = { limits = RESOURCES, requests = RESOURCES } },
    restartPolicy = restart,
    volumeMounts = { each = { fields = { name = true, mountPath = true, readOnly = true } } },
    livenessProbe = PROBE, readinessProbe = PROBE, startupProbe = PROBE,
    lifecycle = { fields = { postStart = HOOK, preStop = HOOK } },
  } }
end

local KEYS = { each = { fields = { key = one_of "ca.crt", path = one_of "ca.crt" } } }

-- The token that every pod gets.
local PROJECTED = { fields = { defaultMode = one_of(420), sources = { each = { fields = {
  serviceAccountToken = { fields = { expirationSeconds = one_of(3607), path = one_of "token" } },
  configMap = { fields = { name = true, items = KEYS } },
  downwardAPI = { fields = { items = { each = { fields = {
    path = one_of "namespace",
    fieldRef = { fields = { apiVersion = one_of "v1", fieldPath = one_of "metadata.namespace" } },
  } } } } },
} } } } }

local VOLUME = { fields = { name = true, configMap = true, emptyDir = true, hostPath = true,
  persistentVolumeClaim = true, projected = PROJECTED, secret = true } }

local POD_SPEC = { fields = {
  automountServiceAccountToken = true, containers = { each = container() }, enableServiceLinks = true,
  hostIPC = true, hostPID = true, imagePullSecrets = true, initContainers = { each = container(one_of "Always") },
  restartPolicy = true, schedulerName = true, setHostnameAsFQDN = true, terminationGracePeriodSeconds = true,
  activeDeadlineSeconds = true, hostname = true, nodeName = true, nodeSelector = true, serviceAccount = true,
  serviceAccountName = true, subdomain = true, tolerations = true,
  dnsPolicy = one_of("ClusterFirst", "ClusterFirstWithHostNet", "Default"),
  hostNetwork = one_of(false), hostUsers = one_of(true), shareProcessNamespace = one_of(false),
  preemptionPolicy = one_of "PreemptLowerPriority", priority = one_of(0),
  volumes = { each = VOLUME },
} }

local TEMPLATE = { fields = {
  metadata = { open = true, fields = { labels = labels, annotations = annotations } },
  spec = POD_SPEC,
} }

-- ---- what makes pods ----

local function document(spec)
  return { open = true, fields = { spec = { fields = spec } } }
end

local JOB = {
  parallelism = at_least(0), completions = at_least(0), backoffLimit = at_least(0),
  activeDeadlineSeconds = at_least(0), ttlSecondsAfterFinished = at_least(0),
  completionMode = one_of "NonIndexed", manualSelector = true, selector = true, suspend = true,
  podReplacementPolicy = one_of("TerminatingOrFailed", "Failed"), template = TEMPLATE,
}

local RANGES = { { 0, 59 }, { 0, 23 }, { 1, 31 }, { 1, 12 }, { 0, 6 } }
local DESCRIPTORS = one_of("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")

-- Five stars or numbers, each within its range: what is more than that is not read.
local function schedule(value)
  if DESCRIPTORS(value) then return true end
  local i = 0
  for text in value:gmatch("%S+") do
    i = i + 1
    local range = RANGES[i]
    local number = text:find("^%d+$") and tonumber(text)
    if not range or text ~= "*" and not (number and number >= range[1] and number <= range[2]) then return false end
  end
  return i == #RANGES
end

local fields = {
  pods = { open = true, fields = {
    metadata = { open = true, fields = { annotations = annotations } },
    spec = POD_SPEC,
  } },
  podtemplates = { open = true, fields = { template = TEMPLATE } },
  replicationcontrollers = document {
    replicas = true, selector = labels, template = TEMPLATE, minReadySeconds = at_least(0),
  },
  ["apps/replicasets"] = document {
    replicas = true, selector = true, template = TEMPLATE, minReadySeconds = at_least(0),
  },
  ["apps/deployments"] = document {
    replicas = true, selector = true, template = TEMPLATE, minReadySeconds = true, strategy = true,
    revisionHistoryLimit = true, progressDeadlineSeconds = true, paused = true,
  },
  ["apps/daemonsets"] = document {
    selector = true, template = TEMPLATE, minReadySeconds = at_least(0), revisionHistoryLimit = at_least(0),
    updateStrategy = { fields = { type = one_of("RollingUpdate", "OnDelete"),
      rollingUpdate = { fields = { maxUnavailable = at_least(1), maxSurge = one_of(0) } } } },
  },
  ["apps/statefulsets"] = document {
    replicas = true, selector = true, template = TEMPLATE, minReadySeconds = at_least(0),
    revisionHistoryLimit = at_least(0), podManagementPolicy = one_of("OrderedReady", "Parallel"),
    serviceName = is_right(names.label), ordinals = { fields = { start = at_least(0) } },
    persistentVolumeClaimRetentionPolicy = { fields = { whenDeleted = one_of("Retain", "Delete"),
      whenScaled = one_of("Retain", "Delete") } },
    updateStrategy = { fields = { type = one_of("RollingUpdate", "OnDelete"),
      rollingUpdate = { fields = { partition = at_least(0) } } } },
  },
  ["batch/jobs"] = document(JOB),
  ["batch/cronjobs"] = document {
    concurrencyPolicy = true, suspend = true, schedule = schedule, startingDeadlineSeconds = at_least(0),
    successfulJobsHistoryLimit = at_least(0), failedJobsHistoryLimit = at_least(0),
    jobTemplate = { fields = { metadata = { open = true, fields = { labels = labels, annotations = annotations } },
      spec = { fields = JOB } } },
  },
}

for storage, node in pairs(kinds) do fields[storage] = node end

return fields
