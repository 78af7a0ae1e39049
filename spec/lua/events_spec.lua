-- Events that scripts record, in the real binary. What is counted, combined and filtered, and how often the
-- writer tries, is proved in spec/helpers.
local cleanup = require "spec.support.cleanup"
local rig = require "spec.support.script_rig"
local run = require "spec.support.run"
local scrape = require "spec.support.scrape"
local script_server = require "spec.support.script_server"

local prelude = [[
  local kube, sandbox = require "kube", require "kube.sandbox"
  kube.sleep(0)
  local client = kube.new_client()
  local function eventually(condition)
    for _ = 1, 2000 do
      if condition() then return end
      kube.sleep(0.005)
    end
    error("it did not come true in ten seconds", 2)
  end
  local function object(name, namespace)
    return { apiVersion = "v1", kind = "ConfigMap", metadata = { name = name or "a", namespace = namespace or "default",
      uid = "u-" .. (name or "a") } }
  end
  local function events(resource)
    local list = {}
    for event in client:each(resource or "v1/events") do list[#list + 1] = event end
    return list
  end
]]

-- Runs a script with a sandbox inside; its result.
local function passes(source)
  local result = run.run_script(prelude .. source, { args = { "--sandbox" } })
  assert.are.equal(0, result.code, result.stdout .. result.stderr)
  return result
end

local function count(text, part) return select(2, text:gsub(part:gsub("%p", "%%%0"), "")) end

describe("a recorder", function()
  cleanup.install()

  it("writes an event, and the same again as its count", function()
    passes [[
      local r = kube.recorder { name = "web", host = "h" }
      for _ = 1, 3 do r:warn(object(), "Bad", "%d of %s", 5, "x") end
      r:normal(object(), "Good", "100 %")
      eventually(function() return r:stats().written == 4 end)
      local list = events()
      assert(#list == 2)
      if list[1].reason == "Good" then list[1], list[2] = list[2], list[1] end
      local bad, good = list[1], list[2]
      assert(bad.count == 3 and bad.type == "Warning" and bad.message == "5 of x" and bad.reason == "Bad")
      assert(bad.source.component == "web" and bad.source.host == "h" and bad.reportingComponent == "web")
      assert(bad.involvedObject.uid == "u-a" and bad.involvedObject.kind == "ConfigMap")
      assert(bad.metadata.name:find("^a%.%x+$") and bad.metadata.namespace == "default")
      assert(good.count == 1 and good.type == "Normal" and good.message == "100 %")
    ]]
  end)

  it("writes series to events.k8s.io", function()
    passes [[
      local r = kube.recorder { name = "web", api = "events" }
      for _ = 1, 4 do r:event(object(), "Normal", "Scaled", "up") end
      r:record { object = object(), related = object("b"), reason = "Bound", action = "Bind", message = "to b",
        type = "Warning" }
      eventually(function() return r:stats().written == 3 end)
      local list = events("events.k8s.io/v1/events")
      assert(#list == 2)
      if list[1].reason == "Bound" then list[1], list[2] = list[2], list[1] end
      local scaled, bound = list[1], list[2]
      assert(scaled.series.count == 2 and scaled.note == "up" and scaled.reportingController == "web")
      assert(bound.related.name == "b" and bound.action == "Bind" and bound.type == "Warning" and not bound.series)
    ]]
  end)

  it("creates anew what was deleted since, with its count", function() -- row 99
    passes [[
      local r = kube.recorder { name = "web" }
      r:normal(object(), "Started", "m")
      eventually(function() return r:stats().written == 1 end)
      local first = events()[1]
      client:delete("v1/events", kube.key(first))
      r:normal(object(), "Started", "m")
      eventually(function() return r:stats().written == 2 end)
      local again = events()[1]
      assert(again.metadata.name == first.metadata.name and again.count == 2)
      assert(again.metadata.uid ~= first.metadata.uid)
    ]]
  end)

  it("does not try again what the server refused, says so, and goes on", function() -- row 99
    local result = passes [[
      sandbox.fault { verb = "create", resource = "events", status = 403, reason = "Forbidden", message = "not you" }
      local r = kube.recorder { name = "web" }
      r:normal(object("a"), "First", "m")
      r:normal(object("b"), "Second", "m")
      eventually(function() return r:stats().written == 1 end)
      assert(r:stats().refused == 1 and events()[1].reason == "Second")
    ]]
    assert.equal(1, count(result.stderr, "the server refused an event"), result.stderr)
    assert.truthy(result.stderr:find('"recorder":"web","reason":"First"', 1, true)
      or result.stderr:find('"reason":"First","recorder":"web"', 1, true), result.stderr)
  end)

  it("never waits: a thousand are queued, more are dropped with a line and a number", function() -- row 100
    local result = passes [[
      local r = kube.recorder { name = "web" }
      for i = 1, 1200 do r:normal(object("o" .. i), "Started", "m") end
      local stats = r:stats()
      assert(stats.recorded == 1200 and stats.dropped >= 199 and stats.dropped <= 200, stats.dropped)
      eventually(function() return r:stats().waiting == 0 and r:stats().written == 1200 - stats.dropped end)
      r:normal(object("late"), "Started", "m")
      eventually(function() return r:stats().written == 1201 - stats.dropped end)
    ]]
    assert.equal(1, count(result.stderr, "events are dropped: 1000 wait to be written already"), result.stderr)
  end)

  it("counts on /metrics what became of events", function()
    local proc = run.start_script(prelude .. [[
      sandbox.fault { verb = "create", resource = "events", status = 403, reason = "Forbidden", message = "no" }
      local r = kube.recorder { name = "web" }
      for i = 1, 3 do r:normal(object("a" .. i), "Started", "m") end
      kube.sleep(1000)
    ]], { args = { "--sandbox", unpack(scrape.args) } })
    cleanup.later(function() proc:kill("sigkill") end)
    local seen = scrape.of(proc)
    seen:wait_value(2, "moonwatch_events_total", { recorder = "web", result = "written" })
    seen:wait_value(1, "moonwatch_events_total", { recorder = "web", result = "refused" })
    seen:wait_value(3, "moonwatch_events_total", { recorder = "web", result = "recorded" })
    rig.stop(proc)
  end)

  it("is not held up by another whose events cannot be written", function() -- row 100
    local proc = run.start_script(prelude .. [[
      kube.request { method = "POST", path = "/api/v1/namespaces", body = { metadata = { name = "dead" } } }
      sandbox.fault { verb = "create", resource = "events", namespace = "dead", cut = true, count = 0 }
      local stuck, free = kube.recorder { name = "stuck" }, kube.recorder { name = "free" }
      stuck:normal(object("a", "dead"), "Started", "m")
      stuck:normal(object("a"), "Behind", "m")
      for i = 1, 3 do free:normal(object("b"), "Started", "m") end
      eventually(function() return free:stats().written == 3 end)
      assert(stuck:stats().written == 0 and stuck:stats().waiting == 1)
      print("free")
    ]], { args = { "--sandbox" } })
    cleanup.later(function() proc:kill("sigkill") end)
    proc:wait_line("^free", 15)
    rig.stop(proc)
  end)

  it("puts events of objects without a namespace into default", function() -- row 100
    passes [[
      kube.events:normal({ apiVersion = "v1", kind = "Node", metadata = { name = "n" } }, "Ready", "m")
      eventually(function() return kube.events:stats().written == 1 end)
      assert(events()[1].metadata.namespace == "default" and events()[1].source.component == "moonwatch")
    ]]
  end)

  it("logs what cannot be an event, with the line that recorded it, and drops it", function()
    local result = passes [[
      local r = kube.recorder { name = "web" }
      r:event(object(), "Bogus", "Reason", "m")
      r:normal({ metadata = { name = "a" } }, "Reason", "m")
      assert(r:stats().invalid == 2 and r:stats().recorded == 0)
    ]]
    assert.truthy(result.stderr:find("an event is Normal or Warning, not 'Bogus'", 1, true), result.stderr)
    assert.truthy(result.stderr:find("an event needs an object with apiVersion, kind and metadata.name", 1, true))
    assert.truthy(result.stderr:find('script%.lua:%d+"'), result.stderr)
  end)

  it("is misused with the line of the script", function()
    passes [[
      local function refused(text, fn, ...)
        local ok, err = pcall(fn, ...)
        local message = tostring(err)
        assert(not ok, "it was not refused: " .. text)
        assert(message:find("^[^\n]*script%.lua:%d+: "), "no place: " .. message)
        assert(message:find(text, 1, true), ("wanted %s\ngot %s"):format(text, message))
      end
      local r = kube.recorder { name = "web" }
      refused("recorder: name must be a text, not a nil", kube.recorder, {})
      refused("recorder has no option 'nam' (did you mean 'name'?)", kube.recorder, { nam = "x" })
      refused("api is \"core\" or \"events\", not 'v2'", kube.recorder, { name = "x", api = "v2" })
      refused("recorder:normal: the object must be an object, not a string", r.normal, r, "pod", "R", "m")
      refused("recorder:warn: the reason must be a text, not a nil", r.warn, r, object())
      refused("recorder:warn: the message must be a text, not a number", r.warn, r, object(), "R", 5)
      refused("recorder:warn: the message: bad argument", r.warn, r, object(), "R", "%d", "x")
      refused("recorder:record has no option 'msg'", r.record, r, { msg = "x" })
      refused("recorder has no 'warning'; it has: event, normal, record, stats, warn",
        function() r:warning(object(), "R", "m") end)
      refused("call it with a colon: recorder:warn(...), not recorder.warn(...)", r.warn, object(), "R", "m")
      refused("call it with a dot: kube.recorder(...)", kube.recorder, kube, {})
    ]]
  end)

  it("writes what was recorded last before the script ends", function()
    local server = script_server.new(function(request) return { status = 201, body = request.body } end)
    cleanup.later(function() server:close() end)
    rig.run(server, [[
      local pod = { apiVersion = "v1", kind = "Pod", metadata = { name = "a", namespace = "d" } }
      kube.events:normal(pod, "One", "while it loads")
      kube.sleep(0)
      for i = 1, 5 do kube.events:normal(pod, "Reason" .. i, "m") end
    ]])
    assert.equal(6, #server.requests)
    assert.equal("/api/v1/namespaces/d/events?fieldManager=moonwatch", server.requests[1].target)
  end)

  it("has one try for each when it is told to stop, and gives the rest up", function() -- row 99
    local server = script_server.new(function() return { lost = true } end)
    cleanup.later(function() server:close() end)
    local proc = rig.start(server, [[
      local pod = { apiVersion = "v1", kind = "Pod", metadata = { name = "a", namespace = "d" } }
      kube.sleep(0)
      for i = 1, 3 do kube.events:normal(pod, "Reason" .. i, "m") end
      print("recorded")
      kube.stop_channel():wait()
    ]])
    proc:wait_line("^recorded", 10)
    local stop = os.time() + 10
    while #server.requests == 0 do
      assert(os.time() < stop, "nothing was written")
      server.turn()
    end
    local _, stderr = rig.stop(proc)
    assert.equal(3, count(stderr, "an event could not be written and is given up"), stderr)
    assert.equal(3, #server.requests)
  end)
end)
