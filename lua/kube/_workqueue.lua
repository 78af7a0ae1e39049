-- The work queue as a script sees it: client-go's, with priorities and reasons. What it promises is
-- written in core/queue/workqueue.h.
local core = require "kube._core"
local declared = require "kube._declared"
local errors = require "kube._error"
local options = require "kube._options"
local task = require "kube._task"

local M = {}

local KEY_MAX = 4096
local PRIORITY_MAX = 1000
local SECONDS_MAX = 1e9
local QPS, BURST = 10, 100
local DRAIN_SECONDS = 30

--- What kube.workqueue returns.
---@class kube.WorkQueue
local Queue = {}
Queue.__index = Queue
Queue.__name = "kube.workqueue"

function Queue.__tostring(self) return self._name and "queue " .. self._name or "queue" end

-- Named queues of this script: name -> { queue =, place = }.
local made = {}

local queue_options = {
  name = "string", base_delay = "number", max_delay = "number", fast_retries = "number",
  qps = "number|boolean", burst = "number", max_wait = "number", was = "string",
}
local add_options = { after = "number", rate_limited = "boolean", priority = "number", reason = "string" }

-- Fractions of keys per second are fine, fractions of a burst are not.
local limits = {
  base_delay = { 0, SECONDS_MAX, "seconds" }, max_delay = { 0, SECONDS_MAX, "seconds" },
  max_wait = { 0, SECONDS_MAX, "seconds" }, qps = { 0.001, 1e9, "keys per second" },
  burst = { 1, 1e9, "keys", true }, fast_retries = { 1, 1e9, "failures", true },
}

local function check_limits(opts)
  for name, rule in pairs(limits) do
    local value = opts[name]
    local low, high, unit, whole = rule[1], rule[2], rule[3], rule[4]
    if type(value) == "number" and not (value >= low and value <= high
      and (not whole or value == math.floor(value))) then
      errors.misuse("kube.workqueue: option '%s' must be a %snumber of %s between %g and %g, not %s", name,
        whole and "whole " or "", unit, low, high, tostring(value))
    end
  end
  if opts.qps == true then
    errors.misuse("kube.workqueue: option 'qps' must be a number of keys per second, or false for no such limit")
  end
  if opts.burst and opts.qps == false then
    errors.misuse("kube.workqueue: option 'burst' needs qps = a number of keys per second")
  end
  local base, max = opts.base_delay or 0.005, opts.max_delay or 1000
  if base > max then
    errors.misuse("kube.workqueue: base_delay (%g) must not be longer than max_delay (%g)", base, max)
  end
end

-- What the load phase declares acts when it has ended.
local loading = true
local function act(fn, ...)
  if loading then
    loading = core.task.is_loading()
    if loading then
      local count, arguments = select("#", ...), { ... }
      core.task.defer(function() fn(unpack(arguments, 1, count)) end)
      return
    end
  end
  fn(...)
end

