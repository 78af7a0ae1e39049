-- The cells of nodes, namespaces, events, roles and the other kinds of the cluster itself.
local json = require "kube.sandbox.json"
local text = require "kube.sandbox.printers.text"

local cluster = {}

local get, since = json.get, text.since

local function age(d, now) return since(d.metadata.creationTimestamp, now) end

cluster["v1/configmaps"] = function(d, now)
  return { d.metadata.name, text.count(get(d, "data")) + text.count(get(d, "binaryData")), age(d, now) }
end

cluster["v1/secrets"] = function(d, now)
  return { d.metadata.name, get(d, "type") or "", text.count(get(d, "data")), age(d, now) }
end

cluster["v1/namespaces"] = function(d, now) return { d.metadata.name, get(d, "status", "phase") or "", age(d, now) } end

for _, kind in ipairs { "v1/serviceaccounts", "resource.k8s.io/v1/deviceclasses",
  "resource.k8s.io/v1/resourceclaimtemplates" } do
  cluster[kind] = function(d, now) return { d.metadata.name, age(d, now) } end
end

cluster["coordination.k8s.io/v1/leases"] = function(d, now)
  return { d.metadata.name, get(d, "spec", "holderIdentity") or "", age(d, now) }
end

cluster["node.k8s.io/v1/runtimeclasses"] = function(d, now)
  return { d.metadata.name, get(d, "handler") or "", age(d, now) }
end

cluster["scheduling.k8s.io/v1/priorityclasses"] = function(d, now)
  return { d.metadata.name, get(d, "value") or 0, get(d, "globalDefault") or false, age(d, now),
    get(d, "preemptionPolicy") or "" }
end

