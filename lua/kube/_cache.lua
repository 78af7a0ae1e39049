-- The caches of a controller: the informers that it declared, read through its own writes.
local core = require "kube._core"
local errors = require "kube._error"
local factory = require "kube._factory"
local groups = require "kube._groups"
local informers = require "kube._informer"
local options = require "kube._options"
local overlay = require "kube._overlay"

local cache = {}

-- One factory per set of options. The host has one cache for those that ask for the same objects, at
-- the shortest of their resync periods.
local factories = {}

local function factory_of(namespace, opts)
  if not (namespace or opts.label_selector or opts.field_selector or opts.resync) then return factory.default() end
  local parts = { namespace or "" }
  for _, name in ipairs { "label_selector", "field_selector", "resync" } do
    parts[#parts + 1] = name .. "=" .. tostring(opts[name] or "")
  end
  local id = table.concat(parts, "\n") .. (namespace and "" or "\n*")
  if not factories[id] then
    factories[id] = factory.new { namespace = namespace, label_selector = opts.label_selector,
      field_selector = opts.field_selector, resync = opts.resync }
  end
  return factories[id]
end

---@class kube.ControllerCache
local Cache = {}
Cache.__index = Cache

--- The caches of one controller. namespaces: a list, or nil for the script's default; vanished: see
--- kube._overlay.
function cache.new(namespaces, vanished)
  local self = setmetatable({ _namespaces = namespaces, _informers = {}, _order = {} }, Cache)
  self.overlay = overlay.new(function(resource, key) return self:reader(resource, key) end, vanished,
    core.task.now)
  return self
end

--- Makes sure that `resource` is cached; its informers: one, or one for each namespace.
---@return kube.Informer[]
function Cache:declare(resource, opts)
  local found = self._informers[resource]
  if found then return found.list end
  found = { list = {}, by_namespace = {} }
  local namespaces, everywhere = self._namespaces, core.informer.default_namespace() == ""
  if groups.is_cluster_scoped(resource) then namespaces, everywhere = nil, true end
  for _, namespace in ipairs(namespaces or { false }) do
    local f = factory_of(namespace or nil, opts or {})
    local informer = f:for_resource(resource):informer()
    found.list[#found.list + 1] = informer
    local covers = namespace or (not everywhere and core.informer.default_namespace())
    found.by_namespace[covers] = { informer = informer, reader = informer:lister() }
    core.task.defer(function() f:start() end)
  end
  self._informers[resource] = found
  self._order[#self._order + 1] = resource
  return found.list
end

--- All informers, in the order in which their resources were declared.
function Cache:informers()
  local all = {}
  for _, resource in ipairs(self._order) do
    for _, informer in ipairs(self._informers[resource].list) do all[#all + 1] = informer end
  end
  return all
end

--- The reader that has `key`, or nil when none has.
function Cache:reader(resource, key)
  local found = self._informers[resource]
  if not found then return nil end
  local slot = found.by_namespace[false] or found.by_namespace[key:match("^(.-)/") or ""]
  return slot and slot.reader
end

--- The object of this key, with the controller's own writes laid over. Nil when there is none.
---@return table?
function Cache:get(resource, key)
  local reader = self:reader(resource, key)
  if not reader then return nil end
  return self.overlay:get(resource, key, reader:get(key), reader)
end

-- The slots to read for a namespace, or for all of them.
function Cache:_slots(what, resource, namespace)
  local found = self._informers[resource]
  if not found then
    local known = {}
    for name in pairs(self._informers) do known[name] = true end
    errors.misuse("%s: this controller has no cache of '%s'%s; name it in resource, owns, watches or reads", what,
      tostring(resource), options.nearest(tostring(resource), known)
      and (" (did you mean '%s'?)"):format(options.nearest(tostring(resource), known)) or "")
  end
  if not namespace or found.by_namespace[false] then
    local all = {}
    for _, slot in pairs(found.by_namespace) do all[#all + 1] = slot end
    return all
  end
  if not found.by_namespace[namespace] then
    errors.misuse("%s: this controller does not watch the namespace '%s'; add it to namespaces or leave out -n",
      what, namespace)
  end
  return { found.by_namespace[namespace] }
end

-- The label selector of a list as a function of objects.
local function selector_matches(selector)
  if selector == nil or selector == core.codec.null then return function() return true end end
  local compiled = core.selector.new(selector)
  return function(object) return compiled:matches(core.codec.get(object, "metadata", "labels")) end
end

local function in_namespace(namespace, key)
  return namespace == nil or namespace == "" or key:sub(1, #namespace + 1) == namespace .. "/"
end

local function append(out, items)
  for _, item in ipairs(items) do out[#out + 1] = item end
end

--- What one run of a controller reads with: ctx.cache.
---@class kube.CacheView
local View = {}
View.__index = View
cache.view_class = View

function cache.view(of, run) return setmetatable({ _cache = of, _run = run }, View) end

local function check_name(what, value, name)
  if type(value) ~= "string" then errors.misuse("%s: %s must be a string, not a %s", what, name, type(value)) end
end

--- The cached object, or nil. Own writes of this controller are seen at once.
---@param resource string "apps/v1/deployments"
---@param key string "namespace/name", or "name" where there is no namespace
---@return table?
function View:get(resource, key)
  check_name("cache:get(resource, key)", resource, "resource")
  check_name("cache:get(resource, key)", key, "key")
  self._run.reads = self._run.reads + 1
  self._cache:_slots("cache:get", resource, key:match("^(.-)/"))
  return self._cache:get(resource, key)
end

local list_options = { namespace = "string", selector = "string|table|null" }

--- The cached objects that match, as an array, own writes included.
---@param resource string
---@param opts? string|{ namespace?: string, selector?: string|table }
---@return table[]
function View:list(resource, opts)
  check_name("cache:list(resource, options)", resource, "resource")
  if type(opts) == "string" then opts = { selector = opts } end
  opts = options.check("cache:list", opts, list_options)
  self._run.reads = self._run.reads + 1
  local items = {}
  local namespace = opts.namespace ~= "" and opts.namespace or nil
  for _, slot in ipairs(self._cache:_slots("cache:list", resource, namespace)) do
    append(items, slot.reader:list { namespace = namespace, selector = opts.selector })
  end
  local matches = selector_matches(opts.selector)
  return self._cache.overlay:merge(resource, items, function(object, key)
    return in_namespace(namespace, key) and matches(object)
  end)
end

--- The cached objects that an index has under a value, own writes included.
---@param resource string
---@param index string
---@param value string
---@return table[]
function View:by_index(resource, index, value)
  check_name("cache:by_index(resource, index, value)", resource, "resource")
  self._run.reads = self._run.reads + 1
  local items, informer = {}, nil
  for _, slot in ipairs(self._cache:_slots("cache:by_index", resource)) do
    informer = slot.informer
    append(items, slot.reader:by_index(index, value))
  end
  return self._cache.overlay:merge(resource, items, function(object)
    for _, found in ipairs(informers.index_values(informer, index, object)) do
      if found == value then return true end
    end
    return false
  end)
end

options.guard(View, "cache")

return cache
