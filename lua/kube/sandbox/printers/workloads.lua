-- The cells of what runs pods.
local autoscalers = require "kube.sandbox.strategies.autoscalers"
local json = require "kube.sandbox.json"
local pods = require "kube.sandbox.printers.pods"
local text = require "kube.sandbox.printers.text"

local workloads = {}

local get, since = json.get, text.since

local function number(document, ...) return get(document, ...) or 0 end

local function template(document) return get(document, "spec", "template", "spec") end

workloads["v1/pods"] = pods.cells

workloads["v1/podtemplates"] = function(d)
  local names, images = text.containers(get(d, "template", "spec"))
  return { d.metadata.name, names, images, text.labels(get(d, "template", "metadata", "labels")) }
end

local function replicas(selector)
  return function(d, now)
    local names, images = text.containers(template(d))
    return { d.metadata.name, number(d, "spec", "replicas"), number(d, "status", "replicas"),
      number(d, "status", "readyReplicas"), since(d.metadata.creationTimestamp, now), names, images,
      selector(get(d, "spec", "selector")) }
  end
end

workloads["apps/v1/replicasets"] = replicas(text.selector_or_none)
workloads["v1/replicationcontrollers"] = replicas(text.labels)

workloads["apps/v1/deployments"] = function(d, now)
  local names, images = text.containers(template(d))
  return {
    d.metadata.name, ("%d/%d"):format(number(d, "status", "readyReplicas"), number(d, "spec", "replicas")),
    number(d, "status", "updatedReplicas"), number(d, "status", "availableReplicas"),
    since(d.metadata.creationTimestamp, now), names, images, text.selector(get(d, "spec", "selector")),
  }
end

workloads["apps/v1/statefulsets"] = function(d, now)
  local names, images = text.containers(template(d))
  local ready = ("%d/%d"):format(number(d, "status", "readyReplicas"), number(d, "spec", "replicas"))
  return { d.metadata.name, ready, since(d.metadata.creationTimestamp, now), names, images }
end

workloads["apps/v1/daemonsets"] = function(d, now)
  local names, images = text.containers(template(d))
  return {
    d.metadata.name, number(d, "status", "desiredNumberScheduled"), number(d, "status", "currentNumberScheduled"),
    number(d, "status", "numberReady"), number(d, "status", "updatedNumberScheduled"),
    number(d, "status", "numberAvailable"), text.labels(get(template(d), "nodeSelector")),
    since(d.metadata.creationTimestamp, now), names, images, text.selector_or_none(get(d, "spec", "selector")),
  }
end

workloads["apps/v1/controllerrevisions"] = function(d, now)
  local owner = "<none>"
  for _, reference in ipairs(d.metadata.ownerReferences or {}) do
    if reference.controller then
      local group = reference.apiVersion:match("^(.*)/")
      owner = ("%s%s/%s"):format(reference.kind:lower(), group and "." .. group or "", reference.name)
    end
  end
  return { d.metadata.name, owner, number(d, "revision"), since(d.metadata.creationTimestamp, now) }
end

-- ---- jobs ----

local function job_status(d)
  local conditions = get(d, "status", "conditions")
  local function is(kind) return text.condition(conditions, kind) == "True" end
  if is "Complete" then return "Complete" end
  if is "Failed" then return "Failed" end
  if d.metadata.deletionTimestamp then return "Terminating" end
  for _, kind in ipairs { "Suspended", "FailureTarget", "SuccessCriteriaMet" } do
    if is(kind) then return kind end
  end
  return "Running"
end

local function completions(d)
  local succeeded, wanted = number(d, "status", "succeeded"), get(d, "spec", "completions")
  if wanted then return ("%d/%d"):format(succeeded, wanted) end
  local parallelism = number(d, "spec", "parallelism")
  if parallelism > 1 then return ("%d/1 of %d"):format(succeeded, parallelism) end
  return ("%d/1"):format(succeeded)
end

local function job_duration(d, now)
  local start = text.seconds(get(d, "status", "startTime"))
  if not start then return "" end
  return text.human((text.seconds(get(d, "status", "completionTime")) or now) - start)
