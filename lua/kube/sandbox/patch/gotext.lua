-- JSON values as Go prints them in error texts: %v of map[string]interface{} and its parts.
local json = require "kube.sandbox.json"

local gotext = {}

local function number(value)
  if type(value) == "number" then
    if value == math.floor(value) and math.abs(value) < 2 ^ 53 then return ("%d"):format(value) end
    return (("%.17g"):format(value))
  end
  return (tostring(value):gsub("[UuLl]+$", ""))
end

--- A value in the form of %v: map[a:1 b:[x y]], <nil>, strings bare.
function gotext.value(value)
  if value == nil or value == json.null then return "<nil>" end
  if type(value) == "string" then return value end
  if type(value) == "boolean" then return tostring(value) end
  if type(value) ~= "table" then return number(value) end
  local parts = {}
  if json.is_array(value) then
    for i, v in ipairs(value) do parts[i] = gotext.value(v) end
    return "[" .. table.concat(parts, " ") .. "]"
  end
  local keys = {}
  for k in pairs(value) do keys[#keys + 1] = k end
  table.sort(keys)
  for i, k in ipairs(keys) do parts[i] = k .. ":" .. gotext.value(value[k]) end
  return "map[" .. table.concat(parts, " ") .. "]"
end

--- The Go type that a decoded JSON value has.
function gotext.type(value)
  if value == nil or value == json.null then return "%!s(<nil>)" end
  if type(value) == "string" then return "string" end
  if type(value) == "boolean" then return "bool" end
  if type(value) == "table" then return json.is_array(value) and "[]interface {}" or "map[string]interface {}" end
  return number(value):find("^-?%d+$") and "int64" or "float64"
end

--- A value in the form of %s, which is made for strings and marks the rest.
function gotext.text(value)
  if type(value) == "string" then return value end
  if value == json.null then return "%!s(<nil>)" end
  return ("%%!s(%s=%s)"):format(gotext.type(value), gotext.value(value))
end

-- A value in the form of %#v, as Go source writes it.
local function source(value)
  if value == json.null then return "interface {}(nil)" end
  if type(value) == "string" then return '"' .. value:gsub('[\\"]', "\\%0") .. '"' end
  if type(value) ~= "table" then return gotext.value(value) end
  local parts = {}
  if json.is_array(value) then
    for i, v in ipairs(value) do parts[i] = source(v) end
  else
    for k, v in pairs(value) do parts[#parts + 1] = source(k) .. ":" .. source(v) end
    table.sort(parts)
  end
  return gotext.type(value) .. "{" .. table.concat(parts, ", ") .. "}"
end

--- A value as it shows inside the wrapper that server-side apply puts around it.
function gotext.wrapped(value) return "&value.valueUnstructured{Value:" .. source(value) .. "}" end

return gotext
