-- moonwatch test examples/replicator
local kt = require "kube.test"

local SECRETS = "v1/secrets"

local function namespace(name) return { apiVersion = "v1", kind = "Namespace", metadata = { name = name } } end

local function secret(patterns)
  return { apiVersion = "v1", kind = "Secret", stringData = { password = "x" },
    metadata = { name = "db", namespace = "default", annotations = { ["example.com/replicate-to"] = patterns } } }
end

describe("the replicator", function()
  local t

  before_each(function()
    t = kt.new { script = "replicator.lua",
      manifests = { namespace "team-a", namespace "web", namespace "other", secret "team-*, web" } }
  end)

  it("copies a secret into every namespace that it names", function()
    local writes = kt.summary(t:settle())
    table.sort(writes)
    assert.same({ "apply v1/secrets team-a/db", "apply v1/secrets web/db" }, writes)
    assert.same(t:get(SECRETS, "default/db").data, t:get(SECRETS, "web/db").data)
    assert.is_nil(t:get(SECRETS, "other/db"))
  end)

  it("copies it into one that comes later", function()
    t:settle()
    t:create(namespace "team-b")
    assert.same({ "apply v1/secrets team-b/db" }, kt.summary(t:settle()))
  end)

  it("takes the copies away that are not wanted any more", function()
    t:settle()
    t:patch(SECRETS, "default/db", { metadata = { annotations = { ["example.com/replicate-to"] = "web" } } })
    assert.same({ "delete v1/secrets team-a/db" }, kt.summary(t:settle()))
    t:delete(SECRETS, "default/db")
    assert.same({ "delete v1/secrets web/db" }, kt.summary(t:settle()))
  end)

  it("puts a copy back that somebody removed or changed", function()
    t:settle()
    t:delete(SECRETS, "web/db")
    assert.same({ "apply v1/secrets web/db" }, kt.summary(t:settle()))
    t:patch(SECRETS, "web/db", { data = { password = "b3RoZXI=" } })
    assert.same({ "apply v1/secrets web/db" }, kt.summary(t:settle()))
    assert.same(t:get(SECRETS, "default/db").data, t:get(SECRETS, "web/db").data)
  end)

  it("follows a change of its source", function()
    t:settle()
    t:patch(SECRETS, "default/db", { stringData = { password = "new" } })
    local writes = kt.summary(t:settle())
    table.sort(writes)
    assert.same({ "apply v1/secrets team-a/db", "apply v1/secrets web/db" }, writes)
  end)
end)