cluster["v1/resourcequotas"] = function(d, now)
  local requests, limits = {}, {}
  local hard, used = get(d, "status", "hard") or {}, get(d, "status", "used") or {}
  for name, quantity in pairs(hard) do
    local list = name:find("^limits%.") and limits or requests
    list[#list + 1] = ("%s: %s/%s"):format(name, tostring(used[name] or "0"), tostring(quantity))
  end
  table.sort(requests)
  table.sort(limits)
  return { d.metadata.name, table.concat(requests, ", "), table.concat(limits, ", "), age(d, now) }
end

cluster["v1/componentstatuses"] = function(d)
  local state, condition = text.condition(get(d, "conditions"), "Healthy")
  local shown = state == nil and "Unknown" or state == "True" and "Healthy" or "Unhealthy"
  return { d.metadata.name, shown, get(condition, "message") or "", get(condition, "error") or "" }
end

-- ---- nodes ----

local ROLE = "node-role.kubernetes.io/"

local function roles(d)
  local seen, list = {}, {}
  for key, value in pairs(d.metadata.labels or {}) do
    local role = key:sub(1, #ROLE) == ROLE and key:sub(#ROLE + 1) or key == "kubernetes.io/role" and value or ""
    if role ~= "" and not seen[role] then
      seen[role] = true
      list[#list + 1] = role
    end
  end
  table.sort(list)
  return text.either(table.concat(list, ","), "<none>")
end

local function address(d, kind)
  for _, entry in ipairs(get(d, "status", "addresses") or {}) do
    if entry.type == kind then return entry.address end
  end
  return "<none>"
end

cluster["v1/nodes"] = function(d, now)
  local ready = text.condition(get(d, "status", "conditions"), "Ready")
  local state = ready == nil and "Unknown" or ready == "True" and "Ready" or "NotReady"
  if get(d, "spec", "unschedulable") then state = state .. ",SchedulingDisabled" end
  local info = get(d, "status", "nodeInfo") or json.object {}
  local kernel, machine = text.either(info.kernelVersion, "<unknown>"), text.either(info.architecture)
  return {
    d.metadata.name, state, roles(d), age(d, now), info.kubeletVersion or "", address(d, "InternalIP"),
    address(d, "ExternalIP"), text.either(info.osImage, "<unknown>"),
    kernel .. (machine and " (" .. machine .. ")" or ""), text.either(info.containerRuntimeVersion, "<unknown>"),
  }
end

-- ---- events: one object, two views ----

local function event_cells(d, now)
  local object = get(d, "involvedObject") or get(d, "regarding") or {}
  local source = get(d, "source") or get(d, "deprecatedSource") or {}
  local first = get(d, "firstTimestamp") or get(d, "deprecatedFirstTimestamp") or get(d, "eventTime")
  local last = get(d, "lastTimestamp") or get(d, "deprecatedLastTimestamp") or first
  local count = get(d, "count") or get(d, "deprecatedCount") or 1
  local series = get(d, "series")
  if series then last, count = series.lastObservedTime, series.count or 0 end
  local target = (object.kind or ""):lower()
  if text.either(object.name) then target = target .. "/" .. object.name end
  local component = text.either(source.component,
    text.either(get(d, "reportingComponent"), get(d, "reportingController") or ""))
  local instance = text.either(source.host, get(d, "reportingInstance") or "")
  local message = (get(d, "message") or get(d, "note") or ""):gsub("^%s+", ""):gsub("%s+$", "")
  return {
    since(last, now), get(d, "type") or "", get(d, "reason") or "", target, get(object, "fieldPath") or "",
    instance == "" and component or component .. ", " .. instance, message, since(first, now), count, d.metadata.name,
  }
end

cluster["v1/events"] = event_cells
cluster["events.k8s.io/v1/events"] = event_cells

-- ---- roles ----

local function binding(d, now)
  local by_kind = { User = {}, Group = {}, ServiceAccount = {} }
  for _, subject in ipairs(get(d, "subjects") or {}) do
    local list = by_kind[subject.kind]
    if list then
      local name = subject.name or ""
      list[#list + 1] = subject.kind == "ServiceAccount" and ("%s/%s"):format(subject.namespace or "", name) or name
    end
  end
  return {
    d.metadata.name, ("%s/%s"):format(get(d, "roleRef", "kind") or "", get(d, "roleRef", "name") or ""), age(d, now),
    table.concat(by_kind.User, ", "), table.concat(by_kind.Group, ", "), table.concat(by_kind.ServiceAccount, ", "),
  }
end

cluster["rbac.authorization.k8s.io/v1/rolebindings"] = binding
cluster["rbac.authorization.k8s.io/v1/clusterrolebindings"] = binding

-- ---- admission, flow control, certificates, claims ----

for _, kind in ipairs { "validating", "mutating" } do
  cluster["admissionregistration.k8s.io/v1/" .. kind .. "webhookconfigurations"] = function(d, now)
    return { d.metadata.name, #(get(d, "webhooks") or {}), age(d, now) }
  end
end

local function policy(list)
  return function(d, now)
    local kind = get(d, "spec", "paramKind")
    return { d.metadata.name, #(get(d, "spec", list) or {}),
      kind and ("%s/%s"):format(kind.apiVersion or "", kind.kind or "") or "<unset>", age(d, now) }
  end
end

local function policy_binding(d, now)
  local reference, shown = get(d, "spec", "paramRef"), "<unset>"
  if text.either(get(reference, "name")) then
    shown = ("%s/%s"):format(text.either(get(reference, "namespace"), "*"), reference.name)
  end
  return { d.metadata.name, get(d, "spec", "policyName") or "", shown, age(d, now) }
end

local ADMISSION = "admissionregistration.k8s.io/v1/"
cluster[ADMISSION .. "validatingadmissionpolicies"] = policy "validations"
cluster[ADMISSION .. "mutatingadmissionpolicies"] = policy "mutations"
cluster[ADMISSION .. "validatingadmissionpolicybindings"] = policy_binding
cluster[ADMISSION .. "mutatingadmissionpolicybindings"] = policy_binding

cluster["flowcontrol.apiserver.k8s.io/v1/flowschemas"] = function(d, now)
  return { d.metadata.name, get(d, "spec", "priorityLevelConfiguration", "name") or "",
    get(d, "spec", "matchingPrecedence") or 0, get(d, "spec", "distinguisherMethod", "type") or "<none>", age(d, now),
    text.condition(get(d, "status", "conditions"), "Dangling") or "?" }
end

cluster["flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations"] = function(d, now)
  local limited = get(d, "spec", "limited")
  local queuing = get(limited, "limitResponse", "queuing")
  local function part(t, key) return t and (get(t, key) or 0) or "<none>" end
  return { d.metadata.name, get(d, "spec", "type") or "", part(limited, "nominalConcurrencyShares"),
    part(queuing, "queues"), part(queuing, "handSize"), part(queuing, "queueLengthLimit"), age(d, now) }
end

cluster["certificates.k8s.io/v1/certificatesigningrequests"] = function(d, now)
  local has = {}
  for _, condition in ipairs(get(d, "status", "conditions") or {}) do has[condition.type] = true end
  local state = has.Denied and "Denied" or has.Approved and "Approved" or "Pending"
  if has.Failed then state = state .. ",Failed" end
  if text.either(get(d, "status", "certificate")) then state = state .. ",Issued" end
  local seconds = get(d, "spec", "expirationSeconds")
  return { d.metadata.name, age(d, now), text.either(get(d, "spec", "signerName"), "<none>"),
    get(d, "spec", "username") or "", seconds and text.human(seconds) or "<none>", state }
end

cluster["resource.k8s.io/v1/resourceclaims"] = function(d, now)
  local states = {}
  local going = d.metadata.deletionTimestamp
  if going then states[1] = "deleted" end
  if get(d, "status", "allocation") then
    states[#states + 1] = "allocated"
    if #(get(d, "status", "reservedFor") or {}) > 0 then states[#states + 1] = "reserved" end
  elseif not going then
    states[#states + 1] = "pending"
  end
  return { d.metadata.name, table.concat(states, ","), age(d, now) }
end

cluster["apiregistration.k8s.io/v1/apiservices"] = function(d, now)
  local service, available = get(d, "spec", "service"), "Unknown"
  local state, condition = text.condition(get(d, "status", "conditions"), "Available")
  if state == "True" then
    available = "True"
  elseif state then
    available = ("%s (%s)"):format(state, condition.reason or "")
  end
  return { d.metadata.name, service and ("%s/%s"):format(service.namespace, service.name) or "Local", available,
    age(d, now) }
end

return cluster
