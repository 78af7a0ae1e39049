-- Trying again what failed because somebody else was faster.
local errors = require "kube._error"
local options = require "kube._options"
local task = require "kube._task"

local M = {}

local KNOWN = { steps = "number", delay = "number", factor = "number", jitter = "number" }

local function check(opts)
  opts = options.check("kube.retry_on_conflict", opts, KNOWN)
  for name, value in pairs(opts) do
    if not (value >= 0 and value < math.huge) or (name == "steps" and (value < 1 or value % 1 ~= 0)) then
      errors.misuse("kube.retry_on_conflict: option '%s' cannot be %s", name, tostring(value))
    end
  end
  return opts
end

local function conflicted(ok, ...)
  return not ok and errors.predicates.is_conflict((...))
end

local function results(ok, ...)
  if ok then return ... end
  error((...), 0)
end

--- Calls fn() until it does not fail with a conflict: read the object anew, change it, update it. What else goes wrong
--- is raised at once, and so is the last conflict.
---@param fn function must read what it changes by itself
---@param opts? { steps?: integer, delay?: number, factor?: number, jitter?: number } default: 5 times in all, 0.01 s
--- between them, times factor (1) each, and up to jitter (0.1) times longer at random
---@return any ... what fn returned
function M.on_conflict(fn, opts)
  if type(fn) ~= "function" then
    errors.misuse("kube.retry_on_conflict() takes a function first, not a %s", type(fn))
  end
  opts = check(opts)
  local delay, factor, jitter = opts.delay or 0.01, opts.factor or 1, opts.jitter or 0.1
  local function attempt(left, ...)
    if left == 0 or not conflicted(...) then return results(...) end
    task.sleep(delay * (1 + jitter * math.random()))
    delay = delay * factor
    return attempt(left - 1, pcall(fn))
  end
  return attempt((opts.steps or 5) - 1, pcall(fn))
end

return M
