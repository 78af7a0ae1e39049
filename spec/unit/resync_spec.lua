-- How often handlers are resynced: what each owner of an informer gets, whoever shares it.
jit.off(true, true)
local unit = require "spec.support.unit"
local C, ffi = unit.C, unit.ffi

describe("the resync of an informer", function()
  unit.no_leaks()

  local resync
  local one, other = ffi.cast("void *", 1), ffi.cast("void *", 2)

  before_each(function() resync = ffi.new("struct mw_resync", { least = 1 }) end)
  after_each(function() C.mw_resync_deinit(resync) end)

  local function want(owner, seconds) C.mw_resync_want(resync, owner, seconds) end

  local function asked_by(owner) return C.mw_resync_asked(resync, owner) end

  -- The period of a handler, and what is warned of.
  local function choose(owner, asked)
    local why = ffi.new("const char *[1]")
    local period = C.mw_resync_choose(resync, owner, asked, why)
    return period, why[0] ~= nil and ffi.string(why[0]) or nil
  end

  it("is what the owner asked for, unless the handler asks for another", function() -- S-INF-42
    want(one, 30)
    assert.are.same({ 30 }, { choose(one, asked_by(one)) })
    assert.are.same({ 60 }, { choose(one, 60) })
    assert.are.same({ 0 }, { choose(one, 0) })
    assert.are.equal(30, C.mw_resync_check(resync))
  end)

  it("is checked for as often as the smallest request before the start", function() -- row 64: S-INF-42
    want(one, 30)
    assert.are.same({ 5 }, { choose(one, 5) })
    assert.are.equal(5, C.mw_resync_check(resync))
    C.mw_resync_start(resync, one)
    assert.are.same({ 5, "resync period below that of the running informer, raised" }, { choose(one, 2) })
    assert.are.equal(5, C.mw_resync_check(resync))
  end)

  it("is not below the least", function() -- S-INF-40
    want(one, 0.2)
    assert.are.equal(1, C.mw_resync_check(resync))
    assert.are.same({ 1, "resync period too small, raised" }, { choose(one, asked_by(one)) })
    assert.are.same({ 1, "resync period too small, raised" }, { choose(one, 0.5) })
  end)

  it("is none when the owner asked for none, whoever else wants one", function() -- row 64: S-INF-41
    want(one, 0)
    want(other, 5)
    assert.are.same({ 0, "the informer does not resync, neither will the handler" }, { choose(one, 2) })
    assert.are.same({ 0 }, { choose(one, asked_by(one)) })
    assert.are.equal(5, C.mw_resync_check(resync))
  end)

  it("is for who comes later what it would be alone", function()
    want(one, 60)
    C.mw_resync_start(resync, one)
    want(other, 60)
    assert.are.same({ 2 }, { choose(other, 2) })
    assert.are.equal(2, C.mw_resync_check(resync))
    assert.are.same({ 60, "resync period below that of the running informer, raised" }, { choose(one, 2) })
  end)

  it("is no longer checked for so often when who wanted it has left", function()
    want(one, 60)
    want(other, 2)
    C.mw_resync_drop(resync, other)
    assert.are.equal(60, C.mw_resync_check(resync))
    want(one, 90)
    assert.are.equal(90, C.mw_resync_check(resync))
    C.mw_resync_drop(resync, one)
    C.mw_resync_drop(resync, other)
    assert.are.equal(0, C.mw_resync_check(resync))
  end)
end)
