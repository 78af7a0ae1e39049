-- Shared informer factories: option sets that hand out informers and listers.
local core = require "kube._core"
local errors = require "kube._error"
local informer = require "kube._informer"
local informer_options = require "kube._informer_options"
local known_groups = require "kube._groups"
local options = require "kube._options"
local reader = require "kube._indexer"
local task = require "kube._task"

-- Says which of those that were waited for have not synced: of no weight when that was given up by closing `stop`.
local function tell_unsynced(stop, missing)
  core.log.write(stop and stop:is_closed() and "info" or "warn", "caches not synced",
    { missing = table.concat(missing, ", "), at = errors.place() })
end

--- Informers that are shared, one per resource. Every group that client-go of Kubernetes 1.36 has is a method:
--- `factory:core():v1():pods()` is the pair of pods. All else goes by factory:for_resource().
---@class kube.Factory
local Factory = {}
Factory.__index = Factory

-- A pair: what client-go calls PodInformer, with Informer() and Lister().
--- The informer and the lister of a resource.
---@class kube.Pair
local Pair = {}
Pair.__index = Pair

--- The one informer of this resource in this factory.
---@return kube.Informer
function Pair:informer() return self._factory:_informer_for(self._resource, self._opts) end

--- A lister over its cache. Asking for it registers the informer, as in client-go.
---@return kube.Lister
function Pair:lister() return self:informer():lister() end

-- One version of a group: v1():pods(). Kinds answer to client-go's name in snake_case and to the
-- plural of the API.
local function make_version(factory, group, version, kinds)
  local names = {}
  for name in kinds:gmatch("%S+") do
    local plural = name:gsub("_", "")
    local resource = (group ~= "" and group .. "/" or "") .. version .. "/" .. plural
    local function pair() return setmetatable({ _factory = factory, _resource = resource }, Pair) end
    names[name], names[plural] = pair, pair
  end
  return setmetatable({}, {
    __index = function(_, name)
      if names[name] then return names[name] end
      errors.misuse("%s/%s has no kind '%s'%s", group ~= "" and group or "core", version,
        tostring(name), options.hint(tostring(name), names))
    end,
  })
end

local function make_group(factory, name, spec)
  local versions = {}
  for version, kinds in pairs(spec) do
    if version ~= "group" then
      versions[version] = function() return make_version(factory, spec.group, version, kinds) end
    end
  end
  return setmetatable({}, {
    __index = function(_, version)
      if versions[version] then return versions[version] end
      errors.misuse("the group %s has no version '%s'%s", name, tostring(version),
        options.hint(tostring(version), versions))
    end,
  })
end

for name, spec in pairs(known_groups.groups) do
  Factory[name] = function(self) return make_group(self, name, spec) end
end
for name, sentence in pairs(known_groups.refused) do
  Factory[name] = function() errors.misuse("factory:%s(): %s", name, sentence) end
end

local function refuse_options(resource)
  errors.misuse("the informer of %s exists in this factory, so options come too late for it: give "
    .. "them where it is asked for first, or make a factory of its own", resource)
end

--- The informer and lister of any resource, by its one name: "apps/v1/deployments",
--- "example.com/v1/webs". Options add to the factory's own for this resource; they are for the first
--- who asks, because there is one informer.
---@param resource string
---@param opts? kube.FactoryOptions
---@return kube.Pair
function Factory:for_resource(resource, opts)
  if opts ~= nil then
    opts = informer_options.check("for_resource", opts, informer_options.known)
    if self._informers[resource] then refuse_options(resource) end
  end
  return self:_pair("for_resource", resource, opts)
end

-- what names the function in messages. Handlers may ask for what is there at each call.
function Factory:_pair(what, resource, opts)
  if not self._informers[resource] then informer_options.check_resource(what, resource) end
  return setmetatable({ _factory = self, _resource = resource, _opts = opts }, Pair)
end

