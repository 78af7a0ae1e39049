local unit = require "spec.support.unit"
local cjson = require "cjson"
local run = require "spec.support.run"

describe("a log line", function()
  it("is whole JSON whatever is in it, cut where a text is too long", function()
    local result = run.run_script([[
      log.warn(("x"):rep(100000), { long = ("y"):rep(100000), bad = "a\255b", quote = "\"\\\n", n = 1.5 })
    ]], { timeout = 10, args = { "--log-format", "json" } })
    local found
    for line in result.stderr:gmatch("[^\n]+") do
      local fields = cjson.decode(line)
      if fields.level == "warn" then found = fields end
    end
    assert.are.equal(4096 + 3, #found.msg)
    assert.are.equal(4096 + 3, #found.long)
    assert.are.equal("a\239\191\189b", found.bad)
    assert.are.equal("\"\\\n", found.quote)
    assert.are.equal(1.5, found.n)
  end)

  it("in text has further lines indented below it, and nothing that acts on a terminal", function()
    local result = run.run_script([[
      log.warn("it failed", { error = "first\n\tsecond \27[31m\nthird", key = "a b" })
    ]], { timeout = 10, args = { "--log-format", "text" } })
    assert.is_truthy(result.stderr:find(
      'it failed error=first key="a b" revision=%x+\n      second \\u001b%[31m\n    third\n'), result.stderr)
  end)

  it("of a task tells what made the task run, unless it says so itself", function()
    local result = run.run_script([[
      local kube, task = require "kube", require "kube._task"
      kube.log.info("outside")
      task.run({ trigger = "controller web, key d/a" }, function()
        kube.log.info("inside", { n = 1 })
        kube.spawn(function() kube.log.info("below") end):wait()
        kube.log.info("own", { trigger = "mine" })
      end)
    ]], { timeout = 10, args = { "--log-format", "json" } })
    local triggers = {}
    for line in result.stderr:gmatch("[^\n]+") do
      local fields = cjson.decode(line)
      triggers[fields.msg] = fields.trigger or "none"
    end
    assert.are.equal("none", triggers.outside)
    assert.are.equal("controller web, key d/a", triggers.inside)
    assert.are.equal("controller web, key d/a", triggers.below)
    assert.are.equal("mine", triggers.own)
  end)

  it("is not written below the level that is on", function()
    unit.C.mw_log_set_level(unit.C.MW_LOG_WARN)
    assert.is_false(unit.C.mw_log_on(unit.C.MW_LOG_INFO))
    assert.is_true(unit.C.mw_log_on(unit.C.MW_LOG_ERROR))
    unit.C.mw_log_set_level(unit.C.MW_LOG_INFO)
  end)
end)
