-- Informers on the real transport against a small API server. The script loop turns on the spec's
-- thread; the ingest loop too, or on a thread of its own.
--
--   local rig = informer_rig.new { thread = true }
--   local inf = rig:informer { resync = 0.1 }
--   local l = inf:listen { ... }          -- as kit.listener
--   inf:start()
--   rig:pump(function() return inf:synced() end)
--   rig:close()                           -- lets go of everything and waits until it has gone
jit.off(true, true)
local kit = require "spec.support.cache_kit"
local list_watch_server = require "spec.support.list_watch_server"
local unit = require "spec.support.unit"
local C, ffi = unit.C, unit.ffi

local informer_rig = {}
local Rig, Informer, Listener = {}, {}, {}
Rig.__index, Informer.__index, Listener.__index = Rig, Informer, Listener

--- options: thread (the ingest loop gets its own).
function informer_rig.new(options)
  local self = setmetatable({ informers = {}, listeners = {} }, Rig)
  self.live_before = unit.live()
  C.mw_log_set_level(os.getenv("SPEC_LOG") and C.MW_LOG_DEBUG or C.MW_LOG_ERROR)
  self.server = list_watch_server.new()
  self.script = C.mw_loop_new("script")
  self.ingest = C.mw_loop_new("ingest")
  self.http = C.mw_http_new(self.ingest, nil)
  self.endpoint = unit.endpoint(self.server:url())
  self.runtime = ffi.new("struct mw_runtime", { self.script, self.ingest, self.http })
  self.threaded = options and options.thread
  if self.threaded then assert(C.mw_loop_start_thread(self.ingest) == 0) end
  return self
end

