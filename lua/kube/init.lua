-- require "kube": what a script sees of Moonwatch. The low level mirrors client-go in snake_case.
local core = require "kube._core"
local declared = require "kube._declared"
local errors = require "kube._error"
local factory = require "kube._factory"
local handler = require "kube._handler"
local informer = require "kube._informer"
local informer_options = require "kube._informer_options"
local options = require "kube._options"
local predicate = require "kube._predicate"
local scope = require "kube._scope"
local task = require "kube._task"
require "kube._indexer"
require "kube._mutation"

-- Modules that a script must ask for, under names that look like parts of this one.
local apart = { sandbox = true, test = true }
-- kube:key(object) looks for it, and says itself what is wrong.
local asked = { metadata = true }

-- What is made when it is first used: a script may do without.
local made = {}

-- The host's own client.
function made.client()
  local client = core.client.new({})
  require("kube._rate").set_own(client)
  return client
end

function made.events() return require("kube._events").new { name = "moonwatch" } end

local kube = setmetatable({}, { __index = function(self, name)
  if made[name] then
    rawset(self, name, made[name]())
    return self[name]
  elseif apart[name] then
    errors.misuse("kube has no '%s'; write local %s = require \"kube.%s\"", name, name, name)
  elseif type(name) == "string" and not asked[name] and not name:find("^_") then
    local near = options.nearest(name, self) or options.nearest(name, made)
    errors.misuse("kube has no '%s'%s", name, near and (" (did you mean '%s'?)"):format(near) or "")
  end
end })

--- A client: which API server, as whom. Without options it is the host's own (--kubeconfig,
--- KUBECONFIG, or the pod's service account); a context alone is another context of those files.
---@param opts? { kubeconfig?: string, context?: string, qps?: number, burst?: integer } qps: so many requests per
--- second at most, burst of them at once; without it there is no limit
---@return kube.Client
function kube.new_client(opts)
  opts = options.check("new_client", opts,
    { kubeconfig = "string", context = "string", qps = "number", burst = "number" })
  local client = core.client.new(opts)
  require("kube._rate").limit("new_client", client, opts)
  return client
end

--- A request to the host's own API server. Awaits; raises what goes wrong, as client:request does.
---@param opts kube.RequestOptions
---@return kube.Response
function kube.request(opts) return require("kube._client").request(nil, opts, "kube.request") end

--- The same, but what goes wrong with the request is returned.
---@param opts kube.RequestOptions
---@return kube.Response?
---@return kube.Error?
function kube.try_request(opts) return require("kube._client").try_request(nil, opts, "kube.try_request") end

--- A factory of shared informers: one per resource, shared by all who ask this factory for it. Other
--- factories have informers of their own, whatever their options.
---@class kube.FactoryOptions
---@field client? kube.Client default: the host's own
---@field resync? number seconds between resyncs; 0 for none
---@field namespace? string "" for all; default: the -n of the command line
---@field label_selector? string|table what the server shall send
---@field field_selector? string|table what the server shall send
---@field tweak_list_options? fun(options: table) runs once per informer and may change what is asked for
---@field custom_resync? table<string, number> seconds by resource, in place of resync; of factories only. What
--- for_resource() is given as resync goes before both
---@field transform? function|{ keep?: string[], drop?: string[] } what of an object is stored; paths run in C
---@field metadata_only? boolean only metadata is asked for and stored
---@field keep_managed_fields? boolean they are dropped otherwise
---@field min_resync? number seconds, the least that a handler's resync can be; default: 1
---@field queue_bound? integer beyond it, changes of one object are merged before they reach the cache; default: 16384
---@field streaming? boolean false: lists, instead of a watch that begins with all objects
---@field page_size? integer objects in a page of a list; default: 500, and no pages where a list is of a known version
---@field backoff? kube.Backoff the delays after failures
---@field min_watch_timeout? number seconds that a watch shall last, or up to twice that; default, and least: 300
---@field short_watch? number seconds: a watch that ends sooner and without an event has failed; default: 1
---@field internal_error_budget? number seconds for which a watch goes on after internal errors of the server before all
--- is read again; default: 0
---@class kube.Backoff
---@field duration? number seconds, the first delay; default: 0.8
---@field factor? number by which it grows each time; 0 for not at all; default: 2
---@field cap? number seconds, the most that it grows to; default: 30
---@field steps? integer how often it grows; default: 38
---@field jitter? number by which part of itself a delay is longer at random, at most; default: 1
---@field reset? number seconds without a failure, after which it begins anew; 0 for never; default: 120
---@param opts? kube.FactoryOptions
---@return kube.Factory
function kube.shared_informer_factory(opts) return factory.new(opts) end

