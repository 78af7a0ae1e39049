-- OpenAPI: what kubectl looks for in it, for built-in and custom kinds.
local host = require "spec.support.sandbox_env"
local json = require "kube.sandbox.json"
local kinds = require "kube.sandbox.kinds"
local openapi = require "kube.sandbox.openapi"
local openapi_wire = require "spec.support.openapi_wire"
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
    assert.equal(PREFIX .. "io.k8s.api.core.v1.Affinity", spec.properties.affinity.allOf[1]["$ref"])
  end)

  it("says what kinds and fields are for", function()
    local schemas = openapi.document(registry, "", "v1").components.schemas
    local config = schemas["io.k8s.api.core.v1.ConfigMap"]
    assert.equal("ConfigMap holds configuration data for pods to consume.", config.description)
    assert.truthy(config.properties.data.description:find("^Data contains the configuration data%."))
    assert.truthy(config.properties.metadata.description:find("^Standard object's metadata%."))
  end)

  it("has the schema of a custom resource as it was given, and the fields of every object", function()
    local document = openapi.document(registry, "ex.io", "v1")
    local schemas = document.components.schemas
    local node = schemas["io.ex.v1.Widget"]
    assert.equal("what is wanted", node.properties.spec.description)
    assert.equal("string", node.properties.spec.properties["$ref"].type)
    assert.equal(PREFIX .. META .. "ObjectMeta", node.properties.metadata.allOf[1]["$ref"])
    assert.truthy(node.properties.kind.description:find("^Kind is a string value"))
    assert.equal("Widget", node["x-kubernetes-group-version-kind"][1].kind)
    assert.equal(PREFIX .. "io.ex.v1.Widget", schemas["io.ex.v1.WidgetList"].properties.items.items["$ref"])
    local patch = document.paths["/apis/ex.io/v1/namespaces/{namespace}/widgets/{name}"].patch
    assert.equal("Widget", patch["x-kubernetes-group-version-kind"].kind)
    assert.is_nil(patch.requestBody.content["application/strategic-merge-patch+json"])
    local scale = document.paths["/apis/ex.io/v1/namespaces/{namespace}/widgets/{name}/scale"]
    assert.is_nil(scale.put)
    assert.is_table(schemas["io.k8s.api.autoscaling.v1.Scale"])
  end)

  it("says of embedded objects and of integers or strings what they may be", function()
    registry:add(widget { schema = json.decode [[{"type":"object","properties":{
      "port":{"x-kubernetes-int-or-string":true},
      "any":{"type":"object","x-kubernetes-embedded-resource":true,"required":["spec"],
        "properties":{"spec":{"type":"object"}}}}}]] })
    local properties = openapi.document(registry, "ex.io", "v1").components.schemas["io.ex.v1.Widget"].properties
    assert.equal('[{"type":"integer"},{"type":"string"}]', json.encode(properties.port.anyOf))
    assert.equal('["spec","kind","apiVersion"]', json.encode(properties.any.required))
    assert.equal(PREFIX .. META .. "ObjectMeta", properties.any.properties.metadata.allOf[1]["$ref"])
    assert.equal("object", properties.any.properties.spec.type)
    assert.is_nil(registry:find("ex.io", "v1", "widgets").schema.properties.port.anyOf)
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
    local root = get("/openapi/v3")
    assert.equal("text/plain; charset=utf-8", header(root, "content-type"))
    local paths = json.decode(root.body).paths
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

  it("has documents for the paths that are no resources, which lead nowhere else", function()
    local paths = json.decode(get("/openapi/v3").body).paths
    for path, id in pairs { api = "getCoreAPIVersions", apis = "getAPIVersions", version = "getCodeVersion",
      ["apis/rbac.authorization.k8s.io"] = "getRbacAuthorizationAPIGroup",
      ["openid/v1/jwks"] = "getServiceAccountIssuerOpenIDKeyset" } do
      local document = json.decode(get(paths[path].serverRelativeURL).body)
      assert.equal(id, document.paths["/" .. path .. "/"].get.operationId)
      assert.same({}, broken(document))
    end
    assert.is_nil(paths["apis/ex.io"])
  end)

  it("forgets the documents of groups that are gone", function()
    assert.equal(200, get("/openapi/v3/apis/ex.io/v1").status)
    registry:remove(registry:find("ex.io", "v1", "widgets"))
    assert.equal(404, get("/openapi/v3/apis/ex.io/v1").status)
  end)

  it("has no page for what is not served", function()
    assert.equal(404, get("/openapi/v3/apis/nope.io/v1").status)
    assert.equal(404, get("/openapi/v3/apis/ex.io").status)
    assert.is_nil(get("/openapi/v4"))
    assert.has_error(function() openapi.handle(context(registry, "/openapi/v3", {}, "POST")) end)
  end)
end)

