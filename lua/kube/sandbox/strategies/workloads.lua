-- Deployments, replica sets, stateful sets, daemon sets, replication controllers and pod templates:
-- what is filled in, and what counts as a change.
local json = require "kube.sandbox.json"
local pod_spec = require "kube.sandbox.strategies.pod_spec"
local workload_rules = require "kube.sandbox.strategies.workload_rules"

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
  inside(spec, "updateStrategy", rolling { maxUnavailable = 1 })
  inside(spec, "updateStrategy", function(strategy)
    inside(strategy, "rollingUpdate", function(update) set(update, "maxSurge", 0) end)
  end)
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

local function update_daemon_set(_, new, old, subresource)
  if subresource then return new end
  local count = json.get(old.metadata, "annotations", TEMPLATE_GENERATION) or "1"
  if not json.equal(new.spec.template, old.spec.template) then count = ("%d"):format(tonumber(count) + 1) end
  new.metadata = json.shallow(new.metadata)
  set_template_generation(new.metadata, count)
  return new
end

-- Sets that may lack several pods at once are behind a gate, and it is closed.
local function close_gate(_, document)
  if json.get(document, "spec", "updateStrategy", "rollingUpdate", "maxUnavailable") == nil then return document end
  document.spec = json.shallow(document.spec)
  inside(document.spec, "updateStrategy", function(strategy)
    inside(strategy, "rollingUpdate", function(update) update.maxUnavailable = nil end)
  end)
  return document
end

-- Its annotations are part of what a deployment rolls out.
local function annotations_changed(new, old)
  return not json.equal(new.metadata.annotations or json.object {}, old.metadata.annotations or json.object {})
end

function workloads.of(R)
  local gated = R.kind == "StatefulSet" and close_gate or nil
  return {
    default = default,
    prepare_create = gated,
    prepare_update = R.kind == "DaemonSet" and update_daemon_set or gated,
    validate = workload_rules.validate,
    generation_changed = R.kind == "Deployment" and annotations_changed or nil,
    status_keeps = R.kind == "Deployment" and { "labels" } or nil,
  }
end

return workloads
