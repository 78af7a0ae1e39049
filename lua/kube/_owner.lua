-- Owner references: who deletes what with it, and which controller an object belongs to.
local codec = require("kube._core").codec
local errors = require "kube._error"
local object = require "kube._object"
local options = require "kube._options"

local some = object.some

local M = {}

---@class kube.OwnerReference
---@field apiVersion string
---@field kind string
---@field name string
---@field uid string
---@field controller? boolean
---@field blockOwnerDeletion? boolean

local function group_of(api_version) return tostring(api_version):match("^(.*)/") or "" end

-- The version of an API may change and a deleted owner may come back with another uid: neither makes
-- it another owner.
local function is_same(a, b)
  return a.kind == b.kind and a.name == b.name and group_of(a.apiVersion) == group_of(b.apiVersion)
end

local function references(what, role, child)
  return object.list(what, role, "metadata.ownerReferences", object.metadata(child).ownerReferences) or {}
end

local function find(what, child, wanted)
  for i, reference in ipairs(references(what, "the child", child)) do
    if is_same(reference, wanted) then return i, reference end
  end
end

local function find_controller(what, role, child)
  for _, reference in ipairs(references(what, role, child)) do
    if reference.controller == true then return reference end
  end
end

-- The reference to an owner, or misuse.
local function reference_to(what, owner)
  object.check(what, "the owner", owner)
  local metadata = object.metadata(owner)
  local fields = { apiVersion = owner.apiVersion, kind = owner.kind, name = metadata.name }
  for _, name in ipairs { "apiVersion", "kind", "name" } do
    if type(fields[name]) ~= "string" or fields[name] == "" then
      errors.misuse("%s: the owner has no %s%s", what, name == "name" and "metadata." or "", name)
    end
  end
  return codec.object(fields)
end

local function check_namespaces(what, child, owner)
  local theirs, ours = object.namespace(owner), object.namespace(child)
  if not theirs or theirs == ours then return end
  if not ours then
    errors.misuse("%s: %s has no namespace, so %s cannot own it: an owner is in the same namespace, or cluster-scoped; "
      .. "set metadata.namespace = \"%s\"", what, object.describe(child), object.describe(owner), theirs)
  end
  errors.misuse("%s: %s cannot own %s: an owner is in the same namespace, or cluster-scoped", what,
    object.describe(owner), object.describe(child))
end

local function check_controller(child, owner, wanted)
  local current = find_controller("set_owner", "the child", child)
  if not current or is_same(current, wanted) then return end
  error(errors.new("already_owned", ("%s is controlled by %s %s already, so %s cannot control it too; "
    .. "choose another name for it, or { controller = false }"):format(object.describe(child), current.kind,
    current.name, object.describe(owner)), { owner = codec.copy(current) }), 0)
end

local KNOWN = { controller = "boolean", block_deletion = "boolean" }

--- Makes `owner` own `child`, which is deleted with it then; unless told otherwise it is the controller of
--- it, too. An owner of the same group, kind and name is replaced, whatever its uid. Raises an error with
--- the code "already_owned" when another controller has it.
---@param child table the script's own; it is changed
---@param owner table as the server or the cache gave it
---@param opts? { controller?: boolean, block_deletion?: boolean } both default to true; without controller
--- block_deletion is not set unless asked for
---@return table child
function M.set_owner(child, owner, opts)
  opts = options.check("set_owner", opts, KNOWN)
  object.check_own("set_owner", "the child", child)
  local reference = reference_to("set_owner", owner)
  reference.uid = some(object.metadata(owner).uid)
  if type(reference.uid) ~= "string" or reference.uid == "" then
    errors.misuse("set_owner: %s has no metadata.uid; the owner is an object that the server or the cache gave",
      object.describe(owner))
  end
  check_namespaces("set_owner", child, owner)
  if opts.controller ~= false then
    check_controller(child, owner, reference)
    reference.controller = true
  end
  local block = opts.block_deletion
  if block == nil then block = opts.controller ~= false end
  if block then reference.blockOwnerDeletion = true end
  local metadata = object.own_metadata(child)
  local list = some(metadata.ownerReferences) or codec.array {}
  list[find("set_owner", child, reference) or #list + 1] = reference
  metadata.ownerReferences = list
  return child
end

--- Takes the reference to `owner` away.
---@param child table the script's own; it is changed
---@param owner table
---@return boolean changed false when it was not an owner
function M.remove_owner(child, owner)
  object.check_own("remove_owner", "the child", child)
  local at = find("remove_owner", child, reference_to("remove_owner", owner))
  if not at then return false end
  table.remove(child.metadata.ownerReferences, at)
  return true
end

--- Whether `owner` is among the owners of `child`: by group, kind and name, and by uid where both have one.
---@param child table
---@param owner table
---@return boolean
function M.is_owned_by(child, owner)
  object.check("is_owned_by", "the child", child)
  local _, reference = find("is_owned_by", child, reference_to("is_owned_by", owner))
  if not reference then return false end
  local uid = some(object.metadata(owner).uid)
  return uid == nil or some(reference.uid) == nil or reference.uid == uid
end

--- The owner reference of the controller of an object, or nil.
---@param child table
---@return kube.OwnerReference?
function M.controller_of(child)
  object.check("controller_of", "the object", child)
  return find_controller("controller_of", "the object", child)
end

return M
