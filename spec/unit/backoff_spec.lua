-- How long a reflector waits: the ramp, its jitter, and when it begins anew.
jit.off(true, true)
local rig = require "spec.support.reflector_rig"
local unit = require "spec.support.unit"
local C, ffi = unit.C, unit.ffi

local RAMP = { 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30, 30, 30 }  -- the base delays by default

local function near(expected, found) assert.is_true(math.abs(expected - found) < 1e-9, found) end

describe("a backoff", function()
  unit.no_leaks()

  -- ask(at): the delay in seconds, asked for so many seconds after the start. Options are those of
  -- the configuration that are not the default's.
  local function backoff(options, seed)
    local config = ffi.new("struct mw_backoff_config", C.mw_backoff_default)
    for name, value in pairs(options or {}) do config[name] = value end
    local b = ffi.new("struct mw_backoff")
    C.mw_backoff_init(b, config, seed or 1)
    return function(at) return C.mw_backoff_next(b, (1 + at) * 1e9) end
  end

  it("doubles from 0.8 s to a cap of 30 s by default", function() -- S-REF-40
    local ask = backoff { jitter = 0 }
    for _, base in ipairs(RAMP) do near(base, ask(0)) end
  end)

  it("adds up to as much again by default, which the next delay does not grow from", function() -- S-REF-40, 43
    for seed = 1, 50 do
      local ask = backoff(nil, seed)
      for _, base in ipairs(RAMP) do
        local delay = ask(0)
        assert.is_true(delay >= base and delay < 2 * base, delay)
      end
    end
  end)

  it("spreads what it adds over all that it may add", function() -- S-REF-40
    local function share(jitter, low, high)
      local count = 0
      for seed = 1, 1000 do
        local added = backoff({ duration = 2, jitter = jitter }, seed)(0) - 2
        assert.is_true(added >= 0 and added < 2 * jitter, added)
        if added >= 2 * jitter * low and added < 2 * jitter * high then count = count + 1 end
      end
      return count / 1000
    end
    for _, jitter in ipairs { 0.25, 1, 3 } do
      for tenth = 0, 9 do
        local part = share(jitter, tenth / 10, (tenth + 1) / 10)
        assert.is_true(part > 0.05 and part < 0.15, part)
      end
    end
  end)

  it("differs from that of another seed, and not from that of the same", function() -- S-REF-40
    local one, same, other = backoff(nil, 7), backoff(nil, 7), backoff(nil, 8)
    for _ = 1, #RAMP do
      local delay = one(0)
      assert.are.equal(delay, same(0))
      assert.are_not.equal(delay, other(0))
    end
  end)

  it("grows so many times and stays there", function() -- S-REF-42
    local ask = backoff { jitter = 0, duration = 1, factor = 3, cap = 1000, steps = 2 }
    for _, base in ipairs { 1, 3, 9, 9, 9 } do near(base, ask(0)) end
  end)

  it("is constant without a factor", function() -- S-REF-42
    for _, factor in ipairs { 0, -2 } do
      local ask = backoff { jitter = 0, factor = factor }
      for _ = 1, 5 do near(0.8, ask(0)) end
    end
  end)

  it("begins anew when nobody has asked for more than two minutes", function() -- S-REF-41
    local ask, at = backoff { jitter = 0 }, 0
    for _ = 1, 3 do
      for _, base in ipairs(RAMP) do near(base, ask(at)) end
      near(30, ask(at + 119))
      at = at + 240
    end
  end)

  it("has all its steps again when it begins anew", function() -- S-REF-41
    local ask = backoff { jitter = 0, duration = 1, steps = 2, reset = 5 }
    for _, at in ipairs { 0, 10, 20 } do
      for _, base in ipairs { 1, 2, 4, 4 } do near(base, ask(at)) end
    end
  end)

  it("stays at its cap for as long as it is asked again and again", function() -- S-REF-41
    local ask = backoff { jitter = 0 }
    for _, base in ipairs(RAMP) do near(base, ask(0)) end
    for at = 60, 3600, 60 do near(30, ask(at)) end
    near(0.8, ask(3721))
  end)

  it("counts the quiet time from the last delay, not from its start", function() -- S-REF-41
    local ask = backoff { jitter = 0 }
    near(0.8, ask(1000))  -- the first one is no return after a quiet time
    near(1.6, ask(1100))
    near(3.2, ask(1200))
    near(0.8, ask(1321))
  end)

  it("never begins anew if told so", function() -- S-REF-41
    local ask = backoff { jitter = 0, reset = 0 }
    for i, base in ipairs(RAMP) do near(base, ask(i * 1e6)) end
  end)
end)

describe("a reflector without options", function()
  local r
  after_each(function()
    if r then r:close() end
    r = nil
  end)
  unit.no_leaks()

  local function new(config, answers)
    config.backoff = ffi.new("struct mw_backoff_config")
    answers.config = config
    r = rig.new(answers)
    return r
  end

  it("has the default backoff", function() -- S-REF-40
    local config = new({}, {}).reflector.backoff.config
    for _, name in ipairs { "duration", "factor", "jitter", "cap", "steps", "reset" } do
      assert.are.equal(C.mw_backoff_default[name], config[name], name)
    end
    local found = { config.duration, config.factor, config.jitter, config.cap, config.steps, config.reset }
    assert.are.same({ 0.8, 2, 1, 30, 38, 120 }, found)
  end)

  it("waits as that says", function() -- S-REF-40
    new({ no_streaming = true, seed = 5 }, { list = { rig.fail(500, "InternalError") } }):start()
    r:pump(function() return #r.errors == 1 end)
    local b = ffi.new("struct mw_backoff")
    C.mw_backoff_init(b, C.mw_backoff_default, 5)
    local delay = C.mw_backoff_next(b, 1)
    local text = delay < 1 and ("%.0f ms"):format(delay * 1000) or ("%.1f s"):format(delay)
    assert.are.equal("retrying in " .. text, r.errors[1].again)
  end)

  it("has jitter of its own", function() -- S-REF-40
    local seen = {}
    for i = 1, 3 do
      seen[i] = tonumber(new({ seed = 0 }, {}).reflector.backoff.rand.state)
      r:close()
      r = nil
    end
    assert.is_true(seen[1] ~= seen[2] and seen[2] ~= seen[3] and seen[1] ~= seen[3])
  end)

  it("takes a watch of less than a second for very short, and leaves out managedFields", function()
    local config = new({}, {}).reflector.config
    assert.are.equal(1, config.short_watch)
    assert.are.equal(C.mw_projection_default(), config.projection)
  end)
end)
