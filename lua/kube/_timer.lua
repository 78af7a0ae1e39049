-- kube.every: functions that run again and again. A run never overlaps with the one before: what takes longer
-- than its interval skips. Timers end with the script; a run in flight may finish.
local core = require("kube._core")
local declared = require "kube._declared"
local errors = require "kube._error"
local options = require "kube._options"
local task = require "kube._task"

local codec = core.codec
local M = {}

local KNOWN = {
  name = "string", interval = "number", jitter = "number", run = "function", immediate = "boolean",
  leader_only = "boolean", timeout = "number",
}

local JITTER = 0.1

---@class kube.TimerContext
---@field name string of the timer
---@field count integer which run this is, from 1
---@field skipped integer how many runs were left out so far, because another one took too long

--- What kube.every returns.
---@class kube.Timer
local Timer = {}
Timer.__index = Timer

function Timer.__tostring(self) return "timer " .. self._name end

local timers = {} -- by name, those that were not stopped

local function check_seconds(name, field, value)
  if value == nil or (value > 0 and value < math.huge) then return end
  errors.misuse("every: timer '%s': %s must be a number of seconds above 0, not %s", name, field, tostring(value))
end

local function check(opts)
  opts = options.check("every", opts, KNOWN)
  local name = opts.name
  if not name or name == "" then
    errors.misuse("every needs name = \"...\": its log lines are known by it")
  elseif not opts.interval or not opts.run then
    errors.misuse("every: timer '%s' needs interval = seconds and run = function(ctx) ... end", name)
  elseif opts.jitter and not (opts.jitter >= 0 and opts.jitter <= 10) then -- luacheck: ignore
    errors.misuse("every: timer '%s': jitter is a part of the interval, 0 to 10, not %s", name, tostring(opts.jitter))
  elseif timers[name] then
    errors.misuse("every: there is a timer '%s' already; give this one another name", name)
  end
  check_seconds(name, "interval", opts.interval)
  check_seconds(name, "timeout", opts.timeout)
  return opts
end

local wait_signal = task.awaiting("a timer", function(signal, timeout) return signal:wait(timeout) end)

-- Waits until `due`, or the timer is stopped.
local function wait_until(self, due)
  while not self._stopped do
    local left = due - core.task.now()
    if left <= 0 then return end
    wait_signal(self._signal, left)
  end
end

-- When the next run is due, of which the last one was at `due`.
local function next_due(self, due)
  local opts = self._opts
  local now = core.task.now()
  repeat
    due = due + opts.interval * (1 + (opts.jitter or JITTER) * core.task.random())
    if due < now then self._skipped = self._skipped + 1 end
  until due >= now
  return due
end

-- Of failures in a row the 1st, 2nd, 4th, 8th... is told.
local function tell_failure(self, report)
  self._failures = self._failures + 1
  local n = self._failures
  while n % 2 == 0 do n = n / 2 end
  if n ~= 1 then return end
  core.log.write("error", "timer failed", { timer = self._name, error = report, failures = self._failures })
end

local function run_once(self)
  self._count = self._count + 1
  local ctx = { name = self._name, count = self._count, skipped = self._skipped }
  local ok, err, report = task.run({
    name = "timer " .. self._name, trigger = ("timer %s, run %d"):format(self._name, self._count),
    timeout = self._opts.timeout, drain = true,
  }, self._opts.run, ctx)
  if ok then
    self._failures = 0
  elseif err ~= core.task.cancelled then
    tell_failure(self, report)
  end
end

-- Where the host keeps for the next revision when it is due.
local function phase_name(self) return "\0timer " .. self._name end

-- When the same timer of the revision before would have run next.
local function due_before(self)
  local text = core.task.replaces() and core.program.get(phase_name(self))
  local before = text and codec.decode(text)
  if before and before.interval == self._opts.interval then return before.due end
end

local function loop(self)
  -- Asked each time: a leader that cannot renew its lease is none for a while.
  local leading = self._opts.leader_only and require("kube._leader").wait or function() end
  leading()
  local due = due_before(self)
  if not due then
    due = core.task.now()
    if not self._opts.immediate then due = next_due(self, due) end
  end
  while true do
    core.program.set(phase_name(self), codec.encode { interval = self._opts.interval, due = due })
    wait_until(self, due)
    leading()
    if self._stopped then return end
    run_once(self)
    due = next_due(self, due)
  end
end

--- Lets no further run begin; one that has begun goes on.
function Timer:stop()
  self._stopped = true
  self._signal:fire()
  if timers[self._name] == self then timers[self._name] = nil end
end

--- Its name.
---@return string
function Timer:name() return self._name end

options.guard(Timer, "timer")

---@class kube.TimerOptions
---@field name string
---@field interval number seconds from the beginning of a run to that of the next
---@field run fun(ctx: kube.TimerContext) may await; an error is logged, and the next run comes all the same
---@field jitter? number each period is longer by a random part of the interval, up to this; default: 0.1
---@field immediate? boolean the first run is at once and not after the first period
---@field leader_only? boolean runs only while this process leads (kube.leader_election)
---@field timeout? number seconds for one run

--- Runs a function again and again, as long as the script lasts.
---@param opts kube.TimerOptions
---@return kube.Timer
function M.every(opts)
  opts = check(opts)
  local self = setmetatable({
    _name = opts.name, _opts = opts, _signal = core.task.signal(), _stopped = false, _count = 0, _skipped = 0,
    _failures = 0,
  }, Timer)
  timers[opts.name] = self
  declared.add("timers", { name = opts.name, interval = opts.interval, leader_only = opts.leader_only or false })
  task.start("timer " .. opts.name, loop, self)
  return self
end

core.task.on_stop(function()
  local all = {}
  for _, timer in pairs(timers) do all[#all + 1] = timer end
  for _, timer in ipairs(all) do timer:stop() end
end)

return M