local function check_key(what, key)
  if type(key) == "string" and #key > 0 and #key <= KEY_MAX then return end
  if type(key) == "string" then
    errors.misuse("%s: a key has 1 to %d bytes, this one has %d", what, KEY_MAX, #key)
  elseif type(key) == "table" then
    errors.misuse("%s: a key is a string, not a table; write kube.key(object)", what)
  end
  errors.misuse("%s: a key is a string, not %s", what, key == nil and "nothing" or "a " .. type(key))
end

--- Raises unless a key can be added that much later. what names the value in messages.
function M.check_seconds(what, seconds)
  if type(seconds) == "number" and seconds <= SECONDS_MAX then return end
  errors.misuse("%s must be a number of seconds, not %s", what, options.shown(seconds))
end
local check_seconds = M.check_seconds

--- Raises unless a key can be added with this priority.
function M.check_priority(what, priority)
  if math.abs(priority) <= PRIORITY_MAX and priority == math.floor(priority) then return end
  errors.misuse("%s must be a whole number between %d and %d, not %s", what, -PRIORITY_MAX, PRIORITY_MAX,
    tostring(priority))
end

---@class kube.WorkQueueOptions
---@field name? string found again by the next version of the script, with its keys; also the label of its metrics
---@field was? string the name that it had in the revision before, whose keys it takes over
---@field base_delay? number seconds that a key waits after its first failure, doubled with each further one; 0.005
---@field max_delay? number the longest such wait; 1000
---@field fast_retries? integer so many failures wait base_delay each, all further ones max_delay
---@field qps? number|false keys per second over all keys that failed; 10, false for no such limit
---@field burst? integer how many of them may come at once; 100
---@field max_wait? number the longest wait of all, that for qps included

--- A queue of keys to work on: each key once, by priority, when its time has come. Keys that are added
--- while the script loads are added when it has loaded.
---@param opts? kube.WorkQueueOptions
---@return kube.WorkQueue
function M.new(opts)
  opts = options.check("kube.workqueue", opts, queue_options)
  check_limits(opts)
  local name = opts.name
  if name == "" then errors.misuse("kube.workqueue: option 'name' must not be empty; leave it out for no name") end
  local before = made[name or false]
  if before and not before.queue._handle:is_shut_down() then
    errors.misuse("kube.workqueue: a queue named '%s' was made at %s; use that one, or give this one a name of "
      .. "its own", name, before.place)
  end
  if opts.was and not name then errors.misuse("kube.workqueue: option 'was' needs a name") end
  local handle = core.queue.new(name, opts.was)
  local self = setmetatable({ _handle = handle, _name = name }, Queue)
  if name then made[name] = { queue = self, place = errors.place() } end
  declared.add("queues", { name = name })
  local limit = {
    base_delay = opts.base_delay, max_delay = opts.max_delay, fast_retries = opts.fast_retries,
    qps = opts.qps == nil and QPS or opts.qps or 0, burst = opts.burst or BURST, max_wait = opts.max_wait,
  }
  act(handle.limit, handle, limit)
  return self
end

--- Adds a key. A key that is queued already keeps the higher priority and the earlier time; one that
--- is being processed is handed out once more when it is done.
---@param key string
---@param opts? { after?: number, rate_limited?: boolean, priority?: integer, reason?: string } after: seconds to
--- wait; rate_limited: counts a failure of the key and waits accordingly, with `after` the shorter of both;
--- priority: -1000 to 1000, higher first; reason: a short text for whoever gets the key
function Queue:add(key, opts)
  check_key("queue:add(key)", key)
  if opts == nil then return act(self._handle.add, self._handle, key) end
  options.check("queue:add", opts, add_options)
  local priority = opts.priority
  if priority then M.check_priority("queue:add: option 'priority'", priority) end
  if opts.after then check_seconds("queue:add: option 'after'", opts.after) end
  act(self._handle.add, self._handle, key, opts.after, opts.rate_limited, priority, opts.reason)
end

--- Adds a key that is ready after so many seconds.
---@param key string
---@param seconds number
function Queue:add_after(key, seconds)
  check_key("queue:add_after(key, seconds)", key)
  check_seconds("queue:add_after(key, seconds): seconds", seconds)
  act(self._handle.add, self._handle, key, seconds)
end

--- Counts a failure of the key and adds it when the limits allow it.
---@param key string
function Queue:add_rate_limited(key)
  check_key("queue:add_rate_limited(key)", key)
  act(self._handle.add, self._handle, key, nil, true)
end

--- Forgets the failures of a key, so that its next one waits as short as the first. It still needs its done.
---@param key string
function Queue:forget(key)
  check_key("queue:forget(key)", key)
  act(self._handle.forget, self._handle, key)
end

--- How often the key was added rate limited since it was forgotten.
---@param key string
---@return integer
function Queue:num_requeues(key)
  check_key("queue:num_requeues(key)", key)
  return self._handle:num_requeues(key)
end

--- How many keys are ready and not being processed.
---@return integer
function Queue:len() return self._handle:len() end

local get = task.awaiting("queue:get()", function(handle) return handle:get() end)

---@class kube.WorkItem
---@field priority integer
---@field reasons string[] why it was added
---@field waited number seconds since it was ready
---@field requeues integer its failures so far

--- Waits for the next key. It is this caller's alone until queue:done(key). Several who wait are served in order.
---@return string? key nil when the queue has shut down
---@return boolean shutdown
---@return kube.WorkItem? info
function Queue:get() return get(self._handle) end

--- Ends the work on a key that get returned. If it was added meanwhile, it is ready again now.
---@param key string
function Queue:done(key)
  check_key("queue:done(key)", key)
  if not self._handle:done(key) then
    errors.misuse("queue:done(key): '%s' is not being processed; call it once for each key that queue:get() "
      .. "returned", key)
  end
end

--- Ends the queue: adds are ignored and delayed keys dropped, keys that are ready are still handed out,
--- and then every get returns nil, true.
function Queue:shut_down()
  self._draining = false
  self._handle:shut_down()
  core.task.changed():fire()
end

--- The same, and waits until no key is ready and none is being processed. Calling shut_down ends the wait.
---@param timeout? number seconds, 30 if not given
---@return boolean drained false when the time was over first, or shut_down was called
function Queue:shut_down_with_drain(timeout)
  options.check_timeout("queue:shut_down_with_drain(timeout): timeout", timeout)
  local handle = self._handle
  self._draining = true
  task.wait_until(function()
    handle:shut_down()
    return handle:is_drained() or not self._draining
  end, timeout or DRAIN_SECONDS, "queue:shut_down_with_drain()")
  return handle:is_drained()
end

--- Whether the queue has been shut down.
---@return boolean
function Queue:is_shut_down() return self._handle:is_shut_down() end

--- Counters and state, for people and dashboards.
---@return table
function Queue:stats() return self._handle:stats() end

options.guard(Queue, "queue")
M.class = Queue
return M
