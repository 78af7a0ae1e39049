-- The functions of CEL that the sandbox can run: those of the language, and of Kubernetes' libraries
-- for strings, lists, sets and regular expressions. Members are named with a dot in front.
local operators = require "kube.sandbox.crd.cel.operators"
local regex = require "kube.sandbox.validate.regex"
local strings = require "kube.sandbox.crd.cel.strings"
local values = require "kube.sandbox.crd.cel.values"

local functions = {}

local fail, type_of = values.fail, values.type

local known = {}
for name, run in pairs(operators) do known[name] = run end
for name, run in pairs(strings) do known["." .. name] = run end
known[".compare"], known.compare = nil, nil

local function no_overload() fail("no such overload") end

-- ---- sizes ----

function known.size(a)
  local t = type_of(a)
  if t == "string" then return values.int(#regex.runes(a)) end
  if t ~= "list" and t ~= "map" then fail("no such overload: size") end
  return values.int(values.size(a))
end
known[".size"] = known.size

-- ---- lists ----

local function items_of(list)
  if type_of(list) ~= "list" then no_overload() end
  return values.items(list)
end

known[".isSorted"] = function(list)
  local items = items_of(list)
  for i = 2, #items do
    if operators.compare(items[i - 1], items[i]) > 0 then return false end
  end
  return true
end

known[".sum"] = function(list)
  local items = items_of(list)
  local total = items[1]
  if total == nil then return values.int(0) end
  for i = 2, #items do total = operators["_+_"](total, items[i]) end
  return total
end

local function extreme(list, sign, name)
  local items = items_of(list)
  local best = items[1]
  if best == nil then fail(name .. " called on empty list") end
  for i = 2, #items do
    if operators.compare(items[i], best) * sign > 0 then best = items[i] end
  end
  return best
end

known[".min"] = function(list) return extreme(list, -1, "min") end
known[".max"] = function(list) return extreme(list, 1, "max") end

local function place(list, item, from, to, step)
  local items = items_of(list)
  for i = from or #items, to or #items, step do
    if values.equal(items[i], item) then return values.int(i - 1) end
  end
  return values.int(-1)
end

local string_index, string_last = strings.indexOf, strings.lastIndexOf

known[".indexOf"] = function(target, item, from)
  if type(target) == "string" then return string_index(target, item, from) end
  return place(target, item, 1, nil, 1)
end

known[".lastIndexOf"] = function(target, item, from)
  if type(target) == "string" then return string_last(target, item, from) end
  return place(target, item, nil, 1, -1)
end

-- ---- sets ----

local function is_subset(of, list)
  for _, item in ipairs(items_of(list)) do
    if not operators["_in_"](item, of) then return false end
  end
  return true
end

known["sets.contains"] = is_subset
known["sets.equivalent"] = function(a, b) return is_subset(a, b) and is_subset(b, a) end
known["sets.intersects"] = function(a, b)
  for _, item in ipairs(items_of(b)) do
    if operators["_in_"](item, a) then return true end
  end
  return false
end

-- ---- optional values ----

known["optional.of"] = function(value) return { kind = "optional", value = value } end
known["optional.none"] = function() return { kind = "optional" } end

local function optional(value)
  if type_of(value) ~= "optional" then no_overload() end
  return value
end

known[".hasValue"] = function(value) return optional(value).value ~= nil end
known[".value"] = function(value)
  if optional(value).value == nil then fail("optional.none() dereference") end
  return value.value
end
known[".orValue"] = function(value, other)
  if optional(value).value == nil then return other end
  return value.value
end
known[".or"] = function(value, other) return optional(value).value ~= nil and value or other end

-- ---- parts of times ----

local function date_part(pick)
  return function(value)
    if type_of(value) ~= "timestamp" then no_overload() end
    return values.int(pick(os.date("!*t", math.floor(value.seconds))))
  end
end

known[".getFullYear"] = date_part(function(d) return d.year end)
known[".getMonth"] = date_part(function(d) return d.month - 1 end)
known[".getDate"] = date_part(function(d) return d.day end)
known[".getDayOfMonth"] = date_part(function(d) return d.day - 1 end)
known[".getDayOfWeek"] = date_part(function(d) return d.wday - 1 end)
known[".getDayOfYear"] = date_part(function(d) return d.yday - 1 end)

local function time_part(pick, unit)
  return function(value)
    local t = type_of(value)
    if t == "timestamp" then return values.int(pick(os.date("!*t", math.floor(value.seconds)))) end
    if t ~= "duration" then no_overload() end
    local whole = value.seconds / unit
    return values.int(whole < 0 and math.ceil(whole) or math.floor(whole))
  end
end

known[".getHours"] = time_part(function(d) return d.hour end, 3600)
known[".getMinutes"] = time_part(function(d) return d.min end, 60)
known[".getSeconds"] = time_part(function(d) return d.sec end, 1)

local NAMESPACES = { optional = true, sets = true }

--- True for a function that can be run.
function functions.is_known(name) return known[name] ~= nil end

--- True for a name that is only the first part of functions' names.
function functions.is_namespace(name) return NAMESPACES[name] or false end

--- Calls a function with values.
function functions.call(name, ...) return known[name](...) end

return functions
