-- How answers are written: which representation Accept gets, and what it looks like.
local host = require "spec.support.sandbox_env"
local json = require "kube.sandbox.json"
local list = require "kube.sandbox.list"
local media = require "kube.sandbox.media"
local negotiate = require "kube.sandbox.negotiate"
local reads = require "spec.support.sandbox_reads"
local status = require "kube.sandbox.status"
local support = require "spec.support.codec"
local utf8 = require "kube.sandbox.utf8"

local CM = "/api/v1/namespaces/default/configmaps"
local WIDGETS = "/apis/ex.io/v1/namespaces/default/widgets"
local PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
local PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"

local TYPES = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
local STREAMS = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"

describe("an answer", function()
  local rig

  before_each(function()
    rig = reads.new()
    rig:put(rig.config_maps, "default", "a", { data = { k = "v" } })
    rig:put(rig.widgets, "default", "w", { spec = { size = 1 } })
  end)

  -- As the server does it: the list or the object, or the Status that was raised.
  local function answer(target, headers)
    local ctx = rig:context(target, headers)
    local ok, response = pcall(function()
      negotiate.check(ctx)
      if ctx.info.verb == "list" then return negotiate.response(ctx, list.run(ctx)) end
      local key = ctx.info.namespace .. "/" .. ctx.info.name
      local doc = rig.store:get(ctx.R.storage, key) or error(status.not_found(ctx.R, ctx.info.name))
      return negotiate.response(ctx, 200, doc)
    end)
    if not ok then
      assert(status.is(response), tostring(response))
      response = negotiate.status(ctx, response)
    end
    for _, header in ipairs(response.headers) do response[header[1]] = header[2] end
    return response
  end

  local function accepted(accept, target) return answer(target or CM .. "/a", { accept = accept }) end

  it("is JSON on one line unless something else is asked for", function()
    for _, accept in ipairs { "", "*/*", "application/json", "application/json;foo=bar", "text/html,*/*",
      "application/vnd.kubernetes.protobuf,application/json", "application/json;q=0", "application/json;q=x" } do
      local response = accepted(accept)
      assert.equal(200, response.status)
      assert.equal("application/json", response["Content-Type"])
      assert.equal("no-cache, private", response["Cache-Control"])
      assert.equal(1, select(2, response.body:gsub("\n", "")))
      assert.equal("\n", response.body:sub(-1))
    end
  end)

  it("is YAML when that is preferred", function()
    for _, accept in ipairs { "application/yaml", "application/json;q=0.1,application/yaml",
      "application/json;q=0.1, application/yaml;q=0.2", "*/*,application/yaml" } do
      local response = accepted(accept)
      assert.equal("application/yaml", response["Content-Type"])
      assert.same("v", host.yaml_decode(response.body)[1].data.k)
    end
    assert.equal("application/json", accepted("application/json,application/yaml")["Content-Type"])
  end)

  it("is 406 when nothing fits, in the words of the router for built-in kinds", function()
    local router = "406: Not Acceptable\n\nAvailable representations: " .. TYPES
    local plain = "only the following media types are accepted: " .. TYPES
    for _, case in ipairs {
      { "text/html", CM .. "/a", router }, { "text/html", CM, router .. ", " .. STREAMS },
      { "application/*", CM .. "/a", router }, { "json", CM .. "/a", router },
      { "APPLICATION/JSON", CM .. "/a", router }, { "text/html", WIDGETS .. "/w", plain },
      { "application/json;as=Table", CM .. "/a", plain }, { "application/json;v=v1", CM .. "/a", plain },
      { "application/json;as=Table;v=v2;g=meta.k8s.io", CM, plain },
      { "application/json;as=Bogus;v=v1;g=meta.k8s.io", WIDGETS, plain },
      { "application/vnd.kubernetes.protobuf", WIDGETS, plain },
    } do
      local response = accepted(case[1], case[2])
      assert.equal(406, response.status)
      local document = json.decode(response.body)
      assert.equal(case[3], document.message)
      assert.equal("NotAcceptable", document.reason)
      assert.equal(case[3] ~= plain, document.details ~= nil)
    end
    assert.equal(200, accepted("application/*", WIDGETS).status)
  end)

  it("passes over a transformation that does not exist when another clause fits", function()
    local document = json.decode(accepted("application/json;as=Table;v=v2;g=meta.k8s.io,application/json").body)
    assert.equal("ConfigMap", document.kind)
  end)

  it("is a Status also for those who cannot have what they asked for, laid out for eyes", function()
    local response = accepted("text/html")
    assert.equal("application/json", response["Content-Type"])
    assert.equal('{\n  "apiVersion": "v1",\n', response.body:sub(1, 24))
    assert.equal("}", response.body:sub(-1))
    assert.equal("application/yaml", accepted("application/yaml", CM .. "/nope")["Content-Type"])
    assert.equal(404, accepted(PARTIAL, CM .. "/nope").status)
  end)

  it("is metadata only, for objects and lists, when that is asked for", function()
    local object = json.decode(accepted(PARTIAL).body)
    assert.same({ kind = "PartialObjectMetadata", apiVersion = "meta.k8s.io/v1",
      metadata = { name = "a", namespace = "default", resourceVersion = "2" } }, object)
    for _, path in ipairs { CM, WIDGETS } do
      local document = json.decode(accepted(PARTIAL_LIST, path).body)
      assert.equal("PartialObjectMetadataList", document.kind)
      assert.same({ resourceVersion = "3" }, document.metadata)
      assert.equal("PartialObjectMetadata", document.items[1].kind)
      assert.is_nil(document.items[1].data)
    end
    local older = accepted("application/json;as=PartialObjectMetadata;v=v1beta1;g=meta.k8s.io")
    assert.equal("meta.k8s.io/v1beta1", json.decode(older.body).apiVersion)
  end)

  it("is refused when a list is asked for as an object or an object as a list", function()
    local function message(accept, path)
      local response = accepted(accept, path)
      return ("%d %s"):format(response.status, json.decode(response.body).message)
    end
    assert.equal("406 you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)",
      message(PARTIAL, CM))
    assert.equal("406 you requested PartialObjectMetadata, but the requested object is a list "
      .. "(*unstructured.UnstructuredList)", message(PARTIAL, WIDGETS))
    assert.equal("406 you requested PartialObjectMetadataList, but the requested object is not a list "
      .. "(*core.ConfigMap)", message(PARTIAL_LIST, CM .. "/a"))
    assert.equal("500 content is not a list", message(PARTIAL_LIST, WIDGETS .. "/w"))
  end)

  it("is laid out for eyes when the query, the Accept header or the program asks for it", function()
    local function pretty(query, agent, accept)
      local body = answer(CM .. "/a" .. query, { ["user-agent"] = agent, accept = accept }).body
      assert.equal(body:sub(-1) ~= "\n", body:find("\n  ", 1, true) ~= nil)
      return body:find("\n  ", 1, true) ~= nil
    end
    assert.is_true(pretty("?pretty=true"))
    assert.is_true(pretty("?pretty=1"))
    assert.is_false(pretty("?pretty=abc"))
    assert.is_true(pretty("", "curl/8"))
    assert.is_true(pretty("", "Wget/1"))
    assert.is_true(pretty("", "Mozilla/5.0 (X11)"))
    assert.is_false(pretty("", "Mozilla/4.0"))
    assert.is_false(pretty("?pretty=false", "curl/8"))
    assert.is_true(pretty("", nil, "application/json;pretty=1"))
  end)

  it("is compressed when it is large and the client can take that", function()
    local headers = { ["accept-encoding"] = "deflate, gzip" }
    assert.is_nil(answer(CM .. "/a", headers)["Content-Encoding"])
    rig:put(rig.config_maps, "default", "big", { data = { k = ("v"):rep(128 * 1024) } })
    local response = answer(CM .. "/big", headers)
    assert.equal("gzip", response["Content-Encoding"])
    assert.equal("Accept-Encoding", response.Vary)
    assert.equal("\31\139", response.body:sub(1, 2))
    assert.is_true(#response.body < 2000)
    assert.is_nil(answer(CM .. "/big", {})["Content-Encoding"])
  end)

  it("quotes what the client sent even when that is no text", function()
    local response = answer(CM .. "/%ff")
    assert.equal(404, response.status)
    assert.equal('configmaps "\239\191\189" not found', json.decode(response.body).message)
  end)
end)

describe("a watch", function()
  it("is JSON or nothing", function()
    local rig = reads.new()
    local _, code, document = rig:watch(CM .. "?watch=1", { accept = "application/yaml" })
    assert.equal(406, code)
    assert.equal("only the following media types are accepted: " .. STREAMS, document.message)
  end)
end)

describe("a table", function()
  local TABLE = { accept = "application/json;as=Table;v=v1;g=meta.k8s.io" }
  local rig, asked, module

  -- What rows look like is proved elsewhere; here it is what they are made of.
  before_each(function()
    rig, asked, module = reads.new(), {}, package.loaded["kube.sandbox.table"]
    package.loaded["kube.sandbox.table"] = {
      of = function(R, docs, options)
        asked[#asked + 1] = { R = R, docs = docs, options = options }
        return json.object {
          kind = "Table",
          metadata = options.metadata,
          columnDefinitions = json.array { json.object { name = "Name" } },
          rows = json.array { docs[1] and docs[1].metadata.name },
        }
      end,
    }
    for i = 1, 3 do rig:put(rig.config_maps, "default", "a" .. i) end
  end)

  after_each(function() package.loaded["kube.sandbox.table"] = module end)

  it("is made of whole objects and has the metadata of the list", function()
    local ctx = rig:context(CM .. "?limit=2&includeObject=Object", TABLE)
    local document = json.decode(negotiate.response(ctx, list.run(ctx)).body)
    assert.equal("Table", document.kind)
    assert.equal("4", document.metadata.resourceVersion)
    assert.equal(1, document.metadata.remainingItemCount)
    assert.equal("Object", asked[1].options.include)
    assert.equal("v1", asked[1].options.version)
    assert.equal(1000, asked[1].options.now)
    assert.equal(2, #asked[1].docs)
    assert.equal("ConfigMap", asked[1].docs[2].kind)
    assert.equal("v1", asked[1].docs[2].apiVersion)
  end)

  it("of one object has its version; a Status is none", function()
    local ctx = rig:context(CM .. "/a1", TABLE)
    local doc = rig.store:get("configmaps", "default/a1")
    local document = json.decode(negotiate.response(ctx, 200, doc).body)
    assert.same({ resourceVersion = "2" }, document.metadata)
    assert.equal("Metadata", asked[1].options.include)
    local deleted = status.success(ctx.R, "a1", "u")
    assert.equal("Status", json.decode(negotiate.response(ctx, 200, deleted).body).kind)
  end)

  it("is refused when its objects are asked for in no known way", function()
    local ctx = rig:context(CM .. "?includeObject=Bogus", TABLE)
    local _, e = pcall(negotiate.response, ctx, list.run(ctx))
    assert.equal("Unable to convert to Table as requested: includeObject: Invalid value: \"Bogus\": must be "
      .. "'Metadata', 'Object', 'None', or empty", e.document.message)
  end)

  it("comes per event in a watch, with the columns in the first one only", function()
    local stream = rig:watch(CM .. "?watch=1&allowWatchBookmarks=1", TABLE)
    rig:put(rig.config_maps, "default", "a1")
    rig.turn()
    local events = stream:events()
    assert.equal(5, #events)
    assert.equal("Name", events[1].object.columnDefinitions[1].name)
    assert.equal("2", events[1].object.metadata.resourceVersion)
    for i = 2, 5 do assert.equal(json.null, events[i].object.columnDefinitions) end
    assert.equal("BOOKMARK", events[4].type)
    assert.equal("Table", events[4].object.kind)
    assert.equal("5", events[5].object.metadata.resourceVersion)
  end)
end)

describe("indented JSON", function()
  it("has two spaces per level and leaves empty values and texts alone", function()
    assert.equal('{\n  "a": [\n    1,\n    {\n      "b": {}\n    },\n    []\n  ],\n  "c": "x:{\\"},\\\\"\n}',
      media.indent('{"a":[1,{"b":{}},[]],"c":"x:{\\"},\\\\"}'))
    assert.equal("null", media.indent("null"))
  end)

  it("is the same document", function()
    local random = support.random(11)
    for _ = 1, 200 do
      local text = json.encode(json.decode(support.document(random)))
      assert.equal(text, json.encode(json.decode(media.indent(text))))
    end
  end)
end)

describe("text from outside", function()
  it("keeps what is UTF-8 and replaces each other byte", function()
    local bad = "\239\191\189"
    for given, expected in pairs {
      ["plain"] = "plain", ["ключ 😀"] = "ключ 😀", ["a\255b"] = "a" .. bad .. "b", ["\192\175"] = bad .. bad,
      ["\237\160\128"] = bad .. bad .. bad, ["\226\130"] = bad .. bad, ["\244\144\128\128"] = bad:rep(4),
    } do
      assert.equal(expected, utf8.valid(given))
    end
  end)
end)
