-- x-kubernetes-validations: the rules in CEL of a structural schema, run for every value that has any.
-- A rule that the sandbox cannot read is not checked, and every write says so.
local json = require "kube.sandbox.json"
local field = require "kube.sandbox.field"
local check = require "kube.sandbox.crd.cel.check"
local correlate = require "kube.sandbox.validate.correlate"
local eval = require "kube.sandbox.crd.cel.eval"
local parser = require "kube.sandbox.crd.cel.parser"
local values = require "kube.sandbox.crd.cel.values"
local sorted_keys = require("kube.sandbox.validate.value").sorted_keys

local rules = {}

local RULES = "x-kubernetes-validations"

-- ---- compiled rules ----

local compiled = setmetatable({}, { __mode = "k" })

-- { tree, uses_old, problem, message }: a rule ready to run, or why it is not.
local function compile(rule)
  local known = compiled[rule]
  if known then return known end
  known = {}
  local tree, detail = parser.parse(rule.rule or "")
  if tree then known.tree, known.uses_old = tree, detail else known.problem = detail end
  if type(rule.messageExpression) == "string" and rule.messageExpression ~= "" then
    known.message = parser.parse(rule.messageExpression)
  end
  compiled[rule] = known
  return known
end

local function child_nodes(node)
  local children = {}
  for _, key in ipairs(sorted_keys(node.properties or {})) do
    children[#children + 1] = { ("properties[%s]"):format(key), node.properties[key] }
  end
  if type(node.additionalProperties) == "table" then
    children[#children + 1] = { "additionalProperties", node.additionalProperties }
  end
  if json.is_object(node.items) then children[#children + 1] = { "items", node.items } end
  return children
end

local present = setmetatable({}, { __mode = "k" })

--- True when a schema has rules somewhere.
function rules.present(node)
  if present[node] == nil then
    local found = (node[RULES] or {})[1] ~= nil
    for _, child in ipairs(child_nodes(node)) do found = rules.present(child[2]) or found end
    present[node] = found
  end
  return present[node]
end

local function trimmed(text) return (text:gsub("^%s+", ""):gsub("%s+$", "")) end

local function unchecked(rule, problem)
  return ("sandbox: the rule %q is not checked: %s"):format(trimmed(rule.rule or ""), problem)
end

--- The texts that tell which rules of a schema will not be checked.
function rules.warnings(node)
  local warnings = {}
  if not rules.present(node) then return warnings end
  for _, rule in ipairs(node[RULES] or {}) do
    local problem = compile(rule).problem
    if problem then warnings[#warnings + 1] = unchecked(rule, problem) end
  end
  for _, child in ipairs(child_nodes(node)) do
    for _, warning in ipairs(rules.warnings(child[2])) do warnings[#warnings + 1] = warning end
  end
  return warnings
end

-- ---- self ----

local STRING = json.object { type = "string" }

-- Rules at the root may look at the object's name, kind and version.
local function with_meta(node)
  local properties = json.shallow(node.properties or json.object {})
  properties.apiVersion, properties.kind = STRING, STRING
  properties.metadata = json.object { type = "object",
    properties = json.object { name = STRING, generateName = STRING } }
  return json.with(node, "properties", properties)
end

local roots = setmetatable({}, { __mode = "k" })

-- The schema of self: that of an object has its name, kind and version.
local function self_of(node, root)
  if not root and not node["x-kubernetes-embedded-resource"] then return node end
  roots[node] = roots[node] or with_meta(node)
  return roots[node]
end

-- `loose` is the path of the first list on the way whose items have no identity.
local function check_node(errors, node, path, loose, root)
  for i, rule in ipairs(node[RULES] or {}) do
    local at, ready = ("%s.%s[%d]"):format(path, RULES, i - 1), compile(rule)
    local uses_old = ready.uses_old
    local undefined = ready.tree and check.undefined_fields(rule, ready.tree, self_of(node, root))
    if undefined then
      errors[#errors + 1] = { type = "FieldValueInvalid", field = at .. ".rule", message = undefined }
    elseif uses_old and loose then
      errors[#errors + 1] = field.invalid(at .. ".rule", rule.rule,
        "oldSelf cannot be used on the uncorrelatable portion of the schema within " .. loose)
    elseif uses_old == false and rule.optionalOldSelf ~= nil then
      errors[#errors + 1] = field.invalid(at .. ".optionalOldSelf", rule.optionalOldSelf,
        "may not be set if oldSelf is not used in rule")
    end
  end
  for _, child in ipairs(child_nodes(node)) do
    local without = child[1] == "items" and node["x-kubernetes-list-type"] ~= "map" and path or nil
    check_node(errors, child[2], path .. "." .. child[1], loose or without)
  end
end

--- The field errors of the rules in a definition's schema.
function rules.check(node, path)
  local errors = {}
  if rules.present(node) then check_node(errors, node, path, nil, true) end
  return errors
end

-- ---- one rule on one value ----

local function rule_text(rule) return trimmed(rule.message and rule.message ~= "" and rule.message or rule.rule) end

local function message_of(rule, ready, names)
  if ready.message then
    local text = eval.run(ready.message, names)
    text = type(text) == "string" and trimmed(text)
    if text and text ~= "" and not text:find("\n") then return text end
  end
  if rule.message and rule.message ~= "" then return trimmed(rule.message) end
  return "failed rule: " .. trimmed(rule.rule)
end

-- The path of the field that a rule blames: .a['b'] is a.b.
local function blamed(path, rule)
  if not rule.fieldPath or rule.fieldPath == "" then return path end
  local inner = rule.fieldPath:gsub("%['(.-)'%]", ".%1"):gsub("^%.", "")
  return path == "" and inner or path .. "." .. inner
end

local function failure(rule, node, value, path, detail)
  path = path == "" and "<nil>" or path
  if rule.reason == "FieldValueForbidden" then return field.forbidden(path, detail) end
  if rule.reason == "FieldValueRequired" then return field.required(path, detail) end
  local omitted = node.type == "object" or node.type == "array"
  if rule.reason == "FieldValueDuplicate" then
    local e = field.duplicate(path, value)
    if omitted then e.message = "Duplicate value" end
    return e
  end
  local e = field.invalid(path, value, detail)
  if omitted then e.message = "Invalid value: " .. detail end
  return e
end

local OVERLOAD = "'%s': call arguments did not match a supported operator, function or macro signature for rule: %s"
local EXCEEDED = "'%s': no further validation rules will be run due to call cost exceeds limit for rule: %s"

local function broken(problem, rule, node, path)
  local text
  if problem:find("^no such overload") then
    text = OVERLOAD:format(problem, rule_text(rule))
  elseif problem:find("^operation cancelled") then
    text = EXCEEDED:format(problem, rule_text(rule))
  else
    text = ("%s evaluating rule: %s"):format(problem, rule_text(rule))
  end
  return field.invalid(path == "" and "<nil>" or path, node.type or "", text)
end

-- The names of a rule; false when it needs an old value and there is none.
local function names_for(rule, ready, node, value, pair)
  local old = pair and pair.old
  if old == json.null then old = nil end
  local names = { self = values.from_json(value, node) }
  local former = old ~= nil and values.from_json(old, node) or nil
  if rule.optionalOldSelf then
    names.oldSelf = { kind = "optional", value = former }
  elseif ready.uses_old then
    if former == nil then return false end
    names.oldSelf = former
  end
  return names
end

local function run_rule(state, rule, node, value, path, pair)
  local ready = compile(rule)
  if ready.problem then
    state.warnings[#state.warnings + 1] = unchecked(rule, ready.problem)
    return
  end
  local names = names_for(rule, ready, node, value, pair)
  if not names then return end
  local result, problem = eval.run(ready.tree, names)
  if problem then
    state.errors[#state.errors + 1] = broken(problem, rule, node, path)
  elseif result ~= true then
    local e = failure(rule, node, value, blamed(path, rule), message_of(rule, ready, names))
    if not ready.uses_old and pair and pair:equal() then
      state.warnings[#state.warnings + 1] = e.field .. ": " .. e.message
    else
      state.errors[#state.errors + 1] = e
    end
  end
end

-- ---- the walk ----

local function walk(state, node, value, path, pair, root)
  if value == nil or value == json.null or not rules.present(node) then return end
  for _, rule in ipairs(node[RULES] or {}) do run_rule(state, rule, self_of(node, root), value, path, pair) end
  if json.is_array(value) then
    for i, item in ipairs(node.items and value or {}) do
      walk(state, node.items, item, ("%s[%d]"):format(path, i - 1), pair and pair:index(i))
    end
  elseif json.is_object(value) then
    local additional = type(node.additionalProperties) == "table" and node.additionalProperties
    for _, key in ipairs(sorted_keys(value)) do
      local property = node.properties and node.properties[key]
      if property then
        walk(state, property, value[key], path == "" and key or path .. "." .. key, pair and pair:key(key))
      elseif additional then
        walk(state, additional, value[key], ("%s[%s]"):format(path, key), pair and pair:key(key))
      end
    end
  end
end

--- The field errors of a value that breaks rules, and warnings: what was broken before and did not
--- change, and rules that were not checked. `path` is where a part stands; without it the value is a
--- whole object.
function rules.validate(node, value, old, path)
  local state = { errors = {}, warnings = {} }
  local pair = old ~= nil and correlate.new(node, value, old) or nil
  walk(state, node, value, path or "", pair, path == nil)
  return state.errors, state.warnings
end

return rules
