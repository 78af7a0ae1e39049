-- Several scripts in one process, and its leader election.
local cjson = require "cjson"
local cleanup = require "spec.support.cleanup"
local reload_rig = require "spec.support.reload_rig"

local LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
local EVENTS = "/api/v1/namespaces/default/events?fieldSelector=involvedObject.kind=Lease"

-- A script that takes part and tells what it hears.
local function script(who, name)
  return ([[
    local kube = require "kube"
    local function tell(what) return function(id) print("%s " .. what .. (id and " " .. id or "")) end end
    local leader = kube.leader_election { name = "%s", namespace = "default", identity = "me", lease_duration = 15,
      renew_deadline = 10, retry_period = 0.1, on_new_leader = tell "hears of", on_started_leading = tell "leads",
      on_stopped_leading = tell "stopped" }
    kube.sleep(0)
    print("%s begins")
    leader:wait()
    print("%s is awake")
    kube.sleep(3600)
  ]]):format(who, name or "web", who, who)
end

describe("scripts that declare a leader election in one process", function()
  cleanup.install()
  local rig

  local function start(a, b, options)
    options = options or {}
    options.entry, options.more = "a.lua", { "b.lua" } -- b is the first
    rig = reload_rig.start({ ["a.lua"] = a, ["b.lua"] = b }, options)
  end

  local function hold(server)
    server:ask("POST", LEASES, cjson.encode { metadata = { name = "web" }, spec = { holderIdentity = "other",
      leaseDurationSeconds = 3600, leaseTransitions = 0 } })
  end

  local function lease(change)
    local found
    repeat -- a renewal may come between
      found = cjson.decode(rig.server:ask("GET", LEASES .. "/web"))
      if not change then return found.spec end
      for name, value in pairs(change) do found.spec[name] = value end
    until pcall(rig.server.ask, rig.server, "PUT", LEASES .. "/web", cjson.encode(found))
  end

  local function events()
    local told = {}
    for i, event in ipairs(cjson.decode(rig.server:ask("GET", EVENTS)).items) do
      told[i] = ("%s %d"):format(event.message, event.count or 1)
    end
    table.sort(told)
    return table.concat(told, ", ")
  end

  it("share the lease, and all hear of it, also after the reload of one", function()
    start(script "a1", script "b1", { before = hold })
    for _, who in ipairs { "a1", "b1" } do rig:line("^" .. who .. " hears of other$") end
    lease { holderIdentity = "third" }
    for _, who in ipairs { "a1", "b1" } do rig:line("^" .. who .. " hears of third$") end
    rig:save("b.lua", script "b2")
    rig:line("^b2 begins$")
    rig.server:ask("DELETE", LEASES .. "/web") -- b1 has still a moment to end
    for _, who in ipairs { "a1", "b2" } do
      for _, what in ipairs { "hears of me", "leads", "is awake" } do rig:line(("^%s %s$"):format(who, what)) end
    end
    assert.are.equal("me", lease().holderIdentity)
    assert.are.equal(0, rig:stop())
    for _, line in ipairs { "a1 stopped", "b2 stopped" } do
      assert.is_truthy(rig.process.stdout:find(line, 1, true), rig.process.stdout)
    end
    assert.is_nil(rig.process.stdout:find("b1 hears of me", 1, true))
    assert.is_nil(rig.process.stdout:find("b1 leads", 1, true))
    assert.are.equal("", lease().holderIdentity or "")
    assert.are.equal("me became leader 1, me stopped leading 1", events())
  end)

  it("go on with it when one of them declares it no more", function()
    start(script "a1", script "b1", { before = hold })
    for _, who in ipairs { "a1", "b1" } do rig:line("^" .. who .. " hears of other$") end
    rig:save("b.lua", 'kube.sleep(0)\nprint("b2 begins")\nkube.sleep(3600)\n')
    rig:line("^b2 begins$")
    lease { holderIdentity = "third" }
    rig:line("^a1 hears of third$")
    assert.are.equal(0, rig:stop())
    assert.is_nil(rig.process.stderr:find("no script declares the election any more", 1, true))
    assert.is_nil(rig.process.stdout:find("b1 hears of third", 1, true))
  end)

  it("cannot have one each: the message names both", function()
    start(script("a1", "one"), script("b1", "two"))
    assert.are.equal(1, rig.process:wait_exit(20))
    assert.matches("a%.lua:%d+: leader_election: the lease default/one: this process has default/two, declared at "
      .. "%S+b%.lua:%d+, and a process has one until it ends; declare that one, or start a process for this one",
      rig.process.stderr)
    assert.are.equal("", rig.process.stdout)
  end)

  it("of which one declares none write nothing before the other's election is won", function()
    start(script "a1", [[
      local kube = require "kube"
      kube.wait_for_cache_sync()
      local _, err = kube.client:try_create { apiVersion = "v1", kind = "Secret",
        metadata = { name = "x", namespace = "default" } }
      print("b1 " .. (err and err.code or "wrote"))
      kube.sleep(3600)
    ]], { before = hold })
    rig:line("^b1 not_leading$")
    assert.are.equal(0, rig:stop())
  end)

  it("also a second one whose reload adds what the first has", function()
    start(script "a1", 'kube.sleep(0)\nprint("b1 begins")\nkube.sleep(3600)\n')
    rig:line("^a1 leads$")
    rig:save("b.lua", script "b2")
    rig:line("^b2 leads$")
    rig:save("b.lua", script("b3", "another"))
    rig:stderr("reload failed[^\n]*b%.lua:%d+: leader_election: the lease default/another: this process has "
      .. "default/web, declared at %S+a%.lua:%d+", 60)
    lease { holderIdentity = "thief" }
    assert.are.equal(4, rig.process:wait_exit(10), rig.process.stderr)
    for _, who in ipairs { "a1", "b2" } do
      assert.is_truthy(rig.process.stdout:find(who .. " stopped", 1, true), rig.process.stdout)
    end
  end)
end)
