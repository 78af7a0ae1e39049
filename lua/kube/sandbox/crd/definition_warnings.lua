-- What a definition says that will not be checked: formats that nobody knows, rules in CEL that the
-- sandbox cannot read, and what the others cost.
local json = require "kube.sandbox.json"
local format = require "kube.sandbox.validate.format"
local rules = require "kube.sandbox.crd.rules"
local structural = require "kube.sandbox.crd.structural"

local definition_warnings = {}

local function visit(node, found)
  local name = node.format
  if structural.is_set(name) and not found[name] and not format.known(name, node.type) then
    found[name] = true
    found[#found + 1] = name
  end
  structural.each_child(node, function(child) visit(child, found) end)
end

local function schemas(document)
  local nodes = {}
  for _, version in ipairs(json.get(document, "spec", "versions") or {}) do
    nodes[#nodes + 1] = json.get(version, "schema", "openAPIV3Schema")
  end
  return nodes
end

local function unrecognized(document)
  local found = {}
  for _, node in ipairs(schemas(document)) do visit(node, found) end
  return found
end

local COST = "sandbox: the cost of rules in CEL is not estimated: kube-apiserver may refuse them as too expensive"

local function has_rules(document)
  for _, node in ipairs(schemas(document)) do
    if rules.present(node) then return true end
  end
  return false
end

--- The texts of the warnings about a definition; what `old` had already is not told again.
function definition_warnings.of(document, old)
  local known = old and unrecognized(old) or {}
  local warnings = {}
  for _, name in ipairs(unrecognized(document)) do
    if not known[name] then warnings[#warnings + 1] = ('unrecognized format "%s"'):format(name) end
  end
  for _, node in ipairs(schemas(document)) do
    for _, warning in ipairs(rules.warnings(node)) do warnings[#warnings + 1] = warning end
  end
  if has_rules(document) and not (old and json.equal(json.array(schemas(document)), json.array(schemas(old)))) then
    warnings[#warnings + 1] = COST
  end
  return warnings
end

return definition_warnings
