-- Fan-out to listeners.
jit.off(true, true)
local uv = require "luv"
local kit = require "spec.support.cache_kit"
local unit = require "spec.support.unit"
local C, ffi = unit.C, unit.ffi

describe("processor", function()
  local loop, processor, registered, changes

  before_each(function()
    loop = C.mw_loop_new("spec")
    processor = C.mw_processor_new(loop)
    registered, changes = {}, 0
    local call, ctx = kit.callback("call", function() changes = changes + 1 end)
    C.mw_processor_on_change(processor, call, ctx)
  end)

  local function turn() C.mw_loop_turn(loop, 1) end
  local function pump(condition) kit.pump(turn, condition) end
  -- Long enough for a pump that is posted, and for those it posts in turn.
  local function settle() for _ = 1, 5 do C.mw_loop_turn(loop, 0) end kit.check() end

  local function close()
    local closed = false
    local call, ctx = kit.callback("call", function() closed = true end)
    C.mw_processor_close(processor, call, ctx)
    assert.is_false(closed)
    pump(function() return closed end)
  end

  after_each(function()
    for _, l in ipairs(registered) do C.mw_listener_finished(l.ptr) end
    close()
    C.mw_processor_free(processor)
    C.mw_loop_free(loop)
    for _, l in ipairs(registered) do C.mw_listener_unref(l.ptr) end
    kit.forget_all()
  end)
  unit.no_leaks()

  local function listen(options)
    local l = kit.listener(options)
    l.ptr = C.mw_processor_add(processor, l.config)
    registered[#registered + 1] = l
    return l
  end

  local function distribute(fields) C.mw_processor_distribute(processor,
    ffi.new("struct mw_notification", fields)) end
  local function add(o, initial)
    distribute { type = C.MW_NOTIFY_ADD, object = o, initial = initial or false }
  end
  local function update(old, o) distribute { type = C.MW_NOTIFY_UPDATE, old = old, object = o } end
  local function delete(o, stale)
    distribute { type = C.MW_NOTIFY_DELETE, object = o, stale = stale or false }
  end
  local function synced(l) return C.mw_listener_has_synced(l.ptr) end
  local function stats(l)
    local s = ffi.new("struct mw_listener_stats")
    C.mw_listener_stats(l.ptr, s)
    return s
  end
  local function now() return C.mw_clock_now() end

  local a1, a2, a3, b1
  setup(function()
    a1, a2, a3 = kit.object("a", 1), kit.object("a", 2), kit.object("a", 3)
    b1 = kit.object("b", 1)
  end)
  teardown(function() a1, a2, a3, b1 = nil, nil, nil, nil end)

  describe("delivery", function()
    it("happens from the loop, never inside the call that distributes", function()
      local l = listen()
      add(a1)
      assert.are.same({}, l.log)
      settle()
      assert.are.same({ "add a@1" }, l.log)
    end)

    it("reaches every listener, each in the order of emission", function()
      local one, two = listen(), listen()
      add(a1) update(a1, a2) add(b1) delete(a2) delete(b1, true)
      settle()
      local expected = { "add a@1", "update a@1 a@2", "add b@1", "delete a@2", "delete b@1 stale" }
      assert.are.same(expected, one.log)
      assert.are.same(expected, two.log)
    end)

    it("waits for a listener that is still running and delays nobody else", function()
      local slow, fast = listen { deliver = function() return 1 end }, listen()
      add(a1) update(a1, a2)
      settle()
      assert.are.same({ "add a@1" }, slow.log)
      assert.are.same({ "add a@1", "update a@1 a@2" }, fast.log)
      assert.are.equal(1, tonumber(stats(slow).pending))
      C.mw_listener_finished(slow.ptr)
      assert.are.equal(1, #slow.log)
      settle()
      assert.are.same({ "add a@1", "update a@1 a@2" }, slow.log)
    end)

    it("may be finished before it returned", function()
      local l
      l = listen { deliver = function() C.mw_listener_finished(l.ptr) return 1 end }
      add(a1) update(a1, a2)
      settle()
      assert.are.equal(2, #l.log)
      assert.are.equal(2, tonumber(stats(l).delivered))
    end)

    it("keeps the objects alive until they were delivered", function()
      local l = listen { deliver = function(_, n)
        assert(kit.unpack(n.object):find("temp", 1, true))
      end }
      do add(kit.object("temp", 1)) end
      collectgarbage() collectgarbage()
      settle()
      assert.are.same({ "add temp@1" }, l.log)
    end)

    it("gives way to the loop after a few milliseconds and then goes on", function()
      local timer_ran_at
      local l
      l = listen { deliver = function()
        local until_time = uv.hrtime() + 1e6
        while uv.hrtime() < until_time do end
      end }
      local call, ctx = kit.callback("call", function() timer_ran_at = #l.log end)
      for i = 1, 40 do add(kit.object("p" .. i, i)) end
      local timer = ffi.new("struct mw_timer *[1]", C.mw_timer_start(loop, 0.001, call, ctx))
      pump(function() return #l.log == 40 end)
      assert.is_not_nil(timer[0])
      assert.is_true(timer_ran_at and timer_ran_at < 20, tostring(timer_ran_at))
    end)

    it("takes turns among listeners with long queues", function()
      local order = {}
      for i = 1, 2 do
        listen { deliver = function() order[#order + 1] = i end }
      end
      for i = 1, 100 do add(kit.object("p" .. i, i)) end
      pump(function() return #order == 200 end)
      local first = {}
      for i = 1, 40 do first[order[i]] = true end
      assert.are.same({ true, true }, first)
    end)

    it("tells how much waits and for how long", function()
      local l = listen { deliver = function() return 1 end }
      assert.are.equal(0, tonumber(stats(l).lag_ns))
      add(a1)
      pump(function() return #l.log == 1 end)
      pump(function() return tonumber(stats(l).lag_ns) >= 2e6 end)
      C.mw_listener_finished(l.ptr)
      settle()
      assert.are.equal(0, tonumber(stats(l).lag_ns))
      assert.are.equal(0, tonumber(stats(l).pending))
    end)

    it("can add and remove listeners from inside a delivery", function()
      local inner
      local outer
      outer = listen { deliver = function()
        C.mw_listener_remove(outer.ptr)
        inner = listen()
      end }
      add(a1) update(a1, a2)
      settle()
      assert.are.same({ "add a@1" }, outer.log)
      add(b1)
      settle()
      assert.are.same({ "add b@1" }, inner.log)
      assert.are.equal(1, outer.closes)
    end)
  end)

  describe("same-version updates", function()
    it("reach everyone while no resync check has run", function() -- row 65
      local l = listen()
      update(a1, a1)
      settle()
      assert.are.same({ "update a@1 a@1" }, l.log)
    end)

    it("reach only the listeners that are due once checks run", function() -- row 65
      local due, other = listen { resync = 0.001 }, listen()
      assert.is_true(C.mw_processor_resync_due(processor, now() + 2000000))
      update(a1, a1) update(a1, a2)
      settle()
      assert.are.same({ "update a@1 a@1", "update a@1 a@2" }, due.log)
      assert.are.same({ "update a@1 a@2" }, other.log)
    end)

    it("are due independently for each listener's period", function() -- row 63
      local second = 1000000000
      local start = now()
      local zero, two, three = listen(), listen { resync = 2 }, listen { resync = 3 }
      C.mw_listener_set_resync(two.ptr, 2, start)
      C.mw_listener_set_resync(three.ptr, 3, start)
      local seen = {}
      for tick = 1, 6 do
        seen[tick] = C.mw_processor_resync_due(processor, start + tick * second)
        update(a1, a1)
        settle()
      end
      assert.are.same({ false, true, true, true, false, true }, seen)
      assert.are.equal(0, #zero.log)
      assert.are.equal(3, #two.log)
      assert.are.equal(2, #three.log)
    end)

    it("are due one period after a check, also after one that was late", function() -- row 63
      local second = 1000000000LL
      local start = now()
      C.mw_listener_set_resync(listen().ptr, 2, start)
      assert.is_true(C.mw_processor_resync_due(processor, start + 35 * second / 10))
      assert.is_false(C.mw_processor_resync_due(processor, start + 54 * second / 10))
      assert.is_true(C.mw_processor_resync_due(processor, start + 55 * second / 10))
    end)

    it("are due at the earliest one period after registration", function() -- row 63
      listen { resync = 10 }
      assert.is_false(C.mw_processor_resync_due(processor, now() + 9000000000LL))
      assert.is_true(C.mw_processor_resync_due(processor, now() + 10000000000LL))
    end)
  end)

  describe("synced", function()
    it("needs the informer's sync and every initial add delivered", function() -- rows 69, 77
      local l = listen { deliver = function() return 1 end }
      add(a1, true) add(b1, true)
      settle()
      assert.is_false(synced(l))
      C.mw_processor_set_synced(processor)
      settle()
      assert.is_false(synced(l))
      C.mw_listener_finished(l.ptr)
      settle()
      assert.is_false(synced(l))
      assert.are.equal(0, changes)
      C.mw_listener_finished(l.ptr)
      assert.is_true(synced(l))
      settle()
      assert.are.equal(1, changes)
    end)

    it("is never true before the informer's, whatever was delivered", function() -- row 77
      local l = listen()
      add(a1, true)
      settle()
      assert.are.equal(1, #l.log)
      assert.is_false(synced(l))
      C.mw_processor_set_synced(processor)
      assert.is_true(synced(l))
    end)

    it("comes at once with an empty store, and is told from the loop", function() -- row 77
      C.mw_processor_set_synced(processor)
      local l = listen()
      assert.is_true(synced(l))
      assert.are.equal(0, changes)
      settle()
      assert.are.equal(1, changes)
    end)

    it("of a late listener waits for its replay", function() -- row 69
      C.mw_processor_set_synced(processor)
      settle()
      local l = listen()
      C.mw_listener_replay(l.ptr, a1)
      C.mw_listener_replay(l.ptr, b1)
      assert.is_false(synced(l))
      add(kit.object("c", 1))
      settle()
      assert.is_true(synced(l))
      assert.are.same({ "add a@1 initial", "add b@1 initial", "add c@1" }, l.log)
    end)

    it("counts a delivery that failed and goes on with the next", function() -- row 73
      local failing, other = listen { deliver = function() return 0 end }, listen()
      add(a1, true) update(a1, a2)
      C.mw_processor_set_synced(processor)
      settle()
      assert.is_true(synced(failing))
      assert.are.equal(2, #failing.log)
      assert.are.equal(2, #other.log)
    end)

    it("counts what the filter refused", function() -- row 77
      local l = listen { filter = function() return false end }
      add(a1, true)
      C.mw_processor_set_synced(processor)
      settle()
      assert.is_true(synced(l))
      assert.are.same({}, l.log)
    end)

    it("stays true when updates come in later", function() -- row 77
      local l = listen { deliver = function() return 1 end }
      C.mw_processor_set_synced(processor)
      settle()
      add(a1)
      settle()
      assert.is_true(synced(l))
    end)
  end)

  describe("filter", function()
    local function passes(o) return kit.unpack(o):find('"app":"web"', 1, true) ~= nil end
    local web1, web2 = nil, nil
    local db1, db2 = nil, nil
    setup(function()
      web1, web2 = kit.object("a", 1), kit.object("a", 2)
      db1, db2 = kit.object("a", 1, { app = "db" }), kit.object("a", 2, { app = "db" })
    end)
    teardown(function() web1, web2, db1, db2 = nil, nil, nil, nil end)

    it("makes adds and deletes of transitions and refuses the rest", function() -- row 80
      local l = listen { filter = passes }
      add(web1) add(db1)
      update(web1, web2) update(db1, web2) update(web1, db2) update(db1, db2)
      delete(web2) delete(db2) delete(web1, true)
      settle()
      assert.are.same({ "add a@1", "update a@1 a@2", "add a@2", "delete a@1", "delete a@2",
        "delete a@1 stale" }, l.log)
    end)

    it("never calls an add that a transition made initial", function() -- row 80
      local l = listen { filter = passes }
      distribute { type = C.MW_NOTIFY_UPDATE, old = db1, object = web2, initial = true }
      settle()
      assert.are.same({ "add a@2" }, l.log)
    end)

    it("sees the state that was stored when updates before a delete were merged away", function()
      local l = listen { filter = passes }
      distribute { type = C.MW_NOTIFY_DELETE, old = web1, object = db2 }
      distribute { type = C.MW_NOTIFY_DELETE, old = db1, object = web2 }
      distribute { type = C.MW_NOTIFY_DELETE, old = db1, object = db2 }
      settle()
      assert.are.same({ "delete a@1", "delete a@2" }, l.log)
    end)

    it("sees the state that the listener knew when its queue was coalesced", function()
      local l = listen { filter = passes, bound = 1 }
      update(web1, db2) add(b1) delete(db2)
      settle()
      assert.are.same({ "delete a@1", "add b@1" }, l.log)
    end)
  end)

  describe("past its bound", function()
    it("merges per key: newest add, first old to last new, deletes kept", function()
      local l = listen { bound = 2 }
      local c1, c2 = kit.object("c", 1), kit.object("c", 2)
      local d1, d2, d3 = kit.object("d", 1), kit.object("d", 2), kit.object("d", 3)
      add(a1) update(a1, a2) update(a2, a3)
      update(b1, kit.object("b", 2)) update(kit.object("b", 2), kit.object("b", 3))
      add(c1) delete(c2)
      delete(d1) add(d2) update(d2, d3)
      settle()
      assert.are.same({ "add a@3", "update b@1 b@3", "delete c@2", "delete d@1", "add d@3" }, l.log)
      assert.are.equal(5, tonumber(stats(l).coalesced))
    end)

    it("forgets what came and went behind a queued delete", function()
      local l = listen { bound = 1 }
      delete(a1) add(b1) add(a2) delete(a2) add(a3) delete(a3)
      settle()
      assert.are.same({ "delete a@1", "add b@1" }, l.log)
    end)

    it("does not count the adds of the initial list", function()
      local l = listen { bound = 2 }
      for i = 1, 10 do add(kit.object("p" .. i, i), true) end
      update(a1, a2) update(a2, a3)
      settle()
      assert.are.equal(12, #l.log)
      assert.are.equal(0, tonumber(stats(l).coalesced))
    end)

    it("keeps an initial add initial when an update is merged into it", function()
      local l = listen { bound = 1 }
      add(a1, true) add(b1) add(kit.object("c", 1)) update(a1, a2)
      C.mw_processor_set_synced(processor)
      assert.is_false(synced(l))
      settle()
      assert.are.same({ "add a@2 initial", "add b@1", "add c@1" }, l.log)
      assert.is_true(synced(l))
    end)

    it("is synced after the delete that an initial add was merged into", function()
      local held = true
      local l
      l = listen { bound = 1, deliver = function() return held and 1 or 0 end }
      add(b1) add(kit.object("c", 1)) add(kit.object("d", 1))
      C.mw_listener_replay(l.ptr, a1)
      delete(a2)
      C.mw_processor_set_synced(processor)
      settle()
      assert.is_false(synced(l))
      held = false
      C.mw_listener_finished(l.ptr)
      settle()
      assert.are.same({ "add b@1", "add c@1", "add d@1", "delete a@2" }, l.log)
      assert.is_true(synced(l))
    end)

    it("is synced without an initial add that came and went behind a delete", function()
      local l = listen { bound = 1 }
      delete(a1) add(b1)
      C.mw_listener_replay(l.ptr, a2)
      add(kit.object("c", 1))
      delete(a2)
      C.mw_processor_set_synced(processor)
      settle()
      assert.are.same({ "delete a@1", "add b@1", "add c@1" }, l.log)
      assert.is_true(synced(l))
    end)

    it("goes back to plain order when it has shrunk to half", function()
      local l = listen { bound = 2 }
      add(a1) update(a1, a2) update(a2, a3)
      settle()
      assert.are.same({ "add a@3" }, l.log)
      update(a1, a2) update(a2, a3)
      settle()
      assert.are.same({ "add a@3", "update a@1 a@2", "update a@2 a@3" }, l.log)
    end)

    it("lets a listener see only legal transitions, for any sequence", function() -- row 54
      math.randomseed(11)
      for bound = 1, 6 do
        local known = {}
        local l
        l = listen { bound = bound, deliver = function(_, n)
          local key, kind = kit.key(n.object), tonumber(n.type)
          if kind == C.MW_NOTIFY_ADD then
            assert(known[key] == nil, "added twice")
            known[key] = kit.rv(n.object)
          elseif kind == C.MW_NOTIFY_UPDATE then
            assert.are.equal(known[key], kit.rv(n.old))
            known[key] = kit.rv(n.object)
          else
            known[key] = nil
          end
        end }
        local model, version = {}, 0
        for _ = 1, 300 do
          version = version + 1
          local name = "p" .. math.random(1, 5)
          local old = model[name]
          if old and math.random() < 0.4 then
            delete(old)
            model[name] = nil
          else
            local new = kit.object(name, version)
            if old then update(old, new) else add(new) end
            model[name] = new
          end
          if math.random() < 0.05 then settle() end
        end
        settle()
        local expected = {}
        for name, o in pairs(model) do expected["default/" .. name] = kit.rv(o) end
        assert.are.same(expected, known)
        C.mw_listener_remove(l.ptr)
        settle()
      end
    end)
  end)

  describe("a line", function()
    local LINE = 7
    local a4
    setup(function() a4 = kit.object("a", 4) end)
    teardown(function() a4 = nil end)

    -- A listener at this place; its deliveries last until it is finished when it is `slow`.
    local function at(place, options)
      options = options or {}
      return listen { line = options.line or LINE, place = place, bound = options.bound,
        deliver = options.slow and function() return 1 end or nil }
    end

    -- The first of the line, with an event under way and another behind it, takes no more.
    local function slow_one()
      local l = at(1, { slow = true })
      add(a1) update(a1, a2)
      settle()
      return l
    end

    local function finish(l)
      C.mw_listener_finished(l.ptr)
      settle()
    end

    it("is told in order: who comes next begins when those before are closed", function()
      local one = slow_one()
      local two = at(2)
      C.mw_listener_replay(two.ptr, a2)
      C.mw_listener_drain(one.ptr)
      update(a2, a3)
      C.mw_processor_set_synced(processor)
      settle()
      assert.are.same({}, two.log)
      assert.is_false(synced(two))
      finish(one)
      assert.are.same({ "add a@1", "update a@1 a@2" }, one.log)
      assert.are.same({}, two.log)
      finish(one)
      assert.are.equal(1, one.closes)
      assert.are.same({ "add a@2 initial", "update a@2 a@3" }, two.log)
      assert.is_true(synced(two))
      assert.are.same({}, two.lates)
    end)

    it("has no order among those of one place", function()
      local slow, other = slow_one(), at(1)
      update(a2, a3)
      C.mw_listener_drain(slow.ptr)
      C.mw_listener_drain(other.ptr)
      settle()
      assert.are.same({ "update a@2 a@3" }, other.log)
      assert.are.equal(1, other.closes)
    end)

    it("delays no other line, and nobody who is in none", function()
      local one = slow_one()
      local other, none = at(2, { line = LINE + 1 }), listen { place = 2 }
      C.mw_listener_drain(one.ptr)
      update(a2, a3)
      settle()
      assert.are.same({ "update a@2 a@3" }, other.log)
      assert.are.same({ "update a@2 a@3" }, none.log)
    end)

    it("goes on beside those that do not close, after a second, and tells so once", function()
      local one = slow_one()
      local since = uv.hrtime()
      local two, twin = at(2), at(2)
      C.mw_listener_drain(one.ptr)
      update(a2, a3)
      pump(function() return #two.log > 0 and #twin.log > 0 end)
      local took = (uv.hrtime() - since) / 1e9
      assert.is_true(took > 0.99 and took < 3, tostring(took))
      assert.are.same({ 2 }, #two.lates > 0 and two.lates or twin.lates)
      assert.are.equal(1, #two.lates + #twin.lates)
      local third = at(2) -- this place has waited
      update(a3, a4)
      settle()
      assert.are.same({ "update a@2 a@3", "update a@3 a@4" }, two.log)
      assert.are.same({ "update a@3 a@4" }, third.log)
      finish(one)
      finish(one)
      assert.are.same({ "add a@1", "update a@1 a@2" }, one.log)
      assert.are.equal(1, one.closes)
    end)

    it("coalesces before one that is held as before any other", function()
      local one = slow_one()
      local two = at(2, { bound = 1 })
      C.mw_listener_replay(two.ptr, a1)
      C.mw_listener_drain(one.ptr)
      add(b1) update(a1, a2) update(a2, a3) update(a3, a4)
      settle()
      assert.are.equal(2, tonumber(stats(two).pending))
      finish(one)
      finish(one)
      assert.are.same({ "add a@4 initial", "add b@1" }, two.log)
      assert.are.equal(3, tonumber(stats(two).coalesced))
    end)

    it("keeps what is queued for one that drains while it is held", function()
      local one = slow_one()
      local two = at(2)
      C.mw_listener_drain(one.ptr)
      update(a2, a3)
      local three = at(3)
      C.mw_listener_drain(two.ptr)
      update(a3, a4)
      settle()
      finish(one)
      assert.are.same({}, two.log)
      finish(one)
      assert.are.same({ "update a@2 a@3" }, two.log)
      assert.are.same({ "update a@3 a@4" }, three.log)
    end)

    it("lets go at once of one that is removed while it is held, or has nothing to drain", function()
      local one = slow_one()
      local two, empty = at(2), at(2)
      C.mw_listener_drain(empty.ptr)
      C.mw_listener_drain(one.ptr)
      update(a2, a3)
      C.mw_listener_remove(two.ptr)
      settle()
      assert.are.equal(1, two.closes)
      assert.are.equal(1, empty.closes)
      assert.are.same({}, two.log)
      local three = at(2)
      update(a3, a4)
      settle()
      assert.are.same({}, three.log) -- its place has not waited yet
    end)
  end)

  describe("removal", function()
    it("drops what is queued, closes from the loop, may be repeated", function() -- rows 68, 70
      local l = listen()
      add(a1)
      C.mw_listener_remove(l.ptr)
      C.mw_listener_remove(l.ptr)
      update(a1, a2)
      assert.are.equal(0, l.closes)
      settle()
      assert.are.same({}, l.log)
      assert.are.equal(1, l.closes)
      C.mw_listener_remove(l.ptr)
      settle()
      assert.are.equal(1, l.closes)
    end)

    it("leaves a second registration of the same handler alone", function() -- row 68
      local one, two = listen(), listen()
      C.mw_listener_remove(one.ptr)
      add(a1)
      settle()
      assert.are.same({}, one.log)
      assert.are.same({ "add a@1" }, two.log)
    end)

    it("does not wait for a running delivery, closing does", function() -- row 74
      local l = listen { deliver = function() return 1 end }
      add(a1) update(a1, a2)
      settle()
      C.mw_listener_remove(l.ptr)
      settle()
      assert.are.equal(0, l.closes)
      C.mw_listener_finished(l.ptr)
      assert.are.equal(0, l.closes)
      settle()
      assert.are.equal(1, l.closes)
      assert.are.same({ "add a@1" }, l.log)
    end)

    it("closes a listener that was never called", function() -- row 74
      local l = listen()
      C.mw_listener_remove(l.ptr)
      settle()
      assert.are.equal(1, l.closes)
      assert.is_false(synced(l))
    end)

    it("may be the last that is heard of a listener", function()
      local l = listen()
      table.remove(registered)
      add(a1)
      C.mw_listener_remove(l.ptr)
      C.mw_listener_unref(l.ptr)
      settle()
      assert.are.equal(1, l.closes)
    end)

    it("of all is told once, after the last of them has ended", function() -- row 75
      local l, other = listen { deliver = function() return 1 end }, listen()
      add(a1)
      settle()
      local done = 0
      local call, ctx = kit.callback("call", function() done = done + 1 end)
      C.mw_processor_close(processor, call, ctx)
      settle()
      assert.are.equal(0, done)
      assert.are.equal(1, other.closes)
      C.mw_listener_finished(l.ptr)
      settle()
      assert.are.equal(1, done)
    end)

    it("under load loses and repeats nothing for those who stay", function() -- row 72
      math.randomseed(3)
      local steady = listen()
      local coming = {}
      for i = 1, 300 do
        if math.random() < 0.5 then coming[#coming + 1] = listen() end
        if #coming > 0 and math.random() < 0.4 then
          local gone = table.remove(coming, math.random(#coming))
          C.mw_listener_remove(gone.ptr)
          gone.length = #gone.log
        end
        add(kit.object("p" .. i, i))
        if i % 7 == 0 then turn() end
      end
      pump(function() return #steady.log == 300 end)
      for i = 1, 300 do assert.are.equal(("add p%d@%d"):format(i, i), steady.log[i]) end
      for _, l in ipairs(registered) do
        if l.length then assert.are.equal(l.length, #l.log) end
      end
    end)
  end)
end)
