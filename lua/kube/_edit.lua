-- kube.edit, kube.merge: documents that come of others.
local codec = require("kube._core").codec
local diff = require "kube._diff"
local errors = require "kube._error"

local null = codec.null

local M = {}

---@class kube.JsonPatchOperation
---@field op "add"|"remove"|"replace"
---@field path string a JSON pointer
---@field value any

local function pointer(tokens)
  local parts = {}
  for i, token in ipairs(tokens) do
    parts[i] = "/" .. tostring(token):gsub("~", "~0"):gsub("/", "~1")
  end
  return table.concat(parts)
end

--- Changes a copy of a document: edit(obj, fn) calls fn(copy), which changes it in place, and returns the
--- copy and the JSON patch (RFC 6902) that makes it of the original; the patch is empty when nothing changed.
---@param obj table from the cache or any other
---@param fn fun(copy: table) must not return another document
---@return table copy
---@return kube.JsonPatchOperation[] patch
function M.edit(obj, fn)
  if type(obj) ~= "table" then errors.misuse("edit(obj, fn): obj must be an object, not a %s", type(obj)) end
  if type(fn) ~= "function" then errors.misuse("edit(obj, fn): fn must be a function, not a %s", type(fn)) end
  local copy = codec.copy(obj)
  local other = fn(copy)
  if other ~= nil and not rawequal(other, copy) then
    errors.misuse("edit(obj, fn): fn changes the copy that it is given in place and returns nothing")
  end
  local patch = codec.array {}
  for i, change in ipairs(diff.changes(obj, copy)) do
    local operation = codec.object { op = change.op, path = pointer(change.tokens) }
    if change.op ~= "remove" then operation.value = codec.copy(change.new) end
    patch[i] = operation
  end
  return copy, patch
end

local function is_object(value) return diff.is_container(value) and not codec.is_array(value) end

local function merged(target, patch)
  if not is_object(patch) then return codec.copy(patch) end
  local result = codec.object {}
  for key, value in pairs(is_object(target) and target or {}) do result[key] = value end
  for key, value in pairs(patch) do
    if value == null then
      result[key] = nil
    else
      result[key] = merged(result[key], value)
    end
  end
  return result
end

--- What a JSON merge patch (RFC 7386) makes of a document: fields of the patch replace those of the
--- document, kube.null takes one away, lists are replaced as a whole. Neither argument is changed, and the
--- result shares nothing with them.
---@param target any
---@param patch any
---@return any
function M.merge(target, patch)
  if target == nil then target = null end
  if patch == nil then errors.misuse("merge(target, patch) needs a patch") end
  return merged(codec.copy(target), patch)
end

return M
