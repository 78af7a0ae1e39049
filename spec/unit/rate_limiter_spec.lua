-- How long keys that failed wait.
jit.off(true, true)
local queue_kit = require "spec.support.queue_kit"
local unit = require "spec.support.unit"
local C, ffi = unit.C, unit.ffi

describe("a rate limiter", function()
  local function limiter(limits)
    local l = ffi.new("struct mw_rate_limiter")
    C.mw_rate_limiter_init(l, queue_kit.limits(limits), 0)
    -- delay(failures, seconds since the start)
    return function(failures, now) return C.mw_rate_limiter_next(l, failures, (now or 0) * 1e9) end
  end

  it("doubles the wait with each failure, up to the cap", function() -- row 88
    local delay = limiter { base_delay = 0.001, max_delay = 1 }
    for failures, wanted in pairs { [0] = 0.001, 0.002, 0.004, 0.008, 0.016 } do
      assert.are.equal(wanted, delay(failures))
    end
    assert.are.equal(0.512, delay(9))
    assert.are.equal(1, delay(10))
    assert.are.equal(0.001, delay(0))
  end)

  it("waits 5 ms at first and 1000 s at most by default", function() -- row 88
    local delay = limiter()
    assert.are.equal(0.005, delay(0))
    assert.are.equal(0.01, delay(1))
    assert.is_true(math.abs(delay(17) - 655.36) < 1e-9)
    assert.are.equal(1000, delay(18))
  end)

  it("stays at the cap for any number of failures", function() -- row 88
    local delay = limiter { base_delay = 0.001, max_delay = 1000 }
    for _, failures in ipairs { 20, 63, 64, 65, 1000, 1023, 1024, 1100, 2 ^ 31, 2 ^ 32 - 1 } do
      assert.are.equal(1000, delay(failures))
    end
    assert.are.equal(0, limiter { base_delay = 1e-300, max_delay = 0 }(5))
  end)

  it("waits short for the first failures and long for the others, if told to", function() -- row 88
    local delay = limiter { base_delay = 0.005, max_delay = 10, fast_retries = 3 }
    for failures, wanted in pairs { [0] = 0.005, 0.005, 0.005, 10, 10 } do
      assert.are.equal(wanted, delay(failures))
    end
  end)

  it("has a bucket that fills with time and makes those wait who find it empty", function()
    local delay = limiter { base_delay = 0, max_delay = 0, qps = 10, burst = 3 }
    for _ = 1, 3 do assert.are.equal(0, delay(0)) end
    assert.is_true(math.abs(delay(0) - 0.1) < 1e-9)
    assert.is_true(math.abs(delay(0) - 0.2) < 1e-9)
    -- Two tokens are owed; after half a second there are three.
    for _ = 1, 3 do assert.are.equal(0, delay(0, 0.5)) end
    assert.is_true(math.abs(delay(0, 0.5) - 0.1) < 1e-9)
    -- It never holds more than it may.
    for _ = 1, 3 do assert.are.equal(0, delay(0, 1000)) end
    assert.is_true(delay(0, 1000) > 0)
    -- A clock that stands still fills nothing.
    assert.is_true(delay(0, 999) > 0.1)
  end)

  it("takes the longer of both waits, and a token in any case", function() -- row 88
    local delay = limiter { base_delay = 1, max_delay = 3, qps = 1, burst = 2 }
    assert.are.equal(1, delay(0))
    assert.are.equal(3, delay(2))
    assert.are.equal(1, delay(0)) -- the bucket asks for one second, too
    assert.are.equal(2, delay(0))
    assert.are.equal(3, delay(0))
    assert.are.equal(4, delay(2))
  end)

  it("never waits longer than the longest wait of all", function() -- row 88
    local delay = limiter { base_delay = 1, max_delay = 100, qps = 0.1, burst = 1, max_wait = 7 }
    assert.are.equal(1, delay(0))
    assert.are.equal(7, delay(0))
    assert.are.equal(7, delay(50))
  end)
end)
