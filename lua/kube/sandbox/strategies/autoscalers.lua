-- Horizontal pod autoscalers. They are stored as autoscaling/v2; what autoscaling/v1 has no field for
-- is text in its annotations, in the words that older versions had for it.
local always = require "kube.sandbox.always"
local autoscaler_rules = require "kube.sandbox.strategies.autoscaler_rules"
local json = require "kube.sandbox.json"
local pod_spec = require "kube.sandbox.strategies.pod_spec"

local autoscalers = {}

local set = pod_spec.set

local CPU_PERCENT = 80
local PREFIX = "autoscaling.alpha.kubernetes.io/"

local V1 = { definition = "io.k8s.api.autoscaling.v1.HorizontalPodAutoscaler" }
local V2 = { definition = "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler" }

-- Metrics -----------------------------------------------------------------------------------------

-- Old names and their new paths; "%" stands for target (in specs) or current (in statuses).
local NAMES = {
  resource = { name = "name", ["%AverageUtilization"] = "%.averageUtilization", ["%AverageValue"] = "%.averageValue" },
  containerResource = { name = "name", container = "container", ["%AverageUtilization"] = "%.averageUtilization",
    ["%AverageValue"] = "%.averageValue" },
  pods = { metricName = "metric.name", selector = "metric.selector", ["%AverageValue"] = "%.averageValue" },
  object = { target = "describedObject", metricName = "metric.name", selector = "metric.selector",
    ["%Value"] = "%.value", averageValue = "%.averageValue" },
  external = { metricName = "metric.name", metricSelector = "metric.selector", ["%Value"] = "%.value",
    ["%AverageValue"] = "%.averageValue" },
}

local function source_of(metric) return (metric.type or ""):gsub("^%u", string.lower) end

local function to_old(metric, what)
  local source = source_of(metric)
  local out = json.object {}
  for old, new in pairs(NAMES[source] or {}) do
    local first, second = new:gsub("%%", what):match("^([^.]*)%.?(.*)$")
    local value = json.get(metric, source, first)
    if second ~= "" then value = json.get(value, second) end
    out[(old:gsub("%%", what))] = value
  end
  return json.object { type = metric.type, [source] = out }
end

local function type_of(target)
  if target.averageUtilization then return "Utilization" end
  return target.averageValue and "AverageValue" or "Value"
end

local function to_new(metric, what)
  local source = source_of(metric)
  local out = json.object { [what] = json.object {} }
  for old, new in pairs(NAMES[source] or {}) do
    local first, second = new:gsub("%%", what):match("^([^.]*)%.?(.*)$")
    local value = json.get(metric, source, (old:gsub("%%", what)))
    if second == "" then
      out[first] = value
    else
      out[first] = out[first] or json.object {}
      out[first][second] = value
    end
  end
  if what == "target" then out.target.type = type_of(out.target) end
  return json.object { type = metric.type, [source] = out }
end

local function all(list, convert, what)
  local out = json.array {}
  for i, metric in ipairs(list) do out[i] = convert(metric, what) end
  return out
end

local function is_cpu(metric) return metric.type == "Resource" and json.get(metric, "resource", "name") == "cpu" end

