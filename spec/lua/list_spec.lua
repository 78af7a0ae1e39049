-- Lists of clients: pages, selectors, and pages that expire.
local cleanup = require "spec.support.cleanup"
local rig = require "spec.support.client_rig"

local function list(names, more)
  local items = {}
  for i, name in ipairs(names) do items[i] = ('{"metadata":{"name":"%s","namespace":"d"}}'):format(name) end
  return { body = ('{"apiVersion":"v1","kind":"ConfigMapList","metadata":{"resourceVersion":"7"%s},"items":[%s]}')
    :format(more or "", table.concat(items, ",")) }
end

local function continue(token) return (',"continue":"%s","remainingItemCount":9'):format(token) end

local expired = rig.status(410, "Expired", "the continue token is too old", ',"metadata":{"continue":"now"}')

describe("a list of a client", function()
  cleanup.install()

  it("has every object with apiVersion and kind, read in pages of 500", function()
    local server = rig.serve(function(request)
      if request.query.continue == "two" then return list({ "c" }, continue("three")) end
      if request.query.continue == "three" then return list({}) end
      return list({ "a", "b" }, continue("two"))
    end)
    rig.run(server, [[
      local items, metadata = client:list("v1/configmaps", { namespace = "d" })
      same({ "a", "b", "c" }, { items[1].metadata.name, items[2].metadata.name, items[3].metadata.name })
      same({ 3, "v1", "ConfigMap", "7" }, { #items, items[3].apiVersion, items[3].kind, metadata.resourceVersion })
      assert(metadata.continue == nil and metadata.remainingItemCount == nil)
      items = client:try_list("v1/configmaps", { page_size = 2, resource_version = "0" })
      same(3, #items)
    ]])
    assert.are.same({
      "GET /api/v1/namespaces/d/configmaps?limit=500",
      "GET /api/v1/namespaces/d/configmaps?continue=two&limit=500",
      "GET /api/v1/namespaces/d/configmaps?continue=three&limit=500",
      "GET /api/v1/configmaps?limit=2&resourceVersion=0",
      "GET /api/v1/configmaps?continue=two&limit=2",
      "GET /api/v1/configmaps?continue=three&limit=2",
    }, rig.lines(server))
  end)

  it("with a limit is one page, and its metadata leads on", function()
    local server = rig.serve(function(request)
      return request.query.continue and list({ "b" }) or list({ "a" }, continue("two"))
    end)
    rig.run(server, [[
      local items, metadata = client:list("v1/configmaps", { limit = 1 })
      same({ 1, "two", 9 }, { #items, metadata.continue, metadata.remainingItemCount })
      items, metadata = client:list("v1/configmaps", { limit = 1, continue = metadata.continue })
      same({ "b", "nil" }, { items[1].metadata.name, tostring(metadata.continue) })
    ]])
    assert.are.same({ "GET /api/v1/configmaps?limit=1", "GET /api/v1/configmaps?continue=two&limit=1" },
      rig.lines(server))
  end)

  it("takes selectors as text and as tables, and sends them in one form", function()
    local server = rig.serve(function() return list({}) end)
    rig.run(server, [[
      for _, labels in ipairs { "tier in (b, a),app=web", { matchLabels = { app = "web" },
        matchExpressions = { { key = "tier", operator = "In", values = { "a", "b" } } } } } do
        client:list("v1/configmaps", { label_selector = labels, page_size = 0 })
      end
      client:list("v1/configmaps", { field_selector = { ["metadata.name"] = "a,b" }, page_size = 0 })
      client:list("v1/configmaps", { field_selector = "metadata.name!=x", label_selector = "", page_size = 0 })
    ]])
    local got = {}
    for i, request in ipairs(server.requests) do
      got[i] = (request.query.labelSelector or "-") .. " " .. (request.query.fieldSelector or "-")
    end
    assert.are.same({ "app=web,tier in (a,b) -", "app=web,tier in (a,b) -", "- metadata.name=a\\,b",
      "- metadata.name!=x" }, got)
  end)

  it("of which a page has expired is read anew, in one piece", function()
    local server = rig.serve(function(request)
      if request.query.continue then return expired end
      return request.query.limit and list({ "old" }, continue("two")) or list({ "new" })
    end)
    rig.run(server, [[
      local items = client:list("v1/configmaps")
      same({ 1, "new" }, { #items, items[1].metadata.name })
      client:list("v1/configmaps", { resource_version = "5", resource_version_match = "NotOlderThan" })
    ]])
    local match = "resourceVersion=5&resourceVersionMatch=NotOlderThan"
    assert.are.same({ "GET /api/v1/configmaps?limit=500", "GET /api/v1/configmaps?continue=two&limit=500",
      "GET /api/v1/configmaps", "GET /api/v1/configmaps?limit=500&" .. match,
      "GET /api/v1/configmaps?continue=two&limit=500", "GET /api/v1/configmaps?" .. match }, rig.lines(server))
  end)

  it("that fails in the middle gives nothing", function()
    local server = rig.serve(function(request)
      return request.query.continue and rig.status(403, "Forbidden", "no more") or list({ "a" }, continue("two"))
    end)
    rig.run(server, [[
      same("forbidden", failure(client.list, client, "v1/configmaps").code)
      local none, err = client:try_list("v1/configmaps")
      same({ "nil", "forbidden" }, { tostring(none), err.code })
    ]])
  end)

  it("has one timeout for all pages", function()
    local server = rig.serve(function(request)
      return request.query.continue and { silent = true } or list({ "a" }, continue("two"))
    end)
    rig.run(server, [[
      same("timeout", select(2, client:try_list("v1/configmaps", { timeout = 0.2 })).code)
    ]])
  end)

  it("is refused when the answer is none, and empty when it has none", function()
    rig.run(rig.serve(function(request)
      return { body = request.path:find("pods$") and '{"kind":"PodList","items":null}'
        or request.path:find("nodes$") and "<html>" or '{"kind":"Pod"}' }
    end), [[
      local err = failure(client.list, client, "v1/configmaps")
      assert(err.message:find("client:list: the answer for v1/configmaps is not a list", 1, true), err.message)
      same(0, #client:list("v1/pods"))
      local _
      _, err = client:try_list("v1/nodes")
      assert(err.message:find("client:try_list: the answer of GET /api/v1/nodes is not JSON", 1, true), err.message)
    ]])
  end)
end)

describe("client:each", function()
  cleanup.install()

  it("reads a page when the one before is used up", function()
    local server = rig.serve(function(request)
      return request.query.continue and list({ "c" }) or list({ "a", "b" }, continue("two"))
    end)
    rig.run(server, [[
      local names = {}
      for object in client:each("v1/configmaps", { page_size = 2, label_selector = "a" }) do
        names[#names + 1] = object.metadata.name .. object.kind
        if #names == 2 then kube.request { path = "/between" } end
      end
      same({ "aConfigMap", "bConfigMap", "cConfigMap" }, names)
      for object in client:each("v1/configmaps") do
        if object.metadata.name == "a" then break end
      end
      local err = failure(client.each, client, "v1/configmaps", { limit = 5 })
      assert(err:find("client:each has no option 'limit'", 1, true), err)
    ]])
    assert.are.same({
      "GET /api/v1/configmaps?labelSelector=a&limit=2",
      "GET /between",
      "GET /api/v1/configmaps?continue=two&labelSelector=a&limit=2",
      "GET /api/v1/configmaps?limit=500",
    }, rig.lines(server))
  end)

  it("goes on in the state of now where a page has expired, and raises when the server names no place", function()
    local server = rig.serve(function(request)
      if request.query.continue == "two" then return expired end
      if request.query.continue == "now" then return list({ "b" }) end
      if request.query.continue == "lost" then return rig.status(410, "Expired", "too old") end
      return list({ "a" }, continue(request.query.labelSelector or "two"))
    end)
    rig.run(server, [[
      local names = {}
      for object in client:each("v1/configmaps") do names[#names + 1] = object.metadata.name end
      same({ "a", "b" }, names)
      local err = failure(function()
        for object in client:each("v1/configmaps", { label_selector = "lost" }) do names[#names + 1] = object end
      end)
      assert(kube.is_resource_expired(err) and tostring(err):find("script%.lua:%d+: too old$"), tostring(err))
      same(3, #names)
    ]])
  end)
end)
