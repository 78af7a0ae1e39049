-- What becomes of events before they are written. Time is what the spec says.
require "spec.support.helpers_env"
local correlator = require "kube._event_correlator"
local lru = require "kube._lru"
local series = require "kube._event_series"

local START = 1000000

-- A correlator with a clock that stands still until it is moved.
local function new(opts)
  opts = opts or {}
  local clock = { now = START }
  local names = 0
  opts.now = function() return clock.now end
  opts.name = function(object)
    names = names + 1
    return ("%s.combined%d"):format(object, names)
  end
  return correlator.new(opts), clock
end

local number = 0

local function event(message, more)
  number = number + 1
  local made = {
    metadata = { name = "pod." .. number, namespace = "d" }, type = "Normal", reason = "Started",
    message = message or "m",
    involvedObject = { kind = "Pod", namespace = "d", name = "pod", uid = "u", apiVersion = "v1" },
    source = { component = "c" }, count = 1, firstTimestamp = "t" .. number, lastTimestamp = "t" .. number,
  }
  for key, value in pairs(more or {}) do made[key] = value end
  return made
end

describe("the event correlator", function()
  it("creates an event that is new, and counts up the one that is not", function() -- row 97
    local c = new()
    local first = event()
    local written, patch = c:correlate(first)
    assert.equal(first, written)
    assert.is_nil(patch)
    for i = 2, 5 do
      local again = event()
      written, patch = c:correlate(again)
      assert.same({ first.metadata.name, i, first.firstTimestamp }, { written.metadata.name, written.count,
        written.firstTimestamp })
      assert.same({ count = i, lastTimestamp = again.lastTimestamp, message = "m" }, patch)
    end
    assert.equal(1, first.count)
  end)

  it("counts apart what differs in message, reason, type, object, field or source", function()
    local c = new()
    c:correlate(event())
    local object = { kind = "Pod", namespace = "d", name = "other", uid = "u", apiVersion = "v1" }
    local field = { kind = "Pod", namespace = "d", name = "pod", uid = "u", apiVersion = "v1", fieldPath = "spec" }
    for _, other in ipairs { event("n"), event("m", { reason = "Other" }), event("m", { type = "Warning" }),
      event("m", { involvedObject = object }), event("m", { involvedObject = field }),
      event("m", { source = { component = "c", host = "h" } }), event("m", { reportingComponent = "r" }) } do
      local _, patch = c:correlate(other)
      assert.is_nil(patch)
    end
  end)

  it("combines from the tenth different message on, under one name that counts", function() -- row 97
    local c = new()
    for i = 1, 9 do
      local written, patch = c:correlate(event("m" .. i))
      assert.equal("m" .. i, written.message)
      assert.is_nil(patch)
    end
    local tenth, patch = c:correlate(event("m10"))
    assert.same({ "(combined from similar events): m10", "pod.combined1", 1 }, { tenth.message, tenth.metadata.name,
      tenth.count })
    assert.is_nil(patch)
    local next_one
    next_one, patch = c:correlate(event("m11"))
    assert.same({ "pod.combined1", 2, tenth.firstTimestamp }, { next_one.metadata.name, next_one.count,
      next_one.firstTimestamp })
    assert.equal("(combined from similar events): m11", patch.message)
    -- One of the nine still counts by itself.
    local known = c:correlate(event("m3"))
    assert.same({ "m3", 2 }, { known.message, known.count })
  end)

  it("starts a new group after ten minutes without a similar event", function() -- row 97
    local c, clock = new()
    for i = 1, 9 do c:correlate(event("m" .. i)) end
    clock.now = clock.now + 600
    assert.equal("(combined from similar events): a", c:correlate(event("a")).message)
    clock.now = clock.now + 600.1
    assert.equal("b", c:correlate(event("b")).message)
  end)

  it("drops what comes after a burst of 25, lets one through each five minutes, and counts on", function() -- row 97
    local c, clock = new()
    for i = 1, 25 do assert.equal(i, c:correlate(event()).count) end
    for _ = 1, 5 do assert.is_nil((c:correlate(event()))) end
    clock.now = clock.now + 299.9
    assert.is_nil((c:correlate(event())))
    clock.now = clock.now + 0.2
    local written, patch = c:correlate(event())
    assert.same({ 32, 32 }, { written.count, patch.count })
    assert.is_nil((c:correlate(event())))
    clock.now = clock.now + 100 * 300
    for _ = 1, 25 do assert.is_truthy((c:correlate(event()))) end
    assert.is_nil((c:correlate(event())))
  end)

  it("filters by source, object and type, not by reason and message", function() -- row 98
    local c = new()
    for i = 1, 25 do c:correlate(event("m", { reason = "R" .. i })) end
    assert.is_nil((c:correlate(event("other", { reason = "Other" }))))
    assert.is_truthy((c:correlate(event("m", { type = "Warning" }))))
    assert.is_truthy((c:correlate(event("m", { source = { component = "x" } }))))
    assert.is_truthy((c:correlate(event("m", { involvedObject = { kind = "Pod", name = "other" } }))))
  end)

  it("filters by a key of one's own", function() -- row 98
    local c = new { settings = { burst = 1 }, spam_key = function(e) return correlator.spam_key(e) .. e.reason end }
    assert.is_truthy((c:correlate(event("m", { reason = "A" }))))
    assert.is_nil((c:correlate(event("m", { reason = "A" }))))
    assert.is_truthy((c:correlate(event("m", { reason = "B" }))))
  end)

  it("forgets the oldest of more than 4096", function() -- row 97
    local c = new()
    local function of(i) return event("m", { involvedObject = { kind = "Pod", name = "p" .. i } }) end
    for i = 1, 4096 do c:correlate(of(i)) end
    assert.equal(2, c:correlate(of(1)).count)
    c:correlate(of(5000))
    assert.equal(1, c:correlate(of(2)).count)
    assert.equal(3, c:correlate(of(1)).count)
  end)
end)

