-- Keys whose writes vanish again and again.
require "spec.support.helpers_env"
local vanished = require "kube._vanished"

describe("a key whose writes vanish", function()
  it("waits not at all, then longer each time, up to a limit", function()
    local v, now, waited = vanished.new(0.5, 3), 0, {}
    for i = 1, 6 do
      waited[i] = v:delay("a", now)
      now = now + waited[i]
    end
    assert.are.same({ 0, 0.5, 1, 2, 3, 3 }, waited)
    assert.are.equal(0, v:delay("b", now))
  end)

  it("begins anew after a calm minute, which begins when it has waited", function()
    local v = vanished.new(10, 100)
    assert.are.equal(0, v:delay("a", 0))
    assert.are.equal(10, v:delay("a", 59))
    assert.are.equal(20, v:delay("a", 128))
    assert.are.equal(0, v:delay("a", 128 + 20 + 60))
  end)
end)
