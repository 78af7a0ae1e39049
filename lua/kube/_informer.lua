-- The informer as a script sees it: client-go's SharedIndexInformer in snake_case.
local core = require "kube._core"
local errors = require "kube._error"
local known_groups = require "kube._groups"
local options = require "kube._options"
local task = require "kube._task"

local Informer = {}
Informer.__index = Informer
Informer.__name = "kube.informer"
Informer.__tostring = function(self) return "informer " .. self._handle:name() end

local informer = {}

-- What an informer can be made with; the factory adds its own.
informer.known = {
  client = "client", namespace = "string", resync = "number",
  label_selector = "string|table", field_selector = "string|table",
  tweak_list_options = "function", transform = "function|table",
  metadata_only = "boolean", keep_managed_fields = "boolean",
  page_size = "number", streaming = "boolean", backoff = "table",
  min_watch_timeout = "number", internal_error_budget = "number",
  short_watch = "number", min_resync = "number", queue_bound = "number",
}

local function escape(value)
  return (tostring(value):gsub("[^%w%-._~]", function(c) return ("%%%02X"):format(c:byte()) end))
end

-- A selector given as a table of equalities, in a stable order.
local function selector_text(selector)
  if type(selector) ~= "table" then return selector end
  local parts = {}
  for key, value in pairs(selector) do
    if type(value) == "table" then
      errors.misuse("a selector as a table maps names to values, as in { app = \"web\" }; write "
        .. "anything else as text, as in \"app in (web,api)\"")
    end
    parts[#parts + 1] = key .. "=" .. tostring(value)
  end
  table.sort(parts)
  return table.concat(parts, ",")
end

-- The fixed query parameters of every list and watch. tweak_list_options runs once, here: what it
-- leaves in the table is what is sent.
local function query_of(opts)
  local list_options = {
    label_selector = selector_text(opts.label_selector),
    field_selector = selector_text(opts.field_selector),
  }
  if opts.tweak_list_options then
    local changed = opts.tweak_list_options(list_options)
    list_options = type(changed) == "table" and changed or list_options
  end
  local names = { label_selector = "labelSelector", field_selector = "fieldSelector",
    shard_selector = "shardSelector" }
  local parts = {}
  for key, value in pairs(list_options) do
    if not names[key] then
      errors.misuse("tweak_list_options set '%s'%s", tostring(key),
        options.hint(tostring(key), names))
    end
    if value ~= "" then parts[#parts + 1] = names[key] .. "=" .. escape(value) end
  end
  table.sort(parts)
  return #parts > 0 and table.concat(parts, "&") or nil
end

local copied = { "client", "namespace", "metadata_only", "keep_managed_fields", "page_size",
  "streaming", "backoff", "min_watch_timeout", "internal_error_budget", "short_watch",
  "min_resync", "queue_bound", "resync" }

-- Options that change how an informer works: those who give them share only with their like.
local tuning = { "backoff", "internal_error_budget", "min_resync", "min_watch_timeout", "page_size",
  "queue_bound", "short_watch", "streaming" }

local function variant_of(opts)
  local parts = {}
  for _, name in ipairs(tuning) do
    local value = opts[name]
    if type(value) == "table" then value = selector_text(value) end
    if value ~= nil then parts[#parts + 1] = name .. "=" .. tostring(value) end
  end
  return #parts > 0 and table.concat(parts, ";") or nil
end

--- Makes the informer of `resource` with checked options. A Lua transform makes it one of its own;
--- everything else is shared with whoever asks for the same.
function informer.new(resource, opts, private)
  local spec = { resource = resource, private = private or type(opts.transform) == "function",
    query = query_of(opts) }
  for _, name in ipairs(copied) do spec[name] = opts[name] end
  if known_groups.is_cluster_scoped(resource) then spec.namespace = "" end
  spec.variant = variant_of(opts)
  if type(opts.transform) == "table" then
    options.check("transform", opts.transform, { keep = "table", drop = "table" })
    spec.keep, spec.drop = opts.transform.keep, opts.transform.drop
  end
  local handle = core.informer.new(spec)
  local self = setmetatable({ _handle = handle, _resource = resource }, Informer)
  if type(opts.transform) == "function" then handle:set_transform(opts.transform) end
  return self
end

local Registration = {}
Registration.__index = Registration

--- Whether this handler has seen the whole initial list (and the informer has it).
---@return boolean
function Registration:has_synced() return self._core:has_synced() end

--- Ends delivery: nothing new is delivered, a running call finishes. Idempotent.
function Registration:remove() self._core:remove() end

--- Removes the handler and waits until its last call has ended. Not from inside that handler.
function Registration:shutdown()
  self._core:remove()
  task.wait_until(function() return self._core:is_closed() end)
end

--- Counters: pending, delivered, coalesced, errors, and lag in seconds.
---@return table
function Registration:stats() return self._core:stats() end

local handler_options = {
  on_add = "function", on_update = "function", on_delete = "function",
  filter = "function", predicate = "table", resync = "number", replay = "boolean",
  name = "string", queue_bound = "number",
}

local predicate_options = { selector = "string|table|null", namespace = "string", path = "string",
  label = "string", owner = "string", equals = "string", negate = "boolean" }

-- { path = "spec.nodeName", equals = "n1" } or a list of such parts becomes what the core takes.
local function predicate_of(given)
  local out = {}
  for i, part in ipairs(given) do
    out[i] = options.check("predicate", part, predicate_options)
  end
  local single = {}
  for key, value in pairs(given) do
    if type(key) == "string" then single[key] = value end
  end
  options.check("predicate", single, predicate_options)
  out.selector, out.namespace = single.selector, single.namespace
  single.selector, single.namespace = nil, nil
  if next(single) then out[#out + 1] = single end
  return out
end

local function add_handler(self, handler, resync)
  if type(handler) ~= "table" then
    errors.misuse("add_event_handler takes a table { on_add = fn, on_update = fn, on_delete = fn }")
  end
  options.check("add_event_handler", handler, handler_options)
  local spec = {}
  for key, value in pairs(handler) do spec[key] = value end
  if resync then spec.resync = resync end
  if handler.predicate then spec.predicate = predicate_of(handler.predicate) end
  spec.name = handler.name or ("%s handler"):format(self._resource)
  return setmetatable({ _core = self._handle:add_listener(spec), _informer = self }, Registration)
end

--- Registers a handler. A handler added to a running informer first gets every cached object as
--- on_add(obj, true). Calls for one handler come one at a time, in order; a call may await.
---@class kube.Handler
---@field on_add? fun(obj: table, initial: boolean)
---@field on_update? fun(old: table, new: table)
---@field on_delete? fun(obj: table, stale: boolean)
---@field filter? fun(obj: table): boolean
---@field predicate? table as { path = "spec.nodeName", equals = "n1" }; runs in C
---@field resync? number seconds
---@field replay? boolean false: no on_add for what is cached already
---@field name? string for logs
---@field queue_bound? integer beyond it, events of one object are merged
---@param handler kube.Handler
---@return kube.Registration
function Informer:add_event_handler(handler) return add_handler(self, handler) end

--- The same with a resync period of its own, in seconds; 0 for none.
function Informer:add_event_handler_with_resync_period(handler, seconds)
  if type(seconds) ~= "number" then
    errors.misuse("add_event_handler_with_resync_period(handler, seconds): seconds must be a number")
  end
  return add_handler(self, handler, seconds)
end

--- Removes a handler. Unknown, foreign and removed ones are fine.
---@param registration kube.Registration
function Informer:remove_event_handler(registration)
  if getmetatable(registration) ~= Registration then
    errors.misuse("remove_event_handler takes what add_event_handler returned")
  end
  if registration._informer == self then registration:remove() end
end

--- Adds indexes by name: a function from object to a list of strings, or a spec that runs in C:
--- { path = "spec.nodeName" }, { label = "app" }, { owner = "controller" } or { owner = "any" }.
--- All or none; also while running.
---@param indexers table<string, function|table>
function Informer:add_indexers(indexers)
  if type(indexers) ~= "table" then errors.misuse("add_indexers takes a table of indexes by name") end
  self._handle:add_indexers(indexers)
end

--- Removes an index that was added.
---@param name string
function Informer:remove_indexer(name) self._handle:remove_indexer(name) end

--- The store with its indexes.
---@return kube.Indexer
function Informer:get_indexer() return self._handle:reader() end

--- The store.
---@return kube.Indexer
function Informer:get_store() return self._handle:reader() end

--- A read-only view of the cache.
---@return kube.Lister
function Informer:lister() return self._handle:reader() end

--- client-go's controller of an informer: has_synced and last_sync_resource_version.
function Informer:get_controller()
  return {
    has_synced = function() return self:has_synced() end,
    last_sync_resource_version = function() return self:last_sync_resource_version() end,
    run = function() end,
  }
end

--- Whether the first full snapshot is in the store.
---@return boolean
function Informer:has_synced() return self._handle:has_synced() end

--- The resource version last seen from the server; it may run ahead of the store.
---@return string
function Informer:last_sync_resource_version() return self._handle:stats().last_resource_version end

--- A transform, before the informer starts: a function that gets each object as a table of its own
--- to change and return (nil drops it).
function Informer:set_transform(fn)
  if type(fn) ~= "function" then
    errors.misuse("set_transform takes a function; give keep and drop lists to the factory: "
      .. "transform = { drop = { ... } }")
  end
  self._handle:set_transform(fn)
end

--- Called with { code, message, status, place, again } when listing or watching fails. For
--- visibility only: the informer goes on by itself.
function Informer:set_watch_error_handler(fn)
  if type(fn) ~= "function" then errors.misuse("set_watch_error_handler takes a function") end
  self._handle:set_error_handler(fn)
end

--- Counters and state, for people and dashboards.
---@return table
function Informer:stats() return self._handle:stats() end

--- Starts the informer until `stop` closes, without waiting for it.
function informer.start(self, stop)
  if not self._handle:start() then return false end
  if stop then stop:on_close(function() self._handle:stop() end) end
  return true
end

--- Runs the informer and returns when `stop` is closed and every handler has come to rest.
---@param stop kube.StopChannel
function Informer:run(stop)
  if not stop then errors.misuse("run takes a stop channel: informer:run(kube.stop_channel())") end
  if not informer.start(self, stop) then
    local at = core.where():gsub(": $", "")
    core.log.write("warn", "informer is already running", { resource = self._resource, at = at })
    return
  end
  task.wait_until(function() return self._handle:is_stopped(true) end)
end

--- Whether the informer was stopped; it cannot be started again.
---@return boolean
function Informer:is_stopped() return self._handle:is_stopped() end

informer.class = Informer
return informer
