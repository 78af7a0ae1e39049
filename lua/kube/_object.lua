-- What the helpers ask of objects: tables with metadata, that may be changed or not.
local core = require "kube._core"
local errors = require "kube._error"

local codec = core.codec
local null = codec.null

local M = {}

--- Absent and null are both nil.
function M.some(value)
  if value == null then return nil end
  return value
end

local some = M.some

--- The object, or misuse. what names the function in messages, and role the argument.
function M.check(what, role, object)
  if type(object) ~= "table" then
    errors.misuse("%s: %s must be an object, not a %s", what, role, object == null and "null" or type(object))
  end
  return object
end

--- An object that the script may change, or misuse: those of the cache are shared.
function M.check_own(what, role, object)
  M.check(what, role, object)
  if codec.is_cached(object) then
    errors.misuse("%s: %s is from the cache and shared; change a kube.copy() of it", what, role)
  end
  return object
end

--- Its metadata as it is, perhaps {}; not for changing.
function M.metadata(object) return some(object.metadata) or {} end

--- Its metadata, made when there is none.
function M.own_metadata(object)
  if not some(object.metadata) then object.metadata = codec.object {} end
  return object.metadata
end

--- Its namespace, or nil when it has none.
function M.namespace(object)
  local namespace = some(M.metadata(object).namespace)
  return namespace ~= "" and namespace or nil
end

--- "Deployment web/a", for messages.
function M.describe(object)
  local metadata = M.metadata(object)
  local namespace = M.namespace(object)
  return ("%s %s%s"):format(some(object.kind) or "object", namespace and namespace .. "/" or "",
    tostring(some(metadata.name) or some(metadata.generateName) or "without a name"))
end

return M
