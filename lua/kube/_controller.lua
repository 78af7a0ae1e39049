-- kube.controller: a work queue that informers fill, and workers that reconcile its keys.
--
-- What a controller declares is made while the script loads; informers and workers start at commit.
-- Workers start when every source has seen its initial list and, with leader election, when this
-- process leads: a standby has its caches and its queue full.
local cache = require "kube._cache"
local core = require "kube._core"
local describe = require "kube._controller_declared"
local discovery = require "kube._discovery"
local errors = require "kube._error"
local groups = require "kube._groups"
local events = require "kube._events"
local handler = require "kube._handler"
local history = require "kube._history"
local leader = require "kube._leader"
local maps = require "kube._map"
local options = require "kube._options"
local metrics = require "kube._controller_metrics"
local predicate = require "kube._predicate"
local reconcile = require "kube._reconcile"
local resources = require "kube._resource"
local task = require "kube._task"
local vanished = require "kube._vanished"
local workqueue = require "kube._workqueue"
local writes = require "kube._writes"

local M = {}

local LOW_PRIORITY = -100
local WORKERS_MAX = 1024
local RETRY_BASE, RETRY_MAX = 0.005, 300
local SPREAD, SPREAD_RATE = 10, 200  -- after a reload: the keys of the cache over so many seconds, if they are many
local SWEEP = 0.5  -- seconds between looks for writes that vanished
local PATIENCE = 10  -- seconds until it is said what is waited for, and again after each such time

local by_name = {}
M.by_name = by_name  -- for kube._operate

---@class kube.ControllerOptions
---@field name? string who it is, for ever: queue, metrics, field manager; default: the plural of the resource
---@field was? string its name in the revision before: the new one takes over its queue
---@field resource string what it reconciles: "example.com/v1/webs"
---@field reconcile fun(ctx: kube.Context, object?: table): table? object is nil when it is gone
---@field owns? (string|kube.OwnedResource)[] resources whose objects have one of these as their owner
---@field watches? kube.WatchedResource[] other resources, and which keys their objects concern
---@field reads? string[] resources that are cached for ctx.cache and queue nothing
---@field predicate? kube.EventPredicate|kube.Predicate|function which events of the resource count
---@field finalizer? string is put on every object, and taken away after finalize
---@field finalize? fun(ctx: kube.Context, object: table): table? cleans up behind an object that is being deleted
---@field workers? integer how many keys at once, default 1
---@field timeout? number seconds for one run, default 60
---@field retry? { base?: number, max?: number, attempts?: integer } default 0.005 s doubling up to 300 s, for ever
---@field resync? number seconds after which every key is queued again; default: never
---@field namespaces? string[] only these; default: those of the command line
---@field label_selector? string|table of the resource
---@field field_selector? string|table of the resource
---@field keep_backoff? boolean after a reload keys that fail wait on; default: they are tried at once by the new code
---@field resync_on_reload? boolean false: after a reload only what changes is queued; default: every key, slowly
---@field writes? string[] all that ctx.client may write: "v1/configmaps", "apps/v1/deployments:create,patch",
--- "example.com/v1/webs/status"; without verbs get, create, update, patch and delete, of a subresource get, update and
--- patch, of events create and patch. Default: anything
---@field sync_timeout? number seconds after which the script fails when caches are not filled; default: never

---@class kube.OwnedResource
---@field resource string
---@field owner? "controller"|"any" default: only its controller is queued
---@field predicate? kube.EventPredicate|kube.Predicate|function

---@class kube.WatchedResource
---@field resource string
---@field map fun(object: table): string|string[]|nil the keys that an object concerns; tried again when it raises
---@field predicate? kube.EventPredicate|kube.Predicate|function

local KNOWN = { name = "string", was = "string", resource = "string", reconcile = "function", owns = "table",
  watches = "table", reads = "table", predicate = "function|table", finalizer = "string", finalize = "function",
  workers = "number", timeout = "number", retry = "table", resync = "number", namespaces = "table",
  label_selector = "string|table", field_selector = "string|table", sync_timeout = "number", keep_backoff = "boolean",
  resync_on_reload = "boolean", writes = "table" }
local OWNED = { resource = "string", owner = "string", predicate = "function|table" }
local WATCHED = { resource = "string", map = "function", predicate = "function|table" }
local RETRY = { base = "number", max = "number", attempts = "number" }

local function check_above(what, value, least)
  if value ~= nil and not (value > least and value < math.huge) then
    errors.misuse("%s must be a number above %g, not %s", what, least, tostring(value))
  end
