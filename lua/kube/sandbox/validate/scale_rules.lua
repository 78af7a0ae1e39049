-- The numbers that a custom resource's scale subresource reads have to be numbers.
local json = require "kube.sandbox.json"
local field = require "kube.sandbox.field"
local gotext = require "kube.sandbox.patch.gotext"

local scale_rules = {}

local MOST = 2 ^ 31 - 1

local function go_type(value) return value == json.null and "<nil>" or gotext.type(value) end

-- What a path finds: the value (nil: nothing), and an error in the words of Go's accessors.
local function find(document, path, wanted)
  local value, names = document, {}
  for name in path:gmatch("[^.]+") do
    names[#names + 1] = name
    if value == json.null then return nil end
    local problem = ".%s accessor error: %s is of the type %s, expected %s"
    local at = table.concat(names, ".")
    if not json.is_object(value) then
      return nil, problem:format(at, gotext.value(value), go_type(value), "map[string]interface{}")
    end
    value = value[name]
    if value == nil then return nil end
  end
  if go_type(value) ~= wanted then
    return nil, (".%s accessor error: %s is of the type %s, expected %s"):format(table.concat(names, "."),
      gotext.value(value), go_type(value), wanted)
  end
  return value
end

local function check_replicas(errors, document, path)
  local value, problem = find(document, path, "int64")
  local number = tonumber(value) or 0
  if problem then
    errors[#errors + 1] = field.invalid(path, 0, problem)
  elseif number < 0 then
    errors[#errors + 1] = field.invalid(path, value, "should be a non-negative integer")
  elseif number > MOST then
    errors[#errors + 1] = field.invalid(path, value, ("should be less than or equal to %d"):format(MOST))
  end
end

--- The field errors of the wanted replicas; `scale` is that of the definition, or nil.
function scale_rules.spec(scale, document)
  local errors = {}
  if scale then check_replicas(errors, document, scale.specReplicasPath) end
  return errors
end

--- The field errors of the replicas that there are, and of their selector.
function scale_rules.status(scale, document)
  local errors = {}
  if not scale then return errors end
  check_replicas(errors, document, scale.statusReplicasPath)
  if type(scale.labelSelectorPath) == "string" and scale.labelSelectorPath ~= "" then
    local _, problem = find(document, scale.labelSelectorPath, "string")
    if problem then errors[#errors + 1] = field.invalid(scale.labelSelectorPath, "", problem) end
  end
  return errors
end

return scale_rules
