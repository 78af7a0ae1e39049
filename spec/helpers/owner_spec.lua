-- Owner references.
local core = require "spec.support.helpers_env"
local owner = require "kube._owner"
local codec = core.codec

local function web(more)
  local object = { apiVersion = "example.com/v1", kind = "Web", metadata = { name = "w", namespace = "d", uid = "u1" } }
  for key, value in pairs(more or {}) do object.metadata[key] = value end
  return object
end

local function child(references)
  return { apiVersion = "v1", kind = "Service",
    metadata = { name = "c", namespace = "d", ownerReferences = references } }
end

-- fn fails on a line of this file with a message that has this text in it.
local function refused(text, fn, ...)
  local ok, err = pcall(fn, ...)
  assert.is_false(ok)
  assert.truthy(tostring(err):find("^spec/helpers/owner_spec%.lua:%d+: "), tostring(err))
  assert.truthy(tostring(err):find(text, 1, true), tostring(err))
end

describe("set_owner", function()
  it("makes the owner the controller, and returns the child", function()
    local c = child()
    assert.equal(c, owner.set_owner(c, web()))
    assert.same({ { apiVersion = "example.com/v1", kind = "Web", name = "w", uid = "u1", controller = true,
      blockOwnerDeletion = true } }, c.metadata.ownerReferences)
    assert.equal("[", codec.encode(c.metadata.ownerReferences):sub(1, 1))
  end)

  it("sets flags only as asked for", function()
    local c = owner.set_owner(child(), web(), { controller = false })
    assert.same({ { apiVersion = "example.com/v1", kind = "Web", name = "w", uid = "u1" } }, c.metadata.ownerReferences)
    c = owner.set_owner(child(), web(), { controller = false, block_deletion = true })
    assert.is_nil(c.metadata.ownerReferences[1].controller)
    assert.is_true(c.metadata.ownerReferences[1].blockOwnerDeletion)
    c = owner.set_owner(child(), web(), { block_deletion = false })
    assert.is_true(c.metadata.ownerReferences[1].controller)
    assert.is_nil(c.metadata.ownerReferences[1].blockOwnerDeletion)
  end)

  it("replaces the same group, kind and name, whatever version and uid, and keeps the others in place", function()
    local c = child { { apiVersion = "example.com/v1beta1", kind = "Web", name = "w", uid = "old" },
      { apiVersion = "other.com/v1", kind = "Web", name = "w", uid = "x" } }
    owner.set_owner(c, web { uid = "new" })
    assert.same({ "new", "x" }, { c.metadata.ownerReferences[1].uid, c.metadata.ownerReferences[2].uid })
    assert.equal("example.com/v1", c.metadata.ownerReferences[1].apiVersion)
  end)

  it("refuses a second controller with the code already_owned, and takes a second owner", function()
    local c = child { { apiVersion = "apps/v1", kind = "ReplicaSet", name = "rs", uid = "r", controller = true } }
    local ok, err = pcall(owner.set_owner, c, web())
    assert.is_false(ok)
    assert.equal("already_owned", err.code)
    assert.equal("rs", err.owner.name)
    assert.equal("Service d/c is controlled by ReplicaSet rs already, so Web d/w cannot control it too; "
      .. "choose another name for it, or { controller = false }", err.message)
    assert.equal(1, #c.metadata.ownerReferences)
    owner.set_owner(c, web(), { controller = false })
    assert.equal(2, #c.metadata.ownerReferences)
    assert.equal("rs", owner.controller_of(c).name)
  end)

  it("takes owners of the same namespace, and those without one for anything", function()
    refused("Web d/w cannot own Service other/c", owner.set_owner, { kind = "Service",
      metadata = { name = "c", namespace = "other" } }, web())
    refused('ClusterRole c has no namespace, so Web d/w cannot own it: an owner is in the same namespace, or '
      .. 'cluster-scoped; set metadata.namespace = "d"', owner.set_owner, { kind = "ClusterRole",
      metadata = { name = "c" } }, web())
    local node = { apiVersion = "v1", kind = "Node", metadata = { name = "n", uid = "u" } }
    assert.equal("n", owner.set_owner(child(), node).metadata.ownerReferences[1].name)
    assert.equal("n", owner.set_owner({ metadata = { name = "pv" } }, node).metadata.ownerReferences[1].name)
  end)

  it("says what is wrong with its arguments", function()
    refused("the owner has no kind", owner.set_owner, child(), { apiVersion = "v1", metadata = { name = "a" } })
    refused("the owner has no metadata.name", owner.set_owner, child(), { apiVersion = "v1", kind = "Pod" })
    refused("Web d/w has no metadata.uid", owner.set_owner, child(), web { uid = "" })
    refused("the child must be an object, not nil", owner.set_owner, nil, web())
    refused("the child must be an object, not null", owner.set_owner, codec.null, web())
    refused("set_owner has no option 'controler' (did you mean 'controller'?)", owner.set_owner, child(), web(),
      { controler = true })
  end)
end)

describe("an object that is none", function()
  it("is refused where it is given, whichever part of it is wrong", function()
    local bad = { metadata = 3 }
    refused("set_owner: the metadata of the child must be a table, not a number", owner.set_owner, bad, web())
    refused("set_owner: the metadata of the owner must be a table, not a number", owner.set_owner, child(), bad)
    refused("remove_owner: the metadata of the child must be a table", owner.remove_owner, bad, web())
    refused("is_owned_by: the metadata of the owner must be a table", owner.is_owned_by, {}, bad)
    refused("is_owned_by: the metadata of the child must be a table", owner.is_owned_by, bad, web())
    refused("controller_of: the metadata of the object must be a table", owner.controller_of, bad)
    refused("controller_of: the metadata.ownerReferences of the object must be a table, not a string",
      owner.controller_of, child("x"))
    refused("set_owner: the metadata.ownerReferences[2] of the child must be a table, not null", owner.set_owner,
      child { {}, codec.null }, web { name = "x" })
    refused("ClusterRole c has no namespace", owner.set_owner, { kind = "ClusterRole",
      metadata = { name = "c", namespace = {} } }, web())
  end)
end)

describe("owners", function()
  it("are found by group, kind, name and uid", function()
    local c = owner.set_owner(child(), web())
    assert.is_true(owner.is_owned_by(c, web()))
    assert.is_false(owner.is_owned_by(c, web { uid = "u2" }))
    assert.is_false(owner.is_owned_by(c, web { name = "x" }))
    assert.is_false(owner.is_owned_by(child(), web()))
    assert.is_nil(owner.controller_of(child()))
    assert.is_nil(owner.controller_of(child(codec.null)))
  end)

  it("are taken away, and it says whether there was one", function()
    local c = owner.set_owner(child(), web())
    assert.is_true(owner.remove_owner(c, web { uid = "other" }))
    assert.is_false(owner.remove_owner(c, web()))
    assert.equal("[]", codec.encode(c.metadata.ownerReferences))
  end)
end)
