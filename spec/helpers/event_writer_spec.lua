-- How events are written and named. Requests, time and chance are what the spec says.
require "spec.support.helpers_env"
local objects = require "kube._event_object"
local writer = require "kube._event_writer"

local REFUSED = { code = "refused", message = "connection refused", retriable = true }

-- answers: what the requests get, in order; the last one again and again. true, or an error.
local function rig(answers)
  local r = { requests = {}, slept = {}, notes = {}, stopping = false }
  local function answer(kind, event, patch)
    table.insert(r.requests, kind)
    r.event, r.patch = event, patch
    local a = answers[math.min(#r.requests, #answers)]
    if a == true then return { metadata = event.metadata } end
    return nil, a
  end
  r.io = {
    create = function(event) return answer("create", event) end,
    patch = function(event, patch) return answer("patch", event, patch) end,
    sleep = function(seconds) table.insert(r.slept, seconds) end,
    random = function() return 0.25 end,
    is_stopping = function() return r.stopping end,
    note = function(what) table.insert(r.notes, what) end,
  }
  return r
end

local function event() return { metadata = { name = "e", namespace = "d" } } end

describe("the writer of events", function()
  it("tries twelve times, ten seconds apart, the first pause being a random part of that", function() -- row 99
    local r = rig { REFUSED }
    assert.is_false(writer.write(r.io, event()))
    assert.equal(12, #r.requests)
    local wanted = { 2.5 }
    for i = 2, 11 do wanted[i] = 10 end
    assert.same(wanted, r.slept)
    assert.same({ "given up" }, r.notes)
  end)

  it("stops trying when it went well", function()
    local r = rig { REFUSED, REFUSED, true }
    assert.is_true(writer.write(r.io, event()))
    assert.same({ "create", "create", "create" }, r.requests)
    assert.same({ "written" }, r.notes)
  end)

  it("does not try again what the server refused", function() -- row 99
    for _, case in ipairs {
      { { code = "forbidden", status = 403, message = "m" }, "refused" },
      { { code = "internal", status = 500, message = "m", retriable = true }, "refused" },
      { { code = "already_exists", status = 409, message = "m" }, "superfluous" },
      { { code = "forbidden", status = 403, message = "m",
        details = { causes = { { reason = "NamespaceTerminating" } } } }, "superfluous" },
      { { code = "not_leading", message = "m" }, "refused" },
    } do
      local r = rig { case[1] }
      assert.is_true(writer.write(r.io, event()))
      assert.same({ { "create" }, {}, { case[2] } }, { r.requests, r.slept, r.notes })
    end
  end)

  it("creates anew what is no longer there to be patched", function() -- row 99
    local r = rig { { code = "not_found", status = 404, message = "m" }, true }
    assert.is_true(writer.write(r.io, event(), { count = 2 }))
    assert.same({ "patch", "create" }, r.requests)
    assert.same({ "written" }, r.notes)
    r = rig { true }
    writer.write(r.io, event(), { count = 2 })
    assert.same({ { "patch" }, { count = 2 } }, { r.requests, r.patch })
  end)

  it("tries once when the end has begun, and gives up in a pause when it begins", function() -- row 99
    local r = rig { REFUSED }
    r.stopping = true
    assert.is_false(writer.write(r.io, event()))
    assert.same({ 1, {}, { "given up" } }, { #r.requests, r.slept, r.notes })
    r = rig { REFUSED }
    r.io.sleep = function() r.stopping = true end
    assert.is_false(writer.write(r.io, event()))
    assert.equal(1, #r.requests)
  end)

  it("tries again when the event of a series came to be between patch and create", function()
    local gone, exists = { code = "not_found", status = 404 }, { code = "already_exists", status = 409 }
    local r = rig { gone, exists, true }
    local e = event()
    e.series = { count = 2 }
    assert.is_true(writer.write(r.io, e, { series = e.series }))
    assert.same({ "patch", "create", "patch" }, r.requests)
  end)
end)

describe("an event's name", function()
  it("is that of the object with the time in hexadecimal nanoseconds", function() -- row 101
    local name = objects.namer(function() return "uuid" end)
    assert.equal("web.18b058896ff54a00", name("web", 1779019200.123456))
    assert.equal("a.f4240", objects.namer(print)("a", 0.001))
  end)

  it("is a UUID where that cannot be a name", function() -- row 101
    local name = objects.namer(function() return "uuid" end)
    for _, bad in ipairs { "Web", "a_b", "a/b", "-a", "a..b", "a b", ("x"):rep(240) } do
      assert.equal("uuid", name(bad, 1779019200), bad)
    end
    assert.truthy(name("a.b-c.9", 1):find("^a%.b%-c%.9%.%x+$"))
  end)

  it("never comes twice, whatever the clock does", function()
    local name = objects.namer(print)
    local seen = {}
    for i = 1, 5000 do
      local made = name("a", 5 + math.floor(i / 2500) * 0.000001)
      assert.is_nil(seen[made])
      seen[made] = true
    end
  end)
end)

describe("an event", function()
  local pod = { apiVersion = "v1", kind = "Pod", metadata = { name = "p", namespace = "d", uid = "u",
    resourceVersion = "7" } }

  local function note(object, message)
    return { reference = objects.reference(object), type = "Warning", reason = "R", message = message or "m",
      now = 1.5 }
  end

  it("of core/v1 has the object, who reports, and the time of the first and the last", function()
    assert.same({
      apiVersion = "v1", kind = "Event", metadata = { name = "e", namespace = "d" },
      involvedObject = { apiVersion = "v1", kind = "Pod", name = "p", namespace = "d", uid = "u",
        resourceVersion = "7" },
      type = "Warning", reason = "R", message = "m", count = 1, firstTimestamp = "1970-01-01T00:00:01Z",
      lastTimestamp = "1970-01-01T00:00:01Z", source = { component = "c", host = "h" }, reportingComponent = "c",
      reportingInstance = "h",
    }, objects.core(note(pod), { component = "c", host = "h" }, "e"))
  end)

  it("of events.k8s.io has microseconds, an action and an instance", function()
    local made = objects.events(note(pod), { component = "c" }, "e")
    assert.same({ "1970-01-01T00:00:01.500000Z", "R", "c", "c-moonwatch", "p" }, { made.eventTime, made.action,
      made.reportingController, made.reportingInstance, made.regarding.name })
  end)

  it("of an object without a namespace is in the namespace default", function() -- row 100
    local node = { apiVersion = "v1", kind = "Node", metadata = { name = "n" } }
    local made = objects.core(note(node), { component = "c" }, "e")
    assert.equal("default", made.metadata.namespace)
    assert.is_nil(made.involvedObject.namespace)
  end)

  it("has a message of at most 1024 bytes, cut between characters", function()
    local made = objects.core(note(pod, ("ä"):rep(600)), { component = "c" }, "e")
    assert.equal(("ä"):rep(510) .. "...", made.message)
    assert.equal(1024, #objects.core(note(pod, ("x"):rep(2000)), { component = "c" }, "e").message)
    assert.equal(("x"):rep(1024), objects.core(note(pod, ("x"):rep(1024)), { component = "c" }, "e").message)
  end)

  it("needs something to refer to", function()
    for _, bad in ipairs { {}, { kind = "Pod", apiVersion = "v1" }, { kind = "Pod", metadata = { name = "p" } } } do
      assert.is_nil(objects.reference(bad))
    end
  end)
end)
