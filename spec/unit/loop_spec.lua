-- The event loop: posts, calls and timers across threads. Callbacks into Lua only ever run on the
-- spec's own thread; where a second thread is needed, C functions are posted.
jit.off(true, true)
local unit = require "spec.support.unit"
local C, ffi = unit.C, unit.ffi

ffi.cdef [[
  typedef struct { char opaque[64]; } spec_sem;
  int sem_init(spec_sem *, int, unsigned);
  int sem_post(spec_sem *);
  int sem_trywait(spec_sem *);
  int sem_timedwait(spec_sem *, const void *);
  int sem_destroy(spec_sem *);
]]

describe("loop", function()
  unit.no_leaks()

  describe("and its callbacks", function()
    local loop, callbacks

    local function callback(fn)
      local cb = ffi.cast("mw_loop_cb", fn)
      callbacks[#callbacks + 1] = cb
      return cb
    end

    before_each(function()
      callbacks = {}
      loop = C.mw_loop_new("spec")
    end)

    after_each(function()
      if loop ~= nil then C.mw_loop_free(loop) end
      for _, cb in ipairs(callbacks) do cb:free() end
    end)

    local function turn_until(done, turns)
      for _ = 1, turns or 200 do
        if done() then return true end
        C.mw_loop_turn(loop, 10)
      end
      return false
    end

    it("runs posted calls in the order in which they were posted", function()
      local seen = {}
      local cb = callback(function(arg) seen[#seen + 1] = tonumber(ffi.cast("intptr_t", arg)) end)
      for i = 1, 100 do C.mw_loop_post(loop, cb, ffi.cast("void *", i)) end
      assert.are.same({}, seen)
      C.mw_loop_turn(loop, 0)
      assert.are.equal(100, #seen)
      for i = 1, 100 do assert.are.equal(i, seen[i]) end
    end)

    it("runs a call that was posted by a posted call in the next turn, not in the same", function()
      local runs = 0
      local cb
      cb = callback(function()
        runs = runs + 1
        C.mw_loop_post(loop, cb, nil)
      end)
      C.mw_loop_post(loop, cb, nil)
      C.mw_loop_turn(loop, 0)
      assert.are.equal(1, runs)
      C.mw_loop_turn(loop, 0)
      assert.are.equal(2, runs)
      -- The last one is still posted: take the reposting away before the loop drains it.
      cb:set(function() runs = runs + 1 end)
      C.mw_loop_free(loop)
      loop = nil
      assert.are.equal(3, runs)
    end)

    it("returns from run when it was stopped before it ran", function()
      C.mw_loop_stop(loop)
      C.mw_loop_run(loop)
    end)

    it("returns from run when a stop was seen by a turn before", function()
      C.mw_loop_stop(loop)
      C.mw_loop_turn(loop, 0)
      C.mw_loop_run(loop)
    end)

    it("runs until a timer stops it", function()
      local cb = callback(function() C.mw_loop_stop(loop) end)
      C.mw_timer_start(loop, 0.01, cb, nil)
      C.mw_loop_run(loop)
    end)

    it("runs on a thread of its own and serves posts and calls from others", function()
      local sem = ffi.new("spec_sem")
      C.mw_loop_free(loop)
      loop = C.mw_loop_new("a name that is longer than sixteen bytes")
      ffi.C.sem_init(sem, 0, 0)
      local post = ffi.cast("mw_loop_cb", ffi.C.sem_post)
      assert.are.equal(0, C.mw_loop_start_thread(loop))
      assert.are.equal(C.MW_ESTATE, C.mw_loop_start_thread(loop))
      for _ = 1, 1000 do C.mw_loop_post(loop, post, sem) end
      -- A call waits, and what was posted before it has run by then.
      C.mw_loop_call(loop, post, sem)
      local count = 0
      while ffi.C.sem_trywait(sem) == 0 do count = count + 1 end
      assert.are.equal(1001, count)
      C.mw_loop_join_thread(loop)
      -- It may be started again, and calls work with no thread as well.
      C.mw_loop_call(loop, post, sem)
      assert.are.equal(0, ffi.C.sem_trywait(sem))
      assert.are.equal(0, C.mw_loop_start_thread(loop))
      C.mw_loop_call(loop, post, sem)
      assert.are.equal(0, ffi.C.sem_trywait(sem))
      C.mw_loop_join_thread(loop)
      ffi.C.sem_destroy(sem)
    end)

    it("loses no post when the thread is stopped at once", function()
      local sem = ffi.new("spec_sem")
      ffi.C.sem_init(sem, 0, 0)
      local post = ffi.cast("mw_loop_cb", ffi.C.sem_post)
      for round = 1, 50 do
        assert.are.equal(0, C.mw_loop_start_thread(loop))
        C.mw_loop_post(loop, post, sem)
        C.mw_loop_join_thread(loop)
        assert.are.equal(0, ffi.C.sem_trywait(sem), "round " .. round)
      end
      ffi.C.sem_destroy(sem)
    end)

    it("calls directly when the loop is not running", function()
      local called = false
      C.mw_loop_call(loop, callback(function() called = true end), nil)
      assert.is_true(called)
    end)

    it("fires a timer once, not early, and frees it", function()
      local fired = 0
      local started = C.mw_clock_now()
      local at
      C.mw_timer_start(loop, 0.05, callback(function()
        fired = fired + 1
        at = C.mw_clock_now()
      end), nil)
      assert.is_true(turn_until(function() return fired > 0 end))
      C.mw_loop_turn(loop, 0)
      assert.are.equal(1, fired)
      assert.is_true(tonumber(at - started) >= 0.05e9)
    end)

    it("fires timers of zero seconds in the next turn", function()
      local fired = false
      C.mw_timer_start(loop, 0, callback(function() fired = true end), nil)
      assert.is_false(fired)
      C.mw_loop_turn(loop, 1000)
      assert.is_true(fired)
    end)

    it("does not fire a cancelled timer, and clears the pointer", function()
      local fired = false
      local timer = ffi.new("struct mw_timer *[1]")
      timer[0] = C.mw_timer_start(loop, 0.001, callback(function() fired = true end), nil)
      C.mw_timer_cancel(timer)
      assert.is_true(timer[0] == nil)
      C.mw_timer_cancel(timer)
      for _ = 1, 3 do C.mw_loop_turn(loop, 5) end
      assert.is_false(fired)
    end)

    it("does not fire a timer that another timer of the same turn cancelled", function()
      local fired = {}
      local second = ffi.new("struct mw_timer *[1]")
      C.mw_timer_start(loop, 0.001, callback(function()
        fired[#fired + 1] = "first"
        C.mw_timer_cancel(second)
      end), nil)
      second[0] = C.mw_timer_start(loop, 0.001, callback(function()
        fired[#fired + 1] = "second"
      end), nil)
      local stop = C.mw_clock_now() + 5000000
      while C.mw_clock_now() < stop do end
      for _ = 1, 5 do C.mw_loop_turn(loop, 2) end
      assert.are.same({ "first" }, fired)
    end)

    it("blocks in a turn for no longer than asked", function()
      local started = C.mw_clock_now()
      C.mw_loop_turn(loop, 20)
      local took = tonumber(C.mw_clock_now() - started) / 1e9
      assert.is_true(took >= 0.015 and took < 1, took)
    end)

    it("runs what is still posted when it is freed", function()
      local called = 0
      local cb
      cb = callback(function(arg)
        called = called + 1
        if arg ~= nil then C.mw_loop_post(loop, cb, nil) end
      end)
      C.mw_loop_post(loop, cb, ffi.cast("void *", 1))
      C.mw_loop_free(loop)
      loop = nil
      assert.are.equal(2, called)
    end)
  end)
end)
