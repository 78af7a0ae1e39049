-- Conditions and finalizers of objects in memory.
local core = require "spec.support.helpers_env"
local condition = require "kube._condition"
local finalizer = require "kube._finalizer"
local codec = core.codec

local OLD = "2020-01-01T00:00:00Z"

local function object(...)
  return { metadata = { name = "a", generation = 7 }, status = { conditions = codec.array { ... } } }
end

local function ready(more)
  local c = { type = "Ready", status = "False", reason = "Waiting", message = "m", lastTransitionTime = OLD,
    observedGeneration = 7 }
  for key, value in pairs(more or {}) do c[key] = value end
  return c
end

local function refused(text, fn, ...)
  local ok, err = pcall(fn, ...)
  assert.is_false(ok)
  assert.truthy(tostring(err):find("^spec/helpers/condition_spec%.lua:%d+: "), tostring(err))
  assert.truthy(tostring(err):find(text, 1, true), tostring(err))
end

describe("condition.set", function()
  it("adds a condition with the time and the object's generation", function()
    local o = { metadata = { generation = 3 } }
    assert.is_true(condition.set(o, { type = "Ready", status = true, reason = "Up" }))
    local c = o.status.conditions[1]
    assert.truthy(c.lastTransitionTime:find("^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%dZ$"))
    c.lastTransitionTime = nil
    assert.same({ type = "Ready", status = "True", reason = "Up", message = "", observedGeneration = 3 }, c)
    assert.equal("[", codec.encode(o.status.conditions):sub(1, 1))
  end)

  it("keeps the time of the last transition while the status stays", function()
    local o = object(ready())
    assert.is_true(condition.set(o, { type = "Ready", status = false, reason = "Other", message = "n" }))
    assert.same({ OLD, "Other", "n" }, { o.status.conditions[1].lastTransitionTime, o.status.conditions[1].reason,
      o.status.conditions[1].message })
    assert.is_true(condition.set(o, { type = "Ready", status = "Unknown", reason = "Other", message = "n" }))
    assert.not_equal(OLD, o.status.conditions[1].lastTransitionTime)
    assert.is_true(condition.set(o, { type = "Ready", status = true, lastTransitionTime = OLD }))
    assert.same({ OLD, "" }, { o.status.conditions[1].lastTransitionTime, o.status.conditions[1].message })
    assert.is_nil(o.status.conditions[1].reason)
  end)

  it("says that nothing changed when nothing did", function()
    local o = object({ type = "Other", status = "True" }, ready())
    local before = codec.encode_sorted(o)
    assert.is_false(condition.set(o, { type = "Ready", status = "False", reason = "Waiting", message = "m" }))
    assert.equal(before, codec.encode_sorted(o))
    o.metadata.generation = 8
    assert.is_true(condition.set(o, { type = "Ready", status = "False", reason = "Waiting", message = "m" }))
    assert.same({ 8, OLD }, { o.status.conditions[2].observedGeneration, o.status.conditions[2].lastTransitionTime })
  end)

  it("gives no generation by itself to a condition that has none, which a kind may not have", function()
    local o = object { type = "Ready", status = "True", reason = "Up", message = "", lastTransitionTime = OLD }
    assert.is_false(condition.set(o, { type = "Ready", status = true, reason = "Up" }))
    assert.is_true(condition.set(o, { type = "Ready", status = true, reason = "Up", observedGeneration = 7 }))
    assert.equal(7, o.status.conditions[1].observedGeneration)
  end)

  it("keeps fields that it does not know", function()
    local o = object(ready { lastProbeTime = OLD })
    condition.set(o, { type = "Ready", status = true, reason = "Up" })
    assert.equal(OLD, o.status.conditions[1].lastProbeTime)
  end)

  it("says what is wrong with a condition", function()
    refused("condition.set: status must be true, false,", condition.set, object(), { type = "Ready", status = "true" })
    refused("condition.set: status must be", condition.set, object(), { type = "Ready" })
    refused("condition.set: type takes the type", condition.set, object(), { status = true })
    refused("condition.set has no option 'Reason' (did you mean 'reason'?)", condition.set, object(),
      { type = "A", status = true, Reason = "x" })
    refused("reason is one word in CamelCase", condition.set, object(), { type = "A", status = true, reason = "a b" })
    refused("the object must be an object, not nil", condition.set, nil, { type = "A", status = true })
  end)
end)

