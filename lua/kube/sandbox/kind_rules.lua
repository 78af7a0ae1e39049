-- How the server treats objects of each kind: what it does not say about itself in discovery.
-- Keyed by storage ("configmaps", "apps/deployments"), because all versions of a kind share it.
--
--   generation            metadata.generation is kept
--   unconditional_update  an update may leave out metadata.resourceVersion
--   create_on_update      an update of what is not there creates it
--   returns_deleted       DELETE answers with the object, not with a Status
--   graceful              DELETE honours gracePeriodSeconds
--   name                  what metadata.name must be: subdomain, label, path (any path segment), ip
--   default_policy        propagation of a DELETE that names none; nil: the kind is not collected
--   fields                field selectors: label -> path in the document
--   field_text            what is said of any other label
--   uncached              the server keeps no watch cache of it: lists come in pages at any version
--   status                there is a /status; the main resource then leaves status alone
local kind_rules = {}

local DEFAULT = {
  generation = false,
  unconditional_update = true,
  create_on_update = false,
  returns_deleted = false,
  graceful = false,
  uncached = false,
  name = "subdomain",
  default_policy = "Background",
}

local CUSTOM = { generation = true, unconditional_update = false }

-- Fields: "metadata.*" and the rest name themselves.
local function fields(list)
  local map = {}
  for label in list:gmatch("%S+") do map[label] = label end
  return map
end

local COMMON_FIELDS = fields "metadata.name metadata.namespace"
local COMMON_TEXT = '"%s" is not a known field selector: only "metadata.name", "metadata.namespace"'
local FIELD_TEXT = "field label not supported: %s"

local RULES = {}

local function rule(flag, value, list)
  for storage in list:gmatch("%S+") do
    RULES[storage] = RULES[storage] or {}
    RULES[storage][flag] = value
  end
end

rule("generation", true, [[
  pods podtemplates replicationcontrollers
  apps/daemonsets apps/deployments apps/replicasets apps/statefulsets batch/cronjobs batch/jobs
  admissionregistration.k8s.io/mutatingadmissionpolicies
  admissionregistration.k8s.io/mutatingadmissionpolicybindings
  admissionregistration.k8s.io/mutatingwebhookconfigurations
  admissionregistration.k8s.io/validatingadmissionpolicies
  admissionregistration.k8s.io/validatingadmissionpolicybindings
  admissionregistration.k8s.io/validatingwebhookconfigurations
  apiextensions.k8s.io/customresourcedefinitions
  discovery.k8s.io/endpointslices
  flowcontrol.apiserver.k8s.io/flowschemas flowcontrol.apiserver.k8s.io/prioritylevelconfigurations
  networking.k8s.io/ingressclasses networking.k8s.io/ingresses networking.k8s.io/networkpolicies
  policy/poddisruptionbudgets
  resource.k8s.io/deviceclasses resource.k8s.io/resourceslices
  scheduling.k8s.io/priorityclasses
]])

rule("unconditional_update", false, [[
  admissionregistration.k8s.io/mutatingadmissionpolicies
  admissionregistration.k8s.io/mutatingadmissionpolicybindings
  admissionregistration.k8s.io/mutatingwebhookconfigurations
  admissionregistration.k8s.io/validatingadmissionpolicies
  admissionregistration.k8s.io/validatingadmissionpolicybindings
  admissionregistration.k8s.io/validatingwebhookconfigurations
  apiextensions.k8s.io/customresourcedefinitions apiregistration.k8s.io/apiservices
  coordination.k8s.io/leases
  node.k8s.io/runtimeclasses
  policy/poddisruptionbudgets
  storage.k8s.io/csidrivers storage.k8s.io/csinodes storage.k8s.io/csistoragecapacities
  storage.k8s.io/volumeattachments
]])

rule("create_on_update", true, [[
  endpoints events limitranges services
  coordination.k8s.io/leases
  node.k8s.io/runtimeclasses
  rbac.authorization.k8s.io/clusterrolebindings rbac.authorization.k8s.io/clusterroles
  rbac.authorization.k8s.io/rolebindings rbac.authorization.k8s.io/roles
]])

