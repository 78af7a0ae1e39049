-- kube.leader_election in the binary, against a sandbox: who leads, who writes, and how it ends.
local cjson = require "cjson"
local cleanup = require "spec.support.cleanup"
local run = require "spec.support.run"
local sandbox = require "spec.support.sandbox"
local script_server = require "spec.support.script_server"
local scrape = require "spec.support.scrape"

local LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
local MAPS = "/api/v1/namespaces/default/configmaps"
local EVENTS = "/api/v1/namespaces/default/events"

-- A script that takes part in the election `web`, with times that suit a spec.
local prelude = [[
local kube = require "kube"
local MAPS = "/api/v1/namespaces/default/configmaps"
local function election(more)
  local opts = { name = "web", lease_duration = 2, renew_deadline = 1.5, retry_period = 0.2 }
  for name, value in pairs(more or {}) do opts[name] = value end
  return kube.leader_election(opts)
end
local now = require("kube._core").task.now
local function compute(seconds)
  local stop = now() + seconds
  while now() < stop do end
end
local function create(name)
  return kube.try_request { method = "POST", path = MAPS, body = { metadata = { name = name } } }
end
]]

describe("a script with a leader election", function()
  local box

  setup(function() box = sandbox.start() end)
  teardown(function() box:stop() end)
  cleanup.install()

  before_each(function()
    for _, path in ipairs { LEASES, MAPS, EVENTS } do box:ask("DELETE", path) end
    box:ask("DELETE", "/sandbox/v1/requests")
    cleanup.later(function() box:ask("DELETE", "/sandbox/v1/faults") end)
  end)

  local function start(source, options)
    options = options or {}
    options.kubeconfig = box.kubeconfig
    local proc = run.start_script(prelude .. source, options)
    cleanup.later(function() proc:kill("sigkill") end)
    return proc
  end

  local function finish(proc, code)
    assert.are.equal(code or 0, proc:wait_exit(10), proc.stdout .. proc.stderr)
    return proc.stdout
  end

  local function lease(name) return cjson.decode(box:ask("GET", LEASES .. "/" .. (name or "web"))) end

  -- Another one holds the Lease.
  local function hold(seconds)
    box:ask("POST", LEASES, cjson.encode { metadata = { name = "web" }, spec = { holderIdentity = "other",
      leaseDurationSeconds = seconds, leaseTransitions = 3 } })
  end

  local function fault(which) box:ask("POST", "/sandbox/v1/faults", cjson.encode(which)) end

  -- How many requests of a verb there were, for configmaps.
  local function count(verb, resource)
    local path = ("/sandbox/v1/requests?resource=%s&verb=%s"):format(resource or "configmaps", verb)
    return #cjson.decode(box:ask("GET", path)).items
  end

  it("leads, writes, and gives the Lease up when it ends", function()
    local out = finish(start [[
      local leader = election { identity = "one", labels = { app = "web" },
        on_started_leading = function() print("started") end,
        on_stopped_leading = function() print("stopped") end,
        on_new_leader = function(identity) print("leader is " .. identity) end }
      print("at first", leader:is_leading(), tostring(leader))
      print("wait", leader:wait(5), leader:is_leading(), leader:holder(), leader:identity(), leader:namespace())
      print("created", create("a").status)
      kube.sleep(0.3)
    ]])
    assert.are.same({ "at first\tfalse\tleader election default/web", "wait\ttrue\ttrue\tone\tone\tdefault",
      "created\t201" }, { out:match("at first[^\n]*"), out:match("wait[^\n]*"), out:match("created[^\n]*") })
    for _, line in ipairs { "leader is one\n", "started\n", "stopped\n" } do
      assert.is_truthy(out:find(line, 1, true), out)
    end
    local told = {}
    for i, event in ipairs(cjson.decode(box:ask("GET", EVENTS .. "?fieldSelector=involvedObject.kind=Lease")).items) do
      told[i] = ("%s %s %s: %s"):format(event.type, event.reason, event.involvedObject.name, event.message)
    end
    table.sort(told)
    assert.are.same({ "Normal LeaderElection web: one became leader",
      "Normal LeaderElection web: one stopped leading" }, told)
    local left = lease()
    assert.are.same({ "", 1, 0, "web" }, { left.spec.holderIdentity or "", left.spec.leaseDurationSeconds,
      left.spec.leaseTransitions, left.metadata.labels.app })
  end)

  it("writes nothing while another leads, and reads all it likes", function()
    hold(60)
    local out = finish(start [[
      local leader = election()
      print("wait", leader:wait(0.5))
      local _, err = create("a")
      print("create", err.code, err.status, err.retriable and kube.is_not_leading(err))
      for _, method in ipairs { "PUT", "PATCH", "DELETE" } do
        local _, refused = kube.try_request { method = method, path = MAPS .. "/a", body = "{}",
          content_type = "application/merge-patch+json" }
        print(method, refused.code)
      end
      print("read", kube.request { path = MAPS }.status, leader:holder())
      require("kube.sandbox").seed(1)
    ]])
    assert.are.equal("wait\tfalse\ncreate\tnot_leading\tnil\ttrue\nPUT\tnot_leading\nPATCH\tnot_leading\n"
      .. "DELETE\tnot_leading\nread\t200\tother\n", out)
    for _, verb in ipairs { "create", "update", "patch", "delete" } do assert.are.equal(0, count(verb)) end
    assert.are.equal("other", lease().spec.holderIdentity)
  end)

  it("talks to other servers than the API server whoever leads", function()
    hold(60)
    local other = script_server.new(function() return { body = "{}" } end)
    cleanup.later(function() other:close() end)
    local out = finish(start(([[
      local leader = election()
      print("wait", leader:wait(0.1))
      print("verb", (select(2, kube.client:try_create { apiVersion = "v1", kind = "ConfigMap",
        metadata = { name = "a", namespace = "default" } })).code)
      print("other", kube.http.post("%s/hook", { body = { a = 1 } }).status)
    ]]):format(other:url())))
    assert.are.equal("wait\tfalse\nverb\tnot_leading\nother\t200\n", out)
    assert.are.equal("POST", other.requests[1].method)
    assert.are.equal(0, count "create")
  end)

  it("takes over when the Lease has run out, and what waits for it goes on", function()
    hold(1)
    finish(start [[
      election():wait()
      assert(create("a"), "not created")
    ]])
    assert.are.equal(4, lease().spec.leaseTransitions)
    assert.are.equal(1, count "create")
  end)

  it("that cannot renew it writes nothing more, and ends with code 4", function()
    local proc = start [[
      local leader = election { on_stopped_leading = function() print("stopped") end }
      leader:wait()
      print("leading")
      for i = 1, math.huge do
        local _, err = create("n" .. i)
        if err then
          print("refused", err.code, leader:is_leading())
          break
        end
        kube.sleep(0.01)
      end
      kube.sleep(60)
    ]]
    proc:wait_line("^leading")
    fault { group = "coordination.k8s.io", resource = "leases", status = 500, count = 0 }
    proc:wait_line("^refused\tnot_leading\tfalse", 5)
    local written = count "create"
    assert.is_true(written > 1)
    assert.are.equal(4, proc:wait_exit(5))
    assert.are.equal(written, count "create")
    assert.is_truthy(proc.stdout:find("stopped\n", 1, true))
    assert.is_truthy(proc.stderr:find("the lease is lost: ending at once.*could not be renewed for 1.5 seconds"),
      proc.stderr)
  end)

  it("that does not give way ends nevertheless", function()
    local proc = start([[
      local leader = election { renew_deadline = 0.5, retry_period = 0.1 }
      kube.jit "on"
      leader:wait()
      print("leading")
      kube.sleep(0)
      while true do end
    ]])
    proc:wait_line("^leading")
    fault { group = "coordination.k8s.io", resource = "leases", status = 500, count = 0 }
    assert.are.equal(4, proc:wait_exit(8))
    assert.is_truthy(proc.stderr:find("leaving without cleaning up", 1, true), proc.stderr)
  end)

  it("that was taken from it ends with code 4 at once", function()
    local proc = start [[
      local leader = election()
      leader:wait()
      print("leading")
      kube.sleep(60)
    ]]
    proc:wait_line("^leading")
    box:ask("DELETE", LEASES .. "/web")
    hold(60)
    assert.are.equal(4, proc:wait_exit(3))
    assert.is_truthy(proc.stderr:find("the Lease is held by other", 1, true), proc.stderr)
    assert.are.equal("other", lease().spec.holderIdentity)
  end)

  it("waits no longer for a write than it leads", function()
    local proc = start [[
      local leader = election { renew_deadline = 1 }
      leader:wait()
      print("leading")
      local _, err = create("slow")
      print("over", err.code, err.message:find("whether the server did it is not known", 1, true) ~= nil)
      kube.sleep(60)
    ]]
    fault { resource = "configmaps", verb = "create", delay = 30 }
    proc:wait_line("^leading")
    fault { group = "coordination.k8s.io", resource = "leases", status = 500, count = 0 }
    proc:wait_line("^over\ttimeout\ttrue", 3)
    assert.are.equal(4, proc:wait_exit(5))
  end)

  it("and a slow write that is longer than the deadline leads on, and writes", function()
    fault { resource = "configmaps", verb = "create", delay = 2.5 }
    finish(start [[
      local leader = election { renew_deadline = 1 }
      leader:wait()
      assert(create("slow"), "not created")
    ]])
    assert.are.equal(1, count "create")
  end)

  it("keeps the Lease while it computes", function()
    local proc = start [[
      local leader = election { renew_deadline = 0.6, retry_period = 0.1 }
      leader:wait()
      for i = 1, 3 do
        compute(0.7)
        assert(leader:is_leading(), "it lost the lease")
        assert(create("n" .. i), "it may not write")
      end
    ]]
    finish(proc)
    assert.are.equal(3, count "create")
  end)

  it("leaves it to another in order when it is asked to stop, and has nothing to leave as a standby", function()
    local source = [[
      local leader = election { lease_duration = 60, renew_deadline = 40,
        on_new_leader = function(identity) print("leader", identity) end }
      leader:wait()
      print("leading")
      kube.sleep(60)
    ]]
    local one = start(source)
    one:wait_line("^leading")
    local two, three = start(source), start(source)
    two:wait_line("^leader\t")
    three:wait_line("^leader\t")
    three:kill("sigterm")
    finish(three)
    assert.are_not.equal("", lease().spec.holderIdentity)
    one:kill("sigterm")
    finish(one)
    two:wait_line("^leading", 2)
    assert.are.equal(1, lease().spec.leaseTransitions)
    two:kill("sigterm")
    finish(two)
  end)

  it("keeps it when it is told not to release", function()
    finish(start [[ election({ release = false, identity = "one" }):wait() ]])
    assert.are.same({ "one", 2 }, { lease().spec.holderIdentity, lease().spec.leaseDurationSeconds })
  end)

  it("renews it as long as its last tasks take", function()
    local proc = start [[
      local leader = election { renew_deadline = 0.5, retry_period = 0.05 }
      leader:wait()
      local stop = kube.stop_channel()
      print("leading")
      stop:wait()
      compute(0.7)
    ]]
    proc:wait_line("^leading")
    box:ask("DELETE", "/sandbox/v1/requests")
    proc:kill("sigterm")
    finish(proc)
    assert.is_true(count("update", "leases") > 5)
    assert.are.equal(0, #(lease().spec.holderIdentity or ""))
  end)

  it("finds the namespace of the Lease by itself", function()
    local source = 'print(election():namespace()) kube.sleep(0)'
    assert.is_truthy(finish(start(source)):find("^default\n"))
    assert.is_truthy(finish(start(source, { args = { "-n", "kube-system" } })):find("^kube%-system\n"))
    assert.is_truthy(finish(start('print(election({ namespace = "kube-public" }):namespace()) kube.sleep(0)'))
      :find("^kube%-public\n"))
  end)

  it("shows in metrics and probes whether it leads", function()
    local proc = start([[
      local leader = election()
      leader:wait()
      print("leading")
      kube.sleep(60)
    ]], { args = scrape.args })
    proc:wait_line("^leading")
    local seen = scrape.of(proc)
    local _, text = seen:get("/metrics")
    assert.is_truthy(text:find('\nleader_election_master_status{name="web"} 1\n', 1, true), text)
    local status, body = seen:get("/healthz?verbose")
    assert.are.equal(200, status)
    assert.is_truthy(body:find("[+]leader-election ok", 1, true), body)
    proc:kill("sigterm")
    finish(proc)
  end)

  it("is not needed: without one everything is as if it led", function()
    finish(start [[
      local leader = require "kube._leader"
      assert(not leader.is_configured() and leader.is_leading() and leader.wait())
      kube.sleep(0)
      assert(create("a"))
    ]])
  end)

  describe("refuses", function()
    local function message(source)
      local result = run.run_script(prelude .. source, { kubeconfig = box.kubeconfig })
      assert.are.equal(1, result.code, result.stdout)
      return result.stderr
    end

    local cases = {
      { [[kube.leader_election()]], "leader_election needs name = " },
      { [[kube.leader_election { nam = "x" }]], "no option 'nam' %(did you mean 'name'%?%)" },
      { [[kube.leader_election { name = 1 }]], "'name' must be a string, not a number" },
      { [[kube.leader_election { name = "Web" }]], "'Web' cannot be the name of a Lease" },
      { [[kube.leader_election { name = "a..b" }]], "'a..b' cannot be the name of a Lease" },
      { [[election { namespace = "a/b" }]], "'a/b' cannot be a namespace" },
      { [[election { namespace = "" }]], "a Lease is in one namespace" },
      { [[election { identity = "" }]], "identity is empty" },
      { [[election { lease_duration = 1.5 }]], "lease_duration must be whole seconds" },
      { [[election { renew_deadline = 2 }]], "lease_duration %(2%) must be greater than renew_deadline %(2%)" },
      { [[election { retry_period = 1.4 }]], "renew_deadline %(1.5%) must be greater than retry_period x 1.2" },
      { [[election { retry_period = -1 }]], "leader_election: option 'retry_period' must be a number between 0 and" },
      { [[election { labels = { "x" } }]], "labels takes { name = \"value\" }" },
      { [[election { labels = { ["a b"] = "x" } }]], "'a b' cannot be the name of a label" },
      { [[election { labels = { a = "x y" } }]], "'x y' cannot be the value of a" },
      { [[election() election()]], "was declared at [^\n]*script.lua:%d+: a process has one" },
      { [[kube.sleep(0) election()]], "is declared while the script loads" },
      { [[kube:leader_election { name = "a" }]], "call it with a dot: kube.leader_election" },
      { [[local l = election() l.wait()]], "call it with a colon: leader:wait" },
      { [[election():wiat()]], "leader has no 'wiat' %(did you mean 'wait'%?%)" },
      { [[election():wait("x")]], "must be a number of seconds, not a string" },
    }
    it("what cannot work, and says where and why", function()
      for _, case in ipairs(cases) do
        local text = message(case[1])
        assert.is_truthy(text:find(case[2]), case[1] .. ":\n" .. text)
        assert.is_truthy(text:find("script.lua:%d+: "), text)
      end
    end)
  end)
end)
