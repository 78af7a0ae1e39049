-- Amounts of resources ("100m", "1Gi", "1e3"), exactly. Pure: scripts' kube.quantity and the sandbox share it.
--
-- An amount is an integer of billionths, which is as fine as Kubernetes counts, in limbs of seven digits
-- with the lowest first: doubles hold every sum and product of two steps exactly.
local M = {}

local BASE, WIDTH = 10000000, 7
local TEXT_MAX, EXPONENT_MAX = 64, 64
local NANO = 9 -- digits behind the point
local BINARY_LIMIT = "9223372036854775807" -- more is not told with a binary suffix

local DECIMAL = { n = -9, u = -6, m = -3, [""] = 0, k = 3, M = 6, G = 9, T = 12, P = 15, E = 18 }
local BINARY = { Ki = 1, Mi = 2, Gi = 3, Ti = 4, Pi = 5, Ei = 6 }
local DECIMAL_NAMES, BINARY_NAMES = {}, { [0] = "" }
for name, exponent in pairs(DECIMAL) do DECIMAL_NAMES[exponent] = name end
for name, power in pairs(BINARY) do BINARY_NAMES[power] = name end

-- Natural numbers -----------------------------------------------------------------------------------

local function trim(limbs)
  while limbs[#limbs] == 0 do limbs[#limbs] = nil end
  return limbs
end

local function from_digits(digits)
  local limbs = {}
  for stop = #digits, 1, -WIDTH do
    limbs[#limbs + 1] = tonumber(digits:sub(math.max(stop - WIDTH + 1, 1), stop))
  end
  return trim(limbs)
end

local function to_digits(limbs)
  local parts = { ("%d"):format(limbs[#limbs] or 0) }
  for i = #limbs - 1, 1, -1 do parts[#parts + 1] = ("%07d"):format(limbs[i]) end
  return table.concat(parts)
end

local function times(limbs, factor)
  local result, carry = {}, 0
  for i = 1, #limbs do
    local value = limbs[i] * factor + carry
    result[i] = value % BASE
    carry = math.floor(value / BASE)
  end
  if carry > 0 then result[#result + 1] = carry end
  return result
end

local function divide(limbs, divisor)
  local result, rest = {}, 0
  for i = #limbs, 1, -1 do
    local value = rest * BASE + limbs[i]
    result[i] = math.floor(value / divisor)
    rest = value % divisor
  end
  return trim(result), rest
end

local function compare(a, b)
  if #a ~= #b then return #a < #b and -1 or 1 end
  for i = #a, 1, -1 do
    if a[i] ~= b[i] then return a[i] < b[i] and -1 or 1 end
  end
  return 0
end

local function sum(a, b)
  local result, carry = {}, 0
  for i = 1, math.max(#a, #b) do
    local value = (a[i] or 0) + (b[i] or 0) + carry
    result[i] = value % BASE
    carry = value >= BASE and 1 or 0
  end
  if carry > 0 then result[#result + 1] = carry end
  return result
end

-- a - b, where a is not the smaller one.
local function difference(a, b)
  local result, borrow = {}, 0
  for i = 1, #a do
    local value = a[i] - (b[i] or 0) - borrow
    result[i] = value % BASE
    borrow = value < 0 and 1 or 0
  end
  return trim(result)
end

-- Reading --------------------------------------------------------------------------------------------

-- digits * 10^exponent in billionths; what is finer is rounded away from zero.
local function shifted(digits, exponent)
  exponent = exponent + NANO
  if exponent >= 0 then return from_digits(digits .. ("0"):rep(exponent)) end
  local kept, cut = digits:sub(1, exponent - 1), digits:sub(exponent)
  local limbs = from_digits(kept)
  return cut:find("[1-9]") and sum(limbs, { 1 }) or limbs
end

local MAX = shifted(BINARY_LIMIT, 0)

-- How a suffix is to be read: a power of 1024, or an exponent of 10, and the format that it stands for.
local function read_suffix(suffix)
  if BINARY[suffix] then return BINARY[suffix], 0, "binary" end
  if DECIMAL[suffix] then return 0, DECIMAL[suffix], "decimal" end
  local exponent = tonumber(suffix:match("^[eE]([+-]?%d+)$"))
  if exponent and math.abs(exponent) <= EXPONENT_MAX then return 0, exponent, "exponent" end
end

---@class kube.Amount
---@field negative boolean
---@field limbs integer[]
---@field format "decimal"|"binary"|"exponent"

--- Reads an amount; nil when the text is none.
---@param text string
---@return kube.Amount?
function M.parse(text)
  if #text > TEXT_MAX then return nil end
  local sign, whole, fraction, suffix = text:match("^([+-]?)(%d*)%.?(%d*)([%a]*[+-]?%d*)$")
  if not whole or whole .. fraction == "" then return nil end
  local power, exponent, format = read_suffix(suffix)
  if not power then return nil end
  local digits = whole:gsub("^0+", "") .. fraction
  local limbs = shifted(digits, exponent - #fraction)
  if power > 0 then
    -- Multiplied first: a fraction of a Ki may be whole.
    limbs = from_digits(digits)
    for _ = 1, power do limbs = times(limbs, 1024) end
    limbs = shifted(to_digits(limbs), -#fraction)
    if compare(limbs, MAX) > 0 then limbs = MAX end
  end
  return { negative = sign == "-" and #limbs > 0, limbs = limbs, format = format }
end

-- Writing --------------------------------------------------------------------------------------------

local function decimal_text(limbs, format)
  local digits, zeros = to_digits(limbs):match("^(.-)(0*)$")
  local exponent = #zeros - NANO
  local rank = math.floor(exponent / 3) * 3
  local suffix = format == "decimal" and DECIMAL_NAMES[rank] or rank == 0 and "" or "e" .. rank
  return digits .. ("0"):rep(exponent - rank) .. suffix
end

-- The whole number in the amount; nil when there is a fraction.
local function whole_of(limbs)
  local digits = to_digits(limbs)
  if not digits:find("000000000$") then return nil end
  return from_digits(digits:sub(1, -NANO - 1))
end

local SMALL = { 1024 }

local function binary_text(whole)
  local power = 0
  while power < 6 do
    local quotient, rest = divide(whole, 1024)
    if rest ~= 0 then break end
    whole, power = quotient, power + 1
  end
  return to_digits(whole) .. BINARY_NAMES[power]
end

--- The text as Kubernetes writes it: with the largest suffix of its sort that leaves no fraction.
---@param amount kube.Amount
---@return string
function M.format(amount)
  local limbs = amount.limbs
  if #limbs == 0 then return "0" end
  local sign = amount.negative and "-" or ""
  local whole = amount.format == "binary" and whole_of(limbs)
  if whole and compare(whole, SMALL) >= 0 then return sign .. binary_text(whole) end
  return sign .. decimal_text(limbs, amount.format == "exponent" and "exponent" or "decimal")
end

--- The nearest number.
---@param amount kube.Amount
---@return number
function M.number(amount)
  local digits = to_digits(amount.limbs)
  digits = ("0"):rep(NANO + 1 - #digits) .. digits
  local value = tonumber(digits:sub(1, -NANO - 1) .. "." .. digits:sub(-NANO))
  return amount.negative and -value or value
end

--- -1, 0 or 1.
---@param a kube.Amount
---@param b kube.Amount
---@return integer
function M.compare(a, b)
  if a.negative ~= b.negative then return a.negative and -1 or 1 end
  local order = compare(a.limbs, b.limbs)
  return a.negative and -order or order
end

--- a + b. It is written as a is, or as b when a is 0.
---@param a kube.Amount
---@param b kube.Amount
---@return kube.Amount
function M.add(a, b)
  local format = #a.limbs == 0 and b.format or a.format
  if a.negative == b.negative then return { negative = a.negative, limbs = sum(a.limbs, b.limbs), format = format } end
  local order = compare(a.limbs, b.limbs)
  if order == 0 then return { negative = false, limbs = {}, format = format } end
  local larger, smaller = a, b
  if order < 0 then larger, smaller = b, a end
  return { negative = larger.negative, limbs = difference(larger.limbs, smaller.limbs), format = format }
end

--- The amount with the other sign.
---@param amount kube.Amount
---@return kube.Amount
function M.negate(amount)
  return { negative = not amount.negative and #amount.limbs > 0, limbs = amount.limbs, format = amount.format }
end

return M
