-- Random worlds of random faults against the real binary: whatever the network and the server do,
-- in the end the cache, its indexes and every handler have the server's state, and on the way
-- nothing happened that the contract does not allow.
--
--   MOONWATCH_SEEDS=n       how many seeds (1000)
--   MOONWATCH_SEED_BASE=n   the first of them (1)
--   MOONWATCH_SEED=n        only this one, with a diary of what the server did
--
-- The server is spec/support/fault_server.lua, what happens is in fault_plan.lua and fault_acts.lua,
-- and what the binary runs is random_script.lua.
local cjson = require "cjson"
local uv = require "luv"
local fault_plan = require "spec.support.fault_plan"
local fault_server = require "spec.support.fault_server"
local run = require "spec.support.run"

local ONE = tonumber(os.getenv("MOONWATCH_SEED"))
local COUNT = ONE and 1 or tonumber(os.getenv("MOONWATCH_SEEDS")) or 1000
local BASE = ONE or tonumber(os.getenv("MOONWATCH_SEED_BASE")) or 1
local WORLDS_PER_PROCESS, PROCESSES = 50, 2
local DEADLINE, EXIT_TIMEOUT = 40, 60
local DIARY_SHOWN = 60
local ENOUGH_FOR_ALL = 300  -- seeds, for everything to happen at least once
local DELETION = ("d"):byte()

-- One process and its worlds.

