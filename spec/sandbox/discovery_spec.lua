-- Discovery: the older documents, the aggregated one with its headers, and the pages beside them.
local host = require "spec.support.sandbox_env"
local discovery = require "kube.sandbox.discovery"
local json = require "kube.sandbox.json"
local kinds = require "kube.sandbox.kinds"
local request = require "kube.sandbox.request"
local status = require "kube.sandbox.status"
local version = require "kube.sandbox.version"

local AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
local ALL = { "delete", "deletecollection", "get", "list", "patch", "create", "update", "watch" }
local SUB = { "get", "patch", "update" }

local function registry_with_widgets()
  local registry = kinds.new()
  for _, of in ipairs { "v1beta1", "v1" } do
    registry:add(kinds.complete {
      group = "ex.io", version = of, storage_version = "v1", plural = "widgets", kind = "Widget", namespaced = true,
      verb_list = ALL, short_names = { "wd" }, categories = { "all" },
      subresources = {
        { name = "status", kind = "Widget", verb_list = SUB },
        { name = "scale", group = "autoscaling", version = "v1", kind = "Scale", verb_list = SUB },
      },
    })
  end
  return registry
end

local function context(target, headers, method, registry)
  headers = headers or {}
  return {
    S = { kinds = registry or registry_with_widgets() },
    info = request.parse(method or "GET", target),
    request = { header = function(name) return headers[name] end },
  }
end

local function get(target, headers)
  local response = discovery.handle(context(target, headers))
  assert.equal(200, response.status)
  return json.decode(response.body)
end

local function header(response, name)
  for _, pair in ipairs(response.headers) do
    if pair[1]:lower() == name then return pair[2] end
  end
end

