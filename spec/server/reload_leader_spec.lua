-- Replicas whose leader changes while one of them is reloaded: never two of them write, whichever revision they run.
local cjson = require "cjson"
local cleanup = require "spec.support.cleanup"
local cluster = require "spec.support.cluster"
local replicas = require "spec.support.replicas"
local run = require "spec.support.run"
local uv = require "luv"

local LEASE, DEADLINE, RETRY = 5, 4, 0.4
local TAKES = LEASE + 30 -- until another leads; a slow machine adds to anything

-- Takes part, and while it leads creates one ConfigMap after the other.
local SCRIPT = [[
  local kube = require "kube"
  local ns, id, revision = "%s", "%s", "%s"
  local leader = kube.leader_election { name = "web", namespace = ns, identity = id, lease_duration = %d,
    renew_deadline = %d, retry_period = %g, on_stopped_leading = function() print(revision .. " stopped") end }
  kube.informer("v1/secrets", { namespace = ns })
  %s
  kube.wait_for_cache_sync()
  print(revision .. " begins", leader:is_leading())
  leader:wait()
  print(revision .. " leads")
  for n = 1, math.huge do
    local response, err = kube.try_request { method = "POST", path = "/api/v1/namespaces/" .. ns .. "/configmaps",
      body = { metadata = { generateName = id .. "-", labels = { writer = id, revision = revision } } } }
    if n == 10 then print(revision .. " writes") end
    if not response and err.code ~= "not_leading" and err.code ~= "timeout" then print("failed", err) end
    kube.sleep(0.01)
  end
]]

local CRD = [[{ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
  "metadata": { "name": "things.%(group)" },
  "spec": { "group": "%(group)", "scope": "Namespaced", "names": { "plural": "things", "singular": "thing",
    "kind": "Thing", "listKind": "ThingList" }, "versions": [{ "name": "v1", "served": true, "storage": true,
    "schema": { "openAPIV3Schema": { "type": "object" } } }] } }]]

