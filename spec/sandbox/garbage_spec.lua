-- Owners and what they own, and namespaces and what they hold.
local rig = require "spec.support.sandbox_rig"

local CM = "/api/v1/namespaces/default/configmaps"

local function owned_by(owner, options)
  options = options or {}
  return {
    apiVersion = owner.apiVersion, kind = owner.kind, name = owner.metadata.name,
    uid = options.uid or owner.metadata.uid, blockOwnerDeletion = options.block, controller = options.controller,
  }
end

describe("the sandbox's garbage collector", function()
  local box, owner

  before_each(function()
    box = rig.new { seed = 7 }
    owner = box:create(CM, { metadata = { name = "owner" } })
  end)

  local function dependent(name, ...)
    return box:create(CM, { metadata = { name = name, ownerReferences = { ... } } })
  end

  it("deletes what is owned once its owner is gone", function()
    dependent("child", owned_by(owner))
    local events = box:watch(CM .. "?watch=1&resourceVersion=" .. box.S.store.revision)
    box:delete(CM .. "/owner")
    assert.are.equal("DELETED owner, DELETED child", rig.summary(events))
  end)

  it("deletes the owned of the owned", function()
    local child = dependent("child", owned_by(owner))
    dependent("grandchild", owned_by(child))
    box:delete(CM .. "/owner")
    assert.are.equal(404, (box:get(CM .. "/grandchild")))
  end)

  it("keeps an object that has another owner, and takes the lost one off it", function()
    local other = box:create(CM, { metadata = { name = "other" } })
    dependent("child", owned_by(owner), owned_by(other))
    box:delete(CM .. "/owner")
    local _, child = box:get(CM .. "/child")
    assert.are.equal(1, #child.metadata.ownerReferences)
    assert.are.equal("other", child.metadata.ownerReferences[1].name)
  end)

  it("deletes an object whose owner never was", function()
    box:post(CM, { metadata = { name = "child", ownerReferences = { owned_by(owner, { uid = "no-such-uid" }) } } })
    assert.are.equal(404, (box:get(CM .. "/child")))
  end)

  it("counts an owner in another namespace as absent", function()
    box:create("/api/v1/namespaces", { metadata = { name = "far" } })
    box:post("/api/v1/namespaces/far/configmaps",
      { metadata = { name = "child", ownerReferences = { owned_by(owner) } } })
    assert.are.equal(404, (box:get("/api/v1/namespaces/far/configmaps/child")))
  end)

  it("leaves alone what is owned by a kind that is not served", function()
    box:post(CM, { metadata = { name = "child", ownerReferences = {
      { apiVersion = "nope.io/v1", kind = "Nope", name = "n", uid = "u" } } } })
    assert.are.equal(200, (box:get(CM .. "/child")))
  end)

  it("in the foreground deletes the owned first, then the owner", function()
    dependent("child", owned_by(owner, { block = true }))
    local events = box:watch(CM .. "?watch=1&resourceVersion=" .. box.S.store.revision)
    local code, document = box:delete(CM .. "/owner", { propagationPolicy = "Foreground" })
    assert.are.equal(200, code)
    assert.are.equal("foregroundDeletion", document.metadata.finalizers[1])
    assert.are.equal("MODIFIED owner, DELETED child, DELETED owner", rig.summary(events))
  end)

  it("in the foreground waits for what blocks the owner", function()
    local child = dependent("child", owned_by(owner, { block = true }))
    box:merge(CM .. "/child", { metadata = { finalizers = { "example.com/hold" } } })
    box:delete(CM .. "/owner", { propagationPolicy = "Foreground" })
    assert.are.equal(200, (box:get(CM .. "/owner")))
    box:merge(CM .. "/" .. child.metadata.name, { metadata = { finalizers = require("kube.sandbox.json").null } })
    assert.are.equal(404, (box:get(CM .. "/child")))
    assert.are.equal(404, (box:get(CM .. "/owner")))
  end)

  it("orphans what is owned when asked to, then lets the owner go", function()
    dependent("child", owned_by(owner))
    local events = box:watch(CM .. "?watch=1&resourceVersion=" .. box.S.store.revision)
    box:delete(CM .. "/owner", { propagationPolicy = "Orphan" })
    assert.are.equal("MODIFIED owner, MODIFIED child, DELETED owner", rig.summary(events))
    local _, child = box:get(CM .. "/child")
    assert.is_nil(child.metadata.ownerReferences)
  end)

  it("goes on after a snapshot was restored", function()
    dependent("child", owned_by(owner))
    local _, snapshot = box:get("/sandbox/v1/snapshot")
    box:delete(CM .. "/owner")
    assert.are.equal(200, (box:put("/sandbox/v1/snapshot", snapshot)))
    assert.are.equal(200, (box:get(CM .. "/child")))
    box:delete(CM .. "/owner")
    assert.are.equal(404, (box:get(CM .. "/child")))
  end)
end)

describe("a namespace of the sandbox", function()
  local box
  before_each(function() box = rig.new { seed = 7 } end)

  it("is born active, with a service account and the server's certificate", function()
    local namespace = box:create("/api/v1/namespaces", { metadata = { name = "a" } })
    assert.are.equal("Active", namespace.status.phase)
    assert.are.equal("a", namespace.metadata.labels["kubernetes.io/metadata.name"])
    assert.are.equal(200, (box:get("/api/v1/namespaces/a/serviceaccounts/default")))
    assert.are.equal(200, (box:get("/api/v1/namespaces/a/configmaps/kube-root-ca.crt")))
  end)

  it("takes everything with it when it is deleted", function()
    box:create("/api/v1/namespaces", { metadata = { name = "a" } })
    box:create("/api/v1/namespaces/a/configmaps", { metadata = { name = "x" } })
    local code, document = box:delete("/api/v1/namespaces/a")
    assert.are.equal(200, code)
    assert.are.equal("Terminating", document.status.phase)
    assert.are.equal(404, (box:get("/api/v1/namespaces/a")))
    assert.are.equal(404, (box:get("/api/v1/namespaces/a/configmaps/x")))
  end)

  it("says what holds it, takes nothing new, and goes when that is over", function()
    box:create("/api/v1/namespaces", { metadata = { name = "a" } })
    box:create("/api/v1/namespaces/a/configmaps", { metadata = { name = "x", finalizers = { "ex.io/f" } } })
    box:delete("/api/v1/namespaces/a")
    local _, namespace = box:get("/api/v1/namespaces/a")
    local reasons = {}
    for i, c in ipairs(namespace.status.conditions) do reasons[i] = c.type .. "=" .. c.status .. " " .. c.reason end
    assert.are.same({
      "NamespaceDeletionDiscoveryFailure=False ResourcesDiscovered",
      "NamespaceDeletionGroupVersionParsingFailure=False ParsedGroupVersions",
      "NamespaceDeletionContentFailure=False ContentDeleted",
      "NamespaceContentRemaining=True SomeResourcesRemain",
      "NamespaceFinalizersRemaining=True SomeFinalizersRemain",
    }, reasons)
    assert.are.equal("Some resources are remaining: configmaps. has 1 resource instances",
      namespace.status.conditions[4].message)
    local code, refused = box:post("/api/v1/namespaces/a/configmaps", { metadata = { name = "y" } })
    assert.are.equal(403, code)
    assert.are.equal("NamespaceTerminating", refused.details.causes[1].reason)
    box:merge("/api/v1/namespaces/a/configmaps/x", { metadata = { finalizers = require("kube.sandbox.json").null } })
    assert.are.equal(404, (box:get("/api/v1/namespaces/a")))
  end)

  for _, name in ipairs { "default", "kube-system", "kube-public" } do
    it("cannot be deleted when it is " .. name, function()
      local code, document = box:delete("/api/v1/namespaces/" .. name)
      assert.are.equal(403, code)
      assert.are.equal(('namespaces "%s" is forbidden: this namespace may not be deleted'):format(name),
        document.message)
    end)
  end

  it("gets its account back when somebody deletes it", function()
    box:delete("/api/v1/namespaces/default/serviceaccounts/default")
    assert.are.equal(200, (box:get("/api/v1/namespaces/default/serviceaccounts/default")))
  end)
end)
