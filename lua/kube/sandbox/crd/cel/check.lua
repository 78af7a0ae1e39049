-- What can be said about a rule before it runs: fields that the schema does not have. Types are
-- followed from self as far as they are plain; where they are not, nothing is said.
local json = require "kube.sandbox.json"
local values = require "kube.sandbox.crd.cel.values"

local check = {}

local visit

local function additional(node)
  return type(node.additionalProperties) == "table" and node.additionalProperties or nil
end

-- The schema of a field; false when there cannot be one, nil when that is not known.
local function field_of(node, name)
  if not node or node.type ~= "object" then return nil end
  if additional(node) and not node.properties then return additional(node) end
  return node.properties and node.properties[values.property_name(name)] or false
end

local function select_field(state, target, node)
  local found = field_of(target, node.name)
  if found == false then state[#state + 1] = { at = node.at, name = node.name } end
  return found or nil
end

local visitors = {}

function visitors.ident(_, node, scope) return scope[node.name] end

function visitors.select(state, node, scope) return select_field(state, visit(state, node.target, scope), node) end

function visitors.has(state, node, scope)
  select_field(state, visit(state, node.target, scope), node)
end

function visitors.index(state, node, scope)
  local target = visit(state, node.target, scope)
  visit(state, node.index, scope)
  if not target then return nil end
  return target.type == "array" and target.items or additional(target)
end

function visitors.call(state, node, scope)
  for _, arg in ipairs(node.args) do visit(state, arg, scope) end
end

function visitors.list(state, node, scope)
  for _, item in ipairs(node.items) do visit(state, item, scope) end
end

function visitors.map(state, node, scope)
  for _, entry in ipairs(node) do
    visit(state, entry[1], scope)
    visit(state, entry[2], scope)
  end
end

local function children(state, node, scope)
  for _, child in ipairs(node) do visit(state, child, scope) end
end

visitors["and"], visitors["or"], visitors.ternary = children, children, children

-- Names in a macro hide those outside; false hides without being known.
local function inner(scope, names) return setmetatable(names, { __index = scope }) end

function visitors.comprehension(state, node, scope)
  local target = visit(state, node.target, scope)
  local is_list = target and target.type == "array"
  local item = is_list and target.items or false
  if node.key and target and not is_list then item = additional(target) or false end
  local names = { [node.variable] = item }
  if node.key then names[node.key] = false end
  local within = inner(scope, names)
  if node.only then visit(state, node.only, within) end
  visit(state, node.body, within)
  return node.kind == "filter" and target or nil
end

function visitors.optional_map(state, node, scope)
  visit(state, node.target, scope)
  visit(state, node.body, inner(scope, { [node.variable] = false }))
end

-- The schema of what a tree evaluates to, nil when it is not known.
function visit(state, node, scope)
  local visitor = visitors[node.op]
  return visitor and visitor(state, node, scope) or nil
end

-- The compiler's message: line, column, the line itself and a mark below it.
local function message(source, problem)
  local line, start = 1, 1
  for at in source:gmatch("()\n") do
    if at < problem.at then line, start = line + 1, at + 1 end
  end
  local column = problem.at - start + 1
  local text = source:match("^[^\n]*", start)
  return ("ERROR: <input>:%d:%d: undefined field '%s'\n | %s\n | %s^"):format(line, column, problem.name, text,
    ("."):rep(column - 1))
end

-- A rule as the server's own type prints it.
local function printed(rule)
  local function part(key) return json.encode(rule[key] or "") end
  local optional = rule.optionalOldSelf
  return ('{"Rule":%s,"Message":%s,"MessageExpression":%s,"Reason":%s,"FieldPath":%s,"OptionalOldSelf":%s}'):format(
    part "rule", part "message", part "messageExpression", json.encode(rule.reason or json.null), part "fieldPath",
    optional == nil and "null" or tostring(optional))
end

--- The message of a field error about a rule whose fields are not all there, nil when they are. `node`
--- is the schema of self.
function check.undefined_fields(rule, tree, node)
  local problems = {}
  visit(problems, tree, { self = node, oldSelf = not rule.optionalOldSelf and node or nil })
  if #problems == 0 then return nil end
  local texts = {}
  for i, problem in ipairs(problems) do texts[i] = message(rule.rule, problem) end
  return ("Invalid value: %s: compilation failed: %s"):format(printed(rule), table.concat(texts, "\n"))
end

return check