describe("a series of events", function()
  local function new_series()
    local clock = { now = START }
    return series.new { now = function() return clock.now end }, clock
  end

  local function seen(at, more)
    local made = { metadata = { name = "e" .. at }, type = "Normal", reason = "R", action = "A", note = "n" .. at,
      reportingController = "c", reportingInstance = "i", regarding = { kind = "Pod", name = "p" },
      eventTime = "t" .. at }
    for key, value in pairs(more or {}) do made[key] = value end
    return made
  end

  it("is created, made a series by the second, and only counted from then on", function()
    local s = new_series()
    local first, patch = s:correlate(seen(1))
    assert.same({ "e1" }, { first.metadata.name, patch, first.series })
    local second
    second, patch = s:correlate(seen(2))
    assert.equal("e1", second.metadata.name)
    assert.same({ series = { count = 2, lastObservedTime = "t2" } }, patch)
    assert.same(patch.series, second.series)
    for i = 3, 10 do assert.is_nil((s:correlate(seen(i)))) end
    assert.is_nil(first.series)
  end)

  it("is another for another type, action, reason, reporter or object", function()
    local s = new_series()
    s:correlate(seen(1))
    for _, more in ipairs { { type = "Warning" }, { action = "B" }, { reason = "S" }, { reportingController = "d" },
      { reportingInstance = "j" }, { regarding = { kind = "Pod", name = "q" } },
      { related = { kind = "Node", name = "n" } } } do
      local written, patch = s:correlate(seen(2, more))
      assert.is_truthy(written)
      assert.is_nil(patch)
    end
  end)

  it("is written and forgotten once it was idle for six minutes, one that never repeated just forgotten", function()
    local s, clock = new_series()
    s:correlate(seen(1, { reason = "Once" }))
    for i = 1, 5 do s:correlate(seen(i)) end
    clock.now = clock.now + 360
    assert.same({}, s:due(false))
    clock.now = clock.now + 0.1
    local due = s:due(false)
    assert.equal(1, #due)
    assert.same({ "e1", { series = { count = 5, lastObservedTime = "t5" } } }, { due[1][1].metadata.name, due[1][2] })
    assert.same({}, s:due(true))
    local _, patch = s:correlate(seen(6))
    assert.is_nil(patch)
  end)

  it("is written again while it goes on", function()
    local s, clock = new_series()
    for i = 1, 4 do s:correlate(seen(i)) end
    clock.now = clock.now + 100
    assert.same({}, s:due(false))
    assert.equal(4, s:due(true)[1][2].series.count)
    assert.same({}, s:due(true))
    assert.is_nil((s:correlate(seen(5))))
    assert.equal(5, s:due(true)[1][2].series.count)
  end)
end)

describe("a map of bounded size", function()
  it("behaves as a list of the newest, for any sequence", function()
    local seed = os.time()
    math.randomseed(seed)
    local map, model = lru.new(5), {}
    local function touch(key, value)
      for i, item in ipairs(model) do
        if item[1] == key then table.remove(model, i) break end
      end
      if value ~= nil then table.insert(model, 1, { key, value }) end
      model[6] = nil
    end
    for i = 1, 3000 do
      local key, pick = math.random(9), math.random(4)
      if pick == 1 then
        local value = map:get(key)
        touch(key, value)
      elseif pick == 2 and math.random(3) == 1 then
        map:remove(key)
        touch(key)
      else
        map:set(key, i)
        touch(key, i)
      end
      assert.same(model, map:items(), "seed " .. seed)
      assert.equal(#model, map:count())
    end
  end)
end)
