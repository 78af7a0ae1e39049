local unit = require "spec.support.unit"
local C, ffi = unit.C, unit.ffi

ffi.cdef [[
  struct spec_block_work {
    int rounds;
    int torn;
  };
  void spec_block_work(void *arg);
]]

local function kept(n) return tonumber(C.mw_block_kept(n)) end

describe("blocks", function()
  unit.no_leaks()
  before_each(function() C.mw_block_trim() end)

  it("can be got on one thread and put on another, by several at a time", function()
    local loops, works = {}, {}
    for i = 1, 4 do
      loops[i] = C.mw_loop_new("spec")
      works[i] = ffi.new("struct spec_block_work", { 20000, 0 })
      assert.equal(0, C.mw_loop_start_thread(loops[i]))
    end
    for i = 1, 4 do C.mw_loop_post(loops[i], C.spec_block_work, works[i]) end
    for i = 1, 4 do
      C.mw_loop_join_thread(loops[i])
      C.mw_loop_free(loops[i])
      assert.equal(0, works[i].torn)
    end
  end)

  if os.getenv("MOONWATCH_BUILD") == "build/asan" then
    it("are not kept from AddressSanitizer", function()
      C.mw_block_put(C.mw_block_get(100), 100)
      assert.equal(0, kept(100))
    end)
    return
  end

  it("gives the next of the same size what was put back, the last first", function()
    local a, b = C.mw_block_get(100), C.mw_block_get(112)
    assert.equal(0, kept(100))
    C.mw_block_put(a, 100)
    C.mw_block_put(b, 112)
    assert.equal(2, kept(100))
    assert.equal(b, C.mw_block_get(97))
    assert.equal(a, C.mw_block_get(112))
    assert.equal(0, kept(100))
    C.mw_block_put(a, 112)
    C.mw_block_put(b, 97)
  end)

  it("keeps sizes apart", function()
    local a = C.mw_block_get(16)
    C.mw_block_put(a, 16)
    assert.equal(0, kept(17))
    local b = C.mw_block_get(17)
    assert.are_not.equal(a, b)
    C.mw_block_put(b, 17)
    assert.same({ 1, 1 }, { kept(1), kept(32) })
  end)

  it("keeps no more than 128 KiB of one size, and nothing that is large", function()
    local blocks = {}
    for i = 1, 300 do blocks[i] = C.mw_block_get(1024) end
    for _, block in ipairs(blocks) do C.mw_block_put(block, 1024) end
    assert.equal(128, kept(1024))
    C.mw_block_put(C.mw_block_get(2049), 2049)
    assert.equal(0, kept(2049))
    C.mw_block_put(nil, 64)
    assert.equal(0, kept(64))
  end)

  it("gives everything back when it is trimmed", function()
    C.mw_block_put(C.mw_block_get(8), 8)
    C.mw_block_put(C.mw_block_get(2048), 2048)
    C.mw_block_trim()
    assert.same({ 0, 0 }, { kept(8), kept(2048) })
  end)
end)