end

workloads["batch/v1/jobs"] = function(d, now)
  local names, images = text.containers(template(d))
  return { d.metadata.name, job_status(d), completions(d), job_duration(d, now),
    since(d.metadata.creationTimestamp, now), names, images, text.selector_or_none(get(d, "spec", "selector")) }
end

workloads["batch/v1/cronjobs"] = function(d, now)
  local job = get(d, "spec", "jobTemplate", "spec")
  local names, images = text.containers(get(job, "template", "spec"))
  local suspend, last = get(d, "spec", "suspend"), get(d, "status", "lastScheduleTime")
  return {
    d.metadata.name, get(d, "spec", "schedule") or "", get(d, "spec", "timeZone") or "<none>",
    suspend == nil and "<unset>" or suspend and "True" or "False", #(get(d, "status", "active") or {}),
    last and since(last, now) or "<none>", since(d.metadata.creationTimestamp, now), names, images,
    text.selector_or_none(get(job, "selector")),
  }
end

-- ---- scaling ----

-- A measured value against its target.
local function measured(current, target, suffix)
  return ("%s/%s%s"):format(current or "<unknown>", target, suffix or "")
end

local function percent(value, none) return value and ("%d%%"):format(value) or none end

local METRICS = {
  Pods = function(spec, status)
    return measured(get(status, "pods", "current", "averageValue"), get(spec, "pods", "target", "averageValue") or "0")
  end,
}

for kind, key in pairs { External = "external", Object = "object" } do
  METRICS[kind] = function(spec, status)
    local target, current = get(spec, key, "target") or {}, get(status, key, "current")
    if target.averageValue then return measured(get(current, "averageValue"), target.averageValue, " (avg)") end
    return measured(get(current, "value"), target.value or "0")
  end
end

for kind, key in pairs { Resource = "resource", ContainerResource = "containerResource" } do
  METRICS[kind] = function(spec, status)
    local name, target = get(spec, key, "name") or "", get(spec, key, "target") or {}
    local current = get(status, key, "current")
    if target.averageValue then
      return name .. ": " .. measured(get(current, "averageValue"), target.averageValue)
    end
    return name .. ": " .. measured(percent(get(current, "averageUtilization")),
      percent(target.averageUtilization, "<auto>"))
  end
end

local MOST_METRICS = 2

local function metrics(d)
  local specs, statuses = get(d, "spec", "metrics") or {}, get(d, "status", "currentMetrics") or {}
  if #specs == 0 then return "<none>" end
  local list = {}
  for i, spec in ipairs(specs) do
    local show = METRICS[spec.type]
    list[i] = show and show(spec, statuses[i]) or "<unknown type>"
  end
  local shown = table.concat(list, ", ", 1, math.min(#list, MOST_METRICS))
  return #list > MOST_METRICS and ("%s + %d more..."):format(shown, #list - MOST_METRICS) or shown
end

workloads["autoscaling/v2/horizontalpodautoscalers"] = function(d, now)
  local target = get(d, "spec", "scaleTargetRef") or {}
  local least = get(d, "spec", "minReplicas")
  return { d.metadata.name, ("%s/%s"):format(target.kind or "", target.name or ""), metrics(d),
    least and ("%d"):format(least) or "<unset>", number(d, "spec", "maxReplicas"),
    number(d, "status", "currentReplicas"), since(d.metadata.creationTimestamp, now) }
end

workloads["autoscaling/v1/horizontalpodautoscalers"] = function(d, now)
  return workloads["autoscaling/v2/horizontalpodautoscalers"](autoscalers.to_storage(d), now)
end

workloads["policy/v1/poddisruptionbudgets"] = function(d, now)
  local function bound(key)
    local value = get(d, "spec", key)
    return value == nil and "N/A" or tostring(value)
  end
  return { d.metadata.name, bound "minAvailable", bound "maxUnavailable",
    number(d, "status", "disruptionsAllowed"), since(d.metadata.creationTimestamp, now) }
end

return workloads
