-- Values of CEL. int is int64 cdata, double a number, string and bool are Lua's, null is json.null;
-- the rest are tables with a kind: list, map, object, timestamp, duration, optional, type.
-- Lists, maps and objects keep the JSON that they stand for and turn its parts into values as asked.
local ffi = require "ffi"
local json = require "kube.sandbox.json"
local text = require "kube.sandbox.printers.text"
local kinds = require "kube.sandbox.validate.value"

local values = {}

local int64 = ffi.typeof "int64_t"

--- Raises an error of evaluation.
function values.fail(message) error({ evaluation = message }, 0) end

function values.int(number) return int64(number) end

--- The name of a value's type.
function values.type(value)
  local t = type(value)
  if t == "cdata" then return "int" end
  if t == "number" then return "double" end
  if t == "boolean" then return "bool" end
  if value == json.null then return "null_type" end
  if t == "string" then return "string" end
  return value.kind == "object" and "map" or value.kind
end

-- ---- from JSON ----

local UNITS = { h = 3600, m = 60, s = 1, ms = 1e-3, us = 1e-6, ["µs"] = 1e-6, ns = 1e-9 }

--- Seconds of a duration as Go writes it (1h30m), or nil.
function values.seconds(source)
  local sign, rest = source:match("^([+-]?)(.*)$")
  if rest == "0" then return 0 end
  local total, at = 0, 1
  while at <= #rest do
    local number, unit, after = rest:match("^(%d*%.?%d*)([^%d.]+)()", at)
    if not number or not tonumber(number) or not UNITS[unit] then return nil end
    total, at = total + tonumber(number) * UNITS[unit], after
  end
  return rest ~= "" and (sign == "-" and -total or total) or nil
end

local FORMATS = {
  ["date-time"] = function(value)
    local seconds = text.seconds(value:upper())
    return seconds and { kind = "timestamp", seconds = seconds, source = value }
  end,
  date = function(value)
    local seconds = text.seconds(value .. "T00:00:00Z")
    return seconds and { kind = "timestamp", seconds = seconds, source = value .. "T00:00:00Z" }
  end,
  duration = function(value)
    local seconds = values.seconds(value)
    return seconds and { kind = "duration", seconds = seconds }
  end,
}
FORMATS.datetime = FORMATS["date-time"]

local function additional(node)
  return type(node.additionalProperties) == "table" and node.additionalProperties or nil
end

--- The value of a piece of JSON. Its schema says what numbers and texts are; nil: they tell themselves.
function values.from_json(value, node)
  local kind = kinds.kind(value)
  if kind == "null" then return json.null end
  if kind == "integer" then
    if node and node.type == "number" then return tonumber(value) end
    return int64(value)
  end
  if kind == "number" then return kinds.double(value) end
  if kind == "string" then
    local convert = node and node.type == "string" and FORMATS[node.format]
    return convert and convert(value) or value
  end
  if kind == "array" then
    local list = { kind = "list", json = value }
    if node then
      list.node, list.list_type = node.items, node["x-kubernetes-list-type"]
      list.keys = node["x-kubernetes-list-map-keys"]
    end
    return list
  end
  if kind ~= "object" then return value end
  if node and node.properties then return { kind = "object", json = value, node = node } end
  return { kind = "map", json = value, node = node and additional(node) }
end

-- ---- lists ----

--- A list of values.
function values.list(items, like)
  return { kind = "list", items = items, list_type = like and like.list_type, keys = like and like.keys }
end

--- The values in a list, as an array.
function values.items(list)
  if not list.items then
    local items = {}
    for i, item in ipairs(list.json) do items[i] = values.from_json(item, list.node) end
    list.items = items
  end
  return list.items
end

-- ---- maps and objects ----

--- An empty map whose entries are added with set_entry.
function values.new_map() return { kind = "map", entries = {}, order = {} } end

-- Keys of entries: int and double of one number are one key.
local function entry_key(key)
  if type(key) == "cdata" then return "n" .. tostring(key):gsub("LL$", "") end
  if type(key) == "number" then return "n" .. ("%.17g"):format(key) end
  return type(key):sub(1, 1) .. tostring(key)
end

function values.set_entry(map, key, value)
  local id = entry_key(key)
  if not map.entries[id] then map.order[#map.order + 1] = id end
  map.entries[id] = { key, value }
end

local ESCAPED = { underscores = "__", dot = ".", dash = "-", slash = "/" }
local KEYWORDS = {}
for word in ("true false null in as break const continue else for function if import let loop package namespace return "
  .. "var void while"):gmatch("%S+") do KEYWORDS[word] = word end

--- The property that a name in an expression stands for: a__dash__b is a-b, __in__ is in.
function values.property_name(name)
  local keyword = name:match("^__(%l+)__$")
  if keyword and KEYWORDS[keyword] then return keyword end
  return (name:gsub("__(%l+)__", ESCAPED))
end

--- What is under a key, nil when nothing is. `field`: the key was written as a name.
function values.get(map, key, field)
  if map.entries then
    local entry = map.entries[entry_key(key)]
    return entry and entry[2]
  end
  if type(key) ~= "string" then return nil end
  local name = field and map.kind == "object" and values.property_name(key) or key
  local value = map.json[name]
  if value == nil then return nil end
  local node = map.node
  if map.kind == "object" then node = map.node.properties[name] end
  -- A field that is null is one that is not there.
  if value == json.null and map.kind == "object" then return nil end
  return values.from_json(value, node)
end

--- The keys of a map.
function values.keys(map)
  local keys = {}
  if map.entries then
    for i, id in ipairs(map.order) do keys[i] = map.entries[id][1] end
  else
    keys = kinds.sorted_keys(map.json)
  end
  return keys
end

--- How many there are in a list or a map.
function values.size(value)
  if value.kind == "list" then return value.items and #value.items or #value.json end
  return #values.keys(value)
end

-- ---- equality ----

local function same_sets(a, b)
  for _, x in ipairs(a) do
    local found = false
    for _, y in ipairs(b) do found = found or values.equal(x, y) end
    if not found then return false end
  end
  return true
end

local function equal_lists(a, b)
  local x, y = values.items(a), values.items(b)
  if #x ~= #y then return false end
  if a.list_type == "set" or a.list_type == "map" then return same_sets(x, y) end
  for i, item in ipairs(x) do
    if not values.equal(item, y[i]) then return false end
  end
  return true
end

local function equal_maps(a, b)
  local keys = values.keys(a)
  if #keys ~= #values.keys(b) then return false end
  for _, key in ipairs(keys) do
    local other = values.get(b, key)
    if other == nil or not values.equal(values.get(a, key), other) then return false end
  end
  return true
end

function values.equal(a, b)
  local x, y = values.type(a), values.type(b)
  if (x == "int" or x == "double") and (y == "int" or y == "double") then
    if x == y then return a == b end
    return tonumber(a) == tonumber(b)
  end
  if x ~= y then return false end
  if x == "list" then return equal_lists(a, b) end
  if x == "map" then return equal_maps(a, b) end
  if x == "timestamp" or x == "duration" then return a.seconds == b.seconds end
  if x == "type" then return a.name == b.name end
  if x == "optional" then
    if a.value == nil or b.value == nil then return a.value == b.value end
    return values.equal(a.value, b.value)
  end
  return a == b
end

return values