local function write_kubeconfig(path, urls)
  local clusters, contexts = {}, {}
  for name, url in pairs(urls) do
    clusters[#clusters + 1] = ("- name: %s\n  cluster: {server: \"%s\"}\n"):format(name, url)
    contexts[#contexts + 1] = ("- name: %s\n  context: {cluster: %s, user: nobody}\n"):format(name, name)
  end
  local file = assert(io.open(path, "w"))
  file:write("apiVersion: v1\nkind: Config\nusers: [{name: nobody, user: {}}]\nclusters:\n",
    table.concat(clusters), "contexts:\n", table.concat(contexts))
  file:close()
end

local function describe_world(o, context)
  local parts = { "ns=" .. o.ns, "context=" .. context, "late=" .. o.late,
    "streaming=" .. (o.client_streams and 1 or 0) }
  for _, name in ipairs { "page_size", "budget", "fifo_bound", "resync", "short_watch" } do
    if o[name] then parts[#parts + 1] = name .. "=" .. o[name] end
  end
  return table.concat(parts, ",")
end

local function start_batch(seeds)
  local batch = { players = {}, servers = { fault_server.new() }, path = os.tmpname() }
  local urls, described = { shared = batch.servers[1]:url() }, {}
  local from = uv.hrtime()
  local common = { verbose = ONE ~= nil, clock = function() return (uv.hrtime() - from) / 1e9 end }
  for _, seed in ipairs(seeds) do
    local options = fault_plan.options(seed)
    local server, context = batch.servers[1], "shared"
    if options.own_port then
      server, context = fault_server.new(), options.ns
      batch.servers[#batch.servers + 1] = server
      urls[context] = server:url()
    end
    local player = fault_plan.new(options, server, common)
    player:start()
    batch.players[#batch.players + 1] = player
    described[#described + 1] = describe_world(options, context)
  end
  write_kubeconfig(batch.path, urls)
  batch.process = run.start_script("spec/support/random_script.lua", {
    args = { "--log-level", ONE and "debug" or "error" },
    env = { MOONWATCH_FAULT_KUBECONFIG = batch.path, MOONWATCH_FAULT_DEADLINE = tostring(DEADLINE),
      MOONWATCH_FAULT_WORLDS = table.concat(described, ";") },
  })
  return batch
end

local function finish_batch(batch)
  local ok, code = pcall(batch.process.wait_exit, batch.process, EXIT_TIMEOUT)
  for _, player in ipairs(batch.players) do player:stop() end
  for _, server in ipairs(batch.servers) do server:close() end
  for _ = 1, 3 do uv.run("nowait") end  -- luv crashes at exit when a close is still under way
  os.remove(batch.path)
  batch.results = {}
  for line in batch.process.stdout:gmatch("[^\n]+") do
    local result = line:find("^{") and cjson.decode(line)
    if result then batch.results[result.ns] = result end
  end
  batch.exit = ok and (code ~= 0 and ("exit code %d"):format(code)) or not ok and "did not end" or nil
end

-- The truth, in the words of the script.

local function truth(world, wanted)
  local store, groups, tags = {}, {}, {}
  local function put(index, value, name)
    index[value] = index[value] or {}
    table.insert(index[value], name)
  end
  for name, o in pairs(world.objects) do
    if not wanted or wanted(o) then
      store[#store + 1] = ("%s=%d:%s"):format(name, o.rv, o.uid)
      put(groups, o.group, name)
      for _, tag in ipairs(o.tags) do put(tags, tag, name) end
    end
  end
  table.sort(store)
  local function text(index)
    local parts = {}
    for value, names in pairs(index) do
      table.sort(names)
      parts[#parts + 1] = value .. "=" .. table.concat(names, "+")
    end
    table.sort(parts)
    return table.concat(parts, ",")
  end
  return { store = table.concat(store, ","), by_group = text(groups), by_tag = text(tags) }
end

-- What is in one comma-separated list and not in the other.
local function difference(expected, found)
  local in_expected, in_found, parts = {}, {}, {}
  for one in expected:gmatch("[^,]+") do in_expected[one] = true end
  for one in found:gmatch("[^,]+") do in_found[one] = true end
  for one in expected:gmatch("[^,]+") do
    if not in_found[one] then parts[#parts + 1] = "missing " .. one end
  end
  for one in found:gmatch("[^,]+") do
    if not in_expected[one] then parts[#parts + 1] = "too much " .. one end
  end
  return table.concat(parts, ", ")
end

-- Checks.

-- The events that a handler must get of those that the client has certainly received. With resync,
-- handlers do not hear of an object that comes again as it was.
local function due_events(world)
  local due, last = {}, {}
  for _, event in ipairs(world.model.acked) do
    local again = event.kind ~= "DELETED" and last[event.name] == event.rv
    if not (again and world.resync) then due[#due + 1] = event end
    last[event.name] = event.kind ~= "DELETED" and event.rv or nil
  end
  return due
end

-- They reached the handler, in order; and what it was told to be deleted is dead.
local function check_trace(world, trace, wrong)
  local tokens = {}
  for token in trace:gmatch("[^,]+") do tokens[#tokens + 1] = token end
  local at, due = 1, due_events(world)
  for i, event in ipairs(due) do
    local gone, wanted = event.kind == "DELETED", ("%s:%d:"):format(event.name, event.rv)
    while tokens[at] and not ((tokens[at]:byte() == DELETION) == gone
      and tokens[at]:find(wanted, 2, true) == 2) do at = at + 1 end
    if not tokens[at] then
      wrong("event %d of %d never reached the handler in its place: %s %s:%d", i, #due, event.kind,
        event.name, event.rv)
      return
    end
    at = at + 1
  end
  local alive = {}
  for _, o in pairs(world.objects) do alive[o.uid] = true end
  for _, token in ipairs(tokens) do
    local name, uid = token:match("^d([^:]*):[^:]*:(.*)$")
    if uid and alive[uid] then wrong("%s was reported as deleted and is alive", name) end
  end
end

local function check_handler(name, h, expected, world, wrong)
  local wanted = name == "filtered" and expected.filtered or expected.store
  if h.replica ~= wanted then wrong("%s: %s", name, difference(wanted, h.replica)) end
  if h.bad ~= "" then wrong("%s: %s", name, h.bad) end
  if h.errors > 0 then wrong("%s: %d errors", name, h.errors) end
  if h.incomplete then wrong("%s: some cached object was never added", name) end
  local merges = name == "tiny" or world.fifo_bound
  if not merges and h.unknown_deletes > (world.unknown_deletes or 0) then
    wrong("%s: %d deletions of unknown objects, the server sent %d", name, h.unknown_deletes,
      world.unknown_deletes or 0)
  end
  if name ~= "tiny" and h.coalesced > 0 then wrong("%s: coalesced", name) end
end

-- What the script's error handler is told of the rows of the decision table, and what of each.
local told_of = {
  STREAM_WAIT = "stream_list: retrying later", STREAM_CUT = "stream_list: retrying later",
  LIST_FAILED = "list: retrying later", WATCH_SHORT = "watch: reading all again later",
  WATCH_OPEN_WAIT = "watch_open: watching on later", WATCH_OPEN_FAILED = "watch_open: reading all again later",
  WATCH_THROTTLED = "watch: watching on later", WATCH_INTERNAL = "watch: watching on at once",
  WATCH_EXPIRED = "watch: reading all again later", WATCH_FAILED = "watch: reading all again later",
}

-- Of these two it is told when the streaming list was open; answers with another status are not its business.
local told_of_open = { STREAM_EXPIRED = "stream_list: asking for the newest state at once",
  STREAM_FALLBACK = "stream_list: listing page by page instead at once" }
local refusals = { "refused", "bad_request", "forbidden", "failed", "unavailable", "expired", "too_large" }

-- The handler heard of every row that it has to hear of, as often as the row was taken, and of nothing else.
local function check_told(world, result, wrong)
  local expected, told, untold = {}, {}, 0
  for text, n in pairs(result.told) do
    if not text:find(": going on without this object", 1, true) then told[text] = n end
  end
  for row, text in pairs(told_of) do expected[text] = (expected[text] or 0) + (result.decisions[row] or 0) end
  for row, text in pairs(told_of_open) do
    expected[text] = told[text]
    untold = untold + (result.decisions[row] or 0) - (told[text] or 0)
  end
  for _, name in ipairs(refusals) do untold = untold - (world.fault_names["stream_list." .. name] or 0) end
  if untold ~= 0 then wrong("the error handler heard of %d open streaming lists too few", untold) end
  for text, n in pairs(expected) do
    if n ~= (told[text] or 0) then wrong("the error handler heard %d times '%s', not %d", told[text] or 0, text, n) end
    told[text] = nil
  end
  for text in pairs(told) do wrong("the error handler heard '%s'", text) end
end

local function check_world(player, result)
  local world, problems = player.world, {}
  local function wrong(fmt, ...) problems[#problems + 1] = fmt:format(...) end
  for i, violation in ipairs(world.violations) do
    if i <= 5 then wrong("server: %s", violation) end
  end
  if not player.finished or world.objects[fault_plan.DONE] == nil then
    wrong("the plan did not end: %d events, %d faults, waiting for %s.%s", world.events_sent,
      world.faults, world.armed[1] and world.armed[1].hook, world.armed[1] and world.armed[1].name)
  end
  if world.events_sent < fault_plan.MIN_EVENTS or world.faults < fault_plan.MIN_FAULTS then
    wrong("too little happened: %d events, %d faults", world.events_sent, world.faults)
  end
  if not result then
    wrong("no report")
    return problems
  end
  if result.how ~= "done" then
    wrong("not done in time (%s, %d queued)", result.state, result.queued)
  else
    world.model:commit()
  end
  local expected = truth(world)
  expected.filtered = truth(world, function(o) return o.group == "g1" end).store
  for _, what in ipairs { "store", "by_group", "by_tag" } do
    if result[what] ~= expected[what] then
      wrong("%s: %s", what, difference(expected[what], result[what]))
    end
  end
  local rv = ("%d"):format(world.rv)
  if result.rv ~= rv or result.last_rv ~= rv then
    wrong("the store stands at %s and the client at %s instead of %s", result.rv, result.last_rv, rv)
  end
  for _, name in ipairs { "plain", "late", "slow", "tiny", "filtered" } do
    if result.handlers[name] then
      check_handler(name, result.handlers[name], expected, world, wrong)
    else
      wrong("%s: no such handler", name)
    end
  end
  if result.how == "done" then check_told(world, result, wrong) end
  -- Without coalescing, that is: even a queue that is not full merges snapshots that wait.
  if result.coalesced == 0 then check_trace(world, result.handlers.plain.trace, wrong) end
  return problems
end

local function failure_text(player, problems, batch)
  local lines = { ("seed %d:"):format(player.options.seed) }
  for _, problem in ipairs(problems) do lines[#lines + 1] = "  " .. problem end
  if batch.exit then lines[#lines + 1] = "  process: " .. batch.exit end
  local diary = player.world.diary
  lines[#lines + 1] = "  the server's diary:"
  for i = math.max(1, #diary - DIARY_SHOWN), #diary do lines[#lines + 1] = "    " .. diary[i] end
  lines[#lines + 1] = ("replay: MOONWATCH_SEED=%d busted spec/e2e/fault_random_spec.lua")
    :format(player.options.seed)
  return table.concat(lines, "\n")
end

describe("An informer among faults", function()
  local failures, sums = {}, { decisions = {}, faults = {}, events = 0, fault_count = 0, seeds = 0,
    coalesced = 0, fifo_coalesced = 0 }

  local function take(batch)
    finish_batch(batch)
    if batch.exit then
      failures[#failures + 1] = ("%s\n%s"):format(batch.exit, batch.process.stderr:sub(-2000))
    end
    for _, player in ipairs(batch.players) do
      local world, result = player.world, batch.results[player.options.ns]
      local problems = check_world(player, result)
      if #problems > 0 then failures[#failures + 1] = failure_text(player, problems, batch) end
      for name, n in pairs(result and result.decisions or {}) do
        sums.decisions[name] = (sums.decisions[name] or 0) + n
      end
      for name, n in pairs(world.fault_names) do sums.faults[name] = (sums.faults[name] or 0) + n end
      sums.events, sums.fault_count = sums.events + world.events_sent, sums.fault_count + world.faults
      sums.seeds = sums.seeds + 1
      if result and result.handlers.tiny then
        sums.coalesced = sums.coalesced + result.handlers.tiny.coalesced
        sums.fifo_coalesced = sums.fifo_coalesced + result.coalesced
      end
    end
    if ONE then io.stderr:write(batch.process.stderr) end
  end

  teardown(function()
    local parts = {}
    for name, n in pairs(sums.decisions) do parts[#parts + 1] = name .. "=" .. n end
    table.sort(parts)
    print(("\n%d seeds, %d events, %d faults, %d coalesced; %s"):format(sums.seeds, sums.events,
      sums.fault_count, sums.coalesced, table.concat(parts, " ")))
  end)

  it("has the server's state in the end and breaks no rule on the way, for every seed", function()
    local running, seed = {}, BASE
    while seed < BASE + COUNT or #running > 0 do
      while seed < BASE + COUNT and #running < PROCESSES do
        local seeds = {}
        while seed < BASE + COUNT and #seeds < WORLDS_PER_PROCESS do
          seeds[#seeds + 1] = seed
          seed = seed + 1
        end
        running[#running + 1] = start_batch(seeds)
      end
      take(table.remove(running, 1))
    end
    local shown = {}
    for i = 1, math.min(#failures, 5) do shown[i] = failures[i] end
    assert(#failures == 0, ("%d of %d seeds failed\n%s"):format(#failures, COUNT,
      table.concat(shown, "\n")))
  end)

  if COUNT < ENOUGH_FOR_ALL then return end

  it("takes every row of the decision table", function()
    local header = assert(io.open("core/cache/reflector.h")):read("*a")
    local missing, rows = {}, 0
    for name in header:gmatch("X%((%u[%u_]+), \"") do
      rows = rows + 1
      if (sums.decisions[name] or 0) == 0 then missing[#missing + 1] = name end
    end
    assert.are.same({}, missing)
    assert(rows > 0, "the decision table was not found")
  end)

  it("plays every fault that there is, and coalesces", function()
    local acts, missing = require "spec.support.fault_acts", {}
    for _, name in ipairs { "refuse.watch", "refuse.snapshot" } do
      if not sums.faults[name] then missing[#missing + 1] = name end
    end
    for _, hook in ipairs { "event", "stream", "watch", "stream_list", "list", "page" } do
      for name in pairs(acts[hook]) do
        if not sums.faults[hook .. "." .. name] then missing[#missing + 1] = hook .. "." .. name end
      end
    end
    assert.are.same({}, missing)
    assert(sums.coalesced > 0 and sums.fifo_coalesced > 0, "no queue ever coalesced")
  end)
end)
