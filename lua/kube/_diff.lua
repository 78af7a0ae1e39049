-- kube.diff, kube.equal: what differs between two documents, and whether anything does that matters.
local codec = require("kube._core").codec
local errors = require "kube._error"

local null = codec.null
local NUMBER = getmetatable(codec.number("1e999")) -- of numbers that only their text holds

local DEPTH_MAX = 512 -- as deep as the codec reads and writes

local M = {}

-- Whether a value has parts.
local function is_container(value) return type(value) == "table" and getmetatable(value) ~= NUMBER end

M.is_container = is_container

-- Numbers are the same when they are written the same, whatever holds them.
local function is_number(value)
  return type(value) == "number" or type(value) == "cdata" or (type(value) == "table" and not is_container(value))
end

local function same_scalar(a, b)
  if rawequal(a, b) then return true end
  return is_number(a) and is_number(b) and codec.encode(a) == codec.encode(b)
end

local TOO_DEEP = {}

local function check_depth(depth)
  if depth > DEPTH_MAX then error(TOO_DEEP, 0) end
end

-- Calls fn and says at the script's line, which is far up the stack by then, that it went too deep.
local function bounded(fn, ...)
  local ok, result = pcall(fn, ...)
  if ok then return result end
  if result ~= TOO_DEEP then error(result, 0) end
  errors.misuse("cannot compare: nested deeper than %d levels (a table that contains itself?)", DEPTH_MAX)
end

-- Whether two documents are the same JSON: null is not nothing, and [] is not {}.
local function is_same(a, b, depth)
  if not (is_container(a) and is_container(b)) then return same_scalar(a, b) end
  if rawequal(a, b) then return true end
  check_depth(depth)
  if codec.is_array(a) ~= codec.is_array(b) then return false end
  for key, value in pairs(a) do
    local other = b[key]
    if other == nil or not is_same(value, other, depth + 1) then return false end
  end
  for key in pairs(b) do
    if a[key] == nil then return false end
  end
  return true
end

-- Equality ---------------------------------------------------------------------------------------

-- Whether a field with this value says no more than one that is not there.
local function is_void(value)
  return value == nil or value == null or (is_container(value) and next(value) == nil)
end

local is_equal

-- Two fields, or the documents themselves.
local function is_equal_field(a, b, depth) return is_void(a) and is_void(b) or is_equal(a, b, depth) end

