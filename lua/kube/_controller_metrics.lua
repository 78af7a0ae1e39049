-- The metrics of controllers, by the names that controller-runtime gave them.
local core = require("kube._core").metric
local program = require("kube._core").program
local window = require "kube._controller_window"

local M = {}

local PREFIX = "controller_runtime_"
local SERIES_MAX = 10000
local BUCKETS = { 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1,
  1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60 }

-- What a run counts as in reconcile_total.
local RESULTS = { success = "success", requeue_after = "requeue_after", error = "error", timeout = "error",
  terminal = "error", gave_up = "error" }

local families

local function family(kind, name, help, labels, buckets)
  return assert(core.new(kind, PREFIX .. name, help, labels or { "controller" }, buckets or {}, SERIES_MAX))
end

local function declare()
  families = {
    total = family("counter", "reconcile_total", "Runs by their result.", { "controller", "result" }),
    errors = family("counter", "reconcile_errors_total", "Runs that failed."),
    terminal = family("counter", "terminal_reconcile_errors_total", "Runs that failed and are not tried again."),
    panics = family("counter", "reconcile_panics_total", "Runs that the watchdog stopped."),
    timeouts = family("counter", "reconcile_timeouts_total", "Runs that reached their timeout."),
    time = family("histogram", "reconcile_time_seconds", "How long runs took.", nil, BUCKETS),
    workers = family("gauge", "max_concurrent_reconciles", "How many keys are worked on at once, at most."),
    active = family("gauge", "active_workers", "How many are worked on now."),
  }
end

local Metrics = {}
Metrics.__index = Metrics

--- The series of a controller, all at 0.
function M.new(controller, workers)
  if not families then declare() end
  local self = setmetatable({ total = {}, window = window.new(), runs = 0, failed = 0 }, Metrics)
  for name, of in pairs(families) do
    if name ~= "total" then self[name] = of:series { controller } end
  end
  for _, result in ipairs { "success", "error", "requeue_after" } do
    self.total[result] = families.total:series { controller, result }
  end
  self.workers:set(workers)
  return self
end

function Metrics:began() self.active:add(1) end

function Metrics:ended(run)
  self.active:add(-1)
  local result = RESULTS[run.result]
  if not result then return end
  self.total[result]:add(1)
  self.time:observe(run.duration)
  self.window:add(run.time + run.duration, run.duration, result == "error")
  self.runs = self.runs + 1
  if result == "error" then
    self.failed = self.failed + 1
    self.errors:add(1)
  end
  if run.result == "timeout" then self.timeouts:add(1) end
  if run.result == "terminal" or run.result == "gave_up" then self.terminal:add(1) end
  if run.stopped then self.panics:add(1) end
  program.ran(result == "error")
end

return M
