-- The classic client-go programs, in Lua, against an API server (see spec/support/cluster.lua).
local cluster = require "spec.support.cluster"
local cleanup = require "spec.support.cleanup"

local start, stop = cluster.start, cluster.stop

describe("against an API server", function()
  cluster.install()
  cleanup.install()

  it("the services demo sees a service come, change and go", function()
    local ns = cluster.namespace()
    local proc = start("examples/services.lua")
    proc:wait_line("^added\tdefault/kubernetes\t", 20)
    cluster.kubectl(("-n %s create service clusterip web --tcp=80:80"):format(ns))
    proc:wait_line(("^added\t%s/web\t"):format(ns), 10)
    cluster.kubectl(("-n %s label service web tier=front"):format(ns))
    proc:wait_line(("^updated\t%s/web\tClusterIP"):format(ns), 10)
    cluster.kubectl(("-n %s delete service web"):format(ns))
    proc:wait_line(("^deleted\t%s/web"):format(ns), 10)
    stop(proc)
  end)

  it("a factory with a resync period hands every object out again", function()
    local ns = cluster.namespace()
    cluster.kubectl(("-n %s create configmap one"):format(ns))
    local proc = start(([[
      local kube = require "kube"
      local factory = kube.shared_informer_factory { resync = 1, namespace = "%s" }
      local informer = factory:core():v1():config_maps():informer()
      informer:add_event_handler {
        on_update = function(old, new)
          if old.metadata.resourceVersion == new.metadata.resourceVersion then print("resync", kube.key(new)) end
        end,
      }
      informer:run(kube.stop_channel())
    ]]):format(ns))
    proc:wait_line(("^resync\t%s/one"):format(ns), 15)
    proc:wait_line(("^resync\t%s/one"):format(ns), 15)
    stop(proc)
  end)

  it("custom_resync gives one resource a period of its own", function()
    local ns = cluster.namespace()
    cluster.kubectl(("-n %s create configmap one"):format(ns))
    cluster.kubectl(("-n %s create secret generic two"):format(ns))
    local proc = start(([[
      local kube = require "kube"
      local factory = kube.shared_informer_factory {
        resync = 3600, namespace = "%s", custom_resync = { ["v1/configmaps"] = 1 },
      }
      local function handler(name)
        return { on_update = function(_, new) print(name, kube.key(new)) end }
      end
      factory:core():v1():config_maps():informer():add_event_handler(handler "configmap")
      factory:core():v1():secrets():informer():add_event_handler(handler "secret")
      factory:start()
      factory:wait_for_cache_sync()
      kube.sleep(3)
      print("over")
    ]]):format(ns))
    proc:wait_line("^over", 20)
    assert.is_truthy(proc.stdout:find("configmap\t" .. ns .. "/one", 1, true))
    assert.is_nil(proc.stdout:find("secret\t", 1, true))
    stop(proc)
  end)

  it("the pods demo waits for its cache and reads from the lister", function()
    local ns = cluster.namespace()
    cluster.apply(cluster.pod(ns, "a", { app = "web" }))
    cluster.apply(cluster.pod(ns, "b"))
    local proc = start("examples/pods.lua", { args = { "-n", ns } })
    proc:wait_line("^2 pods in the cache", 20)
    proc:wait_line(("^labelled\t%s/a\tweb"):format(ns), 5)
    cluster.apply(cluster.pod(ns, "c"))
    proc:wait_line(("^new pod\t%s/c"):format(ns), 10)
    cluster.kubectl(("-n %s delete pod c --grace-period=0 --force"):format(ns))
    proc:wait_line(("^gone\t%s/c"):format(ns), 10)
    stop(proc)
  end)

  it("pods are counted per node by an index in C", function()
    local ns = cluster.namespace()
    for _, name in ipairs { "a", "b", "c" } do
      local pod = cluster.pod(ns, name):gsub("spec:\n", "spec:\n  nodeName: n-" .. (name == "c" and 2 or 1) .. "\n", 1)
      cluster.apply(pod)
    end
    local proc = start("examples/pods_per_node.lua", { args = { "-n", ns } })
    proc:wait_line("^n%-1\t2", 20)
    proc:wait_line("^n%-2\t1", 20)
    cluster.kubectl(("-n %s delete pod a --grace-period=0 --force"):format(ns))
    proc:wait_line("^n%-1\t1", 10)
    stop(proc)
  end)

  it("a factory filtered by labels or fields sees only what matches", function()
    local ns = cluster.namespace()
    cluster.apply(cluster.pod(ns, "match", { app = "web" }))
    cluster.apply(cluster.pod(ns, "other", { app = "db" }))
    local proc = start(([[
      local kube = require "kube"
      local function keys(options)
        options.namespace = "%s"
        local factory = kube.shared_informer_factory(options)
        local lister = factory:core():v1():pods():lister()
        factory:start()
        assert(factory:wait_for_cache_sync(10))
        return table.concat(lister:list_keys(), ",")
      end
      print("label", keys { label_selector = "app=web" })
      print("field", keys { field_selector = "metadata.name=other" })
      print("tweak", keys { tweak_list_options = function(o) o.label_selector = "app in (db)" end })
    ]]):format(ns))
    proc:wait_line(("^label\t%s/match$"):format(ns), 20)
    proc:wait_line(("^field\t%s/other$"):format(ns), 20)
    proc:wait_line(("^tweak\t%s/other$"):format(ns), 20)
    stop(proc)
  end)

  it("an object that leaves the selector is deleted from the cache", function()
    local ns = cluster.namespace()
    cluster.apply(cluster.pod(ns, "moving", { app = "web" }))
    local proc = start(([[
      local kube = require "kube"
      local factory = kube.shared_informer_factory { namespace = "%s", label_selector = { app = "web" } }
      factory:core():v1():pods():informer():add_event_handler {
        on_add = function(pod) print("add", kube.key(pod)) end,
        on_delete = function(pod, stale) print("delete", kube.key(pod), stale) end,
      }
      factory:start()
    ]]):format(ns))
    proc:wait_line("^add\t", 20)
    cluster.kubectl(("-n %s label pod moving app=db --overwrite"):format(ns))
    proc:wait_line(("^delete\t%s/moving\tfalse"):format(ns), 10)
    stop(proc)
  end)

  it("a custom resource is watched before its definition exists", function()
    local ns = cluster.namespace()
    local proc = start("examples/custom_resource.lua")
    proc:wait_stderr("is the CustomResourceDefinition installed", 20)
    cluster.apply [[
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: webs.example.com }
spec:
  group: example.com
  scope: Namespaced
  names: { plural: webs, singular: web, kind: Web }
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: { type: object, properties: { image: { type: string } } }
]]
    cleanup.later(function() cluster.kubectl("delete crd webs.example.com --wait=false") end)
    cluster.kubectl("wait --for=condition=Established crd/webs.example.com --timeout=20s")
    local web = "apiVersion: example.com/v1\nkind: Web\nmetadata: { name: w, namespace: %s }\nspec: { image: %q }\n"
    cluster.apply(web:format(ns, "one"))
    proc:wait_line(("^web\t%s/w\tone"):format(ns), 60)
    cluster.apply(web:format(ns, "two"))
    proc:wait_line(("^changed\t%s/w\tone\ttwo"):format(ns), 10)
    stop(proc)
  end)

  it("a metadata-only informer holds no spec", function()
    local ns = cluster.namespace()
    cluster.apply(cluster.pod(ns, "a", { app = "web" }))
    local proc = start(([[
      local kube = require "kube"
      local factory = kube.shared_informer_factory { namespace = "%s", metadata_only = true }
      local lister = factory:core():v1():pods():lister()
      factory:start()
      factory:wait_for_cache_sync(10)
      local pod = lister:get("%s/a")
      print(pod.kind, pod.metadata.labels.app, tostring(pod.spec))
    ]]):format(ns, ns))
    proc:wait_line("^PartialObjectMetadata\tweb\tnil", 20)
    stop(proc)
  end)

  it("a standalone informer gives an indexer and a controller", function()
    local ns = cluster.namespace()
    cluster.kubectl(("-n %s create configmap one --from-literal=a=b"):format(ns))
    local proc = start(([[
      local kube = require "kube"
      local stop = kube.stop_channel()
      local indexer, controller = kube.new_informer {
        resource = "v1/configmaps", namespace = "%s",
        handler = { on_add = function(cm) print("add", kube.key(cm)) end },
        indexers = { by_a = { path = "data.a" } },
      }
      kube.background("controller", function() controller:run(stop) print("stopped") end)
      kube.wait_for_cache_sync(stop, controller)
      print("found", table.concat(indexer:index_keys("by_a", "b"), ","), controller:has_synced())
      stop:close()
    ]]):format(ns))
    proc:wait_line(("^found\t%s/one\ttrue"):format(ns), 20)
    proc:wait_line("^stopped", 10)
    assert.are.equal(0, proc:wait_exit(15), proc.stderr)
  end)
end)
