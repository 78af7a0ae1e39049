-- x-kubernetes-validations: the rules in CEL of a structural schema.
local rules = {}

local function each_child(node, visit)
  for _, property in pairs(node.properties or {}) do visit(property) end
  if type(node.additionalProperties) == "table" then visit(node.additionalProperties) end
  if node.items then visit(node.items) end
end

local known = setmetatable({}, { __mode = "k" })

--- True when a schema has rules somewhere.
function rules.present(node)
  if known[node] == nil then
    local found = (node["x-kubernetes-validations"] or {})[1] ~= nil
    each_child(node, function(child) found = found or rules.present(child) end)
    known[node] = found
  end
  return known[node]
end

function rules.validate() return {}, {} end

function rules.check() return {} end

function rules.warnings() return {} end

return rules
