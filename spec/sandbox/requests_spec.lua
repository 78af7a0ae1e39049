-- What the sandbox was asked: by whom, for what, how often.
local rig = require "spec.support.sandbox_rig"

local requests = require "kube.sandbox.requests"

local CM = "/api/v1/namespaces/default/configmaps"

describe("the sandbox's requests", function()
  local box
  before_each(function() box = rig.new { seed = 7 } end)

  local function asked(query)
    local code, document = box:get("/sandbox/v1/requests" .. (query or ""))
    assert.are.equal(200, code)
    return document
  end

  it("are listed in order, with who asked for what and what became of it", function()
    box:create(CM, { metadata = { generateName = "a-" } })
    box:get(CM .. "/none")
    box:get("/version")
    local items = asked().items
    assert.are.equal(3, #items)
    local create = items[1]
    assert.are.same({ 1, "create", "", "v1", "configmaps", "default", "spec/1", 201, true, "application/json" },
      { create.id, create.verb, create.group, create.version, create.resource, create.namespace, create.user_agent,
        create.status, create.changed, create.content_type })
    assert.is_truthy(create.name:find("^a%-.....$"))
    assert.are.equal("a-", create.body.metadata.generateName)
    assert.are.same({ "get", "none", 404 }, { items[2].verb, items[2].name, items[2].status })
    assert.is_nil(items[2].changed)
    assert.are.same({ "/version", 200 }, { items[3].path, items[3].status })
    assert.is_nil(items[3].resource)
  end)

  it("tell writes that changed something from those that did not", function()
    box:create(CM, { metadata = { name = "a" }, data = { k = "v" } })
    box:merge(CM .. "/a", { data = { k = "v" } })
    box:merge(CM .. "/a?dryRun=All", { data = { k = "w" } })
    box:merge(CM .. "/a", { data = { k = "w" } })
    box:delete(CM .. "/a")
    local changed = {}
    for i, item in ipairs(asked().items) do changed[i] = item.changed end
    assert.are.same({ true, false, false, true, true }, changed)
  end)

  it("are chosen by what they were about, and by when", function()
    box:create(CM, { metadata = { name = "a" } })
    box:get(CM)
    box:get(CM .. "/a")
    box:get("/api/v1/namespaces/default/secrets")
    local function paths(query)
      local found = {}
      for i, item in ipairs(asked(query).items) do found[i] = item.verb .. " " .. item.resource end
      return table.concat(found, ", ")
    end
    assert.are.equal("list configmaps, list secrets", paths "?verb=list")
    assert.are.equal("list configmaps", paths "?verb=list&resource=configmaps")
    assert.are.equal("create configmaps, get configmaps", paths "?name=a")
    assert.are.equal("get configmaps, list secrets", paths "?since=2")
    assert.are.equal("", paths "?since=99")
  end)

  it("are counted by verb and resource, and forgotten on demand", function()
    for i = 1, 3 do box:create(CM, { metadata = { name = "a" .. i } }) end
    for _ = 1, 2 do box:get(CM) end
    box:get("/api/v1/nothings")
    local counts = asked().counts
    assert.are.equal(2, #counts)
    assert.are.same({ "create", "configmaps", 3 }, { counts[1].verb, counts[1].resource, counts[1].count })
    assert.are.same({ "list", "configmaps", 2 }, { counts[2].verb, counts[2].resource, counts[2].count })
    local last = asked().last
    box:delete("/sandbox/v1/requests")
    assert.are.same({ 0, 0, last }, { #asked().items, #asked().counts, asked().last })
    box:get(CM)
    assert.are.equal(last + 1, asked().items[1].id)
  end)

  it("have the method for a verb where there is no such", function()
    assert.are.equal(405, (box:request("OPTIONS", CM)))
    assert.are.equal("options", asked().items[1].verb)
    assert.are.equal("options", asked().counts[1].verb)
  end)

  it("leave out the sandbox's own controllers and /sandbox/v1", function()
    box:create("/api/v1/namespaces", { metadata = { name = "n" } })
    asked()
    local items = asked().items
    assert.are.equal(1, #items)
    assert.are.equal("namespaces", items[1].resource)
  end)

  it("name the fault that they ran into", function()
    local _, fault = box:post("/sandbox/v1/faults", { verb = "list", status = 503 })
    box:get(CM)
    box:post("/sandbox/v1/faults", { verb = "list", cut = true })
    box:get(CM)
    local items = asked().items
    assert.are.same({ fault.id, 503 }, { items[1].fault, items[1].status })
    assert.are.equal(0, items[2].status)
  end)

  it("have what was applied as YAML as a document, and nothing of what cannot be read", function()
    local apply = { ["content-type"] = "application/apply-patch+yaml" }
    box:request("PATCH", CM .. "/a?fieldManager=m", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", apply)
    box:request("PATCH", CM .. "/a?fieldManager=m", "{{{", apply)
    local items = asked("?verb=patch").items
    assert.are.same({ 201, "ConfigMap" }, { items[1].status, items[1].body.kind })
    assert.are.equal(400, items[2].status)
    assert.is_nil(items[2].body)
  end)

  it("refuse a filter that they do not know", function()
    local refused = { ["?verbs=get"] = "unknown parameter 'verbs'", ["?since=x"] = "'since' must be a number" }
    for query, text in pairs(refused) do
      local code, document = box:get("/sandbox/v1/requests" .. query)
      assert.are.equal(400, code)
      assert.is_truthy(document.message:find(text, 1, true), document.message)
    end
  end)

  describe("have bounds:", function()
    local function limited(limits)
      for name, limit in pairs(requests.LIMITS) do limits[name] = limits[name] or limit end
      box.S.requests = requests.new(limits)
    end

    it("the oldest go first, and counts stay", function()
      limited { entries = 3 }
      for i = 1, 8 do box:get(CM .. "/a" .. i) end
      local document = asked()
      assert.are.same({ 3, 5, "a6", "a8", 8 }, { #document.items, document.dropped, document.items[1].name,
        document.items[3].name, document.counts[1].count })
    end)

    it("bodies count by their length, and a long one is not kept", function()
      limited { bytes = 1000, body = 600 }
      for _, size in ipairs { 500, 500, 700 } do
        box:create(CM, { metadata = { generateName = "a-" }, data = { k = ("x"):rep(size) } })
      end
      local document = asked()
      assert.are.same({ 2, 1 }, { #document.items, document.dropped })
      assert.are.equal(500, #document.items[1].body.data.k)
      assert.is_nil(document.items[2].body)
    end)

    it("what is counted apart", function()
      limited { counts = 2 }
      for _, resource in ipairs { "configmaps", "secrets", "pods", "services", "pods" } do
        box:get("/api/v1/" .. resource)
      end
      local counts = asked().counts
      assert.are.equal(3, #counts)
      assert.are.same({ "other", 3 }, { counts[3].verb, counts[3].count })
    end)
  end)
end)
