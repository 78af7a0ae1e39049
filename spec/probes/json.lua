-- JSON for the probes: arrays stay arrays and objects objects also when empty, and the text that
-- is written has its keys sorted. Independent of the codec of the product, which is under test.
local dkjson = require "dkjson"

local json = {}

json.null = setmetatable({}, { __tostring = function() return "null" end })

local array_mt, object_mt = { __jsontype = "array" }, { __jsontype = "object" }

--- Marks a table as an array (or object), which matters when it is empty.
function json.array(t) return setmetatable(t or {}, array_mt) end
function json.object(t) return setmetatable(t or {}, object_mt) end

function json.is_array(v)
  if type(v) ~= "table" or v == json.null then return false end
  local mt = getmetatable(v)
  if mt and mt.__jsontype then return mt.__jsontype == "array" end
  return v[1] ~= nil
end

function json.is_object(v) return type(v) == "table" and v ~= json.null and not json.is_array(v) end

--- The value of a JSON text, or nil and what is wrong.
function json.decode(text)
  local value, stop, problem = dkjson.decode(text, 1, json.null, object_mt, array_mt)
  if problem then return nil, problem end
  if text:find("%S", stop) then return nil, "text behind the value" end
  return value
end

local escapes = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }

local function quote(s)
  return '"' .. s:gsub('[%c"\\]', function(c) return escapes[c] or ("\\u%04x"):format(c:byte()) end) .. '"'
end

local function number(n)
  if n == math.floor(n) and math.abs(n) < 2 ^ 53 then return ("%d"):format(n) end
  return ("%.17g"):format(n)
end

local function sorted_keys(t)
  local keys = {}
  for key in pairs(t) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end

json.sorted_keys = sorted_keys

--- The text of a value, with sorted keys and no spaces.
function json.encode(v)
  if v == json.null then return "null" end
  if type(v) == "string" then return quote(v) end
  if type(v) == "number" then return number(v) end
  if type(v) == "boolean" then return tostring(v) end
  assert(type(v) == "table", "not a JSON value: " .. type(v))
  local parts = {}
  if json.is_array(v) then
    for i, item in ipairs(v) do parts[i] = json.encode(item) end
    return "[" .. table.concat(parts, ",") .. "]"
  end
  for i, key in ipairs(sorted_keys(v)) do parts[i] = quote(key) .. ":" .. json.encode(v[key]) end
  return "{" .. table.concat(parts, ",") .. "}"
end

--- v.a.b... or nil where a step is missing.
function json.get(v, ...)
  for i = 1, select("#", ...) do
    if type(v) ~= "table" or v == json.null then return nil end
    v = v[select(i, ...)]
  end
  return v
end

return json