-- One informer per resource and factory, made when first asked for (S-FAC-02, 03).
function Factory:_informer_for(resource, extra)
  local found = self._informers[resource]
  if found then
    if extra and found._extra ~= extra then refuse_options(resource) end
    return found
  end
  local opts = {}
  for key, value in pairs(self._opts) do opts[key] = value end
  opts.resync = opts.custom_resync and opts.custom_resync[resource] or opts.resync
  for key, value in pairs(extra or {}) do opts[key] = value end
  found = informer.new(resource, opts)
  found._extra, found._factory = extra, self
  self._informers[resource] = found
  self._order[#self._order + 1] = found
  return found
end

-- What is asked of it from now on comes to nothing, as in client-go, and is told once.
local function warn_shut_down(self)
  for _, inf in ipairs(self._order) do informer.forget(inf) end
  if self._warned then return end
  self._warned = true
  core.log.write("warn", "this factory has been shut down and starts nothing; make another one",
    { at = errors.place() })
end

--- Starts every informer that was asked for and is not running yet; does not wait. Informers asked
--- for later need another start. Without a stop channel they run until the script ends. A factory that has been shut
--- down starts nothing.
---@param stop? kube.StopChannel
function Factory:start(stop)
  task.check_stop("factory:start(stop): stop", stop)
  if self._shut_down then return warn_shut_down(self) end
  for _, inf in ipairs(self._order) do
    if not self._started[inf] then
      self._started[inf] = true
      informer.start(inf, stop)
    end
  end
end

-- Whether the wait for the started informers is over, whether all have synced, and which.
local function sync_state(self)
  local by_resource, all, over = {}, true, true
  for inf in pairs(self._started) do
    local synced = inf:has_synced()
    by_resource[inf._resource] = synced
    all = all and synced
    over = over and (synced or inf:is_stopped())
  end
  return over, all, by_resource
end

--- Waits until every started informer has synced. Returns whether all have, and a table of
--- resource -> synced; false when `stop` closed, the timeout passed or they were stopped. Both
--- arguments may be left out: wait_for_cache_sync(stop), wait_for_cache_sync(5).
---@param stop? kube.StopChannel gives up when it closes
---@param timeout? number seconds; none: as long as it takes
---@return boolean synced
---@return table<string, boolean> by_resource
function Factory:wait_for_cache_sync(stop, timeout)
  if type(stop) == "number" and timeout == nil then stop, timeout = nil, stop end
  task.check_stop("factory:wait_for_cache_sync(stop, timeout): stop", stop)
  options.check_timeout("factory:wait_for_cache_sync(stop, timeout): timeout", timeout)
  local looked = false
  task.wait_until(function()
    if not looked then
      looked = true  -- now, when what was put off until the script is loaded has been done
      for _, inf in ipairs(self._order) do informer.warn_unstarted(inf) end
    end
    return (sync_state(self)) or (stop and stop:is_closed())
  end, timeout, "factory:wait_for_cache_sync()")
  local _, all, by_resource = sync_state(self)
  if not all then
    local missing = {}
    for resource, synced in pairs(by_resource) do
      if not synced then missing[#missing + 1] = resource end
    end
    table.sort(missing)
    tell_unsynced(stop, missing)
  end
  return all, by_resource
end

--- No more starts; waits until every informer has come to rest. Close their stop channel first.
function Factory:shutdown()
  for inf in pairs(self._started) do
    if inf._handle:is_in_handler() then
      errors.misuse("factory:shutdown() waits for itself in a handler of one of its informers; call it in "
        .. "kube.background(name, function)")
    end
  end
  self._shut_down = true
  task.wait_until(function()
    for inf in pairs(self._started) do
      if not inf._handle:is_stopped(true) then return false end
    end
    return true
  end, nil, "factory:shutdown()")
end

options.guard(Factory, "factory")
options.guard(Pair, "resource", { advice = function(name)
  if rawget(informer.class, name) then
    return ("; its informer has: write :informer():%s(...)"):format(name)
  elseif rawget(reader, name) then
    return ("; its lister has: write :lister():%s(...)"):format(name)
  end
end })

local factory = {}

local factory_options = { custom_resync = "table" }
for name, kind in pairs(informer_options.known) do factory_options[name] = kind end

local SECONDS_MAX = 1e9  -- of any period

-- What no informer of this factory can have would be ignored.
local function check_custom_resync(periods)
  for resource, seconds in pairs(periods) do
    if type(resource) ~= "string" then
      errors.misuse("custom_resync goes by resource: \"version/plural\" or "
        .. "\"group/version/plural\", as in { [\"v1/pods\"] = 60 }, not '%s'", tostring(resource))
    end
    informer_options.check_resource("custom_resync", resource)
    local what = ("custom_resync: the period of '%s'"):format(resource)
    options.check_timeout(what, seconds)
    if seconds > SECONDS_MAX then errors.misuse("%s must be %d seconds at most, not %s", what, SECONDS_MAX, seconds) end
  end
end

--- Makes a factory; see kube.shared_informer_factory.
function factory.new(opts)
  opts = informer_options.check("shared_informer_factory", opts, factory_options)
  if opts.custom_resync then check_custom_resync(opts.custom_resync) end
  return setmetatable({ _opts = opts, _informers = {}, _order = {}, _started = {} }, Factory)
end

factory.class, factory.pair, factory.tell_unsynced = Factory, Pair, tell_unsynced
local default

--- The script's default one, without options: kube.informer() and controllers share its informers.
---@return kube.Factory
function factory.default()
  default = default or factory.new()
  return default
end

return factory
