-- Kinds that go and come back as something else, against an API server (see spec/support/cluster.lua).
local cleanup = require "spec.support.cleanup"
local cluster = require "spec.support.cluster"

-- A script has `ns`, a fresh namespace, and: define(plural, scope), after which the kind Web of a group of its own
-- is served so and not as before; web(name, namespace); eventually(fn), the first result that is none of nil and
-- false.
local prelude = [[
  local kube = require "kube"
  local ns = "%s"
  local GROUP, DEFINITIONS = ns .. ".example.com", "apiextensions.k8s.io/v1/customresourcedefinitions"
  local client, defined = kube.client, nil

  local function eventually(fn)
    for _ = 1, 3000 do
      local value = fn()
      if value then return value end
      kube.sleep(0.01)
    end
    error("it did not come true", 2)
  end
  local function served(path) return (kube.try_request { path = "/apis/" .. GROUP .. "/v1/" .. path }) ~= nil end
  local function withdraw()
    client:delete(DEFINITIONS, defined .. "." .. GROUP)
    eventually(function() return kube.is_not_found(select(2, client:try_get(DEFINITIONS, defined .. "." .. GROUP))) end)
    eventually(function() return not served(defined) end)
  end
  local function define(plural, scope)
    if defined then withdraw() end
    defined = plural
    client:create { apiVersion = "apiextensions.k8s.io/v1", kind = "CustomResourceDefinition",
      metadata = { name = plural .. "." .. GROUP }, spec = { group = GROUP, scope = scope,
        names = { plural = plural, singular = plural .. "x", kind = "Web", listKind = "WebList" },
        versions = { { name = "v1", served = true, storage = true, schema = {
          openAPIV3Schema = { type = "object", ["x-kubernetes-preserve-unknown-fields"] = true } } } } } }
    eventually(function() return served(scope == "Namespaced" and "namespaces/" .. ns .. "/" .. plural or plural) end)
    -- What the server serves and what it says that it serves are not the same moment.
    eventually(function()
      local list = kube.try_request { path = "/apis/" .. GROUP .. "/v1" }
      local found = list and list.object.resources[1]
      return found and found.name == plural and found.namespaced == (scope == "Namespaced")
    end)
  end
  kube.defer(function() withdraw() end)
  local function web(name, namespace)
    return { apiVersion = GROUP .. "/v1", kind = "Web", metadata = { name = name, namespace = namespace } }
  end
  local function has(text, err)
    if not tostring(err):find(text, 1, true) then error(("no '%%s' in: %%s"):format(text, tostring(err)), 2) end
  end
  kube.sleep(0)
]]

local function play(source)
  local proc = cluster.start(prelude:format(cluster.namespace()) .. source)
  local code = proc:wait_exit(120)
  assert(code == 0, proc.stdout .. proc.stderr)
end

describe("a kind whose definition comes back", function()
  cluster.install()
  cleanup.install()

  it("under another plural is found there by the next write, whatever the verb", function()
    play [[
      define("webs", "Namespaced")
      client:create(web("a", ns))
      define("sites", "Namespaced")
      client:create(web("a", ns))
      define("pages", "Namespaced")
      client:apply(web("a", ns), { field_manager = "spec" })
      define("leaves", "Namespaced")
      local _, err = client:try_update(web("a", ns))
      has("not found", err)
      assert(kube.is_not_found(err) and err.details.name == "a")
      client:create(web("a", ns))
      assert(client:get(GROUP .. "/v1/leaves", ns .. "/a").metadata.uid)
    ]]
  end)

  it("with another scope is taken for what it is now", function()
    play [[
      define("webs", "Namespaced")
      client:create(web("a", ns))
      local _, err = pcall(client.create, client, web("a"))
      has("are in namespaces", err)
      define("webs", "Cluster")
      -- The answer of a moment ago may still be believed.
      eventually(function() return (pcall(client.create, client, web("a"))) end)
      assert(client:get(GROUP .. "/v1/webs", "a").metadata.uid)
      local _, refused = client:try_get(GROUP .. "/v1/webs", ns .. "/a")
      has("are in no namespace", refused)
      define("webs", "Namespaced")
      eventually(function() return (pcall(client.create, client, web("a", ns))) end)
      assert(client:get(GROUP .. "/v1/webs", ns .. "/a").metadata.uid)
    ]]
  end)

  it("is named when its old plural, or a wrong one, is asked for", function()
    play [[
      define("webs", "Namespaced")
      client:create(web("a", ns))
      for verb, call in pairs {
        get = function() return client:try_get(GROUP .. "/v1/web", ns .. "/a") end,
        list = function() return client:try_list(GROUP .. "/v1/web", { namespace = ns }) end,
        everywhere = function() return client:try_list(GROUP .. "/v1/web") end,
        patch = function() return client:try_patch(GROUP .. "/v1/web", ns .. "/a", { x = 1 }) end,
        delete = function() return client:try_delete(GROUP .. "/v1/web", ns .. "/a") end,
        create = function() return client:try_create(web("b", ns), { resource = GROUP .. "/v1/web" }) end,
      } do
        local _, err = call()
        has("the server has no resource '" .. GROUP .. "/v1/web' (did you mean 'webs'?)", err)
        assert(kube.is_not_found(err) and err.status == 404, verb)
      end
      local _, err = client:try_get("v1/pod", ns .. "/a")
      has("(did you mean 'pods'?)", err)
      define("sites", "Namespaced")
      _, err = client:try_get(GROUP .. "/v1/webs", ns .. "/a")
      has("the server has no resource", err)
    ]]
  end)
end)
