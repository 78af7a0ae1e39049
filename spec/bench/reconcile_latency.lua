-- From the sending of an event to the reconcile of its object, for scripts/bench controllers.
--   BENCH_RATE, BENCH_RATED  events a second and how many of them
local kube = require "kube"
local now = require("kube._core").task.now

local rate = tonumber(os.getenv "BENCH_RATE")
local rated = tonumber(os.getenv "BENCH_RATED")

local times, listed = {}, 0
local controller = kube.controller {
  name = "latency", resource = "v1/pods",
  reconcile = function(_, object)
    local sent = kube.get(object, "metadata", "annotations", "bench/sent")
    if not sent then
      listed = listed + 1
      return
    end
    times[#times + 1] = now() - tonumber(sent) * 1e-9
  end,
}

local function wait_for(condition)
  local stop = now() + 60
  while not condition() do
    if now() > stop then error(("only %d of %d events came"):format(#times, rated)) end
    kube.sleep(0.005)
  end
end

wait_for(function() return controller:has_synced() and controller:stats().ready == 0 and listed > 0 end)
print(("phase rated GET /bench/storm?events=%d&rate=%d"):format(rated, rate))
wait_for(function() return #times >= rated end)
table.sort(times)
print(("result p50_us %.6f"):format(times[math.ceil(#times * 0.50)] * 1e6))
print(("result p99_us %.6f"):format(times[math.ceil(#times * 0.99)] * 1e6))
print "phase end"