end

local function check_whole(what, value, most)
  if value ~= nil and not (value >= 1 and value <= most and value % 1 == 0) then
    errors.misuse("%s must be a whole number from 1 to %d, not %s", what, most, tostring(value))
  end
end

local function check_finalizer(what, opts)
  if (opts.finalizer == nil) ~= (opts.finalize == nil) then
    errors.misuse("%s: finalizer and finalize go together: a name such as \"example.com/cleanup\", and the function "
      .. "that cleans up", what)
  elseif opts.finalizer and not opts.finalizer:find("^[%w.-]+/[%w._-]+$") then
    errors.misuse("%s: finalizer must be a name with a domain, such as \"example.com/cleanup\", not '%s'", what,
      opts.finalizer)
  end
end

-- One of owns or watches, checked: a table of its own.
local function check_source(what, given, known)
  if type(given) == "string" then given = { resource = given } end
  if type(given) ~= "table" then errors.misuse("%s must be a table with a resource, not a %s", what, type(given)) end
  options.check(what, given, known)
  local source = { resource = resources.check_cached(what .. ": resource", given.resource), map = given.map,
    owner = given.owner or "controller" }
  if source.owner ~= "controller" and source.owner ~= "any" then
    errors.misuse("%s: owner is \"controller\" or \"any\", not '%s'", what, source.owner)
  end
  if given.predicate then source.predicate = predicate.check(what .. ": predicate", given.predicate) end
  return source
end

local function check_list(what, list)
  for key in pairs(list or {}) do
    if type(key) ~= "number" then errors.misuse("%s is a list, and '%s' is no place in one", what, tostring(key)) end
  end
  return list or {}
end

