-- From kinds to resources.
local cleanup = require "spec.support.cleanup"
local rig = require "spec.support.client_rig"

local webs = '{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"example.com/v1","resources":['
  .. '{"name":"webs","singularName":"web","namespaced":true,"kind":"Web","verbs":["get"]},'
  .. '{"name":"webs/status","singularName":"","namespaced":true,"kind":"Web","verbs":["get"]},'
  .. '{"name":"webs/scale","singularName":"","namespaced":true,"kind":"Scale","verbs":["get"]},'
  .. '{"name":"zones","singularName":"zone","namespaced":false,"kind":"Zone","verbs":["get"]}%s]}'

local not_found = rig.status(404, "NotFound", "the server could not find the requested resource")

-- Serves example.com/v1 and nothing else, but echoes what is created.
local function example(request)
  if request.path == "/apis/example.com/v1" then return { body = webs:format("") } end
  if request.method == "POST" then return { body = request.body } end
  if request.path == "/apis/example.com/v1/zones/z" then
    return rig.status(404, "NotFound", "there is no such zone", ',"details":{"name":"z","kind":"zones"}')
  end
  return not_found
end

describe("a kind", function()
  cleanup.install()

  it("of Kubernetes itself is known without a question", function()
    local server = rig.serve(rig.echo)
    rig.run(server, [[
      local function is(resource, api_version, kind, namespaced)
        local found, scope = verbs.resource_of(nil, { apiVersion = api_version, kind = kind })
        same({ resource, tostring(namespaced) }, { found, tostring(scope) })
      end
      is("v1/pods", "v1", "Pod", true)
      is("v1/endpoints", "v1", "Endpoints", true)
      is("v1/namespaces", "v1", "Namespace", false)
      is("v1/componentstatuses", "v1", "ComponentStatus", false)
      is("apps/v1/statefulsets", "apps/v1", "StatefulSet", true)
      is("networking.k8s.io/v1/networkpolicies", "networking.k8s.io/v1", "NetworkPolicy", true)
      is("networking.k8s.io/v1/ingressclasses", "networking.k8s.io/v1", "IngressClass", false)
      is("networking.k8s.io/v1/servicecidrs", "networking.k8s.io/v1", "ServiceCIDR", false)
      is("storage.k8s.io/v1/csistoragecapacities", "storage.k8s.io/v1", "CSIStorageCapacity", true)
      is("coordination.k8s.io/v1/leases", "coordination.k8s.io/v1", "Lease", true)
      is("rbac.authorization.k8s.io/v1/clusterroles", "rbac.authorization.k8s.io/v1", "ClusterRole", false)
    ]])
    assert.are.equal(0, #server.requests)
  end)

  it("of a definition is asked for once per version, and by tasks at the same time in one request", function()
    local server = rig.serve(function(request)
      if request.path == "/apis/example.com/v1" then return { chunks = {}, open = true } end
      return example(request)
    end)
    local proc = rig.start(server, [[
      local done = 0
      for i = 1, 5 do
        kube.background("c", function()
          client:create({ apiVersion = "example.com/v1", kind = i == 5 and "Zone" or "Web",
            metadata = { name = "w" .. i, namespace = i < 5 and "d" or nil } })
          done = done + 1
        end)
      end
      eventually(function() return done == 5 end)
      client:get("example.com/v1/zones", "z")
    ]])
    rig.pump(server, function() return #server.streams == 1 end)
    server.streams[1]:send(webs:format(""))
    server.streams[1]:finish()
    assert.are.equal(1, proc:wait_exit(15)) -- the get was refused
    assert.is_truthy(proc.stderr:find("there is no such zone", 1, true))
    local sorted = rig.lines(server)
    table.sort(sorted)
    assert.are.same({ "GET /apis/example.com/v1", "GET /apis/example.com/v1/zones/z",
      "POST /apis/example.com/v1/namespaces/d/webs", "POST /apis/example.com/v1/namespaces/d/webs",
      "POST /apis/example.com/v1/namespaces/d/webs", "POST /apis/example.com/v1/namespaces/d/webs",
      "POST /apis/example.com/v1/zones" }, sorted)
  end)

  it("is asked for by the next task when the one that asked is cancelled", function()
    local server = rig.serve(function(request)
      if request.path == "/apis/example.com/v1" then return { chunks = {}, open = true } end
      return example(request)
    end)
    local proc = rig.start(server, [[
      local function create(name)
        client:create { apiVersion = "example.com/v1", kind = "Web", metadata = { name = name, namespace = "d" } }
      end
      local first = kube.background("first", create, "first")
      local second = kube.background("second", create, "second")
      kube.sleep(0)
      client:try_get("v1/nodes", "wait") -- until the server has the first question, too
      first:cancel()
      eventually(function() return second:is_done() end)
    ]])
    rig.pump(server, function() return #server.streams == 2 end)
    server.streams[2]:send(webs:format(""))
    server.streams[2]:finish()
    require("spec.support.script_rig").finish(proc)
    local last = server.requests[#server.requests]
    assert.is_truthy(last.body:find('"second"', 1, true))
  end)

  it("that is missing is looked for again, and not more than once a second", function()
    local served = 0
    local server = rig.serve(function(request)
      if request.path ~= "/apis/example.com/v1" then return example(request) end
      served = served + 1
      return { body = webs:format(served > 1 and ',{"name":"lates","namespaced":true,"kind":"Late"}' or "") }
    end)
    rig.run(server, [[
      local late = { apiVersion = "example.com/v1", kind = "Late", metadata = { name = "l", namespace = "d" } }
      for _ = 1, 3 do same("no_match", select(2, client:try_create(late)).code) end
      eventually(function() return (client:try_create(late)) end)
    ]])
    local asked = 0
    for _, line in ipairs(rig.lines(server)) do asked = asked + (line == "GET /apis/example.com/v1" and 1 or 0) end
    assert.are.equal(2, asked)
  end)

  it("that the server does not have is refused with what may be meant", function()
    local server = rig.serve(function(request)
      if request.path == "/api/v1" then
        return { body = '{"kind":"APIResourceList","groupVersion":"v1","resources":['
          .. '{"name":"pods","namespaced":true,"kind":"Pod"}]}' }
      elseif request.path == "/apis/broken/v1" then
        return rig.status(503, "ServiceUnavailable", "the aggregated server is away")
      end
      return example(request)
    end)
    rig.run(server, [[
      local function refused(text, api_version, kind)
        local err = failure(client.create, client, { apiVersion = api_version, kind = kind,
          metadata = { name = "a", namespace = "d" } })
        same({ "no_match", "true" }, { err.code, tostring(err.retriable) })
        assert(kube.is_no_match(err) and not kube.is_not_found(err))
        assert(tostring(err):find("script%.lua:%d+: the server has no kind"), tostring(err))
        assert(err.message:find(text, 1, true), err.message)
      end
      refused("no kind 'Wob' in apiVersion 'example.com/v1' (did you mean 'Web'?)", "example.com/v1", "Wob")
      refused("(did you mean apiVersion 'apps/v1'?)", "v1", "Deployment")
      refused("(did you mean 'Pod'?)", "v1", "pod")
      refused("(did you mean apiVersion 'apps/v1'?)", "extensions/v1beta1", "Deployment")
      refused("it does not serve that apiVersion; is its definition installed?", "other.com/v1", "Thing")
      refused("it does not serve that apiVersion; kubectl api-versions shows what it serves", "apps/v9", "Thing")
      local _, err = client:try_get("example.com/v1/wobs", "a")
      assert(err.message:find("the server has no resource 'example.com/v1/wobs' (did you mean 'webs'?)", 1, true),
        err.message)
      _, err = client:try_get("other.com/v1/things", "a")
      assert(err.message:find("is its definition installed?", 1, true), err.message)
      _, err = client:try_get("resource.k8s.io/v9/things", "a")
      assert(err.message:find("; kubectl api-versions shows what it serves", 1, true), err.message)
      same("the aggregated server is away", select(2, client:try_get("broken/v1/things", "a")).message)
      err = failure(client.get, client, "example.com/v1/webs", "a")
      assert(err:find("example.com/v1/webs are in namespaces", 1, true), err)
      err = failure(client.create, client, { apiVersion = "example.com/v1", kind = "Zone",
        metadata = { name = "z", namespace = "d" } })
      assert(err:find("script%.lua:%d+: client:create: example.com/v1/zones are in no namespace, not in 'd'"), err)
      err = failure(verbs.resource_of, nil, { kind = "Pod" })
      assert(err:find("script%.lua:%d+: resource_of: the object has no apiVersion"), err)
    ]])
  end)
end)
