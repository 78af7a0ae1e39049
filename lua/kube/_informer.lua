-- The informer as a script sees it: client-go's SharedIndexInformer in snake_case.
local core = require "kube._core"
local declared = require "kube._declared"
local errors = require "kube._error"
local handler = require "kube._handler"
local informer_options = require "kube._informer_options"
local known_groups = require "kube._groups"
local options = require "kube._options"
local task = require "kube._task"

--- The cache of a resource and who hears of its changes.
---@class kube.Informer
local Informer = {}
Informer.__index = Informer
Informer.__name = "kube.informer"
Informer.__tostring = function(self) return "informer " .. self._handle:name() end

-- What get_controller() returns.
local Controller = {}
Controller.__index = Controller
function Controller:has_synced() return self._informer:has_synced() end
function Controller:last_sync_resource_version() return self._informer:last_sync_resource_version() end
function Controller.run() end
options.guard(Controller, "controller")

local informer = {}

local NAMED = 10  -- how many a warning names
local NAMESPACE = "namespace"  -- the index that is always there

-- Those that were made and not started, in the order of making; the numbers are never used again.
local unstarted, made = {}, 0

local function spec_of(resource, opts)
  local spec = informer_options.spec(resource, opts)
  if known_groups.is_cluster_scoped(resource) then spec.namespace = "" end
  return spec
end

--- Makes the informer of `resource` with checked options, which it keeps: one of its own, which nobody else has.
function informer.new(resource, opts)
  informer_options.tweak(opts)
  local spec = spec_of(resource, opts)
  local handle = core.informer.new(spec)
  made = made + 1
  local seen = declared.add("informers", { resource = resource,
    namespace = spec.namespace or core.informer.default_namespace(), selector = spec.query,
    metadata_only = opts.metadata_only or false, handlers = 0, indexers = core.codec.array {} })
  unstarted[made] = ("%s (%s)"):format(resource, errors.place())
  local self = setmetatable({ _handle = handle, _resource = resource, _opts = opts, _number = made, _indexers = {},
    _declared = seen }, Informer)
  if type(opts.transform) == "function" then handle:set_transform(opts.transform) end
  return self
end

--- Says, once, that someone waits for an informer that nobody has started.
function informer.warn_unstarted(self)
  if self._warned or self._handle:is_started() then return end
  self._warned = true
  local advice = self._factory and self._factory._shut_down and ", and its factory has been shut down; make another one"
    or "; call factory:start(stop)"
  core.log.write("warn", "the informer has not been started" .. advice,
    { resource = self._resource, at = errors.place() })
end

--- It was to be started, and why it cannot be has been told.
function informer.forget(self) unstarted[self._number] = nil end

-- A script that forgets to start its informers ends at once, as if it had nothing to do.
core.task.on_stop(function(retiring)
  if retiring or not next(unstarted) or not core.task.is_idle() then return end
  local forgotten, count = {}, 0
  for number = 1, made do
    if unstarted[number] then
      count = count + 1
      if count <= NAMED then forgotten[count] = unstarted[number] end
    end
  end
  core.log.write("warn", "informers were made and never started; call factory:start(stop)",
    { informers = table.concat(forgotten, ", "), count = count })
end)