--- The informer of a resource on the default factory: started by itself, ready to take handlers, and the one that
--- controllers read, unless they have namespaces or selectors of their own. With options it is another.
---@param resource string "v1/pods", "apps/v1/deployments"
---@param opts? kube.FactoryOptions
---@return kube.Informer
function kube.informer(resource, opts)
  local f = opts == nil and factory.default()
    or factory.new(informer_options.check("informer", opts, informer_options.known))
  local inf = f:_pair("informer", resource):informer()
  core.task.defer(function() f:start() end)
  return inf
end

local standalone_options = { resource = "string", handler = "table", indexers = "table" }
for name, kind in pairs(informer_options.known) do standalone_options[name] = kind end

--- An informer of its own, without a factory (client-go's NewIndexerInformer).
---@class kube.NewInformerOptions these, and those of kube.FactoryOptions but for custom_resync
---@field resource string "v1/pods", "apps/v1/deployments"
---@field handler? table as for informer:add_event_handler
---@field indexers? table<string, function|table> as for informer:add_indexers; may name what is there anyway:
--- namespace = { path = "metadata.namespace" }
---@param opts kube.NewInformerOptions
---@return kube.Indexer indexer
---@return kube.Informer controller with run(stop), has_synced(), last_sync_resource_version()
function kube.new_informer(opts)
  opts = informer_options.check("new_informer", opts, standalone_options)
  if not opts.resource then errors.misuse("new_informer needs resource = \"version/plural\"") end
  informer_options.check_resource("new_informer", opts.resource)
  local inf = informer.new(opts.resource, opts)
  if opts.indexers then inf:add_indexers(informer.own_indexers(opts.indexers)) end
  if opts.handler then handler.add("new_informer: handler", inf, opts.handler) end
  return inf:get_indexer(), inf
end

-- For argument number i of wait_for_cache_sync: what it is, and a function that tells whether it has
-- synced, and whether it is over, so that it never will; of an informer that too.
local function sync_check(i, check)
  local class = type(check) == "table" and getmetatable(check)
  if class == factory.pair then
    check = check:informer()
    class = informer.class
  elseif class == informer.controller then
    check = check._informer
    class = informer.class
  end
  if class == informer.class then
    return check._resource, function() return check:has_synced(), check:is_stopped() end, check
  elseif class == handler.registration then
    if check._core:is_calling() and not check:has_synced() then
      errors.misuse("wait_for_cache_sync(stop, ...): argument %d is the handler that waits here, which has synced when "
        .. "it has returned; wait in kube.background(name, function)", i + 1)
    end
    return check._name, function() return check:has_synced(), check._core:is_closed() end
  elseif class == factory.class then
    errors.misuse("wait_for_cache_sync(stop, ...): argument %d is a factory: write factory:wait_for_cache_sync(stop)",
      i + 1)
  elseif class == nil and type(check.has_synced) == "function" then
    return "argument " .. i + 1, function() return check:has_synced() end
  elseif check == informer.class.has_synced or check == handler.registration.has_synced then
    errors.misuse("wait_for_cache_sync: argument %d is a method without its informer; pass the "
      .. "informer itself", i + 1)
  elseif type(check) == "function" then
    return "argument " .. i + 1, function() return (check()) end
  end
  errors.misuse("wait_for_cache_sync(stop, ...): argument %d must be an informer, a registration or "
    .. "a function, not a %s", i + 1, type(check))
end

--- Waits until all of these have synced: informers, registrations, or functions that say so. Gives
--- up when `stop` closes, or one of them is stopped before it has synced.
---@param stop? kube.StopChannel
---@return boolean
function kube.wait_for_cache_sync(stop, ...)
  if stop ~= nil and not task.is_stop_channel(stop) then
    errors.misuse("wait_for_cache_sync(stop, ...): the first argument must be what kube.stop_channel() returned, or "
      .. "nil, not a %s; what is waited for comes behind it", type(stop))
  end
  local names, checks, informers = {}, {}, {}
  for i = 1, select("#", ...) do
    names[i], checks[i], informers[#informers + 1] = sync_check(i, (select(i, ...)))
  end
  local function look()
    local missing, over = {}, stop ~= nil and stop:is_closed()
    for i, check in ipairs(checks) do
      local synced, ended = check()
      if not synced then missing[#missing + 1] = names[i] end
      over = over or (ended and not synced)
    end
    return #missing == 0, over, missing
  end
  task.wait_until(function()
    while #informers > 0 do informer.warn_unstarted(table.remove(informers, 1)) end
    local all, over = look()
    return all or over
  end, nil, "kube.wait_for_cache_sync()")
  local all, _, missing = look()
  if not all then factory.tell_unsynced(stop, missing) end
  return all
end

-- Each of these modules says what its functions do; lua/README.md has them all.
kube.stop_channel, kube.sleep, kube.background = task.stop_channel, task.sleep, task.background
kube.predicate = predicate.public
for name, is in pairs(errors.predicates) do kube[name] = is end
for name, fn in pairs(scope) do kube[name] = fn end

-- The rest is loaded when it is first called: each script uses a little of it, and all of it is most of what a
-- start costs in Lua. Only the names are here, for `pairs` and did-you-mean.
local function late(module, name, part)
  local fn
  return function(...)
    if not fn then
      local from = require("kube." .. module)
      fn = (part and from[part] or from)[name]
    end
    return fn(...)
  end
end

-- Functions of kube, by module; where they have another name there, "name=there".
for module, names in pairs {
  _controller = "controller=new",
  _create_or_update = "create_or_update",
  _diff = "diff equal",
  _edit = "edit merge",
  _encoding = "sha256",
  _events = "recorder",
  _handover = "on_load on_unload",
  _jit = "jit",
  _leader = "leader_election",
  _owner = "set_owner remove_owner is_owned_by controller_of",
  _rate = "rate_limit",
  _reconcile = "terminal",
  _retry = "retry_on_conflict=on_conflict",
  _timer = "every",
  _workqueue = "workqueue=new",
} do
  for name, there in names:gmatch("([%w_]+)=?([%w_]*)") do
    kube[name] = late(module, there ~= "" and there or name)
  end
end

-- All that is wrong with what a script declares is told at once.
for _, name in ipairs { "controller", "every", "jit", "leader_election" } do
  kube[name] = declared.patient(kube[name])
end

-- Libraries: kube.time.now and so on. Of _encoding they are parts.
for name, names in pairs {
  base64 = "encode decode",
  condition = "get is_true set remove",
  duration = "parse format",
  finalizer = "has add remove",
  http = "request try_request get try_get post try_post put try_put delete try_delete",
  metric = "counter gauge histogram",
  quantity = "is_valid canonical number compare add sub",
  selector = "parse matches",
  store = "set get incr names",
  time = "now parse format since",
  yaml = "encode decode decode_all",
} do
  local part = (name == "base64" or name == "yaml") and name or nil
  kube[name] = {}
  for fn in names:gmatch("[%w_]+") do kube[name][fn] = late(part and "_encoding" or "_" .. name, fn, part) end
end
kube.condition.patch = late("_condition_patch", "patch")

-- So are the verbs of clients, which then say themselves what a client does not have.
if not getmetatable(core.client.methods) then
  setmetatable(core.client.methods, { __index = function(methods, name)
    require "kube._verbs"
    return methods[name]
  end })
end

-- Structured logs; lua/kube/_meta/log.lua declares them.
kube.log = {}
for _, level in ipairs { "error", "warn", "info", "debug" } do
  kube.log[level] = function(message, fields)
    if fields ~= nil and type(fields) ~= "table" then
      errors.misuse("kube.log.%s(message, fields): fields must be a table, not a %s", level, type(fields))
    end
    core.log.write(level, message, fields)
  end
end

-- Functions, not methods: kube:new_client{} would take kube for the options.
for name, fn in pairs(kube) do
  if type(fn) == "function" then
    kube[name] = function(first, ...)
      if rawequal(first, kube) then
        errors.misuse("call it with a dot: kube.%s(...), not kube:%s(...)", name, name)
      end
      return fn(first, ...)
    end
  end
end

-- Values. They are called so often that nothing stands before them.
kube.get = core.codec.get
kube.copy = core.codec.copy
kube.array = core.codec.array
kube.object = core.codec.object
kube.int64 = core.codec.int64
kube.null = core.codec.null
kube.json = { encode = core.codec.encode, decode = core.codec.decode }

-- "ns/name", or "name".
kube.key = core.codec.object_key

for name, value in pairs(kube) do
  if type(value) == "table" and getmetatable(value) == nil then options.library(value, "kube." .. name) end
end

-- What scripts set: kube.on_unload looks for it.
local settable = { state_version = true }

getmetatable(kube).__newindex = function(self, name, value)
  if settable[name] then return rawset(self, name, value) end
  local near = options.nearest(tostring(name), settable)
  errors.misuse("kube.%s cannot be set%s", tostring(name), near and (" (did you mean '%s'?)"):format(near)
    or ": kube takes no new names; keep the value in a local")
end

return kube
