-- Two replicas of an operator, of which the one that leads is killed.
local cjson = require "cjson"
local cleanup = require "spec.support.cleanup"
local cluster = require "spec.support.cluster"
local exposition = require "spec.support.exposition"
local http_client = require "spec.support.http_client"
local scrape = require "spec.support.scrape"

local LEASE = 5

-- Copies data.v of each ConfigMap that has it into a Secret of that name, signed; copies of what is gone go.
local copier = [[
  local kube = require "kube"
  local ns, id = "%s", "%s"
  local leader = kube.leader_election { name = "copies", namespace = ns, identity = id, lease_duration = %d,
    renew_deadline = 4, retry_period = 0.4 }
  local controller = kube.controller {
    name = "copies", resource = "v1/configmaps", namespaces = { ns }, reads = { "v1/secrets" }, workers = 2,
    predicate = { path = "data.v" },
    reconcile = function(ctx, object)
      print("run", ctx.name, leader:is_leading())
      if object then
        ctx.client:apply { apiVersion = "v1", kind = "Secret", metadata = { name = ctx.name, namespace = ns,
          labels = { copy = "yes", by = id }, annotations = { v = object.data.v } } }
      elseif ctx.cache:get("v1/secrets", ctx.key) then
        ctx.client:delete("v1/secrets", ctx.key)
      end
    end,
  }
  kube.sleep(0)
  while not controller:has_synced() do kube.sleep(0.01) end
  print("synced")
]]

describe("an operator of two replicas whose leader is killed", function()
  cluster.install()
  cleanup.install()

  local ns

  local function start(id)
    local proc = cluster.start(copier:format(ns, id, LEASE), { args = scrape.args })
    return proc, scrape.of(proc)
  end

  local function put(name, value)
    cluster.apply(('{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s","namespace":"%s"},"data":{"v":"%s"}}')
      :format(name, ns, value))
  end

  -- The copies, and who made them: "a=1 first, b=2 second".
  local function copies()
    local list = cjson.decode(cluster.kubectl(("-n %s get secrets -l copy -o json"):format(ns)))
    local out = {}
    for i, item in ipairs(list.items) do
      out[i] = ("%s=%s %s"):format(item.metadata.name, item.metadata.annotations.v, item.metadata.labels.by)
    end
    table.sort(out)
    return table.concat(out, ", ")
  end

  local function wait_for_copies(wanted)
    local found
    for _ = 1, 600 do
      found = copies()
      if found == wanted then return end
      http_client.wait(function() return false end, 0.05)
    end
    assert.are.equal(wanted, found)
  end

  local function lease()
    return cjson.decode(cluster.kubectl(("-n %s get lease copies -o json"):format(ns))).spec
  end

  -- The seconds from one moment of a Lease to a later one.
  local function between(earlier, later)
    local function of_day(text)
      local h, m, s = text:match("T(%d+):(%d+):([%d.]+)Z$")
      return h * 3600 + m * 60 + s
    end
    return (of_day(later) - of_day(earlier)) % 86400
  end

  -- Lists, streamed ones too, and watches that a process has begun so far.
  local function read_by(seen)
    local families, out = seen:metrics(), {}
    for _, resource in ipairs { "v1/configmaps", "v1/secrets" } do
      local labels = { name = resource .. " in " .. ns }
      for _, family in ipairs { "reflector_lists_total", "reflector_list_duration_seconds_count",
        "reflector_watches_total" } do
        out[#out + 1] = ("%s %s %d"):format(resource, family, assert(exposition.value(families, family, labels)))
      end
    end
    return out
  end

  -- The keys that wait in the queue of a process, of all priorities.
  local function depth(seen)
    local keys = 0
    for _, sample in ipairs(seen:metrics().workqueue_depth.samples) do keys = keys + sample.value end
    return keys
  end

  it("goes on with the other one's caches and queue, not before the lease is over, and misses nothing", function()
    ns = cluster.namespace()
    put("a", 1)
    put("b", 1)
    put("c", 1)
    local first = start("first")
    wait_for_copies("a=1 first, b=1 first, c=1 first")
    local second, seen = start("second")
    second:wait_line("^synced", 30)
    put("a", 2)
    wait_for_copies("a=2 first, b=1 first, c=1 first")
    -- The standby has heard of all that, and has done nothing.
    seen:wait_value(3, "moonwatch_informer_objects", { name = "v1/secrets in " .. ns })
    seen:wait(function() return depth(seen) end, function(keys) return keys == 3 end, "a queue of 3 keys")
    seen:wait_value(0, "leader_election_master_status", { name = "copies" })
    local read = read_by(seen)

    first:kill("sigkill")
    local last = lease()
    assert.are.equal("first", last.holderIdentity)
    put("b", 2)
    put("d", 1)
    cluster.kubectl(("-n %s delete configmap c"):format(ns))
    wait_for_copies("a=2 second, b=2 second, d=1 second")

    local taken = lease()
    assert.are.same({ "second", 1 }, { taken.holderIdentity, taken.leaseTransitions })
    local waited = between(last.renewTime, taken.acquireTime)
    assert.is_true(waited >= LEASE and waited < LEASE + 30, "it led after " .. waited)
    assert.are.same(read, read_by(seen))
    assert.are.equal(1, exposition.value(seen:metrics(), "leader_election_master_status", { name = "copies" }))
    assert.is_nil(second.stdout:find("run\t%w+\tfalse"), second.stdout)
    cluster.stop(second)
  end)
end)
