-- The work queue on a clock of its own: what is handed out, when, in which order.
jit.off(true, true)
local queue_kit = require "spec.support.queue_kit"
local unit = require "spec.support.unit"
local C, ffi = unit.C, unit.ffi

describe("a work queue", function()
  local rig

  after_each(function() rig:close() end)
  unit.no_leaks()
  before_each(function() rig = queue_kit.new() end)

  -- Another queue in place of the first.
  local function with(options)
    rig:close()
    rig = queue_kit.new(options)
  end

  describe("hands out", function()
    it("keys in the order in which they came", function() -- row 84; priorityqueue: order
      for _, key in ipairs { "c", "a", "b" } do rig:add(key) end
      assert.are.equal(3, rig:len())
      assert.are.equal("c a b", rig:drain())
      assert.is_nil(rig:take())
    end)

    it("a key once, however often it was added", function() -- row 85; priorityqueue: de-dup
      for _ = 1, 5 do rig:add("a") rig:add("b") end
      assert.are.equal(2, rig:len())
      assert.are.equal("a b", rig:drain())
      assert.are.equal(2, rig:stats().adds)
    end)

    it("keys that differ in any byte apart, and those with zeros whole", function()
      local keys = { "a", "a\0", "a\0b", ("x"):rep(C.MW_WORKQUEUE_KEY_MAX) }
      for _, key in ipairs(keys) do assert.are.equal(0, rig:add(key)) end
      for _, key in ipairs(keys) do assert.are.equal(key, rig:take().key) end
      for _, key in ipairs(keys) do assert.are.equal(0, rig:done(key)) end
      assert.are.equal(0, rig:stats().keys)
    end)

    it("nothing else to anybody while a key is handed out, and it again when it is done", function() -- row 85
      rig:add("a")
      assert.are.equal("a", rig:take().key)
      for _ = 1, 3 do rig:add("a") end
      assert.are.equal(0, rig:len())
      assert.is_nil(rig:take()) -- priorityqueue: locked item not returned
      assert.are.equal(1, rig:stats().locked)
      assert.are.equal(0, rig:done("a"))
      assert.are.equal("a", rig:take().key) -- priorityqueue: returned on unlock
      rig:done("a")
      assert.is_nil(rig:take())
      assert.are.equal(0, rig:stats().keys)
    end)

    it("a key again that was added after it was done", function() -- row 85
      rig:add("a")
      assert.are.equal("a", rig:drain())
      rig:add("a")
      assert.are.equal("a", rig:drain())
    end)

    it("a key that was added while it was handed out behind those that are ready", function() -- row 85
      rig:add("a")
      rig:take()
      rig:add("a")
      rig:add("b")
      rig:done("a")
      assert.are.equal("b a", rig:drain())
    end)

    it("only what the one who is done with it holds", function()
      local other = C.mw_workqueue_join(rig.queue, nil, nil)
      rig:add("a")
      rig:take()
      assert.are.equal(C.MW_ESTATE, rig:done("a", other))
      assert.are.equal(C.MW_ESTATE, rig:done("b"))
      assert.are.equal(0, rig:done("a"))
      assert.are.equal(C.MW_ESTATE, rig:done("a"))
      C.mw_workqueue_leave(other)
    end)

    it("again what someone left without being done", function()
      local other = C.mw_workqueue_join(rig.queue, nil, nil)
      for _, key in ipairs { "a", "b", "c" } do rig:add(key, { priority = 3 }) end
      assert.are.equal("a", rig:take(other).key)
      assert.are.equal("b", rig:take(other).key)
      rig:add("b", { priority = 4 })
      C.mw_workqueue_leave(other)
      local item = rig:take()
      assert.are.same({ "b", 4 }, { item.key, item.priority })
      assert.are.equal("c", rig:take().key)
      item = rig:take()
      assert.are.same({ "a", 3 }, { item.key, item.priority })
    end)
  end)

  describe("orders by priority", function()
    it("highest first, and within one, first come, first served", function()
      rig:add("low", { priority = -100 })
      rig:add("a")
      rig:add("high", { priority = 7 })
      rig:add("b")
      rig:add("high 2", { priority = 7 })
      assert.are.equal("high high 2 a b low", rig:drain())
    end)

    it("and keeps the highest that a key was added with", function() -- priorityqueue: highest priority kept
      rig:add("a")
      rig:add("b", { priority = 1 })
      rig:add("a", { priority = 2 })
      local item = rig:take()
      assert.are.same({ "a", 2 }, { item.key, item.priority })
    end)

    it("and never lowers it", function() -- priorityqueue: never lowered
      rig:add("a", { priority = 2 })
      rig:add("b", { priority = 1 })
      rig:add("a")
      rig:add("a", { priority = -5 })
      assert.are.equal(2, rig:take().priority)
      -- The next run has a priority of its own.
      rig:add("a", { priority = -5 })
      rig:done("a")
      assert.are.equal("b", rig:take().key)
      assert.are.equal(-5, rig:take().priority)
    end)

    it("and puts a key that rises behind those that were there", function() -- priorityqueue: FIFO within a raised
      rig:add("x")
      rig:add("a", { priority = 1 })
      rig:add("x", { priority = 1 })
      rig:add("b", { priority = 1 })
      assert.are.equal("a x b", rig:drain())
    end)

    it("also where the key waits for its time, or is handed out", function()
      rig:add("a", { after = 5 })
      rig:add("a", { after = 9, priority = 3 })
      rig:add("b")
      rig:take()
      rig:add("b")
      rig:add("b", { priority = 2 })
      rig:pass(5)
      rig:add("c", { priority = 1 })
      rig:done("b")
      assert.are.equal("a b c", rig:drain())
    end)

    it("within the range that there is", function()
      rig:add("a", { priority = 1000000 })
      rig:add("b", { priority = -1000000 })
      assert.are.equal(C.MW_WORKQUEUE_PRIORITY_MAX, rig:take().priority)
      assert.are.equal(-C.MW_WORKQUEUE_PRIORITY_MAX, rig:take().priority)
    end)

    it("and still lets every key have its turn", function()
      rig:add("patient", { priority = -100 })
      rig:pass(0.001)
      local turn
      for i = 1, 100 do
        rig:add("eager " .. i % 3, { priority = 100 })
        rig:add("eager " .. (i + 1) % 3, { priority = 100 })
        local item = rig:take()
        if item.key == "patient" then
          assert.is_nil(turn)
          turn = i
        end
        rig:done(item.key)
      end
      assert.are.equal(C.MW_WORKQUEUE_FAIR, turn)
    end)
  end)

  describe("with delays", function()
    it("hands out a key when its time has come, not before", function() -- row 87
      rig:add("a", { after = 0.05 })
      assert.are.equal(0, rig:len())
      assert.are.equal(1, rig:stats().waiting)
      rig:pass(0.0499)
      assert.is_nil(rig:take())
      rig:pass(0.0001)
      assert.are.equal("a", rig:drain())
      rig:pass(10)
      assert.is_nil(rig:take())
    end)

    it("keeps the earliest time of a key", function() -- row 87; priorityqueue: lowest After kept
      rig:add("a", { after = 0.05 })
      rig:add("a", { after = 0.1 })
      rig:add("b", { after = 1 })
      rig:add("b", { after = 0.02 })
      rig:pass(0.02)
      assert.are.equal("b", rig:drain())
      rig:pass(0.03)
      assert.are.equal("a", rig:drain())
      rig:pass(10)
      assert.is_nil(rig:take())
    end)

    it("makes a key ready that is added for now", function()
      rig:add("a", { after = 5 })
      rig:add("a")
      assert.are.equal("a", rig:drain())
      rig:pass(5)
      assert.is_nil(rig:take())
      -- And one that is ready stays so.
      rig:add("a")
      rig:add("a", { after = 5 })
      assert.are.equal("a", rig:drain())
      rig:pass(5)
      assert.is_nil(rig:take())
    end)

    it("takes no wait and less than none for now", function()
      rig:add("a", { after = 0 })
      rig:add("b", { after = -3 })
      assert.are.equal("a b", rig:drain())
      assert.are.equal(0, rig:stats().retries)
    end)

    it("makes keys ready in the order of their times", function() -- row 87
      for i, after in ipairs { 3, 1, 4, 2, 1 } do rig:add("k" .. i, { after = after }) end
      rig:add("now")
      rig:pass(5)
      assert.are.equal("now k2 k5 k4 k1 k3", rig:drain())
    end)

    it("keeps that order also where thousands are due at once", function()
      local wanted = {}
      for i = 1, 3000 do
        wanted[3001 - i] = "k" .. i
        rig:add("k" .. i, { after = 4000 - i })
      end
      rig:pass(4000)
      assert.are.equal(table.concat(wanted, " "), rig:drain())
    end)

    it("lets a key wait that is handed out, and hands it out when both are over", function()
      rig:add("a")
      rig:take()
      rig:add("a", { after = 1 })
      rig:pass(2)
      assert.is_nil(rig:take())
      rig:done("a")
      assert.are.equal("a", rig:drain())
      rig:add("a")
      rig:take()
      rig:add("a", { after = 1 })
      rig:done("a")
      assert.is_nil(rig:take())
      rig:pass(1)
      assert.are.equal("a", rig:drain())
      assert.are.equal(0, rig:stats().keys)
    end)

    it("wakes by itself for the next key, on the loop's own time", function()
      -- The real clock: what is due is found by the timer alone.
      local config = queue_kit.config()
      config.clock = nil
      local loop = C.mw_loop_new("spec")
      local queue = C.mw_workqueue_new(loop, nil, config)
      local user = C.mw_workqueue_join(queue, nil, nil)
      local got = {}
      local cb = ffi.cast("void (*)(struct mw_workqueue_waiter *, const struct mw_workqueue_item *)",
        function(_, item) got[#got + 1] = unit.str(item.key) end)
      local waiters = { ffi.new("struct mw_workqueue_waiter"), ffi.new("struct mw_workqueue_waiter") }
      for _, w in ipairs(waiters) do C.mw_workqueue_wait(user, w, cb) end
      local start = C.mw_clock_now()
      local how = ffi.new("struct mw_workqueue_add", { after = 0.03 })
      assert.are.equal(0, C.mw_workqueue_add(queue, unit.slice("late"), how))
      how.after = 0.01
      assert.are.equal(0, C.mw_workqueue_add(queue, unit.slice("early"), how))
      while #got < 2 and C.mw_clock_now() - start < 5000000000ULL do C.mw_loop_turn(loop, 100) end
      assert.are.same({ "early", "late" }, got)
      assert.is_true(C.mw_clock_now() - start >= 29000000ULL)
      C.mw_workqueue_leave(user)
      C.mw_workqueue_unref(queue)
      C.mw_loop_free(loop)
      cb:free()
    end)
  end)

  describe("with limits", function()
    it("waits longer with each failure, until the key is forgotten", function() -- row 89
      with { base_delay = 1, max_delay = 4 }
      for i, delay in ipairs { 1, 2, 4, 4 } do
        rig:add("a", { rate_limited = true })
        assert.are.equal(i, rig:requeues("a"))
        rig:pass(delay - 0.001)
        assert.is_nil(rig:take())
        rig:pass(0.001)
        local item = rig:take()
        assert.are.same({ "a", i }, { item.key, item.requeues })
        rig:done("a")
      end
      assert.are.equal(1, rig:stats().failing)
      assert.are.equal(1, rig:stats().keys)
      assert.are.equal(4, rig:stats().retries)
      assert.are.equal(0, rig:requeues("b"))
      rig:forget("a")
      rig:forget("unknown")
      assert.are.equal(0, rig:requeues("a"))
      assert.are.equal(0, rig:stats().keys)
      rig:add("a", { rate_limited = true })
      rig:pass(1)
      assert.are.equal("a", rig:drain())
    end)

    it("still needs the done of a key that was forgotten", function() -- row 89
      rig:add("a", { rate_limited = true })
      rig:pass(1)
      rig:take()
      rig:forget("a")
      rig:add("a")
      assert.is_nil(rig:take())
      assert.are.equal(0, rig:done("a"))
      assert.are.equal("a", rig:drain())
    end)

    it("takes the shorter of a wait that was asked for and that of the limit", function()
      with { base_delay = 2, max_delay = 2 }
      rig:add("a", { rate_limited = true, after = 1 })
      rig:add("b", { rate_limited = true, after = 3 })
      rig:pass(1)
      assert.are.equal("a", rig:drain())
      rig:pass(1)
      assert.are.equal("b", rig:drain())
      assert.are.same({ 1, 1 }, { rig:requeues("a"), rig:requeues("b") })
    end)

    it("can have other ones from one moment to the next", function()
      with { base_delay = 8, max_delay = 8, qps = 1, burst = 1 }
      C.mw_workqueue_set_limits(rig.queue, queue_kit.limits { base_delay = 1, max_delay = 1 })
      rig:add("a", { rate_limited = true })
      rig:add("b", { rate_limited = true })
      rig:pass(1)
      assert.are.equal("a b", rig:drain())
    end)
  end)

  describe("with reasons", function()
    it("collects them until the key is handed out", function()
      rig:add("a", { reason = "pod added" })
      rig:add("a", { reason = "resync" })
      rig:add("a", { reason = "pod added" })
      rig:add("b", { reason = "resync" })
      assert.are.same({ "pod added", "resync" }, rig:take().reasons)
      assert.are.same({ "resync" }, rig:take().reasons)
      rig:add("a", { reason = "secret changed" })
      rig:done("a")
      assert.are.same({ "secret changed" }, rig:take().reasons)
    end)

    it("calls those beyond the last place other, and cuts long ones", function()
      for i = 1, 100 do rig:add("a", { reason = "reason " .. i }) end
      local reasons = rig:take().reasons
      assert.are.equal(C.MW_WORKQUEUE_REASONS, #reasons)
      assert.are.equal("reason 63", reasons[63])
      assert.are.equal("other", reasons[64])
      with()
      rig:add("a", { reason = ("x"):rep(1000) })
      rig:add("a", { reason = ("x"):rep(2000) })
      assert.are.same({ ("x"):rep(C.MW_WORKQUEUE_REASON_MAX) }, rig:take().reasons)
    end)
  end)

  it("knows how long a key was ready, counted from its first add", function()
    rig:add("a", { after = 5 })
    rig:pass(7)
    rig:len() -- it became ready when somebody looked
    rig:pass(1)
    rig:add("a")
    assert.are.equal(1, rig:take().waited)
    rig:add("a")
    rig:pass(2)
    rig:done("a")
    rig:pass(3)
    assert.are.equal(5, rig:take().waited)
  end)

  it("refuses keys that are too long, and more than it may hold", function()
    with { keys_max = 2 }
    assert.are.equal(C.MW_ELIMIT, rig:add(("x"):rep(C.MW_WORKQUEUE_KEY_MAX + 1)))
    assert.are.equal(0, rig:add("a"))
    assert.are.equal(0, rig:add("b", { after = 1 }))
    assert.are.equal(C.MW_ELIMIT, rig:add("c"))
    assert.are.equal(0, rig:add("a"))
    assert.are.equal("a", rig:drain())
    assert.are.equal(0, rig:add("c"))
    assert.are.equal("c", rig:drain())
  end)

  describe("that is shut down", function()
    it("hands out what is ready, ignores what is added, drops what waits", function() -- rows 84, 86
      rig:add("a")
      rig:add("b", { after = 1 })
      C.mw_workqueue_shut_down(rig.queue)
      C.mw_workqueue_shut_down(rig.queue)
      assert.is_true(C.mw_workqueue_is_shut_down(rig.queue))
      assert.are.equal(0, rig:add("c"))
      rig:add("d", { after = 1 })
      rig:pass(2)
      assert.are.equal("a", rig:drain())
      assert.are.equal(0, rig:stats().keys)
    end)

    it("is drained when nothing is ready and nothing handed out", function() -- row 86
      rig:add("a")
      rig:add("b")
      rig:take()
      rig:add("a")
      assert.is_false(C.mw_workqueue_is_drained(rig.queue))
      C.mw_workqueue_shut_down(rig.queue)
      assert.is_false(C.mw_workqueue_is_drained(rig.queue)) -- one is handed out, two are to be run
      rig:done("a")
      rig:take()
      assert.is_false(C.mw_workqueue_is_drained(rig.queue)) -- one is handed out, one is ready
      rig:done("b")
      assert.is_false(C.mw_workqueue_is_drained(rig.queue)) -- nothing is handed out, one is ready
      assert.are.equal("a", rig:drain())
      assert.is_true(C.mw_workqueue_is_drained(rig.queue))
    end)

    it("drops what its last user left undone", function()
      rig:add("a")
      local other = C.mw_workqueue_join(rig.queue, nil, nil)
      rig:take(other)
      C.mw_workqueue_shut_down(rig.queue)
      C.mw_workqueue_leave(other)
      assert.is_nil(rig:take())
      assert.is_true(C.mw_workqueue_is_drained(rig.queue))
    end)
  end)

  describe("has waiters that", function()
    local got, cb, waiters

    before_each(function()
      got, waiters = {}, {}
      cb = ffi.cast("void (*)(struct mw_workqueue_waiter *, const struct mw_workqueue_item *)",
        function(w, item)
          for i, waiter in ipairs(waiters) do
            if waiter == w then got[#got + 1] = i .. ":" .. (item ~= nil and unit.str(item.key) or "end") end
          end
        end)
    end)
    after_each(function() cb:free() end)

    local function wait(user)
      waiters[#waiters + 1] = ffi.new("struct mw_workqueue_waiter")
      C.mw_workqueue_wait(user or rig.user, waiters[#waiters], cb)
    end

    it("are served in the order of waiting, from the loop", function()
      wait()
      wait()
      assert.is_true(C.mw_workqueue_has_waiters(rig.queue))
      rig:add("a")
      rig:add("b")
      rig:add("c")
      assert.are.same({}, got)
      rig:settle()
      assert.are.same({ "1:a", "2:b" }, got)
      assert.is_false(C.mw_workqueue_has_waiters(rig.queue))
      wait()
      assert.are.same({ "1:a", "2:b" }, got)
      rig:settle()
      assert.are.same({ "1:a", "2:b", "3:c" }, got)
    end)

    it("lose nothing when they give up", function()
      wait()
      wait()
      rig:add("a")
      C.mw_workqueue_unwait(waiters[1])
      C.mw_workqueue_unwait(waiters[1])
      rig:settle()
      assert.are.same({ "2:a" }, got)
      wait()
      rig:add("b")
      C.mw_workqueue_unwait(waiters[3])
      rig:settle()
      assert.are.equal(1, rig:len())
    end)

    it("are told when the queue shuts down and nothing is left to come", function() -- priorityqueue: Get on shutdown
      rig:add("a")
      rig:take()
      rig:add("a")
      wait()
      wait()
      C.mw_workqueue_shut_down(rig.queue)
      rig:settle()
      assert.are.same({}, got) -- one more run is to come
      rig:done("a")
      rig:settle()
      assert.are.same({ "1:a", "2:end" }, got)
      wait()
      rig:settle()
      assert.are.same({ "1:a", "2:end", "3:end" }, got)
    end)

    it("are told when their own user is closed, and nobody else", function()
      local other = C.mw_workqueue_join(rig.queue, nil, nil)
      wait(other)
      wait()
      wait(other)
      C.mw_workqueue_close(other)
      C.mw_workqueue_close(other)
      rig:settle()
      assert.are.same({ "1:end", "3:end" }, got)
      wait(other)
      rig:add("a")
      rig:settle()
      table.sort(got)
      assert.are.same({ "1:end", "2:a", "3:end", "4:end" }, got)
      assert.is_nil(rig:take(other))
      C.mw_workqueue_leave(other)
    end)
  end)

  it("costs each key the same however many there are, also where it is let go of with all of them", function()
    local config = queue_kit.config()
    local function seconds(count)
      local queue = C.mw_workqueue_new(rig.loop, nil, config)
      local how = ffi.new("struct mw_workqueue_add")
      local start = os.clock()
      for i = 1, count do
        how.after = i % 2 == 0 and count - i or 0
        assert(C.mw_workqueue_add(queue, unit.slice("key " .. i), how) == 0)
      end
      C.mw_workqueue_unref(queue)
      return os.clock() - start
    end
    seconds(1000)
    local small, large = seconds(10000), seconds(100000)
    assert(large < 25 * small, ("10,000 keys took %g s, 100,000 took %g s"):format(small, large))
  end)

  describe("of a host", function()
    local queues

    before_each(function() queues = C.mw_queues_new(rig.loop, 0.05) end)
    after_each(function() C.mw_queues_free(queues) end)

    local function get(name) return C.mw_queues_get(queues, name, nil, queue_kit.config()) end

    it("is found by its name as long as it knows of a key", function()
      local first, other = get("x"), get("y")
      assert.is_true(first ~= other)
      assert.are.equal("x", ffi.string(C.mw_workqueue_name(first)))
      assert.are.equal(0, C.mw_workqueue_add(first, unit.slice("a"), nil))
      C.mw_queues_put(queues, first)
      C.mw_queues_put(queues, other)
      local again = get("x")
      assert.is_true(again == first)
      assert.are.equal(1, tonumber(C.mw_workqueue_len(again)))
      assert.are.equal(2, unit.live()["work queue"]) -- the rig's own, and x
      C.mw_queues_put(queues, again)
    end)

    it("is forgotten with its keys when that is asked for, unless somebody uses it", function()
      local used, left = get("x"), get("y")
      for _, queue in ipairs { used, left } do
        assert.are.equal(0, C.mw_workqueue_add(queue, unit.slice("a"), nil))
      end
      local user = C.mw_workqueue_join(used, nil, nil)
      C.mw_queues_put(queues, left)
      C.mw_queues_forget(queues)
      assert.are.equal(2, unit.live()["work queue"]) -- the rig's own, and x
      local fresh, same = get("y"), get("x")
      assert.are.equal(0, tonumber(C.mw_workqueue_len(fresh)))
      assert.is_true(same == used)
      C.mw_workqueue_leave(user)
      for _, queue in ipairs { fresh, same, used } do C.mw_queues_put(queues, queue) end
    end)

    it("goes with its keys when nobody has used it for a while", function()
      local left, wanted = get("x"), get("y")
      for _, queue in ipairs { left, wanted } do
        assert.are.equal(0, C.mw_workqueue_add(queue, unit.slice("a"), nil))
        C.mw_queues_put(queues, queue)
      end
      local again = get("y")
      local user = C.mw_workqueue_join(again, nil, nil)
      assert.are.equal(3, unit.live()["work queue"]) -- the rig's own, and both
      for _ = 1, 100 do
        C.mw_loop_turn(rig.loop, 20)
        if unit.live()["work queue"] == 2 then break end
      end
      assert.are.equal(2, unit.live()["work queue"])
      local fresh = get("x")
      assert.are.equal(0, tonumber(C.mw_workqueue_len(fresh)))
      assert.are.equal(1, tonumber(C.mw_workqueue_len(again)))
      C.mw_workqueue_leave(user)
      for _, queue in ipairs { fresh, again } do C.mw_queues_put(queues, queue) end
    end)

    it("is a new one after it was shut down", function()
      local first = get("x")
      assert.are.equal(0, C.mw_workqueue_add(first, unit.slice("a"), nil))
      C.mw_workqueue_shut_down(first)
      local second = get("x")
      assert.is_true(second ~= first)
      assert.are.equal(0, tonumber(C.mw_workqueue_len(second)))
      C.mw_queues_put(queues, first)
      local third = get("x")
      assert.is_true(third == second)
      C.mw_queues_put(queues, second)
      C.mw_queues_put(queues, third)
      assert.are.equal(1, unit.live()["work queue"])
    end)
  end)
end)
