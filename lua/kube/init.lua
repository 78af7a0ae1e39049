-- require "kube": what a script sees of Moonwatch. The low level mirrors client-go in snake_case.
local core = require "kube._core"
local errors = require "kube._error"
local factory = require "kube._factory"
local informer = require "kube._informer"
local options = require "kube._options"
local task = require "kube._task"
require "kube._indexer"
require "kube._mutation"

local kube = {}

--- A client: which API server, as whom. Without options it is the host's own (--kubeconfig,
--- KUBECONFIG, or the pod's service account).
---@param opts? { kubeconfig?: string, context?: string }
---@return kube.Client
function kube.new_client(opts)
  opts = options.check("new_client", opts, { kubeconfig = "string", context = "string" })
  return core.client.new(opts)
end

--- A factory of shared informers. Two factories with equal options share their caches.
---@class kube.FactoryOptions
---@field client? kube.Client
---@field resync? number seconds between resyncs; 0 for none
---@field namespace? string "" for all; default: the -n of the command line
---@field label_selector? string|table
---@field field_selector? string|table
---@field tweak_list_options? fun(options: table) runs once per informer
---@field custom_resync? table<string, number> by resource
---@field transform? function|{ keep?: string[], drop?: string[] }
---@field metadata_only? boolean
---@field keep_managed_fields? boolean
---@param opts? kube.FactoryOptions
---@return kube.Factory
function kube.shared_informer_factory(opts) return factory.new(opts) end

local default_factory

--- The informer of a resource on the default factory: started by itself, ready to take handlers.
---@param resource string "v1/pods", "apps/v1/deployments"
---@param opts? table as for shared_informer_factory
---@return kube.Informer
function kube.informer(resource, opts)
  options.check("informer", opts, informer.known)
  local f = default_factory
  if opts or not f then f = factory.new(opts) end
  if not opts then default_factory = f end
  local inf = f:for_resource(resource):informer()
  core.task.defer(function() f:start() end)
  return inf
end

local standalone_options = { resource = "string", handler = "table", indexers = "table" }
for name, kind in pairs(informer.known) do standalone_options[name] = kind end

--- An informer of its own, without a factory (client-go's NewIndexerInformer).
---@param opts { resource: string, handler?: table, indexers?: table, resync?: number }
---@return kube.Indexer indexer
---@return kube.Informer controller with run(stop), has_synced(), last_sync_resource_version()
function kube.new_informer(opts)
  opts = options.check("new_informer", opts, standalone_options)
  if not opts.resource then errors.misuse("new_informer needs resource = \"version/plural\"") end
  local inf = informer.new(opts.resource, opts, true)
  if opts.indexers then inf:add_indexers(opts.indexers) end
  if opts.handler then inf:add_event_handler(opts.handler) end
  return inf:get_indexer(), inf
end

--- Waits until all of these have synced: informers, registrations, or functions.
---@param stop? kube.StopChannel gives up when it closes
---@return boolean
function kube.wait_for_cache_sync(stop, ...)
  local checks = { ... }
  local function synced()
    for _, check in ipairs(checks) do
      local ok
      if type(check) == "function" then ok = check() else ok = check:has_synced() end
      if not ok then return false end
    end
    return true
  end
  task.wait_until(function() return synced() or (stop and stop:is_closed()) end)
  return synced()
end

--- A channel that is closed once: stop:close() stops what was started with it.
kube.stop_channel = task.stop_channel

--- Waits without stopping anything else.
---@param seconds number
kube.sleep = task.sleep

--- Runs a function beside the rest, until it ends or the script does.
---@param name string
---@param fn function
kube.background = task.background

kube.get = core.codec.get
kube.copy = core.codec.copy
kube.array = core.codec.array
kube.object = core.codec.object
kube.int64 = core.codec.int64
kube.null = core.codec.null
kube.json = { encode = core.codec.encode, decode = core.codec.decode }

--- The key of an object: "ns/name", or "name".
kube.key = core.codec.object_key

--- Structured logs: kube.log.info(message, { key = value }).
kube.log = {}
for _, level in ipairs { "error", "warn", "info", "debug" } do
  kube.log[level] = function(message, fields) core.log.write(level, message, fields) end
end

return kube