describe("discovery", function()
  it("lists the core versions with the address that was asked", function()
    local document = get("/api", { host = "127.0.0.1:8001" })
    assert.equal(
      '{"kind":"APIVersions","serverAddressByClientCIDRs":[{"clientCIDR":"0.0.0.0/0",'
        .. '"serverAddress":"127.0.0.1:8001"}],"versions":["v1"]}',
      json.encode(document))
  end)

  it("lists the groups in the server's order, custom ones last", function()
    local groups = get("/apis/").groups
    assert.equal("apiregistration.k8s.io", groups[1].name)
    assert.equal("apps", groups[2].name)
    assert.equal(
      '{"name":"ex.io","preferredVersion":{"groupVersion":"ex.io/v1","version":"v1"},"versions":'
        .. '[{"groupVersion":"ex.io/v1","version":"v1"},{"groupVersion":"ex.io/v1beta1","version":"v1beta1"}]}',
      json.encode(groups[#groups]))
  end)

  it("answers for one group", function()
    local document = get("/apis/apps")
    assert.equal("APIGroup", document.kind)
    assert.equal("apps/v1", document.preferredVersion.groupVersion)
  end)

  it("lists resources and their subresources of a version", function()
    local document = get("/apis/apps/v1")
    assert.equal("v1", document.apiVersion)
    local by_name = {}
    for _, entry in ipairs(document.resources) do by_name[entry.name] = entry end
    assert.equal(
      '{"categories":["all"],"kind":"Deployment","name":"deployments","namespaced":true,"shortNames":["deploy"],'
        .. '"singularName":"deployment","storageVersionHash":"8aSe+NMegvE=","verbs":["create","delete",'
        .. '"deletecollection","get","list","patch","update","watch"]}',
      json.encode(by_name.deployments))
    assert.equal(
      '{"group":"autoscaling","kind":"Scale","name":"deployments/scale","namespaced":true,"singularName":"",'
        .. '"verbs":["get","patch","update"],"version":"v1"}',
      json.encode(by_name["deployments/scale"]))
  end)

  it("leaves the apiVersion out of the core group's resources only", function()
    assert.is_nil(get("/api/v1").apiVersion)
    assert.equal("v1", get("/api/v1").groupVersion)
  end)

  it("gives every version of a custom resource the hash of its storage version", function()
    local hash = get("/apis/ex.io/v1").resources[1].storageVersionHash
    assert.equal(kinds.storage_hash("ex.io", "v1", "Widget"), hash)
    assert.equal(hash, get("/apis/ex.io/v1beta1").resources[1].storageVersionHash)
  end)

  it("answers aggregated to a client that can read it", function()
    local response = discovery.handle(context("/apis", { accept = AGGREGATED .. ",application/json" }))
    assert.equal(200, response.status)
    assert.equal(AGGREGATED, header(response, "content-type"))
    assert.equal("public", header(response, "cache-control"))
    assert.equal("Accept", header(response, "vary"))
    assert.equal('"' .. host.hex(host.sha512(response.body)):upper() .. '"', header(response, "etag"))
    local items = json.decode(response.body).items
    assert.equal(
      '{"resource":"controllerrevisions","responseKind":{"group":"","kind":"ControllerRevision","version":""},'
        .. '"scope":"Namespaced","singularResource":"controllerrevision","verbs":["create","delete",'
        .. '"deletecollection","get","list","patch","update","watch"]}',
      json.encode(items[2].versions[1].resources[1]))
    local widgets = items[#items].versions[1]
    assert.equal("Current", widgets.freshness)
    assert.equal('{"group":"ex.io","kind":"Widget","version":"v1"}', json.encode(widgets.resources[1].responseKind))
    assert.equal("scale", widgets.resources[1].subresources[2].subresource)
  end)

  it("has a core group without a name in the aggregated form", function()
    local response = discovery.handle(context("/api", { accept = AGGREGATED }))
    local items = json.decode(response.body).items
    assert.equal(1, #items)
    assert.equal("{}", json.encode(items[1].metadata))
  end)

  it("reads the parameters of Accept in any order and keeps to the older form for others", function()
    local odd = "application/json; as=APIGroupDiscoveryList; v=v2; g=apidiscovery.k8s.io;q=0.1"
    assert.equal(AGGREGATED, header(discovery.handle(context("/apis", { accept = odd })), "content-type"))
    local beta = AGGREGATED:gsub("v=v2", "v=v2beta1") .. ",application/json"
    assert.equal("application/json", header(discovery.handle(context("/apis", { accept = beta })), "content-type"))
  end)

  it("answers 304 to who has it already, until something is added", function()
    local registry = registry_with_widgets()
    local etag = header(discovery.handle(context("/apis", { accept = AGGREGATED }, "GET", registry)), "etag")
    local again = { accept = AGGREGATED, ["if-none-match"] = etag }
    local response = discovery.handle(context("/apis", again, "GET", registry))
    assert.equal(304, response.status)
    assert.equal("", response.body)
    assert.equal(etag, header(response, "etag"))
    registry:remove(registry:find("ex.io", "v1beta1", "widgets"))
    response = discovery.handle(context("/apis", again, "GET", registry))
    assert.equal(200, response.status)
    assert.not_equal(etag, header(response, "etag"))
  end)

  it("has no page for unknown groups, and no resource in unknown versions of known ones", function()
    assert.is_nil(discovery.handle(context("/apis/nope.io")))
    assert.is_nil(discovery.handle(context("/apis/nope.io/v1")))
    assert.is_nil(discovery.handle(context("/apis/ex.io/v9")))
    local ok, problem = pcall(discovery.handle, context("/apis/apps/v9"))
    assert.is_false(ok)
    assert.is_true(status.is(problem))
    assert.equal(404, problem.document.code)
  end)

  it("refuses other methods where the server does", function()
    for _, path in ipairs { "/api", "/api/v1", "/apis/apps/v1" } do
      local ok, problem = pcall(discovery.handle, context(path, {}, "POST"))
      assert.is_false(ok)
      assert.equal(405, problem.document.code)
    end
  end)

  it("says who issues tokens, and that there are no keys to check them with", function()
    local response = discovery.openid_configuration(context("/.well-known/openid-configuration"))
    local document = json.decode(response.body)
    assert.equal("https://kubernetes.default.svc", document.issuer)
    assert.truthy(document.jwks_uri:find("^https://.*/openid/v1/jwks$"))
    assert.equal('{"keys":[]}', discovery.openid_keys(context("/openid/v1/jwks")).body)
  end)

  it("names its version as the server does", function()
    local response = discovery.version(context("/version"))
    assert.truthy(response.body:find('^{\n  "major": "1",\n  "minor": "%d+",\n'))
    assert.equal(version.info().gitVersion, json.decode(response.body).gitVersion)
  end)

  it("lists its paths", function()
    local document = json.decode(discovery.root(context("/")).body)
    local found = {}
    for _, path in ipairs(document.paths) do found[path] = true end
    assert.is_true(found["/apis/apps/v1"] and found["/apis/ex.io/v1beta1"] and found["/version"])
  end)
end)
