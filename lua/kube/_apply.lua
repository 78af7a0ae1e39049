-- Applies that would change nothing are not sent.
--
-- That is so when the document is the one that this manager applied to this object last, in this process, and the
-- server took it, and when the cache still has every field of it with that value. The first half alone would not
-- see what others change; the second alone would keep fields that the document has no longer.
local core = require "kube._core"

local M = {}

local HALF = 5000 -- as many are remembered at least, and twice as many at most

-- Hashes of documents by manager and object. The older half goes when the younger is full.
local young, old, count = {}, {}, 0

local function remember(name, hash)
  if young[name] == nil then
    count = count + 1
    if count > HALF then young, old, count = {}, young, 1 end
  end
  young[name] = hash
  old[name] = nil
end

local function forget(name)
  if young[name] ~= nil then count = count - 1 end
  young[name], old[name] = nil, nil
end

local matches

local function list_matches(wanted, found)
  if #wanted ~= #found then return false end
  for i = 1, #wanted do
    if not matches(wanted[i], found[i]) then return false end
  end
  return true
end

-- Whether every field of `wanted` is in `found` with its value. Lists have to be as long: which of them others may
-- add to, only the server knows. A number in another form, or a list in another order, counts as different: then the
-- apply is sent, which is never wrong.
matches = function(wanted, found)
  if type(wanted) ~= "table" or type(found) ~= "table" then
    if type(wanted) ~= "cdata" then return wanted == found end
    return type(found) == "cdata" and tostring(wanted) == tostring(found)
  end
  if core.codec.is_array(wanted) then return core.codec.is_array(found) and list_matches(wanted, found) end
  for key, value in pairs(wanted) do
    if not matches(value, found[key]) then return false end
  end
  return true
end

-- The kind is in the resource by which the cache was asked.
local function object_matches(wanted, found)
  for key, value in pairs(wanted) do
    if key ~= "apiVersion" and key ~= "kind" and not matches(value, found[key]) then return false end
  end
  return true
end

--- Looks whether an apply has to be sent.
---@param call table of a verb
---@param object table what would be applied
---@param force boolean
---@return table noted for M.note(), and with the text to send
---@return table? cached what the cache has, when nothing has to be sent
function M.look(call, object, force)
  local cached = call.session._cached
  if not cached or call.opts.dry_run then return {} end
  local text = core.codec.encode_sorted(object)
  local name = table.concat({ core.client.identity(call.client), call.manager, tostring(force), call.resource,
    call.opts.subresource or "", call.key }, "\n")
  local noted = { text = text, name = name, hash = core.codec.hash(text) }
  if (young[name] or old[name]) ~= noted.hash then return noted end
  local found = cached(call.resource, call.key)
  if not found or not object_matches(object, found) then return noted end
  remember(name, noted.hash)
  return noted, found
end

--- Remembers what was applied, when the server took it.
function M.note(noted, taken)
  if not noted.name then return end
  if taken then remember(noted.name, noted.hash) else forget(noted.name) end
end

--- How many are remembered.
---@return integer
function M.remembered()
  local n = 0
  for _, half in ipairs { young, old } do
    for _ in pairs(half) do n = n + 1 end
  end
  return n
end

return M
