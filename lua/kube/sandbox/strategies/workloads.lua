-- Deployments, replica sets, stateful sets, daemon sets, replication controllers and pod templates:
-- their defaults, their selectors, and what cannot be changed.
local field = require "kube.sandbox.field"
local json = require "kube.sandbox.json"
local label_selector = require "kube.sandbox.label_selector"
local pod_rules = require "kube.sandbox.strategies.pod_rules"
local pod_spec = require "kube.sandbox.strategies.pod_spec"

local workloads = {}

local set, inside = pod_spec.set, pod_spec.inside

local function rolling(parameters)
  return function(strategy)
    set(strategy, "type", "RollingUpdate")
    if strategy.type ~= "RollingUpdate" then return end
    set(strategy, "rollingUpdate", json.object {})
    inside(strategy, "rollingUpdate", function(update)
      for name, value in pairs(parameters) do set(update, name, value) end
    end)
  end
end

local defaults = {}

function defaults.Deployment(spec)
  set(spec, "replicas", 1)
  set(spec, "strategy", json.object {})
  inside(spec, "strategy", rolling { maxUnavailable = "25%", maxSurge = "25%" })
  set(spec, "revisionHistoryLimit", 10)
  set(spec, "progressDeadlineSeconds", 600)
end

function defaults.ReplicaSet(spec) set(spec, "replicas", 1) end

local function claim(c)
  set(c, "kind", "PersistentVolumeClaim")
  set(c, "apiVersion", "v1")
  c.status = json.object { phase = "Pending" }
  inside(c, "spec", function(spec) set(spec, "volumeMode", "Filesystem") end)
end

function defaults.StatefulSet(spec)
  set(spec, "podManagementPolicy", "OrderedReady")
  set(spec, "updateStrategy", json.object {})
  inside(spec, "updateStrategy", rolling { partition = 0 })
  set(spec, "persistentVolumeClaimRetentionPolicy", json.object {})
  inside(spec, "persistentVolumeClaimRetentionPolicy", function(policy)
    set(policy, "whenDeleted", "Retain")
    set(policy, "whenScaled", "Retain")
  end)
  set(spec, "replicas", 1)
  set(spec, "revisionHistoryLimit", 10)
  pod_spec.each(spec, "volumeClaimTemplates", claim)
end

-- How often the template of a daemon set has changed.
local TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"

local function set_template_generation(metadata, value)
  metadata.annotations = json.with(metadata.annotations or json.object {}, TEMPLATE_GENERATION, value)
end

function defaults.DaemonSet(spec, document)
  if not json.get(document.metadata, "annotations", TEMPLATE_GENERATION) then
    set_template_generation(document.metadata, "1")
  end
  set(spec, "updateStrategy", json.object {})
  inside(spec, "updateStrategy", rolling { maxUnavailable = 1, maxSurge = 0 })
  set(spec, "revisionHistoryLimit", 10)
end

function defaults.ReplicationController(spec, document)
  set(spec, "replicas", 1)
  local labels = json.get(spec, "template", "metadata", "labels")
  if not labels then return end
  set(spec, "selector", labels)
  set(document.metadata, "labels", labels)
end

local function default(ctx, document)
  local kind = ctx.R.kind
  if json.is_object(document.template) then document.template = pod_spec.template(document.template) end
  if not json.is_object(document.spec) then return document end
  local spec = json.shallow(document.spec)
  document.spec = spec
  if json.is_object(spec.template) then spec.template = pod_spec.template(spec.template) end
  if defaults[kind] then defaults[kind](spec, document) end
  return document
end

-- The kinds that need a selector, and what they call themselves when it is empty.
local NEEDS_SELECTOR = {
  Deployment = "deployment",
  ReplicaSet = "deployment",
  StatefulSet = "statefulset",
  DaemonSet = "daemonset",
}

local NOT_NEGATIVE = "must be greater than or equal to 0"

