-- From exec to a synced informer, for scripts/bench.
local kube = require "kube"

local factory = kube.shared_informer_factory {}
factory:core():v1():pods():informer()
factory:start()
factory:wait_for_cache_sync()
print "phase ready"
collectgarbage()
kube.sleep(tonumber(os.getenv "BENCH_SETTLE" or 0))
print "phase end"
