-- kube.finalizer: the list of those who must do something before an object may go. In memory: the write
-- is the script's.
local codec = require("kube._core").codec
local errors = require "kube._error"
local object = require "kube._object"

local M = {}

local function check_name(what, name)
  if type(name) ~= "string" or name == "" then
    errors.misuse("%s takes the name of a finalizer, as \"example.com/cleanup\", not %s", what,
      name == "" and "an empty one" or "a " .. type(name))
  end
end

local function contains(what, obj, name)
  local list = object.member(what, "the object", "metadata.finalizers", object.metadata(obj).finalizers)
  for _, other in ipairs(list or {}) do
    if other == name then return true end
  end
  return false
end

--- Whether an object has a finalizer.
---@param obj table
---@param name string
---@return boolean
function M.has(obj, name)
  object.check("finalizer.has", "the object", obj)
  check_name("finalizer.has", name)
  return contains("finalizer.has", obj, name)
end

--- Adds a finalizer to an object of the script's own.
---@param obj table
---@param name string
---@return boolean changed false when it was there
function M.add(obj, name)
  object.check_own("finalizer.add", "the object", obj)
  check_name("finalizer.add", name)
  if contains("finalizer.add", obj, name) then return false end
  local metadata = object.own_metadata(obj)
  metadata.finalizers = object.some(metadata.finalizers) or codec.array {}
  table.insert(metadata.finalizers, name)
  return true
end

--- Takes a finalizer, as often as it is there, from an object of the script's own.
---@param obj table
---@param name string
---@return boolean changed
function M.remove(obj, name)
  object.check_own("finalizer.remove", "the object", obj)
  check_name("finalizer.remove", name)
  if not contains("finalizer.remove", obj, name) then return false end
  local list = obj.metadata.finalizers
  for i = #list, 1, -1 do
    if list[i] == name then table.remove(list, i) end
  end
  return true
end

return M
