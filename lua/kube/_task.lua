-- Tasks, awaiting, and stop channels, on top of kube._core.task.
--
-- An await function of the core returns `true, results...` or `false, err`; awaiting() makes a
-- function of it that returns the results or raises err.
local core = require("kube._core").task
local error_text = require("kube._core").error_text
local declared = require "kube._declared"
local errors = require "kube._error"
local log = require("kube._core").log
local options = require "kube._options"

local M = {}

local loading = true

-- Raises what an await failed with; text begins with the place in the script, not with ours.
local function raise(err)
  if type(err) ~= "string" then error(err, 0) end
  local text = err:gsub("^lua/kube/[%w_]+%.lua:%d+: ", "")
  if text:find("^[^\n]-:%d+: ") then error(text, 0) end
  errors.misuse("%s", text)
end

-- Turns `true, ...` into results and `false, err` into a raised error.
local function results(ok, ...)
  if ok then return ... end
  raise((...))
end

-- The same for what pcall makes of an await function.
local function protected_results(ok, ...)
  if ok then return results(...) end
  raise((...))
end

--- Ends the load phase, as the first await of the entry file does: nothing may be started before commit.
function M.park(what)
  if not loading then return end
  if core.is_loading() then
    declared.add("tasks", { name = "main" })
    protected_results(pcall(core.park, what))
  end
  loading = false
end
local park = M.park

--- Makes an await function of the core callable by scripts.
---@param what string its name in messages, such as "kube.sleep()"
---@param f function
---@return function
function M.awaiting(what, f)
  return function(...)
    park(what)
    return protected_results(pcall(f, ...))
  end
end

local raw_sleep = M.awaiting("kube.sleep()", core.sleep)

--- Suspends the task for so many seconds; fractions are allowed.
---@param seconds number
function M.sleep(seconds)
  if type(seconds) ~= "number" or seconds < 0 or seconds ~= seconds then
    errors.misuse("kube.sleep() takes a number of seconds, not %s", type(seconds) == "number" and seconds
      or "a " .. type(seconds))
  end
  raw_sleep(seconds)
end

--- kube.background for kube's own tasks, which no script has declared.
---@param name string
---@param fn function
---@return kube.Task
function M.start(name, fn, ...) return core.start({ name = name }, fn, ...) end

--- Runs fn(...) as a task of its own. An error in it is logged and ends only that task; when the script has nothing
--- left to run then, and nobody asked what became of the task, the exit code is 1.
---@param name string
---@param fn function
---@return kube.Task
function M.background(name, fn, ...)
  if type(name) ~= "string" then
    errors.misuse("kube.background() takes a name first, got %s", type(name))
  end
  if type(fn) ~= "function" then
    errors.misuse("kube.background() takes a function second, got %s", type(fn))
  end
  declared.add("tasks", { name = name })
  return M.start(name, fn, ...)
end

--- The same for work that should be finished: at the end of the script it is waited for as long as
--- --shutdown-timeout says, and named in the log when that was not enough.
---@param name string
---@param fn function
---@return kube.Task
function M.worker(name, fn, ...) return core.start({ name = name, drains = true }, fn, ...) end

--- Calls fn() when the script has stopped and its tasks are over. Text that it returns says what was left
--- undone: it is logged, and the exit code is 5.
---@param fn fun(): string?
M.on_end = core.on_end

local check = M.awaiting("waiting for a task", core.check)
local join = M.awaiting("waiting for a task", core.join)

--- Runs fn(...) as a child of the running task and waits until it and what it started have ended. A stop of
--- the running task stops the child, and is noticed when that has ended.
---@param what string the name of the caller in messages
---@param opts table as for core.task.start
---@param fn function
---@return userdata task for core.task.outcome and core.task.raise
function M.call(what, opts, fn, ...)
  check(what)
  opts.child, opts.heeded = true, true
  local task = core.start(opts, fn, ...)
  if not task:is_done() then join(task) end
  return task
end

