-- Leader election among real processes: they are killed, frozen and cut off, and never two of them write.
local cleanup = require "spec.support.cleanup"
local cluster = require "spec.support.cluster"
local replicas = require "spec.support.replicas"
local uv = require "luv"

local LEASE, DEADLINE, RETRY = 3, 2, 0.4
-- The longest that another one takes to look at the Lease again, and what a slow machine adds to anything.
local LOOK, SLACK = RETRY * 2.2, 2.5

-- Takes part, and while it leads creates one ConfigMap after the other, from three tasks at once.
local writer = [[
  local kube = require "kube"
  local ns, id = "%s", "%s"
  local leader = kube.leader_election { name = "web", namespace = ns, identity = id, lease_duration = %d,
    renew_deadline = %d, retry_period = %g }
  local informer = kube.informer("v1/secrets", { namespace = ns })
  kube.wait_for_cache_sync(nil, informer)
  local before = informer:stats()
  print("synced")
  leader:wait()
  local after = informer:stats()
  print("leading", after.lists - before.lists, after.watches - before.watches, informer:has_synced())
  local n, done = 0, 0
  local function write()
    while true do
      n = n + 1
      local response, err = kube.try_request { method = "POST", path = "/api/v1/namespaces/" .. ns .. "/configmaps",
        body = { metadata = { name = id .. "-" .. n, labels = { writer = id } } } }
      if response then
        done = done + 1
        if done == 20 then print("writes") end
      elseif err.code ~= "not_leading" and err.code ~= "timeout" then
        print("failed", err.code, err)
      end
      kube.sleep(0.005)
    end
  end
  kube.background("b", write)
  kube.background("c", write)
  write()
]]

local function now() return uv.hrtime() / 1e9 end

describe("of several replicas", function()
  cluster.install()
  cleanup.install()

  local ns

  before_each(function() ns = cluster.namespace() end)

  local function start(id) return cluster.start(writer:format(ns, id, LEASE, DEADLINE, RETRY)) end

  -- A leader that writes, and a standby with a warm cache.
  local function pair()
    local a = start("a")
    a:wait_line("^writes", 10)
    local b = start("b")
    b:wait_line("^synced", 10)
    return a, b
  end

  local function lease() return replicas.lease(ns) end
  local function writes(id) return replicas.writes(ns, "writer=" .. id) end
  local function assert_apart(old, new) replicas.assert_apart(ns, "writer=" .. old, "writer=" .. new, 20) end

  it("another leads when the leader is killed, not before its lease is over and not long after", function()
    local a, b = pair()
    local killed = now()
    a:kill("sigkill")
    local line = b:wait_line("^leading", LEASE + 2 * LOOK + SLACK)
    local took = now() - killed
    assert.is_true(took > LEASE - RETRY - 0.5, "it took " .. took)
    assert.are.equal("leading\t0\t0\ttrue", line) -- the cache is warm: neither listed nor watched anew
    b:wait_line("^writes", 10)
    assert_apart("a", "b")
    assert.are.same({ "b", 1 }, { lease().holderIdentity, lease().leaseTransitions })
    cluster.stop(b)
  end)

  it("one that was frozen until another leads writes nothing when it goes on, and ends", function()
    local a, b = pair()
    -- Between two renewals: of one under way it would only hear that its time is over.
    local renewed = lease().renewTime
    while lease().renewTime == renewed do uv.sleep(10) end
    a:kill("sigstop")
    b:wait_line("^writes", LEASE + 2 * LOOK + SLACK + 5)
    a:kill("sigcont")
    assert.are.equal(4, a:wait_exit(10), a.stderr)
    assert.is_truthy(a.stderr:find("the Lease is held by b", 1, true), a.stderr)
    assert_apart("a", "b")
    cluster.stop(b)
  end)

  it("one that was frozen for a moment leads on", function()
    local a = start("a")
    a:wait_line("^writes", 10)
    a:kill("sigstop")
    local thaw = now() + 0.5
    while now() < thaw do uv.run("nowait") end
    a:kill("sigcont")
    local count = #writes("a")
    local stop = now() + 5
    while #writes("a") == count do assert(now() < stop, "it writes no more") end
    cluster.stop(a)
  end)

  it("a leader that does not reach the server ends in time, and a standby leads when it is back", function()
    local a, b = pair()
    local resume = cluster.pause()
    local paused = now()
    assert.are.equal(4, a:wait_exit(RETRY + DEADLINE + SLACK), a.stderr)
    local took = now() - paused
    assert.is_true(took > DEADLINE - RETRY - 0.2, "it ended after " .. took)
    assert.is_truthy(a.stderr:find("nothing is written until it is", 1, true), a.stderr)
    resume()
    b:wait_line("^writes", LEASE + 2 * LOOK + SLACK + 5)
    local count = #writes("a")
    assert.are.equal("b", lease().holderIdentity)
    cluster.stop(b)
    assert.are.equal(count, #writes("a"))
  end)

  it("one that is asked to stop hands over at once", function()
    local a, b = pair()
    cluster.stop(a)
    local stopped = now()
    assert.are.equal("leading\t0\t0\ttrue", b:wait_line("^leading", LOOK + SLACK))
    assert.is_true(now() - stopped < LEASE, "it waited for the lease")
    b:wait_line("^writes", 10)
    assert_apart("a", "b")
    cluster.stop(b)
    assert.are.same({ "", 1, 1 }, { lease().holderIdentity or "", lease().leaseDurationSeconds,
      lease().leaseTransitions })
  end)

  it("clocks need not agree: only changes of the record count, not its times", function()
    local holder = [[{ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
      "metadata": { "name": "web", "namespace": "%s" }, "spec": { "holderIdentity": "other", "leaseDurationSeconds": 2,
      "leaseTransitions": 0, "acquireTime": "%s", "renewTime": "%s" } }]]
    for _, time in ipairs { "1999-01-01T00:00:00.000000Z", "2199-01-01T00:00:00.000000Z" } do
      cluster.kubectl("create -f -", holder:format(ns, time, time))
      local a = start("a")
      a:wait_line("^synced", 10)
      local began = now()
      a:wait_line("^leading", 2 + LOOK + SLACK)
      local took = now() - began
      assert.is_true(took > 1.2, "it took " .. took)
      cluster.stop(a)
      cluster.kubectl(("-n %s delete lease web"):format(ns))
    end
  end)
end)
