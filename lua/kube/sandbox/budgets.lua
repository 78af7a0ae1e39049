-- Disruption budgets as evictions ask them. Their status is written by whoever plays their controller.
local json = require "kube.sandbox.json"
local label_selector = require "kube.sandbox.label_selector"
local object = require "kube.sandbox.object"
local status = require "kube.sandbox.status"

local budgets = {}

local STORAGE = "policy/poddisruptionbudgets"

-- A pod that does not run, or is going anyway, disturbs nobody.
local IDLE = { Pending = true, Succeeded = true, Failed = true }

local function is_idle(pod)
  return IDLE[json.get(pod, "status", "phase")] or json.get(pod, "metadata", "deletionTimestamp") ~= nil
end

local function matching(S, pod)
  local found = {}
  for _, budget in ipairs((S.store:scan(STORAGE, pod.metadata.namespace))) do
    local selector = json.get(budget, "spec", "selector")
    if selector and label_selector.matches(selector, pod.metadata.labels) then found[#found + 1] = budget end
  end
  return found
end

local function refusal(why, retry_after)
  return status.new {
    code = 429,
    reason = "TooManyRequests",
    message = "Cannot evict pod as it would violate the pod's disruption budget.",
    details = { causes = json.array { json.object { reason = "DisruptionBudget", message = why } } },
    retry_after = retry_after,
  }
end

local function check(budget)
  local m, s = budget.metadata, budget.status or json.object {}
  if (s.observedGeneration or 0) < (m.generation or 0) then
    error(refusal(("The disruption budget %s is still being processed by the server."):format(m.name), 10))
  end
  if (s.disruptionsAllowed or 0) <= 0 then
    error(refusal(("The disruption budget %s needs %d healthy pods and has %d currently"):format(m.name,
      s.desiredHealthy or 0, s.currentHealthy or 0)))
  end
end

-- One disruption less is left, and the budget remembers whose it was.
local function spend(S, budget, pod)
  local R = S.kinds:find("policy", "v1", "poddisruptionbudgets")
  local s = json.shallow(budget.status)
  s.disruptionsAllowed = s.disruptionsAllowed - 1
  local disrupted = s.disruptedPods and json.shallow(s.disruptedPods) or json.object {}
  disrupted[pod.metadata.name] = S.clock:stamp()
  s.disruptedPods = disrupted
  S.store:update(R, object.key_of(R, budget), json.with(budget, "status", s))
end

--- Raises the refusal of a budget that cannot spare the pod; else counts its disruption.
function budgets.ask(S, pod, dry_run)
  if is_idle(pod) then return end
  local found = matching(S, pod)
  if found[2] then
    error(status.unclassified(
      "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."))
  end
  if not found[1] then return end
  check(found[1])
  if not dry_run then spend(S, found[1], pod) end
end

return budgets