function is_equal(a, b, depth)
  if not (is_container(a) and is_container(b)) then return same_scalar(a, b) end
  if rawequal(a, b) then return true end
  check_depth(depth)
  if codec.is_array(a) ~= codec.is_array(b) then return is_void(a) and is_void(b) end
  if codec.is_array(a) then
    for i = 1, math.max(#a, #b) do
      if not is_equal(a[i], b[i], depth + 1) then return false end
    end
    return true
  end
  for key, value in pairs(a) do
    if not is_equal_field(value, b[key], depth + 1) then return false end
  end
  for key, value in pairs(b) do
    if a[key] == nil and not is_void(value) then return false end
  end
  return true
end

--- Whether two documents mean the same. A field that is null, {} or [] is the same as one that is not
--- there, as Kubernetes compares objects; numbers are equal by value, whatever holds them; the order of a
--- list counts, and each of its elements. Texts are compared as they are: "1Gi" is not "1024Mi".
---@param a any
---@param b any
---@return boolean
function M.equal(a, b) return bounded(is_equal_field, a, b, 1) end

-- Differences --------------------------------------------------------------------------------------

local function sorted_keys(a, b)
  local keys = {}
  for key in pairs(a) do keys[#keys + 1] = key end
  for key in pairs(b) do
    if a[key] == nil then keys[#keys + 1] = key end
  end
  table.sort(keys, function(x, y) return tostring(x) < tostring(y) end)
  return keys
end

local walk

local function step(path, token)
  local longer = {}
  for i, part in ipairs(path) do longer[i] = part end
  longer[#longer + 1] = token
  return longer
end

local function note(found, op, path, old, new) found[#found + 1] = { op = op, tokens = path, old = old, new = new } end

local function walk_object(found, path, a, b, depth)
  for _, key in ipairs(sorted_keys(a, b)) do
    local old, new = a[key], b[key]
    local here = step(path, tostring(key))
    if old == nil then
      note(found, "add", here, nil, new)
    elseif new == nil then
      note(found, "remove", here, old)
    else
      walk(found, here, old, new, depth)
    end
  end
end

-- What is the same at both ends stays; between them elements are compared by position, and what one
-- list has more is added in order, or removed from behind, so that the changes can be made one by one.
local function walk_array(found, path, a, b, depth)
  local first, last_a, last_b = 1, #a, #b
  while first <= last_a and first <= last_b and is_same(a[first], b[first], depth) do first = first + 1 end
  while last_a >= first and last_b >= first and is_same(a[last_a], b[last_b], depth) do
    last_a, last_b = last_a - 1, last_b - 1
  end
  local shared = math.min(last_a, last_b)
  for i = first, shared do walk(found, step(path, i - 1), a[i], b[i], depth) end
  for i = shared + 1, last_b do note(found, "add", step(path, i - 1), nil, b[i]) end
  for i = last_a, shared + 1, -1 do note(found, "remove", step(path, i - 1), a[i]) end
end

function walk(found, path, a, b, depth)
  if not (is_container(a) and is_container(b)) or codec.is_array(a) ~= codec.is_array(b) then
    if not is_same(a, b, depth) then note(found, "replace", path, a, b) end
    return
  end
  if rawequal(a, b) then return end
  check_depth(depth)
  if codec.is_array(a) then
    walk_array(found, path, a, b, depth + 1)
  else
    walk_object(found, path, a, b, depth + 1)
  end
end

--- The changes from a to b that, made one after the other, make b of a: { op, tokens, old, new }, where
--- tokens are the names and positions (from 0) on the way.
function M.changes(a, b)
  local found = {}
  bounded(walk, found, {}, a, b, 1)
  return found
end

-- The path as kube.get takes it.
local function path_text(tokens)
  local parts = {}
  for i, token in ipairs(tokens) do
    if type(token) == "number" then
      parts[i] = ("[%d]"):format(token)
    elseif token:find("^[%a_][%w_-]*$") then
      parts[i] = (i > 1 and "." or "") .. token
    else
      parts[i] = ('["%s"]'):format((token:gsub('[\\"]', "\\%0")))
    end
  end
  return table.concat(parts)
end

local SIGNS = { add = "+", remove = "-", replace = "~" }

local function shown(value) return codec.encode_sorted(value) end

local Diff = {}
Diff.__index = Diff

--- One line per difference: "~ spec.replicas: 1 -> 3".
function Diff.__tostring(self)
  local lines = {}
  for i, d in ipairs(self) do
    local parts = {}
    if d.op ~= "add" then parts[1] = shown(d.old) end
    if d.op ~= "remove" then parts[#parts + 1] = shown(d.new) end
    lines[i] = ("%s %s: %s"):format(SIGNS[d.op], d.path == "" and "(all)" or d.path, table.concat(parts, " -> "))
  end
  return table.concat(lines, "\n")
end

---@class kube.Difference
---@field path string as kube.get takes it; "" for the whole
---@field op "add"|"remove"|"replace"
---@field old any
---@field new any

--- What differs between two documents, in the order of their keys; none when they are the same JSON. Of
--- lists, elements at the same position are compared, apart from what begins and ends alike. tostring() of
--- it is for people, a line each.
---@param a any
---@param b any
---@return kube.Difference[]
function M.diff(a, b)
  if a == nil then a = null end
  if b == nil then b = null end
  local list = {}
  for i, change in ipairs(M.changes(a, b)) do
    list[i] = { path = path_text(change.tokens), op = change.op, old = change.old, new = change.new }
  end
  return setmetatable(list, Diff)
end

return M
