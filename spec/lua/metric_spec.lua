-- kube.metric: what scripts count.
local cleanup = require "spec.support.cleanup"
local exposition = require "spec.support.exposition"
local rig = require "spec.support.script_rig"
local scrape = require "spec.support.scrape"

local prelude = [[
  local function refused(text, fn, ...)
    local ok, err = pcall(fn, ...)
    local message = tostring(err)
    assert(not ok, "it was not refused: " .. text)
    assert(message:find("^[^\n]*script%.lua:%d+: "), "no place: " .. message)
    assert(message:find(text, 1, true), ("wanted %s\ngot %s"):format(text, message))
  end
]]

local function run(source) return rig.run(rig.pods {}, prelude .. source) end

describe("kube.metric", function()
  cleanup.install()

  it("counts, sets and observes, with labels and without", function()
    local proc = rig.start(rig.pods {}, [[
      local syncs = kube.metric.counter { name = "web_syncs_total", help = "Syncs.", labels = { "code", "ok" } }
      syncs:inc { code = 200, ok = true }
      syncs:inc({ code = 200, ok = true }, 2.5)
      local bad = syncs:labels { code = "5\"00\n", ok = false }
      bad:inc()
      bad:inc(0)
      local size = kube.metric.gauge { name = "web_size" }
      size:set(7) size:inc() size:inc(nil, 4) size:dec(2) size:inc({}, 0.5)
      local seconds = kube.metric.histogram { name = "web_seconds", labels = { "a" }, buckets = { 1, 2 } }
      for _, v in ipairs { 0.5, 1, 1.5, 9 } do seconds:observe({ a = "x" }, v) end
      kube.metric.histogram { name = "web_default" }:observe(0.3)
      kube.metric.counter { name = "web_none_total" }
      assert(kube.metric.counter { name = "web_syncs_total", labels = { "code", "ok" } } == syncs)
      print("counted")
      kube.sleep(1000)
    ]], { args = scrape.args })
    local seen = scrape.of(proc)
    proc:wait_line("counted", 10)
    local families = seen:metrics()
    local function value(name, labels) return exposition.value(families, name, labels) end
    assert.are.equal("Syncs.", families.web_syncs_total.help)
    assert.are.equal(3.5, value("web_syncs_total", { code = "200", ok = "true" }))
    assert.are.equal(1, value("web_syncs_total", { code = '5"00\n', ok = "false" }))
    assert.are.equal(10.5, value("web_size"))
    assert.are.equal(2, value("web_seconds_bucket", { a = "x", le = "1" }))
    assert.are.equal(3, value("web_seconds_bucket", { a = "x", le = "2" }))
    assert.are.equal(12, value("web_seconds_sum", { a = "x" }))
    assert.are.equal(1, value("web_default_bucket", { le = "0.5" }))
    -- What has no labels is there from the start.
    assert.are.equal(0, value("web_none_total"))
    rig.stop(proc)
  end)

  it("refuses what is wrong where it is written", function()
    run [[
      local metric = kube.metric
      refused("kube.metric.counter needs a name", metric.counter, {})
      refused("kube.metric.counter has no option 'label' (did you mean 'labels'?)", metric.counter,
        { name = "a", label = { "x" } })
      refused("kube.metric.counter has no option 'buckets'", metric.counter, { name = "a", buckets = { 1 } })
      refused('"a-b" is no name for a metric', metric.counter, { name = "a-b" })
      refused("names that begin with workqueue_ are Moonwatch's own", metric.gauge, { name = "workqueue_mine" })
      refused("web_count is what Prometheus makes of a histogram", metric.counter, { name = "web_count" })
      refused('cannot have a label "le"', metric.counter, { name = "a", labels = { "le" } })
      refused("labels must be a list of strings", metric.counter, { name = "a", labels = { code = "x" } })
      refused("bucket 2 of metric a is not above", metric.histogram, { name = "a", buckets = { 2, 1 } })
      local counter = metric.counter { name = "a_total", labels = { "code" } }
      refused("a_total was declared at", metric.counter, { name = "a_total", labels = { "status" } })
      refused("a_total was declared at", metric.gauge, { name = "a_total", labels = { "code" } })
      refused("a_total has no label 'cod' (did you mean 'code'?)", counter.inc, counter, { cod = 1 })
      refused("a_total: label 'code' has no value; it has the labels: code", counter.inc, counter)
      refused("the value of label 'code' must be a string, a number or a boolean, not a table", counter.inc,
        counter, { code = {} })
      refused("a_total is a counter and cannot go down: inc(-1)", counter.inc, counter, { code = 1 }, -1)
      refused("a_total:inc() takes a number, not a string", counter.inc, counter, { code = 1 }, "2")
      refused("a_total is a counter and has no set(): use inc", counter.set, counter, { code = 1 }, 2)
      local gauge = metric.gauge { name = "a_gauge" }
      refused("a_gauge:set() takes a number, not nothing", gauge.set, gauge)
      refused("a_gauge:set() takes a number, not NaN", gauge.set, gauge, 0 / 0)
      refused("a_gauge is a gauge and has no observe(): use set, inc or dec", gauge.observe, gauge, 1)
      refused("call it with a colon: metric:set(...), not metric.set(...)", gauge.set, 1)
      refused("metric has no 'add'", function() return gauge.add end)
    ]]
  end)

  it("leaves names of Moonwatch's own to its modules", function()
    run [[
      local internal = require("kube._metric").internal
      local total = internal("counter", { name = "controller_runtime_spec_total", labels = { "controller" } })
      total:inc { controller = "web" }
      assert(rawget(kube.metric, "internal") == nil)
      refused("names that begin with controller_runtime_ are Moonwatch's own", kube.metric.counter,
        { name = "controller_runtime_spec_total", labels = { "controller" } })
    ]]
  end)

  it("keeps the number of series within bounds", function()
    local proc = rig.start(rig.pods {}, [[
      local many = kube.metric.counter { name = "web_many_total", labels = { "key" } }
      for i = 1, 10200 do
        many:inc { key = i }
        if i % 500 == 0 then kube.sleep(0) end
      end
      many:inc { key = 1 }
      print("counted")
      kube.sleep(1000)
    ]], { args = scrape.args })
    local seen = scrape.of(proc)
    proc:wait_line("counted", 20)
    local families = seen:metrics()
    assert.are.equal(10001, #families.web_many_total.samples)
    assert.are.equal(200, exposition.value(families, "web_many_total", { key = "overflow" }))
    assert.are.equal(2, exposition.value(families, "web_many_total", { key = "1" }))
    proc:wait_stderr("a metric has too many series", 5)
    rig.stop(proc)
  end)
end)
