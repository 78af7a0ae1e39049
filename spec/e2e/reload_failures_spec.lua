-- Revisions that fail at every step on their way: what runs goes on as if nothing had happened, and the report says
-- where, what and what to do.
local cjson = require "cjson"
local cleanup = require "spec.support.cleanup"
local reload_rig = require "spec.support.reload_rig"
local scrape = require "spec.support.scrape"

-- The script that runs all the time.
local GOOD = [[
local kube = require "kube"
local word, _ = require "lib.word", require "lib.third"
kube.controller {
  name = "echo", resource = "v1/configmaps", namespaces = { "default" },
  reconcile = function(ctx, object)
    if ctx.name ~= "kube-root-ca.crt" then print(word .. " " .. ctx.name .. " " .. object.data.v) end
  end,
}
]]

local FILES = { ["main.lua"] = GOOD, ["lib/word.lua"] = 'return "good"\n', ["lib/third.lua"] = "return {}\n" }

describe("a revision that fails", function()
  cleanup.install()
  local rig, count

  local function start(options)
    rig, count = reload_rig.start(FILES, options), 0
    rig:create("a", { v = "0" })
    rig:line("^good a 0$")
  end

  -- What runs still handles what changes, the server was asked for nothing, and the process ends in order.
  local function goes_on()
    count = count + 1
    rig:update("a", { v = tostring(count) })
    rig:line(("^good a %d$"):format(count), 60)
    assert.are.same({ 1, nil }, { rig:reads()["watch configmaps"], rig:reads()["list configmaps"] })
  end

  -- Saves a file, waits for the report, which must match all patterns, and looks whether all goes on.
  local function fails(name, text, patterns)
    rig:save(name, text)
    local report = rig:stderr("reload failed; what runs goes on[^\n]*", 60)
    for _, pattern in ipairs(patterns) do assert.is_truthy(report:find(pattern), pattern .. " is not in " .. report) end
    goes_on()
  end

  it("to compile changes nothing", function()
    start()
    fails("lib/third.lua", "return {\n  a = 1,\n  b = = 2,\n}\n", { "lib/third%.lua:3: unexpected symbol near '='" })
    assert.are.equal(0, rig:stop())
  end)

  it("to load or to declare changes nothing", function()
    start { args = { "--memory-limit", "16Mi" } }
    fails("main.lua", GOOD .. "local settings\nprint(settings.size)\n",
      { "main%.lua:10: .-'settings' %(a nil value%)" })
    fails("main.lua", GOOD:gsub("namespaces =", "namespacse ="), { "main%.lua:3: ", "did you mean 'namespaces'" })
    fails("main.lua", GOOD .. "local all = {}\nfor i = 1, 1e7 do\n  all[i] = { i }\nend\n",
      { "main%.lua:1[12]: ", "memory limit" })
    fails("main.lua", GOOD .. "local function count()\n  while true do end\nend\ncount()\n",
      { "main%.lua:10: loading took longer than 0%.5 s", "do that in a task, or behind the first await" })
    fails("main.lua", GOOD .. "kube.on_load(function()\n  error('not like this')\nend)\n",
      { "main%.lua:10: not like this" })
    assert.are.equal(0, rig:stop())
  end)

  local function reads_of(resource)
    return ('kube.informer("%s"):add_event_handler { on_add = print }\n'):format(resource)
  end

  it("to fill its caches is given up by itself, and changes nothing", function()
    start { env = { MOONWATCH_WARM_UP = "1" } }
    fails("main.lua", GOOD .. reads_of "example.com/v1/nothings",
      { "main%.lua:9: no cache of example%.com/v1/nothings within 1 seconds %(", "see that the server has it",
        "then run moonwatch reload\\n +9 | kube%.informer" })
    rig.server:ask("POST", "/sandbox/v1/faults",
      cjson.encode { resource = "secrets", count = 0, status = 403, message = "secrets are not for you" })
    fails("main.lua", GOOD .. reads_of "v1/secrets",
      { "main%.lua:9: no cache of v1/secrets within 1 seconds %(", "secrets are not for you",
        "lets you list and watch it" })
    -- Each is named where it is wanted: by a controller, by a factory in a file of its own.
    rig:save("lib/third.lua", 'local i = kube.shared_informer_factory():for_resource("v1/secrets"):informer()\n' ..
      "return i\n")
    fails("main.lua", GOOD:gsub('name = "echo",', '%0 reads = { "example.com/v1/nothings" },'),
      { "main%.lua:3: no cache of example%.com/v1/nothings", "lib/third%.lua:1: no cache of v1/secrets" })
    rig:save("lib/third.lua", FILES["lib/third.lua"])
    rig.server:ask("DELETE", "/sandbox/v1/faults")
    rig:save("main.lua", GOOD .. reads_of "v1/secrets" .. "-- now it may\n")
    rig:stderr("reloaded", 60)
    goes_on()
    assert.are.equal(0, rig:stop())
  end)

  -- An index whose function takes that long for each object, in the default informer.
  local function index(seconds)
    return ([[kube.informer("v1/configmaps"):add_indexers {
  slow = function(object)
    local began = os.clock()
    repeat until os.clock() - began >= %g
    return { object.metadata.namespace }
  end,
}
]]):format(seconds)
  end

  it("to build its indexes in time is given up by itself, and changes nothing", function()
    start { env = { MOONWATCH_WARM_UP = "1" }, before = function(server)
      local path = "/api/v1/namespaces/kube-system/configmaps"
      for i = 1, 3000 do
        server:ask("POST", path, ('{ "metadata": { "name": "many-%d" }, "data": { "v": "0" } }'):format(i))
      end
    end }
    local filled = GOOD .. reads_of("v1/configmaps"):gsub("print", "function() end")
    rig:save("main.lua", filled)
    rig:stderr("reloaded", 60)
    rig:save("main.lua", filled .. index(0.001))
    local report = rig:stderr("reload failed; what runs goes on[^\n]*", 60)
    assert.is_truthy(report:find("main%.lua:9: the indexes of v1/configmaps were not built within 1 seconds; see " ..
      "what its index functions do, or run moonwatch reload"), report)
    rig:save("main.lua", filled .. index(0))
    rig:stderr("reloaded", 60)
    rig:update("a", { v = "1" })
    rig:line("^good a 1$", 60)
    assert.are.equal(0, rig:stop())
  end)

  it("is not one that became ready in the very turn in which its time was over", function()
    start { env = { MOONWATCH_WARM_UP = "1" } }
    rig:save("main.lua", GOOD .. index(0.3))  -- of five objects
    rig:stderr("reloaded", 60)
    assert.is_nil(rig.process.stderr:find("reload failed", 1, true))
    assert.are.equal(0, rig:stop())
  end)

  -- The report of a revision that is taken back soon, which must match all patterns.
  local function returns(text, patterns)
    rig:save("main.lua", text)
    local report = rig:stderr("going back to the one before[^\n]*", 60)
    for _, pattern in ipairs(patterns) do assert.is_truthy(report:find(pattern), pattern .. " is not in " .. report) end
    rig:stderr("reloaded", 60)
    goes_on()
  end

  it("in the turn in which it takes over changes nothing", function()
    start()
    fails("main.lua", GOOD .. "kube.wait_for_cache_sync()\nerror('no luck')\n", { "main%.lua:10: no luck" })
    assert.are.equal(0, rig:stop())
  end)

  -- It fails behind its first await, in the last line.
  local function taken_back(text)
    local _, lines = text:gsub("\n", "")
    returns(text, { ("main%%.lua:%d: no luck"):format(lines) })
  end

  it("again and again soon after it began is taken back", function()
    start()
    taken_back(GOOD .. "kube.sleep(0)\nerror('no luck')\n")
    taken_back(GOOD .. "kube.sleep(0)\n\nerror('no luck')\n")
    assert.are.equal(0, rig:stop())
  end)

  it("and cannot even hand over is taken back, too", function()
    start()
    rig:save("main.lua", GOOD .. "kube.on_load(function(data) print('loaded', data) end)\n")
    rig:line("^loaded\tnil$", 60)
    taken_back(GOOD .. "kube.on_unload(function() error('nor here') end)\nkube.sleep(0)\nerror('no luck')\n")
    rig:line("^loaded\tnil$", 60)
    assert.is_truthy(rig.process.stderr:find("hands nothing over[^\n]*main%.lua:9: nor here"))
    assert.are.equal(0, rig:stop())
  end)

  it("in most reconciles is taken back, with what failed last, of which controller, and where", function()
    start()
    for i = 1, 12 do rig:create("b" .. i) end
    -- One fails when the other has: both are in the report then.
    local wrong = GOOD:gsub("print%(word[^\n]*end\n", function()
      return "\n      if _.asked then error('all wrong') end return { requeue_after = 0.05 } end\n"
    end) .. [[
kube.controller { name = "asks", resource = "v1/configmaps", namespaces = { "default" },
  reconcile = function(ctx)
    _.asked = ctx.attempt > 1
    local secret = ctx.client:get("v1/secrets", "default/nobody")
    return secret
  end }
kube.controller { name = "well", resource = "v1/namespaces", reconcile = function() end }
]]
    returns(wrong, {
      '"error":"%d+ of %d+ reconciles failed, and in the revision before 0 of 100; mend that, or run moonwatch reload',
      "main%.lua:7: all wrong %(the last of controller echo, for default/%l%d*; %d+ of its %d+ reconciles failed%)" ..
        "\\n +7 | +if _%.asked then error%('all wrong'%)",
      "main%.lua:13: secrets .- not found %(the last of controller asks, for default/%S+; (%d+) of its %1 " ..
        "reconciles failed%)\\n +13 | ",
    })
    assert.is_nil(rig.process.stderr:find("the last of controller well", 1, true))
    assert.are.equal(0, rig:stop())
  end)

  it("by running or holding too much is taken back, with the line where it was stopped", function()
    start { args = { "--memory-limit", "16Mi" } }
    local task = 'kube.background("beside", function()\n'
    returns(GOOD .. task .. "  local n = 0\n  while true do\n    n = n + 1\n  end\nend)\n",
      { '"error":"[^"]*main%.lua:1[12]: cpu budget exceeded: [^"]+ ran for more than 1 s without awaiting; ' ..
        "kube%.sleep[^\"]-\\n +1[12] | " })
    returns(GOOD .. task .. "  local all = {}\n  for i = 1, 1e7 do\n    all[i] = { i }\n  end\nend)\n",
      { '"error":"[^"]*main%.lua:1[12]: memory limit of 16 MiB reached: [^"]*; hold less at a time, or raise ' ..
        "%-%-memory%-limit\\n +1[12] | " })
    assert.are.equal(0, rig:stop())
  end)
end)