--- Runs fn(...) as a child task with a scope and a deadline of its own and waits until it and what it
--- started have ended. The deadline can only be earlier than the one of the running task. How long it may
--- run without awaiting is its own, too: one that never ends does not take the caller with it.
---@param opts { name?: string, timeout?: number, trigger?: string, drain?: boolean } a table for this call alone;
--- drain: wait for it at the end of the script as long as the grace period lasts
---@param fn function
---@return boolean ok
---@return any ... its results, or the error and the report: text with tracebacks and the trigger
function M.run(opts, fn, ...)
  opts.drains, opts.queued = opts.drain, true
  return core.outcome(M.call("task.run()", opts, fn, ...))
end

--- Seconds until the deadline of the running task; nil when it has none.
---@return number?
M.remaining = core.remaining

local wait_signal = M.awaiting("waiting", function(signal, timeout, what)
  return signal:wait(timeout, what)
end)

--- Waits until predicate() is true, looking whenever something in the host changed.
---@param predicate fun(): boolean must not await
---@param timeout? number seconds
---@param what? string the name of the waiting function in messages
---@return boolean met false when the time was over first
function M.wait_until(predicate, timeout, what)
  what = what or "waiting"
  park(what)
  local deadline = timeout and core.now() + timeout
  while not predicate() do
    local left = deadline and deadline - core.now()
    if left and left <= 0 then return false end
    wait_signal(core.changed(), left, what)
  end
  return true
end

--- A channel that is closed once.
---@class kube.StopChannel
local Stop = {}
Stop.__index = Stop
Stop.__metatable = false

function Stop.__tostring(self)
  return self._closed and "stop channel (closed)" or "stop channel"
end

-- Those still open when the script ends are closed then.
local open = setmetatable({}, { __mode = "k" })

--- What client-go calls stopCh: close it, and what was started with it stops.
---@return kube.StopChannel
function M.stop_channel()
  local self = setmetatable({ _closed = false, _signal = core.signal(), _on_close = {} }, Stop)
  open[self] = true
  return self
end

--- Whether v is a stop channel.
function M.is_stop_channel(v)
  return type(v) == "table" and rawget(v, "_on_close") ~= nil and rawget(v, "_signal") ~= nil
end

--- Raises unless v is a stop channel or nil. what names the argument in messages.
function M.check_stop(what, v)
  if v == nil or M.is_stop_channel(v) then return end
  errors.misuse("%s must be what kube.stop_channel() returned, not a %s", what, type(v))
end

local xpcall, traceback = xpcall, debug.traceback

-- Level 2: this call of traceback takes the place of the function, and has xpcall's own below it.
local function report_of(err) return traceback(error_text(err), 2) end

--- Closes the channel; closing it again does nothing.
function Stop:close()
  if self._closed then return end
  self._closed = true
  open[self] = nil
  self._signal:fire()
  core.changed():fire()
  local functions = self._on_close
  self._on_close = {}
  for _, fn in ipairs(functions) do
    local ok, report = xpcall(fn, report_of)
    if not ok then log.write("error", "a function for the close of a stop channel failed", { error = report }) end
  end
end

--- Whether it is closed.
---@return boolean
function Stop:is_closed()
  return self._closed
end

--- Calls fn() when the channel closes, or now if it is closed. fn must not await.
---@param fn function
function Stop:on_close(fn)
  if type(fn) ~= "function" then
    errors.misuse("stop:on_close(fn): fn must be a function, not %s", options.shown_type(fn))
  end
  if self._closed then
    fn()
  else
    self._on_close[#self._on_close + 1] = fn
  end
end

--- Suspends the task until the channel closes.
---@param timeout? number seconds
---@return boolean closed false when the time was over first
function Stop:wait(timeout)
  options.check_timeout("stop:wait(timeout): timeout", timeout)
  park("stop:wait()")
  local deadline = timeout and core.now() + timeout
  while not self._closed do
    local left = deadline and deadline - core.now()
    if left and left <= 0 then return false end
    wait_signal(self._signal, left, "stop:wait()")
  end
  return true
end

options.guard(Stop, "stop", { is = M.is_stop_channel })

core.on_stop(function()
  local channels = {}
  for channel in pairs(open) do channels[#channels + 1] = channel end
  for _, channel in ipairs(channels) do channel:close() end
end)

return M
