---@meta
-- Methods of readers that C provides. Never loaded.

---@class kube.Lister
local Reader = {}

---@alias kube.Indexer kube.Lister

--- The objects that an index has under a value.
---@param name string of the index
---@param value string
---@return table[]
function Reader:by_index(name, value) end

--- The objects that share a value of an index with this one.
---@param name string of the index
---@param object table with a name; it need not be in the store
---@return table[]
function Reader:index(name, object) end

--- The keys of the objects that an index has under a value.
---@param name string of the index
---@param value string
---@return string[]
function Reader:index_keys(name, value) end

--- The values of an index that have at least one object.
---@param name string
---@return string[]
function Reader:index_values(name) end

--- The names of the indexes.
---@return string[]
function Reader:index_names() end

--- The resource version of what is in the store.
---@return string
function Reader:resource_version() end

--- A lister of one namespace. It takes the bare name of an object, too.
---@param name string
---@return kube.Lister
function Reader:namespace(name) end
