-- What workloads say of their pods must add up.
local field = require "kube.sandbox.field"
local json = require "kube.sandbox.json"

local workload_status = {}

-- By kind: the counts that are not negative, those that are not above status.replicas, and what
-- status.readyReplicas is called where more are available.
local RULES = {
  Deployment = { counts = { "observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas",
    "unavailableReplicas", "terminatingReplicas", "collisionCount" },
    parts = { "updatedReplicas", "readyReplicas", "availableReplicas" }, ready = "readyReplicas" },
  ReplicaSet = { counts = { "replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas",
    "observedGeneration", "terminatingReplicas" },
    parts = { "fullyLabeledReplicas", "readyReplicas", "availableReplicas" }, ready = "readyReplicas" },
  StatefulSet = { counts = { "replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas",
    "observedGeneration", "collisionCount" },
    parts = { "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas" },
    ready = "status.readyReplicas" },
  DaemonSet = { counts = { "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady",
    "observedGeneration", "updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount" },
    parts = {} },
}
RULES.ReplicationController = { counts = { "replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas",
  "observedGeneration" }, parts = RULES.ReplicaSet.parts, ready = "readyReplicas" }

local function number(status, name) return tonumber(json.get(status, name)) or 0 end

--- Adds what is wrong with a status.
function workload_status.check(errors, kind, new, old)
  local rules = RULES[kind]
  local function refuse(name, text)
    errors[#errors + 1] = field.invalid("status." .. name, number(new, name), text)
  end
  for _, name in ipairs(rules.counts) do
    if number(new, name) < 0 then refuse(name, "must be greater than or equal to 0") end
  end
  for _, name in ipairs(rules.parts) do
    if number(new, name) > number(new, "replicas") then refuse(name, "cannot be greater than status.replicas") end
  end
  if rules.ready and number(new, "availableReplicas") > number(new, "readyReplicas") then
    refuse("availableReplicas", "cannot be greater than " .. rules.ready)
  end
  if json.get(old, "collisionCount") and number(new, "collisionCount") < number(old, "collisionCount") then
    refuse("collisionCount", "cannot be decremented")
  end
end

return workload_status