local function check_sources(what, opts)
  local sources = { { resource = opts.resource, map = "self",
    predicate = opts.predicate and predicate.check(what .. ": predicate", opts.predicate) } }
  for i, given in ipairs(check_list(what .. ": owns", opts.owns)) do
    sources[#sources + 1] = check_source(("%s: owns[%d]"):format(what, i), given, OWNED)
    sources[#sources].map = "owner"
  end
  for i, given in ipairs(check_list(what .. ": watches", opts.watches)) do
    local source = check_source(("%s: watches[%d]"):format(what, i), given, WATCHED)
    if not source.map then errors.misuse("%s: watches[%d] needs map = function(object) return keys end", what, i) end
    sources[#sources + 1] = source
  end
  return sources
end

local function check_namespaces(what, namespaces)
  local at = {}
  for i, name in ipairs(check_list(what .. ": namespaces", namespaces)) do
    if type(name) ~= "string" or name == "" then
      errors.misuse("%s: namespaces[%d] must be the name of a namespace", what, i)
    elseif at[name] then
      errors.misuse("%s: namespaces[%d] is '%s', and so is namespaces[%d]; name each once", what, i, name, at[name])
    end
    core.informer.check_namespace(("%s: namespaces[%d]"):format(what, i), name)
    at[name] = i
  end
  if namespaces and not namespaces[1] then
    errors.misuse("%s: namespaces is empty, so there is nothing to watch; leave it out to watch all of them", what)
  end
end

local function check_options(opts)
  local what = "kube.controller"
  opts = options.check(what, opts, KNOWN)
  if not opts.resource then errors.misuse("%s needs resource = \"group/version/plural\"", what) end
  resources.check_cached(what .. ": resource", opts.resource)
  if not opts.reconcile then errors.misuse("%s needs reconcile = function(ctx, object) ... end", what) end
  check_finalizer(what, opts)
  check_whole(what .. ": workers", opts.workers, WORKERS_MAX)
  check_above(what .. ": timeout", opts.timeout, 0)
  check_above(what .. ": resync", opts.resync, 0)
  check_above(what .. ": sync_timeout", opts.sync_timeout, 0)
  local retry = options.check(what .. ": retry", opts.retry, RETRY)
  check_above(what .. ": retry.base", retry.base, 0)
  check_above(what .. ": retry.max", retry.max, 0)
  check_whole(what .. ": retry.attempts", retry.attempts, 2 ^ 31)
  check_namespaces(what, opts.namespaces)
  for i, resource in ipairs(check_list(what .. ": reads", opts.reads)) do
    resources.check_cached(("%s: reads[%d]"):format(what, i), resource)
  end
  local name = opts.name or opts.resource:match("[^/]+$")
  if not name:find("^[%w][%w._-]*$") or #name > 63 then
    errors.misuse("%s: name must be letters, digits, '.', '_' and '-', at most 63, not '%s'", what, name)
  elseif by_name[name] then
    errors.misuse("%s: there is a controller '%s' already (%s); give this one a name of its own", what, name,
      by_name[name].place)
  end
  return name, retry
end

--- What kube.controller returns.
---@class kube.Controller
local Controller = {}
Controller.__index = Controller
Controller.__tostring = function(self) return "controller " .. self._state.name end

-- Hangs the queue onto the informers of a source.
local function attach(state, source)
  local again = core.task.replaces()
  for _, informer in ipairs(state.cache:declare(source.resource)) do
    state.registrations[#state.registrations + 1] = handler.add_source(informer, {
      queue = state.queue._handle, resource = source.resource, predicate = source.predicate,
      map = source.map, missed = type(source.map) == "function" and maps.missed(state, source) or nil,
      kind = state.kind, group = state.group, owner = source.owner, cluster_scoped = state.cluster_scoped,
      low_priority = LOW_PRIORITY, spread = again and math.min(SPREAD, informer:stats().objects / SPREAD_RATE) or 0,
    }, { name = state.name .. " " .. source.resource, resync = source.map == "self" and state.resync or 0,
      replay = not again or state.resync_on_reload })
  end
end

-- What is not there yet, with what its informer heard last from the server.
function M.missing(state)
  local names = {}
  for _, informer in ipairs(state.cache:informers()) do
    if not informer:has_synced() then
      local last = informer:stats().last_error
      names[#names + 1] = informer._resource .. (last and last ~= "" and (" (%s)"):format(last) or "")
    end
  end
  return names
end

-- Waits until condition() holds, and says now and then what is missing.
local function wait_for(state, condition)
  local deadline = state.sync_timeout and core.task.now() + state.sync_timeout
  while true do
    local patience = deadline and math.min(PATIENCE, deadline - core.task.now()) or PATIENCE
    if task.wait_until(condition, math.max(patience, 0), "controller " .. state.name) then return end
    local names = table.concat(M.missing(state), ", ")
    if deadline and core.task.now() >= deadline then
      error(errors.new("timeout", ("no cache of %s within %g seconds"):format(names, state.sync_timeout)), 0)
    end
    core.log.write("warn", "controller waits for its caches", { controller = state.name, missing = names })
  end
end

local function all_synced(list)
  for _, item in ipairs(list) do
    if not item:has_synced() then return false end
  end
  return true
end

-- How owner references name the reconciled resource, as one of its objects says it.
local function kind_of_cached(state)
  for _, informer in ipairs(state.cache:declare(state.resource)) do
    for object in informer:lister():each() do
      if object.kind then
        state.kind, state.cluster_scoped = object.kind, object.metadata.namespace == nil
        return
      end
    end
  end
end

-- The same; where there is no object the server is asked.
local function learn_kind(state)
  local informers = state.cache:declare(state.resource)
  wait_for(state, function() return all_synced(informers) end)
  kind_of_cached(state)
  while not state.kind do
    local kind, namespaced = discovery.kind_of(nil, state.resource, { what = "kube.controller", timeout = PATIENCE })
    state.kind, state.cluster_scoped = kind, kind and not namespaced
    if not kind then
      core.log.write("warn", "controller cannot tell the kind of its resource yet", { controller = state.name,
        error = tostring(namespaced) })
      task.sleep(1)
    end
  end
end

local function work(state)
  while leader.stand_by() do
    local key, shutdown, info = state.queue:get()
    if shutdown then return end
    reconcile.run(state, key, info)
  end
end

-- Hangs the queue onto all sources whose turn it is: those of owned resources need the kind.
local function attach_some(state)
  for _, source in ipairs(state.sources) do
    if not source.attached and (source.map ~= "owner" or state.kind) then
      source.attached = true
      attach(state, source)
    end
  end
end

-- In the turn in which the script becomes the active one. After a reload the one before lets go in the same turn, so
-- no event falls between the two. Where no object says the kind there is none whose key could be missed.
local function take_over(state)
  if core.task.replaces() then
    if not state.keep_backoff then state.queue._handle:forgive() end
    if state.owns then kind_of_cached(state) end
  end
  attach_some(state)
end

local function start(state)
  if state.owns and not state.kind then learn_kind(state) end
  attach_some(state)
  wait_for(state, function() return all_synced(state.cache:informers()) and all_synced(state.registrations) end)
  leader.wait()
  state.started = true
  for i = 1, state.workers do task.worker(("%s worker %d"):format(state.name, i), work, state) end
end

-- What a shutdown left undone. Of one that stands by it is the leader's.
local function left(state)
  local stats = state.queue:stats()
  local count = leader.is_leading() and stats.ready + stats.held or 0
  if state.started and count > 0 then return ("controller %s: %d keys"):format(state.name, count) end
end

-- A controller that cannot start takes the script with it: half of an operator is worse than none.
local function run(state)
  local ok, err = pcall(start, state)
  if ok then return end
  if type(err) == "table" and err.code == "cancelled" then error(err, 0) end
  core.task.fail(("controller %s: %s"):format(state.name, core.error_text(err)))
end

--- Declares a controller: from here on, whatever happens to its resource, or to what it owns and
--- watches, queues a key, and reconcile is called with it, never twice at once for one key.
---@param opts kube.ControllerOptions
---@return kube.Controller
function M.new(opts)
  local name, retry = check_options(opts)
  local sources = check_sources("kube.controller", opts)
  local allowed = writes.read("kube.controller", opts)
  local base, max = retry.base or RETRY_BASE, retry.max or RETRY_MAX
  local state = {
    name = name, place = errors.place(), resource = opts.resource, group = groups.group_of(opts.resource),
    reconcile = opts.reconcile, finalizer = opts.finalizer, finalize = opts.finalize, workers = opts.workers or 1,
    timeout = opts.timeout or 60, retry = { base = base, max = max, attempts = retry.attempts },
    resync = opts.resync or 0, sync_timeout = opts.sync_timeout, keep_backoff = opts.keep_backoff,
    resync_on_reload = opts.resync_on_reload ~= false, sources = sources, registrations = {},
    history = history.new(),
  }
  local lost = vanished.new(base, max)
  -- What a selector leaves out is never in the cache, and has not vanished for that.
  local selected = opts.label_selector ~= nil or opts.field_selector ~= nil
  state.cache = cache.new(opts.namespaces, function(key, resource)
    if selected and resource == opts.resource then return end
    state.queue:add(key, { reason = "vanished " .. resource, after = lost:delay(key, core.task.now()) })
  end)
  core.task.every(SWEEP, function() state.cache.overlay:sweep() end)
  state.writes = allowed and { controller = name, allowed = allowed,
    cached = function(resource, key) return state.cache:get(resource, key) end }
  state.events = function()
    state.recorder = state.recorder or events.new { name = name }
    return state.recorder
  end
  state.cache:declare(opts.resource, opts)  -- which may refuse a selector; nothing has taken the name yet
  state.queue = workqueue.new { name = name, was = opts.was, base_delay = base, max_delay = max, qps = false }
  state.metrics = metrics.new(name, opts.workers or 1)
  for _, source in ipairs(sources) do
    state.cache:declare(source.resource)
    state.owns = state.owns or source.map == "owner"
  end
  for _, resource in ipairs(opts.reads or {}) do state.cache:declare(resource) end
  by_name[name] = state
  describe(state, opts)
  -- At the end of the script nothing new is queued, and what is there is worked off while there is time.
  core.task.on_stop(function(retiring)
    if not retiring then state.queue:shut_down() end
  end)
  task.on_end(function() return left(state) end)
  core.task.defer(function() take_over(state) end)
  task.start("controller " .. name, run, state)
  return setmetatable({ _state = state }, Controller)
end

--- Queues a key by hand.
---@param key string
---@param opts? { after?: number, priority?: number, reason?: string }
function Controller:enqueue(key, opts)
  opts = options.check("controller:enqueue", opts, { after = "number", priority = "number", reason = "string" })
  if type(key) ~= "string" then errors.misuse("controller:enqueue takes a key such as \"default/web\"") end
  self._state.queue:add(key, { after = opts.after, priority = opts.priority, reason = opts.reason or "enqueue" })
end

--- The last runs of a key, oldest first.
---@param key string
---@return kube.Run[]
function Controller:history(key)
  if type(key) ~= "string" then errors.misuse("controller:history takes a key such as \"default/web\"") end
  return self._state.history:of(key)
end

--- Whether the initial lists were seen, so that reconciles may start.
---@return boolean
function Controller:has_synced()
  return #self._state.registrations > 0 and all_synced(self._state.cache:informers())
    and all_synced(self._state.registrations)
end

--- The queue: its length, what is being worked on, counters.
---@return table
function Controller:stats() return self._state.queue:stats() end

options.guard(Controller, "controller")

return M
