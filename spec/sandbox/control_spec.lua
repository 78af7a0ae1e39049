-- What no cluster offers: faults, forgotten history, held watches, a clock and ids that can be set.
local rig = require "spec.support.sandbox_rig"

local CM = "/api/v1/namespaces/default/configmaps"

describe("the sandbox's control", function()
  local box
  before_each(function() box = rig.new { seed = 7 } end)

  local function control(method, name, body)
    local code, document = box:request(method, "/sandbox/v1/" .. name, body)
    assert.is_truthy(code < 300, tostring(document.message))
    return document
  end

  local function since_now() return CM .. "?watch=1&resourceVersion=" .. box.S.store.revision end

  it("fires everything that becomes due in one advance of the clock, in its order", function()
    local clock, fired = box.S.clock, {}
    clock:freeze(1000)
    clock:after(3, function() fired[#fired + 1] = "third" end)
    clock:after(1, function()
      fired[#fired + 1] = "first"
      clock:after(1, function() fired[#fired + 1] = "second" end)
    end)
    clock:after(9, function() fired[#fired + 1] = "too late" end)
    clock:advance(5)
    assert.are.same({ "first", "second", "third" }, fired)
    assert.are.equal(1005, clock:now())
  end)

  it("refuses the nth request of a kind and a verb with the status that was asked for", function()
    control("POST", "faults", { verb = "create", resource = "configmaps", nth = 2, status = 429, retry_after = 3 })
    assert.are.equal(201, (box:post(CM, { metadata = { name = "a" } })))
    local code, document, response = box:post(CM, { metadata = { name = "b" } })
    assert.are.equal(429, code)
    assert.are.equal("TooManyRequests", document.reason)
    assert.are.equal(3, document.details.retryAfterSeconds)
    assert.are.equal("3", rig.header(response, "Retry-After"))
    assert.are.equal(201, (box:post(CM, { metadata = { name = "b" } })))
  end)

  for _, case in ipairs {
    { "get", "GET", CM .. "/x" }, { "list", "GET", CM }, { "watch", "GET", CM .. "?watch=1" },
    { "create", "POST", CM, {} }, { "update", "PUT", CM .. "/x", {} }, { "patch", "PATCH", CM .. "/x", {} },
    { "delete", "DELETE", CM .. "/x" }, { "deletecollection", "DELETE", CM },
  } do
    it(("throttles a %s with Retry-After, before it does anything"):format(case[1]), function()
      box:create(CM, { metadata = { name = "x" } })
      control("POST", "faults", { verb = case[1], status = 429, retry_after = 7 })
      local revision = box.S.store.revision
      local code, document, response = box:request(case[2], case[3], case[4])
      assert.are.same({ 429, 7, "7", revision }, { code, document.details.retryAfterSeconds,
        rig.header(response, "Retry-After"), box.S.store.revision })
    end)
  end

  it("makes the writes of a subresource fail, and no others", function()
    box:create(CM:gsub("configmaps", "pods"), { metadata = { name = "p" },
      spec = { containers = { { name = "c", image = "i" } } } })
    control("POST", "faults", { subresource = "status", status = 500, count = 0 })
    local pod = CM:gsub("configmaps", "pods/p")
    assert.are.equal(500, (box:merge(pod .. "/status", { status = { phase = "Running" } })))
    assert.are.equal(200, (box:merge(pod, { metadata = { labels = { a = "b" } } })))
  end)

  it("refuses as many as were asked for, and all of them for count 0", function()
    control("POST", "faults", { verb = "get", count = 2, status = 503 })
    assert.are.equal(503, (box:get(CM .. "/x")))
    assert.are.equal(503, (box:get(CM .. "/x")))
    assert.are.equal(404, (box:get(CM .. "/x")))
    local fault = control("POST", "faults", { verb = "get", count = 0, status = 500 })
    for _ = 1, 5 do assert.are.equal(500, (box:get(CM .. "/x"))) end
    control("DELETE", "faults/" .. fault.id)
    assert.are.equal(404, (box:get(CM .. "/x")))
  end)

  it("leaves other resources, names and the sandbox's own controllers alone", function()
    control("POST", "faults", { resource = "secrets", status = 500, count = 0 })
    control("POST", "faults", { resource = "configmaps", name = "bad", status = 500, count = 0 })
    assert.are.equal(404, (box:get(CM .. "/good")))
    assert.are.equal(500, (box:get(CM .. "/bad")))
    control("POST", "faults", { verb = "create", resource = "serviceaccounts", status = 500, count = 0 })
    box:create("/api/v1/namespaces", { metadata = { name = "a" } })
    assert.are.equal(200, (box:get("/api/v1/namespaces/a/serviceaccounts/default")))
  end)

  it("delays an answer and cuts a connection", function()
    control("POST", "faults", { verb = "list", delay = 2.5 })
    local _, _, response = box:get(CM)
    assert.are.equal(2.5, response.delay)
    control("POST", "faults", { verb = "list", cut = true })
    _, _, response = box:get(CM)
    assert.is_true(response.reset)
  end)

  it("cuts a watch after so many events", function()
    control("POST", "faults", { verb = "watch", cut_after = 2 })
    local events = box:watch(since_now())
    for _, name in ipairs { "a", "b", "c" } do box:create(CM, { metadata = { name = name } }) end
    box:settle()
    assert.are.equal("ADDED a, ADDED b", rig.summary(events))
    assert.are.equal("reset", events.over)
  end)

  it("sends the events of a slow watch one by one, each after its time", function()
    control("POST", "clock", { freeze = 1000 })
    control("POST", "faults", { verb = "watch", event_delay = 2 })
    local events = box:watch(since_now())
    for _, name in ipairs { "a", "b", "c" } do box:create(CM, { metadata = { name = name } }) end
    box:settle()
    assert.are.equal("", rig.summary(events))
    for _, seen in ipairs { "ADDED a", "ADDED a, ADDED b", "ADDED a, ADDED b, ADDED c" } do
      control("POST", "clock", { advance = 2 })
      assert.are.equal(seen, rig.summary(events))
    end
  end)

  it("keeps what waits for a slow watch out of its way: the watch is cut when history forgets it", function()
    box = rig.new { history = 10 }
    control("POST", "clock", { freeze = 1000 })
    control("POST", "faults", { verb = "watch", event_delay = 60 })
    local events = box:watch(since_now())
    for i = 1, 30 do
      box:create(CM, { metadata = { name = "a" .. i } })
      box:settle()
    end
    assert.are.equal("reset", events.over)
    assert.are.equal(0, #control("GET", "watches").items)
  end)

  it("tells a list by a status and a watch by an event that history is gone", function()
    control("POST", "faults", { expired = true, count = 2 })
    local code, document = box:get(CM)
    assert.are.same({ 410, "Expired" }, { code, document.reason })
    local events = box:watch(since_now())
    assert.are.same({ "ERROR", 410, "finished" }, { events[1].type, events[1].object.code, events.over })
    assert.are.equal(200, (box:get(CM)))
  end)

  it("forgets history: watches and exact lists from the past are told 410", function()
    local old = box.S.store.revision
    box:create(CM, { metadata = { name = "a" } })
    control("POST", "expire")
    local events = box:watch(CM .. "?watch=1&resourceVersion=" .. old)
    assert.are.equal("ERROR", events[1].type)
    assert.are.equal(410, events[1].object.code)
    assert.are.equal("finished", events.over)
    assert.are.equal(410, (box:get(CM .. "?resourceVersionMatch=Exact&resourceVersion=" .. old)))
  end)

  it("holds events of watches back, and lets them go one by one", function()
    local events = box:watch(since_now())
    control("POST", "watches", { action = "pause" })
    for _, name in ipairs { "a", "b", "c" } do box:create(CM, { metadata = { name = name } }) end
    assert.are.equal("", rig.summary(events))
    control("POST", "watches", { action = "step" })
    assert.are.equal("ADDED a", rig.summary(events))
    control("POST", "watches", { action = "resume" })
    assert.are.equal("ADDED a, ADDED b, ADDED c", rig.summary(events))
  end)

  it("sends bookmarks to the watches that want some, behind what waits", function()
    local wanting, other = box:watch(since_now() .. "&allowWatchBookmarks=true"), box:watch(since_now())
    box:create(CM, { metadata = { name = "a" } })
    local answer = control("POST", "watches", { action = "bookmark" })
    assert.are.equal(box.S.store.revision, answer.revision)
    assert.are.equal(("%d"):format(answer.revision), wanting[#wanting].object.metadata.resourceVersion)
    assert.are.equal("BOOKMARK", wanting[#wanting].type)
    assert.are.equal("ADDED a", rig.summary(other))
  end)

  it("stops the clock and moves it on: events of the past hour go when it is over", function()
    control("POST", "clock", { freeze = 1000 })
    local created = box:create("/api/v1/namespaces/default/events", { metadata = { name = "e" }, type = "Normal",
      involvedObject = { kind = "Pod", namespace = "default", name = "p" } })
    assert.are.equal("1970-01-01T00:16:40Z", created.metadata.creationTimestamp)
    control("POST", "clock", { advance = 3599 })
    assert.are.equal(200, (box:get("/api/v1/namespaces/default/events/e")))
    control("POST", "clock", { advance = 2 })
    assert.are.equal(404, (box:get("/api/v1/namespaces/default/events/e")))
    assert.are.equal(4601, control("GET", "clock").now)
    assert.is_false(control("POST", "clock", { thaw = true }).frozen)
  end)

  it("gives the same uids and suffixes for the same seed", function()
    local function made()
      control("POST", "seed", { seed = 42 })
      local document = box:create(CM, { metadata = { generateName = "gen-" } })
      box:delete(CM .. "/" .. document.metadata.name)
      return document.metadata.name .. " " .. document.metadata.uid
    end
    assert.are.equal(made(), made())
    assert.is_truthy(made():find("^gen%-[bcdfghjklmnpqrstvwxz2456789]+ %x+%-%x+%-4%x+%-[89ab]%x+%-%x+$"))
  end)

  it("goes back to a snapshot, and ends the watches that knew what came after", function()
    box:create(CM, { metadata = { name = "a" } })
    local snapshot = control("GET", "snapshot")
    box:create(CM, { metadata = { name = "b" } })
    local events = box:watch(since_now())
    control("PUT", "snapshot", snapshot)
    assert.is_truthy(events.over)
    assert.are.equal(200, (box:get(CM .. "/a")))
    assert.are.equal(404, (box:get(CM .. "/b")))
  end)

  for _, case in ipairs {
    { "POST", "faults", { verb = "get" }, "a fault needs one of" },
    { "POST", "faults", { stauts = 500 }, "unknown field 'stauts'" },
    { "POST", "faults", { status = 200 }, "must be one of a failure" },
    { "POST", "faults", { status = "500" }, "'status' must be a number" },
    { "DELETE", "faults/77", nil, "there is no fault 77" },
    { "POST", "watches", { action = "stop" }, "'action' must be pause, step, resume, bookmark or cut" },
    { "POST", "clock", { advance = 1 }, "only a frozen clock can be advanced" },
    { "PUT", "snapshot", "[]", "must be a snapshot" },
    { "POST", "seed", "{bad", "the body must be a JSON object" },
  } do
    it(("answers %s %s that is wrong with one sentence: %s"):format(case[1], case[2], case[4]), function()
      local code, document = box:request(case[1], "/sandbox/v1/" .. case[2], case[3])
      assert.are.equal(400, code)
      assert.is_truthy(document.message:find(case[4], 1, true), document.message)
    end)
  end

  it("takes nothing from whoever has no token", function()
    local code = box:request("POST", "/sandbox/v1/expire", nil, { authorization = "Bearer wrong" })
    assert.are.equal(401, code)
  end)
end)
