-- Tasks that belong to tasks: kube.spawn and what is built of it. A task ends when its children have; one
-- that fails, or is stopped, stops them first.
local core = require("kube._core").task
local errors = require "kube._error"
local options = require "kube._options"
local task = require "kube._task"

local M = {}

local function check_function(what, position, fn)
  if type(fn) ~= "function" then
    errors.misuse("%s takes a function %s, got %s", what, position, type(fn))
  end
end

-- The results of a task that has ended; raises its error.
local function results_of(ended)
  core.raise(ended)
  return select(2, core.outcome(ended))
end

--- A function that runs beside others, of kube.spawn or kube.background.
---@class kube.Task
local Task = core.methods

local wait = task.awaiting("task:wait()", core.wait)

--- Waits until the task has ended; returns what its function returned, or raises its error.
---@return any ...
function Task:wait()
  if core.is_mine(self) then
    errors.misuse("task:wait() waits for itself here: the task is the one that calls it, or one that it belongs to, "
      .. "which ends after it")
  end
  while not self:is_done() do
    core.heed(self, 1)
    local ok, err = pcall(wait, self)
    core.heed(self, -1)
    if not ok then error(err, 0) end
  end
  return results_of(self)
end

options.guard(Task, "task", { is = function(value) return getmetatable(value) == "kube.task" end })

--- Runs fn(...) as a child of the running task, beside it. The running task ends when the child has; when it
--- fails first, the child is cancelled. An error that nobody waits for fails the running task when it ends.
---@param fn function
---@return kube.Task
function M.spawn(fn, ...)
  check_function("kube.spawn()", "first", fn)
  task.park("kube.spawn()")
  return core.start({ child = true }, fn, ...)
end

local MANY_OPTIONS = { limit = "number" }

local function check_many(what, fns, opts)
  opts = options.check(what, opts, MANY_OPTIONS)
  if type(fns) ~= "table" then errors.misuse("%s takes a list of functions, got %s", what, type(fns)) end
  for key in pairs(fns) do
    if type(key) ~= "number" then
      errors.misuse("%s takes a list of functions, and '%s' is no index", what, tostring(key))
    end
  end
  for i = 1, #fns do check_function(what, "as number " .. i .. " of the list", fns[i]) end
  local limit = opts.limit or math.huge
  if limit < 1 or limit ~= limit then errors.misuse("%s: limit must be 1 or more, not %s", what, tostring(limit)) end
  return limit
end

local wait_signal = task.awaiting("waiting for tasks", function(signal) return signal:wait() end)

-- Runs the functions as children of a task that this starts, at most so many at once, and calls
-- on_end(i, child) as they end. When that returns true or raises, those that still run are cancelled.
local function run_many(what, fns, opts, on_end)
  local limit = check_many(what, fns, opts)
  return task.call(what, { name = what }, function()
    local inbox, index, seen, started = { signal = core.signal() }, {}, 0, 0
    while seen < #fns do
      while started < #fns and started - seen < limit do
        started = started + 1
        local child = core.start({ child = true, heeded = true, inbox = inbox }, fns[started])
        index[child] = started
      end
      while not inbox[seen + 1] do wait_signal(inbox.signal) end
      seen = seen + 1
      local child = inbox[seen]
      inbox[seen] = false
      if on_end(index[child], child) then
        for other in pairs(index) do other:cancel() end
        return
      end
      index[child] = nil
    end
  end)
end

--- Runs all functions at the same time, or `limit` of them. The first error cancels the others and is raised.
---@param fns function[]
---@param opts? { limit?: integer }
---@return any[] results the first result of each function, at its index
function M.all(fns, opts)
  local values = {}
  results_of(run_many("kube.all()", fns, opts, function(i, child)
    values[i] = (results_of(child))
  end))
  return values
end

--- Runs all functions at the same time, or `limit` of them, and returns the results of the first that
--- succeeds; the others are cancelled. Raises when none does: { code = "none_succeeded", errors = { ... } }.
---@param fns function[]
---@param opts? { limit?: integer }
---@return any ...
function M.any(fns, opts)
  local winner
  local failures = {}
  results_of(run_many("kube.any()", fns, opts, function(i, child)
    local ok, err = core.outcome(child)
    if ok then
      winner = child
      return true
    end
    failures[i] = err
  end))
  if winner then return results_of(winner) end
  error(errors.new("none_succeeded", ("kube.any(): none of %d functions succeeded%s"):format(#fns,
    #fns > 0 and "; the first failed with: " .. tostring(failures[1]) or ""), { errors = failures }), 0)
end

---@class kube.Settled
---@field ok boolean
---@field value any the first result
---@field error any
---@field report? string the error with its tracebacks

--- Runs all functions at the same time, or `limit` of them, and tells what became of each.
---@param fns function[]
---@param opts? { limit?: integer }
---@return kube.Settled[]
function M.all_settled(fns, opts)
  local settled = {}
  results_of(run_many("kube.all_settled()", fns, opts, function(i, child)
    local ok, value, report = core.outcome(child)
    settled[i] = ok and { ok = true, value = value } or { ok = false, error = value, report = report }
  end))
  return settled
end

--- Runs fn(...) and returns its results, or raises { code = "timeout" } when it takes longer. Deadlines are
--- inherited: inside of fn no wait lasts longer than the time that is left.
---@param seconds number
---@param fn function
---@return any ...
function M.timeout(seconds, fn, ...)
  if type(seconds) ~= "number" or seconds <= 0 or seconds ~= seconds then
    errors.misuse("kube.timeout() takes a number of seconds above 0 first, got %s", options.shown(seconds))
  end
  check_function("kube.timeout()", "second", fn)
  return results_of(task.call("kube.timeout()", { timeout = math.min(seconds, 1e9) }, fn, ...))
end

--- Runs fn(...), which a cancellation or a deadline of the running task reaches only 5 seconds later: for a
--- short part that must not be left halfway.
---@param fn function
---@return any ...
function M.shield(fn, ...)
  check_function("kube.shield()", "first", fn)
  return results_of(task.call("kube.shield()", { shielded = true }, fn, ...))
end

--- Calls fn() when the running task ends, also when it fails or is stopped; the last one first. It may await:
--- all of a task's have 5 seconds together.
---@param fn function
function M.defer(fn)
  check_function("kube.defer()", "first", fn)
  task.park("kube.defer()")
  core.at_end(fn)
end

--- Lets other tasks run. Long computations call it now and then.
function M.yield() task.sleep(0) end

return M
