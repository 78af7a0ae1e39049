-- Where the keys of a coalescing queue stand.
jit.off(true, true)
local kit = require "spec.support.cache_kit"
local unit = require "spec.support.unit"
local C, ffi = unit.C, unit.ffi

local actions = { [0] = "append", "fill", "merge", "drop" }

describe("coalesce", function()
  local keys, objects
  before_each(function()
    keys, objects = ffi.new("struct mw_coalesce"), {}
    C.mw_coalesce_init(keys)
  end)
  after_each(function()
    C.mw_coalesce_reset(keys)
    objects = nil
  end)
  unit.no_leaks()

  local function object(name)
    objects[name] = objects[name] or kit.object(name, 1)
    return objects[name]
  end
  local function next_(name, deletion, head, tail)
    local plan = C.mw_coalesce_next(keys, object(name), deletion, head, tail)
    return ("%s %d"):format(actions[tonumber(plan.action)], tonumber(plan.pos))
  end

  it("appends the first of a key and merges upserts onto it", function()
    assert.are.equal("append 1", next_("a", false, 1, 1))
    assert.are.equal("append 2", next_("b", false, 1, 2))
    assert.are.equal("merge 1", next_("a", false, 1, 3))
  end)

  it("puts a deletion at the place of the upsert and appends what comes behind it", function()
    next_("a", false, 1, 1)
    assert.are.equal("merge 1", next_("a", true, 1, 2))
    assert.are.equal("append 2", next_("a", false, 1, 2))
    assert.are.equal("merge 2", next_("a", false, 1, 3))
  end)

  it("undoes the upsert behind a deletion and fills its place again", function()
    assert.are.equal("append 1", next_("a", true, 1, 1))
    assert.are.equal("append 2", next_("a", false, 1, 2))
    assert.are.equal("drop 2", next_("a", true, 1, 3))
    assert.are.equal("drop 0", next_("a", true, 1, 3))
    assert.are.equal("fill 2", next_("a", false, 1, 3))
    assert.are.equal("merge 2", next_("a", false, 1, 3))
  end)

  it("does not use places that are gone", function()
    next_("a", true, 1, 1)
    next_("a", false, 1, 2)
    assert.are.equal("merge 2", next_("a", true, 2, 3))
    assert.are.equal("append 3", next_("a", false, 3, 3))
    assert.are.equal("append 9", next_("a", true, 9, 9))
  end)

  it("remembers exactly the keys that are queued, whatever comes and goes", function()
    math.randomseed(23)
    local queued, head, tail = {}, 1, 1
    for _ = 1, 5000 do
      local name = "p" .. math.random(1, 300)
      if math.random() < 0.5 then
        local plan = next_(name, false, head, tail)
        if queued[name] then
          assert.are.equal("merge " .. queued[name], plan)
        else
          assert.are.equal("append " .. tail, plan)
          queued[name], queued[tail] = tail, name
          tail = tail + 1
        end
      elseif head < tail then
        local first = queued[head]
        queued[first], queued[head] = nil, nil
        head = head + 1
        C.mw_coalesce_popped(keys, object(first), head)
      end
      assert.are.equal(tail - head, tonumber(keys.count))
    end
  end)
end)
