-- What scripts/bench measures: initial sync, reads, events to a handler. Lines "phase" and "result"
-- are for spec/bench/measure.c. Settings come from the environment:
--   BENCH_EVENTS  events of the storm; 0 ends after the reads
--   BENCH_RATE, BENCH_RATED  events a second and how many of them for the latency
local kube = require "kube"
local now = require("kube._core").task.now
local cpu = os.clock  -- nothing else runs during the reads, and a busy machine does not count

local events = tonumber(os.getenv "BENCH_EVENTS" or 0)
local rate = tonumber(os.getenv "BENCH_RATE" or 0)
local rated = tonumber(os.getenv "BENCH_RATED" or 0)

local function result(name, value) print(("result %s %.6f"):format(name, value)) end

local factory = kube.shared_informer_factory {}
local informer = factory:core():v1():pods():informer()
local lister = informer:lister()

factory:start()
factory:wait_for_cache_sync()
print "phase synced"
result("objects", informer:stats().objects)
collectgarbage()
kube.sleep(1.5)
print "phase steady"
result("object_bytes", informer:stats().object_bytes)

-- Reads. Each part has the script's time budget to itself, which a busy machine needs.

-- So many keys, each once, in random order. A list of all would be the collector's main work.
local function some_keys(most)
  local all, keys = lister:list_keys(), {}
  for i = 1, math.min(#all, most) do
    local j = math.random(i, #all)
    keys[i], all[j] = all[j], all[i]
  end
  return keys
end

-- What a get of a warm object stands beside: the same key in a plain table of as many, which is gone afterwards.
local function table_floor(keys, value, rounds)
  local plain, seen = {}, 0
  for i = 1, #keys do plain[keys[i]] = value end
  kube.sleep(0)
  local start = cpu()
  for _ = 1, rounds do
    if plain[keys[1]] == value then seen = seen + 1 end
  end
  result("get_table_us", (cpu() - start) / rounds * 1e6)
  if seen ~= rounds then error("a table gave another object") end
end

local function reads()
  local keys = some_keys(20000)
  if #keys == 0 then return end
  kube.sleep(0)

  local warm = lister:get(keys[1])
  local rounds, seen = 100000, 0
  local start = cpu()
  for _ = 1, rounds do
    if lister:get(keys[1]) == warm then seen = seen + 1 end
  end
  result("get_warm_us", (cpu() - start) / rounds * 1e6)
  if seen ~= rounds then error("a get of a warm object gave another object") end

  table_floor(keys, warm, rounds)
  kube.sleep(0)
  collectgarbage()
  start = cpu()
  for i = 1, #keys do
    if not lister:get(keys[i]).spec.nodeName then error("a pod has no node") end
  end
  result("get_cold_us", (cpu() - start) / #keys * 1e6)

  kube.sleep(0)
  collectgarbage()
  start = cpu()
  local all = lister:list()
  result("list_us", (cpu() - start) / #all * 1e6)
end
reads()
kube.sleep(0)
collectgarbage()

-- Events as fast as they come, to a handler that reads one field.

-- Waits until count() is n, or has stood still for long.
local function wait_for(n, count)
  local last, since = -1, now()
  while count() < n do
    if count() ~= last then last, since = count(), now() end
    if now() - since > 5 then error(("only %d of %d events came"):format(last, n)) end
    kube.sleep(0.005)
  end
end

local function storm()
  local count, first = 0, nil
  local handler = informer:add_event_handler {
    replay = false,
    on_update = function(_, new)
      first = first or now()
      if new.spec.nodeName then count = count + 1 end
    end,
  }
  print(("phase storm GET /bench/storm?events=%d&rate=0"):format(events))
  -- What was coalesced on the way is not missing.
  local function arrived()
    return count + handler:stats().coalesced + informer:stats().coalesced
  end
  wait_for(events, arrived)
  result("storm_seconds", now() - first)
  print "phase stormed"
  result("storm_delivered", count)
  result("storm_coalesced", handler:stats().coalesced + informer:stats().coalesced)
  informer:remove_event_handler(handler)
end

-- Events at a rate that leaves time, and how long each took to the handler.

local function latency()
  local times = {}
  local handler = informer:add_event_handler {
    replay = false,
    on_update = function(_, new)
      local at = now()
      times[#times + 1] = at - tonumber(new.metadata.annotations["bench/sent"]) * 1e-9
    end,
  }
  print(("phase rated GET /bench/storm?events=%d&rate=%d"):format(rated, rate))
  wait_for(rated, function() return #times end)
  informer:remove_event_handler(handler)
  table.sort(times)
  result("p50_us", times[math.ceil(#times * 0.50)] * 1e6)
  result("p99_us", times[math.ceil(#times * 0.99)] * 1e6)
end

if events > 0 then
  storm()
  latency()
end
print "phase end"
