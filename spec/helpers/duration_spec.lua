-- kube.duration and kube.selector.
local core = require "spec.support.helpers_env"
local duration = require "kube._duration"
local selector = require "kube._selector"

describe("duration.parse", function()
  it("reads what Go reads", function()
    local cases = { ["0"] = 0, ["0s"] = 0, ["5s"] = 5, ["1h30m"] = 5400, ["1.5h"] = 5400, ["300ms"] = 0.3,
      ["-1.5h"] = -5400, ["+5s"] = 5, ["2h45m30.5s"] = 9930.5,
      ["1us"] = 1e-6, ["1µs"] = 1e-6, ["1μs"] = 1e-6, ["10ns"] = 1e-8,
      [".5s"] = 0.5, ["1.s"] = 1, ["1m1m"] = 120, ["100h"] = 360000 }
    for text, seconds in pairs(cases) do assert.equal(seconds, duration.parse(text), text) end
  end)

  it("says what is none", function()
    for _, wrong in ipairs { "", "3", "-", "s", ".", "-.", ".s", "+.s", "1d", "1h 30m", "1..5s", "h1", "1s2",
      "-0x1s" } do
      local seconds, problem = duration.parse(wrong)
      assert.is_nil(seconds, wrong)
      assert.truthy(problem:find("is not a duration", 1, true))
    end
    assert.truthy(select(2, duration.parse("9999999999h")):find("longer than a duration can be"))
    assert.truthy(select(2, duration.parse(5)):find("not a number"))
  end)
end)

describe("duration.format", function()
  it("writes what Go writes", function()
    local cases = { [0] = "0s", [1] = "1s", [1.5] = "1.5s", [60] = "1m0s", [90] = "1m30s", [3600] = "1h0m0s",
      [5400.25] = "1h30m0.25s", [0.3] = "300ms", [0.0015] = "1.5ms", [1e-6] = "1µs", [1.1e-6] = "1.1µs", [1e-9] = "1ns",
      [-5400] = "-1h30m0s", [1e-10] = "0s", [86400] = "24h0m0s", [0.1 + 0.2] = "300ms", [100.1] = "1m40.1s" }
    for seconds, text in pairs(cases) do assert.equal(text, duration.format(seconds), tostring(seconds)) end
    assert.is_false(pcall(duration.format, "5s"))
    assert.matches("takes a number of seconds, not a table", select(2, pcall(duration.format, {})))
    assert.is_false(pcall(duration.format, 0 / 0))
  end)

  it("writes what it reads", function()
    math.randomseed(11)
    for _ = 1, 2000 do
      local seconds = math.random(0, 10 ^ math.random(0, 9)) / 10 ^ math.random(0, 6)
      local again = duration.parse(duration.format(seconds))
      assert.is_true(math.abs(again - seconds) <= seconds * 1e-14 + 1e-9, seconds)
    end
  end)
end)

describe("a selector", function()
  it("of a text, a map or a LabelSelector matches labels", function()
    local labels = { app = "web", tier = "a" }
    for _, form in ipairs { "app=web,tier in (a,b),!old", { app = "web" }, { matchLabels = { app = "web" } }, "", {},
      { matchExpressions = { { key = "tier", operator = "In", values = { "a" } } } } } do
      assert.is_true(selector.matches(form, labels))
      assert.is_true(selector.parse(form):matches(labels))
    end
    for _, form in ipairs { "app=db", "app", { app = "web" } } do assert.is_false(selector.matches(form, nil)) end
    assert.is_false(selector.matches("app!=web", labels))
    assert.is_false(selector.matches(core.codec.null, labels))
    assert.is_true(selector.matches("app!=web", core.codec.null))
    assert.is_true(selector.matches(selector.parse "app", labels))
  end)

  it("has a canonical text", function()
    assert.equal("app=web,tier in (a,b)", selector.parse("tier in (b,a), app = web"):text())
  end)

  it("says what is wrong with it", function()
    local ok, err = pcall(selector.parse, "a in (")
    assert.is_false(ok)
    assert.is_string(err.message)
    ok, err = pcall(function() selector.parse("a"):matches(5) end)
    assert.is_false(ok)
    assert.truthy(err:find("duration_spec.lua:%d+: selector:matches%(%) takes a table of labels, not a number"), err)
    assert.is_false(pcall(selector.matches, nil, {}))
  end)
end)
