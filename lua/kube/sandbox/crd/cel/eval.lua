-- Runs trees of CEL. Errors are raised as { evaluation = message }; && and || forgive one side's error
-- when the other side decides.
local functions = require "kube.sandbox.crd.cel.functions"
local values = require "kube.sandbox.crd.cel.values"

local eval = {}

local fail = values.fail

-- Nodes that one rule may visit: rules come from users.
local BUDGET = 1000000

local run

local function boolean(value)
  if type(value) ~= "boolean" then fail("no such overload") end
  return value
end

local function attempt(node, scope)
  local ok, value = pcall(run, node, scope)
  if ok then return true, boolean(value) end
  if type(value) ~= "table" or value.exhausted then error(value, 0) end
  return false, value
end

-- `decisive` is the value of one side that makes the other one not matter.
local function logical(node, scope, decisive)
  local ok, left = attempt(node[1], scope)
  if ok and left == decisive then return decisive end
  local right_ok, right = attempt(node[2], scope)
  if right_ok and right == decisive then return decisive end
  if not ok then error(left, 0) end
  if not right_ok then error(right, 0) end
  return not decisive
end

local runners = {}

function runners.literal(node) return node.value end

runners["and"] = function(node, scope) return logical(node, scope, false) end
runners["or"] = function(node, scope) return logical(node, scope, true) end

function runners.ternary(node, scope)
  if boolean(run(node[1], scope)) then return run(node[2], scope) end
  return run(node[3], scope)
end

local TYPES = { int = true, double = true, string = true, bool = true, list = true, map = true, null_type = true }

function runners.ident(node, scope)
  local value = scope.names[node.name]
  if value ~= nil then return value end
  if TYPES[node.name] then return { kind = "type", name = node.name } end
  fail("undeclared reference to '" .. node.name .. "'")
end

function runners.call(node, scope)
  local args = {}
  for i, arg in ipairs(node.args) do args[i] = run(arg, scope) end
  return functions.call(node.name, unpack(args, 1, #node.args))
end

function runners.list(node, scope)
  local items = {}
  for i, item in ipairs(node.items) do items[i] = run(item, scope) end
  return values.list(items)
end

function runners.map(node, scope)
  local map = values.new_map()
  for _, entry in ipairs(node) do values.set_entry(map, run(entry[1], scope), run(entry[2], scope)) end
  return map
end

-- ---- fields and items ----

-- What is under a key of an optional, a map or an object; nil when it is not there.
local function find(target, key, field)
  if values.type(target) ~= "map" then fail("no such overload") end
  return values.get(target, key, field)
end

local function item_at(list, index)
  local i = tonumber(index)
  if values.type(index) ~= "int" and i % 1 ~= 0 then fail("no such overload") end
  return values.items(list)[i + 1]
end

local function reach(node, scope, get, missing)
  local target = run(node.target, scope)
  local optional = node.optional or values.type(target) == "optional"
  if values.type(target) == "optional" then
    if target.value == nil then return target end
    target = target.value
  end
  local value = get(target)
  if optional then return { kind = "optional", value = value } end
  if value == nil then fail(missing(target)) end
  return value
end

function runners.select(node, scope)
  return reach(node, scope, function(target) return find(target, node.name, true) end,
    function() return "no such key: " .. node.name end)
end

function runners.index(node, scope)
  local index = run(node.index, scope)
  return reach(node, scope, function(target)
    if values.type(target) == "list" then return item_at(target, index) end
    return find(target, index)
  end, function(target)
    local shown = type(index) == "string" and index or functions.call("string", index)
    return (values.type(target) == "list" and "index out of bounds: " or "no such key: ") .. shown
  end)
end

function runners.has(node, scope)
  local target = run(node.target, scope)
  if values.type(target) == "optional" then
    if target.value == nil then return false end
    target = target.value
  end
  return find(target, node.name, true) ~= nil
end

-- ---- macros ----

-- A scope with more names; the outer ones stay reachable.
local function inner(scope) return { budget = scope.budget, names = setmetatable({}, { __index = scope.names }) } end

function runners.optional_map(node, scope)
  local target = run(node.target, scope)
  if values.type(target) ~= "optional" then fail("no such overload") end
  if target.value == nil then return target end
  local within = inner(scope)
  within.names[node.variable] = target.value
  local value = run(node.body, within)
  return node.flat and value or { kind = "optional", value = value }
end

-- Calls visit(scope, key) for every item of a list (or key of a map) until it returns true.
local function each(node, scope, visit)
  local target = run(node.target, scope)
  local kind = values.type(target)
  if kind ~= "list" and kind ~= "map" then fail("no such overload") end
  local within = inner(scope)
  for i, item in ipairs(kind == "list" and values.items(target) or values.keys(target)) do
    local key = kind == "list" and values.int(i - 1) or item
    if node.key then
      within.names[node.key] = key
      within.names[node.variable] = kind == "list" and item or values.get(target, item)
    else
      within.names[node.variable] = item
    end
    if (not node.only or boolean(run(node.only, within))) and visit(within, key, item) then return end
  end
end

local comprehensions = {}

-- all and exists: an error counts only when no item decides.
local function quantifier(decisive)
  return function(node, scope)
    local result, problem = not decisive, nil
    each(node, scope, function(within)
      local ok, value = attempt(node.body, within)
      if not ok then
        problem = problem or value
      elseif value == decisive then
        result = decisive
        return true
      end
    end)
    if result ~= decisive and problem then error(problem, 0) end
    return result
  end
end

comprehensions.all = quantifier(false)
comprehensions.exists = quantifier(true)

function comprehensions.exists_one(node, scope)
  local count = 0
  each(node, scope, function(within)
    if boolean(run(node.body, within)) then count = count + 1 end
  end)
  return count == 1
end
comprehensions.existsOne = comprehensions.exists_one

function comprehensions.map(node, scope)
  local items = {}
  each(node, scope, function(within) items[#items + 1] = run(node.body, within) end)
  return values.list(items)
end
comprehensions.transformList = comprehensions.map

function comprehensions.transformMap(node, scope)
  local map = values.new_map()
  each(node, scope, function(within, key) values.set_entry(map, key, run(node.body, within)) end)
  return map
end

function comprehensions.filter(node, scope)
  local items = {}
  each(node, scope, function(within, _, item)
    if boolean(run(node.body, within)) then items[#items + 1] = item end
  end)
  return values.list(items)
end

function runners.comprehension(node, scope) return comprehensions[node.kind](node, scope) end

function run(node, scope)
  local budget = scope.budget
  budget.left = budget.left - 1
  if budget.left < 0 then
    error({ evaluation = "operation cancelled: actual cost limit exceeded", exhausted = true }, 0)
  end
  return runners[node.op](node, scope)
end

--- The value of a tree where names stand for values; nil and the message of an error.
function eval.run(node, names)
  local ok, value = pcall(run, node, { names = names, budget = { left = BUDGET } })
  if ok then return value end
  if type(value) ~= "table" then error(value, 0) end
  return nil, value.evaluation
end

return eval
