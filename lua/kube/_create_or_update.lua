-- kube.create_or_update: makes an object be as a function says.
local codec = require("kube._core").codec
local diff = require "kube._diff"
local errors = require "kube._error"
local object = require "kube._object"
local sessions = require "kube._session_of"

local M = {}

local FIELDS = { apiVersion = true, kind = true, metadata = true }
local METADATA = { name = true, namespace = true }

-- Whatever else it held would be written when it is created and forgotten when it is there.
local function check_bare(obj)
  object.check("create_or_update", "the object", obj)
  for name in pairs(obj) do
    if not FIELDS[name] then
      errors.misuse("create_or_update: the object has apiVersion, kind, metadata.name and .namespace only; set '%s' in "
        .. "the function", tostring(name))
    end
  end
  for name in pairs(object.metadata(obj)) do
    if not METADATA[name] then
      errors.misuse("create_or_update: the object has apiVersion, kind, metadata.name and .namespace only; set "
        .. "'metadata.%s' in the function", tostring(name))
    end
  end
end

-- What the function makes of a copy.
local function mutated(obj, mutate)
  local copy = codec.copy(obj)
  mutate(copy)
  for _, name in ipairs { "name", "namespace" } do
    if object.metadata(copy)[name] ~= object.metadata(obj)[name] then
      errors.misuse("create_or_update: the function must not change metadata.%s", name)
    end
  end
  return copy
end

--- Reads an object from the server and lets a function say what it shall be: one that is not there is created,
--- one that the function changes is updated, and nothing is written when it means the same as before (as
--- kube.equal compares). Its status is not written. Awaits; raises, also a conflict with somebody who was
--- faster.
---@param ctx table the ctx of a controller, or a client
---@param obj table with apiVersion, kind, metadata.name and .namespace only
---@param mutate fun(object: table) changes the object in place, whether it is new or not
---@return "created"|"updated"|"unchanged" result
---@return table object as the server has it
function M.create_or_update(ctx, obj, mutate)
  local session = sessions.find("create_or_update", ctx)
  check_bare(obj)
  if type(mutate) ~= "function" then
    errors.misuse("create_or_update(ctx, obj, mutate): mutate must be a function, not a %s", type(mutate))
  end
  local current, err = session:try_get(sessions.resource_of(session, obj), codec.object_key(obj))
  if not current then
    if not errors.predicates.is_not_found(err) then errors.raise(err) end
    return "created", session:create(mutated(obj, mutate))
  end
  local wanted = mutated(current, mutate)
  if diff.equal(current, wanted) then return "unchanged", current end
  return "updated", session:update(wanted)
end

return M
