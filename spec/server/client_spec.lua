-- What clients of scripts do, against an API server (see spec/support/cluster.lua).
local cluster = require "spec.support.cluster"
local cleanup = require "spec.support.cleanup"

-- Runs a script to its end. It has `ns`, a fresh namespace; config_map(name, data); same(wanted, got) by text.
local prelude = [[
  local kube = require "kube"
  local ns = "%s"
  local client = kube.client
  local function config_map(name, data)
    return { apiVersion = "v1", kind = "ConfigMap", metadata = { namespace = ns, name = name }, data = data }
  end
  local function same(wanted, got)
    if tostring(wanted) ~= tostring(got) then
      error(("wanted: %%s\ngot: %%s"):format(tostring(wanted), tostring(got)), 2)
    end
  end
  kube.sleep(0)
]]

local function play(source)
  local ns = cluster.namespace()
  local proc = cluster.start(prelude:format(ns) .. source)
  local code = proc:wait_exit(60)
  assert(code == 0, proc.stdout .. proc.stderr)
  return ns, proc
end

describe("a client of an API server", function()
  cluster.install()
  cleanup.install()

  it("creates, reads, updates and deletes, and knows a conflict", function()
    play [[
      local made = client:create(config_map("a", { n = "0" }))
      assert(made.metadata.uid and made.metadata.resourceVersion)
      same("already_exists", select(2, client:try_create(config_map("a"))).code)
      local key = ns .. "/a"
      local first = client:get("v1/configmaps", key)
      first.data.n = "1"
      local second = client:update(first)
      assert(second.metadata.resourceVersion ~= first.metadata.resourceVersion)
      local _, err = client:try_update(first)
      assert(kube.is_conflict(err) and err.reason == "Conflict" and err.retriable, err.code)
      local tries = 0
      kube.retry_on_conflict(function()
        tries = tries + 1
        local object = tries == 1 and first or client:get("v1/configmaps", key)
        object.data.n = "2"
        client:update(object)
      end)
      same("2 2", tries .. " " .. client:get("v1/configmaps", key).data.n)
      same("conflict", select(2, client:try_delete("v1/configmaps", key, { uid = "none" })).code)
      same("conflict", select(2, client:try_delete("v1/configmaps", key, { resource_version = "1" })).code)
      client:delete("v1/configmaps", key, { uid = made.metadata.uid, dry_run = true })
      client:delete_collection("v1/configmaps", { namespace = ns, all = true, dry_run = true })
      same("2", client:get("v1/configmaps", key).data.n)
      client:delete("v1/configmaps", key, { uid = made.metadata.uid, propagation = "Background", grace = 0 })
      assert(kube.is_not_found(select(2, client:try_get("v1/configmaps", key))))
      same("not_found", select(2, client:try_delete("v1/configmaps", key)).code)
    ]]
  end)

  it("patches in three ways, and the server checks fields when told to", function()
    play [[
      client:create(config_map("a", { x = "1", y = "2" }))
      local key = ns .. "/a"
      local merged = client:patch("v1/configmaps", key, { data = { x = kube.null, z = "3" } })
      same("nil 2 3", tostring(merged.data.x) .. " " .. merged.data.y .. " " .. merged.data.z)
      local replaced = client:patch("v1/configmaps", key, { { op = "replace", path = "/data/y", value = "9" } },
        { type = "json" })
      same("9", replaced.data.y)
      local _, failed = client:try_patch("v1/configmaps", key, { { op = "test", path = "/data/y", value = "0" } },
        { type = "json" })
      same("invalid", failed.code)
      local strategic = client:patch("v1/configmaps", key, { metadata = { labels = { a = "b" } } },
        { type = "strategic" })
      same("b", strategic.metadata.labels.a)
      local _, err = client:try_patch("v1/configmaps", key, { dta = {} }, { field_validation = "Strict" })
      assert(kube.is_invalid(err) and err.message:find('unknown field "dta"', 1, true), err.message)
      local dry = client:patch("v1/configmaps", key, { data = { dry = "run" } }, { dry_run = true })
      same("run nil", dry.data.dry .. " " .. tostring(client:get("v1/configmaps", key).data.dry))
    ]]
  end)

  it("applies as a manager of its fields, by force in a controller's session", function()
    play [[
      local verbs = require "kube._verbs"
      local session = verbs.session { field_manager = "web" }
      local key = ns .. "/a"
      session:apply(config_map("a", { x = "1", y = "2" }))
      same("2 nil", (function(o) return o.data.y .. " " .. tostring(o.data.z) end)(client:get("v1/configmaps", key)))
      local _, err = client:try_apply(config_map("a", { x = "other" }), { field_manager = "other" })
      assert(kube.is_conflict(err) and err.details.causes[1].reason == "FieldManagerConflict", err.message)
      client:apply(config_map("a", { x = "other" }), { field_manager = "other", force = true })
      same("web", session:apply(config_map("a", { x = "web" })).data.x)
      same("nil", client:get("v1/configmaps", key).data.y) -- given up, so it is gone
    ]]
  end)

  it("does not update from an informer that has metadata only", function()
    local ns = cluster.namespace()
    cluster.kubectl(("-n %s create configmap one --from-literal=a=1"):format(ns))
    local proc = cluster.start(prelude:format(ns) .. [[
      local informer = kube.informer("v1/configmaps", { namespace = ns, metadata_only = true })
      kube.wait_for_cache_sync(nil, informer)
      local object = kube.copy(informer:get_indexer():get(ns .. "/one"))
      object.metadata.labels = { a = "b" }
      local ok, err = pcall(client.update, client, object)
      assert(not ok and err:find("the object is not whole", 1, true) and err:find("metadata only", 1, true), err)
      same("1", client:get("v1/configmaps", ns .. "/one").data.a)
      print("done")
    ]])
    proc:wait_line("^done$", 30)
    cluster.stop(proc)
  end)

  it("lists in pages and by selectors, and deletes by selectors", function()
    local ns = cluster.namespace()
    cluster.configmaps(ns, 25)
    local proc = cluster.start(prelude:format(ns) .. [[
      local all, metadata = client:list("v1/configmaps", { namespace = ns, page_size = 10, field_selector =
        "metadata.name!=kube-root-ca.crt" })
      same("25 n-00001 n-00025 ConfigMap v1 nil", table.concat({ #all, all[1].metadata.name, all[25].metadata.name,
        all[25].kind, all[25].apiVersion, tostring(metadata.continue) }, " "))
      local some, more = client:list("v1/configmaps", { namespace = ns, limit = 10 })
      same(10, #some)
      same(more.remainingItemCount, #client:list("v1/configmaps",
        { namespace = ns, continue = more.continue, limit = 500 }))
      same(1, #client:list("v1/configmaps", { namespace = ns, field_selector = { ["metadata.name"] = "n-00007" } }))
      same(0, #client:list("v1/configmaps", { namespace = ns, label_selector = { none = "such" } }))
      local names = {}
      for object in client:each("v1/configmaps", { namespace = ns, page_size = 10 }) do
        names[#names + 1] = object.metadata.name
      end
      assert(#names >= 25 and names[25])
      client:delete_collection("v1/configmaps", { namespace = ns, field_selector = "metadata.name=n-00001" })
      same(24, #client:list("v1/configmaps", { namespace = ns, field_selector = "metadata.name!=kube-root-ca.crt" }))
      print("done")
    ]])
    assert(proc:wait_exit(60) == 0, proc.stdout .. proc.stderr)
  end)

  it("goes on in the state of now when the pages of a list have expired", function()
    local ns = cluster.namespace()
    cluster.configmaps(ns, 25)
    local proc = cluster.start(prelude:format(ns) .. [[
      local function wait_for(name)
        for _ = 1, 600 do
          if client:try_get("v1/configmaps", ns .. "/" .. name) then return end
          kube.sleep(0.1)
        end
        error("no " .. name)
      end
      local opts = { namespace = ns, page_size = 10, field_selector = "metadata.name!=kube-root-ca.crt" }
      local seen, count = {}, 0
      for object in client:each("v1/configmaps", opts) do
        local name = object.metadata.name
        assert(not seen[name], name .. " came twice")
        seen[name], count = true, count + 1
        if count == 5 then
          print("five")
          wait_for("z-go")
        end
      end
      assert(seen["z-go"] and seen["n-00025"], "the rest is that of now")
      same(27, count)
      print("done")
    ]])
    proc:wait_line("^five$", 30)
    cluster.kubectl(("-n %s create configmap y"):format(ns)) -- what is newest is never forgotten
    cluster.forget()
    cluster.kubectl(("-n %s create configmap z-go"):format(ns))
    proc:wait_line("^done$", 90)
    assert(proc:wait_exit(30) == 0, proc.stdout .. proc.stderr)
  end)

  it("writes status and scale, evicts, and reads custom resources by their kind", function()
    local ns = cluster.namespace()
    cluster.apply(cluster.pod(ns, "victim"))
    local proc = cluster.start(prelude:format(ns) .. [[
      local deployment = client:create { apiVersion = "apps/v1", kind = "Deployment",
        metadata = { namespace = ns, name = "web" },
        spec = { replicas = 0, selector = { matchLabels = { app = "web" } }, template = {
          metadata = { labels = { app = "web" } },
          spec = { containers = { { name = "main", image = "example.com/none:1" } } } } } }
      local scale = client:get("apps/v1/deployments", ns .. "/web", { subresource = "scale" })
      same("Scale", scale.kind)
      scale.spec.replicas = 1
      client:update(scale, { resource = "apps/v1/deployments", subresource = "scale" })
      deployment = client:get("apps/v1/deployments", ns .. "/web")
      same(1, deployment.spec.replicas)
      local status = client:patch("apps/v1/deployments", ns .. "/web", { status = { observedGeneration = 0 } },
        { subresource = "status" })
      same("web", status.metadata.name)
      client:create({ apiVersion = "policy/v1", kind = "Eviction", metadata = { namespace = ns, name = "victim" } },
        { resource = "v1/pods", subresource = "eviction" })
      same("not_found", select(2, client:try_get("v1/pods", ns .. "/victim")).code)
      client:delete("apps/v1/deployments", ns .. "/web", { propagation = "Background" })

      local group = "c" .. ns .. ".example.com"
      local function web(name)
        return { apiVersion = group .. "/v1", kind = "Web", metadata = { namespace = ns, name = name },
          spec = { n = 1 } }
      end
      assert(kube.is_no_match(select(2, client:try_create(web("early")))))
      client:create { apiVersion = "apiextensions.k8s.io/v1", kind = "CustomResourceDefinition",
        metadata = { name = "webs." .. group },
        spec = { group = group, scope = "Namespaced", names = { plural = "webs", singular = "web", kind = "Web" },
          versions = { { name = "v1", served = true, storage = true, subresources = { status = kube.object {} },
            schema = { openAPIV3Schema = { type = "object", ["x-kubernetes-preserve-unknown-fields"] = true } } } } } }
      local made
      for _ = 1, 300 do
        made = client:try_create(web("late"))
        if made then break end
        kube.sleep(0.1)
      end
      same("late", made.metadata.name)
      made.status = { ready = true }
      same("true", client:update_status(made).status.ready)
      same("true", client:get(group .. "/v1/webs", ns .. "/late").status.ready)
      client:delete("apiextensions.k8s.io/v1/customresourcedefinitions", "webs." .. group)
    ]])
    assert(proc:wait_exit(90) == 0, proc.stdout .. proc.stderr)
  end)
end)
