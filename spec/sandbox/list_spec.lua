-- Lists of the sandbox: versions, pages, selectors, shapes, and the server's words for the rest.
local host = require "spec.support.sandbox_env"
local json = require "kube.sandbox.json"
local reads = require "spec.support.sandbox_reads"

local CM = "/api/v1/namespaces/default/configmaps"
local WIDGETS = "/apis/ex.io/v1/namespaces/default/widgets"

local function token(revision, start)
  return host.base64url(('{"v":"meta.k8s.io/v1","rv":%d,"start":%s}'):format(revision, json.encode(start)))
end

describe("a list", function()
  local rig

  before_each(function()
    rig = reads.new()
    for i = 1, 5 do rig:put(rig.config_maps, "default", "p" .. i, { labels = { a = tostring(i), x = "1" } }) end
    rig:put(rig.config_maps, "other", "q1")
    for i = 1, 3 do rig:put(rig.widgets, "default", "w" .. i, { spec = { size = i, color = "red" } }) end
  end)

  local function refused(query, path)
    local code, document = rig:list((path or CM) .. "?" .. query)
    assert.is_true(code >= 400, query)
    return document.message, code, document
  end

  it("has the store's revision and items in order, of one namespace or of all", function()
    local names, m = rig:names(CM)
    assert.equal("p1 p2 p3 p4 p5", names)
    assert.same({ resourceVersion = "10" }, m)
    assert.equal("p1 p2 p3 p4 p5 q1", (rig:names("/api/v1/configmaps")))
    assert.equal("", (rig:names("/api/v1/namespaces/empty/configmaps")))
  end)

  it("says what its items are once for built-in kinds and in each item for custom ones", function()
    local _, config_maps = rig:list(CM .. "?limit=1")
    assert.equal("ConfigMapList", config_maps.kind)
    assert.equal("v1", config_maps.apiVersion)
    assert.is_nil(config_maps.items[1].kind)
    assert.is_nil(config_maps.items[1].apiVersion)
    local _, widgets = rig:list(WIDGETS)
    assert.equal("WidgetList", widgets.kind)
    assert.equal("Widget", widgets.items[1].kind)
    assert.equal("ex.io/v1", widgets.items[1].apiVersion)
    assert.equal("", widgets.metadata.continue)
    assert.equal("ConfigMap", rig.store:get("configmaps", "default/p1").kind)
  end)

  it("is an array also when it is empty", function()
    local _, document = rig:list(CM .. "?labelSelector=nope")
    assert.equal('"items":[]', json.encode(document):match('"items":%b[]'))
  end)

  it("selects by labels and fields", function()
    assert.equal("p2 p3", (rig:names(CM .. "?labelSelector=a%20in%20(2,3)")))
    assert.equal("p3", (rig:names(CM .. "?fieldSelector=metadata.name%3Dp3")))
    assert.equal("w2", (rig:names(WIDGETS .. "?fieldSelector=spec.size%3D2,spec.color%3Dred")))
  end)

  it("comes in pages of one version, with what is left to come", function()
    local names, m = rig:names(CM .. "?limit=2")
    assert.equal("p1 p2", names)
    assert.equal('{"v":"meta.k8s.io/v1","rv":10,"start":"/p2\\u0000"}', host.unbase64url(m.continue))
    assert.equal(3, m.remainingItemCount)
    rig:delete(rig.config_maps, "default", "p4")
    rig:put(rig.config_maps, "default", "p3", { labels = { changed = "yes" } })
    rig:put(rig.config_maps, "default", "p35")
    local _, second = rig:list(CM .. "?limit=2&continue=" .. m.continue)
    assert.equal("p3", second.items[1].metadata.name)
    assert.equal("3", second.items[1].metadata.labels.a)
    assert.equal("p4", second.items[2].metadata.name)
    assert.equal("10", second.metadata.resourceVersion)
    assert.equal(1, second.metadata.remainingItemCount)
    names, m = rig:names(CM .. "?limit=2&continue=" .. second.metadata.continue)
    assert.equal("p5", names)
    assert.same({ resourceVersion = "10" }, m)
  end)

  it("continues across namespaces, and does not count what is left of a selection", function()
    local names, m = rig:names("/api/v1/configmaps?limit=5&labelSelector=x")
    assert.equal("p1 p2 p3 p4 p5", names)
    assert.equal("/default/p5\0", json.decode(host.unbase64url(m.continue)).start)
    assert.is_nil(m.remainingItemCount)
    assert.equal("", (rig:names("/api/v1/configmaps?limit=5&labelSelector=x&continue=" .. m.continue)))
  end)

  it("has no next page when the last item is on this one", function()
    local _, m = rig:names(CM .. "?limit=5")
    assert.is_nil(m.continue)
  end)

  it("shows the past when an exact version is asked for, in both ways", function()
    rig:delete(rig.config_maps, "default", "p1")
    assert.equal("p2 p3 p4 p5", (rig:names(CM .. "?resourceVersion=4")))
    local names, m = rig:names(CM .. "?resourceVersion=4&resourceVersionMatch=Exact")
    assert.equal("p1 p2 p3", names)
    assert.equal("4", m.resourceVersion)
    names, m = rig:names(CM .. "?resourceVersion=4&limit=2")
    assert.equal("p1 p2", names)
    assert.equal(1, m.remainingItemCount)
    names, m = rig:names(CM .. "?resourceVersion=4&limit=2&resourceVersionMatch=NotOlderThan")
    assert.equal("p2 p3", names)
    assert.equal("11", m.resourceVersion)
    assert.equal("", (rig:names(CM .. "?resourceVersion=1&resourceVersionMatch=Exact")))
  end)

  it("looks only where its field selector can find something, on the first page", function()
    local names, m = rig:names("/api/v1/configmaps?limit=1&fieldSelector=metadata.namespace%3Ddefault")
    assert.equal("p1", names)
    assert.equal("", (rig:names("/api/v1/configmaps?limit=1&fieldSelector=metadata.namespace%3Ddefault&continue="
      .. m.continue)))
    names, m = rig:names(CM .. "?limit=1&fieldSelector=metadata.name%3Dp2")
    assert.equal("p2", names)
    assert.is_nil(m.continue)
  end)

  it("knows no pages at version 0, with or without a token", function()
    local names, m = rig:names(CM .. "?resourceVersion=0&limit=2")
    assert.equal("p1 p2 p3 p4 p5", names)
    assert.is_nil(m.continue)
    assert.equal("p4 p5", (rig:names(CM .. "?resourceVersion=0&limit=1&continue=" .. token(10, "/p3\0"))))
  end)

  it("comes in pages at version 0 too for events, of which the server keeps no cache", function()
    local events = rig.S.kinds:find("", "v1", "events")
    for i = 1, 3 do rig:put(events, "default", "e" .. i) end
    for _, path in ipairs { "/api/v1/events", "/apis/events.k8s.io/v1/events" } do
      local names, m = rig:names(path .. "?resourceVersion=0&limit=2")
      assert.equal("e1 e2", names)
      assert.equal(1, m.remainingItemCount)
      assert.equal("e3", (rig:names(path .. "?limit=2&continue=" .. m.continue)))
    end
  end)

  it("says 410 for a version that is forgotten, and how to go on after a token that is", function()
    local _, m = rig:names(CM .. "?limit=2")
    rig:put(rig.config_maps, "default", "p6")
    rig.store:expire()
    local text, code = refused("resourceVersion=4&resourceVersionMatch=Exact")
    assert.equal("The resourceVersion for the provided list is too old.", text)
    assert.equal(410, code)
    local document
    text, code, document = refused("limit=2&continue=" .. m.continue)
    assert.equal(410, code)
    assert.equal("Expired", document.reason)
    assert.is_truthy(text:find("^The provided continue parameter is too old to display a consistent list result%."))
    assert.equal('{"v":"meta.k8s.io/v1","rv":-1,"start":"p2\\u0000"}', host.unbase64url(document.metadata.continue))
    local names, next_page = rig:names(CM .. "?limit=2&continue=" .. document.metadata.continue)
    assert.equal("p3 p4", names)
    assert.equal("11", next_page.resourceVersion)
    assert.equal("p5 p6", (rig:names(CM .. "?continue=" .. next_page.continue)))
  end)

  it("says 504 for a version of the future, at once", function()
    for _, query in ipairs { "resourceVersion=99", "resourceVersion=99&resourceVersionMatch=Exact",
      "resourceVersion=99&limit=1", "continue=" .. token(99, "/p1\0") } do
      local code, document, e = rig:list(CM .. "?" .. query)
      assert.equal(504, code)
      assert.equal("Timeout: Too large resource version: 99, current: 10", document.message)
      assert.equal("ResourceVersionTooLarge", document.details.causes[1].reason)
      assert.same({ { "Retry-After", "1" } }, e.headers)
    end
  end)

  it("refuses numbers that are none, in Go's words", function()
    for query, text in pairs {
      ["limit=abc"] = 'strconv.ParseInt: parsing "abc": invalid syntax',
      ["limit="] = 'strconv.ParseInt: parsing "": invalid syntax',
      ["limit=99999999999999999999"] = 'strconv.ParseInt: parsing "99999999999999999999": value out of range',
      ["timeoutSeconds=1.5"] = 'strconv.ParseInt: parsing "1.5": invalid syntax',
      ["resourceVersion=abc"] = 'invalid resource version: resourceVersion: Invalid value: "abc": '
        .. 'strconv.ParseUint: parsing "abc": invalid syntax',
      ["resourceVersion=-1"] = 'invalid resource version: resourceVersion: Invalid value: "-1": '
        .. 'strconv.ParseUint: parsing "-1": invalid syntax',
    } do
      local message, code = refused(query)
      assert.equal(text, message)
      assert.equal(400, code)
    end
    assert.equal("p1 p2 p3 p4 p5", (rig:names(CM .. "?limit=-1")))
  end)

  it("refuses options that do not go together", function()
    local head = 'ListOptions.meta.k8s.io "" is invalid: '
    local without = "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is "
      .. "provided"
    local unsupported = 'resourceVersionMatch: Unsupported value: "Bogus": '
      .. 'supported values: "Exact", "NotOlderThan", ""'
    for query, text in pairs {
      ["resourceVersionMatch=Exact"] = without,
      ["resourceVersionMatch=Bogus"] = ("[%s, %s]"):format(without, unsupported),
      ["resourceVersion=5&resourceVersionMatch=Bogus"] = unsupported,
      ["resourceVersion=0&resourceVersionMatch=Exact"] =
        'resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
      ["sendInitialEvents=false"] = "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list",
      ["resourceVersion=5&resourceVersionMatch=Exact&continue=x"] =
        "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided",
    } do
      local message, code, document = refused(query)
      assert.equal(head .. text, message)
      assert.equal(422, code)
      assert.equal("ListOptions", document.details.kind)
      assert.equal("meta.k8s.io", document.details.group)
    end
    assert.equal("specifying resource version is not allowed when using continue",
      (refused("resourceVersion=5&continue=" .. token(10, "/p1\0"))))
  end)

  it("refuses tokens that it did not make", function()
    local head = "invalid continue token: continue key is not valid: "
    for given, text in pairs {
      ["%25%25"] = "illegal base64 data at input byte 0",
      [host.base64url("notjson")] = "invalid character 'o' in literal null (expecting 'u')",
      [host.base64url("{")] = "unexpected end of JSON input",
      [host.base64url("[]")] = "json: cannot unmarshal array into Go value of type storage.continueToken",
      [host.base64url('{"v":1}')] = "json: cannot unmarshal number into Go struct field continueToken.v of type string",
      [host.base64url('{"rv":1.5}')] =
        "json: cannot unmarshal number 1.5 into Go struct field continueToken.rv of type int64",
      [host.base64url('{"v":"v0","rv":1}')] = "server does not recognize this encoded version v0",
      [host.base64url("null")] = "server does not recognize this encoded version ",
      [token(0, "/a")] = "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
      [token(5, "")] = "encoded start key empty (version meta.k8s.io/v1)",
      [token(-1, "../p4")] = "../p4",
      [token(-1, "/a/../p4")] = "/a/../p4",
      [token(-1, "//p4")] = "//p4",
    } do
      local message, code = refused("continue=" .. given)
      assert.equal(head .. text, message)
      assert.equal(400, code)
    end
    assert.equal("p5", (rig:names(CM .. "?continue=" .. token(-1, "p4\0"))))
  end)

  it("complains of numbers first, then selectors, then combinations, then fields, then versions", function()
    assert.is_truthy(refused("limit=abc&labelSelector=%3D"):find("strconv", 1, true))
    assert.is_truthy(refused("labelSelector=%3D&fieldSelector=x"):find("found '='", 1, true))
    assert.is_truthy(refused("fieldSelector=x&resourceVersionMatch=Exact"):find("can't understand", 1, true))
    assert.is_truthy(refused("fieldSelector=x%3D1&resourceVersionMatch=Exact"):find("ListOptions", 1, true))
    assert.is_truthy(refused("fieldSelector=x%3D1&resourceVersion=abc"):find("not a known field", 1, true))
  end)

  it("survives bytes that are not text", function()
    local message = refused("labelSelector=a%3D%ff")
    assert.is_truthy(message:find('Invalid value: "\239\191\189"', 1, true))
  end)
end)
