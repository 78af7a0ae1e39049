-- MOONWATCH_MUTATION_DETECTOR: who changes a cached object is told so.
local cleanup = require "spec.support.cleanup"
local rig = require "spec.support.script_rig"

local function count(text, pattern)
  local _, n = text:gsub(pattern, "")
  return n
end

local changed = '"level":"error","msg":"a cached object was changed[^"]*","function":"[^"]*script.lua","key":"%s",'
  .. '"path":"%s","task":"main"'

describe("the mutation detector", function()
  cleanup.install()

  local source = [[
    local stop = kube.stop_channel()
    local factory = kube.shared_informer_factory {}
    local lister = factory:core():v1():pods():lister()
    factory:start(stop)
    factory:wait_for_cache_sync()
    local pod = lister:get("default/a")
    local mine = kube.copy(lister:get("default/b"))
    mine.metadata.labels.app = "changed"
    pod.metadata.labels.app = "changed"
    pod.spec.extra = true
    kube.sleep(SECONDS)
    stop:close()
  ]]

  it("logs each changed place of a cached object once, and no copy", function() -- row 78
    local _, log = rig.run(rig.pods { a = {}, b = {} }, (source:gsub("SECONDS", "2.3")),
      { env = { MOONWATCH_MUTATION_DETECTOR = "1" } })
    assert.are.equal(1, count(log, changed:format("default/a", "metadata%.labels%.app")), log)
    assert.are.equal(1, count(log, changed:format("default/a", "spec%.extra")), log)
    assert.are.equal(2, count(log, "a cached object was changed"), log)
  end)

  it("looks a last time when the script ends, and does not keep it running", function() -- row 78
    local _, log = rig.run(rig.pods { a = {}, b = {} }, (source:gsub("SECONDS", "0")),
      { env = { MOONWATCH_MUTATION_DETECTOR = "1" } })
    assert.are.equal(2, count(log, "a cached object was changed"), log)
  end)

  -- Reads `default/a` in a task that changes it, and again after that.
  local spoiling = [[
    local task = require "kube._task"
    local stop = kube.stop_channel()
    local factory = kube.shared_informer_factory {}
    local lister = factory:core():v1():pods():lister()
    factory:start(stop)
    factory:wait_for_cache_sync()
    local function reconcile(key)
      local pod = lister:get(key)
      kube.sleep(0)
      pod.spec.nodeName = "spoilt"
      return pod
    end
    local spoilt = 0
    for _ = 1, TIMES do
      local _, pod = task.run({ name = "worker", trigger = "controller web, key default/a" }, reconcile, "default/a")
      if lister:get("default/a") == pod then spoilt = spoilt + 1 end
      pod.spec.nodeName = nil -- for the runs that nobody looked at
    end
    print(spoilt)
    stop:close()
  ]]

  it("names the task, its trigger and its function, and the next read is fresh", function() -- row 78
    local out, log = rig.run(rig.pods { a = {} }, (spoiling:gsub("TIMES", "3")),
      { env = { MOONWATCH_MUTATION_DETECTOR = "1" } })
    assert.are.equal("0\n", out)
    assert.are.equal(3, count(log, "a cached object was changed"), log)
    assert.are.equal(3, count(log, '"function":"[^"]*script.lua:%d+%-%d+","key":"default/a","path":"spec.nodeName",'
      .. '"task":"worker","trigger":"controller web, key default/a"'), log)
  end)

  it("finds what a handler or its filter does to the object that it is given", function() -- row 78
    local _, log = rig.run(rig.pods { a = {}, b = {} }, [[
      local stop = kube.stop_channel()
      local factory = kube.shared_informer_factory {}
      local informer = factory:core():v1():pods():informer()
      informer:add_event_handler { on_add = function(pod)
        if pod.metadata.name == "a" then pod.metadata.labels.app = "changed" end
      end }
      factory:start(stop)
      factory:wait_for_cache_sync()
      local late = informer:add_event_handler {
        filter = function(pod)
          if pod.metadata.name == "b" then pod.spec = nil end
          return false
        end,
        on_add = print,
      }
      kube.wait_for_cache_sync(stop, late)
      stop:close()
    ]], { env = { MOONWATCH_MUTATION_DETECTOR = "1" } })
    assert.are.equal(1, count(log, '"function":"[^"]*script.lua:%d+%-%d+","key":"default/a",'
      .. '"path":"metadata%.labels%.app","task":"v1/pods handler"'), log)
    assert.are.equal(1, count(log, '"key":"default/b","path":"spec"'), log)
    assert.are.equal(2, count(log, "a cached object was changed"), log)
  end)

  it("goes on when handlers were removed", function()
    local _, log = rig.run(rig.pods { a = {} }, [[
      local stop = kube.stop_channel()
      local factory = kube.shared_informer_factory {}
      local pods = factory:core():v1():pods()
      local informer, lister = pods:informer(), pods:lister()
      local registration = informer:add_event_handler { on_add = function() end, on_delete = function() end }
      factory:start(stop)
      factory:wait_for_cache_sync()
      registration:shutdown()
      lister:get("default/a").spec = nil
      stop:close()
    ]], { env = { MOONWATCH_MUTATION_DETECTOR = "1" } })
    assert.are.equal(1, count(log, changed:format("default/a", "spec")), log)
    assert.is_nil(log:find("failed", 1, true), log)
  end)

  it("looks at one task in a hundred by itself", function()
    local out, log = rig.run(rig.pods { a = {} }, (spoiling:gsub("TIMES", "450")),
      { env = { MOONWATCH_MUTATION_DETECTOR = false } })
    local found = count(log, "a cached object was changed")
    assert.is_true(found >= 4 and found <= 5, log)
    assert.are.equal(450 - found, tonumber(out))
  end)

  it("is off unless it is asked for", function()
    for _, value in ipairs { "", "0" } do
      local _, log = rig.run(rig.pods { a = {}, b = {} }, (source:gsub("SECONDS", "0")),
        { env = { MOONWATCH_MUTATION_DETECTOR = value } })
      assert.are.equal(0, count(log, "a cached object was changed"), log)
    end
  end)
end)