--- An mw_informer_config; options are its fields and those of its reflector.
function Rig:config(options)
  local config = ffi.new("struct mw_informer_config")
  config.endpoint = self.endpoint
  config.min_resync = 0.01
  config.reflector.backoff = { 0.005, 2, 0, 0.04, 10, 0 }
  config.reflector.seed = 1
  self.strings = self.strings or {}
  self.strings[#self.strings + 1] = options
  options = options or {}
  assert(C.mw_resource_parse(unit.slice(options.resource or "v1/pods"), config.reflector.resource,
    nil) == 0)
  for name, value in pairs(options) do
    if name == "fifo_bound" or name == "min_resync" or name == "variant" or name == "projection"
      or name == "keep_managed_fields" then
      config[name] = value
    elseif name ~= "resource" then
      config.reflector[name] = value
    end
  end
  return config
end

--- Wraps an informer that the caller has a reference on.
function Rig:adopt(ptr)
  local inf = setmetatable({ rig = self, ptr = ptr, changes = 0, errors = {} }, Informer)
  local call, ctx = kit.callback("call", function() inf.changes = inf.changes + 1 end)
  C.mw_informer_on_change(ptr, call, ctx)
  self.informers[#self.informers + 1] = inf
  return inf
end

function Rig:informer(options)
  return self:adopt(C.mw_informer_new(self.runtime, self:config(options)))
end

function Rig:turn()
  C.mw_loop_turn(self.script, self.threaded and 1 or 0)
  if not self.threaded then C.mw_loop_turn(self.ingest, 1) end
  self.server:turn()
end

function Rig:pump(condition)
  kit.pump(function() self:turn() end, condition, function()
    local told = {}
    for i, l in ipairs(self.listeners) do told[i] = i .. ": " .. table.concat(l.log, "; ") end
    return "\n" .. table.concat(told, "\n")
  end)
end

--- Waits until the listener was told so many things and returns them.
function Rig:heard(l, count)
  self:pump(function() return #l.log >= count end)
  return l.log
end

--- Runs only the ingest side, so that deltas pile up before the script loop.
function Rig:ingest_until(condition)
  kit.pump(function()
    self.server:turn()
    C.mw_loop_turn(self.ingest, 1)
  end, condition)
end

--- A started informer with what the server holds in its store.
function Rig:running(options)
  local inf = self:informer(options)
  inf:start()
  self:pump(function() return inf:synced() and self.server:open_watches() > 0 end)
  return inf
end

--- Turns the loops so often that nothing that is under way can still be on its way.
function Rig:settle()
  for _ = 1, 20 do self:turn() end
  kit.check()
end

--- Lets go of every handle and waits until the core has freed it all.
function Rig:close()
  for _, l in ipairs(self.listeners) do C.mw_listener_finished(l.ptr) end
  for _, inf in ipairs(self.informers) do inf:unref() end
  self:pump(function() return (unit.live().informer or 0) == (self.live_before.informer or 0) end)
  for _, l in ipairs(self.listeners) do C.mw_listener_unref(l.ptr) end
  self:settle()
  if self.threaded then C.mw_loop_join_thread(self.ingest) end
  C.mw_endpoint_unref(self.endpoint)
  C.mw_http_free(self.http)
  C.mw_loop_free(self.ingest)
  C.mw_loop_free(self.script)
  self.server:close()
  kit.forget_all()
end

-- Informers.

local function checked(rc, err)
  if rc == 0 then return true end
  return nil, ffi.string(C.mw_err_name(rc)), ffi.string(err.message)
end

function Informer:unref()
  if self.ptr then C.mw_informer_unref(self.ptr) end
  self.ptr = nil
end

function Informer:start()
  local err = unit.err()
  return checked(C.mw_informer_start(self.ptr, nil, err), err)
end

function Informer:stop() C.mw_informer_stop(self.ptr) end
function Informer:synced() return C.mw_informer_has_synced(self.ptr) end
function Informer:stopped() return C.mw_informer_is_stopped(self.ptr) end
function Informer:started() return C.mw_informer_is_started(self.ptr) end
function Informer:indexer() return C.mw_informer_indexer(self.ptr) end

--- options as kit.listener, and resync (default: the informer's), replay (default: true).
function Informer:listen(options)
  options = options or {}
  local l = setmetatable(kit.listener(options), Listener)
  local err = unit.err()
  local ptr = C.mw_informer_add_listener(self.ptr, nil, l.config, options.resync or -1,
    options.replay ~= false, err)
  if ptr == nil then return nil, ffi.string(C.mw_err_name(err.code)), ffi.string(err.message) end
  l.ptr = ptr
  self.rig.listeners[#self.rig.listeners + 1] = l
  return l
end

--- fn(o) returns an object, nil to drop it, or raises to fail.
function Informer:set_transform(fn, owner)
  local cb, ctx = kit.callback("transform", function(o, _, out, err)
    local ok, result = pcall(fn, o)
    if not ok then
      C.mw_err_set(err, C.MW_ESCRIPT, "%s", tostring(result))
      return C.MW_ESCRIPT
    end
    if result == nil then return 1 end
    out[0] = C.mw_object_ref(result)
    return 0
  end)
  local err = unit.err()
  return checked(C.mw_informer_set_transform(self.ptr, owner, cb, ctx, nil, err), err)
end

function Informer:set_error_handler(fn, owner)
  local cb, ctx = kit.callback("error", fn)
  local err = unit.err()
  return checked(C.mw_informer_set_error_handler(self.ptr, owner, cb, ctx, nil, err), err)
end

--- fn(o) returns the values of o in the index.
function Informer:add_index(name, fn)
  local cb, ctx = kit.callback("index", function(o, values)
    for _, value in ipairs(fn(o)) do assert(C.mw_values_add(values, unit.slice(value)) == 0) end
    return 0
  end)
  local spec = ffi.new("struct mw_index_spec[1]", { { name = name, values = cb, ctx = ctx } })
  local err = unit.err()
  return checked(C.mw_informer_add_indexes(self.ptr, nil, spec, 1, err), err)
end

local function texts(list)
  local found = {}
  for i = 0, tonumber(list.n) - 1 do found[i + 1] = kit.text(list.v[i]) end
  C.mw_object_list_deinit(list)
  table.sort(found)
  return found
end

function Informer:by_index(name, value)
  local list, err = ffi.new("struct mw_object_list"), unit.err()
  assert(C.mw_indexer_by_index(self:indexer(), nil, unit.slice(name), unit.slice(value), list, err) == 0)
  return texts(list)
end

--- What is in the store: { "a@1", ... }, sorted.
function Informer:store()
  local list = ffi.new("struct mw_object_list")
  C.mw_indexer_list(self:indexer(), unit.slice(""), nil, nil, list)
  return texts(list)
end

function Informer:get(name)
  local o = C.mw_indexer_get(self:indexer(), unit.slice("default/" .. name))
  return o ~= nil and o or nil
end

function Informer:store_rv() return tonumber(unit.str(C.mw_indexer_rv(self:indexer()))) end

function Informer:stats()
  local s = ffi.new("struct mw_informer_stats")
  C.mw_informer_stats(self.ptr, s)
  return s
end

-- Listeners.

function Listener:remove() C.mw_listener_remove(self.ptr) end
function Listener:synced() return C.mw_listener_has_synced(self.ptr) end
function Listener:finish() C.mw_listener_finished(self.ptr) end

--- Forgets what was written down so far.
function Listener:clear() for i = #self.log, 1, -1 do self.log[i] = nil end end

return informer_rig
