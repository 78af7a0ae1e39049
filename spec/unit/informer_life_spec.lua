-- How a shared informer fails, recovers and ends; the last block has the ingest loop on its own thread.
jit.off(true, true)
local captured = require "spec.support.captured"
local informer_rig = require "spec.support.informer_rig"
local kit = require "spec.support.cache_kit"
local unit = require "spec.support.unit"
local C, ffi = unit.C, unit.ffi

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
    local function heard(l, count) return rig:heard(l, count) end
    local function ingest_until(condition) rig:ingest_until(condition) end
    local function running(options) return rig:running(options) end

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

      it("stay there while what the store has is resynced", function()
        server:put("a")
        local inf = running { resync = 0.02 }
        local l = inf:listen()
        C.mw_log_set_level(-1)
        server:put("b")  -- so that the watch was a good one
        pump(function() return inf:get("b") end)
        server.http:refuse()
        pump(function() return inf:stats().reflector.decisions[C.MW_DECISION_WATCH_OPEN_WAIT] >= 1 end)
        pump(function() return ffi.string(inf:stats().last_error) ~= "" end)
        local before = #l.log
        pump(function()
          assert.matches("connection refused", ffi.string(inf:stats().last_error))
          return #l.log >= before + 6
        end)
        server.http:listen()
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

      it("of a server that was not reached do not read like its answer", function()
        C.mw_endpoint_unref(rig.endpoint)
        rig.endpoint = unit.endpoint("http://api.invalid")
        C.mw_log_set_level(C.MW_LOG_INFO)
        local inf = rig:informer()
        local told = 0
        inf:set_error_handler(function() told = told + 1 end)
        local text = captured(function()
          inf:start()
          pump(function() return told >= 2 end)
        end)
        local _, lines = text:gsub("streaming list failed, listing instead[^\n]*could not resolve host", "")
        assert.are.equal(1, lines)
        assert.not_matches("refused", text)
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
