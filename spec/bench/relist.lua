-- What a relist takes that finds objects changed, for scripts/bench: the memory before, at its highest and afterwards.
-- A handler reads one field of each. Lines "phase" are for spec/bench/measure.c. BENCH_PART: one object of so many is
-- changed.
local kube = require "kube"

local told = 0

local factory = kube.shared_informer_factory {}
local informer = factory:core():v1():pods():informer()
informer:add_event_handler {
  on_update = function(_, new)
    if new.spec.nodeName then told = told + 1 end
  end,
}
factory:start()
factory:wait_for_cache_sync()
local objects = informer:stats().objects

-- What is given back has time to be.
local function settle()
  collectgarbage()
  kube.sleep(1.5)
end

settle()
print(("phase steady GET /bench/relist?part=%s"):format(os.getenv "BENCH_PART"))
-- The handler hears of all, changed or not, as nobody has asked for a resync.
while told < objects do kube.sleep(0.01) end
print "phase relisted GET /bench/storm?events=0"
settle()
print "phase end"
