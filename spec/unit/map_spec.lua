local unit = require "spec.support.unit"
local C = unit.C

local function hash(text) return C.mw_hash(unit.slice(text)) end

describe("the hash of the house", function()
  it("depends on each byte, whatever the length", function()
    for n = 1, 40 do
      local text = ("k"):rep(n)
      local own = hash(text)
      assert.equal(own, hash(("k"):rep(n)))
      for i = 1, n do
        local other = text:sub(1, i - 1) .. "K" .. text:sub(i + 1)
        assert.are_not.equal(own, hash(other))
      end
    end
  end)

  it("depends on the order of bytes", function()
    for n = 2, 40 do
      local parts, seen = {}, {}
      for i = 1, n do parts[i] = string.char(32 + i) end
      for i = 1, n do
        local turned = table.concat(parts, "", i) .. table.concat(parts, "", 1, i - 1)
        assert.is_nil(seen[hash(turned)])
        seen[hash(turned)] = true
      end
    end
  end)

  it("depends on the length, also where all bytes are the same", function()
    for _, byte in ipairs { "\0", "a", "\255" } do
      local seen = {}
      for n = 0, 200 do
        local h = hash(byte:rep(n))
        assert.is_nil(seen[h])
        seen[h] = true
      end
    end
  end)

  it("has few collisions among names that differ in little", function()
    local seen, collisions = {}, 0
    for i = 1, 50000 do
      local h = hash(("team-%d/web-%x"):format(i % 60, i))
      if seen[h] then collisions = collisions + 1 end
      seen[h] = true
    end
    assert.is_true(collisions < 10)  -- 0.3 are to be expected
  end)
end)