rule("returns_deleted", true, [[
  namespaces persistentvolumeclaims persistentvolumes pods podtemplates resourcequotas serviceaccounts services
  resource.k8s.io/deviceclasses resource.k8s.io/resourceclaims resource.k8s.io/resourceclaimtemplates
  resource.k8s.io/resourceslices
  storage.k8s.io/csidrivers storage.k8s.io/csinodes storage.k8s.io/storageclasses
  storage.k8s.io/volumeattachments storage.k8s.io/volumeattributesclasses
]])

rule("graceful", true, "pods")
rule("uncached", true, "events")

rule("name", "label", "apps/statefulsets namespaces services")
rule("name", "ip", "networking.k8s.io/ipaddresses")
rule("name", "path", [[
  events
  apiregistration.k8s.io/apiservices certificates.k8s.io/certificatesigningrequests
  policy/poddisruptionbudgets
  rbac.authorization.k8s.io/clusterrolebindings rbac.authorization.k8s.io/clusterroles
  rbac.authorization.k8s.io/rolebindings rbac.authorization.k8s.io/roles
]])

rule("default_policy", "Orphan", "batch/jobs replicationcontrollers")

local FIELDS = {
  pods = fields [[
    metadata.name metadata.namespace spec.nodeName spec.restartPolicy spec.schedulerName
    spec.serviceAccountName spec.hostNetwork status.phase status.podIP status.podIPs status.nominatedNodeName
  ]],
  nodes = fields "metadata.name spec.unschedulable",
  replicationcontrollers = fields "metadata.name metadata.namespace status.replicas",
  events = fields [[
    metadata.name metadata.namespace involvedObject.kind involvedObject.namespace involvedObject.name
    involvedObject.uid involvedObject.apiVersion involvedObject.resourceVersion involvedObject.fieldPath
    reason reportingComponent type
  ]],
  namespaces = fields "metadata.name status.phase",
  secrets = fields "metadata.name metadata.namespace type",
  services = fields "metadata.name metadata.namespace spec.clusterIP spec.type",
  ["batch/jobs"] = fields "metadata.name metadata.namespace status.successful",
  ["certificates.k8s.io/certificatesigningrequests"] = fields "metadata.name spec.signerName",
  ["resource.k8s.io/resourceslices"] = fields "metadata.name spec.nodeName spec.driver",
}
FIELDS.pods["spec.host"] = "spec.nodeName"
FIELDS.events.source = "source.component"

-- The labels of the newer events API, for the document as the older one stores it.
local EVENT_FIELDS = {
  ["metadata.name"] = "metadata.name",
  ["metadata.namespace"] = "metadata.namespace",
  reason = "reason",
  type = "type",
  reportingController = "reportingComponent",
}
for _, name in ipairs { "kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath" } do
  EVENT_FIELDS["regarding." .. name] = "involvedObject." .. name
end

local FIELD_TEXTS = {
  ["batch/jobs"] = 'field label "%s" not supported for Job',
  ["resource.k8s.io/resourceslices"] =
    "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: %s",
}

local function complete(R, own)
  local rules = {}
  for flag, value in pairs(DEFAULT) do rules[flag] = value end
  for flag, value in pairs(own) do rules[flag] = value end
  rules.status = R.subresources.status ~= nil
  return rules
end

--- The rules of a built-in resource.
function kind_rules.builtin(R)
  local rules = complete(R, RULES[R.storage] or {})
  rules.fields = FIELDS[R.storage]
  if rules.fields then
    rules.field_text = FIELD_TEXTS[R.storage] or FIELD_TEXT
    if R.group == "events.k8s.io" then rules.fields = EVENT_FIELDS end
  else
    rules.fields, rules.field_text = COMMON_FIELDS, COMMON_TEXT
  end
  if R.storage == "events" then rules.default_policy = nil end
  return rules
end

--- The rules of a custom resource. Its selectable fields are in R.selectable_fields: array of paths.
function kind_rules.custom(R)
  local rules = complete(R, CUSTOM)
  rules.fields, rules.field_text = fields "metadata.name metadata.namespace", FIELD_TEXT
  for _, path in ipairs(R.selectable_fields or {}) do rules.fields[path] = path end
  return rules
end

return kind_rules
