-- The cells of a pod: what its containers do, told in a word.
local json = require "kube.sandbox.json"
local text = require "kube.sandbox.printers.text"

local pods = {}

local get = json.get

-- Restarts of containers and when the last one was.
local Restarts = {}
Restarts.__index = Restarts

local function new_restarts() return setmetatable({ count = 0 }, Restarts) end

function Restarts:add(container)
  self.count = self.count + (get(container, "restartCount") or 0)
  local finished = get(container, "lastState", "terminated", "finishedAt")
  if finished and (not self.last or finished > self.last) then self.last = finished end
end

function Restarts:cell(now)
  if self.count == 0 or not self.last then return tostring(self.count) end
  return ("%d (%s ago)"):format(self.count, text.since(self.last, now))
end

local function ended(terminated, prefix)
  if text.either(terminated.reason) then return prefix .. terminated.reason end
  if (terminated.signal or 0) ~= 0 then return ("%sSignal:%d"):format(prefix, terminated.signal) end
  return ("%sExitCode:%d"):format(prefix, terminated.exitCode or 0)
end

-- What an init container that is not done says about the pod; nil when it is done. `place` counts
-- from 0.
local function init_reason(container, place, total)
  local terminated, waiting = get(container, "state", "terminated"), get(container, "state", "waiting")
  if terminated then return ended(terminated, "Init:") end
  local reason = get(waiting, "reason")
  if reason and reason ~= "" and reason ~= "PodInitializing" then return "Init:" .. reason end
  return ("Init:%d/%d"):format(place, total)
end

local function sidecars_of(pod)
  local restartable, count = {}, 0
  for _, container in ipairs(get(pod, "spec", "initContainers") or {}) do
    if container.restartPolicy == "Always" then
      restartable[container.name] = true
      count = count + 1
    end
  end
  return restartable, count
end

-- The state after the init containers: a reason while they hold the pod up.
local function run_init(pod, state)
  local all = get(pod, "spec", "initContainers") or {}
  for i, container in ipairs(get(pod, "status", "initContainerStatuses") or {}) do
    local sidecar = state.sidecars[container.name]
    state.restarts:add(container)
    if sidecar then state.sidecar_restarts:add(container) end
    local done = get(container, "state", "terminated") and (container.state.terminated.exitCode or 0) == 0
    if not done and sidecar and container.started == true then
      if container.ready then state.ready = state.ready + 1 end
    elseif not done then
      state.reason = init_reason(container, i - 1, #all)
      return true
    end
  end
  return false
end

local function run_containers(pod, state)
  state.restarts = state.sidecar_restarts
  local statuses = get(pod, "status", "containerStatuses") or {}
  local running, failure = false, nil
  for i = #statuses, 1, -1 do
    local container = statuses[i]
    state.restarts:add(container)
    local waiting, terminated = get(container, "state", "waiting"), get(container, "state", "terminated")
    if waiting and text.either(waiting.reason) then
      state.reason = waiting.reason
    elseif terminated then
      state.reason = ended(terminated, "")
      if (terminated.exitCode or 0) ~= 0 then failure = state.reason end
    elseif container.ready and get(container, "state", "running") then
      running = true
      state.ready = state.ready + 1
    end
  end
  if state.reason ~= "Completed" then return end
  if running and text.condition(get(pod, "status", "conditions"), "Ready") == "True" then
    state.reason = "Running"
  elseif failure then
    state.reason = failure
  elseif running then
    state.reason = "NotReady"
  end
end

local function first_reason(pod)
  for _, condition in ipairs(get(pod, "status", "conditions") or {}) do
    if condition.type == "PodScheduled" and condition.reason == "SchedulingGated" then return "SchedulingGated" end
  end
  return text.either(get(pod, "status", "reason"), get(pod, "status", "phase") or "")
end

local function gates(pod)
  local wanted, met = get(pod, "spec", "readinessGates") or {}, 0
  if #wanted == 0 then return "<none>" end
  for _, gate in ipairs(wanted) do
    if text.condition(get(pod, "status", "conditions"), gate.conditionType) == "True" then met = met + 1 end
  end
  return ("%d/%d"):format(met, #wanted)
end

local ENDS = {
  Succeeded = { reason = "Succeeded", message = "The pod has completed successfully." },
  Failed = { reason = "Failed", message = "The pod failed." },
}

--- What a row says beside its cells: the pod has ended.
function pods.conditions(pod)
  local ending = ENDS[get(pod, "status", "phase") or ""]
  if not ending then return nil end
  return json.array { json.object { type = "Completed", status = "True", reason = ending.reason,
    message = ending.message } }
end

--- The cells of a pod.
function pods.cells(pod, now)
  local restartable, extra = sidecars_of(pod)
  local state = { reason = first_reason(pod), ready = 0, sidecars = restartable,
    restarts = new_restarts(), sidecar_restarts = new_restarts() }
  local total = #(get(pod, "spec", "containers") or {}) + extra
  local initializing = run_init(pod, state)
  local initialized = text.condition(get(pod, "status", "conditions"), "Initialized") == "True"
  if not initializing or initialized then run_containers(pod, state) end
  local phase = get(pod, "status", "phase")
  if pod.metadata.deletionTimestamp then
    if get(pod, "status", "reason") == "NodeLost" then
      state.reason = "Unknown"
    elseif phase ~= "Succeeded" and phase ~= "Failed" then
      state.reason = "Terminating"
    end
  end
  local first_ip = get(pod, "status", "podIPs") and get(pod, "status", "podIPs")[1]
  return {
    pod.metadata.name, ("%d/%d"):format(state.ready, total), state.reason, state.restarts:cell(now),
    text.since(pod.metadata.creationTimestamp, now), text.either(get(first_ip, "ip"), "<none>"),
    text.either(get(pod, "spec", "nodeName"), "<none>"),
    text.either(get(pod, "status", "nominatedNodeName"), "<none>"), gates(pod),
  }
end

return pods
