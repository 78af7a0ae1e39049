-- What scripts/bench controllers measures of reconciles that do nothing: all keys of an initial list, queued
-- before the first of them runs, and keys that are queued by hand. Lines "phase" and "result" are for
-- spec/bench/measure.c.
local kube = require "kube"
local cpu = os.clock  -- a busy machine does not count
local PART = 10000

local function result(name, value) print(("result %s %.6f"):format(name, value)) end

local informer = kube.informer("v1/pods", {})
kube.wait_for_cache_sync(nil, informer)
local total = informer:stats().objects

-- CPU microseconds of fn(key) for each of the keys, with a moment for the loop now and then.
local function per_key(keys, fn)
  local start = cpu()
  for i, key in ipairs(keys) do
    fn(key)
    if i % PART == 0 then kube.sleep(0) end
  end
  return (cpu() - start) / #keys * 1e6
end

-- The floor: reading each object once, and handing it to a function.
local function floor(keys)
  local lister, count = informer:lister(), 0
  local function reconcile(_, object)
    if object then count = count + 1 end
  end
  local us = per_key(keys, function(key) reconcile(nil, lister:get(key)) end)
  if count ~= #keys then error("an object is missing") end
  return us
end

-- A controller that counts its runs; begun and ended: CPU time at its first and at its last one.
local function counting(name, workers, wanted)
  local c = { count = 0 }
  c.controller = kube.controller {
    name = name, resource = "v1/pods", workers = workers,
    reconcile = function()
      c.count = c.count + 1
      if c.count == 1 then c.begun = cpu() end
      if c.count == wanted then c.ended = cpu() end
    end,
  }
  return c
end

local function wait_for(c)
  local last, since = -1, os.time()
  while not c.ended do
    if c.count ~= last then last, since = c.count, os.time() end
    if os.time() - since > 10 then error(("only %d keys were reconciled"):format(last)) end
    kube.sleep(0.01)
  end
end

result("floor_us", floor(informer:lister():list_keys()))
for _, workers in ipairs { 1, 8 } do
  collectgarbage()
  kube.sleep(0)
  local c = counting("workers-" .. workers, workers, total)
  wait_for(c)
  result(("noop_%d_us"):format(workers), (c.ended - c.begun) / total * 1e6)
end

-- Keys without an object: nothing but the queue and the run.
local keys = {}
for i = 1, total do keys[i] = "team-12/checkout-" .. i end
local c = counting("by-hand", 1, 2 * total)
while c.count < total do kube.sleep(0.01) end
collectgarbage()
result("enqueue_us", per_key(keys, function(key) c.controller:enqueue(key) end))
local start = cpu()
local done = c.count - total
wait_for(c)
result("gone_us", (c.ended - start) / math.max(total - done, 1) * 1e6)
print "phase end"
