-- kube.condition.patch: conditions of an object, written when they change.
--
-- It is a merge patch of the whole list, bound to the version that it was made from, and made again from a
-- fresh object after a conflict. An apply of single conditions would be shorter, but where the list is not a
-- map by type for the server (most custom resources) it replaces the list, with those of others in it; and
-- where it is, it takes away what the same manager has applied before and does not repeat. The version makes
-- the patch right for both: nothing is lost that was not seen.
local codec = require("kube._core").codec
local condition = require "kube._condition"
local errors = require "kube._error"
local object = require "kube._object"
local retry = require "kube._retry"
local sessions = require "kube._session_of"

local some = object.some

-- The list as it shall be, and whether it is another one. The generation that conditions are about is that of
-- the object which the script has seen, not of the one that was read after a conflict.
local function merged(obj, current, wanted)
  local list = codec.copy(object.conditions("condition.patch", "the object", current) or codec.array {})
  local scratch = { metadata = { generation = object.metadata(obj).generation }, status = { conditions = list } }
  local changed = false
  for _, one in ipairs(wanted) do changed = condition.set(scratch, one) or changed end
  return scratch.status.conditions, changed
end

local function check_same(obj, fresh)
  if object.metadata(obj).uid == fresh.metadata.uid then return fresh end
  error(errors.new("not_found", ("%s is gone; there is another of that name now"):format(object.describe(obj)),
    { retriable = false }), 0)
end

--- Sets one or more conditions in .status.conditions on the server, if that changes anything; nothing is sent
--- otherwise. Conditions of others stay as they are. Awaits; raises.
---@param ctx table the ctx of a controller, or a client
---@param obj table as the server or the cache gave it; it is not changed
---@param conditions kube.Condition|kube.Condition[]
---@return boolean changed
---@return table? object as the server has it now, when it changed
function condition.patch(ctx, obj, conditions)
  local session = sessions.find("condition.patch", ctx)
  object.check("condition.patch", "the object", obj)
  local version = some(object.metadata(obj).resourceVersion)
  if type(version) ~= "string" or version == "" then
    errors.misuse("condition.patch: %s has no metadata.resourceVersion; the object is one that the server or the "
      .. "cache gave", object.describe(obj))
  end
  object.check("condition.patch", "the condition", conditions)
  local wanted = conditions[1] ~= nil and conditions or { conditions }
  local list, changed = merged(obj, obj, wanted)
  if not changed then return false end
  local resource, key, current = sessions.resource_of(session, obj), codec.object_key(obj), obj
  return retry.on_conflict(function()
    if not current then
      current = check_same(obj, session:get(resource, key))
      list, changed = merged(obj, current, wanted)
      if not changed then return false end
    end
    local patch = { metadata = { resourceVersion = current.metadata.resourceVersion }, status = { conditions = list } }
    current = nil
    return true, session:patch(resource, key, patch, { type = "merge", subresource = "status" })
  end)
end

return condition
