-- A leader election that a reload adds, changes or takes away, and a lease that is lost while a reload is under way.
local cjson = require "cjson"
local cleanup = require "spec.support.cleanup"
local reload_rig = require "spec.support.reload_rig"
local uv = require "luv"

local LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
local SECRETS = "/api/v1/namespaces/default/secrets"

-- Signs a Secret for each ConfigMap that has data.v, and says what became of it.
local WORK = [[
local kube = require "kube"
local WHO = "%s"
kube.controller {
  name = "copies", resource = "v1/configmaps", namespaces = { "default" }, predicate = { path = "data.v" },
  reconcile = function(ctx, object)
    if not object then return end
    local hold = tonumber(object.data.hold)
    if hold then
      print(WHO .. " holds " .. ctx.name)
      kube.defer(function() print(WHO .. " lets go of " .. ctx.name) end)
      kube.sleep(hold)
    end
    local _, err = ctx.client:try_apply { apiVersion = "v1", kind = "Secret",
      metadata = { name = ctx.name, namespace = "default", labels = { by = WHO, v = object.data.v } } }
    print(WHO .. " " .. ctx.name .. " " .. (err and err.code or "done"))
    if err then error(err, 0) end
  end,
}
]]

local ELECTION = [[
local leader = kube.leader_election { name = "%s", namespace = "default", identity = "me", lease_duration = %d,
  renew_deadline = %g, retry_period = 0.1, on_started_leading = function() print(WHO .. " leads") end,
  on_stopped_leading = function() print(WHO .. " stopped") end,
  on_new_leader = function(id) print(WHO .. " hears of " .. id) end }
]]

local function script(who, name, more, duration, deadline)
  return WORK:format(who) .. (name and ELECTION:format(name, duration or 15, deadline or 10) or "") .. (more or "")
end

