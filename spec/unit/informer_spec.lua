-- A shared informer from the socket to its listeners; how it fails and ends: informer_life_spec.
jit.off(true, true)
local captured = require "spec.support.captured"
local informer_rig = require "spec.support.informer_rig"
local kit = require "spec.support.cache_kit"
local unit = require "spec.support.unit"
local uv = require "luv"
local C, ffi = unit.C, unit.ffi

describe("informer", function()
  unit.no_leaks()

  describe("of pods", function()
    local rig, server

    before_each(function()
      rig = informer_rig.new()
      server = rig.server
    end)
    after_each(function() rig:close() end)

    local function pump(condition) rig:pump(condition) end
    local function heard(l, count) return rig:heard(l, count) end
    local function ingest_until(condition) rig:ingest_until(condition) end
    local function running(options) return rig:running(options) end
    -- Loses the watch in a way that makes the reflector read all again.
    local function relist()
      local before = server.count.stream
      server:expire()
      server:break_watches()
      pump(function() return server.count.stream > before end)
    end

    describe("following a server", function()
      it("tells adds, updates and deletes with the right old object", function()
        local inf = rig:informer()
        local l = inf:listen()
        server:put("a")
        inf:start()
        assert.are.same({ "add a@101 initial" }, heard(l, 1))
        pump(function() return server:open_watches() == 1 end)
        server:put("b")
        server:put("a")
        server:remove("b")
        assert.are.same({ "add a@101 initial", "add b@102", "update a@101 a@103", "delete b@104" },
          heard(l, 4))
        assert.are.same({ "a@103" }, inf:store())
      end)

      it("shows a recreation in the stream as a delete and an add", function() -- row 35
        server:put("a", { uid = "one" })
        local inf = running()
        local l = inf:listen { replay = false }
        server:remove("a")
        server:put("a", { uid = "two" })
        assert.are.same({ "delete a@102", "add a@103" }, heard(l, 2))
      end)

      it("tells a deletion of an object that it never saw", function() -- row 34
        local inf = running()
        local l = inf:listen()
        server:mute()
        server:put("ghost")
        server.muted = false
        server:remove("ghost")
        assert.are.same({ "delete ghost@102" }, heard(l, 1))
        assert.are.same({}, inf:store())
      end)

      it("is synced when the first snapshot is in the store, and says so", function() -- rows 38, 76
        server:put("a")
        local inf = rig:informer()
        assert.is_false(inf:synced())
        inf:start()
        local stored
        pump(function()
          if inf:synced() then stored = inf:store() end
          return stored
        end)
        assert.are.same({ "a@101" }, stored)
        assert.is_true(inf.changes > 0)
      end)

      it("is synced with nothing to list", function() -- row 38
        local inf = running()
        local l = inf:listen()
        pump(function() return l:synced() end)
        assert.are.same({}, inf:store())
      end)

      it("moves the store's version with every event, bookmark and snapshot", function() -- row 51
        server:put("a")
        local inf = running()
        assert.are.equal(101, inf:store_rv())
        local l = inf:listen { replay = false }
        server:put("a")
        heard(l, 1)
        assert.are.equal(102, inf:store_rv())
        server:remove("a")
        heard(l, 2)
        assert.are.equal(103, inf:store_rv())
        server:bookmark()
        pump(function() return inf:store_rv() == 104 end)
        server:mute()
        server:put("b")
        relist()
        heard(l, 3)
        assert.are.equal(105, inf:store_rv())
      end)

      it("has its store and indexes changed before it tells", function() -- row 54
        local inf = rig:informer()
        inf:add_index("node", function(o) return { kit.unpack(o):match('"nodeName":"(.-)"') } end)
        local seen = {}
        inf:listen { deliver = function(text)
          seen[#seen + 1] = { text, inf:by_index("node", "n9") }
        end }
        inf:start()
        pump(function() return inf:synced() and server:open_watches() == 1 end)
        server:put("a", { node = "n9" })
        pump(function() return #seen == 1 end)
        server:put("a", { node = "n1" })
        pump(function() return #seen == 2 end)
        assert.are.same({ { "add a@101", { "a@101" } }, { "update a@101 a@102", {} } }, seen)
      end)
    end)

    describe("a relist", function()
      it("tells deletes, then the rest, the store being new", function() -- rows 36, 37, 49, 56
        for _, name in ipairs { "a", "b", "c" } do server:put(name) end
        local inf = running()
        local stores = {}
        local l = inf:listen { replay = false, deliver = function()
          stores[#stores + 1] = table.concat(inf:store(), " ")
        end }
        server:mute()
        server:remove("b")
        server:put("a")
        server:put("d")
        relist()
        assert.are.same({ "delete b@102 stale", "update c@103 c@103", "update a@101 a@105",
          "add d@106" }, heard(l, 4))
        for _, store in ipairs(stores) do assert.are.equal("a@105 c@103 d@106", store) end
      end)

      it("after the first snapshot tells nothing as initial", function() -- row 50
        server:put("a")
        local inf = rig:informer()
        local l = inf:listen()
        inf:start()
        heard(l, 1)
        pump(function() return server:open_watches() == 1 end)
        server:mute()
        server:put("a")
        server:put("b")
        relist()
        assert.are.same({ "add a@101 initial", "update a@101 a@102", "add b@103" }, heard(l, 3))
      end)

      it("hides a recreation as one update with two uids", function() -- row 35
        server:put("a", { uid = "one" })
        local inf = running()
        local same_uid
        local l = inf:listen { replay = false, deliver = function(_, n)
          same_uid = C.mw_object_same_uid(n.old, n.object)
        end }
        server:mute()
        server:remove("a")
        server:put("a", { uid = "two" })
        relist()
        assert.are.same({ "update a@101 a@103" }, heard(l, 1))
        assert.is_false(same_uid)
      end)

      it("tells unchanged objects only to listeners that are syncing", function() -- row 65
        server:put("a")
        server:put("b")
        local inf = rig:informer { resync = 0.02 }
        local due, other = inf:listen { resync = 0.02 }, inf:listen { resync = 0 }
        inf:start()
        -- The first check clears the flag of the one that wants no resync.
        heard(due, 4)
        server:mute()
        server:put("a")
        relist()
        heard(other, 3)
        assert.are.same({ "add a@101 initial", "add b@102 initial", "update a@101 a@103" },
          other.log)
      end)

      it("heals a watch that was only cut without reading all again", function() -- row 50
        local inf = running()
        local l = inf:listen()
        server:put("a")
        heard(l, 1)
        server:mute()
        server:put("b")
        server:cut()
        assert.are.same({ "add a@101", "add b@102" }, heard(l, 2))
        assert.are.equal(1, server.count.stream)
        assert.are.equal(0, server.count.list)
      end)
    end)

    describe("with a fifo past its bound", function()
      it("never claims a version in the store that it has not reached", function() -- row 51
        server:put("a")
        local inf = rig:informer { fifo_bound = 2 }
        local versions = {}
        inf:set_transform(function(o)
          versions[#versions + 1] = kit.text(o) .. " at " .. (inf:store_rv() or "none")
          return o
        end)
        inf:start()
        local l = inf:listen()
        pump(function() return inf:synced() and server:open_watches() == 1 end)
        versions = {}
        server:remove("a")
        server:put("c")
        server:put("b")
        server:put("b")
        server:put("a")
        server:put("b")
        ingest_until(function() return tonumber(inf:stats().coalesced) == 2 end)
        heard(l, 5)
        -- b@107 stands at the place of b@104, and the batch ends before the second delta of a.
        assert.are.same({ "a@102 at 101", "c@103 at 102", "b@107 at 103", "a@106 at 104" },
          versions)
        assert.are.equal(107, inf:store_rv())
      end)
    end)

    describe("a filtered listener", function()
      it("hears the deletion of what it knows, though the update out of its filter was merged away", function()
        server:put("a", { app = "g1" })
        local inf = rig:informer { fifo_bound = 1 }
        local l = inf:listen { filter = function(o) return kit.unpack(o):find('"app":"g1"', 1, true) ~= nil end }
        inf:start()
        heard(l, 1)
        pump(function() return server:open_watches() == 1 end)
        server:put("a", { app = "g0" })
        server:put("b", { app = "g0" })
        server:put("a", { app = "g0" })
        server:remove("a")
        ingest_until(function() return tonumber(inf:stats().coalesced) > 0
          and tonumber(inf:stats().reflector.events) >= 4 end)
        heard(l, 2)
        assert.are.same({ "add a@101 initial", "delete a@101" }, l.log)
      end)
    end)

    describe("a late listener", function()
      it("gets every stored object as initial and is synced after the last", function() -- row 69
        server:put("a")
        server:put("b")
        local inf = running()
        local l = inf:listen { deliver = function() return 1 end }
        assert.is_false(l:synced())
        heard(l, 1)
        l:finish()
        heard(l, 2)
        assert.is_false(l:synced())
        l:finish()
        assert.is_true(l:synced())
        table.sort(l.log)
        assert.are.same({ "add a@101 initial", "add b@102 initial" }, l.log)
      end)

      it("misses nothing and hears nothing twice", function() -- row 72
        local inf = running()
        local listeners = {}
        for i = 1, 40 do
          server:put("p" .. i)
          if i % 4 == 0 then listeners[#listeners + 1] = inf:listen() end
          rig:turn()
        end
        for _, l in ipairs(listeners) do
          heard(l, 40)
          local seen = {}
          for _, text in ipairs(l.log) do
            local name = text:match("^add (p%d+)@")
            assert.is_nil(seen[name])
            seen[name] = true
          end
        end
        rig:settle()
        for _, l in ipairs(listeners) do assert.are.equal(40, #l.log) end
      end)

      it("cannot come from inside an index function or a transform that events run", function()
        server:put("a")
        server:put("b")
        local inf = rig:informer()
        local refused, late = {}, {}
        local function try()
          local l, code, message = inf:listen()
          late[#late + 1] = l
          refused[#refused + 1] = code .. ": " .. message
        end
        inf:add_index("meddling", function()
          try()
          return {}
        end)
        inf:set_transform(function(o)
          try()
          return o
        end)
        local l = inf:listen()
        inf:start()
        heard(l, 2)
        assert.are.equal(4, #refused)
        for _, text in ipairs(refused) do
          assert.are.equal("ESTATE: cannot add a handler inside an index function or a transform: the informer " ..
            "of v1/pods is just applying events", text)
        end
        assert.are.same({}, late)
      end)

      it("may come from inside an index function that a registration runs, and hears all once", function()
        server:put("a")
        server:put("b")
        local inf = running()
        local l
        inf:add_index("first", function()
          l = l or inf:listen()
          return {}
        end)
        heard(l, 2)
        rig:settle()
        table.sort(l.log)
        assert.are.same({ "add a@101 initial", "add b@102 initial" }, l.log)
      end)

      it("that wants no replay hears only what is new", function()
        server:put("a")
        local inf = running()
        local l = inf:listen { replay = false }
        server:put("b")
        assert.are.same({ "add b@102" }, heard(l, 1))
      end)

      it("can be removed while it is told things, and hears no more", function() -- rows 68, 70
        local inf = running()
        local l, other = inf:listen(), inf:listen()
        server:put("a")
        heard(l, 1)
        heard(other, 1)
        l:remove()
        l:remove()
        server:put("b")
        heard(other, 2)
        rig:settle()
        assert.are.same({ "add a@101" }, l.log)
        assert.are.equal(1, l.closes)
        assert.is_false(inf:stopped())
      end)

      it("deletes from inside a handler and is told of it", function() -- row 54
        local inf = running()
        local l = inf:listen { deliver = function(text)
          if text:find("^add") then server:remove("a") end
        end }
        server:put("a")
        assert.are.same({ "add a@101", "delete a@102" }, heard(l, 2))
      end)
    end)

    describe("resync", function()
      it("tells every stored object to those who are due", function() -- rows 39, 63
        server:put("a")
        local inf = rig:informer { resync = 0.02 }
        local l, never = inf:listen(), inf:listen { resync = 0 }
        inf:start()
        assert.are.same({ "add a@101 initial", "update a@101 a@101", "update a@101 a@101" },
          heard(l, 3))
        assert.are.same({ "add a@101 initial" }, never.log)
      end)

      it("comes at the listener's own pace", function() -- row 63
        server:put("a")
        local inf = rig:informer { resync = 0.02 }
        local fast, slow = inf:listen { resync = 0.02 }, inf:listen { resync = 0.08 }
        inf:start()
        heard(fast, 9)
        assert.is_true(#slow.log >= 2 and #slow.log <= 4, #slow.log)
      end)

      it("comes with every tick, however late the script's thread gets to it", function() -- row 63
        server:put("a")
        local inf = rig:informer { resync = 0.02 }
        local l = inf:listen()
        inf:start()
        heard(l, 2)
        for tick = 1, 6 do
          rig:ingest_until(function() return tonumber(inf:stats().queued) > 0 end)
          if tick % 2 == 1 then uv.sleep(15) end
          local before = #l.log
          for _ = 1, 20 do C.mw_loop_turn(rig.script, 0) end
          assert.is_true(#l.log > before, "tick " .. tick)
        end
      end)

      it("comes once to whom it was due while the script's thread was held up", function() -- row 63
        server:put("a")
        local inf = rig:informer { resync = 0.05 }
        local l = inf:listen { resync = 0.12 }
        inf:start()
        heard(l, 2)
        for _ = 1, 4 do
          local before, ticks = #l.log, tonumber(inf:stats().coalesced) + 5
          rig:ingest_until(function() return tonumber(inf:stats().coalesced) >= ticks end)
          for _ = 1, 20 do C.mw_loop_turn(rig.script, 0) end
          assert.are.equal(before + 1, #l.log)
        end
      end)

      it("checks as often as the smallest request before the start", function() -- row 64
        server:put("a")
        local inf = rig:informer { resync = 3600 }
        local slow, fast = inf:listen(), inf:listen { resync = 0.02 }
        inf:start()
        heard(fast, 3)
        assert.are.same({ "add a@101 initial" }, slow.log)
      end)

      it("is raised to the check period for a listener that comes late", function() -- row 64
        server:put("a")
        local inf = running { resync = 0.05 }
        -- In the middle of a check period, so that it would be due at the next check already.
        local before = C.mw_clock_now()
        pump(function() return C.mw_clock_now() - before > 30000000 end)
        before = C.mw_clock_now()
        local l = inf:listen { resync = 0.01 }
        heard(l, 5)
        -- Each is due a whole period behind the one before, the first one behind the request.
        local passed = tonumber(C.mw_clock_now() - before)
        assert.is_true(passed >= 4 * 50000000, passed)
        local again = "update a@101 a@101"
        assert.are.same({ "add a@101 initial", again, again, again, again }, l.log)
      end)

      it("is raised to a second unless the informer allows less, and says so", function() -- row 64
        server:put("a")
        local inf = running { resync = 0.05, min_resync = 0 }
        local l, before
        C.mw_log_set_level(C.MW_LOG_WARN)
        local text = captured(function()
          before = C.mw_clock_now()
          l = inf:listen { name = "hasty", resync = 0.05 }
        end)
        C.mw_log_set_level(C.MW_LOG_ERROR)
        assert.matches("resync period too small, raised", text, 1, true)
        assert.matches("hasty", text, 1, true)
        heard(l, 2)
        local passed = tonumber(C.mw_clock_now() - before)
        assert.is_true(passed >= 1000000000, passed)
        assert.are.same({ "add a@101 initial", "update a@101 a@101" }, l.log)
      end)

      it("never happens when the informer has none, whatever is asked for", function() -- row 64
        server:put("a")
        local inf = rig:informer()
        local l = inf:listen { resync = 0.01 }
        inf:start()
        heard(l, 1)
        local started = C.mw_clock_now()
        pump(function() return C.mw_clock_now() - started > 40000000 end)
        assert.are.same({ "add a@101 initial" }, l.log)
      end)
    end)

    describe("a transform", function()
      -- The same pod with another node.
      local function renamed(o)
        return kit.parse((kit.unpack(o):gsub('"nodeName":"[^"]*"', '"nodeName":"shaped"')))
      end
      local function shaped(o) return kit.unpack(o):find("shaped", 1, true) ~= nil end

      it("shapes what the store holds and the listeners see", function() -- rows 55, 67
        server:put("a")
        local inf = rig:informer()
        assert.is_true(inf:set_transform(renamed))
        local seen = {}
        local l = inf:listen { deliver = function(_, n) seen[#seen + 1] = shaped(n.object) end }
        inf:start()
        heard(l, 1)
        pump(function() return server:open_watches() == 1 end)
        server:put("a")
        server:put("b")
        server:remove("b")
        heard(l, 4)
        assert.are.same({ true, true, true, true }, seen)
        assert.is_true(shaped(inf:get("a")))
      end)

      it("runs once for each object that arrives and not for a resync", function() -- row 40
        server:put("a")
        server:put("b")
        local calls = {}
        local inf = rig:informer { resync = 0.02 }
        inf:set_transform(function(o) calls[#calls + 1] = kit.text(o) return o end)
        local l = inf:listen()
        inf:start()
        heard(l, 6)
        assert.are.same({ "a@101", "b@102" }, calls)
        server:put("c")
        pump(function() return inf:get("c") end)
        server:remove("c")
        pump(function() return not inf:get("c") end)
        assert.are.same({ "a@101", "b@102", "c@103", "c@104" }, calls)
      end)

      it("that fails leaves the store as it was and stops nobody else", function() -- rows 40, 52
        server:put("a")
        server:put("bad")
        local broken = false
        local inf = rig:informer()
        inf:set_transform(function(o)
          if broken and kit.text(o):find("bad", 1, true) then error("no") end
          return o
        end)
        C.mw_log_set_level(-1)
        inf:start()
        pump(function() return inf:synced() and server:open_watches() == 1 end)
        broken = true
        local l = inf:listen { replay = false }
        server:put("bad")
        server:put("a")
        assert.are.same({ "update a@101 a@104" }, heard(l, 1))
        assert.are.same({ "a@104", "bad@102" }, inf:store())
        server:mute()
        server:put("bad")
        server:put("c")
        relist()
        heard(l, 4)
        assert.are.same({ "a@104", "bad@102", "c@106" }, inf:store())
        server:remove("bad")
        pump(function() return not inf:get("bad") end)
        assert.are.equal("delete bad@102", heard(l, 5)[5])
        assert.are.equal(3, tonumber(inf:stats().process_errors))
      end)

      it("that changes the name has failed", function() -- row 40
        local inf = rig:informer()
        inf:set_transform(function(o)
          return kit.parse((kit.unpack(o):gsub('"name":"a"', '"name":"z"')))
        end)
        C.mw_log_set_level(-1)
        inf:start()
        pump(function() return inf:synced() and server:open_watches() == 1 end)
        server:put("a")
        pump(function() return tonumber(inf:stats().process_errors) == 1 end)
        assert.are.same({}, inf:store())
      end)

      it("can drop objects, which then leave the store as if deleted", function()
        server:put("a")
        local inf = rig:informer()
        inf:set_transform(function(o)
          if not kit.unpack(o):find('"app":"db"', 1, true) then return o end
        end)
        local l = inf:listen()
        inf:start()
        heard(l, 1)
        pump(function() return server:open_watches() == 1 end)
        server:put("a", { app = "db" })
        server:put("never", { app = "db" })
        server:remove("never")
        server:put("b")
        assert.are.same({ "add a@101 initial", "delete a@101", "add b@105" }, heard(l, 3))
        assert.are.same({ "b@105" }, inf:store())
      end)

      it("of a long list gives way to the loop", function()
        for i = 1, 200 do server:put("p" .. i) end
        local inf = rig:informer()
        local calls, seen_between = 0, {}
        inf:set_transform(function(o)
          calls = calls + 1
          local until_time = C.mw_clock_now() + 100000
          while C.mw_clock_now() < until_time do end
          return o
        end)
        inf:start()
        pump(function()
          seen_between[calls] = true
          return inf:synced()
        end)
        local stops = 0
        for _ in pairs(seen_between) do stops = stops + 1 end
        assert.is_true(stops > 3, stops)
        assert.are.equal(200, #inf:store())
        assert.are.equal(200, calls)
      end)

      it("is that of the owner who came last, and again that of the one before when it leaves", function() -- row 67
        local old, new = ffi.cast("void *", 1), ffi.cast("void *", 2)
        local called = {}
        local inf = rig:informer()
        local function set(who, owner)
          assert(inf:set_transform(function(o)
            called[#called + 1] = who .. " " .. kit.key(o):match("[^/]+$")
            return o
          end, owner))
        end
        set("old", old)
        inf:start()
        server:put("a")
        pump(function() return inf:synced() and server:open_watches() == 1 end)
        set("new", new)
        server:put("b")
        pump(function() return #called == 2 end)
        C.mw_informer_drop_owner(inf.ptr, new)
        server:put("c")
        pump(function() return #called == 3 end)
        assert.are.same({ "old a", "new b", "old c" }, called)
        set("new", new)
        C.mw_informer_drop_owner(inf.ptr, old)
        server:put("d")
        pump(function() return #called == 4 end)
        assert.are.equal("new d", called[4])
        assert.is_false(C.mw_informer_is_stopping(inf.ptr))
        C.mw_informer_drop_owner(inf.ptr, new)
        assert.is_true(C.mw_informer_is_stopping(inf.ptr))
        pump(function() return inf:stopped() end)
        local ok, code, message = inf:set_transform(function(o) return o end)
        assert.is_nil(ok)
        assert.are.equal("ESTATE", code)
        assert.is_truthy(message:find("v1/pods has been stopped", 1, true))
        assert.is_nil((inf:set_error_handler(function() end)))
      end)
    end)

    describe("indexes", function()
      local function by_node(o) return { kit.unpack(o):match('"nodeName":"(.-)"') } end

      it("added before the start or with data present are usable at once", function() -- row 62
        server:put("a", { node = "n1" })
        server:put("b", { node = "n2" })
        local inf = rig:informer()
        assert.is_true(inf:add_index("early", by_node))
        inf:start()
        pump(function() return inf:synced() end)
        assert.are.same({ "a@101" }, inf:by_index("early", "n1"))
        assert.is_true(inf:add_index("late", by_node))
        assert.are.same({ "b@102" }, inf:by_index("late", "n2"))
        assert.are.same({ "a@101", "b@102" }, inf:by_index("namespace", "default"))
      end)
    end)
  end)
end)
