-- Classes of priority, one of which is everybody's; and the priority that pods get from them.
local field = require "kube.sandbox.field"
local json = require "kube.sandbox.json"
local pod_spec = require "kube.sandbox.strategies.pod_spec"
local status = require "kube.sandbox.status"

local priorities = {}

local CLASSES = "scheduling.k8s.io/priorityclasses"
local POLICIES = { "PreemptLowerPriority", "Never" }
local HIGHEST = 1000000000

-- The server's own; here they have no objects.
local SYSTEM = { ["system-cluster-critical"] = 2000000000, ["system-node-critical"] = 2000001000 }

local function default(_, document)
  pod_spec.set(document, "preemptionPolicy", POLICIES[1])
  return document
end

local function validate_class(_, new, old, errors)
  local name, policy = new.metadata.name or "", new.preemptionPolicy
  local value = tonumber(json.get(new, "value")) or 0
  if name:find("^system%-") then
    if SYSTEM[name] ~= value then
      errors[#errors + 1] = field.forbidden("metadata.name", ("priority class names with 'system-' prefix are reserved "
        .. "for system use only. error: %s is not a known system priority class"):format(name))
    end
  elseif value > HIGHEST then
    errors[#errors + 1] = field.forbidden("value",
      ("maximum allowed value of a user defined priority is %d"):format(HIGHEST))
  end
  if policy ~= POLICIES[1] and policy ~= POLICIES[2] then
    errors[#errors + 1] = field.not_supported("preemptionPolicy", policy, POLICIES)
  end
  if not old then return end
  if value ~= (tonumber(json.get(old, "value")) or 0) then
    errors[#errors + 1] = field.forbidden("value", "may not be changed in an update.")
  end
  if policy ~= old.preemptionPolicy then errors[#errors + 1] = field.immutable("preemptionPolicy", policy) end
end

-- The class of pods that name none.
local function everybodys(S)
  local found
  for _, class in ipairs((S.store:scan(CLASSES))) do
    if class.globalDefault == true and (not found or class.value < found.value) then found = class end
  end
  return found
end

local function refuse_second(ctx, document)
  local other = document.globalDefault == true and everybodys(ctx.S)
  if not other or other.metadata.name == document.metadata.name then return document end
  error(status.forbidden(ctx.R, document.metadata.name,
    ("PriorityClass %s is already marked as default. Only one default can exist"):format(other.metadata.name)))
end

local function class_of(ctx, name, spec)
  local class = (spec.priorityClassName or "") ~= "" and spec.priorityClassName or nil
  if not class then
    local common = everybodys(ctx.S)
    if not common then return nil, 0, POLICIES[1] end
    return common.metadata.name, common.value, common.preemptionPolicy
  end
  local found = ctx.S.store:get(CLASSES, class)
  if found then return class, tonumber(found.value) or 0, found.preemptionPolicy end
  if SYSTEM[class] then return class, SYSTEM[class], POLICIES[1] end
  error(status.forbidden(ctx.R, name, ("no PriorityClass with name %s was found"):format(class)))
end

--- Gives the spec of a new pod its priority; refuses another one than that of its class.
function priorities.give(ctx, name, spec)
  local class, value, policy = class_of(ctx, name, spec)
  local given, chosen = json.get(spec, "priority"), json.get(spec, "preemptionPolicy")
  local text = "the %s value of %s (%s) must not be provided in pod spec; priority admission controller computed %s "
    .. "from the given PriorityClass name"
  if given and given ~= value then
    error(status.forbidden(ctx.R, name, text:format("integer", "priority", ("%d"):format(given), ("%d"):format(value))))
  end
  if chosen and chosen ~= policy then
    error(status.forbidden(ctx.R, name, text:format("string", "PreemptionPolicy", chosen, policy)))
  end
  spec.priorityClassName, spec.priority, spec.preemptionPolicy = class, value, policy
end

function priorities.of()
  return { default = default, prepare_create = refuse_second, prepare_update = refuse_second,
    validate = validate_class }
end

return priorities