describe("/openapi/v2", function()
  local PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
  local DEFINITIONS = "#/definitions/"
  local registry
  before_each(function()
    registry = kinds.new()
    registry:add(widget())
  end)

  local function get(headers) return openapi.handle(context(registry, "/openapi/v2", headers)) end
  local function in_json() return json.decode(get({ accept = "application/json" }).body) end
  local function in_protobuf() return openapi_wire.read(get({ accept = PROTOBUF }).body, host.yaml_decode) end

  -- Arrays and objects without their marks, as the reader has them.
  local function bare(node)
    if type(node) ~= "table" then return node end
    local copy = {}
    for key, value in pairs(node) do copy[key] = bare(value) end
    return copy
  end

  it("says the same in protobuf as in JSON", function()
    local mine, other = bare(in_protobuf()), bare(in_json())
    mine.security, other.security, mine.securityDefinitions, other.securityDefinitions = nil, nil, nil, nil
    assert.same(other, mine)
  end)

  it("has what kubectl merges lists by, and every definition that it refers to", function()
    local definitions = in_protobuf().definitions
    local containers = definitions["io.k8s.api.core.v1.PodSpec"].properties.containers
    assert.equal("name", containers["x-kubernetes-patch-merge-key"])
    assert.equal("merge", containers["x-kubernetes-patch-strategy"])
    assert.equal(DEFINITIONS .. "io.k8s.api.core.v1.Container", containers.items["$ref"])
    local strategy = definitions["io.k8s.api.apps.v1.DeploymentSpec"].properties.strategy
    assert.equal("retainKeys", strategy["x-kubernetes-patch-strategy"])
    assert.truthy(strategy.description:find("^The deployment strategy"))
    local function walk(node)
      if type(node) ~= "table" then return end
      local ref = node["$ref"]
      if type(ref) == "string" then assert.is_table(definitions[ref:sub(#DEFINITIONS + 1)], ref) end
      for _, child in pairs(node) do walk(child) end
    end
    walk(definitions)
  end)

  it("names a kind's patch and its dryRun, by which kubectl knows that the server can do it", function()
    local paths = in_protobuf().paths
    for path, kind in pairs {
      ["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"] = "Deployment",
      ["/apis/ex.io/v1/namespaces/{namespace}/widgets/{name}"] = "Widget",
    } do
      local patch = paths[path].patch
      assert.equal(kind, patch["x-kubernetes-group-version-kind"].kind)
      local found = false
      for _, parameter in ipairs(patch.parameters) do
        found = found or parameter.name == "dryRun" and parameter["in"] == "query"
      end
      assert.is_true(found)
    end
  end)

  it("leaves out of a custom resource what version 2 cannot say", function()
    registry:add(widget { schema = json.decode [[{"type":"object","properties":{"spec":{"type":"object",
      "required":["size","none"],"properties":{
        "size":{"type":"integer","minimum":1,"maximum":10.5,"default":3},
        "none":{"type":"object","nullable":true,"properties":{"a":{"type":"string"}}},
        "port":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]},
        "any":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"description":"free"},
        "one":{"type":"string","enum":["a",""],"oneOf":[{"pattern":"a"}],"maxLength":300},
        "map":{"type":"object","additionalProperties":{"type":"array","items":{"type":"string"}}},
        "default":{"type":"boolean"}}}}}]] })
    local spec = in_protobuf().definitions["io.ex.v1.Widget"].properties.spec
    assert.same({
      type = "object",
      required = { "size" },
      properties = {
        size = { type = "integer", minimum = 1, maximum = 10.5 },
        none = {},
        port = { ["x-kubernetes-int-or-string"] = true },
        any = { ["x-kubernetes-preserve-unknown-fields"] = true, description = "free" },
        one = { type = "string", enum = { "a", "" }, maxLength = 300 },
        map = { type = "object", additionalProperties = { type = "array", items = { type = "string" } } },
        default = { type = "boolean" },
      },
    }, spec)
  end)

  it("says of a custom resource that keeps everything only that it is an object", function()
    registry:add(widget { schema = json.object { type = "object", ["x-kubernetes-preserve-unknown-fields"] = true } })
    assert.same({
      type = "object",
      ["x-kubernetes-group-version-kind"] = { { group = "ex.io", version = "v1", kind = "Widget" } },
    }, bare(in_protobuf().definitions["io.ex.v1.Widget"]))
  end)

  it("is sent anew when the kinds change, and packed to who can unpack it", function()
    local response = get({ accept = PROTOBUF, ["accept-encoding"] = "gzip" })
    assert.equal("application/com.github.proto-openapi.spec.v2.v1.0+protobuf", header(response, "content-type"))
    assert.equal("gzip", header(response, "content-encoding"))
    assert.equal(get({ accept = PROTOBUF }).body, host.gunzip(response.body, 2 ^ 24))
    local tag = header(response, "etag")
    assert.equal(304, get({ accept = PROTOBUF, ["if-none-match"] = tag }).status)
    registry:remove(registry:find("ex.io", "v1", "widgets"))
    assert.equal(200, get({ accept = PROTOBUF, ["if-none-match"] = tag }).status)
    assert.is_nil(in_protobuf().definitions["io.ex.v1.Widget"])
  end)

  it("is JSON unless asked for otherwise, and nothing that it is not", function()
    for _, accept in ipairs { "*/*", "application/*", "application/json, */*" } do
      assert.equal("application/json", header(get({ accept = accept }), "content-type"))
    end
    assert.equal("2.0", json.decode(get().body).swagger)
    assert.equal(406, get({ accept = "application/yaml" }).status)
    assert.equal(406, get({ accept = "application/vnd.kubernetes.protobuf" }).status)
  end)
end)
