-- JSON values as Go sees them once decoded: their kinds, and how it prints doubles.
local json = require "kube.sandbox.json"

local value = {}

local EXACT = 2 ^ 53

--- null, boolean, string, integer, number, array or object. Numbers that no double can hold are kept
--- as userdata.
function value.kind(v)
  local t = type(v)
  if v == nil or v == json.null then return "null" end
  if t == "number" then return v % 1 == 0 and v >= -EXACT and v <= EXACT and "integer" or "number" end
  if t == "cdata" then return tostring(v):find("U", 1, true) and "number" or "integer" end
  if t == "table" then return json.is_array(v) and "array" or "object" end
  return t == "userdata" and "number" or t
end

--- The double of any JSON number.
function value.double(v)
  if type(v) == "userdata" then return tonumber(tostring(v)) end
  return tonumber(v)
end

local function shortest(v)
  for precision = 0, 16 do
    local text = ("%." .. precision .. "e"):format(v)
    if tonumber(text) == v then return text end
  end
end

--- A double as fmt prints it: the fewest digits, an exponent from 1e+06 and below 1e-04 on.
function value.float_text(v)
  local sign, first, rest, exponent = shortest(v):match("^(%-?)(%d)%.?(%d*)e([+-]%d+)$")
  local digits, e = (first .. rest):gsub("0+$", ""), tonumber(exponent)
  if digits == "" then return sign .. "0" end
  if e < -4 or e >= 6 then
    local mantissa = #digits > 1 and digits:sub(1, 1) .. "." .. digits:sub(2) or digits
    return ("%s%se%s%02d"):format(sign, mantissa, e < 0 and "-" or "+", math.abs(e))
  end
  if e < 0 then return sign .. "0." .. ("0"):rep(-e - 1) .. digits end
  if #digits <= e + 1 then return sign .. digits .. ("0"):rep(e + 1 - #digits) end
  return sign .. digits:sub(1, e + 1) .. "." .. digits:sub(e + 2)
end

--- The keys of an object in order: Go walks its maps in none, the sandbox always in this one.
function value.sorted_keys(object)
  local keys = {}
  for key in pairs(object) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end

return value
