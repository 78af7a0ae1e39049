-- The verbs of clients: the exact requests, and what scripts get.
local cleanup = require "spec.support.cleanup"
local rig = require "spec.support.client_rig"

describe("a verb", function()
  cleanup.install()

  it("sends one request to the path of its resource", function()
    local server = rig.serve(rig.echo)
    rig.run(server, [[
      same("5", client:get("v1/configmaps", "d/a").metadata.resourceVersion)
      client:get("v1/configmaps", "a", { namespace = "d", resource_version = "0" })
      client:get("v1/nodes", "n1")
      client:get("rbac.authorization.k8s.io/v1/clusterroles", "system:node")
      client:get("apps/v1/deployments", "d/web", { subresource = "scale" })
      client:create(config_map("new", { a = "1" }))
      client:create({ apiVersion = "v1", kind = "ConfigMap", metadata = { generateName = "x-" } }, { namespace = "e" })
      client:update(config_map("a"), { dry_run = true, field_validation = "Strict" })
      client:update_status({ apiVersion = "apps/v1", kind = "Deployment", metadata = { namespace = "d", name = "w" } })
      client:update({ apiVersion = "autoscaling/v1", kind = "Scale", metadata = { namespace = "d", name = "w" } },
        { resource = "apps/v1/deployments", subresource = "scale" })
      client:create({ apiVersion = "policy/v1", kind = "Eviction", metadata = { namespace = "d", name = "p" } },
        { resource = "v1/pods", subresource = "eviction" })
      client:delete("v1/configmaps", "d/a")
      client:delete_collection("v1/configmaps", { namespace = "d", label_selector = { app = "web" } })
    ]])
    assert.are.same({
      "GET /api/v1/namespaces/d/configmaps/a",
      "GET /api/v1/namespaces/d/configmaps/a?resourceVersion=0",
      "GET /api/v1/nodes/n1",
      "GET /apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode",
      "GET /apis/apps/v1/namespaces/d/deployments/web/scale",
      "POST /api/v1/namespaces/d/configmaps",
      "POST /api/v1/namespaces/e/configmaps",
      "PUT /api/v1/namespaces/d/configmaps/a?dryRun=All&fieldValidation=Strict",
      "PUT /apis/apps/v1/namespaces/d/deployments/w/status",
      "PUT /apis/apps/v1/namespaces/d/deployments/w/scale",
      "POST /api/v1/namespaces/d/pods/p/eviction",
      "DELETE /api/v1/namespaces/d/configmaps/a",
      "DELETE /api/v1/namespaces/d/configmaps?labelSelector=app%3Dweb",
    }, rig.lines(server))
    for _, part in ipairs { '"data":{"a":"1"}', '"kind":"ConfigMap"', '"name":"new"' } do
      assert.is_truthy(server.requests[6].body:find(part, 1, true))
    end
    assert.is_truthy(server.requests[7].body:find('"namespace":"e"', 1, true))
    assert.are.equal("application/json, */*", server.requests[5].headers.accept)
  end)

  it("sends each kind of patch as what it is", function()
    local server = rig.serve(rig.echo)
    rig.run(server, [[
      client:patch("v1/configmaps", "d/a", { data = { b = kube.null } })
      client:patch("v1/configmaps", "d/a", { { op = "add", path = "/data/x", value = "1" } }, { type = "json" })
      client:patch("v1/configmaps", "d/a", {}, { type = "json" })
      client:patch("apps/v1/deployments", "d/a", '{"spec":{}}', { type = "strategic", subresource = "status",
        field_manager = "m" })
      client:apply(config_map("a"))
      session():apply(config_map("a"))
      session():apply(config_map("a"), { field_manager = "other", force = false, dry_run = true })
    ]])
    assert.are.same({
      'PATCH /api/v1/namespaces/d/configmaps/a {"data":{"b":null}}',
      'PATCH /api/v1/namespaces/d/configmaps/a [{"op":"add","path":"/data/x","value":"1"}]',
      "PATCH /api/v1/namespaces/d/configmaps/a []",
      'PATCH /apis/apps/v1/namespaces/d/deployments/a/status?fieldManager=m {"spec":{}}',
    }, (function()
      local out = rig.lines(server, true)
      out[2] = out[2]:gsub("%[.*", '[{"op":"add","path":"/data/x","value":"1"}]')
      return { unpack(out, 1, 4) }
    end)())
    assert.are.same({
      "PATCH /api/v1/namespaces/d/configmaps/a?fieldManager=moonwatch",
      "PATCH /api/v1/namespaces/d/configmaps/a?fieldManager=web&force=true",
      "PATCH /api/v1/namespaces/d/configmaps/a?dryRun=All&fieldManager=other",
    }, { unpack(rig.lines(server), 5) })
    local types = {}
    for i, request in ipairs(server.requests) do types[i] = request.headers["content-type"]:match("/(.*)%+") end
    assert.are.same({ "merge-patch", "json-patch", "json-patch", "strategic-merge-patch", "apply-patch", "apply-patch",
      "apply-patch" }, types)
  end)

  it("to delete says in its body what the options say", function()
    local server = rig.serve(rig.echo)
    rig.run(server, [[
      client:delete("v1/configmaps", "d/a", { propagation = "Foreground", grace = 0 })
      client:delete("v1/configmaps", "d/a", { uid = "u", resource_version = "7", dry_run = true })
      client:delete_collection("v1/nodes", { all = true, propagation = "Orphan", dry_run = true })
      client:delete("v1/nodes", "n")
    ]])
    local bodies = {}
    for i, request in ipairs(server.requests) do
      local keys = {}
      for part in request.body:gmatch('"[%w]+":[^{},]+') do keys[#keys + 1] = part end
      table.sort(keys)
      bodies[i] = table.concat(keys, " "):gsub('^"apiVersion":"v1" ', ""):gsub(' ?"kind":"DeleteOptions"', "")
    end
    assert.are.same({ '"gracePeriodSeconds":0 "propagationPolicy":"Foreground"',
      '"dryRun":["All"] "resourceVersion":"7" "uid":"u"', '"dryRun":["All"] "propagationPolicy":"Orphan"', "" }, bodies)
    assert.is_truthy(server.requests[2].body:find('"preconditions":{', 1, true))
    assert.are.same({ "DELETE /api/v1/namespaces/d/configmaps/a", "DELETE /api/v1/namespaces/d/configmaps/a",
      "DELETE /api/v1/nodes", "DELETE /api/v1/nodes/n" }, rig.lines(server))
  end)

  it("returns text where the answer is no JSON", function()
    local server = rig.serve(function() return { body = "line 1\nline 2\n" } end)
    rig.run(server, [[
      same("line 1\nline 2\n", client:get("v1/pods", "d/p", { subresource = "log",
        query = { container = "main", tailLines = 2 } }))
    ]])
    assert.are.same({ "GET /api/v1/namespaces/d/pods/p/log?container=main&tailLines=2" }, rig.lines(server))
  end)

  it("raises the server's refusal at the line that called it; its twin returns it", function()
    local server = rig.serve(function() return rig.status(409, "AlreadyExists", "it is there") end)
    rig.run(server, [[
      local err = failure(client.create, client, config_map("a"))
      same({ "already_exists", "AlreadyExists", 409, false }, { err.code, err.reason, err.status, err.retriable })
      assert(tostring(err):find("script%.lua:%d+: it is there$"), tostring(err))
      local none, twin = client:try_create(config_map("a"))
      same({ "nil", "already_exists" }, { tostring(none), twin.code })
      assert(kube.is_already_exists(twin) and not kube.is_conflict(twin))
      for _, verb in ipairs { "get", "delete" } do
        same("already_exists", select(2, client["try_" .. verb](client, "v1/configmaps", "d/a")).code)
      end
      same("already_exists", select(2, client:try_list("v1/configmaps")).code)
      same("already_exists", select(2, client:try_update(config_map("a"))).code)
      same("already_exists", select(2, client:try_update_status(config_map("a"))).code)
      same("already_exists", select(2, client:try_patch("v1/configmaps", "d/a", {})).code)
      same("already_exists", select(2, client:try_apply(config_map("a"))).code)
      same("already_exists", select(2, client:try_delete_collection("v1/nodes", { all = true })).code)
    ]])
  end)

  it("of a session carries its field manager, and is told to its observer when it was answered", function()
    local server = rig.serve(function(request)
      if request.path:find("refused") then return rig.status(403, "Forbidden", "no") end
      if request.method == "DELETE" then
        return { body = '{"kind":"Status","apiVersion":"v1","status":"Success","details":{"name":"a"}}' }
      elseif request.path:find("scale$") then
        return { body = '{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"a","namespace":"d"}}' }
      elseif request.path:find("/configmaps$") and request.method == "GET" then
        return { body = '{"apiVersion":"v1","kind":"ConfigMapList","metadata":{},"items":[]}' }
      end
      return rig.echo(request)
    end)
    rig.run(server, [[
      local s = session()
      s:get("v1/configmaps", "d/a")
      s:list("v1/configmaps")
      s:create(config_map("a"))
      s:update(config_map("a"))
      s:update_status(config_map("a"))
      s:patch("v1/configmaps", "d/a", {})
      s:apply(config_map("a"))
      s:delete("v1/configmaps", "d/a")
      for _ in s:each("v1/configmaps") do error("it is empty") end
      s:try_get("v1/configmaps", "d/refused")
      s:update(config_map("a"), { dry_run = true })
      s:get("apps/v1/deployments", "d/a", { subresource = "scale" })
      same("get v1/configmaps d/a table nil; list v1/configmaps nil table nil; create v1/configmaps d/a table table; "
        .. "update v1/configmaps d/a table table; update v1/configmaps d/a table table; "
        .. "patch v1/configmaps d/a table table; apply v1/configmaps d/a table table; "
        .. "delete v1/configmaps d/a nil nil; list v1/configmaps nil table nil",
        table.concat(heard, "; "))
      same(200, s:request({ path = "/version" }).status)
      same(403, select(2, s:try_request { path = "/refused" }).status)
    ]])
    for _, request in ipairs(server.requests) do
      local writes = request.method == "POST" or request.method == "PUT" or request.method == "PATCH"
      assert.are.equal(writes and "web" or nil, request.query.fieldManager)
    end
  end)

  it("of a client is one of that client's server", function()
    local one, two = rig.serve(rig.echo), rig.serve(rig.echo)
    local config = require("spec.support.script_rig").kubeconfig(two:url())
    rig.run(one, ([[
      kube.new_client({ kubeconfig = %q }):get("v1/nodes", "two")
      kube.new_client():get("v1/nodes", "one")
      session({ client = kube.new_client { kubeconfig = %q } }):get("v1/nodes", "three")
    ]]):format(config, config))
    assert.are.same({ "GET /api/v1/nodes/one" }, rig.lines(one))
    assert.are.same({ "GET /api/v1/nodes/two", "GET /api/v1/nodes/three" }, rig.lines(two))
  end)
end)

describe("a verb that is written wrongly", function()
  cleanup.install()

  it("is refused where it stands, and not sent", function()
    local server = rig.serve(rig.echo)
    rig.run(server, [[
      local function refused(text, verb, ...)
        for _, name in ipairs { verb, "try_" .. verb } do
          local err = failure(client[name], client, ...)
          assert(type(err) == "string" and err:find("script%.lua:%d+: client:" .. name), tostring(err))
          assert(err:find(text, 1, true), ("wanted %s\ngot %s"):format(text, err))
        end
      end
      refused('takes a resource such as "apps/v1/deployments" first, not a nil', "get")
      refused("'pods' is not a resource: write version/plural or group/version/plural, as in \"v1/pods\"", "get",
        "pods", "a")
      refused('as in "apps/v1/deployments"', "get", "Deployment", "d/a")
      refused('as in "apps/v1/deployments"', "list", "apps/v1/Deployment")
      refused('as in "networking.k8s.io/v1/networkpolicies"', "list", "NetworkPolicy")
      refused('as in "v1/pods" or "apps/v1/deployments"', "list", "Thing")
      refused('takes a key such as "default/web" second, not a table', "get", "v1/pods", { namespace = "d" })
      refused("'a/b/c' is not a key", "get", "v1/pods", "a/b/c")
      refused("'' is not a key", "get", "v1/pods", "")
      refused("'d/..' is not a key", "get", "v1/pods", "d/..")
      refused('v1/pods are in namespaces: write the key as "namespace/name"', "get", "v1/pods", "a")
      refused("v1/nodes are in no namespace, not in 'd'", "delete", "v1/nodes", "d/a")
      refused("v1/nodes are in no namespace, not in 'd'", "list", "v1/nodes", { namespace = "d" })
      refused("of two namespaces", "get", "v1/pods", "d/a", { namespace = "e" })
      refused("has no option 'namespce' (did you mean 'namespace'?)", "get", "v1/pods", "d/a", { namespce = "d" })
      refused("has no option 'propagation'", "get", "v1/pods", "d/a", { propagation = "Orphan" })
      refused("option 'grace' must be a number, not a string", "delete", "v1/pods", "d/a", { grace = "1" })
      refused("option 'grace' must be a whole number from 0 on, not -1", "delete", "v1/pods", "d/a", { grace = -1 })
      refused("option 'limit' must be a whole number from 1 on, not 0.5", "list", "v1/pods", { limit = 0.5 })
      refused("option 'timeout' must be a number of seconds above 0, not 0", "list", "v1/pods", { timeout = 0 })
      refused("option 'propagation' cannot be 'background' (did you mean 'Background'?)", "delete", "v1/pods", "d/a",
        { propagation = "background" })
      refused("option 'type' cannot be 'apply'", "patch", "v1/pods", "d/a", {}, { type = "apply" })
      refused("cannot be a subresource", "get", "v1/pods", "d/a", { subresource = "../x" })
      refused("takes the patch third, a table or JSON, not a nil", "patch", "v1/pods", "d/a")
      refused("a JSON patch is a list of { op =, path =, value = }", "patch", "v1/pods", "d/a", { op = "add" },
        { type = "json" })
      refused("takes an object, { apiVersion =, kind =, metadata = { name = } }, not a string", "create", "v1/pods")
      refused("the object has no apiVersion", "apply", {})
      refused("the object has no kind", "update", { apiVersion = "v1" })
      refused("the object has no metadata", "update", { apiVersion = "v1", kind = "Pod" })
      refused("the object has no metadata.name", "apply",
        { apiVersion = "v1", kind = "Pod", metadata = { generateName = "a-" } })
      refused("the object has no metadata.name and no metadata.generateName", "create",
        { apiVersion = "v1", kind = "Pod", metadata = {} })
      refused('v1/pods are in namespaces: set metadata.namespace of the object, or namespace = "..."', "create",
        { apiVersion = "v1", kind = "Pod", metadata = { name = "a" } })
      refused("the object is in namespace 'd', not in 'e'", "create", config_map("a"), { namespace = "e" })
      refused("body: ", "create", config_map("a", { f = print }))
      refused("takes a table of options, not a string", "delete", "v1/pods", "d/a", "Orphan")
      refused("deletes every one of them", "delete_collection", "v1/pods", { namespace = "d" })
      refused("v1/pods are in namespaces: say which", "delete_collection", "v1/pods", { all = true })
      local err = failure(client.get, "v1/pods", "d/a")
      assert(err:find("call it with a colon: client:get(...), not client.get(...)", 1, true), err)
      err = failure(function() client:gett("v1/pods", "d/a") end)
      assert(err:find("client has no 'gett' (did you mean 'get'?)", 1, true), err)
      err = failure(function() session():watch("v1/pods") end)
      assert(err:find("client has no 'watch'", 1, true), err)
    ]])
    assert.are.equal(0, #server.requests)
  end)

  it("in the load phase says where to write it instead", function()
    local server = rig.serve(rig.echo)
    local script_rig = require "spec.support.script_rig"
    local proc = script_rig.start(server, 'kube.client:get("v1/nodes", "n")')
    assert.are.equal(1, proc:wait_exit(10))
    assert.is_truthy(proc.stderr:find("script%.lua:%d+: client:get cannot be used while the script loads"), proc.stderr)
    assert.are.equal(0, #server.requests)
  end)
end)

describe("kube.retry_on_conflict", function()
  cleanup.install()

  it("calls again after conflicts only, five times in all, and raises the last", function() -- S-CR-85
    local server = rig.serve(rig.echo)
    rig.run(server, [[
      local function failing(times, code)
        local calls = 0
        return function()
          calls = calls + 1
          if calls <= times then error({ code = code, n = calls }) end
          return calls, nil, "more"
        end, function() return calls end
      end
      local n, none, more = kube.retry_on_conflict((failing(4, "conflict")))
      same({ 5, "nil", "more" }, { n, tostring(none), more })
      local fn, calls = failing(9, "conflict")
      same(5, failure(kube.retry_on_conflict, fn).n)
      same(5, calls())
      fn, calls = failing(9, "already_exists")
      same("already_exists", failure(kube.retry_on_conflict, fn).code)
      same(1, calls())
      fn, calls = failing(9, "conflict")
      same(2, failure(kube.retry_on_conflict, fn, { steps = 2, delay = 0 }).n)
      assert(failure(kube.retry_on_conflict, {}):find("script%.lua:%d+: kube.retry_on_conflict%(%) takes a function"))
      assert(failure(kube.retry_on_conflict, fn, { stepps = 1 }):find("did you mean 'steps'"))
      assert(failure(kube.retry_on_conflict, fn, { steps = 0 }):find("option 'steps' cannot be 0"))
    ]])
  end)
end)