--- Registers a handler. A handler added to a running informer first gets every cached object as
--- on_add(obj, true). Calls for one handler come one at a time, in order; a call may await.
---@class kube.Handler
---@field on_add? fun(obj: table, initial: boolean) initial: it was there when the handler came
---@field on_update? fun(old: table, new: table) also for a resync, where both are the same, and for each object when
--- all is read again after an outage, changed or not: compare resourceVersion. A handler that is not resynced is not
--- told of unchanged objects once others were. An object that was deleted and made anew meanwhile comes as one update
--- then, with another uid
---@field on_delete? fun(obj: table, stale: boolean) stale: the deletion itself was missed, and obj is what was known
---@field filter? fun(obj: table): boolean which objects are for this handler; one that passes no longer is a delete
---@field predicate? kube.Predicate|kube.Predicate[] runs in C; of a list, all must hold
---@field resync? number seconds
---@field replay? boolean false: no on_add for what is cached already
---@field name? string for logs
---@field queue_bound? integer beyond it, events of one object are merged
---@class kube.Predicate one of path, label and owner; without equals or one_of, any value will do
---@field path? string as "spec.nodeName"
---@field label? string the key of a label
---@field owner? "controller"|"any" the uid of the controller, or of any owner
---@field equals? string|number|boolean
---@field one_of? (string|number|boolean)[]
---@field negate? boolean the path, label or owner has none of these values
---@field selector? string|table a label selector
---@field namespace? string
---@param given kube.Handler
---@return kube.Registration
function Informer:add_event_handler(given) return handler.add("add_event_handler", self, given) end

--- The same with a resync period of its own.
---@param given kube.Handler
---@param seconds number 0 for none
---@return kube.Registration
function Informer:add_event_handler_with_resync_period(given, seconds)
  local what = "add_event_handler_with_resync_period"
  if type(seconds) == "number" and seconds >= 0 then return handler.add(what, self, given, seconds) end
  errors.misuse("%s(handler, seconds): seconds must be a number of seconds, not %s", what, options.shown(seconds))
end

--- Removes a handler. Unknown, foreign and removed ones are fine.
---@param registration kube.Registration
function Informer:remove_event_handler(registration)
  if getmetatable(registration) ~= handler.registration then
    errors.misuse("remove_event_handler takes what add_event_handler returned")
  end
  if registration._informer == self then registration:remove() end
end

--- Without the index that is there anyway, when it is given as what it is: client-go's usual
--- cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}.
function informer.own_indexers(indexers)
  local given = indexers[NAMESPACE]
  if type(given) ~= "table" or given.path ~= "metadata.namespace" or next(given, next(given)) then return indexers end
  local own = {}
  for name, spec in pairs(indexers) do if name ~= NAMESPACE then own[name] = spec end end
  return own
end

local function declare_indexers(self)
  local names = core.codec.array {}
  for name in pairs(self._indexers) do table.insert(names, name) end
  table.sort(names)
  self._declared.indexers = names
end

local index_options = { path = "string", label = "string", owner = "string" }

--- Adds indexes by name: a function from object to a list of strings, or a spec that runs in C:
--- { path = "spec.nodeName" }, { label = "app" }, { owner = "controller" } or { owner = "any" }.
--- All or none; also while running. The index "namespace", by metadata.namespace, is always there.
---@param indexers table<string, function|table>
function Informer:add_indexers(indexers)
  if type(indexers) ~= "table" then errors.misuse("add_indexers takes a table of indexes by name") end
  for name, spec in pairs(indexers) do
    if type(spec) == "table" then
      local what = ("index '%s'"):format(tostring(name))
      informer_options.warn_unstored(what, self, options.check(what, spec, index_options))
    end
  end
  self._handle:add_indexers(indexers)
  for name, spec in pairs(indexers) do self._indexers[name] = spec end
  declare_indexers(self)
end

--- Removes an index that was added; "namespace" stays.
---@param name string
function Informer:remove_indexer(name)
  if type(name) ~= "string" then errors.misuse("remove_indexer takes the name of an index") end
  self._handle:remove_indexer(name)
  self._indexers[name] = nil
  declare_indexers(self)
end

