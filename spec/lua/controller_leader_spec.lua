-- A controller under leader election: two real processes on one sandbox.
local cjson = require "cjson"
local cleanup = require "spec.support.cleanup"
local run = require "spec.support.run"
local sandbox = require "spec.support.sandbox"

-- Copies each ConfigMap with data.v into a Secret, and signs it.
local script = [[
  local kube = require "kube"
  local ID = "%s"
  local leader = kube.leader_election { name = "copies", namespace = "default", identity = ID, lease_duration = 2,
    renew_deadline = 1.5, retry_period = 0.2 }
  local controller = kube.controller {
    name = "copies", resource = "v1/configmaps", reads = { "v1/secrets" }, predicate = { path = "data.v" },
    reconcile = function(ctx, object)
      print("run", ctx.name, leader:is_leading(), object ~= nil)
      if not object then return end
      ctx.client:apply { apiVersion = "v1", kind = "Secret", metadata = { name = ctx.name, namespace = ctx.namespace,
        labels = { copy = "yes", by = ID } } }
    end,
  }
  local ready = -1
  while true do
    local now = controller:has_synced() and not leader:is_leading() and controller:stats().ready or -1
    if now ~= ready then
      ready = now
      print("ready", ready)
    end
    kube.sleep(0.01)
  end
]]

describe("a controller that does not lead", function()
  cleanup.install()

  local box
  local function start(id)
    local proc = run.start_script(script:format(id), { kubeconfig = box.kubeconfig })
    cleanup.later(function() proc:kill("sigkill") end)
    return proc
  end
  local function create(name)
    box:ask("POST", "/api/v1/namespaces/default/configmaps",
      ('{"metadata":{"name":"%s"},"data":{"v":"1"}}'):format(name))
  end
  -- Who wrote each of the Secrets: "a:one b:two".
  local function writers()
    local list = cjson.decode(box:ask("GET", "/api/v1/namespaces/default/secrets?labelSelector=copy"))
    local out = {}
    for i, item in ipairs(list.items) do out[i] = item.metadata.name .. ":" .. item.metadata.labels.by end
    table.sort(out)
    return table.concat(out, " ")
  end
  local function requests(query) return cjson.decode(box:ask("GET", "/sandbox/v1/requests?" .. query)) end

  for _, signal in ipairs { "sigkill", "sigterm" } do
    it("has its cache and its queue full, writes nothing, and goes on from there when it leads", function()
      box = sandbox.start { args = { "--plain-http" } }
      cleanup.later(function() box:stop() end)
      create("one")
      local first = start("first")
      first:wait_line("^run\tone\ttrue\ttrue", 10)
      local second = start("second")
      second:wait_line("^ready\t1$", 10)
      create("two")
      create("three")
      second:wait_line("^ready\t3$", 10)
      first:wait_line("^run\ttwo", 10)
      first:wait_line("^run\tthree", 10)
      -- One that is gone is one key more, and one that was queued before is none.
      box:ask("DELETE", "/api/v1/namespaces/default/configmaps/one")
      first:wait_line("^run\tone\ttrue\tfalse", 10)
      assert.are.equal("one:first three:first two:first", writers())
      local before = requests("resource=configmaps").last
      first:kill(signal)
      for _ = 1, 3 do assert.is_truthy(second:wait_line("^run", 10):find("^run\t%l+\ttrue")) end
      local sent
      for _ = 1, 200 do
        sent = writers()
        if sent == "one:first three:second two:second" then break end
        run.sh("sleep 0.02")
      end
      assert.are.equal("one:first three:second two:second", sent)
      assert.are.same({}, requests("resource=configmaps&since=" .. before).items) -- no list, no watch
      assert.is_nil(second.stderr:find('"level":"error"', 1, true), second.stderr)
      second:kill("sigterm")
      assert.are.equal(0, second:wait_exit(10), second.stderr)
    end)
  end
end)