describe("a leader election", function()
  cleanup.install()
  local rig

  local function lease(name) return cjson.decode(rig.server:ask("GET", LEASES .. "/" .. (name or "web"))) end

  -- Somebody else has the Lease.
  local function hold(server)
    server:ask("POST", LEASES, cjson.encode { metadata = { name = "web" }, spec = { holderIdentity = "other",
      leaseDurationSeconds = 3600, leaseTransitions = 0 } })
  end

  -- A renewal may come between.
  local function take_away()
    local taken
    repeat
      taken = lease()
      taken.spec.holderIdentity = "thief"
    until pcall(rig.server.ask, rig.server, "PUT", LEASES .. "/web", cjson.encode(taken))
  end

  local function fault(which) rig.server:ask("POST", "/sandbox/v1/faults", cjson.encode(which)) end

  local function requests(query) return cjson.decode(rig.server:ask("GET", "/sandbox/v1/requests?" .. query)).items end

  -- How often Secrets were written so far.
  local function written() return #requests("resource=secrets&verb=patch") end

  -- Who wrote each Secret: "a by one, b by two".
  local function copies()
    local out = {}
    for i, item in ipairs(cjson.decode(rig.server:ask("GET", SECRETS .. "?labelSelector=by")).items) do
      out[i] = item.metadata.name .. " by " .. item.metadata.labels.by
    end
    table.sort(out)
    return table.concat(out, ", ")
  end

  local function pause(seconds) rig.process:ends_within(seconds) end

  describe("that a reload adds", function()
    it("lets nobody write from the take-over on, until the lease is won", function()
      rig = reload_rig.start({ ["main.lua"] = script "old", ["b.lua"] = [[
        local kube = require "kube"
        kube.sleep(0)
        print("beside")
        while true do
          local _, err = kube.client:try_create { apiVersion = "v1", kind = "Event", metadata = { generateName = "b-",
            namespace = "default" }, involvedObject = { namespace = "default" } }
          if err then
            print("beside: " .. err.code)
            break
          end
          kube.sleep(0.01)
        end
        require("kube._leader").wait()
        print("beside: on")
        kube.sleep(3600)
      ]] }, { more = { "b.lua" }, before = hold })
      rig:line("^beside$")
      rig:create("a", { v = "1" })
      rig:line("^old a done$")
      rig:create("slow", { v = "1", hold = "0.8" })
      rig:line("^old holds slow$")
      rig:save("main.lua", script("new", "web", 'print("declared", leader, leader:is_leading(), leader:namespace())'))
      rig:line("^declared\tleader election default/web\tfalse\tdefault$")
      rig:stderr("reloaded", 60)
      -- What drains, and another script, are before the same fence.
      rig:line("^beside: not_leading$")
      rig:line("^old slow not_leading$")
      rig:line("^new hears of other$")
      local before = written()
      rig:create("b", { v = "1" })
      pause(0.5)
      assert.are.equal("a by old", copies())
      assert.are.equal(before, written())
      rig.server:ask("DELETE", LEASES .. "/web")
      rig:line("^new leads$")
      rig:line("^beside: on$")
      for _, name in ipairs { "a", "b", "slow" } do rig:line("^new " .. name .. " done$") end
      assert.are.equal("a by new, b by new, slow by new", copies())
      assert.are.equal("me", lease().spec.holderIdentity)
      assert.are.equal(0, rig:stop())
      assert.are.equal("", lease().spec.holderIdentity or "")
    end)

    it("makes the workers of another script wait, and costs them no try", function()
      rig = reload_rig.start({ ["main.lua"] = script("other"):gsub('"copies"', '"others", retry = { attempts = 1 }'),
        ["b.lua"] = "kube.sleep(0)\nkube.sleep(3600)\n" }, { more = { "b.lua" }, before = hold })
      rig:create("a", { v = "1" })
      rig:line("^other a done$")
      rig:save("b.lua", "local WHO = 'b'\n" .. ELECTION:format("web", 15, 10) .. "kube.sleep(3600)\n")
      rig:line("^b hears of other$")
      for i = 1, 5 do rig:create("n" .. i, { v = "1" }) end
      pause(0.5)
      assert.are.equal("a by other", copies())
      rig.server:ask("DELETE", LEASES .. "/web")
      for i = 1, 5 do rig:line("^other n" .. i .. " done$") end
      assert.is_nil(rig.process.stdout:find("not_leading")) -- not even of the key that it was waiting for
      assert.are.equal(0, rig:stop())
    end)

    it("ends a write that is under way, whose end nobody knows", function()
      rig = reload_rig.start({ ["main.lua"] = script "old" }, { before = hold })
      fault { resource = "secrets", verb = "patch", delay = 5 }
      rig:create("a", { v = "1" })
      while written() == 0 do pause(0.02) end
      rig:save("main.lua", script("new", "web"))
      rig:stderr("reloaded", 60)
      rig:line("^old a timeout$", 3)
      rig.server:ask("DELETE", LEASES .. "/web")
      rig:line("^new a done$")
      assert.are.equal(0, rig:stop())
    end)

    it("and fails changes nothing: neither the fence nor the Lease", function()
      rig = reload_rig.start({ ["main.lua"] = script "old" }, { env = { MOONWATCH_WARM_UP = "0.5" } })
      rig:create("a", { v = "1" })
      rig:line("^old a done$")
      local count = 0
      local function goes_on()
        count = count + 1
        rig:create("n" .. count, { v = "1" })
        rig:line("^old n" .. count .. " done$")
        assert.are.same({}, requests("resource=leases"))
        assert.is_nil(rig.process.stdout:find("not_leading"))
      end
      -- While it loads, while it waits for its caches, and in the turn in which it takes over.
      rig:save("main.lua", script("bad", "web", "error('no luck')"))
      rig:stderr("reload failed[^\n]*no luck", 60)
      goes_on()
      rig:save("main.lua", script("bad", "web", 'kube.informer("example.com/v1/nothings"):add_event_handler {}'))
      rig:stderr("takes over when it has its caches", 60)
      goes_on()
      rig:stderr("reload failed[^\n]*no cache of", 60)
      goes_on()
      rig:save("main.lua", script("bad", "web", 'kube.wait_for_cache_sync()\nerror("not like this")'))
      rig:stderr("reload failed[^\n]*not like this", 60)
      goes_on()
      assert.are.equal(0, rig:stop())
      assert.is_nil(rig.process.stdout:find("bad"))
    end)
  end)

  describe("that a reload takes away", function()
    it("stays, with its lease, until the process ends, and the log says so", function()
      rig = reload_rig.start { ["main.lua"] = script("one", "web") }
      rig:line("^one leads$")
      local before = lease().spec
      rig:save("main.lua", script "two")
      rig:stderr("no script declares the election any more[^\n]*restart it to be without", 60)
      rig:stderr("reloaded", 60)
      rig:create("a", { v = "1" })
      rig:line("^two a done$")
      while lease().spec.renewTime == before.renewTime do pause(0.05) end
      assert.are.same({ "me", before.acquireTime }, { lease().spec.holderIdentity, lease().spec.acquireTime })
      -- The same one may come back, another not.
      rig:save("main.lua", script("three", "other"))
      rig:stderr("reload failed[^\n]*main%.lua:%d+: leader_election: the lease default/other: this process has "
        .. "default/web, declared at [^\n]*main%.lua:%d+, and a process has one until it ends; declare that one, or "
        .. "start a process for this one", 60)
      rig:save("main.lua", script("four", "web", nil, 20))
      rig:stderr("the election stays as it was declared first[^\n]*main%.lua", 60)
      rig:line("^four leads$")
      local function warnings() return select(2, rig.process.stderr:gsub("the election stays as it was", "")) end
      for who, identity in pairs { same = '"me"', none = "nil" } do
        rig:save("main.lua", (script(who, "web"):gsub('"me"', identity)))
        rig:line("^" .. who .. " leads$")
        assert.are.equal(1, warnings())
      end
      for who, identity in pairs { another = '"us"', labelled = '"me", labels = { a = "b" }' } do
        local told = warnings()
        rig:save("main.lua", (script(who, "web"):gsub('"me"', identity)))
        rig:line("^" .. who .. " leads$")
        assert.are.equal(told + 1, warnings())
      end
      rig:save("main.lua", script("four", "web"))
      rig:line("^four leads$")
      take_away()
      assert.are.equal(4, rig.process:wait_exit(10), rig.process.stderr)
      assert.is_truthy(rig.process.stdout:find("four stopped"))
      assert.is_nil(rig.process.stdout:find("three"))
    end)

    it("does not make one write that stands by", function()
      rig = reload_rig.start({ ["main.lua"] = script("one", "web") }, { before = hold })
      rig:line("^one hears of other$")
      rig:save("main.lua", script "two")
      rig:stderr("no script declares the election any more", 60)
      rig:create("a", { v = "1" })
      pause(0.5)
      assert.are.equal("", copies())
      rig.server:ask("DELETE", LEASES .. "/web")
      rig:line("^two a done$")
      assert.are.equal(0, rig:stop())
      assert.is_nil(rig.process.stdout:find("one a"))
    end)
  end)

  describe("whose lease is lost during a reload", function()
    local SHORT, SHORTER = 2, 1.5

    -- It ended for that, in order, and wrote nothing since the fence was closed.
    local function ended(before)
      assert.are.equal(4, rig.process:wait_exit(10), rig.process.stderr)
      assert.is_truthy(rig.process.stderr:find("the lease is lost: ending at once", 1, true))
      assert.is_nil(rig.process.stderr:find("leaving without cleaning up", 1, true), rig.process.stderr)
      assert.are.equal(before, written())
    end

    it("because renewals fail ends both revisions, and the new one writes until the fence closes", function()
      rig = reload_rig.start { ["main.lua"] = script("old", "web", nil, SHORT, SHORTER) }
      rig:line("^old leads$")
      rig:create("held", { v = "1", hold = "60" })
      rig:line("^old holds held$")
      fault { group = "coordination.k8s.io", resource = "leases", status = 500, count = 0 }
      rig:stderr("the lease was not renewed", 60)
      rig:save("main.lua", script("new", "web", nil, SHORT, SHORTER))
      rig:stderr("reloaded", 60)
      rig:line("^new leads$") -- it still does
      rig:stderr("nothing is written until it is", 60)
      local before = written()
      rig:create("late", { v = "1" })
      ended(before)
      assert.is_truthy(rig.process.stdout:find("old lets go of held", 1, true))
      assert.is_truthy(rig.process.stdout:find("new stopped", 1, true))
      assert.is_nil(rig.process.stdout:find("old stopped", 1, true))
    end)

    it("goes on when a renewal comes in time", function()
      rig = reload_rig.start { ["main.lua"] = script("old", "web") }
      rig:line("^old leads$")
      fault { group = "coordination.k8s.io", resource = "leases", status = 500, count = 0 }
      rig:stderr("the lease was not renewed", 60)
      rig:save("main.lua", script("new", "web"))
      rig:line("^new leads$")
      rig.server:ask("DELETE", "/sandbox/v1/faults")
      rig:stderr("the lease is renewed again", 60)
      rig:create("a", { v = "1" })
      rig:line("^new a done$")
      assert.are.equal(0, rig:stop())
    end)

    it("while the new revision loads ends with both, and that writes nothing", function()
      rig = reload_rig.start { ["main.lua"] = script("old", "web") }
      rig:line("^old leads$")
      rig:create("a", { v = "1" })
      rig:line("^old a done$")
      local before = written()
      rig:save("main.lua", script("new", "web", [[
        print("loading")
        while leader:is_leading() do end
      ]]))
      rig:line("^loading$")
      take_away()
      ended(before)
      assert.is_nil(rig.process.stdout:find("new a done", 1, true))
    end)

    it("right after the take-over ends with both, while the old one still drains", function()
      rig = reload_rig.start { ["main.lua"] = script("old", "web") }
      rig:line("^old leads$")
      rig:create("held", { v = "1", hold = "60" })
      rig:line("^old holds held$")
      local before = written()
      rig:save("main.lua", script("new", "web"))
      rig:stderr("reloaded", 60)
      take_away()
      ended(before)
      for _, line in ipairs { "old lets go of held", "new stopped" } do
        assert.is_truthy(rig.process.stdout:find(line, 1, true), rig.process.stdout)
      end
    end)

    it("ends a write that is under way at once", function()
      rig = reload_rig.start { ["main.lua"] = script("old", "web") }
      rig:line("^old leads$")
      fault { resource = "secrets", verb = "patch", delay = 30 }
      rig:create("a", { v = "1" })
      while written() == 0 do pause(0.02) end
      rig:save("main.lua", script("new", "web"))
      rig:stderr("reloaded", 60)
      local began = uv.hrtime()
      take_away()
      rig:line("^old a timeout$")
      ended(1)
      assert.is_true(uv.hrtime() - began < 5e9)
    end)
  end)
end)
