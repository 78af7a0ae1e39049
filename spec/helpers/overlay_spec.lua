-- Own writes over a store whose news come in the order, and as late, as the spec wants.
local core = require "spec.support.helpers_env"
local overlay = require "kube._overlay"

local function object(uid, version, metadata)
  local m = { name = "a", namespace = "ns", uid = uid, resourceVersion = version }
  for name, value in pairs(metadata or {}) do m[name] = value end
  return { apiVersion = "v1", kind = "Secret", metadata = m }
end

-- A store of one key, with the overlay over it.
local function world()
  local w = { time = 0, version = "10", stored = object("u", "10"), vanished = {} }
  local reader = { get = function() return w.stored end, resource_version = function() return w.version end }
  w.overlay = overlay.new(function() return reader end,
    function(by) w.vanished[#w.vanished + 1] = by end, function() return w.time end)
  function w.has(version, stored) w.version, w.stored = version, stored end
  function w.read() return w.overlay:get("v1/secrets", "ns/a", w.stored, reader) end
  function w.listed()
    return w.overlay:merge("v1/secrets", { w.stored }, function() return true end)
  end
  return w
end

describe("a deletion in the overlay", function()
  it("holds while news of the object from before it come in", function()
    local w = world()
    w.overlay:note("delete", "v1/secrets", "ns/a", nil, "ns/a")
    assert.is_nil(w.read())
    w.has("12", object("u", "12"))
    assert.is_nil(w.read())
    assert.are.same({}, w.listed())
    w.has("13", nil)
    assert.is_nil(w.read())
    w.has("14", object("v", "14"))
    assert.are.equal(w.stored, w.read())
    assert.are.same({}, w.vanished)
  end)

  it("gives way at once to the object as one that something holds, and not to one that is as good as gone", function()
    local w = world()
    w.overlay:note("delete", "v1/secrets", "ns/a", nil, "ns/a")
    local leaving = { deletionTimestamp = "2026-11-17T12:00:00Z", deletionGracePeriodSeconds = 0 }
    w.has("12", object("u", "12", leaving))
    assert.is_nil(w.read())
    leaving.finalizers = { "example.com/a" }
    w.has("13", object("u", "13", leaving))
    assert.are.equal(w.stored, w.read())
  end)

  it("gives way to a server that keeps the object, but only after a time and when its news have moved on", function()
    local w = world()
    w.overlay:note("delete", "v1/secrets", "ns/a", nil, "ns/a")
    w.time = 3600 -- the server is away
    assert.is_nil(w.read())
    w.has("11", w.stored)
    assert.are.equal(w.stored, w.read())
    w.overlay:note("delete", "v1/secrets", "ns/a", nil, "ns/a")
    w.has("12", object("u", "12"))
    assert.is_nil(w.read())
    w.time = w.time + 31
    assert.are.equal(w.stored, w.read())
  end)

  it("is not undone by the answer of a write from before it, of which the store must have heard, too", function()
    local w = world()
    w.overlay:note("delete", "v1/secrets", "ns/a", nil, "ns/a")
    w.overlay:note("update", "v1/secrets", "ns/a", object("u", "12"), "ns/a")
    assert.is_nil(w.read())
    w.has("11", nil)
    w.has("12", object("u", "12"))
    assert.is_nil(w.read())
    w.has("13", nil)
    assert.is_nil(w.read())
    w.overlay:note("create", "v1/secrets", "ns/a", object("v", "15"), "ns/a")
    assert.are.equal("v", w.read().metadata.uid)
  end)

  it("of a collection shows as leaving what has finalizers, until the store does", function()
    local w = world()
    w.has("10", object("u", "10", { finalizers = { "example.com/a" } }))
    w.overlay:note_collection("v1/secrets", { w.stored }, {})
    assert.is_string(w.read().metadata.deletionTimestamp)
    assert.is_nil(w.stored.metadata.deletionTimestamp)
    w.has("12", object("u", "12", { finalizers = { "example.com/a", "example.com/b" } }))
    assert.is_string(w.read().metadata.deletionTimestamp)
    assert.are.equal(1, #w.listed())
    w.has("13", object("u", "13", { finalizers = { "example.com/a" }, deletionTimestamp = "2026-11-17T12:00:00Z" }))
    assert.are.equal(w.stored, w.read())
    assert.are.same({}, w.vanished)
    assert.are.same({}, core.lines)
  end)

  it("of a collection is over when the store has heard of it first", function()
    local w = world()
    local held = { finalizers = { "example.com/a" } }
    w.has("10", object("u", "10", held))
    local before = w.stored
    held.deletionTimestamp = "2026-11-17T12:00:00Z"
    w.has("11", object("u", "11", held))
    w.overlay:note_collection("v1/secrets", { before }, {})
    assert.are.equal(w.stored, w.read())
    w.has("12", nil)
    w.overlay:note_collection("v1/secrets", { object("u", "10") }, {})
    assert.is_nil(w.read())
    w.has("13", object("v", "13"))
    assert.are.equal(w.stored, w.read())
  end)
end)