local function owner_uids(object, which)
  local uids = {}
  for _, owner in ipairs(core.codec.get(object, "metadata", "ownerReferences") or {}) do
    if which ~= "controller" or owner.controller then uids[#uids + 1] = owner.uid end
  end
  return uids
end

--- The values that an index has for an object that need not be in the store.
---@return string[]
function informer.index_values(self, name, object)
  if name == NAMESPACE then return { core.codec.get(object, "metadata", "namespace") or "" } end
  local spec = self._indexers[name]
  if not spec then return {} end
  local found
  if type(spec) == "function" then
    found = spec(object)
  elseif spec.owner then
    found = owner_uids(object, spec.owner)
  elseif spec.label then
    found = core.codec.get(object, "metadata", "labels", spec.label)
  else
    found = core.codec.get(object, spec.path)
  end
  local values = {}
  for i, value in ipairs(type(found) == "table" and found or { found }) do values[i] = tostring(value) end
  return values
end

--- The store with its indexes.
---@return kube.Indexer
function Informer:get_indexer() return self._handle:reader() end

--- The store.
---@return kube.Indexer
function Informer:get_store() return self._handle:reader() end

--- A read-only view of the cache.
---@return kube.Lister
function Informer:lister() return self._handle:reader() end

--- client-go's controller of an informer: has_synced() and last_sync_resource_version() are those of the informer, and
--- run() returns at once and does nothing, because informer:run(stop) or factory:start(stop) runs it.
---@return table
function Informer:get_controller() return setmetatable({ _informer = self }, Controller) end

--- Whether the first full snapshot is in the store.
---@return boolean
function Informer:has_synced() return self._handle:has_synced() end

--- The resource version last seen from the server; it may run ahead of the store.
---@return string
function Informer:last_sync_resource_version() return self._handle:stats().last_resource_version end

--- A transform, before the informer starts: a function that gets each object as a table of its own
--- to change and return (nil drops it). After a reload the cache is kept if the code of the function
--- is the same, whatever its upvalues hold. When it fails, the store keeps what it had of that object, nothing if
--- that was nothing, until the object changes or all is read again; a resync does not call it.
---@param fn fun(obj: table): table?
function Informer:set_transform(fn)
  if type(fn) ~= "function" then
    errors.misuse("set_transform takes a function; give keep and drop lists to the factory: "
      .. "transform = { drop = { ... } }")
  end
  -- Its transform is a part of what an informer is: with another one it is another.
  local opts = { transform = fn }
  for name, value in pairs(self._opts) do if name ~= "transform" then opts[name] = value end end
  if self._handle:become(spec_of(self._resource, opts)) then
    self._opts = opts
    self._handle:add_indexers(self._indexers)
    if self._on_error then self._handle:set_error_handler(self._on_error) end
  end
  self._handle:set_transform(fn)
end

--- Called with an error { code, message, status, place, again } whenever listing or watching fails:
--- refused, forbidden, throttled, cut, not understood. For visibility only: the informer goes on by
--- itself, and `again` says how. Before the informer starts. Scripts that share it have one each, and all hear.
---@param fn fun(err: kube.Error)
function Informer:set_watch_error_handler(fn)
  if type(fn) ~= "function" then errors.misuse("set_watch_error_handler takes a function") end
  self._on_error = function(err) return fn(errors.of_watch(err)) end
  self._handle:set_error_handler(self._on_error)
end

--- Counters and state, for people and dashboards.
---@return table
function Informer:stats() return self._handle:stats() end

--- Starts the informer until `stop` (a stop channel or nil) closes, without waiting for it.
function informer.start(self, stop)
  informer.forget(self)
  if not self._handle:start() then return false end
  if stop then stop:on_close(function() self._handle:stop() end) end
  return true
end

--- Runs the informer and returns when `stop` is closed and every handler has come to rest.
---@param stop kube.StopChannel
function Informer:run(stop)
  task.check_stop("informer:run(stop): stop", stop)
  if not stop then errors.misuse("run takes a stop channel: informer:run(kube.stop_channel())") end
  local was_stopped = self._handle:is_stopped()
  if not informer.start(self, stop) then
    core.log.write("warn", was_stopped and "the informer has been stopped and cannot run again"
      or "informer is already running", { resource = self._resource, at = errors.place() })
    return
  end
  task.wait_until(function() return self._handle:is_stopped(true) end, nil, "informer:run()")
end

--- Whether the informer was stopped; it cannot be started again.
---@return boolean
function Informer:is_stopped() return self._handle:is_stopped() end

options.guard(Informer, "informer")
informer.class, informer.controller = Informer, Controller
return informer
