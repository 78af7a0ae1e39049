-- What pods say of themselves: addresses that are some, and containers that have ended for good.
local field = require "kube.sandbox.field"
local ip = require "kube.sandbox.ip"
local json = require "kube.sandbox.json"
local names = require "kube.sandbox.names"

local pod_status = {}

local SYSTEM = { PodScheduled = true, Ready = true, Initialized = true }

local function add(errors, e) errors[#errors + 1] = e end

local function check_conditions(errors, conditions)
  for i, condition in ipairs(conditions) do
    local path = ("status.conditions[%d]"):format(i - 1)
    local seen = json.get(condition, "observedGeneration") or 0
    if seen < 0 then
      add(errors, field.invalid(path .. ".observedGeneration", seen, "must be a non-negative integer"))
    end
    for _, problem in ipairs { not SYSTEM[condition.type] and names.qualified(condition.type or "") or nil } do
      add(errors, field.invalid(path .. ".Type", condition.type or "", problem))
    end
  end
end

local function check_nomination(errors, new, old)
  local node, path = json.get(new, "status", "nominatedNodeName") or "", "status.nominatedNodeName"
  if node == "" or node == json.get(old, "status", "nominatedNodeName") then return end
  for _, problem in ipairs { names.subdomain(node) } do add(errors, field.invalid(path, node, problem)) end
  if (json.get(old, "spec", "nodeName") or "") ~= "" then
    add(errors, field.forbidden(path, "may not be set on pods that are already bound to a node"))
  end
end

-- A container that has ended starts again only where its policy says so.
local function check_ends(errors, new, old, list)
  local policy, now = json.get(old, "spec", "restartPolicy"), {}
  for _, container in ipairs(json.get(new, "status", list) or {}) do now[container.name] = container end
  for i, before in ipairs(json.get(old, "status", list) or {}) do
    local ended, after = json.get(before, "state", "terminated"), now[before.name]
    local again = policy == "Always" or policy == "OnFailure" and ended and ended.exitCode ~= 0
    if ended and after and not again and not json.get(after, "state", "terminated") then
      add(errors, field.forbidden(("status.%s[%d].state"):format(list, i - 1),
        "may not be transitioned to non-terminated state"))
    end
  end
end

local function check_addresses(errors, entries)
  local families, shown = {}, {}
  for i, entry in ipairs(entries) do
    local address = entry.ip or ""
    local problem = ip.problem(address)
    if problem then add(errors, field.invalid(("status.podIPs[%d]"):format(i - 1), address, problem)) end
    families[ip.family(address) or ""] = true
    shown[i] = ('{"IP":%s}'):format(field.show(address))
  end
  if #entries > 1 and not (#entries == 2 and families.IPv4 and families.IPv6) then
    add(errors, field.shown("status.podIPs", "[" .. table.concat(shown, ",") .. "]",
      "may specify no more than one IP for each IP family"))
  end
end

--- Adds what is wrong with the status of a pod.
function pod_status.check(errors, new, old)
  local status = new.status or json.object {}
  check_conditions(errors, json.get(status, "conditions") or {})
  check_nomination(errors, new, old)
  local seen, class = json.get(status, "observedGeneration") or 0, json.get(status, "qosClass") or ""
  if seen < 0 then
    add(errors, field.invalid("status.observedGeneration", seen, "must be a non-negative integer"))
  end
  if class ~= (json.get(old, "status", "qosClass") or "") then
    add(errors, field.immutable("status.qosClass", class))
  end
  check_ends(errors, new, old, "containerStatuses")
  check_addresses(errors, json.get(status, "podIPs") or {})
end

return pod_status
