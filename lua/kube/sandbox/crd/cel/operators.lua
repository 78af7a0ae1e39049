-- The operators of CEL, and its conversions between types.
local json = require "kube.sandbox.json"
local kinds = require "kube.sandbox.validate.value"
local values = require "kube.sandbox.crd.cel.values"

local operators = {}

local fail, type_of = values.fail, values.type

local function no_overload() fail("no such overload") end

local function is_number(t) return t == "int" or t == "double" end

-- ---- arithmetic ----

local function moment(kind, seconds) return { kind = kind, seconds = seconds } end

local function joined_lists(a, b)
  local items = { unpack(values.items(a)) }
  for _, item in ipairs(values.items(b)) do
    local place
    if a.list_type == "set" then
      for i, other in ipairs(items) do place = place or values.equal(item, other) and i end
    elseif a.list_type == "map" then
      for i, other in ipairs(items) do
        local same = true
        for _, key in ipairs(a.keys or {}) do
          local x, y = values.get(item, key), values.get(other, key)
          same = same and x ~= nil and y ~= nil and values.equal(x, y)
        end
        if same then place = i end
      end
    end
    items[place or #items + 1] = item
  end
  return values.list(items, a)
end

operators["_+_"] = function(a, b)
  local x, y = type_of(a), type_of(b)
  if x == y and (is_number(x)) then return a + b end
  if x == "string" and y == "string" then return a .. b end
  if x == "list" and y == "list" then return joined_lists(a, b) end
  if x == "duration" and y == "duration" then return moment("duration", a.seconds + b.seconds) end
  if x == "timestamp" and y == "duration" or x == "duration" and y == "timestamp" then
    return moment("timestamp", a.seconds + b.seconds)
  end
  no_overload()
end

operators["_-_"] = function(a, b)
  local x, y = type_of(a), type_of(b)
  if x == y and is_number(x) then return a - b end
  if y == "duration" and (x == "duration" or x == "timestamp") then return moment(x, a.seconds - b.seconds) end
  if x == "timestamp" and y == "timestamp" then return moment("duration", a.seconds - b.seconds) end
  no_overload()
end

operators["_*_"] = function(a, b)
  local x, y = type_of(a), type_of(b)
  if x ~= y or not is_number(x) then no_overload() end
  return a * b
end

operators["_/_"] = function(a, b)
  local x, y = type_of(a), type_of(b)
  if x ~= y or not is_number(x) then no_overload() end
  if x == "int" and b == 0 then fail("division by zero") end
  return a / b
end

operators["_%_"] = function(a, b)
  if type_of(a) ~= "int" or type_of(b) ~= "int" then no_overload() end
  if b == 0 then fail("modulus by zero") end
  return a % b
end

operators["-_"] = function(a)
  local x = type_of(a)
  if is_number(x) then return -a end
  if x == "duration" then return moment(x, -a.seconds) end
  no_overload()
end

operators["!_"] = function(a)
  if type(a) ~= "boolean" then no_overload() end
  return not a
end

-- ---- comparison ----

operators["_==_"] = values.equal

operators["_!=_"] = function(a, b) return not values.equal(a, b) end

-- -1, 0 or 1.
local function compare(a, b)
  local x, y = type_of(a), type_of(b)
  if x ~= y and is_number(x) and is_number(y) then
    a, b = tonumber(a), tonumber(b)
  elseif x ~= y then
    no_overload()
  elseif x == "timestamp" or x == "duration" then
    a, b = a.seconds, b.seconds
  elseif x == "bool" then
    a, b = a and 1 or 0, b and 1 or 0
  elseif not is_number(x) and x ~= "string" then
    no_overload()
  end
  return a < b and -1 or a > b and 1 or 0
end
operators.compare = compare

operators["_<_"] = function(a, b) return compare(a, b) < 0 end
operators["_<=_"] = function(a, b) return compare(a, b) <= 0 end
operators["_>_"] = function(a, b) return compare(a, b) > 0 end
operators["_>=_"] = function(a, b) return compare(a, b) >= 0 end

operators["_in_"] = function(item, container)
  local t = type_of(container)
  if t == "map" then return values.get(container, item) ~= nil end
  if t ~= "list" then no_overload() end
  for _, other in ipairs(values.items(container)) do
    if values.equal(item, other) then return true end
  end
  return false
end

-- ---- conversions ----

local function no_conversion(to) fail(("type conversion error from 'string' to '%s'"):format(to)) end

local function rfc3339(seconds)
  local whole = math.floor(seconds)
  local fraction = seconds - whole
  local tail = fraction > 0 and ("%.9f"):format(fraction):sub(2):gsub("0+$", "") or ""
  return os.date("!%Y-%m-%dT%H:%M:%S", whole) .. tail .. "Z"
end

local function duration_text(seconds) return kinds.float_text(seconds) .. "s" end

function operators.string(a)
  local t = type_of(a)
  if t == "string" then return a end
  if t == "int" then return (tostring(a):gsub("LL$", "")) end
  if t == "double" then return kinds.float_text(a) end
  if t == "bool" then return tostring(a) end
  if t == "timestamp" then return rfc3339(a.seconds) end
  if t == "duration" then return duration_text(a.seconds) end
  no_overload()
end

function operators.int(a)
  local t = type_of(a)
  if t == "int" then return a end
  if t == "double" then return values.int(a < 0 and math.ceil(a) or math.floor(a)) end
  if t == "timestamp" then return values.int(math.floor(a.seconds)) end
  if t ~= "string" then no_overload() end
  if not a:find("^[+-]?%d+$") then no_conversion "int" end
  return values.int(tonumber(a))
end

function operators.double(a)
  local t = type_of(a)
  if t == "double" then return a end
  if t == "int" then return tonumber(a) end
  if t ~= "string" then no_overload() end
  return tonumber(a) or no_conversion "double"
end

local TRUE = { ["true"] = true, TRUE = true, True = true, t = true, ["1"] = true }
local FALSE = { ["false"] = true, FALSE = true, False = true, f = true, ["0"] = true }

function operators.bool(a)
  if type(a) == "boolean" then return a end
  if type(a) ~= "string" then no_overload() end
  if TRUE[a] then return true end
  if FALSE[a] then return false end
  no_conversion "bool"
end

function operators.dyn(a) return a end

operators["type"] = function(a) return { kind = "type", name = type_of(a) } end

function operators.duration(a)
  if type_of(a) == "duration" then return a end
  if type(a) ~= "string" then no_overload() end
  local seconds = values.seconds(a)
  return seconds and moment("duration", seconds) or no_conversion "google.protobuf.Duration"
end

function operators.timestamp(a)
  if type_of(a) == "timestamp" then return a end
  local made = type(a) == "string" and values.from_json(a, { type = "string", format = "date-time" })
  if type(made) ~= "table" or made == json.null then no_conversion "google.protobuf.Timestamp" end
  return made
end

return operators
