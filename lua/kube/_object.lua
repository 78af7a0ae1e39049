-- What the helpers ask of objects: tables with metadata, that may be changed or not.
local core = require "kube._core"
local errors = require "kube._error"
local options = require "kube._options"

local codec = core.codec
local null = codec.null

local M = {}

--- Absent and null are both nil.
function M.some(value)
  if value == null then return nil end
  return value
end

local some = M.some

local function check_table(what, role, path, value)
  if type(value) ~= "table" then
    errors.misuse("%s: the %s of %s must be a table, not %s", what, path, role, options.shown_type(value))
  end
end

--- A member of an object, or misuse unless it is a table; nil where it is absent or null. what names the function in
--- messages, and role the argument.
function M.member(what, role, path, value)
  value = some(value)
  if value ~= nil then check_table(what, role, path, value) end
  return value
end

--- The same of a list of tables.
function M.list(what, role, path, value)
  local list = M.member(what, role, path, value)
  for i, entry in ipairs(list or {}) do
    if type(entry) ~= "table" then check_table(what, role, ("%s[%d]"):format(path, i), entry) end
  end
  return list
end

--- The object, or misuse.
function M.check(what, role, object)
  if type(object) ~= "table" then
    errors.misuse("%s: %s must be an object, not %s", what, role, options.shown_type(object))
  end
  M.member(what, role, "metadata", rawget(object, "metadata")) -- raw: that of a cached object need not be decoded
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
function M.metadata(object)
  local metadata = object.metadata
  return type(metadata) == "table" and metadata or {}
end

--- Its metadata, made when there is none.
function M.own_metadata(object)
  if not some(object.metadata) then object.metadata = codec.object {} end
  return object.metadata
end

--- Its namespace, or nil when it has none.
function M.namespace(object)
  local namespace = M.metadata(object).namespace
  return type(namespace) == "string" and namespace ~= "" and namespace or nil
end

--- Its key, as kube.key has it, or misuse.
function M.key(what, role, object)
  M.check(what, role, object)
  if type(M.metadata(object).name) ~= "string" then errors.misuse("%s: %s has no metadata.name", what, role) end
  return codec.object_key(object)
end

--- Its conditions, or nil.
function M.conditions(what, role, object)
  local status = M.member(what, role, "status", object.status)
  return status and M.list(what, role, "status.conditions", status.conditions)
end

--- "Deployment web/a", for messages.
function M.describe(object)
  local metadata = M.metadata(object)
  local namespace = M.namespace(object)
  return ("%s %s%s"):format(some(object.kind) or "object", namespace and namespace .. "/" or "",
    tostring(some(metadata.name) or some(metadata.generateName) or "without a name"))
end

return M
