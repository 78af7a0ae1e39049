-- A work queue of the core on a clock that a spec moves by hand.
--
--   local rig = queue_kit.new { base_delay = 1 }     -- limits; keys_max
--   rig:add("a", { after = 5, priority = 1, reason = "why", rate_limited = true })
--   rig:pass(5)                                      -- seconds
--   local item = rig:take()                          -- { key =, priority =, reasons =, ... } or nil
--   rig:done("a")
--   rig:close()
jit.off(true, true)
local unit = require "spec.support.unit"
local C, ffi = unit.C, unit.ffi

local kit = {}

-- One callback for all rigs: LuaJIT has room for few.
local now = 0
kit.clock = ffi.cast("uint64_t (*)(void)", function() return ffi.cast("uint64_t", now) end)

local limits = { "base_delay", "max_delay", "fast_retries", "qps", "burst", "max_wait" }

--- A struct mw_rate_limiter_config: the default one with these changed.
function kit.limits(options)
  local config = ffi.new("struct mw_rate_limiter_config", C.mw_rate_limiter_default)
  for _, name in ipairs(limits) do
    if options and options[name] then config[name] = options[name] end
  end
  return config
end

--- The same as the configuration of a queue.
function kit.config(options)
  local config = ffi.new("struct mw_workqueue_config")
  config.limits = kit.limits(options)
  config.keys_max = options and options.keys_max or 0
  config.clock = kit.clock
  return config
end

local Rig = {}
Rig.__index = Rig

--- options: limits, keys_max, name.
function kit.new(options)
  local self = setmetatable({}, Rig)
  now = 1000000000
  self.loop = C.mw_loop_new("spec")
  self.queue = C.mw_workqueue_new(self.loop, options and options.name, kit.config(options))
  self.user = C.mw_workqueue_join(self.queue, nil, nil)
  return self
end

--- Lets so many seconds pass.
function Rig.pass(_, seconds) now = now + seconds * 1e9 end

--- Adds a key; the code of the core.
function Rig:add(key, options)
  if not options then return C.mw_workqueue_add(self.queue, unit.slice(key), nil) end
  local how = ffi.new("struct mw_workqueue_add")
  how.after = options.after or 0
  how.rate_limited = options.rate_limited or false
  how.priority = options.priority or 0
  if options.reason then how.reasons = C.mw_workqueue_reason(self.queue, unit.slice(options.reason)) end
  return C.mw_workqueue_add(self.queue, unit.slice(key), how)
end

local function reasons_of(queue, set)
  local list = {}
  for i = 0, C.MW_WORKQUEUE_REASONS - 1 do
    if set % 2 == 1 then list[#list + 1] = ffi.string(C.mw_workqueue_reason_text(queue, i)) end
    set = set / 2
  end
  return list
end

--- What is handed out, as a table; user: the rig's own if not given.
function Rig:take(user)
  local item = ffi.new("struct mw_workqueue_item")
  if not C.mw_workqueue_take(user or self.user, item) then return nil end
  return { key = unit.str(item.key), priority = item.priority, waited = item.waited, requeues = item.requeues,
    reasons = reasons_of(self.queue, item.reasons) }
end

function Rig:done(key, user) return C.mw_workqueue_done(user or self.user, unit.slice(key)) end

function Rig:len() return tonumber(C.mw_workqueue_len(self.queue)) end

function Rig:requeues(key) return C.mw_workqueue_requeues(self.queue, unit.slice(key)) end

function Rig:forget(key) C.mw_workqueue_forget(self.queue, unit.slice(key)) end

--- The stats as a table of numbers.
function Rig:stats()
  local s = ffi.new("struct mw_workqueue_stats")
  C.mw_workqueue_stats(self.queue, s)
  local out = {}
  for _, name in ipairs { "ready", "locked", "waiting", "processing", "failing", "keys", "bytes", "adds", "retries",
    "taken", "unfinished", "longest" } do
    out[name] = tonumber(s[name])
  end
  return out
end

--- Hands out all that is ready, in order: "a b c". Each key is done at once.
function Rig:drain()
  local keys = {}
  local item = self:take()
  while item do
    keys[#keys + 1] = item.key
    assert(self:done(item.key) == 0)
    item = self:take()
  end
  return table.concat(keys, " ")
end

--- Turns the loop a few times without waiting.
function Rig:settle() for _ = 1, 5 do C.mw_loop_turn(self.loop, 0) end end

function Rig:close()
  C.mw_workqueue_leave(self.user)
  C.mw_workqueue_unref(self.queue)
  C.mw_loop_free(self.loop)
end

return kit