describe("conditions", function()
  it("are read without tripping over what is not there", function()
    assert.is_nil(condition.get({}, "Ready"))
    assert.is_nil(condition.get(nil, "Ready"))
    assert.is_nil(condition.get({ status = codec.null }, "Ready"))
    assert.is_false(condition.is_true({ status = { conditions = codec.null } }, "Ready"))
    local o = object(ready(), { type = "Up", status = "True" })
    assert.equal("Waiting", condition.get(o, "Ready").reason)
    assert.is_false(condition.is_true(o, "Ready"))
    assert.is_true(condition.is_true(o, "Up"))
    refused("takes the type of a condition", condition.get, o)
  end)

  it("are where the API has them, or it is said", function()
    local ready_now = { type = "Ready", status = true }
    refused("condition.get: the metadata of the object must be a table, not a number", condition.get, { metadata = 3 },
      "Ready")
    refused("condition.set: the metadata of the object must be a table", condition.set, { metadata = true }, ready_now)
    for _, status in ipairs { 3, "Active", { conditions = "x" }, { conditions = { 3, "Ready" } } } do
      local other = { status = status }  -- not ours to refuse
      assert.is_nil(condition.get(other, "Ready"))
      assert.is_false(condition.is_true(other, "Ready"))
    end
    refused("condition.set: the status of the object must be a table, not a number", condition.set, { status = 3 },
      ready_now)
    refused("condition.set: the status.conditions[1] of the object must be a table, not a number", condition.set,
      { status = { conditions = { 3 } } }, ready_now)
    refused("condition.remove: the status of the object must be a table", condition.remove, { status = 3 }, "Ready")
  end)

  it("are removed by type", function()
    local o = object(ready(), { type = "Up", status = "True" }, ready())
    assert.is_true(condition.remove(o, "Ready"))
    assert.is_false(condition.remove(o, "Ready"))
    assert.equal('[{"status":"True","type":"Up"}]', codec.encode_sorted(o.status.conditions))
    assert.is_false(condition.remove({}, "Ready"))
  end)
end)

describe("a finalizer", function()
  it("is added once, and every occurrence is removed", function()
    local o = { metadata = { finalizers = codec.array { "a", "b", "a" } } }
    assert.is_false(finalizer.add(o, "a"))
    assert.is_true(finalizer.remove(o, "a"))
    assert.is_false(finalizer.remove(o, "a"))
    assert.same({ "b" }, o.metadata.finalizers)
    assert.is_true(finalizer.add(o, "c"))
    assert.same({ "b", "c" }, o.metadata.finalizers)
    assert.is_true(finalizer.has(o, "c"))
    assert.is_false(finalizer.has(o, "C"))
  end)

  it("needs neither a list nor metadata", function()
    local o = {}
    assert.is_false(finalizer.has(o, "a"))
    assert.is_false(finalizer.remove(o, "a"))
    assert.is_true(finalizer.add(o, "a"))
    assert.equal('{"metadata":{"finalizers":["a"]}}', codec.encode(o))
    o = { metadata = { finalizers = codec.null } }
    assert.is_true(finalizer.add(o, "a"))
    assert.same({ "a" }, o.metadata.finalizers)
  end)

  it("is in a list of the metadata, or it is said", function()
    for name, fn in pairs(finalizer) do
      refused("finalizer." .. name .. ": the metadata of the object must be a table, not a number", fn,
        { metadata = 3 }, "a")
      refused("finalizer." .. name .. ": the metadata.finalizers of the object must be a table, not a string", fn,
        { metadata = { finalizers = "a" } }, "a")
    end
  end)

  it("has a name", function()
    refused("takes the name of a finalizer", finalizer.add, {}, "")
    refused("takes the name of a finalizer", finalizer.has, {}, nil)
  end)
end)
