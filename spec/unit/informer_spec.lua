-- A shared informer from the socket to its listeners.
jit.off(true, true)
local captured = require "spec.support.captured"
local informer_rig = require "spec.support.informer_rig"
local kit = require "spec.support.cache_kit"
local unit = require "spec.support.unit"
local C, ffi = unit.C, unit.ffi

-- Each block runs with the ingest loop on the spec's thread, the last one on its own.
describe("informer", function()
  unit.no_leaks()
  describe("of pods", function()
    local rig, server

    local function new_rig(options)
      rig = informer_rig.new(options)
      server = rig.server
    end

    before_each(function() new_rig() end)
    after_each(function() rig:close() end)

    local function pump(condition) rig:pump(condition) end
    -- Waits until the listener was told so many things and returns them.
    local function heard(l, count)
      pump(function() return #l.log >= count end)
      return l.log
    end
    -- Runs only the ingest side, so that deltas pile up before the script loop.
    local function ingest_until(condition)
      kit.pump(function()
        server:turn()
        C.mw_loop_turn(rig.ingest, 1)
      end, condition)
    end
    -- A started informer with what the server holds in its store.
    local function running(options)
      local inf = rig:informer(options)
      inf:start()
      pump(function() return inf:synced() and server:open_watches() > 0 end)
      return inf
    end
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
        local inf = running { resync = 3600 }
        local l = inf:listen { resync = 0.02 }
        heard(l, 1)
        rig:settle()
        local started = C.mw_clock_now()
        pump(function() return C.mw_clock_now() - started > 60000000 end)
        assert.are.same({ "add a@101 initial" }, l.log)
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

      it("is that of the owner who came last, and again that of the one before when it leaves", function()
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

    describe("errors", function()
      local function failure(code, reason)
        return { status = code, body = ('{"kind":"Status","apiVersion":"v1","status":"Failure",' ..
          '"message":"said no","reason":"%s","code":%d}'):format(reason, code) }
      end

      it("reach the handler of every owner, in the order in which they came, while it is there", function()
        local old, new = ffi.cast("void *", 1), ffi.cast("void *", 2)
        server:put("a")
        C.mw_log_set_level(-1)
        local inf, told = rig:informer(), {}
        local function set(who, owner, act)
          assert(inf:set_error_handler(function()
            told[#told + 1] = who
            if act then act() end
          end, owner))
        end
        -- Who hears of the next watch that is opened and fails.
        local function fail()
          told = {}
          server:fail("watch", failure(403, "Forbidden"))
          server:cut()
          pump(function() return #told > 0 and server:open_watches() == 1 end)
          return table.concat(told, " ")
        end
        set("old", old)
        inf:start()
        pump(function() return inf:synced() and server:open_watches() == 1 end)
        assert.are.equal("old", fail())
        set("new", new)
        assert.are.equal("old new", fail())
        set("newer", new)
        assert.are.equal("old newer", fail())
        C.mw_informer_drop_error_handler(inf.ptr, new)
        assert.are.equal("old", fail())
        -- One that is dropped, added or set again by another is treated as such.
        set("old", old, function()
          C.mw_informer_drop_error_handler(inf.ptr, new)
          set("added", ffi.cast("void *", 3))
        end)
        set("new", new)
        assert.are.equal("old", fail())
        set("old", old)
        assert.are.equal("added old", fail())
        C.mw_informer_drop_owner(inf.ptr, old)
        assert.are.equal("added", fail())
        assert.is_false(C.mw_informer_is_stopping(inf.ptr))
      end)

      it("reach the handler and the stats, which a success clears", function() -- row 66
        server:fail("stream", failure(403, "Forbidden"))
        server:fail("list", failure(403, "Forbidden"))
        C.mw_log_set_level(-1)
        local inf = rig:informer()
        local told = {}
        inf:set_error_handler(function(place, err, again)
          told[#told + 1] = { tonumber(place), err.http_status, ffi.string(again) }
          assert.are_not.equal("", ffi.string(inf:stats().last_error))
        end)
        inf:start()
        pump(function() return inf:synced() end)
        assert.are.equal(1, #told)
        assert.are.equal(C.MW_PLACE_LIST, told[1][1])
        assert.are.equal(403, told[1][2])
        assert.is_truthy(told[1][3]:find("retrying", 1, true))
        pump(function() return ffi.string(inf:stats().last_error) == "" end)
      end)

      it("stay in the stats through an outage, until a watch has opened", function()
        local inf = running()
        C.mw_log_set_level(-1)
        local shown = false
        server.http:refuse()
        pump(function()
          local stats = inf:stats()
          local refused = ffi.string(stats.last_error):find("connection refused", 1, true)
          -- Once it is there it stays, also while the next attempt is under way.
          assert(refused or not shown, ffi.string(stats.last_error))
          shown = shown or refused
          return shown and stats.reflector.decisions[C.MW_DECISION_STREAM_WAIT] >= 5
        end)
        server.http:listen()
        pump(function() return server:open_watches() == 1 end)
        pump(function() return ffi.string(inf:stats().last_error) == "" end)
      end)

      it("in a stream that goes on are cleared by the next event", function()
        local inf = running()
        C.mw_log_set_level(-1)
        server.http.streams[1]:send('{"type":"ADDED","object":{"kind":"Pod","metadata":{"uid":"u"}}}\n')
        pump(function() return ffi.string(inf:stats().last_error) ~= "" end)
        rig:settle()
        assert.are_not.equal("", ffi.string(inf:stats().last_error))
        server:put("a")
        pump(function() return ffi.string(inf:stats().last_error) == "" end)
      end)

      it("of an outage are told to people once in a while, and to the handler each time", function()
        local inf = rig:informer()
        local told = 0
        inf:set_error_handler(function(place) told = told + (place == C.MW_PLACE_STREAM_LIST and 1 or 0) end)
        server.http:refuse()
        C.mw_log_set_level(C.MW_LOG_INFO)
        local text = captured(function()
          inf:start()
          pump(function() return told >= 4 end)
        end)
        local _, lines = text:gsub("connection refused", "")
        assert.are.equal(1, lines)
        C.mw_log_set_level(C.MW_LOG_ERROR)
        server.http:listen()
      end)

      it("of a server without streaming lists are one line, and do not read like success", function()
        for _ = 1, 3 do
          server:fail("stream", failure(422, "Invalid"))
          server:fail("list", failure(403, "Forbidden"))
        end
        C.mw_log_set_level(C.MW_LOG_INFO)
        local inf = rig:informer()
        local text = captured(function()
          inf:start()
          pump(function() return inf:synced() end)
        end)
        local _, lines = text:gsub("streaming list refused, listing instead", "")
        assert.are.equal(1, lines)
      end)

      it("of the same kind are told to people once in a while, not each time", function()
        for _ = 1, 4 do
          server:fail("stream", failure(403, "Forbidden"))
          server:fail("list", failure(403, "Forbidden"))
        end
        C.mw_log_set_level(C.MW_LOG_WARN)
        local inf = rig:informer()
        local told = 0
        inf:set_error_handler(function() told = told + 1 end)
        local text = captured(function()
          inf:start()
          pump(function() return inf:synced() end)
        end)
        assert.are.equal(4, told)
        local _, lines = text:gsub("list failed", "")
        assert.are.equal(1, lines)
      end)
    end)

    describe("life", function()
      it("goes from new to started to stopped, and started stays", function() -- row 71
        local inf = rig:informer()
        assert.is_false(inf:started())
        assert.is_false(inf:stopped())
        inf:start()
        assert.is_true(inf:started())
        inf:stop()
        assert.is_false(inf:stopped())
        assert.is_true(C.mw_informer_is_stopping(inf.ptr))
        pump(function() return inf:stopped() end)
        assert.is_true(inf:started())
      end)

      it("runs until the last of its users has stopped it", function() -- row 71
        local inf = running()
        inf:start()
        inf:stop()
        local l = inf:listen()
        server:put("a")
        heard(l, 1)
        inf:stop()
        pump(function() return inf:stopped() end)
        assert.are.equal(1, l.closes)
      end)

      it("refuses users, handlers and indexes after the stop, not removal", function() -- row 71
        local inf = running()
        local l = inf:listen()
        inf:stop()
        for _ = 1, 2 do
          local _, code = inf:start()
          assert.are.equal("ESTATE", code)
          _, code = inf:listen()
          assert.are.equal("ESTATE", code)
          _, code = inf:add_index("late", function() return {} end)
          assert.are.equal("ESTATE", code)
          pump(function() return inf:stopped() end)
        end
        l:remove()
        assert.are.equal(1, l.closes)
      end)

      it("keeps its store readable after the stop", function() -- row 71
        server:put("a")
        local inf = running()
        inf:stop()
        pump(function() return inf:stopped() end)
        assert.are.same({ "a@101" }, inf:store())
        assert.are.equal(C.MW_REF_STOPPED, tonumber(inf:stats().reflector.state))
      end)

      it("waits for running handlers before it is stopped", function() -- row 75
        server:put("a")
        local inf = rig:informer()
        local l = inf:listen { deliver = function() return 1 end }
        inf:start()
        heard(l, 1)
        inf:stop()
        rig:settle()
        assert.is_false(inf:stopped())
        l:finish()
        pump(function() return inf:stopped() end)
      end)

      it("applies what is queued at the stop to the store", function() -- row 75
        local inf = running()
        for i = 1, 5 do server:put("p" .. i) end
        -- The events are in the fifo when the script loop learns of the stop.
        ingest_until(function() return tonumber(inf:stats().queued) == 5 end)
        inf:stop()
        pump(function() return inf:stopped() end)
        assert.are.equal(5, #inf:store())
      end)

      it("closes the handlers of an informer that never ran", function() -- row 74
        local inf = rig:informer()
        local l = inf:listen()
        l:remove()
        pump(function() return l.closes == 1 end)
        local other = inf:listen()
        C.mw_informer_shutdown(inf.ptr)
        pump(function() return inf:stopped() end)
        assert.are.equal(1, other.closes)
        assert.is_false(inf:started())
      end)

      it("ends in any state when the last reference goes", function() -- row 75
        local never = rig:informer()
        never:listen()
        local early = rig:informer()
        early:start()
        local late = running()
        late:listen()
        local stopped = running()
        stopped:stop()
        pump(function() return stopped:stopped() end)
        for _, inf in ipairs { never, early, late, stopped } do inf:unref() end
        pump(function() return unit.live().informer == nil end)
        pump(function() return server:open_watches() == 0 end)
      end)

      it("may be let go of by its own observer", function() -- row 75
        local inf = rig:informer()
        local call, ctx = kit.callback("call", function() inf:unref() end)
        C.mw_informer_on_change(inf.ptr, call, ctx)
        inf:start()
        pump(function() return unit.live().informer == nil end)
      end)

      it("gives contexts back when it ends", function()
        local freed = 0
        local inf = rig:informer()
        local free, ctx = kit.callback("call", function() freed = freed + 1 end)
        local transform = kit.callback("transform", function() return 1 end)
        assert(C.mw_informer_set_transform(inf.ptr, nil, transform, ctx, free, nil) == 0)
        assert(C.mw_informer_set_transform(inf.ptr, nil, transform, ctx, free, nil) == 0)
        assert.are.equal(1, freed)
        local on_error = kit.callback("error", function() end)
        assert(C.mw_informer_set_error_handler(inf.ptr, nil, on_error, ctx, free, nil) == 0)
        inf:unref()
        pump(function() return freed == 3 end)
      end)
    end)

    describe("with the ingest loop on its own thread", function()
      before_each(function()
        rig:close()
        new_rig { thread = true }
      end)

      it("ends in the server's state after a storm, whatever was cut", function() -- row 53
        math.randomseed(5)
        for i = 1, 20 do server:put("p" .. i) end
        local inf = rig:informer { fifo_bound = 16 }
        local known = {}
        inf:listen { bound = 8, deliver = function(_, n)
          local key, kind = kit.key(n.object), tonumber(n.type)
          if kind == C.MW_NOTIFY_DELETE then known[key] = nil else known[key] = kit.rv(n.object) end
        end }
        inf:start()
        for i = 1, 1500 do
          local name = "p" .. math.random(1, 30)
          if server.objects["default/" .. name] and math.random() < 0.4 then
            server:remove(name)
          else
            server:put(name)
          end
          if i % 50 == 0 then rig:turn() end
          if i % 400 == 0 then server:cut() end
          if i % 700 == 0 then
            server:expire()
            server:break_watches()
          end
        end
        local expected, texts = {}, {}
        for key, object in pairs(server.objects) do
          expected[key] = tostring(object.rv)
          texts[#texts + 1] = object.name .. "@" .. object.rv
        end
        table.sort(texts)
        pump(function() return table.concat(inf:store()) == table.concat(texts) end)
        pump(function()
          for key, rv in pairs(expected) do if known[key] ~= rv then return false end end
          for key in pairs(known) do if not expected[key] then return false end end
          return true
        end)
        pump(function() return inf:store_rv() == server.rv end)
      end)

      it("survives listeners that come and go under load", function() -- row 72
        local inf = running()
        local listeners = {}
        for i = 1, 300 do
          server:put("p" .. i % 10)
          if i % 3 == 0 then listeners[#listeners + 1] = inf:listen() end
          if i % 5 == 0 then table.remove(listeners, math.random(#listeners)):remove() end
          rig:turn()
        end
        for _, l in ipairs(listeners) do
          pump(function() return l:synced() end)
          pump(function() return l.log[#l.log]:find("@400", 1, true) end)
        end
      end)

      it("stops promptly while the reflector waits for a server that is away", function() -- row 75
        server.http:refuse()
        C.mw_log_set_level(-1)
        local inf = rig:informer()
        inf:start()
        rig:settle()
        inf:stop()
        pump(function() return inf:stopped() end)
      end)
    end)
  end)
end)
