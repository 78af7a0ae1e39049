-- Leader election: real requests to a server that keeps one Lease.
local cjson = require "cjson"
local captured = require "spec.support.captured"
local rig = require "spec.support.lease_rig"
local unit = require "spec.support.unit"
local uv = require "luv"
local C, ffi = unit.C, unit.ffi

local ANCIENT, FAR = "1999-01-01T00:00:00.000000Z", "2199-01-01T00:00:00.000000Z"

describe("an election", function()
  local r

  local function new(...)
    r = rig.new(...)
    return r
  end

  after_each(function()
    if r then r:close() end
    r = nil
  end)
  unit.no_leaks() -- behind what closes

  local function elect(options) return r:elect(options) end

  local function lead(options)
    local e = elect(options)
    r:pump(function() return e.changes[1] end)
    return e
  end

  -- What /metrics shows of this election.
  local function metric(name)
    local out = ffi.new("struct mw_buf")
    C.mw_buf_init(out, 1e6)
    assert(C.mw_metric_write(out) == 0)
    local text = ffi.string(out.p, out.n)
    C.mw_buf_deinit(out)
    return tonumber(text:match("\nleader_election_" .. name .. '{name="web"} (%d+)'))
  end

  local function spec() return r.lease.spec end

  describe("acquires", function()
    it("a Lease that is not there by creating it", function() -- row 91
      new()
      lead()
      assert.are.same({ "GET 404", "POST 201" }, { r.log[1], r.log[2] })
      assert.are.same({ "me", 2, 0 }, { spec().holderIdentity, spec().leaseDurationSeconds, spec().leaseTransitions })
      assert.is_truthy(spec().renewTime:find("^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d%.%d%d%d%d%d%dZ$"))
      assert.are.equal("web", r.lease.metadata.name)
      assert.are.equal("ops", r.lease.metadata.namespace)
    end)

    it("one without a spec, or with a record that says nothing, at once", function() -- row 91
      for _, empty in ipairs { cjson.null, cjson.decode("{}"), { holderIdentity = cjson.null } } do
        new(empty)
        lead()
        assert.are.same({ "GET 200", "PUT 200" }, { r.log[1], r.log[2] })
        assert.are.same({ "me", 1 }, { spec().holderIdentity, spec().leaseTransitions })
        r:close()
        r = nil
      end
    end)

    it("one that was released at once, and counts the transition", function() -- row 91
      new { holderIdentity = "", leaseDurationSeconds = 1, leaseTransitions = 7, renewTime = FAR }
      local e = lead()
      assert.are.same({ "me", 8 }, { spec().holderIdentity, spec().leaseTransitions })
      assert.are.same({ "", "me" }, e.leaders)
    end)

    it("its own from before with time of acquisition and transitions kept", function() -- row 91
      new { holderIdentity = "me", leaseDurationSeconds = 9, leaseTransitions = 4, acquireTime = ANCIENT,
        renewTime = ANCIENT }
      lead()
      assert.are.same({ "GET 200", "PUT 200" }, { r.log[1], r.log[2] })
      assert.are.same({ "me", 2, 4, ANCIENT },
        { spec().holderIdentity, spec().leaseDurationSeconds, spec().leaseTransitions, spec().acquireTime })
      assert.are_not.equal(ANCIENT, spec().renewTime)
    end)

    it("a foreign one only when it was seen unchanged for its duration, whatever its times say", function() -- row 91
      for _, time in ipairs { ANCIENT, FAR } do
        new { holderIdentity = "other", leaseDurationSeconds = 1, leaseTransitions = 2, acquireTime = time,
          renewTime = time }
        local began = C.mw_clock_boot()
        local e = lead()
        local took = tonumber(C.mw_clock_boot() - began) / 1e9
        assert.is_true(took >= 1 and took < 4, "it took " .. took)
        assert.are.same({ "me", 3 }, { spec().holderIdentity, spec().leaseTransitions })
        assert.are_not.equal(time, spec().acquireTime)
        assert.are.same({ "other", "me" }, e.leaders)
        r:close()
        r = nil
      end
    end)

    it("none while its holder goes on renewing", function() -- row 91
      new { holderIdentity = "other", leaseDurationSeconds = 1, leaseTransitions = 2, renewTime = ANCIENT }
      local e = elect()
      for i = 1, 8 do
        r:idle(0.2)
        r:set { holderIdentity = "other", leaseDurationSeconds = 1, leaseTransitions = 2, renewTime = FAR .. i }
      end
      assert.is_false(e:is_leading())
      assert.are.same({}, e.changes)
      assert.is_nil(table.concat(r.log, " "):find("PUT"))
      assert.are.equal("other", e:holder())
    end)

    it("none from an answer that is no Lease, or one with another holder", function()
      new()
      r.answers[2] = { status = 200, body = "{}" }
      r.answers[4] = { status = 201, body = cjson.encode { kind = "Lease", apiVersion = "coordination.k8s.io/v1",
        metadata = { name = "web", resourceVersion = "1" }, spec = { holderIdentity = "someone" } } }
      local e = elect()
      r:wait_requests(4)
      r:idle(0.02)
      assert.is_false(e:is_leading())
    end)

    it("with jitter: after 1 to 2.2 retry periods", function()
      new { holderIdentity = "other", leaseDurationSeconds = 60 }
      local times = {}
      elect { retry_period = 0.1 }
      for n = 1, 8 do
        r:wait_requests(n)
        times[n] = tonumber(C.mw_clock_now()) / 1e9
      end
      local least = math.huge
      for n = 2, 8 do
        local gap = times[n] - times[n - 1]
        assert.is_true(gap > 0.09, "a gap of " .. gap)
        least = math.min(least, gap)
      end
      assert.is_true(least < 0.3, "no gap is below " .. least)
    end)

    it("only once among many", function()
      new()
      local all = {}
      for i = 1, 5 do all[i] = elect { identity = "e" .. i } end
      r:idle(0.6)
      local leaders = {}
      for _, e in ipairs(all) do leaders[#leaders + 1] = e:is_leading() and e.keep[1].identity or nil end
      assert.are.equal(1, #leaders)
      for _, e in ipairs(all) do assert.are.equal(leaders[1], e:holder()) end
    end)
  end)

  describe("renews", function()
    it("with one PUT each, and reads again after a conflict", function() -- row 92
      new()
      local e = lead()
      r:wait_requests(4)
      assert.are.same({ "GET 404", "POST 201", "PUT 200", "PUT 200" }, { unpack(r.log, 1, 4) })
      r:set { holderIdentity = "me", leaseDurationSeconds = 2, leaseTransitions = 0, renewTime = FAR }
      local n = #r.log
      r:wait_requests(n + 3)
      assert.are.same({ "PUT 409", "GET 200", "PUT 200" }, { unpack(r.log, n + 1, n + 3) })
      assert.is_true(e:is_leading())
      assert.is_nil(e.lost)
      assert.are.same({ 1, 1 }, { metric("master_status"), metric("slowpath_total") })
      r:stop(e)
      assert.are.same({ 0, 1 }, { metric("master_status"), metric("slowpath_total") })
    end)

    it("says who it is in a User-Agent of its own", function()
      new()
      lead()
      assert.is_truthy(r.server.requests[1].headers["user-agent"]:find("^moonwatch/%S+ leader%-election$"))
    end)

    it("creates the Lease again when somebody deleted it", function()
      new()
      local e = lead()
      r.lease = nil
      local n = #r.log
      r:wait_requests(n + 3)
      assert.are.same({ "PUT 404", "GET 404", "POST 201" }, { unpack(r.log, n + 1, n + 3) })
      assert.is_nil(e.lost)
    end)

    it("through failures that are shorter than the deadline", function()
      new()
      local e = lead()
      local n = #r.log
      for i = 1, 6 do r.answers[n + i] = i % 2 == 0 and { lost = true } or rig.failure(503, "ServiceUnavailable") end
      r:wait_requests(n + 8)
      assert.is_true(e:is_leading())
      assert.are.same({ true }, e.changes)
    end)

    it("and is lost when it could not for the deadline, the fence first", function()
      new()
      local e = lead { renew_deadline = 0.5, retry_period = 0.2 }
      local n = #r.log
      for i = n + 1, n + 100 do r.answers[i] = rig.failure(500, "InternalError") end
      r:pump(function() return not e:is_leading() end)
      assert.is_nil(e.lost)
      r:pump(function() return e.lost end)
      assert.is_truthy(e.lost:find("could not be renewed for 0.5 seconds: .*InternalError"), e.lost)
      assert.are.same({ true, false }, { e.changes[1], e.changes[#e.changes] })
      local sent = #r.log
      r:idle(0.5)
      assert.are.equal(sent, #r.log) -- it does not contend again, nor release
      r:stop(e)
      assert.are.equal(sent, #r.log)
      assert.are.equal("me", r.lease.spec.holderIdentity)
    end)

    it("late, and the fence opens again", function()
      new()
      local e = lead { renew_deadline = 0.5, retry_period = 0.3 }
      local n = #r.log
      for i = n + 1, n + 2 do r.answers[i] = rig.failure(500, "InternalError") end
      r:pump(function() return not e:is_leading() end)
      r:pump(function() return e:is_leading() end)
      assert.is_nil(e.lost)
      r:pump(function() return #e.changes >= 3 end)
      assert.are.equal(true, e.changes[#e.changes])
    end)

    it("and says so when it was late, or had failed, and why it was late when nobody knows", function()
      new()
      local e = lead { renew_deadline = 1.5, retry_period = 0.3, lease_duration = 3 }
      local text = captured(function()
        C.mw_log_set_level(C.MW_LOG_INFO)
        local thaw = uv.hrtime() + 1.7e9
        while uv.hrtime() < thaw do end -- frozen: nothing of the process runs
        assert.is_false(e:is_leading())
        r:pump(function() return e:is_leading() end)
        local n = #r.log
        for i = n + 1, n + 2 do r.answers[i] = rig.failure(503, "ServiceUnavailable") end
        r:wait_requests(n + 4) -- the one behind that which went well
        C.mw_log_set_level(-1)
      end)
      assert.is_nil(e.lost)
      local again = "[^\n]*\n[^\n]*the lease is renewed again"
      assert.is_truthy(text:find("not renewed in time[^\n]*no answer so far" .. again), text)
      assert.is_truthy(text:find("not renewed lease=[^\n]*ServiceUnavailable" .. again), text)
      assert.are.equal(2, select(2, text:gsub("renewed again", "")))
    end)

    it("and is lost at once when another holds the Lease", function()
      new()
      local e = lead { renew_deadline = 1.9 }
      r:set { holderIdentity = "other", leaseDurationSeconds = 2, leaseTransitions = 1, renewTime = ANCIENT }
      local n = #r.log
      r:pump(function() return e.lost end)
      assert.are.same({ "PUT 409", "GET 200" }, { unpack(r.log, n + 1) })
      assert.are.equal("the Lease is held by other", e.lost)
      assert.is_false(e:is_leading())
      assert.are.same({ "me", "other" }, e.leaders)
    end)

    it("with requests that cannot eat up the deadline", function()
      new()
      local e = lead { lease_duration = 4, renew_deadline = 3, retry_period = 0.05 }
      local n = #r.log
      r.answers[n + 1], r.answers[n + 2] = { silent = true }, { silent = true }
      local began = C.mw_clock_now()
      r:wait_requests(n + 2)
      local took = tonumber(C.mw_clock_now() - began) / 1e9
      assert.is_true(took > 1.4 and took < 2.5, "the first took " .. took) -- half the deadline
      assert.is_true(e:is_leading())
      r:pump(function() return not e:is_leading() end)
      assert.is_nil(e.lost)
    end)
  end)

  describe("is released", function()
    it("with no holder, a second, and transitions kept; the Lease is read first", function() -- row 93
      new()
      local e = lead()
      r:wait_requests(3)
      local n = #r.log
      r:stop(e)
      assert.are.same({ "GET 200", "PUT 200" }, { r.log[#r.log - 1], r.log[#r.log] })
      assert.is_true(#r.log >= n + 2)
      assert.are.same({ "", 1, 0 }, { spec().holderIdentity, spec().leaseDurationSeconds, spec().leaseTransitions })
      assert.are.equal(spec().renewTime, spec().acquireTime)
      assert.are.same({ "me", "" }, e.leaders)
      assert.is_false(e:is_leading())
    end)

    it("again after a conflict", function() -- row 93
      new()
      local e = lead()
      r:wait_requests(3)
      local n = #r.log
      r.answers[n + 2] = function()
        r:set { holderIdentity = "me", leaseDurationSeconds = 2, leaseTransitions = 5, renewTime = FAR }
      end
      r:stop(e)
      assert.are.same({ "GET 200", "PUT 409", "GET 200", "PUT 200" }, { unpack(r.log, n + 1) })
      assert.are.same({ "", 5 }, { spec().holderIdentity, spec().leaseTransitions })
    end)

    it("when the stop comes in the middle of a renewal", function() -- row 93
      new()
      local e = lead()
      local n = #r.log
      r.answers[n + 1] = { silent = true }
      r:wait_requests(n + 1)
      r:stop(e)
      assert.are.same({ "PUT silent", "GET 200", "PUT 200" }, { unpack(r.log, n + 1) })
      assert.are.equal("", spec().holderIdentity)
    end)

    it("when the stop comes before the answer that would have made it the leader", function()
      new()
      r.answers[2] = function(request)
        r:put(cjson.decode(request.body))
        return { silent = true }
      end
      local e = elect()
      r:wait_requests(2)
      r:stop(e)
      assert.are.equal("", spec().holderIdentity)
    end)

    it("by nobody else, not when it is gone, and not for another reason to fail", function() -- row 93
      for _, case in ipairs { "other", "gone", "failing" } do
        new()
        local e = lead { retry_period = 1 }
        local n = #r.log
        if case == "other" then r:set { holderIdentity = "other", leaseDurationSeconds = 9 } end
        if case == "gone" then r.lease = nil end
        if case == "failing" then r.answers[n + 1] = rig.failure(403, "Forbidden") end
        r:stop(e)
        assert.are.equal(n + 1, #r.log, case)
        r:close()
        r = nil
      end
    end)

    it("within the deadline, whatever the server does", function()
      new()
      local e = lead { renew_deadline = 1.2, retry_period = 0.9 }
      local n = #r.log
      for i = 1, 5 do r.answers[n + i] = { silent = true } end
      local began = C.mw_clock_now()
      r:stop(e)
      local took = tonumber(C.mw_clock_now() - began) / 1e9
      assert.is_true(took > 0.9 and took < 4, "it took " .. took)
    end)

    it("only when it is configured to, and only by the leader", function()
      new()
      r:stop(lead { release = false })
      assert.are.equal("me", spec().holderIdentity)
      local n = #r.log
      r:stop(elect { identity = "late" })
      assert.is_true(#r.log <= n + 1)
      assert.are.equal("me", spec().holderIdentity)
    end)

    it("so that the next need not wait", function()
      new()
      local e = lead { lease_duration = 60 }
      local late = elect { identity = "late", lease_duration = 60 }
      r:idle(0.1)
      r:stop(e)
      local began = C.mw_clock_now()
      r:pump(function() return late:is_leading() end)
      assert.is_true(tonumber(C.mw_clock_now() - began) < 1e9)
      assert.are.same({ "late", 1 }, { spec().holderIdentity, spec().leaseTransitions })
    end)
  end)

  describe("is not begun", function()
    local function refused(options)
      local config, keep = rig.config(options)
      local err = unit.err()
      assert.are.equal(C.MW_EINVAL, C.mw_lease_config_check(config, err), keep and "")
      return ffi.string(err.message)
    end

    it("without an identity, a name or a namespace", function() -- row 94
      assert.is_truthy(refused({ identity = "" }):find("identity is empty"))
      assert.is_truthy(refused({ name = "" }):find("name of the Lease is empty"))
      assert.is_truthy(refused({ ns = "" }):find("namespace of the Lease is empty"))
      assert.is_truthy(refused({ identity = ("x"):rep(2000) }):find("more than 1024 bytes"))
    end)

    it("with times that do not fit one another", function() -- row 94
      assert.is_truthy(refused({ lease_duration = 10, renew_deadline = 10 }):find("lease_duration %(10%) must be gr"))
      assert.is_truthy(refused({ renew_deadline = 1.2, retry_period = 1 }):find("retry_period x 1.2 %(1.2%)"))
      assert.is_truthy(refused({ retry_period = 0 }):find("retry_period must be above 0"))
      assert.is_truthy(refused({ lease_duration = 2.5 }):find("whole seconds, 1 or more, not 2.5"))
      assert.is_truthy(refused({ lease_duration = 0, renew_deadline = -1 }):find("whole seconds"))
      assert.is_truthy(refused({ lease_duration = 0 / 0 }):find("whole seconds"))
    end)

    it("but with the defaults of client-go", function()
      local d = C.mw_lease_default
      assert.are.same({ 15, 10, 2, true }, { d.lease_duration, d.renew_deadline, d.retry_period, d.release })
    end)
  end)

  it("has an identity of host and uuid, another one each time", function()
    local a, b = ffi.new("char[320]"), ffi.new("char[320]")
    C.mw_lease_identity(a)
    C.mw_lease_identity(b)
    local uuid = ("%x"):rep(8) .. "%-" .. ("%x"):rep(4) .. "%-4%x%x%x%-[89ab]%x%x%x%-" .. ("%x"):rep(12)
    assert.is_truthy(ffi.string(a):find("^.+_" .. uuid .. "$"), ffi.string(a))
    assert.are_not.equal(ffi.string(a), ffi.string(b))
  end)

  it("is unhealthy only while it leads by a record that is too old", function() -- row 95
    new { holderIdentity = "other", leaseDurationSeconds = 1 }
    local e = elect { retry_period = 1 }
    r:wait_requests(1)
    r:idle(0.05)
    assert.are.equal(0, e:check(-100)) -- it does not lead
    r:pump(function() return e:is_leading() end)
    assert.are.equal(0, e:check(20))
    r:idle(0.2)
    assert.is_truthy(tostring(e:check(-1.9)):find("the lease web was last renewed 0 seconds ago"))
    assert.are.equal(0, e:check(-1))
  end)

  describe("keeps", function()
    it("what else is in the Lease, known or not, and lays labels over it", function() -- row 96
      new({ holderIdentity = "", leaseDurationSeconds = 1, leaseTransitions = 0, strategy = "OldestEmulationVersion",
        preferredHolder = "x", later = { { 1 } } }, { app = "old", team = "a" })
      r.lease.metadata.annotations = { note = "\"quoted\" \\ \1" }
      r.lease.metadata.managedFields = { { manager = "kubectl" } }
      r.lease.newSection = cjson.decode("[]")
      lead { labels = { { "app", "web \"q\"" }, { "tier", "back" } } }
      local lease = r.lease
      assert.are.same({ app = "web \"q\"", team = "a", tier = "back" }, lease.metadata.labels)
      assert.are.same({ note = "\"quoted\" \\ \1" }, lease.metadata.annotations)
      assert.are.same({ { manager = "kubectl" } }, lease.metadata.managedFields)
      assert.are.same({ "OldestEmulationVersion", "x", { { 1 } }, "u-1" },
        { lease.spec.strategy, lease.spec.preferredHolder, lease.spec.later, lease.metadata.uid })
      assert.are.same({}, lease.newSection)
    end)

    it("labels where there are none yet, and none where none are configured", function() -- row 96
      new { holderIdentity = "", leaseDurationSeconds = 1 }
      local e = lead { labels = { { "app", "web" } } }
      assert.are.same({ app = "web" }, r.lease.metadata.labels)
      r:stop(e)
      assert.are.same({ app = "web" }, r.lease.metadata.labels)
      lead { identity = "second" }
      assert.are.same({ app = "web" }, r.lease.metadata.labels)
    end)
  end)
end)