describe("a reload", function()
  cleanup.install()

  -- It awaits between the two lines that it prints.
  local function slow(word)
    local body = ('print("begin " .. ctx.name) kube.sleep(0.3) print("%s"'):format(word)
    return (GOOD:gsub("print%(word", function() return body end))
  end
  local function start_slow()
    return reload_rig.start { ["main.lua"] = slow "old", ["lib/word.lua"] = FILES["lib/word.lua"],
      ["lib/third.lua"] = FILES["lib/third.lua"] }
  end

  it("during the initial sync waits for nothing and loses nothing", function()
    local rig = reload_rig.start(FILES, { before = function(server)
      server:ask("POST", "/sandbox/v1/faults", cjson.encode { resource = "configmaps", verb = "watch", delay = 3 })
    end })
    local seen = scrape.of(rig.process)
    -- Its files have been read, and it has no cache yet.
    seen:wait(function() return seen:get("/readyz?verbose") end,
      function(_, body) return body:find("has not synced yet", 1, true) end, "a script that waits for its cache")
    rig:save("lib/word.lua", 'return "better"\n')
    rig:stderr("reloaded", 60)
    rig:create("a", { v = "1" })
    rig:line("^better a 1$", 60)
    assert.are.same({ ["watch configmaps"] = 1 }, rig:reads())
    assert.are.equal(0, rig:stop())
    assert.is_nil(rig.process.stdout:match("good a"))
  end)

  it("in the middle of a reconcile lets it end", function()
    local rig = start_slow()
    rig:create("a", { v = "1" })
    rig:line("^begin a$", 60)
    rig:save("main.lua", slow "new")
    rig:stderr("reloaded", 60)
    rig:line("^old a 1$", 60)
    rig:line("^new a 1$", 60)
    assert.are.equal(0, rig:stop())
  end)

  it("while the server is down takes place, and then goes on", function()
    local rig = reload_rig.start(FILES)
    rig:create("a", { v = "1" })
    rig:line("^good a 1$", 60)
    rig.server.process._handle:kill("sigstop")
    rig:save("lib/word.lua", 'return "better"\n')
    rig:stderr("reloaded", 60)
    rig:line("^better a 1$", 60) -- from the cache
    rig.server.process._handle:kill("sigcont")
    rig:update("a", { v = "2" })
    rig:line("^better a 2$", 60)
    assert.are.equal(0, rig:stop())
  end)

  local LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"

  local function start_elected(before)
    return reload_rig.start({
      ["main.lua"] = GOOD .. 'kube.leader_election { name = "only", namespace = "default", lease_duration = 15, ' ..
        'renew_deadline = 10, retry_period = 0.2 }\n',
      ["lib/word.lua"] = FILES["lib/word.lua"], ["lib/third.lua"] = FILES["lib/third.lua"],
    }, { before = before })
  end

  it("of the one that leads keeps the lease", function()
    local rig = start_elected()
    rig:create("a", { v = "1" })
    rig:line("^good a 1$", 60)
    local function lease() return cjson.decode(rig.server:ask("GET", LEASES .. "/only")).spec end
    local before = lease()
    rig:save("lib/word.lua", 'return "better"\n')
    rig:line("^better a 1$", 60)
    local after = lease()
    assert.are.same({ before.holderIdentity, before.acquireTime, before.leaseTransitions },
      { after.holderIdentity, after.acquireTime, after.leaseTransitions })
    assert.are.equal(0, rig:stop())
  end)

  it("of one that does not lead is what leads later", function()
    local rig = start_elected(function(server)
      server:ask("POST", LEASES, cjson.encode { apiVersion = "coordination.k8s.io/v1", kind = "Lease",
        metadata = { name = "only", namespace = "default" },
        spec = { holderIdentity = "another", leaseDurationSeconds = 3600, leaseTransitions = 0,
          acquireTime = os.date("!%Y-%m-%dT%H:%M:%S.000000Z"), renewTime = os.date("!%Y-%m-%dT%H:%M:%S.000000Z") } })
    end)
    rig:create("a", { v = "1" })
    rig:stderr("synced", 60)
    rig:save("lib/word.lua", 'return "better"\n')
    rig:stderr("reloaded", 60)
    rig.server:ask("DELETE", LEASES .. "/only")
    rig:line("^better a 1$", 60)
    assert.are.equal(0, rig:stop())
    assert.is_nil(rig.process.stdout:match("good a"))
  end)

  it("during the shutdown is left alone", function()
    local rig = start_slow()
    rig:create("a", { v = "1" })
    rig:line("^begin a$", 60)
    rig.process:kill("sigterm")
    rig:save("main.lua", slow "new")
    assert.are.equal(0, rig.process:wait_exit(60))
    assert.is_nil(rig.process.stdout:match("new"))
    assert.is_truthy(rig.process.stdout:match("old a 1"))
  end)
end)
