-- What CEL and Kubernetes can do with strings. Places are counted in characters, from 0.
local operators = require "kube.sandbox.crd.cel.operators"
local regex = require "kube.sandbox.validate.regex"
local values = require "kube.sandbox.crd.cel.values"

local strings = {}

local fail = values.fail

local function check(...)
  for i = 1, select("#", ...) do
    if type((select(i, ...))) ~= "string" then fail("no such overload") end
  end
end

-- The characters of a text; it is UTF-8.
local function characters(source)
  local out = {}
  for c in source:gmatch("[%z\1-\127\192-\255][\128-\191]*") do out[#out + 1] = c end
  return out
end

function strings.startsWith(a, b)
  check(a, b)
  return a:sub(1, #b) == b
end

function strings.endsWith(a, b)
  check(a, b)
  return b == "" or a:sub(-#b) == b
end

function strings.contains(a, b)
  check(a, b)
  return a:find(b, 1, true) ~= nil
end

function strings.matches(a, pattern)
  check(a, pattern)
  local compiled, problem = regex.compile(pattern)
  if not compiled then fail(problem) end
  return compiled:match(a)
end

function strings.lowerAscii(a)
  check(a)
  return (a:gsub("%u", string.lower))
end

function strings.upperAscii(a)
  check(a)
  return (a:gsub("%l", string.upper))
end

function strings.trim(a)
  check(a)
  return (a:gsub("^%s+", ""):gsub("%s+$", ""))
end

function strings.charAt(a, index)
  check(a)
  local list, i = characters(a), tonumber(index)
  if i < 0 or i > #list then fail("index out of range: " .. i) end
  return list[i + 1] or ""
end

function strings.substring(a, from, to)
  check(a)
  local list, first, last = characters(a), tonumber(from), to and tonumber(to)
  last = last or #list
  if first < 0 or first > #list then fail("index out of range: " .. first) end
  if last < 0 or last > #list then fail("index out of range: " .. last) end
  if first > last then fail(("invalid substring range. start: %d, end: %d"):format(first, last)) end
  return table.concat(list, "", first + 1, last)
end

-- The place of a part among the characters, searched in one direction.
local function find(a, part, from, to, step)
  local list, wanted = characters(a), characters(part)
  for i = from or #list - #wanted + 1, to or #list - #wanted + 1, step do
    if table.concat(list, "", i, math.min(i + #wanted - 1, #list)) == part then return values.int(i - 1) end
  end
  return values.int(-1)
end

function strings.indexOf(a, part, from)
  check(a, part)
  return find(a, part, (from and tonumber(from) or 0) + 1, nil, 1)
end

function strings.lastIndexOf(a, part, from)
  check(a, part)
  return find(a, part, from and tonumber(from) + 1 or nil, 1, -1)
end

function strings.replace(a, old, new, limit)
  check(a, old, new)
  local left = limit and tonumber(limit) or -1
  local parts, at = {}, 1
  while left ~= 0 and old ~= "" do
    local first, last = a:find(old, at, true)
    if not first then break end
    parts[#parts + 1] = a:sub(at, first - 1) .. new
    at, left = last + 1, left - 1
  end
  return table.concat(parts) .. a:sub(at)
end

function strings.split(a, separator, limit)
  check(a, separator)
  local left = limit and tonumber(limit) or -1
  if left == 0 then return values.list {} end
  if separator == "" then return values.list(characters(a)) end
  local parts, at = {}, 1
  while left < 0 or #parts < left - 1 do
    local first, last = a:find(separator, at, true)
    if not first then break end
    parts[#parts + 1], at = a:sub(at, first - 1), last + 1
  end
  parts[#parts + 1] = a:sub(at)
  return values.list(parts)
end

function strings.join(list, separator)
  if values.type(list) ~= "list" then fail("no such overload") end
  local parts = {}
  for i, item in ipairs(values.items(list)) do
    check(item)
    parts[i] = item
  end
  return table.concat(parts, separator or "")
end

-- ---- format ----

local FORMATS = {
  s = function(value)
    local t = values.type(value)
    if t == "null_type" then return "null" end
    if t ~= "list" then return operators.string(value) end
    local parts = {}
    for i, item in ipairs(values.items(value)) do parts[i] = operators.string(item) end
    return "[" .. table.concat(parts, ", ") .. "]"
  end,
  d = function(value) return operators.string(value) end,
  f = function(value, precision) return ("%." .. (precision or 6) .. "f"):format(tonumber(value)) end,
  e = function(value, precision) return ("%." .. (precision or 6) .. "e"):format(tonumber(value)) end,
  x = function(value)
    if type(value) == "string" then return (value:gsub(".", function(c) return ("%02x"):format(c:byte()) end)) end
    return ("%x"):format(tonumber(value))
  end,
}

function strings.format(pattern, list)
  check(pattern)
  if values.type(list) ~= "list" then fail("no such overload") end
  local args, n = values.items(list), 0
  return (pattern:gsub("%%(%.?%d*)(.)", function(precision, verb)
    if verb == "%" then return "%" end
    local show = FORMATS[verb]
    n = n + 1
    if not show then fail(('unrecognized formatting clause "%s"'):format(verb)) end
    if args[n] == nil then fail(("index %d out of range"):format(n - 1)) end
    return show(args[n], precision:match("%d+"))
  end))
end

return strings
