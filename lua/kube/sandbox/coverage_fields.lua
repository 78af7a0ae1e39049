-- What the sandbox knows of the kinds that hold pods (of the others: kube.sandbox.coverage_kinds), for
-- kube.sandbox.coverage: `true` where
-- strategies/ has the rules of a field or its schema says all there is, a function where some values
-- are right under any rule. By storage.
local kinds = require "kube.sandbox.coverage_kinds"
local names = require "kube.sandbox.names"
local values = require "kube.sandbox.coverage_values"

local one_of, labels = values.one_of, values.labels

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
  preemptionPolicy = true, priority = true, priorityClassName = true,
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
  parallelism = true, completions = true, backoffLimit = true, backoffLimitPerIndex = true, maxFailedIndexes = true,
  activeDeadlineSeconds = true, ttlSecondsAfterFinished = true, completionMode = true, managedBy = true,
  manualSelector = true, podFailurePolicy = true, podReplacementPolicy = true, selector = true, successPolicy = true,
  suspend = true, template = TEMPLATE,
}

local fields = {
  pods = { open = true, fields = {
    metadata = { open = true, fields = { annotations = annotations } },
    spec = POD_SPEC,
  } },
  podtemplates = { open = true, fields = { template = TEMPLATE } },
  replicationcontrollers = document {
    replicas = true, selector = labels, template = TEMPLATE, minReadySeconds = true,
  },
  ["apps/replicasets"] = document {
    replicas = true, selector = true, template = TEMPLATE, minReadySeconds = true,
  },
  ["apps/deployments"] = document {
    replicas = true, selector = true, template = TEMPLATE, minReadySeconds = true, strategy = true,
    revisionHistoryLimit = true, progressDeadlineSeconds = true, paused = true,
  },
  ["apps/daemonsets"] = document {
    selector = true, template = TEMPLATE, minReadySeconds = true, revisionHistoryLimit = true, updateStrategy = true,
  },
  ["apps/statefulsets"] = document {
    replicas = true, selector = true, template = TEMPLATE, minReadySeconds = true, revisionHistoryLimit = true,
    podManagementPolicy = true, serviceName = true, ordinals = true, persistentVolumeClaimRetentionPolicy = true,
    updateStrategy = true, volumeClaimTemplates = { each = kinds.persistentvolumeclaims },
  },
  ["batch/jobs"] = document(JOB),
  ["batch/cronjobs"] = document {
    concurrencyPolicy = true, suspend = true, schedule = true, startingDeadlineSeconds = true,
    successfulJobsHistoryLimit = true, failedJobsHistoryLimit = true, timeZone = one_of("UTC", "Etc/UTC"),
    jobTemplate = { fields = { metadata = { open = true, fields = { labels = labels, annotations = annotations } },
      spec = { fields = JOB } } },
  },
}

for storage, node in pairs(kinds) do fields[storage] = node end

return fields
