-- The reflector's snapshots by streaming list (S-WL).
jit.off(true, true)
local captured = require "spec.support.captured"
local rig = require "spec.support.reflector_rig"
local unit = require "spec.support.unit"
local C = unit.C

local pod, list, fail, event = rig.pod, rig.list, rig.fail, rig.event
local open, ended, marker, bookmark = rig.open, rig.ended, rig.marker, rig.bookmark

describe("a reflector that streams its first list", function()
  local r
  local function new(answers)
    r = rig.new(answers)
    r:start()
    return r
  end
  after_each(function()
    if r then r:close() end
    r = nil
  end)
  unit.no_leaks()

  it("asks for the initial events and watches on in the same stream", function() -- rows 1, 26
    new { stream = { open(event("ADDED", pod("b", 7)), event("ADDED", pod("a", 3)), marker("9"),
      event("ADDED", pod("c", 11))) } }
    r:wait_log(2)
    assert.are.same({ "replace 9: default/b@7 default/a@3", "add default/c@11" }, r.log)
    local query = r.sent.stream[1].query
    local timeout = tonumber(query.timeoutSeconds)
    assert.is_true(timeout >= 300 and timeout < 600)
    assert.are.same({ watch = "true", allowWatchBookmarks = "true", sendInitialEvents = "true",
      resourceVersionMatch = "NotOlderThan", timeoutSeconds = query.timeoutSeconds }, query)
    assert.are.equal(1, #r.server.requests)
    assert.are.same({ "streaming", "watching" }, r.states)
    assert.are.equal("11", r:rv())
    assert.are.equal(1, tonumber(r:stats().watches))
    assert.are.equal(4, tonumber(r:stats().events))
  end)

  it("hands nothing on before the marker", function() -- row 26
    new { stream = { open(event("ADDED", pod("a", 1)), bookmark("5"), bookmark("6", "false"),
      bookmark("7", "True"), bookmark("8", "")) } }
    r:pump(function() return tonumber(r:stats().events) == 5 end)
    r:idle()
    assert.are.same({}, r.log)
    r.server.streams[1]:send(marker("9"))
    r:wait_log(1)
    assert.are.same({ "replace 9: default/a@1" }, r.log)
  end)

  -- How often that was said until the condition held.
  local function said(what, answers, condition)
    local _, count = captured(function()
      new(answers)
      C.mw_log_set_level(C.MW_LOG_WARN)
      r:pump(condition)
    end):gsub(what, "")
    return count
  end

  local function after(seconds)
    local from = C.mw_clock_now()
    return function() return C.mw_clock_now() - from > seconds * 1e9 end
  end

  it("says that nothing came, each time again", function()
    assert.is_true(said("the streaming list has not sent anything yet",
      { stream = { open() }, config = { slow = 0.02 } }, after(0.15)) >= 3)
  end)

  it("says more and more seldom that events come and no marker", function()
    local events, over = 1, after(0.9)
    local count = said("not yet complete; a server that does not know them never ends one",
      { stream = { open(event("ADDED", pod("a", 1))) }, config = { slow = 0.05 } }, function()
        if r.server.streams[1] then
          events = events + 1
          r.server.streams[1]:send(event("MODIFIED", pod("a", events)))
        end
        return over()
      end)
    -- At the 2nd, 4th, 8th and 16th of 17 ticks, if all are in time.
    assert.is_true(count >= 1 and count <= 4, count)
    assert.are.same({}, r.log)
  end)

  it("honours updates and deletions that come before the marker", function() -- row 26
    new { stream = { open(event("ADDED", pod("a", 1)), event("ADDED", pod("b", 2)),
      event("ADDED", pod("c", 3)), event("MODIFIED", pod("a", 4)), event("DELETED", pod("b", 5)),
      event("DELETED", pod("never", 6)), marker("7")) } }
    r:wait_log(1)
    assert.are.same({ "replace 7: default/c@3 default/a@4" }, r.log)
  end)

  it("passes an empty stream on as an empty snapshot", function() -- row 26
    new { stream = { open(marker("9")) } }
    r:wait_log(1)
    assert.are.same({ "replace 9: " }, r.log)
  end)

  it("does not hold on to versions that were replaced before the marker", function()
    local events = {}
    for i = 1, 5000 do events[i] = event("MODIFIED", pod("a", i)) end
    new { stream = { open(table.concat(events)) } }
    r:pump(function() return tonumber(r:stats().events) == 5000 end)
    assert.is_true(tonumber(unit.C.mw_live_get(unit.C.MW_LIVE_OBJECT)) < 2000)
    r.server.streams[1]:send(marker("6000"))
    r:wait_log(1)
    assert.are.same({ "replace 6000: default/a@5000" }, r.log)
  end)

  it("waits and streams again when the server is throttling, and never lists", function()
    -- rows 10, 26
    new { stream = { fail(429, "TooManyRequests"), fail(429, "TooManyRequests"),
      open(event("ADDED", pod("a", 1)), rig.error_event(429, "TooManyRequests", "slower")),
      open(marker("9")) } }
    r:wait_log(1)
    assert.are.same({ "replace 9: " }, r.log)
    assert.are.equal(3, r:decided("STREAM_WAIT"))
    assert.are.equal(3, #r.errors)
    assert.are.same({ place = "stream", code = "ETHROTTLED", status = 429, message = "said no",
      again = "retrying in 5 ms" }, r.errors[1])
    assert.are.same({ place = "stream", code = "ETHROTTLED", status = 429, message = "slower",
      again = "retrying in 20 ms" }, r.errors[3])
    assert.are.same({ "streaming", "waiting", "streaming", "waiting", "streaming", "waiting",
      "streaming", "watching" }, r.states)
    for _, request in ipairs(r.sent.stream) do assert.is_nil(request.query.resourceVersion) end
  end)

  it("waits and streams again when the connection is refused, and never lists", function()
    -- rows 8, 26
    r = rig.new { stream = { open(marker("9")) } }
    r.server:refuse()
    r:start()
    r:pump(function() return r:decided("STREAM_WAIT") >= 2 end)
    r.server:listen()
    r:wait_log(1)
    assert.are.equal(0, #r.sent.list)
    assert.are.equal("stream EREFUSED", r.errors[1].place .. " " .. r.errors[1].code)
  end)

  it("waits and streams again when nobody answers, and tells why", function()
    new { stream = { { silent = true }, open(marker("9")) }, config = { head_timeout = 0.2 } }
    r:wait_log(1)
    assert.are.equal(1, r:decided("STREAM_WAIT"))
    assert.are.equal(0, #r.sent.list)
    assert.are.equal("stream ETIMEOUT", r.errors[1].place .. " " .. r.errors[1].code)
  end)

  it("leaves out what is too deep and completes the list", function()
    new { stream = { open(event("ADDED", pod("a", 1)), event("ADDED", rig.deep("b", 2)),
      event("ADDED", pod("c", 3)), event("DELETED", rig.deep("c", 4)), marker("9")) } }
    r:wait_log(1)
    assert.are.same({ "replace 9: default/a@1" }, r.log)
    assert.are.equal(1, tonumber(r:stats().dropped))
    assert.are.equal("stream ELIMIT", r.errors[1].place .. " " .. r.errors[1].code)
  end)

  it("leaves out a Table that comes first", function() -- row 25
    new { stream = { open(event("ADDED", pod("t", 1, { kind = "Table" })), event("ADDED", pod("a", 2)),
      marker("9")) } }
    r:wait_log(1)
    assert.are.same({ "replace 9: default/a@2" }, r.log)
    assert.are.equal(1, tonumber(r:stats().dropped))
  end)

  it("starts over with nothing, after a delay, when the stream ends before its marker", function()
    -- row 26
    new { stream = { ended(event("ADDED", pod("gone", 1))), open(event("ADDED", pod("a", 2)), marker("9")) } }
    r:wait_log(1)
    assert.are.same({ "replace 9: default/a@2" }, r.log)
    assert.are.equal(1, r:decided("STREAM_CUT"))
    assert.are.equal("stream EEOF", r.errors[1].place .. " " .. r.errors[1].code)
    assert.are.same({ "streaming", "waiting", "streaming", "watching" }, r.states)
    assert.are.equal(0, #r.sent.list)
  end)

  it("takes a connection that breaks inside an event for the end of the stream", function()
    new { stream = { rig.cut(event("ADDED", pod("gone", 1)), '{"type":"ADDED","obj'),
      open(marker("9")) } }
    r:wait_log(1)
    assert.are.equal(1, r:decided("STREAM_CUT"))
  end)

  it("lists in the same cycle when the stream ends at once", function() -- row 7
    new { stream = { ended() }, list = { list("5", { pod("a", 1) }) } }
    r:wait_for("watch", 1)
    assert.are.equal(1, r:decided("STREAM_FALLBACK"))
    assert.are.equal("ESHORTWATCH", r.errors[1].code)
    assert.are.same({ "replace 5: default/a@1" }, r.log)
  end)

  it("lists in the same cycle when the server does not know streaming lists", function() -- row 26
    new { stream = { fail(422, "Invalid", "sendInitialEvents is forbidden") },
      list = { list("5", { pod("a", 1) }) } }
    local watch = r:wait_for("watch", 1)
    assert.are.same({ limit = "500", resourceVersion = "0" }, r.sent.list[1].query)
    assert.are.equal("5", watch.query.resourceVersion)
    assert.are.same({ "streaming", "listing", "watching" }, r.states)
    assert.are.same({}, r.errors)
  end)

  it("lists on any other error, and streams first again in the next cycle", function() -- row 26
    new { stream = { fail(403, "Forbidden"), open(event("ADDED", pod("a", 1)), rig.error_event(500,
      "InternalError", "etcd is gone")), open(marker("30")) },
      list = { list("5", {}), list("20", {}) },
      watch = { open(rig.error_event(410, "Expired")), open(rig.error_event(410, "Expired")) } }
    r:wait_log(3)
    assert.are.same({ "replace 5: ", "replace 20: ", "replace 30: " }, r.log)
    assert.are.equal(2, r:decided("STREAM_FALLBACK"))
    assert.are.equal("etcd is gone", r.errors[2].message)
    assert.are.equal("stream", r.errors[2].place)
    assert.are.equal("listing page by page instead at once", r.errors[2].again)
    assert.are.equal("5", r.sent.stream[2].query.resourceVersion)
    assert.are.equal("20", r.sent.stream[3].query.resourceVersion)
  end)

  it("lists when the stream cannot be read", function() -- row 26
    new { stream = { open('{"type":"ADDED","object":{]}') }, list = { list("5", {}) } }
    r:wait_for("watch", 1)
    assert.are.equal(1, r:decided("STREAM_FALLBACK"))
    assert.are.equal("EINTERNAL", r.errors[1].code)
    assert.is_true(r.server.streams[1].gone)
  end)

  it("streams again from the newest state at once when its version has expired", function()
    -- row 26
    local too_large = '{"causes":[{"reason":"ResourceVersionTooLarge","message":"x"}]}'
    new { stream = { open(marker("9"), rig.error_event(410, "Expired")),
      open(rig.error_event(504, "Timeout", "too large", too_large)), open(marker("20"),
      rig.error_event(410, "Expired")), open(marker("30")) } }
    r:wait_log(3)
    assert.are.equal("9", r.sent.stream[2].query.resourceVersion)
    assert.is_nil(r.sent.stream[3].query.resourceVersion)
    assert.are.equal("20", r.sent.stream[4].query.resourceVersion)
    assert.are.equal(1, r:decided("STREAM_EXPIRED"))
    assert.are.equal(2, r:decided("WATCH_EXPIRED"))
    assert.are.equal(0, #r.sent.list)
  end)

  it("does not wait before it streams from the newest state", function() -- row 26
    new { stream = { fail(410, "Expired"), open(marker("9")) }, config = { backoff = { 60, 1, 0, 60, 1, 0 } } }
    r:wait_log(1)
    assert.are.same({ "streaming", "watching" }, r.states)
    assert.are.equal(1, r:decided("STREAM_EXPIRED"))
  end)

  it("does not spin when even the newest state is said to be expired", function()
    local f = fail(410, "Expired")
    new { stream = { f, f, f }, list = { f, f, list("5", {}) } }
    r:wait_for("watch", 1)
    assert.are.equal(1, r:decided("STREAM_EXPIRED"))
    assert.are.equal(2, r:decided("STREAM_FALLBACK"))
    assert.are.equal(1, r:decided("LIST_FAILED"))
  end)

  it("takes its version from the marker, never from the initial events", function() -- row 27
    new { stream = { ended(event("ADDED", pod("b", 70)), event("ADDED", pod("a", 3))),
      open(event("ADDED", pod("b", 70)), event("ADDED", pod("a", 3))) } }
    r:pump(function() return #r.sent.stream == 2 and tonumber(r:stats().events) == 4 end)
    assert.are.equal("", r:rv())
    assert.is_nil(r.sent.stream[2].query.resourceVersion)
    r.server.streams[2]:send(event("MODIFIED", pod("a", 71)))
    r:pump(function() return tonumber(r:stats().events) == 5 end)
    assert.are.equal("", r:rv())
    r.server.streams[2]:send(marker("72"))
    r:wait_log(1)
    assert.are.equal("72", r:rv())
    r.server.streams[2]:send(event("ADDED", pod("c", 75)))
    r:wait_log(2)
    assert.are.equal("75", r:rv())
  end)

  it("watches on plainly after the snapshot", function() -- row 26
    new { stream = { ended(marker("9"), event("ADDED", pod("a", 10))) } }
    local watch = r:wait_for("watch", 1)
    assert.are.equal("10", watch.query.resourceVersion)
    assert.is_nil(watch.query.sendInitialEvents)
    assert.is_nil(watch.query.resourceVersionMatch)
    assert.are.equal(1, #r.sent.stream)
  end)

  it("takes an end right behind the marker for that of a very short watch", function() -- row 7
    new { stream = { ended(event("ADDED", pod("a", 1)), marker("9")), open(marker("20")) } }
    r:wait_log(2)
    assert.are.equal(1, r:decided("WATCH_SHORT"))
    assert.are.equal("9", r.sent.stream[2].query.resourceVersion)
  end)

  it("takes a new snapshot when the watch after it cannot be opened", function() -- row 26
    new { stream = { ended(marker("9"), event("ADDED", pod("a", 10))), open(marker("20")) },
      watch = { fail(410, "Expired", "too old") } }
    r:wait_log(3)
    assert.are.same({ "replace 9: ", "add default/a@10", "replace 20: " }, r.log)
    assert.are.same({ { place = "open", code = "EEXPIRED", status = 410, message = "too old",
      again = "reading all again in 5 ms" } }, r.errors)
    assert.are.equal(1, r:decided("WATCH_OPEN_FAILED"))
    -- Not older than what is known: an expired watch does not make it ask for "" (S-REF-35).
    assert.are.equal("10", r.sent.stream[2].query.resourceVersion)
  end)

  it("reuses what did not change since the last snapshot", function()
    new { stream = { open(event("ADDED", pod("a", 1)), event("ADDED", pod("b", 2)), marker("9"),
      rig.error_event(410, "Expired")), open(event("ADDED", pod("a", 1)), event("ADDED", pod("b", 3)),
      marker("20")) } }
    r:wait_log(1)
    local first = r.pointers
    r:wait_log(2)
    assert.are.equal(first[1], r.pointers[1])
    assert.are.equal(1, tonumber(r:stats().reused))
  end)

  it("skips an event that is not of the kind of the first one and of the marker", function() -- row 3
    local node = event("ADDED", pod("n", 7, { kind = "Node" }))
    new { stream = { open(event("ADDED", pod("a", 1)), node, event("ADDED", pod("b", 2)), marker("9"), node,
      event("ADDED", pod("c", 10))) } }
    r:wait_log(2)
    assert.are.same({ "replace 9: default/a@1 default/b@2", "add default/c@10" }, r.log)
    assert.are.equal(2, tonumber(r:stats().dropped))
    assert.are.equal(1, #r.server.requests)
  end)

  it("loses nothing when the first event is of another kind than the rest and the marker", function()
    -- row 26
    new { stream = { open(event("ADDED", pod("n", 1, { kind = "Node" })), event("ADDED", pod("a", 2)),
      event("ADDED", pod("b", 3)), marker("9")) }, list = { list("12", { pod("a", 2), pod("b", 3) }) } }
    r:wait_for("watch", 1)
    assert.are.same({ "replace 12: default/a@2 default/b@3" }, r.log)
    assert.are.same({ "streaming", "listing", "watching" }, r.states)
    assert.are.equal(1, r:decided("STREAM_FALLBACK"))
    assert.are.same({ place = "stream", code = "EINVAL", status = 0,
      message = "an event's object is a Pod, not a Node", again = "listing page by page instead at once" },
      r.errors[2])  -- the first is the word of what was left out
    assert.is_true(r.server.streams[1].gone)
  end)

  it("lists instead when the marker cannot be taken for one", function() -- row 26
    local function odd(kind, rv)
      return event("BOOKMARK", ('{"apiVersion":"v1"%s,"metadata":{"resourceVersion":"%s",' ..
        '"annotations":{"k8s.io/initial-events-end":"true"}}}'):format(kind, rv))
    end
    for _, case in ipairs {
      { "an event's object is a Table", odd(',"kind":"Table"', 9) },
      { "the marker's resourceVersion is too long", odd(',"kind":"Pod"', ("9"):rep(129)) },
      { "the events are of several kinds, the marker is of none", event("ADDED", pod("n", 2, { kind = "Node" })),
        odd("", 9) },
    } do
      new { stream = { open(event("ADDED", pod("a", 1)), unpack(case, 2)) }, list = { list("12", {}) } }
      r:wait_for("watch", 1)
      assert.are.equal(case[1], r.errors[#r.errors].message)
      assert.are.same({ "replace 12: " }, r.log)
      r:close()
      r = nil
    end
    new { stream = { open(event("ADDED", pod("a", 1)), odd("", 9)) } }
    r:wait_log(1)
    assert.are.same({ "replace 9: default/a@1" }, r.log)
  end)

  it("asks for metadata in the form of a watch", function()
    new { stream = { open(marker("9")) }, config = { metadata_only = true } }
    r:wait_log(1)
    assert.are.equal("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1," ..
      "application/json", r.sent.stream[1].headers.accept)
  end)
end)
