-- Tells the author of a write which of its fields were checked against their schema only: those that
-- kube.sandbox.coverage_fields does not know.
--
-- A tree of what is known stands beside the document. A node is
--
--   true                        all of the value is known
--   false                       none of it, where others beside it are (`open`)
--   function(value)             known when it returns true: values that no rule can refuse
--   { fields = { name = node }, open = true }   an object; `open`: unlisted fields are known too
--   { each = node }             an array
--
-- and a field without a node is unknown, so a field that a later Kubernetes adds is told, not trusted.
-- Nothing is told of a field that is empty, and of an update nothing that was there before.
local fields = require "kube.sandbox.coverage_fields"
local json = require "kube.sandbox.json"
local statuses = require "kube.sandbox.coverage_status"

local coverage = {}

local SHOWN, LONGEST = 3, 120

local function is_empty(value)
  return value == json.null or value == "" or type(value) == "table" and next(value) == nil
end

-- The path that the first `depth` keys of a trail lead along.
local function path_of(trail, depth)
  local parts = {}
  for i = 1, depth do
    local key = trail[i]
    if type(key) == "number" then
      parts[i] = ("[%d]"):format(key - 1)
    elseif key:find("^%a%w*$") then
      parts[i] = i > 1 and "." .. key or key
    else
      parts[i] = ("[%s]"):format(key)
    end
  end
  return table.concat(parts)
end

local visit

local function visit_inside(found, node, value, old, depth)
  local before = type(old) == "table" and old or {}
  for key, item in pairs(value) do
    local child = node.each
    if node.fields then
      child = node.fields[key]
      if child == nil then child = node.open end
    end
    if child ~= true and (node.each or not is_empty(item)) then
      found.trail[depth + 1] = key
      visit(found, child, item, before[key], depth + 1)
    end
  end
end

-- A document with nothing to tell costs no text.
function visit(found, node, value, old, depth)
  if type(node) == "table" and type(value) == "table" then return visit_inside(found, node, value, old, depth) end
  if type(node) == "function" and node(value) then return end
  if old ~= nil and json.equal(value, old) then return end
  found[#found + 1] = path_of(found.trail, depth)
end

--- The paths of the fields of `new` that are not known by `node`, sorted; `old` is nil on create.
function coverage.unknown(node, new, old)
  local found = { trail = {} }
  visit(found, node, new, old, 0)
  found.trail = nil
  table.sort(found)
  return found
end

--- One sentence that names the first of `paths`, however many and long they are.
function coverage.sentence(paths)
  local shown = {}
  for i = 1, math.min(SHOWN, #paths) do
    shown[i] = #paths[i] <= LONGEST and paths[i] or paths[i]:sub(1, LONGEST) .. "..."
  end
  local rest = #paths - #shown
  return ("sandbox: checked against %s schema only: %s%s"):format(#paths == 1 and "its" or "their",
    table.concat(shown, ", "), rest > 0 and (" and %d more"):format(rest) or "")
end

--- Warns the author of a valid write about what was not looked at.
function coverage.warn(ctx, new, old, subresource)
  local node = (subresource == "status" and statuses or fields)[ctx.R.storage]
  if not node then return end
  local paths = coverage.unknown(node, new, old)
  if paths[1] then ctx:warn(coverage.sentence(paths)) end
end

return coverage