local function check_count(errors, spec, name)
  if (tonumber(spec[name]) or 0) < 0 then
    errors[#errors + 1] = field.invalid("spec." .. name, spec[name], NOT_NEGATIVE)
  end
end

-- A selector that is not there selects nothing.
local function check_selector(errors, spec, kind)
  local selector = json.get(spec, "selector")
  if not selector then
    errors[#errors + 1] = field.required("spec.selector")
  elseif label_selector.is_empty(selector) then
    errors[#errors + 1] = field.invalid("spec.selector", selector,
      "empty selector is invalid for " .. NEEDS_SELECTOR[kind])
  end
  local found = #errors
  if selector then label_selector.check(errors, selector, "spec.selector") end
  if #errors > found then
    errors[#errors + 1] = field.invalid("spec.selector", selector, "invalid label selector")
    return
  end
  local labels = json.get(spec, "template", "metadata", "labels")
  if not selector or not label_selector.matches(selector, labels) then
    errors[#errors + 1] = field.invalid("spec.template.metadata.labels", labels,
      "`selector` does not match template `labels`")
  end
end

local PERCENT = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', "
  .. "regex used for validation is '[0-9]+%')"

-- A number of pods, or a share of them.
local function check_share(errors, value, path, limited)
  if type(value) == "string" then
    local percent = tonumber(value:match("^(%d+)%%$"))
    if not percent then
      errors[#errors + 1] = field.invalid(path, value, PERCENT)
    elseif limited and percent > 100 then
      errors[#errors + 1] = field.invalid(path, value, "must not be greater than 100%")
    end
  elseif (tonumber(value) or 0) < 0 then
    errors[#errors + 1] = field.invalid(path, value, NOT_NEGATIVE)
  end
end

local function is_nothing(share) return share == 0 or share == "0%" end

local function check_rolling(errors, update)
  local path = "spec.strategy.rollingUpdate"
  check_share(errors, update.maxUnavailable, path .. ".maxUnavailable", true)
  check_share(errors, update.maxSurge, path .. ".maxSurge")
  if is_nothing(update.maxUnavailable) and is_nothing(update.maxSurge) then
    errors[#errors + 1] = field.invalid(path .. ".maxUnavailable", update.maxUnavailable,
      "may not be 0 when `maxSurge` is 0")
  end
end

-- Shown as the server's own struct has it.
local function check_strategy(errors, strategy)
  if strategy.type == "RollingUpdate" then return check_rolling(errors, json.get(strategy, "rollingUpdate") or {}) end
  if strategy.type == "Recreate" then
    if json.get(strategy, "rollingUpdate") then
      errors[#errors + 1] = field.forbidden("spec.strategy.rollingUpdate",
        "may not be specified when strategy `type` is 'Recreate'")
    end
    return
  end
  local update = json.get(strategy, "rollingUpdate")
  local shown = update and ('{"MaxUnavailable":%s,"MaxSurge":%s}'):format(json.encode(update.maxUnavailable),
    json.encode(update.maxSurge)) or "null"
  local e = field.not_supported("spec.strategy", json.null, { "Recreate", "RollingUpdate" })
  e.message = e.message:gsub("null", function()
    return ('{"Type":%s,"RollingUpdate":%s}'):format(json.encode(strategy.type), shown)
  end, 1)
  errors[#errors + 1] = e
end

local COUNTS = { "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds" }

local function check_deployment(errors, spec)
  check_strategy(errors, spec.strategy)
  for _, name in ipairs(COUNTS) do check_count(errors, spec, name) end
  local deadline = tonumber(spec.progressDeadlineSeconds)
  if deadline and deadline >= 0 and deadline <= (tonumber(spec.minReadySeconds) or 0) then
    errors[#errors + 1] = field.invalid("spec.progressDeadlineSeconds", deadline,
      "must be greater than minReadySeconds")
  end
end

local SET_CHANGES = { "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
  "persistentVolumeClaimRetentionPolicy", "minReadySeconds" }
local SET_FIXED = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
  .. "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are "
  .. "forbidden"

local function set_fixed_part(spec)
  local copy = json.shallow(spec)
  for _, name in ipairs(SET_CHANGES) do copy[name] = nil end
  return copy
end

local function check_change(errors, kind, new, old)
  if kind == "StatefulSet" then
    if not json.equal(set_fixed_part(new), set_fixed_part(old)) then
      errors[#errors + 1] = field.forbidden("spec", SET_FIXED)
    end
  elseif NEEDS_SELECTOR[kind] and not json.equal(new.selector, old.selector) then
    errors[#errors + 1] = field.immutable("spec.selector", new.selector)
  end
end

local function validate(ctx, new, old, errors)
  local kind, spec = ctx.R.kind, new.spec or json.object {}
  if kind == "PodTemplate" then
    return pod_rules.check(errors, json.get(new, "template", "spec") or json.object {}, "template.spec")
  end
  check_count(errors, spec, "replicas")
  if NEEDS_SELECTOR[kind] then check_selector(errors, spec, kind) end
  local pods = json.get(spec, "template", "spec") or json.object {}
  pod_rules.check(errors, pods, "spec.template.spec")
  if pods.restartPolicy ~= "Always" then
    errors[#errors + 1] = field.not_supported("spec.template.spec.restartPolicy", pods.restartPolicy, { "Always" })
  end
  if kind == "Deployment" then check_deployment(errors, spec) end
  if old then check_change(errors, kind, spec, old.spec) end
end

local function update_daemon_set(_, new, old, subresource)
  if subresource then return new end
  local count = json.get(old.metadata, "annotations", TEMPLATE_GENERATION) or "1"
  if not json.equal(new.spec.template, old.spec.template) then count = ("%d"):format(tonumber(count) + 1) end
  new.metadata = json.shallow(new.metadata)
  set_template_generation(new.metadata, count)
  return new
end

-- Its annotations are part of what a deployment rolls out.
local function annotations_changed(new, old)
  return not json.equal(new.metadata.annotations or json.object {}, old.metadata.annotations or json.object {})
end

function workloads.of(R)
  return {
    default = default,
    prepare_update = R.kind == "DaemonSet" and update_daemon_set or nil,
    validate = validate,
    generation_changed = R.kind == "Deployment" and annotations_changed or nil,
    status_keeps = R.kind == "Deployment" and { "labels" } or nil,
  }
end

return workloads
