-- Factories, clients and waiting as a script sees them: real binary, real HTTP, leak check on.
local cleanup = require "spec.support.cleanup"
local rig = require "spec.support.script_rig"

-- Every request path of a server that read pods, sorted and without repetitions.
local function paths(server)
  local seen, list = {}, {}
  for _, request in ipairs(server.http.requests) do
    if not seen[request.path] then list[#list + 1] = request.path end
    seen[request.path] = true
  end
  table.sort(list)
  return list
end

describe("a factory", function()
  cleanup.install()

  it("has one informer per resource, whichever way it is asked for", function() -- row 82
    rig.run(rig.pods(), [[
      local factory = kube.shared_informer_factory {}
      local pods = factory:core():v1():pods():informer()
      assert(rawequal(pods, factory:core():v1():pods():informer()))
      assert(rawequal(pods, factory:for_resource("v1/pods"):informer()))
      local maps = factory:core():v1():config_maps():informer()
      assert(not rawequal(pods, maps))
      assert(rawequal(maps, factory:core():v1():configmaps():informer()))
      assert(not rawequal(pods, kube.shared_informer_factory {}:core():v1():pods():informer()))
    ]])
  end)

  it("may be started again and again; what is asked for later waits for the next start", function()
    local server = rig.pods { a = {} }
    rig.run(server, [[
      local stop = kube.stop_channel()
      local factory = kube.shared_informer_factory {}
      local pods = factory:core():v1():pods():informer()
      factory:start(stop)
      factory:start(stop)
      local ok, by_resource = factory:wait_for_cache_sync()
      assert(ok and by_resource["v1/pods"] == true)
      local lister = factory:for_resource("v1/services"):lister()
      ok, by_resource = factory:wait_for_cache_sync()
      assert(ok and by_resource["v1/services"] == nil, "only what was started is waited for")
      kube.sleep(0.05)
      same(0, lister:count())
      factory:start(stop)
      assert(factory:wait_for_cache_sync())
      same(1, lister:count())
      same(0, pods:stats().lists)
      stop:close()
    ]])
    assert.are.same({ "/api/v1/pods", "/api/v1/services" }, paths(server))
    assert.are.equal(2, server.count.stream)
  end)

  it("shares one watch and one store with a factory of equal options", function() -- row 82
    local server = rig.pods { a = {} }
    local proc = rig.start(server, [[
      local stop_one, stop_two = kube.stop_channel(), kube.stop_channel()
      local seen = { one = {}, two = {} }
      local function make(name)
        local factory = kube.shared_informer_factory { label_selector = "app=web" }
        local informer = factory:core():v1():pods():informer()
        informer:add_event_handler { on_add = function(pod)
          table.insert(seen[name], pod.metadata.name)
        end }
        return factory, informer
      end
      local factory_one, one = make "one"
      local factory_two, two = make "two"
      factory_one:start(stop_one)
      factory_two:start(stop_two)
      assert(kube.wait_for_cache_sync(nil, one, two))
      eventually(function() return #seen.one == 1 and #seen.two == 1 end)
      assert(rawequal(one:lister():get("default/a"), two:lister():get("default/a")))
      stop_one:close()
      factory_one:shutdown()
      assert(one:is_stopped() and not two:is_stopped())
      assert(not pcall(one.add_event_handler, one, {}))
      print("one is over")
      eventually(function() return #seen.two == 2 end)
      same({ "a" }, seen.one)
      same({ "a", "b" }, seen.two)
      stop_two:close()
      factory_two:shutdown()
    ]])
    proc:wait_line("^one is over")
    server:put("b")
    rig.finish(proc)
    assert.are.equal(1, server.count.stream)
    assert.are.equal(0, server.count.list)
  end)

  it("shares no more than it must: another selector or namespace is another watch", function() -- row 82
    local server = rig.pods { a = { app = "web" }, b = { app = "db" } }
    server:put("c", { app = "web", ns = "other" })
    rig.run(server, [[
      local stop = kube.stop_channel()
      local function keys(options)
        local factory = kube.shared_informer_factory(options)
        local lister = factory:for_resource("v1/pods"):lister()
        factory:start(stop)
        assert(factory:wait_for_cache_sync())
        local list = lister:list_keys()
        table.sort(list)
        return list
      end
      same({ "default/a", "default/b", "other/c" }, keys {})
      same({ "default/a", "other/c" }, keys { label_selector = "app=web" })
      same({ "default/a", "other/c" }, keys { label_selector = { app = "web" } })
      same({ "default/b" }, keys { tweak_list_options = function(o) o.label_selector = "app=db" end })
      same({ "other/c" }, keys { namespace = "other" })
      stop:close()
    ]])
    assert.are.same({ "/api/v1/namespaces/other/pods", "/api/v1/pods" }, paths(server))
    assert.are.equal(4, server.count.stream)
  end)

  it("uses the namespace of the command line, its own instead, or none where there is none", function()
    local server = rig.pods {}
    rig.run(server, [[
      local stop = kube.stop_channel()
      local function start(options, ...)
        local factory = kube.shared_informer_factory(options)
        for _, resource in ipairs { ... } do factory:for_resource(resource):informer() end
        factory:start(stop)
        assert(factory:wait_for_cache_sync())
      end
      start({}, "v1/pods", "v1/nodes", "rbac.authorization.k8s.io/v1/clusterroles", "apps/v1/deployments")
      start({ namespace = "own" }, "v1/pods", "storage.k8s.io/v1/storageclasses")
      start({ namespace = "" }, "v1/pods")
      stop:close()
    ]], { args = { "-n", "given" } })
    assert.are.same({ "/api/v1/namespaces/given/pods", "/api/v1/namespaces/own/pods", "/api/v1/nodes",
      "/api/v1/pods", "/apis/apps/v1/namespaces/given/deployments",
      "/apis/rbac.authorization.k8s.io/v1/clusterroles",
      "/apis/storage.k8s.io/v1/storageclasses" }, paths(server))
  end)

  it("sends field selectors and what a tweak leaves with every request", function() -- row 82
    local server = rig.pods { a = {} }
    rig.run(server, [[
      local stop = kube.stop_channel()
      local factory = kube.shared_informer_factory {
        streaming = false,
        field_selector = { ["spec.nodeName"] = "n1" },
        tweak_list_options = function(o) o.label_selector = "app=web" end,
      }
      local informer = factory:for_resource("v1/pods", { page_size = 7 }):informer()
      factory:start(stop)
      factory:wait_for_cache_sync()
      eventually(function() return informer:stats().watches == 1 end)
      stop:close()
    ]])
    assert.are.equal(2, #server.http.requests)
    for _, request in ipairs(server.http.requests) do
      assert.are.equal("spec.nodeName=n1", request.query.fieldSelector)
      assert.are.equal("app=web", request.query.labelSelector)
    end
    assert.are.equal("7", server.http.requests[1].query.limit)
  end)

  it("gives one resource a resync of its own", function() -- row 64
    rig.run(rig.pods { a = {} }, [[
      local stop = kube.stop_channel()
      local factory = kube.shared_informer_factory {
        resync = 3600, min_resync = 0.02, custom_resync = { ["v1/pods"] = 0.03 },
      }
      local count = { pods = 0, services = 0 }
      for name in pairs(count) do
        factory:for_resource("v1/" .. name):informer():add_event_handler {
          on_update = function() count[name] = count[name] + 1 end,
        }
      end
      factory:start(stop)
      eventually(function() return count.pods >= 2 end)
      same(0, count.services)
      stop:close()
    ]])
  end)

  it("waits for all at once and tells which did not sync", function() -- row 76
    local server = rig.pods { a = {} }
    local refuse = { status = 403, body = '{"kind":"Status","status":"Failure","code":403}' }
    local answer = server.http.script
    server.http.script = function(request, ...)
      if request.path:find("services") then return refuse end
      return answer(request, ...)
    end
    local _, log = rig.run(server, [[
      local stop = kube.stop_channel()
      local factory = kube.shared_informer_factory {}
      factory:core():v1():pods():informer()
      factory:core():v1():services():informer()
      factory:start(stop)
      local ok, by_resource = factory:wait_for_cache_sync(0.3)
      assert(not ok)
      same(true, by_resource["v1/pods"])
      same(false, by_resource["v1/services"])
      kube.background("stopper", function() kube.sleep(0.02) stop:close() end)
      ok, by_resource = factory:wait_for_cache_sync()
      assert(not ok and by_resource["v1/pods"] and not by_resource["v1/services"])
    ]])
    assert.truthy(log:find('"msg":"caches not synced","missing":"v1/services"', 1, true), log)
  end)

  it("shuts down when its informers have ended, and starts nothing afterwards", function()
    local server = rig.pods { a = {} }
    rig.run(server, [[
      local stop = kube.stop_channel()
      local factory = kube.shared_informer_factory {}
      factory:shutdown()
      factory = kube.shared_informer_factory {}
      local informer = factory:core():v1():pods():informer()
      local handled = false
      informer:add_event_handler { on_add = function() kube.sleep(0.05) handled = true end }
      factory:start(stop)
      factory:wait_for_cache_sync()
      kube.background("stopper", function() kube.sleep(0.01) stop:close() end)
      factory:shutdown()
      assert(informer:is_stopped() and handled)
      factory:shutdown()
      factory:for_resource("v1/services"):informer()
      factory:start(kube.stop_channel())
      kube.sleep(0.05)
    ]])
    assert.are.same({ "/api/v1/pods" }, paths(server))
    assert.are.equal(1, server.count.stream)
  end)

  it("stops each informer with the channel it was started with", function()
    local server = rig.pods { a = {} }
    rig.run(server, [[
      local first, second = kube.stop_channel(), kube.stop_channel()
      local factory = kube.shared_informer_factory {}
      local pods = factory:for_resource("v1/pods"):informer()
      factory:start(first)
      local services = factory:for_resource("v1/services"):informer()
      factory:start(second)
      assert(factory:wait_for_cache_sync())
      first:close()
      assert(pods:is_stopped() and not services:is_stopped())
      second:close()
      assert(services:is_stopped())
    ]])
  end)
end)

describe("kube", function()
  cleanup.install()

  it("has informers without a factory", function() -- row 82
    local server = rig.pods { a = { node = "n1" } }
    rig.run(server, [[
      local stop = kube.stop_channel()
      local seen = 0
      local indexer, controller = kube.new_informer {
        resource = "v1/pods",
        handler = { on_add = function() seen = seen + 1 end },
        indexers = { by_node = { path = "spec.nodeName" } },
      }
      kube.background("run", function() controller:run(stop) end)
      assert(kube.wait_for_cache_sync(stop, controller))
      eventually(function() return seen == 1 end)
      same({ "default/a" }, indexer:index_keys("by_node", "n1"))
      same("101", controller:last_sync_resource_version())
      assert(not pcall(kube.new_informer, {}))
      stop:close()
    ]])
  end)

  it("has informers that start by themselves", function()
    local server = rig.pods { a = {}, b = { app = "db" } }
    local proc = rig.start(server, [[
      kube.informer("v1/pods"):add_event_handler { on_add = function(pod) print(kube.key(pod)) end }
      kube.informer("v1/pods", { label_selector = "app=db" }):add_event_handler {
        on_add = function(pod) print("db", kube.key(pod)) end,
      }
    ]])
    proc:wait_line("^default/a")
    proc:wait_line("^default/b")
    proc:wait_line("^db\tdefault/b")
    rig.stop(proc)
    assert.are.equal(2, server.count.stream)
  end)

  it("waits for informers, registrations and functions, until a stop channel closes", function() -- row 76
    local proc = rig.start(rig.pods { a = {} }, [[
      local stop = kube.stop_channel()
      local informer = kube.informer("v1/pods")
      local registration = informer:add_event_handler {}
      local asked = 0
      assert(kube.wait_for_cache_sync(nil))
      assert(kube.wait_for_cache_sync(stop, informer, registration, function()
        asked = asked + 1
        return true
      end))
      assert(asked > 0)
      kube.background("stopper", function() kube.sleep(0.02) stop:close() end)
      assert(not kube.wait_for_cache_sync(stop, informer, function() return false end))
      assert(kube.wait_for_cache_sync(stop, informer), "what is synced is synced, stopped or not")
      print("over")
    ]])
    proc:wait_line("^over")
    rig.stop(proc)
  end)

  it("has clients for other servers", function()
    local here, there = rig.pods { here = {} }, rig.pods { there = {} }
    rig.run(here, ([[
      local stop = kube.stop_channel()
      local function keys(client)
        local factory = kube.shared_informer_factory { client = client }
        local lister = factory:core():v1():pods():lister()
        factory:start(stop)
        factory:wait_for_cache_sync()
        return lister:list_keys()
      end
      same({ "default/here" }, keys(nil))
      same({ "default/here" }, keys(kube.new_client()))
      same({ "default/there" }, keys(kube.new_client { kubeconfig = %q, context = "c" }))
      stop:close()
    ]]):format(rig.kubeconfig(there:url())))
    assert.are.equal(1, here.count.stream)
    assert.are.equal(1, there.count.stream)
  end)
end)
