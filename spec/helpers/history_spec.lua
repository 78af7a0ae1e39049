-- What a controller keeps of its runs, and what it forgets.
require "spec.support.helpers_env"
local history = require "kube._history"

-- The numbers of the runs that are known of a key.
local function of(h, key)
  local out = {}
  for i, run in ipairs(h:of(key)) do out[i] = run.n end
  return out
end

describe("the history of runs", function()
  it("has the last 32 of a key, oldest first", function()
    local h = history.new()
    assert.are.same({}, of(h, "a"))
    for n = 1, 100 do
      h:add("a", { n = n })
      assert.are.equal(math.min(n, 32), #h:of("a"))
    end
    local runs = of(h, "a")
    assert.are.same({ 69, 100 }, { runs[1], runs[32] })
  end)

  it("has the last 512 keys in any case, and never more than 1024", function()
    local h = history.new()
    for n = 1, 5000 do
      h:add("k" .. n, { n = n })
      for back = 0, math.min(n, 512) - 1, 73 do
        assert.are.same({ n - back }, of(h, "k" .. n - back))
      end
    end
    local known = 0
    for n = 1, 5000 do known = known + #h:of("k" .. n) end
    assert.is_true(known >= 512 and known <= 1024, tostring(known))
  end)

  it("keeps a key that is worked on again and again, with all its runs", function()
    local h, runs = history.new(), 0
    for n = 1, 10000 do
      h:add("k" .. n, { n = n })
      if n % 500 == 0 then
        runs = runs + 1
        h:add("often", { n = runs })
      end
    end
    assert.are.equal(20, runs)
    assert.are.equal(20, #h:of("often"))
  end)
end)
