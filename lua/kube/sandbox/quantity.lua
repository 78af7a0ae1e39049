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

local DECIMAL = { n = -9, u = -6, m = -3, [""] = 0, k = 3, M = 6, G = 9, T = 12, P = 15, E = 18 }
local BINARY = { Ki = 1, Mi = 2, Gi = 3, Ti = 4, Pi = 5, Ei = 6 }
local DECIMAL_NAMES, BINARY_NAMES = {}, { [0] = "" }
for name, exponent in pairs(DECIMAL) do DECIMAL_NAMES[exponent] = name end
for name, power in pairs(BINARY) do BINARY_NAMES[power] = name end

local function decimal_name(rank) return DECIMAL_NAMES[rank] end
local function exponent_name(rank) return rank == 0 and "" or "e" .. rank end

-- As many digits as a double holds exactly.
local DIGITS_MAX = 15

-- digits * 10^exponent with the largest suffix that leaves no fraction; nil when there is none.
local function decimal_text(sign, digits, exponent, names)
  local zeros
  digits, zeros = digits:gsub("^0+", ""):match("^(.-)(0*)$")
  if digits == "" then return "0" end
  exponent = exponent + #zeros
  local rank = math.min(math.floor(exponent / 3) * 3, 18)
  local suffix = names(rank)
  return suffix and sign .. digits .. ("0"):rep(exponent - rank) .. suffix
end

local function binary_text(sign, value, power)
  while value % 1 ~= 0 and power > 0 do value, power = value * 1024, power - 1 end
  if value % 1 ~= 0 then return nil end
  if value == 0 then return "0" end
  while value % 1024 == 0 and power < 6 do value, power = value / 1024, power + 1 end
  if power == 0 then
    return decimal_text(sign, ("%.0f"):format(value), 0, decimal_name)
  end
  return ("%s%.0f%s"):format(sign, value, BINARY_NAMES[power])
end

--- A quantity as the server writes it back: with the largest suffix of its sort that leaves no
--- fraction. One that is too long for that, that begins with a plus, or none, stays as it is.
function quantity.canonical(value)
  local text = type(value) == "number" and ("%.14g"):format(value) or value
  if type(text) ~= "string" then return value end
  local sign, whole, fraction, suffix = text:match("^(-?)(%d*)%.?(%d*)(%a*[+-]?%d*)$")
  if not whole or whole .. fraction == "" or #whole + #fraction > DIGITS_MAX then return text end
  if BINARY[suffix] then return binary_text(sign, tonumber(whole .. "." .. fraction), BINARY[suffix]) or text end
  local exponent = tonumber(suffix:match("^[eE]([+-]?%d+)$"))
  if exponent then return decimal_text(sign, whole .. fraction, exponent - #fraction, exponent_name) or text end
  if not DECIMAL[suffix] then return text end
  return decimal_text(sign, whole .. fraction, DECIMAL[suffix] - #fraction, decimal_name) or text
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
