-- kube.condition: the list .status.conditions of an object, by type.
local codec = require("kube._core").codec
local errors = require "kube._error"
local object = require "kube._object"
local options = require "kube._options"
local time = require "kube._time"

local some = object.some

local M = {}

---@class kube.Condition
---@field type string
---@field status boolean|"True"|"False"|"Unknown"
---@field reason? string one word in CamelCase; most kinds want one
---@field message? string
---@field observedGeneration? integer default: the object's metadata.generation, unless the condition is there without
---@field lastTransitionTime? string default: now, when the status changes

local KNOWN = {
  type = "string", status = "boolean|string", reason = "string", message = "string",
  observedGeneration = "number|cdata", lastTransitionTime = "string",
}
local STATUS = { [true] = "True", [false] = "False", True = "True", False = "False", Unknown = "Unknown" }

local function find(list, type_name)
  for i, condition in ipairs(list or {}) do
    if type(condition) == "table" and condition.type == type_name then return i, condition end
  end
end

local function check_type(what, type_name)
  if type(type_name) ~= "string" or type_name == "" then
    errors.misuse("%s takes the type of a condition, as \"Ready\", not a %s", what, type(type_name))
  end
end

--- The condition of a type, or nil.
---@param obj? table
---@param type_name string
---@return kube.Condition?
function M.get(obj, type_name)
  check_type("condition.get", type_name)
  if some(obj) == nil then return nil end
  object.check("condition.get", "the object", obj)
  -- A server's object may have anything in its status: then it has no such condition.
  local status = type(obj.status) == "table" and obj.status or {}
  local _, condition = find(type(status.conditions) == "table" and status.conditions or nil, type_name)
  return condition
end

--- Whether an object has the condition with the status "True".
---@param obj? table
---@param type_name string
---@return boolean
function M.is_true(obj, type_name)
  local condition = M.get(obj, type_name)
  return condition ~= nil and condition.status == "True"
end

local function checked(what, given)
  local condition = options.check(what, given, KNOWN)
  check_type(what .. ": type", condition.type)
  if STATUS[condition.status] == nil then
    errors.misuse("%s: status must be true, false, \"True\", \"False\" or \"Unknown\", not %s", what,
      tostring(condition.status))
  end
  if condition.reason and not condition.reason:find("^%a[%w_,:]*$") then
    errors.misuse("%s: reason is one word in CamelCase, as \"AllReplicasReady\", not '%s'", what, condition.reason)
  end
  return condition
end

-- The condition as it shall be, from what was asked for and what is there.
local function next_condition(obj, current, wanted)
  local condition = current and codec.copy(current) or codec.object { type = wanted.type }
  local status = STATUS[wanted.status]
  if not current or current.status ~= status or not some(current.lastTransitionTime) then
    condition.lastTransitionTime = wanted.lastTransitionTime or time.format()
  end
  condition.status, condition.reason, condition.message = status, wanted.reason, wanted.message or ""
  -- Not every kind has the field: where the server took it away, it would be a change each time.
  local may_default = not current or some(current.observedGeneration) ~= nil
  local generation = wanted.observedGeneration or may_default and some(object.metadata(obj).generation)
  if generation then condition.observedGeneration = generation end
  return condition
end

--- Sets a condition in .status.conditions of an object of the script's own. lastTransitionTime stays as it
--- is while the status does; a reason or message that is not given is none.
---@param obj table
---@param condition kube.Condition
---@return boolean changed
function M.set(obj, condition)
  object.check_own("condition.set", "the object", obj)
  local wanted = checked("condition.set", condition)
  local at, current = find(object.conditions("condition.set", "the object", obj), wanted.type)
  local new = next_condition(obj, current, wanted)
  if current and codec.encode_sorted(current) == codec.encode_sorted(new) then return false end
  if not some(obj.status) then obj.status = codec.object {} end
  if not some(obj.status.conditions) then obj.status.conditions = codec.array {} end
  local list = obj.status.conditions
  list[at or #list + 1] = new
  return true
end

--- Takes a condition away from an object of the script's own.
---@param obj table
---@param type_name string
---@return boolean changed
function M.remove(obj, type_name)
  object.check_own("condition.remove", "the object", obj)
  check_type("condition.remove", type_name)
  local changed = false
  while true do
    local at = find(object.conditions("condition.remove", "the object", obj), type_name)
    if not at then return changed end
    table.remove(obj.status.conditions, at)
    changed = true
  end
end

return M
