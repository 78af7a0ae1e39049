-- Resource quantities ("100m", "1Gi"): as numbers, and what they say about a pod.
local json = require "kube.sandbox.json"

local quantity = {}

local FACTORS = {
  [""] = 1, n = 1e-9, u = 1e-6, m = 1e-3, k = 1e3, M = 1e6, G = 1e9, T = 1e12, P = 1e15, E = 1e18,
  Ki = 2 ^ 10, Mi = 2 ^ 20, Gi = 2 ^ 30, Ti = 2 ^ 40, Pi = 2 ^ 50, Ei = 2 ^ 60,
}

--- The number that a quantity stands for, or nil.
function quantity.number(value)
  if type(value) == "number" then return value end
  local digits, suffix = tostring(value):match("^([+-]?[%d.]+)(.*)$")
  local exponent = suffix and suffix:match("^[eE]([+-]?%d+)$")
  if exponent then return tonumber(digits) and tonumber(digits) * 10 ^ tonumber(exponent) end
  return digits and tonumber(digits) and FACTORS[suffix] and tonumber(digits) * FACTORS[suffix]
end

local COMPUTE = { "cpu", "memory" }

-- Whether a list of resources has a positive cpu or memory.
local function counts(list)
  for _, name in ipairs(COMPUTE) do
    if (quantity.number(json.get(list, name) or 0) or 0) > 0 then return true end
  end
  return false
end

local function is_guaranteed(resources)
  for _, name in ipairs(COMPUTE) do
    local limit = quantity.number(json.get(resources, "limits", name) or 0) or 0
    local request = quantity.number(json.get(resources, "requests", name) or 0) or 0
    if limit == 0 or limit ~= request then return false end
  end
  return true
end

--- The quality of service that a pod spec asks for.
function quantity.qos(spec)
  local guaranteed, any = true, false
  for _, group in ipairs { "containers", "initContainers" } do
    for _, c in ipairs(json.get(spec, group) or {}) do
      local resources = c.resources or {}
      any = any or counts(json.get(resources, "limits")) or counts(json.get(resources, "requests"))
      guaranteed = guaranteed and is_guaranteed(resources)
    end
  end
  if not any then return "BestEffort" end
  return guaranteed and "Guaranteed" or "Burstable"
end

return quantity