describe("replicas that are reloaded while their leader changes", function()
  cluster.install()
  cleanup.install()

  local ns, group

  before_each(function()
    ns = cluster.namespace()
    group = ns .. ".example.com"
  end)

  local function save(path, id, revision, more)
    local file = assert(io.open(path .. "~", "w"))
    file:write(SCRIPT:format(ns, id, revision, LEASE, DEADLINE, RETRY, more or ""))
    file:close()
    assert(os.rename(path .. "~", path))
  end

  -- A process, and what saves another revision of its script.
  local function start(id, revision)
    local directory = assert(uv.fs_mkdtemp("/tmp/mw-reload-XXXXXX"))
    cleanup.later(function() run.sh("rm -rf " .. directory) end)
    local path = directory .. "/main.lua"
    save(path, id, revision)
    return cluster.start(path), function(...) save(path, id, ...) end
  end

  local function pair()
    local a, save_a = start("a", "a1")
    a:wait_line("^a1 writes", 30)
    local b, save_b = start("b", "b1")
    b:wait_line("^b1 begins\tfalse", 30)
    return a, b, save_a, save_b
  end

  local function lease() return replicas.lease(ns) end
  local function writes(selector) return replicas.writes(ns, selector) end
  local function assert_apart(old, new) replicas.assert_apart(ns, old, new, 1) end

  local function has_ended(proc)
    assert.are.equal(4, proc:wait_exit(DEADLINE + 20), proc.stderr)
    assert.is_truthy(proc.stderr:find("the lease is lost: ending at once", 1, true), proc.stderr)
    assert.is_nil(proc.stderr:find("leaving without cleaning up", 1, true), proc.stderr)
  end

  -- A revision that wants what the server does not have yet is staged until it does.
  local function staged(proc, save_next, revision)
    save_next(revision, ('kube.informer("%s/v1/things", { namespace = ns })'):format(group))
    proc:wait_stderr("takes over when it has its caches", 20)
  end
  local function commit()
    local crd = CRD:gsub("%%%(group%)", group)
    cluster.kubectl("apply -f -", crd)
    cleanup.later(function() cluster.kubectl("delete crd --wait=false things." .. group) end)
  end

  it("the one that cannot renew its lease takes over the new revision, and ends with it in time", function()
    local a, b, save_a = pair()
    local resume = cluster.pause()
    save_a "a2"
    a:wait_stderr("reloaded", DEADLINE + 5)
    has_ended(a)
    assert.is_truthy(a.stdout:find("a2 stopped", 1, true), a.stdout)
    assert.is_nil(a.stdout:find("a1 stopped", 1, true), a.stdout)
    resume()
    b:wait_line("^b1 writes", TAKES)
    cluster.stop(b)
    assert_apart("writer=a", "writer=b")
    assert.are.equal("", lease().holderIdentity or "")
  end)

  it("the one whose server is back in time leads on, with the new revision", function()
    local a, b, save_a = pair()
    local resume = cluster.pause()
    save_a "a2"
    a:wait_stderr("reloaded", DEADLINE + 5)
    resume()
    a:wait_line("^a2 writes", 20)
    cluster.stop(a)
    b:wait_line("^b1 writes", TAKES)
    cluster.stop(b)
    assert_apart("writer=a", "writer=b")
    assert.are.equal(1, lease().leaseTransitions)
  end)

  it("one that comes to lead while a revision is staged works with the old, and then with the new one", function()
    local a, b, _, save_b = pair()
    staged(b, save_b, "b2")
    a:kill("sigkill")
    b:wait_line("^b1 writes", TAKES)
    commit()
    b:wait_line("^b2 begins\ttrue", 60)
    b:wait_line("^b2 writes", 20)
    assert.are.same({ "b", 1 }, { lease().holderIdentity, lease().leaseTransitions })
    cluster.stop(b)
    assert_apart("writer=a", "revision=b1")
    assert.is_nil(b.stdout:find("b1 stopped", 1, true))
  end)

  it("one that stands by when its new revision takes over leads later, and the old one never wrote", function()
    local a, b, _, save_b = pair()
    staged(b, save_b, "b2")
    commit()
    b:wait_line("^b2 begins\tfalse", 60)
    a:kill("sigkill")
    b:wait_line("^b2 writes", TAKES)
    cluster.stop(b)
    assert_apart("writer=a", "revision=b2")
    assert.are.same({}, writes("revision=b1"))
  end)

  it("one whose lease is taken right behind the take-over ends, and with it both revisions", function()
    local a, b, save_a = pair()
    save_a "a2"
    a:wait_stderr("reloaded", 20)
    cluster.kubectl(("-n %s patch lease web --type merge -p '%s'"):format(ns,
      cjson.encode { spec = { holderIdentity = "thief" } }))
    has_ended(a)
    assert.is_truthy(a.stdout:find("a2 stopped", 1, true), a.stdout)
    b:wait_line("^b1 writes", TAKES)
    cluster.stop(b)
    assert_apart("writer=a", "writer=b")
  end)

  it("an election that a reload adds closes the fence at once, while another leads", function()
    local a = pair()
    local directory = assert(uv.fs_mkdtemp("/tmp/mw-reload-XXXXXX"))
    cleanup.later(function() run.sh("rm -rf " .. directory) end)
    local path = directory .. "/main.lua"
    save(path, "c", "c1")
    -- The same without the election: it writes beside the leader.
    local file = assert(io.open(path))
    local text = file:read("*a"):gsub("local leader = kube.leader_election (%b{})",
      "local leader = require('kube._leader') leader.wait = function() end")
    file:close()
    file = assert(io.open(path, "w"))
    file:write(text)
    file:close()
    local c = cluster.start(path)
    c:wait_line("^c1 writes", 30)
    save(path, "c", "c2")
    c:wait_line("^c2 begins\tfalse", 20)
    local before = #writes("writer=c")
    local seen = #writes("writer=a")
    while #writes("writer=a") < seen + 20 do assert.is_nil(a.code) end
    assert.are.equal(before, #writes("writer=c"))
    cluster.stop(c)
    cluster.stop(a)
  end)
end)
