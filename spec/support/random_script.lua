-- The controller that spec/e2e/fault_random_spec.lua runs: one informer per world, each with several
-- handlers that believe nothing. A handler builds its own replica from its events alone and notes
-- every event that the contract does not allow. When a world is done (its object "zz-done" has
-- arrived everywhere), what it looks like from here is printed.
--
-- Environment: MOONWATCH_FAULT_KUBECONFIG; MOONWATCH_FAULT_WORLDS, "key=value,...;key=value,...";
-- MOONWATCH_FAULT_DEADLINE, seconds after which worlds that are not done are printed as they are.
--
-- Output: one line of JSON per world.
local kube = require "kube"

local HUGE = 1000000
local DONE = "zz-done"

local function parse_worlds(text)
  local worlds = {}
  for one in text:gmatch("[^;]+") do
    local world = {}
    for key, value in one:gmatch("([%w_]+)=([^,]*)") do world[key] = tonumber(value) or value end
    worlds[#worlds + 1] = world
  end
  return worlds
end

-- Handlers that check.

-- strict: sees every event of its informer (no filter, no coalescing in its queue).
local function new_checker(name, opts)
  local c = { name = name, replica = {}, bad = {}, dead = {}, unknown_deletes = 0, calls = 0,
    live = false, trace = opts.trace and {} or nil }

  local function bad(fmt, ...)
    if #c.bad < 5 then c.bad[#c.bad + 1] = fmt:format(...) end
  end

  local function facts(o)
    local meta = o.metadata
    return { name = meta.name, uid = meta.uid, rv = tonumber(meta.resourceVersion),
      text = meta.resourceVersion, replayed = meta.labels.replayed == "true" }
  end

  local function traced(letter, f)
    if c.trace then c.trace[#c.trace + 1] = letter .. f.name .. ":" .. f.text .. ":" .. f.uid end
  end

  local function enter(f)
    if c.inside then bad("called for %s:%s while %s was running", f.name, f.text, c.inside) end
    c.inside = f.name .. ":" .. f.text
  end

  local function leave()
    c.calls = c.calls + 1
    if opts.sleep and c.calls % opts.every == 0 then kube.sleep(opts.sleep) end
    c.inside = nil
  end

  -- The store has what a handler is told, or something newer.
  local function check_store(f)
    local stored = opts.store and opts.store:get(opts.ns .. "/" .. f.name)
    if stored and not f.replayed and tonumber(stored.metadata.resourceVersion) < f.rv
      and stored.metadata.labels.replayed ~= "true" then
      bad("told of %s:%s before the store had it", f.name, f.text)
    end
  end

  function c.on_add(o, initial)
    local f = facts(o)
    enter(f)
    traced("a", f)
    check_store(f)
    if c.replica[f.name] then bad("add of %s:%s which is there", f.name, f.text) end
    if initial and c.live then bad("initial add of %s:%s after the initial list", f.name, f.text) end
    if not initial then c.live = true end
    if opts.strict and c.dead[f.uid] and not f.replayed then
      bad("add of %s:%s which was deleted", f.name, f.text)
    end
    if c.awaited then
      if not initial or not c.awaited[f.name] then
        bad("add of %s:%s instead of the cached objects", f.name, f.text)
      end
      c.awaited[f.name] = nil
      if not next(c.awaited) then c.awaited = nil end
    end
    c.replica[f.name] = f
    leave()
  end

  function c.on_update(old, new)
    local before, f = facts(old), facts(new)
    enter(f)
    traced("u", f)
    check_store(f)
    local known = c.replica[f.name]
    if c.awaited then bad("update of %s:%s before the cached objects", f.name, f.text) end
    if not known then
      bad("update of %s:%s which is not there", f.name, f.text)
    elseif known.text ~= before.text or known.uid ~= before.uid then
      bad("update of %s from %s where %s was", f.name, before.text, known.text)
    end
    if before.name ~= f.name then bad("update from %s to %s", before.name, f.name) end
    if not (before.replayed or f.replayed) then
      if f.rv < before.rv then bad("update of %s back from %s to %s", f.name, before.text, f.text) end
      if f.rv == before.rv and f.uid ~= before.uid then bad("two objects %s:%s", f.name, f.text) end
    end
    c.replica[f.name] = f
    leave()
  end

  -- Of a key that nobody knew: the watch may say so (a deletion is always passed on).
  local function unknown_delete(f, stale)
    c.unknown_deletes = c.unknown_deletes + 1
    if stale and opts.strict then bad("stale delete of %s which is not there", f.name) end
  end

  local function known_delete(f, known, stale)
    if f.replayed or known.replayed then return end
    if f.uid ~= known.uid then bad("delete of another %s:%s", f.name, f.text) end
    if stale and f.text ~= known.text then
      bad("stale delete of %s:%s, known is %s", f.name, f.text, known.text)
    elseif not stale and (f.rv < known.rv or (opts.strict and f.rv == known.rv)) then
      bad("delete of %s:%s, known is %s", f.name, f.text, known.text)
    end
  end

  function c.on_delete(o, stale)
    local f = facts(o)
    enter(f)
    traced("d", f)
    local known = c.replica[f.name]
    if c.awaited then bad("delete of %s:%s before the cached objects", f.name, f.text) end
    if not known then
      unknown_delete(f, stale)
    elseif not opts.merges then
      known_delete(f, known, stale)
    end
    c.replica[f.name] = nil
    c.dead[f.uid] = true
    leave()
  end

  return c
end

local function add_checker(world, name, opts, more)
  local c = new_checker(name, opts)
  local handler = { on_add = c.on_add, on_update = c.on_update, on_delete = c.on_delete,
    name = world.ns .. " " .. name, queue_bound = opts.bound or HUGE }
  for key, value in pairs(more or {}) do handler[key] = value end
  c.registration = world.informer:add_event_handler(handler)
  world.checkers[#world.checkers + 1] = c
  return c
end

-- Must get every cached object first, each once.
local function add_late_checker(world)
  local cached, any = {}, false
  for object in world.informer:get_indexer():each() do
    cached[object.metadata.name], any = true, true
  end
  local c = add_checker(world, "late", { strict = true })
  c.awaited = any and cached or nil
  world.complete = true
end

-- Worlds.

local function setup(world, clients)
  clients[world.context] = clients[world.context] or kube.new_client {
    kubeconfig = os.getenv("MOONWATCH_FAULT_KUBECONFIG"), context = world.context }
  local factory = kube.shared_informer_factory {
    client = clients[world.context], namespace = world.ns, streaming = world.streaming == 1,
    backoff = { duration = 0.005, cap = 0.02, factor = 2, jitter = 1 }, short_watch = world.short_watch,
    page_size = world.page_size, internal_error_budget = world.budget,
    queue_bound = world.fifo_bound or HUGE, resync = world.resync, min_resync = 0.1,
  }
  world.factory, world.checkers = factory, {}
  world.informer = factory:for_resource("fault.example.com/v1/widgets"):informer()
  world.told = {}
  world.informer:set_watch_error_handler(function(err)
    -- How long the delay is does not matter here.
    local told = err.place .. ": " .. err.again:gsub(" in %d.*", " later")
    world.told[told] = (world.told[told] or 0) + 1
  end)
  world.informer:add_indexers {
    by_group = { path = "spec.group" },
    by_tag = function(object) return object.spec.tags end,
  }
  -- A queue of deltas that coalesces makes every handler see merged events.
  local strict = world.fifo_bound == nil
  add_checker(world, "plain", { strict = strict, trace = true, ns = world.ns,
    store = world.informer:get_indexer() })
  add_checker(world, "slow", { strict = strict, sleep = 0.001, every = 40 })
  add_checker(world, "tiny", { merges = true, bound = 16, sleep = 0.004, every = 3 })
  add_checker(world, "filtered", {}, { predicate = { path = "spec.group", equals = "g1" } })
end

-- Behind the last object a bookmark may come; the object says so.
local function has_last_version(world)
  local indexer = world.informer:get_indexer()
  local last = indexer:get(world.ns .. "/" .. DONE)
  return last.spec.n == 0 or indexer:resource_version() ~= last.metadata.resourceVersion
end

local function is_done(world)
  if not world.complete or world.informer:stats().queued > 0 then return false end
  local delivered = 0
  for _, c in ipairs(world.checkers) do
    local s = c.registration:stats()
    if not c.replica[DONE] or s.pending > 0 or s.lag > 0 then return false end
    delivered = delivered + s.delivered
  end
  local still = world.delivered == delivered
  world.delivered = delivered
  return still and has_last_version(world)
end

local function dump_replica(replica)
  local parts = {}
  for name, f in pairs(replica) do parts[#parts + 1] = name .. "=" .. f.text .. ":" .. f.uid end
  table.sort(parts)
  return table.concat(parts, ",")
end

local function dump_store(indexer)
  local parts = {}
  for o in indexer:each() do
    local meta = o.metadata
    parts[#parts + 1] = meta.name .. "=" .. meta.resourceVersion .. ":" .. meta.uid
  end
  table.sort(parts)
  return table.concat(parts, ",")
end

local function dump_index(indexer, index)
  local parts = {}
  for _, value in ipairs(indexer:list_index_func_values(index)) do
    local keys = indexer:index_keys(index, value)
    for i, key in ipairs(keys) do keys[i] = key:match("[^/]*$") end
    parts[#parts + 1] = value .. "=" .. table.concat(keys, "+")
  end
  table.sort(parts)
  return table.concat(parts, ",")
end

local function describe_handler(c)
  local s = c.registration:stats()
  return { replica = dump_replica(c.replica), bad = table.concat(c.bad, "; "),
    unknown_deletes = c.unknown_deletes, incomplete = c.awaited ~= nil, errors = s.errors,
    delivered = s.delivered, coalesced = s.coalesced, pending = s.pending,
    trace = c.trace and table.concat(c.trace, ",") }
end

local function report(world, how)
  local indexer, stats = world.informer:get_indexer(), world.informer:stats()
  local handlers = {}
  for _, c in ipairs(world.checkers) do handlers[c.name] = describe_handler(c) end
  print(kube.json.encode { ns = world.ns, how = how, store = dump_store(indexer),
    by_group = dump_index(indexer, "by_group"), by_tag = dump_index(indexer, "by_tag"),
    rv = indexer:resource_version(), last_rv = stats.last_resource_version,
    decisions = stats.decisions, state = stats.state, queued = stats.queued,
    coalesced = stats.coalesced, handlers = handlers, told = world.told })
end

local worlds = parse_worlds(os.getenv("MOONWATCH_FAULT_WORLDS"))
local stop = kube.stop_channel()
local clients = {}
for _, world in ipairs(worlds) do
  setup(world, clients)
  world.factory:start(stop)
  kube.background("late handler of " .. world.ns, function()
    kube.sleep(world.late)
    add_late_checker(world)
  end)
end

local left, deadline = #worlds, os.time() + tonumber(os.getenv("MOONWATCH_FAULT_DEADLINE"))
while left > 0 do
  kube.sleep(0.02)
  local late = os.time() > deadline
  for _, world in ipairs(worlds) do
    if not world.reported and (late or is_done(world)) then
      world.reported = true
      left = left - 1
      report(world, late and "deadline" or "done")
    end
  end
end
stop:close()
