-- OpenAPI: what kubectl looks for in it, for built-in and custom kinds.
require "spec.support.sandbox_env"
local json = require "kube.sandbox.json"
local kinds = require "kube.sandbox.kinds"
local openapi = require "kube.sandbox.openapi"
local request = require "kube.sandbox.request"

local PREFIX = "#/components/schemas/"
local META = "io.k8s.apimachinery.pkg.apis.meta.v1."

local function widget(more)
  local R = {
    group = "ex.io", version = "v1", plural = "widgets", kind = "Widget", namespaced = true,
    verb_list = { "delete", "deletecollection", "get", "list", "patch", "create", "update", "watch" },
    subresources = {
      { name = "status", kind = "Widget", verb_list = { "get", "patch", "update" } },
      { name = "scale", group = "autoscaling", version = "v1", kind = "Scale", verb_list = { "get", "patch" } },
    },
    schema = json.decode [[{"type":"object","properties":{"spec":{"type":"object","description":"what is wanted",
      "properties":{"$ref":{"type":"string"}}}}}]],
  }
  for key, value in pairs(more or {}) do R[key] = value end
  return kinds.complete(R)
end

local function context(registry, target, headers, method)
  headers = headers or {}
  return {
    S = { kinds = registry },
    info = request.parse(method or "GET", target),
    request = { header = function(name) return headers[name] end },
  }
end

local function header(response, name)
  for _, pair in ipairs(response.headers) do
    if pair[1]:lower() == name then return pair[2] end
  end
end

-- Every "$ref" of a document that leads nowhere. A field may be called $ref; then it is no string.
local function broken(document)
  local found = {}
  local function walk(node)
    if type(node) ~= "table" then return end
    local ref = node["$ref"]
    if type(ref) == "string" and not document.components.schemas[ref:sub(#PREFIX + 1)] then found[#found + 1] = ref end
    for _, child in pairs(node) do walk(child) end
  end
  walk(document)
  return found
end

describe("an OpenAPI document", function()
  local registry
  before_each(function()
    registry = kinds.new()
    registry:add(widget())
  end)

  it("has every definition that it refers to", function()
    for _, group in ipairs(registry:groups()) do
      for _, version in ipairs(registry:versions(group)) do
        assert.same({}, broken(openapi.document(registry, group, version)))
      end
    end
  end)

  it("says of a patch its kind, its parameters and its media types", function()
    local document = openapi.document(registry, "apps", "v1")
    local patch = document.paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"].patch
    assert.equal('{"group":"apps","kind":"Deployment","version":"v1"}',
      json.encode(patch["x-kubernetes-group-version-kind"]))
    local parameters = {}
    for _, parameter in ipairs(patch.parameters) do parameters[parameter.name] = parameter["in"] end
    assert.same({ dryRun = "query", fieldManager = "query", fieldValidation = "query", force = "query" }, parameters)
    assert.is_table(patch.requestBody.content["application/strategic-merge-patch+json"])
  end)

  it("has the keys that lists are merged by", function()
    local spec = openapi.document(registry, "", "v1").components.schemas["io.k8s.api.core.v1.PodSpec"]
    local containers = spec.properties.containers
    assert.equal("name", containers["x-kubernetes-patch-merge-key"])
    assert.equal("merge", containers["x-kubernetes-patch-strategy"])
    assert.equal(PREFIX .. "io.k8s.api.core.v1.Container", containers.items.allOf[1]["$ref"])
    assert.equal(PREFIX .. "io.k8s.api.core.v1.Affinity", spec.properties.affinity["$ref"])
  end)

  it("has the schema of a custom resource as it was given, and the fields of every object", function()
    local document = openapi.document(registry, "ex.io", "v1")
    local schemas = document.components.schemas
    local node = schemas["io.ex.v1.Widget"]
    assert.equal("what is wanted", node.properties.spec.description)
    assert.equal("string", node.properties.spec.properties["$ref"].type)
    assert.equal(PREFIX .. META .. "ObjectMeta", node.properties.metadata["$ref"])
    assert.equal("Widget", node["x-kubernetes-group-version-kind"][1].kind)
    assert.equal(PREFIX .. "io.ex.v1.Widget", schemas["io.ex.v1.WidgetList"].properties.items.items["$ref"])
    local patch = document.paths["/apis/ex.io/v1/namespaces/{namespace}/widgets/{name}"].patch
    assert.equal("Widget", patch["x-kubernetes-group-version-kind"].kind)
    assert.is_nil(patch.requestBody.content["application/strategic-merge-patch+json"])
    local scale = document.paths["/apis/ex.io/v1/namespaces/{namespace}/widgets/{name}/scale"]
    assert.is_nil(scale.put)
    assert.is_table(schemas["io.k8s.api.autoscaling.v1.Scale"])
  end)

  it("has no item path for what can only be created", function()
    local paths = openapi.document(registry, "authorization.k8s.io", "v1").paths
    assert.is_table(paths["/apis/authorization.k8s.io/v1/subjectaccessreviews"].post)
    assert.is_nil(paths["/apis/authorization.k8s.io/v1/subjectaccessreviews/{name}"])
  end)
end)

describe("/openapi/v3", function()
  local registry
  before_each(function()
    registry = kinds.new()
    registry:add(widget())
  end)

  local function get(target, headers) return openapi.handle(context(registry, target, headers)) end

  it("names a document for every group and version, to be kept until it changes", function()
    local paths = json.decode(get("/openapi/v3").body).paths
    assert.is_table(paths["api/v1"])
    local url = paths["apis/ex.io/v1"].serverRelativeURL
    local response = get(url)
    assert.equal(200, response.status)
    assert.equal("public, immutable", header(response, "cache-control"))
    assert.equal(url:match("hash=(.*)"), header(response, "etag"):match('^"(.*)"$'))
    assert.is_table(json.decode(response.body).components)
    assert.equal(304, get(url, { ["if-none-match"] = header(response, "etag") }).status)
  end)

  it("sends who has an old name to the new one", function()
    local old = json.decode(get("/openapi/v3").body).paths["apis/ex.io/v1"].serverRelativeURL
    local core = json.decode(get("/openapi/v3").body).paths["api/v1"].serverRelativeURL
    registry:add(widget { schema = json.object { type = "object" } })
    local response = get(old)
    assert.equal(301, response.status)
    local new = header(response, "location")
    assert.not_equal(old, new)
    assert.is_nil(json.decode(get(new).body).components.schemas["io.ex.v1.Widget"].properties.spec)
    assert.equal(200, get(core).status)
  end)

  it("has no page for what is not served", function()
    assert.is_nil(get("/openapi/v3/apis/nope.io/v1"))
    assert.is_nil(get("/openapi/v3/apis/ex.io"))
    assert.is_nil(get("/openapi/v4"))
    assert.has_error(function() openapi.handle(context(registry, "/openapi/v3", {}, "POST")) end)
  end)
end)

describe("/openapi/v2", function()
  it("is the shortest document that every kubectl takes", function()
    local registry = kinds.new()
    local response = openapi.handle(context(registry, "/openapi/v2",
      { accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf" }))
    assert.equal("application/com.github.proto-openapi.spec.v2.v1.0+protobuf", header(response, "content-type"))
    assert.equal("\10\3" .. "2.0" .. "\18", response.body:sub(1, 6))
    response = openapi.handle(context(registry, "/openapi/v2"))
    assert.equal("2.0", json.decode(response.body).swagger)
  end)
end)
