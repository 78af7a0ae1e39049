-- Field sets: which fields of a document somebody owns. A set is a plain table from path element to
-- `true` (owned, nothing below it) or to the set below it, in which "." says that the field itself is
-- owned too; so it has the shape of fieldsV1. Sets are values: every operation makes a new one, which
-- shares what did not change. No set but the outermost is empty, and none holds only ".".
local element = require "kube.sandbox.apply.path_element"
local json = require "kube.sandbox.json"

local field_set = {}

function field_set.empty(set) return next(set) == nil end

-- A node for a set just made: nil when nothing is in it, true when only ".".
local function node_of(set)
  local first = next(set)
  if first == nil then return nil end
  if first == "." and next(set, first) == nil then return true end
  return set
end

local function with_self(set)
  if set["."] then return set end
  local out = { ["."] = true }
  for pe, node in pairs(set) do out[pe] = node end
  return out
end

local function without_self(set)
  if not set["."] then return set end
  local out = {}
  for pe, node in pairs(set) do
    if pe ~= "." then out[pe] = node end
  end
  return out
end

local function union(a, b)
  if next(a) == nil then return b end
  if next(b) == nil then return a end
  local out = {}
  for pe, node in pairs(a) do out[pe] = node end
  for pe, y in pairs(b) do
    local x = out[pe]
    if x == nil or x == y then
      out[pe] = y
    elseif x == true then
      out[pe] = with_self(y)
    elseif y == true then
      out[pe] = with_self(x)
    else
      out[pe] = union(x, y)
    end
  end
  return out
end

--- What is in either.
field_set.union = union

local function difference_node(x, y)
  if y == nil then return x end
  if x == true then
    if y == true or y["."] then return nil end
    return true
  end
  if y == true then return node_of(without_self(x)) end
  return node_of(field_set.difference(x, y))
end

--- What is in `a` but not in `b`. A field and what is below it count on their own.
function field_set.difference(a, b)
  if next(b) == nil then return a end
  local out = {}
  for pe, x in pairs(a) do out[pe] = difference_node(x, b[pe]) end
  return out
end

local function recursive_node(x, y)
  if y == nil then return x end
  if y == true or y["."] then return nil end
  if x == true then return true end
  return node_of(field_set.recursive_difference(x, y))
end

--- What is in `a` but neither in `b` nor below something in `b`.
function field_set.recursive_difference(a, b)
  if next(b) == nil then return a end
  local out = {}
  for pe, x in pairs(a) do out[pe] = recursive_node(x, b[pe]) end
  return out
end

local function intersection_node(x, y)
  if x == nil or y == nil then return nil end
  if x == true or y == true then
    local other = x == true and y or x
    return (other == true or other["."]) and true or nil
  end
  return node_of(field_set.intersection(x, y))
end

--- What is in both.
function field_set.intersection(a, b)
  local out = {}
  for pe, x in pairs(a) do out[pe] = intersection_node(x, b[pe]) end
  return out
end

--- What has nothing below it.
function field_set.leaves(set)
  local out = {}
  for pe, node in pairs(set) do
    if pe ~= "." then out[pe] = node == true or node_of(field_set.leaves(node)) or nil end
  end
  return out
end

function field_set.equal(a, b)
  for pe, x in pairs(a) do
    local y = b[pe]
    if x ~= y and (x == true or y == true or y == nil or not field_set.equal(x, y)) then return false end
  end
  for pe in pairs(b) do
    if a[pe] == nil then return false end
  end
  return true
end

--- A set of the fields at paths of names: of { { "metadata", "labels" }, ... }.
function field_set.of(paths)
  local out = {}
  for _, path in ipairs(paths) do
    local node = true
    for i = #path, 1, -1 do node = { [element.field(path[i])] = node } end
    out = union(out, node)
  end
  return out
end

--- Whether the field at a path of elements is in the set.
function field_set.has(set, path)
  for i = 1, #path do
    if set == true then return false end
    set = set[path[i]]
    if set == nil then return false end
  end
  return set == true or set["."] == true
end

local function sorted(set)
  local elements = {}
  for pe in pairs(set) do elements[#elements + 1] = pe end
  table.sort(elements, element.before)
  return elements
end

local function list(set, prefix, out)
  local elements = sorted(set)
  for _, pe in ipairs(elements) do
    if pe ~= "." and (set[pe] == true or set[pe]["."]) then out[#out + 1] = prefix .. element.show(pe) end
  end
  for _, pe in ipairs(elements) do
    if pe ~= "." and set[pe] ~= true then list(set[pe], prefix .. element.show(pe), out) end
  end
  return out
end

--- The paths in the set as texts, each level before those below it.
function field_set.paths(set) return list(set, "", {}) end

local EMPTY = json.object {}

--- The set as fieldsV1.
function field_set.to_fields(set)
  local out = json.object {}
  for pe, node in pairs(set) do out[pe] = node == true and EMPTY or field_set.to_fields(node) end
  return out
end

--- The set as the text of fieldsV1, its members in the server's order.
function field_set.encode(set)
  local parts = {}
  for i, pe in ipairs(sorted(set)) do
    parts[i] = json.encode(pe) .. ":" .. (set[pe] == true and "{}" or field_set.encode(set[pe]))
  end
  return "{" .. table.concat(parts, ",") .. "}"
end

local function read(fields)
  if fields == json.null then return nil end
  if not json.is_object(fields) then error("expected a map of fields", 0) end
  local out = {}
  for key, below in pairs(fields) do
    if key == "." then
      out["."] = true
    else
      local pe, problem = element.canonical(key)
      if pe == nil then error(problem, 0) end
      if pe then
        local node = read(below)
        out[pe] = node and node_of(node) or true
      end
    end
  end
  return out
end

--- The set that fieldsV1 holds; nil and the problem when it holds none.
function field_set.from_fields(fields)
  local ok, set = pcall(read, fields)
  if not ok then return nil, set end
  if set then set["."] = nil end
  return set or {}
end

return field_set
