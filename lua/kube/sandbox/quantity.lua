-- Resource quantities ("100m", "1Gi"): as numbers, and what they say about a pod.
local amount = require "kube._amount"
local json = require "kube.sandbox.json"

local quantity = {}

--- The number that a quantity stands for, or nil.
function quantity.number(value)
  if type(value) == "number" then return value end
  local parsed = amount.parse(tostring(value))
  return parsed and amount.number(parsed)
end

local POWERS = { Ki = 10, Mi = 20, Gi = 30, Ti = 40, Pi = 50, Ei = 60 }
local EXPONENTS = { n = -9, u = -6, m = -3, [""] = 0, k = 3, M = 6, G = 9, T = 12, P = 15, E = 18 }

-- Whether the server takes a text for canonical, by a look at its digits, and keeps it as it is: "1.234", "+5".
local function is_kept(text)
  local whole, fraction, suffix = text:match("^[+-]?0*(%d*)%.?(%d*)(.*)$")
  if not whole then return false end
  if whole == "" then whole = "0" end
  if suffix:find("i$") then
    local room = 14 - #whole - math.floor(POWERS[suffix] * 3 / 10)
    return fraction == "" and room >= 0 and tonumber(whole) % 8 ~= 0
  end
  local digits = whole .. fraction
  local scale = (EXPONENTS[suffix] or tonumber(suffix:match("^[eE]([+-]?%d+)$")) or 0) - #fraction
  return #digits <= 18 and scale >= -9 and scale % 3 == 0 and not digits:find("000$") and not digits:find("^0")
end

--- A quantity as the server writes it back; what is none stays as it is.
function quantity.canonical(value)
  local text = type(value) == "number" and ("%.14g"):format(value) or value
  local parsed = type(text) == "string" and amount.parse(text)
  if not parsed or is_kept(text) then return text end
  return amount.format(parsed)
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
