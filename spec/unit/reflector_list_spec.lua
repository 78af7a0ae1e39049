-- The reflector's snapshots page by page (S-REF-10..20, S-PAG).
jit.off(true, true)
local rig = require "spec.support.reflector_rig"
local unit = require "spec.support.unit"

local pod, list, fail = rig.pod, rig.list, rig.fail

local a_minute = { 60, 1, 0, 60, 1, 0 }  -- no spec would live to see the end of a delay

-- Ends a cycle: an error in the stream that makes the reflector take a new snapshot.
local function relist() return rig.open(rig.error_event(500, "StoreReadError")) end

describe("a reflector that lists", function()
  local r
  local function new(answers)
    answers.config = answers.config or {}
    answers.config.no_streaming = true
    r = rig.new(answers)
    r:start()
    return r
  end
  after_each(function()
    if r then r:close() end
    r = nil
  end)
  unit.no_leaks()

  it("asks for any version in pages of 500 and then watches from the list's version", function()
    -- row 1
    new { list = { list("10", { pod("a", 3), pod("b", 4) }) } }
    local watch = r:wait_for("watch", 1)
    assert.are.same({ limit = "500", resourceVersion = "0" }, r.sent.list[1].query)
    assert.are.equal("/api/v1/pods", r.sent.list[1].path)
    assert.are.equal("application/json", r.sent.list[1].headers.accept)
    local timeout = tonumber(watch.query.timeoutSeconds)
    assert.is_true(timeout >= 300 and timeout < 600)
    assert.are.same({ watch = "true", allowWatchBookmarks = "true", resourceVersion = "10",
      timeoutSeconds = watch.query.timeoutSeconds }, watch.query)
    assert.are.same({ "replace 10: default/a@3 default/b@4" }, r.log)
    assert.are.equal(0, #r.sent.stream)
    assert.are.equal("10", r:rv())
    assert.are.same({}, r.errors)
  end)

  it("never streams a list when that is switched off", function() -- row 29
    new { list = { list("10", {}), fail(503, "ServiceUnavailable"), list("20", {}) },
      watch = { rig.open(rig.error_event(410, "Expired", "too old")) }, config = { no_streaming = true } }
    r:wait_for("watch", 2)
    assert.are.equal(3, #r.sent.list)
    assert.are.equal(0, #r.sent.stream)
  end)

  it("passes an empty list on", function() -- row 32
    new { list = { list("10", {}) } }
    r:wait_for("watch", 1)
    assert.are.same({ "replace 10: " }, r.log)
  end)

  it("adds the namespace and the fixed parameters to every request", function()
    new { list = { list("10", { pod("a", 1) }, "next/1="), list("10", {}) },
      config = { ns = "blue", query = "labelSelector=app%3Dweb" } }
    local watch = r:wait_for("watch", 1)
    for _, request in ipairs { r.sent.list[1], r.sent.list[2], watch } do
      assert.are.equal("/api/v1/namespaces/blue/pods", request.path)
      assert.are.equal("app=web", request.query.labelSelector)
    end
    assert.are.equal("next/1=", r.sent.list[2].query.continue)
  end)

  it("asks for metadata only when told to, in the list's form and in the watch's", function()
    new { list = { list("10", {}) }, config = { metadata_only = true } }
    local watch = r:wait_for("watch", 1)
    assert.are.equal("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1," ..
      "application/json", r.sent.list[1].headers.accept)
    assert.are.equal("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1," ..
      "application/json", watch.headers.accept)
  end)

  it("uses an explicit page size on every page and collects all items in order", function()
    -- rows 14, 32
    new { list = { list("10", { pod("a", 1), pod("b", 2) }, "t1"), list("10", {}, "t2"),
      list("11", { pod("c", 3) }) }, config = { page_size = 4 } }
    r:wait_for("watch", 1)
    assert.are.same({ "replace 10: default/a@1 default/b@2 default/c@3" }, r.log)
    assert.are.same({ limit = "4", resourceVersion = "0" }, r.sent.list[1].query)
    assert.are.same({ limit = "4", continue = "t1" }, r.sent.list[2].query)
    assert.are.same({ limit = "4", continue = "t2" }, r.sent.list[3].query)
    assert.are.equal(3, tonumber(r:stats().lists))
  end)

  it("lists again at the last version it saw, without a limit", function() -- rows 15, 17
    new { list = { list("10", { pod("a", 1) }), list("20", { pod("a", 1) }), list("30", {}) },
      watch = { rig.open(rig.event("MODIFIED", pod("a", 15)), rig.error_event(500, "StoreReadError")),
        relist() } }
    r:wait_for("watch", 3)
    assert.are.same({ limit = "500", resourceVersion = "0" }, r.sent.list[1].query)
    assert.are.same({ resourceVersion = "15" }, r.sent.list[2].query)
    assert.are.same({ resourceVersion = "20" }, r.sent.list[3].query)
  end)

  it("stays with pages once a list at any version came in pages", function() -- row 16
    new { list = { list("10", { pod("a", 1) }, "t1"), list("10", { pod("b", 2) }),
      list("20", { pod("a", 1) }), list("30", {}) }, watch = { relist(), relist() } }
    r:wait_for("watch", 3)
    assert.are.same({ limit = "500", resourceVersion = "10" }, r.sent.list[3].query)
    assert.are.same({ limit = "500", resourceVersion = "20" }, r.sent.list[4].query)
  end)

  it("does not stay with pages for a list of the newest state that came in pages", function()
    -- row 16
    new { list = { list("10", { pod("a", 1) }), fail(410, "Expired"), list("20", { pod("a", 1) }, "t1"),
      list("20", { pod("b", 2) }), list("30", {}) }, watch = { relist(), relist() } }
    r:wait_for("watch", 3)
    assert.are.same({ limit = "500" }, r.sent.list[3].query)
    assert.are.same({ limit = "500", continue = "t1" }, r.sent.list[4].query)
    assert.are.same({ resourceVersion = "20" }, r.sent.list[5].query)
  end)

  it("does not take one page at any version for a paged list", function() -- row 32
    new { list = { list("10", { pod("a", 1) }), list("20", {}) }, watch = { relist() } }
    r:wait_for("watch", 2)
    assert.is_nil(r.sent.list[2].query.limit)
  end)

  it("asks for the newest state at once, in pages, when its version has expired", function()
    -- row 18
    new { list = { list("10", { pod("a", 1) }), fail(410, "Expired"), list("20", { pod("b", 2) }),
      list("30", {}) }, watch = { relist(), relist() } }
    r:wait_for("watch", 2)
    assert.are.same({ resourceVersion = "10" }, r.sent.list[2].query)
    assert.are.same({ limit = "500" }, r.sent.list[3].query)
    assert.are.equal("20", r.sent.watch[2].query.resourceVersion)
    assert.are.equal(1, r:decided("LIST_EXPIRED"))
    assert.are.equal(0, r:decided("LIST_FAILED"))
    assert.are.equal(1, #r.errors)  -- the one in the stream
    -- It worked, so the next one asks for a version again.
    r:wait_for("watch", 3)
    assert.are.same({ resourceVersion = "20" }, r.sent.list[4].query)
  end)

  it("does not wait before it asks for the newest state", function() -- row 18
    new { list = { fail(410, "Expired"), list("20", {}) }, config = { backoff = a_minute } }
    r:wait_for("watch", 1)
    assert.are.same({ "listing", "watching" }, r.states)
    assert.are.equal(1, r:decided("LIST_EXPIRED"))
  end)

  it("tells when the newest state has expired too, and starts with it next time", function()
    -- row 18
    new { list = { list("10", {}), fail(410, "Gone"), fail(410, "Expired", "gone again"),
      list("20", {}) }, watch = { relist() } }
    r:wait_for("watch", 2)
    assert.are.same({ limit = "500" }, r.sent.list[3].query)
    assert.are.same({ limit = "500" }, r.sent.list[4].query)
    assert.are.equal("EEXPIRED", r.errors[2].code)
    assert.are.equal("gone again", r.errors[2].message)
    assert.are.equal(1, r:decided("LIST_EXPIRED"))
    assert.are.equal(1, r:decided("LIST_FAILED"))
  end)

  it("asks for the newest state when its version is too large, however that is said", function()
    -- row 20
    local shapes = {
      fail(504, "Timeout", "Timeout: Too large resource version: 9, current: 1",
        '{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}]}'),
      fail(504, "Timeout", "Too large resource version: 9, current: 1"),
      fail(504, "Timeout", "timed out",
        '{"causes":[{"message":"Too large resource version: 9, current: 1"}]}'),
    }
    for _, shape in ipairs(shapes) do
      new { list = { list("10", {}), shape, list("20", {}) }, watch = { relist() } }
      r:wait_for("watch", 2)
      assert.are.same({ limit = "500" }, r.sent.list[3].query)
      assert.are.equal(1, r:decided("LIST_EXPIRED"))
      r:close()
      r = nil
    end
  end)

  it("lists all in one response at the first version when a later page has expired", function()
    -- row 19
    new { list = { list("10", { pod("a", 1) }, "t1"), fail(410, "Expired"),
      list("12", { pod("a", 1), pod("b", 2) }) } }
    r:wait_for("watch", 1)
    assert.are.same({ limit = "500", continue = "t1" }, r.sent.list[2].query)
    assert.are.same({ resourceVersion = "0" }, r.sent.list[3].query)
    assert.are.same({ "replace 12: default/a@1 default/b@2" }, r.log)
    assert.are.equal("12", r.sent.watch[1].query.resourceVersion)
    assert.are.equal(1, r:decided("PAGE_EXPIRED"))
    assert.are.same({}, r.errors)
  end)

  it("does not wait before it lists all in one response", function() -- row 19
    new { list = { list("10", { pod("a", 1) }, "t1"), fail(410, "Expired"), list("12", {}) },
      config = { backoff = a_minute } }
    r:wait_for("watch", 1)
    assert.are.same({ "listing", "watching" }, r.states)
  end)

  it("lists all in one response at the version that the pages began with", function() -- row 19
    new { list = { list("10", { pod("a", 1) }), list("20", { pod("a", 1) }, "t1"), fail(410, "Expired"),
      list("22", { pod("a", 1) }) }, watch = { relist() }, config = { page_size = 4 } }
    r:wait_for("watch", 2)
    assert.are.same({ limit = "4", resourceVersion = "10" }, r.sent.list[2].query)
    assert.are.same({ limit = "4", continue = "t1" }, r.sent.list[3].query)
    assert.are.same({ resourceVersion = "10" }, r.sent.list[4].query)
    assert.are.equal("replace 22: default/a@1", r.log[2])
  end)

  it("lists the newest state in one response when that is what the pages began with", function() -- row 19
    new { list = { fail(410, "Expired"), list("20", { pod("a", 1) }, "t1"), fail(410, "Expired"),
      list("22", { pod("b", 2) }) } }
    r:wait_for("watch", 1)
    assert.are.same({ limit = "500" }, r.sent.list[2].query)
    assert.are.same({ limit = "500", continue = "t1" }, r.sent.list[3].query)
    assert.are.same({}, r.sent.list[4].query)
    assert.are.same({ "replace 22: default/b@2" }, r.log)
  end)

  it("does not list all in one response when a later page is only gone", function() -- row 32
    new { list = { list("10", { pod("a", 1) }, "t1"), fail(410, "Gone"), list("12", {}) } }
    r:wait_for("watch", 1)
    assert.are.equal(0, r:decided("PAGE_EXPIRED"))
    assert.are.equal(1, r:decided("LIST_EXPIRED"))
    assert.are.same({ limit = "500" }, r.sent.list[3].query)
  end)

  it("discards what it has when a page fails, and starts over after a delay", function()
    -- rows 2, 32
    new { list = { list("10", { pod("a", 1) }, "t1"), fail(500, "InternalError", "boom"),
      list("11", { pod("b", 2) }) } }
    r:wait_for("watch", 1)
    assert.are.same({ "replace 11: default/b@2" }, r.log)
    assert.are.same({ limit = "500", resourceVersion = "0" }, r.sent.list[3].query)
    assert.are.same({ { place = "list", code = "EINTERNAL", status = 500, message = "boom",
      again = "retrying in 5 ms" } }, r.errors)
  end)

  it("watches from no version when the list has none, not from that of the list before", function()
    new { list = { list("10", { pod("a", 1) }), list("", { pod("b", 2) }) }, watch = { relist() } }
    local watch = r:wait_for("watch", 2)
    assert.are.equal("10", r.sent.watch[1].query.resourceVersion)
    assert.is_nil(watch.query.resourceVersion)
    assert.are.equal("replace : default/b@2", r.log[2])
    assert.are.equal("", r:rv())
  end)

  it("takes its version from the first page, also where that has none", function()
    new { list = { list("", { pod("a", 1) }, "t1"), list("12", { pod("b", 2) }) } }
    assert.is_nil(r:wait_for("watch", 1).query.resourceVersion)
    assert.are.same({ "replace : default/a@1 default/b@2" }, r.log)
  end)

  it("refuses a list whose version is too long rather than cut it", function()
    local long = ("1"):rep(127)
    new { list = { list(long .. "2", {}), list(long, {}) } }
    assert.are.equal(long, r:wait_for("watch", 1).query.resourceVersion)
    assert.are.equal("list ELIMIT", r.errors[1].place .. " " .. r.errors[1].code)
    assert.are.equal(1, r:decided("LIST_FAILED"))
    assert.are.same({ "replace " .. long .. ": " }, r.log)
  end)

  it("does not follow a continue token in a circle", function()
    new { list = { list("10", {}, "t1"), list("10", {}, "t1"), list("10", {}) } }
    r:wait_for("watch", 1)
    assert.are.equal("EINVAL", r.errors[1].code)
    assert.is_truthy(r.errors[1].message:find("continue token", 1, true))
  end)

  it("reports each failed list and tries again with growing delays up to the cap", function()
    -- rows 2, 9
    local answers = {}
    for i = 1, 6 do answers[i] = fail(503, "ServiceUnavailable", "not yet") end
    answers[7] = list("10", {})
    new { list = answers, config = { backoff = { 0.004, 3, 0, 0.03, 10, 0 } } }
    r:wait_for("watch", 1)
    local again = {}
    for i, e in ipairs(r.errors) do again[i] = e.again end
    assert.are.same({ "retrying in 4 ms", "retrying in 12 ms", "retrying in 30 ms",
      "retrying in 30 ms", "retrying in 30 ms", "retrying in 30 ms" }, again)
  end)

  it("keeps a constant delay when the factor is 0", function() -- row 9
    local f = fail(503, "ServiceUnavailable")
    new { list = { f, f, f, list("10", {}) }, config = { backoff = { 0.003, 0, 0, 1, 10, 0 } } }
    r:wait_for("watch", 1)
    for i = 1, 3 do assert.are.equal("retrying in 3 ms", r.errors[i].again) end
  end)

  it("does not hold up a delay that it told", function() -- row 9
    local times = {}
    local uv = require "luv"
    local function failing() times[#times + 1] = uv.hrtime() return fail(500, "InternalError") end
    new { list = { failing, failing, failing, list("10", {}) },
      config = { backoff = { 0.02, 2, 0, 1, 10, 0 } } }
    r:wait_for("watch", 1)
    assert.is_true(times[2] - times[1] >= 19e6)
    assert.is_true(times[3] - times[2] >= 39e6)
  end)

  it("reuses what did not change since the last snapshot", function() -- row 2
    new { list = { list("10", { pod("a", 1), pod("b", 2), pod("c", 3) }),
      list("20", { pod("a", 1), pod("b", 12), pod("c", 3, { uid = "other" }), pod("d", 4) }) },
      watch = { relist() } }
    r:wait_log(1)
    local first = r.pointers
    r:wait_log(2)
    assert.are.equal("replace 20: default/a@1 default/b@12 default/c@3 default/d@4", r.log[2])
    assert.are.equal(first[1], r.pointers[1])
    assert.are.equal(1, tonumber(r:stats().reused))
  end)

  it("removes what vanished while it could not watch, and keeps the rest", function() -- row 23
    new { list = { list("10", { pod("a", 1), pod("b", 2) }), list("20", { pod("b", 2) }) },
      watch = { relist() } }
    r:wait_log(2)
    assert.are.same({ "replace 10: default/a@1 default/b@2", "replace 20: default/b@2" }, r.log)
    assert.are.equal(1, tonumber(r:stats().reused))
    assert.are.equal(1, r:decided("WATCH_FAILED"))
  end)

  it("refuses a Table, a Status and what is no list", function() -- row 25
    local bodies = { '{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{},"rows":[]}',
      rig.status(200, "", "fine"), "[]", '{"kind":"PodList","items":[', "" }
    local answers = {}
    for i, body in ipairs(bodies) do answers[i] = { body = body } end
    answers[#answers + 1] = list("10", {})
    new { list = answers }
    r:wait_for("watch", 1)
    assert.are.equal(#bodies, #r.errors)
    assert.are.equal(#bodies, r:decided("LIST_FAILED"))
    assert.are.same({ "replace 10: " }, r.log)
  end)

  it("leaves out an item that cannot be stored, counts and tells it, and goes on", function()
    local nameless = '{"apiVersion":"v1","kind":"Pod","metadata":{"uid":"u","resourceVersion":"7"}}'
    new { list = { list("10", { nameless, pod("a", 1), nameless }) } }
    r:wait_for("watch", 1)
    assert.are.same({ "replace 10: default/a@1" }, r.log)
    assert.are.equal(2, tonumber(r:stats().dropped))
    assert.are.equal(1, #r.errors)
    assert.are.equal("going on without this object", r.errors[1].again)
  end)

  it("says that a resource is not installed", function()
    new { list = { fail(404, "NotFound", "the server could not find the requested resource"),
      list("10", {}) }, config = { resource = "example.com/v1/webs" } }
    r:wait_for("watch", 1)
    assert.are.equal('the server has no resource "example.com/v1/webs" ' ..
      '(is the CustomResourceDefinition installed?)', r.errors[1].message)
    assert.are.equal(404, r.errors[1].status)
    assert.are.equal("/apis/example.com/v1/webs", r.sent.list[1].path)
  end)

  for _, resource in ipairs { "v1/novelties", "apps/v9/deployments", "resource.k8s.io/v1/deviceclasses" } do
    it("says where to look for " .. resource .. ", which no definition makes", function()
      new { list = { fail(404, "NotFound", "the server could not find the requested resource"), list("10", {}) },
        config = { resource = resource } }
      r:wait_for("watch", 1)
      assert.are.equal('the server has no resource "' .. resource ..
        '" (kubectl api-resources shows what it serves)', r.errors[1].message)
    end)
  end

  it("says that a resource which is not in the namespace may be in none", function()
    new { list = { fail(404, "NotFound", "the server could not find the requested resource"),
      list("10", {}) }, config = { resource = "example.com/v1/webs", ns = "default" } }
    r:wait_for("watch", 1)
    assert.are.equal('the server has no resource "example.com/v1/webs" ' ..
      '(is the CustomResourceDefinition installed?); if it is in no namespace, ask with namespace = ""',
      r.errors[1].message)
    assert.are.equal("/apis/example.com/v1/namespaces/default/webs", r.sent.list[1].path)
  end)

  it("hands on the server's words when access is denied, and says that it goes on trying", function()
    local words = 'pods is forbidden: User \\"x\\" cannot list resource \\"pods\\"'
    new { list = { fail(403, "Forbidden", words), fail(401, "Unauthorized", "Unauthorized"),
      list("10", {}) } }
    r:wait_for("watch", 1)
    assert.are.same({ place = "list", code = "EHTTP", status = 403,
      message = words:gsub("\\", ""), again = "retrying in 5 ms, in case access is granted" },
      r.errors[1])
    assert.are.equal("retrying in 10 ms, in case the credentials are renewed", r.errors[2].again)
    assert.matches("^127.0.0.1:%d+: the server does not know who asks %(Unauthorized%): check the user of kubeconfig ",
      r.errors[2].message)
    assert.are.equal(401, r.errors[2].status)
  end)

  it("gives up a list that falls silent in the middle, tells why, and reads all again", function()
    local half = list("10", { pod("a", 1), pod("b", 2) }).body:sub(1, -20)
    local told
    new { list = setmetatable({}, { __index = function()
      for _, e in ipairs(r and r.errors or {}) do
        told = told or (e.message:find("nothing arrived for 0.2 seconds", 1, true) and e)
      end
      return told and list("20", { pod("c", 3) }) or { chunks = { half }, open = true }
    end }), config = { list_idle = 0.2 } }
    r:wait_log(1)
    assert.are.equal("replace 20: default/c@3", r.log[1])
    assert.are.equal("list ETIMEOUT", told.place .. " " .. told.code)
    assert.are.equal(#r.errors, r:decided("LIST_FAILED"))
  end)

  it("lets a list be silent for longer than a server works on one", function()
    new { list = { { silent = true } } }
    r:wait_for("list", 1)
    assert.are.equal(75, r.reflector.request.idle_timeout)
    assert.are.equal(0, r.reflector.request.head_timeout)
  end)

  it("counts what it has received while a list is under way", function()
    new { list = { { chunks = { '{"kind":"PodList","apiVersion":"v1","metadata":' ..
      '{"resourceVersion":"1"},"items":[' .. pod("a", 1) .. "," .. pod("b", 2) .. "," },
      open = true } } }
    r:pump(function() return tonumber(r:stats().received) == 2 end)
    assert.are.same({}, r.log)
    assert.are.equal(unit.C.MW_REF_LISTING, tonumber(r:stats().state))
  end)
end)
