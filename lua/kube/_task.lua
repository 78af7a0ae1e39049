-- Tasks, awaiting, and stop channels, on top of kube._core.task.
--
-- An await function of the core returns `true, results...` or `false, err`; awaiting() makes a
-- function of it that returns the results or raises err.
local core = require("kube._core").task
local log = require("kube._core").log

local M = {}

local loading = true

-- The first await of the entry file ends the load phase: nothing may be started before commit.
local function park(what)
  if not loading then return end
  if core.is_loading() then M.results(core.park(what)) end
  loading = false
end

--- Turns `true, ...` into results and `false, err` into a raised error.
function M.results(ok, ...)
  if ok then return ... end
  local err = ...
  error(err, type(err) == "string" and 3 or 0)
end

--- Makes an await function of the core callable by scripts.
---@param what string its name in messages, such as "kube.sleep()"
---@param f function
---@return function
function M.awaiting(what, f)
  local results = M.results
  return function(...)
    park(what)
    return results(f(...))
  end
end

local raw_sleep = M.awaiting("kube.sleep()", core.sleep)

--- Suspends the task for so many seconds; fractions are allowed.
---@param seconds number
function M.sleep(seconds)
  if type(seconds) ~= "number" or seconds < 0 or seconds ~= seconds then
    error(("kube.sleep() takes a number of seconds, got %s"):format(tostring(seconds)), 2)
  end
  raw_sleep(seconds)
end

--- Runs fn(...) as a task of its own. An error in it is logged and ends only that task.
---@param name string
---@param fn function
---@return userdata task with :cancel(), :is_done(), :name()
function M.background(name, fn, ...)
  if type(name) ~= "string" then
    error(("kube.background() takes a name first, got %s"):format(type(name)), 2)
  end
  if type(fn) ~= "function" then
    error(("kube.background() takes a function second, got %s"):format(type(fn)), 2)
  end
  return core.spawn(name, fn, ...)
end

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
    local ok, err = pcall(fn)
    if not ok then
      log.write("error", "a function for the close of a stop channel failed",
        { error = tostring(err) })
    end
  end
end

---@return boolean
function Stop:is_closed()
  return self._closed
end

--- Calls fn() when the channel closes, or now if it is closed. fn must not await.
---@param fn function
function Stop:on_close(fn)
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
  park("stop:wait()")
  local deadline = timeout and core.now() + timeout
  while not self._closed do
    local left = deadline and deadline - core.now()
    if left and left <= 0 then return false end
    wait_signal(self._signal, left, "stop:wait()")
  end
  return true
end

core.on_stop(function()
  local channels = {}
  for channel in pairs(open) do channels[#channels + 1] = channel end
  for _, channel in ipairs(channels) do channel:close() end
end)

return M
