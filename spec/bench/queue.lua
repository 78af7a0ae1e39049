-- What scripts/bench controllers measures of the work queue: adding, delaying, handing out, and what a
-- queued key costs in memory. Lines "phase" and "result" are for spec/bench/measure.c.
--   BENCH_KEYS  how many keys
local kube = require "kube"
local cpu = os.clock  -- a busy machine does not count
local count = tonumber(os.getenv "BENCH_KEYS" or 10000)

local function result(name, value) print(("result %s %.6f"):format(name, value)) end

-- Long enough for a number that can be repeated, with a moment for the loop after each part.
local ROUNDS = math.max(1, math.floor(300000 / count))
local PART = 10000

-- Keys are made when they are needed: a list of a million would be the collector's main work.
local function key_of(i) return "team-12/checkout-" .. i end

-- CPU microseconds of fn(key) for each key, with making the key.
local function per_key(fn)
  local start = cpu()
  for i = 1, count do
    fn(key_of(i))
    if i % PART == 0 then kube.sleep(0) end
  end
  return (cpu() - start) / count * 1e6
end

local sums = {}
local function note(name, value) sums[name] = (sums[name] or 0) + value end

kube.sleep(0)
-- Lua's heap has grown to what it takes by then, and only the queue is between the marks.
for _ = 1, ROUNDS do per_key(function() end) end
collectgarbage()
collectgarbage()
print "phase empty"

for round = 1, ROUNDS do
  note("floor_us", per_key(function() end))
  local queue = kube.workqueue()
  note("add_us", per_key(function(key) queue:add(key) end))
  if round == 1 then
    collectgarbage()
    collectgarbage()
    print "phase full"
    result("bytes", queue:stats().bytes / count)
  end
  note("again_us", per_key(function(key) queue:add(key) end))
  note("cycle_us", per_key(function() queue:done((queue:get())) end))
  note("delay_us", per_key(function(key) queue:add_after(key, 3600 + #key) end))
  note("advance_us", per_key(function(key) queue:add(key) end))
  queue:shut_down()
end
for name, sum in pairs(sums) do result(name, sum / ROUNDS) end
print "phase end"