-- The percentage of the first metric of cpu that has one, and the other metrics.
local function split_cpu(metrics)
  local percent, others = nil, json.array {}
  for _, metric in ipairs(metrics or {}) do
    local found = is_cpu(metric) and json.get(metric, "resource", "target", "averageUtilization")
    if found and not percent then percent = found else others[#others + 1] = metric end
  end
  return percent, others
end

local function cpu_metric(percent)
  return json.object { type = "Resource", resource = json.object {
    name = "cpu",
    target = json.object { type = "Utilization", averageUtilization = percent },
  } }
end

-- Behavior: the fields of the server's own structs -----------------------------------------------

local RULES = { "stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance" }

local function renamed(value, change)
  if type(value) ~= "table" then return value end
  if json.is_array(value) then return all(value, renamed, change) end
  local out = json.object {}
  for key, child in pairs(value) do
    if child ~= json.null then out[(key:gsub("^%a", change))] = renamed(child, change) end
  end
  return out
end

local function behavior_text(behavior)
  local out = json.object {}
  for _, name in ipairs { "scaleUp", "scaleDown" } do
    local rules = renamed(behavior[name], string.upper)
    for _, rule in ipairs(RULES) do
      rule = rule:gsub("^%a", string.upper)
      if rules[rule] == nil then rules[rule] = json.null end
    end
    out[name:gsub("^%a", string.upper)] = rules
  end
  return json.encode(out)
end

-- Conversion --------------------------------------------------------------------------------------

local function from_storage(stored)
  local spec, status = json.shallow(stored.spec), json.shallow(stored.status)
  local notes = stored.metadata.annotations and json.shallow(stored.metadata.annotations) or json.object {}
  local function note(name, value) notes[PREFIX .. name] = value end
  local percent, others = split_cpu(json.get(spec, "metrics"))
  spec.targetCPUUtilizationPercentage = percent
  if others[1] then note("metrics", json.encode(all(others, to_old, "target"))) end
  if spec.behavior then note("behavior", behavior_text(spec.behavior)) end
  spec.metrics, spec.behavior = nil, nil
  local current = json.get(status, "currentMetrics")
  if current then
    note("current-metrics", json.encode(all(current, to_old, "current")))
    for _, metric in ipairs(current) do
      if is_cpu(metric) then
        status.currentCPUUtilizationPercentage = json.get(metric, "resource", "current", "averageUtilization")
      end
    end
  end
  if json.get(status, "conditions") then note("conditions", json.encode(status.conditions)) end
  status.currentMetrics, status.conditions = nil, nil
  local metadata = json.with(stored.metadata, "annotations", next(notes) and notes or nil)
  return always.fill(V1, json.object { apiVersion = "autoscaling/v1", kind = stored.kind, metadata = metadata,
    spec = spec, status = status })
end

--- An autoscaler of autoscaling/v1 as one of v2.
function autoscalers.to_storage(document)
  local spec, status = json.shallow(document.spec), json.shallow(document.status or json.object {})
  local notes = json.shallow(document.metadata.annotations or json.object {})
  local function take(name)
    local text = notes[PREFIX .. name]
    notes[PREFIX .. name] = nil
    return text and json.decode(text) or nil
  end
  local metrics, current = take("metrics"), take("current-metrics")
  metrics = metrics and all(metrics, to_new, "target") or json.array {}
  if spec.targetCPUUtilizationPercentage then
    metrics[#metrics + 1] = cpu_metric(spec.targetCPUUtilizationPercentage)
  end
  spec.metrics = metrics[1] and metrics or nil
  spec.behavior = renamed(take("behavior"), string.lower)
  spec.targetCPUUtilizationPercentage, status.currentCPUUtilizationPercentage = nil, nil
  status.currentMetrics = current and all(current, to_new, "current") or nil
  status.conditions = take("conditions")
  local metadata = json.with(document.metadata, "annotations", next(notes) and notes or nil)
  return always.fill(V2, json.object { apiVersion = "autoscaling/v2", kind = document.kind, metadata = metadata,
    spec = spec, status = status })
end

-- Defaults and rules ------------------------------------------------------------------------------

local function policy(kind, value) return json.object { type = kind, value = value, periodSeconds = 15 } end

local function default_behavior(spec)
  spec.behavior = json.shallow(spec.behavior)
  local up = json.shallow(spec.behavior.scaleUp or json.object {})
  local down = json.shallow(spec.behavior.scaleDown or json.object {})
  set(up, "stabilizationWindowSeconds", 0)
  set(up, "policies", json.array { policy("Pods", 4), policy("Percent", 100) })
  set(down, "policies", json.array { policy("Percent", 100) })
  for _, rules in ipairs { up, down } do set(rules, "selectPolicy", "Max") end
  spec.behavior.scaleUp, spec.behavior.scaleDown = up, down
end

local function default_v2(_, document)
  local spec = json.shallow(document.spec)
  document.spec = spec
  set(spec, "minReplicas", 1)
  if not json.get(spec, "metrics", 1) then spec.metrics = json.array { cpu_metric(CPU_PERCENT) } end
  if json.is_object(spec.behavior) then default_behavior(spec) end
  return document
end

local function default_v1(_, document)
  document.spec = json.shallow(document.spec)
  set(document.spec, "minReplicas", 1)
  if not json.get(document.metadata, "annotations", PREFIX .. "metrics") then
    set(document.spec, "targetCPUUtilizationPercentage", CPU_PERCENT)
  end
  return document
end

function autoscalers.of(R)
  if R.version == "v1" then
    R.from_storage, R.to_storage = from_storage, autoscalers.to_storage
    return { default = default_v1, validate = autoscaler_rules.validate }
  end
  return { default = default_v2, validate = autoscaler_rules.validate }
end

return autoscalers
