-- What /metrics shows of a work queue.
jit.off(true, true)
local queue_kit = require "spec.support.queue_kit"
local unit = require "spec.support.unit"
local C, ffi = unit.C, unit.ffi

describe("the metrics of a work queue", function()
  local rig

  after_each(function() rig:close() end)
  unit.no_leaks()
  before_each(function() rig = queue_kit.new { name = "spec" } end)

  local function text()
    local out = ffi.new("struct mw_buf")
    C.mw_buf_init(out, 1048576)
    assert(C.mw_metric_write(out) == 0)
    local s = ffi.string(out.p, out.n)
    C.mw_buf_deinit(out)
    return s
  end

  -- The value of a series; nil when there is none.
  local function value(name, labels)
    local line = "workqueue_" .. name .. '{name="spec"' .. (labels or "") .. "} "
    local at = select(2, text():find(line, 1, true))
    return at and tonumber(text():match("^[^\n]+", at + 1))
  end

  local function depth(priority) return value("depth", (',priority="%d"'):format(priority or 0)) end

  local function close(wanted, got) assert(math.abs(wanted - got) < 1e-9, ("%g, not %g"):format(got, wanted)) end

  it("move with every add, hand-out and done", function() -- row 90
    rig:add("foo")
    assert.are.same({ 1, 1 }, { value("adds_total"), depth() })
    rig:pass(50e-6)
    rig:take()
    assert.are.equal(1, value("queue_duration_seconds_count"))
    close(50e-6, value("queue_duration_seconds_sum"))
    assert.are.equal(0, value("queue_duration_seconds_bucket", ',le="1e-05"'))
    assert.are.equal(1, value("queue_duration_seconds_bucket", ',le="0.0001"'))
    assert.are.equal(0, depth())
    -- While it is worked on, all adds are one.
    for _ = 1, 5 do rig:add("foo") end
    assert.are.same({ 2, 1 }, { value("adds_total"), depth() })
    rig:pass(25e-6)
    rig:done("foo")
    assert.are.equal(1, value("work_duration_seconds_count"))
    close(25e-6, value("work_duration_seconds_sum"))
    assert.are.equal(1, depth())
    -- The wait began with the first of these adds, not when the key was done.
    rig:take()
    assert.are.equal(2, value("queue_duration_seconds_count"))
    close(75e-6, value("queue_duration_seconds_sum"))
    assert.are.equal(0, depth())
    rig:pass(0.001)
    rig:done("foo")
    assert.are.equal(2, value("work_duration_seconds_count"))
    close(1025e-6, value("work_duration_seconds_sum"))
    assert.are.same({ 2, 0, 0 }, { value("adds_total"), depth(), value("retries_total") })
  end)

  it("tell of work that is under way, twice a second", function() -- row 90
    rig:add("a")
    rig:add("b")
    rig:take()
    rig:pass(2)
    rig:take()
    rig:pass(3)
    assert.are.same({ 0, 0 }, { value("unfinished_work_seconds"), value("longest_running_processor_seconds") })
    local deadline = C.mw_clock_now() + 5000000000ULL
    while value("unfinished_work_seconds") == 0 and C.mw_clock_now() < deadline do C.mw_loop_turn(rig.loop, 50) end
    assert.are.same({ 8, 5 }, { value("unfinished_work_seconds"), value("longest_running_processor_seconds") })
    rig:done("a")
    rig:done("b")
    assert.are.same({ 0, 0 }, { value("unfinished_work_seconds"), value("longest_running_processor_seconds") })
  end)

  it("count the depth by priority, wherever a key goes", function()
    rig:add("a")
    rig:add("b", { priority = -5 })
    assert.are.same({ 1, 1 }, { depth(0), depth(-5) })
    rig:add("b", { priority = 3 })
    assert.are.same({ 1, 0, 1 }, { depth(0), depth(-5), depth(3) })
    rig:take()
    rig:add("b")
    rig:add("b", { priority = 7 })
    assert.are.same({ 1, 0, 1 }, { depth(0), depth(3), depth(7) })
    rig:done("b")
    assert.are.equal("b a", rig:drain())
    assert.are.same({ 0, 0, 0, 0 }, { depth(0), depth(-5), depth(3), depth(7) })
  end)

  it("count an add when the key is ready, and a retry when it has to wait", function()
    rig:add("a", { after = 5 })
    rig:add("b", { rate_limited = true })
    rig:add("c", { after = 0 })
    assert.are.same({ 1, 2, 1 }, { value("adds_total"), value("retries_total"), depth() })
    rig:pass(5)
    rig:len()
    assert.are.same({ 3, 2, 3 }, { value("adds_total"), value("retries_total"), depth() })
  end)

  it("go with the queue, and queues without a name have none", function()
    rig:add("a")
    local second = C.mw_workqueue_new(rig.loop, "spec", queue_kit.config())
    rig:close()
    assert.are.equal(1, value("adds_total")) -- two of one name share them
    rig = queue_kit.new()
    rig:add("b")
    assert.is_nil(text():find('name=""', 1, true))
    C.mw_workqueue_unref(second)
    assert.is_nil(value("adds_total"))
    assert.is_nil(depth())
  end)
end)
