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

  it("has informers of its own, whatever the options of another", function() -- row 82
    local server = rig.pods { a = {} }
    local proc = rig.start(server, [[
      local stop_one, stop_two = kube.stop_channel(), kube.stop_channel()
      local seen = { one = {}, two = {} }
      local function make(name)
        local factory = kube.shared_informer_factory { label_selector = "app=web" }
        local informer = factory:core():v1():pods():informer()
        informer:add_indexers { by_name = function(pod) return { name .. pod.metadata.name } end }
        informer:set_transform(function(pod) pod.metadata.labels.by = name return pod end)
        informer:add_event_handler { on_add = function(pod)
          table.insert(seen[name], pod.metadata.name .. pod.metadata.labels.by)
        end }
        return factory, informer
      end
      local factory_one, one = make "one"
      local factory_two, two = make "two"
      factory_one:start(stop_one)
      assert(kube.wait_for_cache_sync(nil, one))
      assert(not two:has_synced() and two:lister():count() == 0)
      factory_two:start(stop_two)
      assert(kube.wait_for_cache_sync(nil, one, two))
      same({ "default/a" }, one:get_indexer():index_keys("by_name", "onea"))
      same({}, two:get_indexer():index_keys("by_name", "onea"))
      eventually(function() return #seen.one == 1 and #seen.two == 1 end)
      stop_one:close()
      factory_one:shutdown()
      assert(one:is_stopped() and not two:is_stopped())
      assert(not pcall(one.add_event_handler, one, {}))
      print("one is over")
      eventually(function() return #seen.two == 2 end)
      same({ "aone" }, seen.one)
      same({ "atwo", "btwo" }, seen.two)
      stop_two:close()
      factory_two:shutdown()
    ]])
    proc:wait_line("^one is over")
    server:put("b")
    rig.finish(proc)
    assert.are.equal(2, server.count.stream)
    assert.are.equal(0, server.count.list)
  end)

  it("can start after another of equal options has ended", function()
    local server = rig.pods { a = {} }
    rig.run(server, [[
      local first, second = kube.shared_informer_factory {}, kube.shared_informer_factory {}
      first:core():v1():pods():informer()
      local informer = second:core():v1():pods():informer()
      local stop = kube.stop_channel()
      first:start(stop)
      first:wait_for_cache_sync()
      stop:close()
      first:shutdown()
      stop = kube.stop_channel()
      second:start(stop)
      assert(second:wait_for_cache_sync() and not informer:is_stopped())
      same({ "default/a" }, informer:get_store():list_keys())
      stop:close()
    ]])
    assert.are.equal(2, server.count.stream)
  end)

  it("reads what its selector and namespace choose", function() -- row 82
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
      same({ "default/a", "other/c" }, keys { label_selector = { matchLabels = { app = "web" } } })
      same({ "default/a", "other/c" }, keys { label_selector = " app = web " })
      same({ "default/b" }, keys { tweak_list_options = function(o) o.label_selector = "app=db" end })
      same({ "other/c" }, keys { namespace = "other" })
      stop:close()
    ]])
    assert.are.same({ "/api/v1/namespaces/other/pods", "/api/v1/pods" }, paths(server))
    assert.are.equal(7, server.count.stream)
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

  it("has the group of the API server itself, as client-go's has", function()
    local server = rig.pods {}
    rig.run(server, [[
      local stop = kube.stop_channel()
      local factory = kube.shared_informer_factory {}
      factory:internal():v1alpha1():storage_versions():informer()
      factory:start(stop)
      assert(factory:wait_for_cache_sync())
      stop:close()
    ]], { args = { "-n", "given" } })
    assert.are.same({ "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions" }, paths(server))
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

  it("asks for what a tweak left when it was made, with a transform set later, too", function()
    local server = rig.pods { a = {} }
    rig.run(server, [[
      local stop, runs = kube.stop_channel(), 0
      local factory = kube.shared_informer_factory { streaming = false, tweak_list_options = function(o)
        runs = runs + 1
        o.label_selector, o.shard_selector = "run in (" .. runs .. ")", "shard" .. runs
      end }
      local informer = factory:for_resource("v1/pods"):informer()
      informer:set_transform(function(pod) return pod end)
      informer:set_transform(function(pod) return pod end)
      same(1, runs)
      factory:for_resource("v1/services"):informer()
      same(2, runs)
      factory:start(stop)
      eventually(function() return informer:stats().watches == 1 end)
      stop:close()
    ]])
    for _, request in ipairs(server.http.requests) do
      local run = request.path == "/api/v1/pods" and "1" or "2"
      assert.are.equal("run in (" .. run .. ")", request.query.labelSelector)
      assert.are.equal("shard" .. run, request.query.shardSelector)
    end
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

  it("resyncs as the options of one resource say, whatever it has by resource", function()
    rig.run(rig.pods { a = {} }, [[
      local stop = kube.stop_channel()
      local factory = kube.shared_informer_factory {
        resync = 3600, min_resync = 0.02, custom_resync = { ["v1/pods"] = 3600 },
      }
      local count = 0
      factory:for_resource("v1/pods", { resync = 0.03 }):informer():add_event_handler {
        on_update = function() count = count + 1 end,
      }
      factory:start(stop)
      eventually(function() return count >= 2 end)
      stop:close()
    ]])
  end)

  it("takes options for one resource from the first who asks for it, and from nobody else", function()
    rig.run(rig.pods { a = {} }, [[
      local factory = kube.shared_informer_factory {}
      local pair = factory:for_resource("v1/pods", { namespace = "default" })
      local informer = pair:informer()
      assert(rawequal(informer, pair:informer()))
      assert(rawequal(informer, factory:for_resource("v1/pods"):informer()))
      local late = factory:for_resource("v1/services", { namespace = "x" })
      factory:for_resource("v1/services"):informer()
      for _, call in ipairs {
        function() factory:for_resource("v1/pods", { namespace = "default" }) end,
        function() late:informer() end,
      } do
        local ok, message = pcall(call)
        assert(not ok and message:find("script.lua:%d+: the informer of v1/%l+ exists in this factory"),
          message)
      end
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
    assert.truthy(log:find('"msg":"caches not synced","at":"[^"]+script%.lua:%d+","missing":"v1/services"'), log)
  end)

  it("waits until a stop channel closes, a time is over, or both", function()
    local server = rig.pods()
    server:fail("stream", { chunks = {}, open = true })
    rig.run(server, [[
      local stop, other = kube.stop_channel(), kube.stop_channel()
      local factory = kube.shared_informer_factory {}
      factory:core():v1():pods():informer()
      factory:start(stop)
      assert(not factory:wait_for_cache_sync(0.02))
      assert(not factory:wait_for_cache_sync(stop, 0.02))
      assert(not factory:wait_for_cache_sync(nil, 0.02))
      kube.background("closer", function() kube.sleep(0.02) other:close() end)
      assert(not factory:wait_for_cache_sync(other))
      for _, bad in ipairs { { "5" }, { {} }, { nil, "5" }, { nil, -1 }, { 5, 5 }, { nil, 0 / 0 } } do
        local ok, message = pcall(factory.wait_for_cache_sync, factory, bad[1], bad[2])
        assert(not ok and message:find("script.lua:%d+: factory:wait_for_cache_sync%(stop, timeout%)"),
          message)
        assert(type(bad[2]) ~= "string" or message:find("must be a number of seconds, not a string", 1, true), message)
      end
      stop:close()
    ]])
  end)

  it("that was never started is told of, by those who wait for it and at the end", function()
    local _, log = rig.run(rig.pods { a = {} }, [[
      local factory = kube.shared_informer_factory {}
      local pods = factory:core():v1():pods():informer()
      factory:core():v1():services():informer()
      assert(factory:wait_for_cache_sync())
      assert(factory:wait_for_cache_sync())
      local stop = kube.stop_channel()
      kube.background("stopper", function() kube.sleep(0.02) stop:close() end)
      assert(not kube.wait_for_cache_sync(stop, pods))
    ]])
    local _, warned = log:gsub('"the informer has not been started; call factory:start%(stop%)"', "")
    assert.are.equal(2, warned, log)
    assert.truthy(log:find('"at":"[^"]*script.lua:23","resource":"v1/pods"'), log)
    assert.truthy(log:find('"nothing left to run"', 1, true), log)
    assert.truthy(log:find('never started; call factory:start%(stop%)","count":2,"informers":' ..
      '"v1/pods %([^"]*script.lua:21%), v1/services %([^"]*script.lua:22%)"'), log)
  end)

  it("that was started, or whose run was ended from outside, is not told of", function()
    local server = rig.pods { a = {} }
    local _, log = rig.run(server, [[
      local stop = kube.stop_channel()
      local factory = kube.shared_informer_factory {}
      local informer = factory:core():v1():pods():informer()
      kube.background("run", function() informer:run(stop) end)
      assert(kube.wait_for_cache_sync(stop, informer, factory:core():v1():pods()))
      stop:close()
    ]])
    assert.is_nil(log:find("started", 1, true), log)
    local proc = rig.start(server, [[
      kube.shared_informer_factory {}:core():v1():pods():informer()
      print("here")
      kube.stop_channel():wait()
    ]])
    proc:wait_line("^here")
    _, log = rig.stop(proc)
    assert.is_nil(log:find("started", 1, true), log)
  end)

  it("says, once, that it starts nothing any more, and those who wait are told to make another", function()
    local _, log = rig.run(rig.pods { a = {} }, [[
      local factory, stop = kube.shared_informer_factory {}, kube.stop_channel()
      factory:shutdown()
      local pods = factory:core():v1():pods():informer()
      factory:start(stop)
      factory:start(stop)
      assert(factory:wait_for_cache_sync(stop))
      kube.background("stopper", function() kube.sleep(0.02) stop:close() end)
      assert(not kube.wait_for_cache_sync(stop, pods))
    ]])
    local _, told = log:gsub('"this factory has been shut down and starts nothing; make another one"', "")
    assert.are.equal(1, told, log)
    assert.truthy(log:find('make another one","at":"[^"]*script.lua:23"'), log)
    assert.truthy(log:find('"the informer has not been started, and its factory has been shut down; make another one"',
      1, true), log)
    assert.is_nil(log:find("call factory:start", 1, true), log)
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

  it("has informers whose indexes may name the one that is always there, as what it is", function()
    rig.run(rig.pods { a = {} }, [[
      local stop = kube.stop_channel()
      local given = { namespace = { path = "metadata.namespace" }, by_node = { path = "spec.nodeName" } }
      local indexer, controller = kube.new_informer { resource = "v1/pods", indexers = given }
      kube.background("run", function() controller:run(stop) end)
      assert(kube.wait_for_cache_sync(stop, controller))
      same({ "default/a" }, indexer:index_keys("namespace", "default"))
      same(2, #indexer:get_indexers())
      same("metadata.namespace", given.namespace.path)
      for _, other in ipairs { { path = "metadata.name" }, { label = "namespace" }, function() return {} end,
        { path = "metadata.namespace", label = "a" } } do
        local ok, err = pcall(kube.new_informer, { resource = "v1/pods", indexers = { namespace = other } })
        assert(not ok and tostring(err):find("the index \"namespace\" is always there", 1, true)
          or other.label == "a" and tostring(err):find("index 'namespace' must be a function or one of", 1, true), err)
      end
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

  it("does not wait for what was stopped before it had synced", function()
    local server = rig.pods()
    server:fail("stream", { chunks = {}, open = true })
    rig.run(server, [[
      local stop = kube.stop_channel()
      local factory = kube.shared_informer_factory {}
      local informer = factory:core():v1():pods():informer()
      local registration = informer:add_event_handler {}
      factory:start(stop)
      kube.background("stopper", function() kube.sleep(0.02) stop:close() end)
      assert(not kube.wait_for_cache_sync(nil, informer))
      assert(not kube.wait_for_cache_sync(nil, registration))
    ]])
  end)

  it("refuses to wait for what cannot sync", function()
    rig.run(rig.pods(), [[
      local stop = kube.stop_channel()
      local informer = kube.shared_informer_factory {}:core():v1():pods():informer()
      local function refused(pattern, ...)
        local ok, message = pcall(kube.wait_for_cache_sync, ...)
        assert(not ok and message:find("script.lua:%d+: wait_for_cache_sync"), message)
        assert(message:find(pattern, 1, true), message)
      end
      refused("the first argument must be what kube.stop_channel() returned, or nil, not a table; what is waited for "
        .. "comes behind it", informer)
      refused("argument 2 is a factory: write factory:wait_for_cache_sync(stop)", stop, kube.shared_informer_factory {})
      refused("the first argument", true)
      refused("argument 2 must be an informer, a registration or a function, not a nil", stop, nil)
      refused("argument 3", stop, function() return true end, nil, informer)
      refused("argument 2", stop, informer:lister())
      refused("argument 2", stop, {})
      refused("argument 2 is a method without its informer", stop, informer.has_synced)
    ]])
  end)

  it("says what a wait gave up, and what would wait for itself", function()
    local out, err = rig.run(rig.pods { a = {} }, [[
      local stop, over = kube.stop_channel(), kube.stop_channel()
      local factory = kube.shared_informer_factory()
      local informer = factory:core():v1():pods():informer()
      local registration
      registration = informer:add_event_handler { on_add = function()
        for _, wait in ipairs { function() factory:shutdown() end,
          function() kube.wait_for_cache_sync(nil, informer, registration) end } do
          print((tostring(select(2, pcall(wait))):match("script.lua:%d+: (.-);")))
        end
        over:close()
      end }
      factory:start(stop)
      over:wait()
      assert(kube.wait_for_cache_sync(nil, informer, registration))
      stop:close()
      print(kube.wait_for_cache_sync(stop, informer, function() return false end))
      factory:shutdown()
    ]])
    assert.are.equal("factory:shutdown() waits for itself in a handler of one of its informers\n"
      .. "wait_for_cache_sync(stop, ...): argument 3 is the handler that waits here, which has synced when it has "
      .. "returned\nfalse\n", out)
    assert.matches('"info","msg":"caches not synced","at":"[^"]+script%.lua:%d+","missing":"argument 3"', err)
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
    assert.are.equal(2, here.count.stream)
    assert.are.equal(1, there.count.stream)
  end)

  it("has clients for other contexts of the file that the process was given", function()
    local here, there = rig.pods { here = {} }, rig.pods { there = {} }
    local path = rig.kubeconfig(here:url())
    local file = assert(io.open(path))
    local text = file:read("*a"):gsub('"contexts":%[', '%0{"name":"d","context":{"cluster":"t","user":"u"}},')
      :gsub('"clusters":%[', '%0{"name":"t","cluster":{"server":"' .. there:url() .. '"}},')
    file:close()
    file = assert(io.open(path, "w"))
    file:write(text)
    file:close()
    rig.run(here, [[
      local stop = kube.stop_channel()
      local client = kube.new_client { context = "d" }
      same("d", client:context())
      local factory = kube.shared_informer_factory { client = client }
      local lister = factory:core():v1():pods():lister()
      factory:start(stop)
      factory:wait_for_cache_sync()
      same({ "default/there" }, lister:list_keys())
      stop:close()
    ]], { kubeconfig = path })
  end)
end)
