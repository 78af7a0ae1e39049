-- The reflector's watch, its events, its waits and its end (S-REF-01..09, 30..60).
jit.off(true, true)
local rig = require "spec.support.reflector_rig"
local unit = require "spec.support.unit"
local uv = require "luv"

local C, ffi = unit.C, unit.ffi
local pod, list, fail, event = rig.pod, rig.list, rig.fail, rig.event
local open, ended, bookmark, error_event = rig.open, rig.ended, rig.bookmark, rig.error_event
local deep = rig.deep

describe("a reflector that watches", function()
  local r
  local function prepare(answers)
    answers.config = answers.config or {}
    if not answers.stream then answers.config.no_streaming = true end
    r = rig.new(answers)
    return r
  end
  local function new(answers)
    prepare(answers):start()
    return r
  end
  after_each(function()
    if r then r:close() end
    r = nil
  end)
  unit.no_leaks()

  it("hands events on in order, and its version is the last event's even if smaller", function()
    -- rows 3, 22
    new { list = { list("10", { pod("a", 1) }) }, watch = { open(event("ADDED", pod("b", 11)),
      event("MODIFIED", pod("a", 12)), event("DELETED", pod("b", 15)), event("DELETED", pod("x", 14))) } }
    r:wait_log(5)
    assert.are.same({ "replace 10: default/a@1", "add default/b@11", "update default/a@12",
      "remove default/b@15", "remove default/x@14" }, r.log)
    assert.are.equal("14", r:rv())
    assert.are.equal(4, tonumber(r:stats().events))
    assert.is_true(tonumber(r:stats().last_event_at) > 0)
  end)

  it("skips what is not of the snapshot's kind, a Table and what has no metadata", function()
    -- rows 3, 25, 42
    local table_row = '{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"77"}}'
    new { list = { list("10", { pod("a", 1) }) }, watch = { open(
      event("ADDED", pod("n", 71, { kind = "Node" })), event("ADDED", table_row),
      event("ADDED", '{"kind":"Pod","apiVersion":"v1"}'), event("BOOKMARK", '{"kind":"Pod"}')) } }
    r:pump(function() return tonumber(r:stats().dropped) == 4 end)
    assert.are.equal("10", r:rv())
    assert.are.equal(0, tonumber(r:stats().events))
    assert.are.equal(1, #r.log)
    assert.are.equal(1, #r.errors)  -- one word per request, however many there are
    r.server.streams[1]:send(event("ADDED", pod("b", 11)))
    r:wait_log(2)
    assert.are.equal("add default/b@11", r.log[2])
  end)

  it("skips a Table also where it knows of no kind yet", function() -- row 25
    local table_row = event("ADDED", pod("t", 77, { kind = "Table" }))
    new { list = { list("10", {}) }, watch = { open(table_row, event("ADDED", pod("a", 11)), table_row,
      event("ADDED", pod("b", 12))) } }
    r:wait_log(3)
    assert.are.same({ "replace 10: ", "add default/a@11", "add default/b@12" }, r.log)
    assert.are.equal("12", r:rv())
    assert.are.equal(2, tonumber(r:stats().dropped))
    assert.are.equal('object "default/t" left out: an event\'s object is a Table', r.errors[1].message)
  end)

  it("remembers what the events brought for the next snapshot, and forgets what they deleted", function()
    new { list = { list("10", { pod("a", 1) }), list("20", { pod("b", 12) }) },
      watch = { open(event("ADDED", pod("b", 11)), event("MODIFIED", pod("b", 12)),
        event("DELETED", pod("a", 13))) } }
    r:wait_log(4)
    assert.are.equal(1, tonumber(C.mw_live_get(C.MW_LIVE_OBJECT)))
    r.server.streams[1]:send(error_event(410, "Expired"))
    r:wait_log(5)
    assert.are.equal("replace 20: default/b@12", r.log[5])
    assert.are.equal(1, tonumber(r:stats().reused))
  end)

  it("learns the kind anew with each snapshot", function()
    new { list = { list("10", { pod("a", 1) }), list("20", { pod("a", 2, { kind = "PodV2" }) }) },
      watch = { open(error_event(410, "Expired")), open(event("ADDED", pod("b", 21, { kind = "PodV2" }))) } }
    r:wait_log(3)
    assert.are.equal("add default/b@21", r.log[3])
  end)

  it("reads all again when a watch after an empty list brings two kinds, and then knows which is right", function()
    -- row 3
    local node = event("ADDED", pod("n", 11, { kind = "Node" }))
    new { list = { list("5", { pod("a", 1) }), list("10", {}), list("20", { pod("a", 12) }) },
      watch = { open(error_event(410, "Expired")), open(node, event("ADDED", pod("a", 12))),
        open(node, event("ADDED", pod("b", 21))) } }
    r:wait_log(5)
    assert.are.same({ "replace 5: default/a@1", "replace 10: ", "add default/n@11", "replace 20: default/a@12",
      "add default/b@21" }, r.log)
    assert.are.same({ place = "watch", code = "EINVAL", status = 0,
      message = "an event's object is a Pod, not a Node", again = "reading all again in 10 ms" }, r.errors[2])
    assert.are.equal(1, r:decided("WATCH_FAILED"))
    assert.are.equal(1, tonumber(r:stats().dropped))
    assert.are.equal(3, #r.sent.watch)
  end)

  it("goes on behind an event that cannot be stored, and counts its version", function()
    local nameless = '{"apiVersion":"v1","kind":"Pod","metadata":{"uid":"u","resourceVersion":"17"}}'
    new { list = { list("10", {}) }, watch = { open(event("ADDED", nameless)) } }
    r:pump(function() return tonumber(r:stats().dropped) == 1 end)
    assert.are.equal("17", r:rv())
    assert.are.equal("watch", r.errors[1].place)
    r.server.streams[1]:send(event("ADDED", pod("a", 18)))
    r:wait_log(2)
    assert.are.equal("add default/a@18", r.log[2])
  end)

  it("records the version of an event of unknown type", function()
    new { list = { list("10", {}) }, watch = { open(event("RENAMED", pod("a", 17))) } }
    r:pump(function() return r:rv() == "17" end)
    assert.are.equal(1, #r.log)
    assert.are.equal(1, tonumber(r:stats().events))
  end)

  it("hands bookmarks on and watches on from them", function() -- row 22
    new { list = { list("10", {}) }, watch = { ended(event("ADDED", pod("a", 11)), bookmark("40")) } }
    local watch = r:wait_for("watch", 2)
    assert.are.same({ "replace 10: ", "add default/a@11", "bookmark 40" }, r.log)
    assert.are.equal("40", watch.query.resourceVersion)
  end)

  it("records no version of a watch opened without one until something changes", function()
    new { list = { list("", {}) }, watch = { open(event("ADDED", pod("b", 70))) } }
    r:wait_log(2)
    assert.are.equal("", r:rv())
    r.server.streams[1]:send(event("MODIFIED", pod("b", 71)) .. event("ADDED", pod("c", 72)))
    r:wait_log(4)
    assert.are.equal("72", r:rv())
  end)

  it("watches on at once and without a word when the stream ends after an event", function()
    -- row 7
    new { list = { list("10", {}) }, watch = { ended(event("ADDED", pod("a", 11))),
      rig.cut(event("ADDED", pod("b", 12)), '{"type":"ADD') } }
    local watch = r:wait_for("watch", 3)
    assert.are.equal("11", r.sent.watch[2].query.resourceVersion)
    assert.are.equal("12", watch.query.resourceVersion)
    assert.are.equal(2, r:decided("WATCH_ENDED"))
    assert.are.equal(1, #r.sent.list)
    assert.are.same({}, r.errors)
    assert.are.same({ "listing", "watching" }, r.states)
  end)

  it("watches on when the stream ends without an event but not at once", function() -- row 7
    new { list = { list("10", {}) }, watch = { ended(0.03) }, config = { short_watch = 0.02 } }
    r:wait_for("watch", 2)
    assert.are.equal(1, r:decided("WATCH_ENDED"))
    assert.are.equal(1, #r.sent.list)
  end)

  it("waits and reads all again when the stream ends at once without an event", function() -- row 7
    new { list = { list("10", {}), list("20", {}) }, watch = { ended() } }
    r:wait_log(2)
    assert.are.equal("10", r.sent.list[2].query.resourceVersion)
    assert.are.equal(1, r:decided("WATCH_SHORT"))
    assert.are.equal("ESHORTWATCH", r.errors[1].code)
    assert.are.same({ "listing", "watching", "waiting", "listing" },
      { r.states[1], r.states[2], r.states[3], r.states[4] })
  end)

  it("reads all again when the watch is refused for good", function() -- row 2
    new { list = { list("10", { pod("a", 1) }), list("20", { pod("a", 1), pod("b", 2) }) },
      watch = { fail(400, "BadRequest", "what?") } }
    r:wait_log(2)
    assert.are.same({ { place = "open", code = "EHTTP", status = 400, message = "what?",
      again = "reading all again in 5 ms" } }, r.errors)
    assert.are.equal("replace 20: default/a@1 default/b@2", r.log[2])
    assert.are.equal(1, tonumber(r:stats().reused))
    assert.are.equal(1, r:decided("WATCH_OPEN_FAILED"))
  end)

  it("keeps watching from the same version while the connection is refused, more slowly each time", function()
    -- row 8
    local began = uv.hrtime()
    new { list = { list("10", {}) }, config = { backoff = { 0.01, 2, 0, 0.04, 10, 0 } },
      watch = { ended(event("ADDED", pod("a", 11))), function()
        r.server:refuse()
        return ended()
      end } }
    local at = {}
    r:pump(function()
      local n = r:decided("WATCH_OPEN_WAIT")
      if n > #at then at[n] = uv.hrtime() end
      return n >= 5
    end)
    -- From the beginning on: a busy machine may notice one attempt late and the next in time.
    for n, waited in pairs { [3] = 10 + 20, [4] = 10 + 20 + 40, [5] = 10 + 20 + 40 + 40 } do
      assert.is_true(at[n] - began >= (waited - 1) * 1e6)
    end
    for i, ms in ipairs { 10, 20, 40, 40, 40 } do
      assert.are.equal(("watching on in %d ms"):format(ms), r.errors[i].again)
    end
    r.server:listen()
    local watch = r:wait_for("watch", 3)
    assert.are.equal("11", watch.query.resourceVersion)
    assert.are.equal(1, #r.sent.list)
    assert.is_true(#r.errors >= 5)
    for _, e in ipairs(r.errors) do
      assert.are.equal("open EREFUSED", e.place .. " " .. e.code)
    end
  end)

  it("keeps watching from the same version when nobody answers, and tells why", function()
    new { list = { list("10", {}) }, config = { head_timeout = 0.2 },
      watch = { { silent = true }, { silent = true }, open(event("ADDED", pod("a", 11))) } }
    r:wait_log(2)
    assert.are.equal(2, r:decided("WATCH_OPEN_WAIT"))
    assert.are.equal(1, #r.sent.list)
    assert.are.equal("10", r.sent.watch[3].query.resourceVersion)
    assert.are.equal(2, #r.errors)
    assert.are.equal("open", r.errors[1].place)
    assert.are.equal("ETIMEOUT", r.errors[1].code)
    assert.are.equal("watching on in 5 ms", r.errors[1].again)
    assert.matches("no answer for 0.2 seconds$", r.errors[1].message)
  end)

  it("waits for a silent watch longer than the server does, by half a minute or as it is told", function()
    for config_grace, grace in pairs { [0] = 30, [7] = 7 } do
      new { list = { list("10", {}) }, config = { watch_grace = config_grace } }
      local timeout = tonumber(r:wait_for("watch", 1).query.timeoutSeconds)
      assert.are.equal(timeout + grace, r.reflector.request.idle_timeout)
      assert.are.equal(30, r.reflector.request.head_timeout)
      r:close()
    end
    r = nil
  end)

  it("gives a watch up that is silent for longer than that, without a word, and watches on", function()
    new { list = { list("10", {}) }, config = { head_timeout = 0.3 },
      watch = setmetatable({}, { __index = function() return open(event("ADDED", pod("a", 11))) end }) }
    r:wait_log(2)
    local sent, ended_before = #r.sent.watch, r:decided("WATCH_ENDED")
    local timeout = tonumber(r.sent.watch[sent].query.timeoutSeconds)
    -- As if the event had come so long ago.
    local request = r.reflector.request
    request.last_byte = request.last_byte - (timeout + 31) * 1000000000ULL
    local watch = r:wait_for("watch", sent + 1)
    assert.are.equal("11", watch.query.resourceVersion)
    assert.are.equal(ended_before + 1, r:decided("WATCH_ENDED"))
    assert.are.equal(1, #r.sent.list)
    r:pump(function() return r.server.streams[1].gone end)
  end)

  it("keeps watching when the connection is lost before the watch opened, and tells why", function()
    -- How many connections that takes is up to the transport.
    local watch = setmetatable({}, { __index = function()
      return r:decided("WATCH_OPEN_WAIT") == 0 and { lost = true } or open(event("ADDED", pod("a", 11)))
    end })
    new { list = { list("10", {}) }, watch = watch }
    r:wait_log(2)
    assert.are.equal(1, r:decided("WATCH_OPEN_WAIT"))
    assert.are.equal(0, r:decided("WATCH_SHORT"))
    assert.are.equal("EEOF", r.errors[1].code)
    assert.are.equal(1, #r.errors)
  end)

  it("says when a watch has opened, and not when it only tries", function()
    new { list = { list("10", {}) }, watch = { fail(429, "TooManyRequests"), open() } }
    r:pump(function() return #r.opened > 0 end)
    assert.are.same({ "2 watches sent" }, r.opened)
  end)

  it("leaves out what is too deep, keeps what it knows of it, and takes its deletion", function()
    new { list = { list("10", { pod("a", 1), deep("b", 2), pod("c", 3) }), list("20", { deep("a", 18) }) },
      watch = { open(event("MODIFIED", deep("a", 11)), event("ADDED", deep("b", 12)),
        event("DELETED", deep("c", 13)), event("ADDED", pod("d", 14)), event("DELETED", deep("b", 15)),
        error_event(410, "Expired")) } }
    r:wait_log(5)
    assert.are.same({ "replace 10: default/a@1 default/c@3", "remove default/c@3", "bookmark 13",
      "add default/d@14", "replace 20: default/a@1" }, r.log)
    assert.are.equal(6, tonumber(r:stats().dropped))
    assert.are.same({ "list", "watch", "watch", "list" }, { r.errors[1].place, r.errors[2].place,
      r.errors[3].place, r.errors[4].place })
    assert.are.equal("EEXPIRED", r.errors[3].code)  -- the others: one word per request
    assert.are.equal("ELIMIT", r.errors[1].code)
    assert.are.equal('object "default/b" left out: nested deeper than 256 levels', r.errors[1].message)
  end)

  it("does not take one object for another that has its name and is left out", function()
    new { list = { list("10", { pod("a", 1, { uid = "one" }) }),
      list("20", { deep("a", 18, { uid = "two" }) }) }, watch = { open(error_event(410, "Expired")) } }
    r:wait_log(2)
    assert.are.equal("replace 20: ", r.log[2])
  end)

  it("pays one delay for each throttled watch, on opening and in the stream", function() -- row 10
    new { list = { list("10", {}) }, watch = { fail(429, "TooManyRequests"),
      open(event("ADDED", pod("a", 11)), error_event(429, "TooManyRequests", "slower")) } }
    local watch = r:wait_for("watch", 3)
    assert.are.equal("11", watch.query.resourceVersion)
    assert.are.equal(1, r:decided("WATCH_OPEN_WAIT"))
    assert.are.equal(1, r:decided("WATCH_THROTTLED"))
    assert.are.same({ "listing", "watching", "waiting", "watching", "waiting", "watching" }, r.states)
    assert.are.same({ { place = "open", code = "ETHROTTLED", status = 429, message = "said no",
      again = "watching on in 5 ms" }, { place = "watch", code = "ETHROTTLED", status = 429,
      message = "slower", again = "watching on in 10 ms" } }, r.errors)
    assert.is_true(r.server.streams[1].gone)
  end)

  it("lists once however often the watch is throttled", function() -- row 11
    local f = fail(429, "TooManyRequests")
    new { list = { list("10", {}) }, watch = { f, f, f, f, open(event("ADDED", pod("a", 11))) } }
    r:wait_log(2)
    assert.are.equal(4, r:decided("WATCH_OPEN_WAIT"))
    assert.are.equal(1, #r.sent.list)
    for i = 1, 5 do assert.are.equal("10", r.sent.watch[i].query.resourceVersion) end
  end)

  it("closes the stream and reads all again after an error event", function() -- rows 4, 23
    new { list = { list("10", {}), list("20", {}) },
      watch = { open(error_event(500, "StoreReadError", "store read error")) } }
    r:wait_log(2)
    r:pump(function() return r.server.streams[1].gone end)
    assert.are.equal(1, r:decided("WATCH_FAILED"))
    assert.are.same({ place = "watch", code = "EHTTP", status = 500, message = "store read error",
      again = "reading all again in 5 ms" }, r.errors[1])
  end)

  it("reads all again, not older than what it has, when its version expired in the stream", function()
    -- row 26
    new { list = { list("10", {}), list("20", {}) },
      watch = { open(bookmark("15"), error_event(410, "Expired", "too old")) } }
    r:wait_log(3)
    assert.are.equal(1, r:decided("WATCH_EXPIRED"))
    assert.are.equal("15", r.sent.list[2].query.resourceVersion)
    assert.are.equal("EEXPIRED", r.errors[1].code)
  end)

  it("waits before it reads all again when its version expired in the stream", function() -- row 26
    new { list = { list("10", {}) }, watch = { open(error_event(410, "Expired", "too old")) },
      config = { backoff = { 60, 1, 0, 60, 1, 0 } } }
    r:pump(function() return #r.errors == 1 end)
    assert.are.equal("reading all again in 60.0 s", r.errors[1].again)
    assert.are.same({ "listing", "watching", "waiting" }, r.states)
  end)

  it("ends the cycle on an error event without a Status", function() -- row 4
    new { list = { list("10", {}), list("20", {}) }, watch = { open(event("ERROR", pod("a", 3))) } }
    r:wait_log(2)
    assert.are.equal(1, r:decided("WATCH_FAILED"))
    assert.are.equal("EINVAL", r.errors[1].code)
  end)

  it("does not watch on after internal errors unless it has a budget for them", function() -- row 12
    new { list = { list("10", {}), list("20", {}) }, watch = { open(error_event(500, "InternalError")) } }
    r:wait_log(2)
    assert.are.equal(1, r:decided("WATCH_FAILED"))
    assert.are.equal(0, r:decided("WATCH_INTERNAL"))
  end)

  it("reads all again when the stream is no JSON any more", function()
    new { list = { list("10", {}), list("20", {}) },
      watch = { open(event("ADDED", pod("a", 11)), "this is not JSON") } }
    r:wait_log(3)
    assert.are.equal(1, r:decided("WATCH_FAILED"))
    assert.are.equal("EINTERNAL", r.errors[1].code)
    assert.matches("the stream cannot be read: ", r.errors[1].message)
    assert.are.equal("11", r.sent.list[2].query.resourceVersion)
  end)

  it("watches on at once after internal errors within its budget", function() -- row 12
    new { list = { list("10", {}) }, config = { internal_error_budget = 30 },
      watch = { open(event("ADDED", pod("a", 11)), error_event(500, "InternalError", "boom")),
        open("this is not JSON"), open(error_event(500, "InternalError")) } }
    local watch = r:wait_for("watch", 4)
    assert.are.equal("11", watch.query.resourceVersion)
    assert.are.equal(3, r:decided("WATCH_INTERNAL"))
    assert.are.equal(1, #r.sent.list)
    assert.are.equal("watching on at once", r.errors[1].again)
    assert.are.equal("EINTERNAL", r.errors[2].code)
  end)

  it("reads all again once its budget for internal errors is used up", function() -- row 12
    local f = open(error_event(500, "InternalError"))
    new { list = { list("10", {}), list("20", {}) }, config = { internal_error_budget = 0.02 },
      watch = { f, open(0.03, error_event(500, "InternalError")) } }
    r:wait_log(2)
    assert.are.equal(1, r:decided("WATCH_INTERNAL"))
    assert.are.equal(1, r:decided("WATCH_FAILED"))
  end)

  it("asks for watches of at least five minutes, or twice what it is told at most", function()
    -- row 21
    assert.are.equal(300, tonumber(C.mw_reflect_watch_timeout(0, 0)))
    assert.are.equal(599, tonumber(C.mw_reflect_watch_timeout(0, 0.9999)))
    assert.are.equal(300, tonumber(C.mw_reflect_watch_timeout(60, 0)))
    assert.are.equal(1800, tonumber(C.mw_reflect_watch_timeout(1800, 0)))
    assert.are.equal(3599, tonumber(C.mw_reflect_watch_timeout(1800, 0.9999)))
    new { list = { list("10", {}) }, config = { min_watch_timeout = 1800 } }
    local timeout = tonumber(r:wait_for("watch", 1).query.timeoutSeconds)
    assert.is_true(timeout >= 1800 and timeout < 3600)
  end)

  it("draws the time of each watch anew, from all that is allowed", function() -- row 21
    local watches = {}
    for i = 1, 19 do watches[i] = ended(event("MODIFIED", pod("a", 10 + i))) end
    new { list = { list("10", {}) }, watch = watches, config = { min_watch_timeout = 1800 } }
    r:wait_for("watch", 20)
    local seen, different, least, most = {}, 0, math.huge, 0
    for _, watch in ipairs(r.sent.watch) do
      local timeout = tonumber(watch.query.timeoutSeconds)
      assert.is_true(timeout >= 1800 and timeout < 3600, timeout)
      if not seen[timeout] then different = different + 1 end
      seen[timeout] = true
      least, most = math.min(least, timeout), math.max(most, timeout)
    end
    assert.is_true(different >= 15, different)
    assert.is_true(least < 2250 and most >= 3150, least .. " to " .. most)
  end)

  it("calls for a resync each period, and not while it takes a snapshot", function() -- row 13
    new { list = { list("10", {}), open() }, config = { resync = 0.01 }, watch = { open() } }
    r:wait_log(3)
    r.server.streams[1]:send(error_event(410, "Expired"))
    r:wait_for("list", 2)
    local before = #r.log
    r:idle(0.03)
    assert.are.equal(before, #r.log)
    r.server.streams[2]:send(list("20", {}).body)
    r.server.streams[2]:finish()
    -- With the watch behind it the periods begin again.
    r:wait_for("watch", 2)
    r:wait_log(before + 4)
    for i, what in ipairs(r.log) do
      local wanted = i == 1 and "replace 10: " or i == before + 1 and "replace 20: " or "resync"
      assert.are.equal(wanted, what)
    end
  end)

  it("takes a new resync period at once, and none with 0", function() -- row 13
    new { list = { list("10", {}) } }
    r:wait_for("watch", 1)
    r:idle()
    assert.are.equal(1, #r.log)
    C.mw_reflector_set_resync(r.reflector, 0.005)
    r:wait_log(3)
    C.mw_reflector_set_resync(r.reflector, 0)
    local before = #r.log
    r:idle()
    assert.are.equal(before, #r.log)
  end)

  it("puts no resync off when its period is changed again and again", function() -- row 13
    new { list = { list("10", {}) } }
    r:wait_for("watch", 1)
    for i = 1, 200 do
      C.mw_reflector_set_resync(r.reflector, i % 2 == 0 and 0.05 or 0.04)
      r:idle()
      if #r.log > 1 then break end
    end
    assert.are.equal("resync", r.log[2])
  end)

  it("sends nothing when it was stopped before it was started", function() -- row 6
    prepare {}
    r:stop()
    r:start()
    assert.is_nil(r.stopped)  -- not inside stop
    r:pump(function() return r.stopped end)
    r:idle()
    assert.are.equal(0, #r.server.requests)
  end)

  it("closes the watch when it is stopped, and says so from the loop", function() -- rows 5, 6
    new { list = { list("10", {}) }, watch = { open(event("ADDED", pod("a", 11))) } }
    r:wait_log(2)
    r:stop()
    assert.is_nil(r.stopped)
    r:pump(function() return r.stopped and r.server.streams[1].gone end)
    r:idle()
    assert.are.equal(2, #r.server.requests)
    assert.are.equal("stopped", r.states[#r.states])
    assert.are.same({}, r.errors)
  end)

  it("stops at once in a delay, in a list and in a streaming list", function() -- row 5
    for _, answers in ipairs {
      { list = { fail(500, "InternalError") }, config = { backoff = { 60, 2, 0, 60, 1, 0 } } },
      { list = { { chunks = { '{"items":[' .. pod("a", 1) .. "," }, open = true } } },
      { stream = { open(event("ADDED", pod("a", 1))) } },
      { stream = { fail(429, "TooManyRequests") }, config = { backoff = { 60, 2, 0, 60, 1, 0 } } },
    } do
      new(answers)
      r:pump(function()
        return r.states[#r.states] == "waiting" or tonumber(r:stats().received) == 1
      end)
      local before = uv.hrtime()
      r:close()
      assert.is_true(uv.hrtime() - before < 1e9)
      assert.are.same({}, r.log)
      r = nil
    end
  end)

  it("may be stopped by whatever it calls", function() -- row 5
    local marker = rig.marker("9")
    for _, where in ipairs { "replace", "add", "bookmark", "error", "watching", "streaming", "resync" } do
      prepare { stream = { open(event("ADDED", pod("a", 1)), marker, event("ADDED", pod("b", 10)),
        bookmark("11"), 0.02, error_event(410, "Expired")) }, config = { resync = 0.005 } }
      r.hooks[where] = function() r:stop() end
      r:start()
      r:pump(function() return r.stopped end)
      local calls, told = #r.log, #r.errors
      r:idle(0.04)
      assert.are.equal(calls, #r.log)
      assert.are.equal(told, #r.errors)
      assert.are.equal("stopped", r.states[#r.states])
      r:close()
      r = nil
    end
  end)

  it("lives through being stopped in the middle of a page", function()
    local nameless = '{"metadata":{"uid":"u"}}'
    prepare { list = { list("10", { nameless, pod("a", 1), nameless }) } }
    r.hooks.error = function() r:stop() end
    r:start()
    r:pump(function() return r.stopped end)
    assert.are.same({}, r.log)
    assert.are.equal(1, #r.errors)
  end)
end)

describe("the budget for internal errors", function()
  local second = 1000000000ULL

  local function run(budget, times)
    local window = ffi.new("struct mw_reflect_window")
    local answers = {}
    for i, t in ipairs(times) do
      answers[i] = C.mw_reflect_window_allows(window, budget, (100 + t) * second)
    end
    return answers
  end

  it("is none by default", function() -- rows 12, 30
    assert.are.same({ false, false }, run(0, { 0, 100 }))
  end)

  it("runs from the first error and starts anew when it was exceeded", function() -- row 30
    assert.are.same({ true, true, true, false, true }, run(30, { 0, 20, 30, 31, 32 }))
  end)

  it("is renewed by a minute without an error", function() -- rows 12, 30
    assert.are.same({ true, true, true, true, false }, run(30, { 0, 29, 89, 119, 120 }))
    assert.are.same({ true, true, false }, run(30, { 0, 29, 88 }))
  end)
end)

describe("the names of the reflector", function()
  it("has a name and a text for every decision and every state", function()
    local seen = {}
    for d = 0, C.MW_DECISION_COUNT - 1 do
      local name = ffi.string(C.mw_decision_name(d))
      assert.is_nil(seen[name])
      seen[name] = true
      assert.is_true(#ffi.string(C.mw_decision_text(d)) > 0)
    end
    assert.is_true(seen.START and seen.PAGE_EXPIRED)
    assert.are.equal("waiting", ffi.string(C.mw_reflector_state_name(C.MW_REF_WAITING)))
  end)
end)
