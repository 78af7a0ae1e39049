-- client-go's names on the reader of a store: Indexer, Store and Lister are one object here.
local core = require "kube._core"
local errors = require "kube._error"
local object = require "kube._object"
local options = require "kube._options"

--- What is in the cache of an informer: client-go's Lister, Indexer and Store in one. It never waits.
---@class kube.Lister
local Reader = core.indexer

local list_options = { namespace = "string", selector = "string|table|null" }

local function selection(what, given)
  if given == nil then return nil end
  if type(given) == "string" then return { selector = given } end
  options.check(what, given, list_options)
  core.informer.check_namespace(what .. ": option 'namespace'", given.namespace)
  return given
end

local raw_list, raw_each, raw_keys, raw_count, raw_get = Reader.list, Reader.each, Reader.keys, Reader.count, Reader.get

--- The objects that match, as an array: list(), list("app=web"), list { namespace =, selector = }.
---@param given? string|{ namespace?: string, selector?: string|table }
---@return table[]
function Reader:list(given) return raw_list(self, selection("list", given)) end

--- An iterator over what matches, decoding one at a time; the store may change meanwhile.
---@param given? string|{ namespace?: string, selector?: string|table }
---@return fun(): table?
function Reader:each(given) return raw_each(self, selection("each", given)) end

--- An iterator over the keys of what matches.
---@param given? string|{ namespace?: string, selector?: string|table }
---@return fun(): string?
function Reader:keys(given) return raw_keys(self, selection("keys", given)) end

--- The keys as an array.
---@param given? string|{ namespace?: string, selector?: string|table }
---@return string[]
function Reader:list_keys(given)
  local keys = {}
  for key in raw_keys(self, selection("list_keys", given)) do keys[#keys + 1] = key end
  return keys
end

--- How many objects match: count(), count("app=web"), as for list.
---@param given? string|{ namespace?: string, selector?: string|table }
---@return integer
function Reader:count(given)
  if given == nil then return raw_count(self) end
  return raw_count(self, selection("count", given))
end

--- The object with this key, or nil. `ns/name`, or `name` where there is no namespace.
---@param key string|table a key, or an object whose key is used
---@return table?
function Reader:get(key, _)
  if _ ~= nil then errors.misuse("get takes one key, \"namespace/name\"") end
  if type(key) == "table" then key = object.key("get", "the object", key) end
  if type(key) ~= "string" then errors.misuse("get takes a key such as \"default/web\"") end
  return raw_get(self, key)
end

--- client-go's GetByKey.
---@param key string
---@return table?
function Reader:get_by_key(key)
  if type(key) ~= "string" then errors.misuse("get_by_key takes a key such as \"default/web\"") end
  return raw_get(self, key)
end

--- The values of an index that have at least one object.
---@return string[]
function Reader:list_index_func_values(name)
  if type(name) ~= "string" then errors.misuse("list_index_func_values takes the name of an index") end
  return self:index_values(name)
end

--- The names of the indexes.
---@return string[]
function Reader:get_indexers() return self:index_names() end

-- The methods in C see to it that it is a reader; a look at its metatable would cost more than a get.
options.guard(Reader, "lister", { is = function(value) return type(value) == "userdata" end })

return Reader
