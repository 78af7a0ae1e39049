-- Tests of events that run in C: what kube.predicate is made of.
local unit = require "spec.support.unit"
local objects = require "spec.support.objects"
local C, ffi = unit.C, unit.ffi

local second = ffi.gc(C.mw_unpacker_new(), C.mw_unpacker_free)

local function pod(rv, more) return objects.pod("d", "a", { rv = rv, metadata = more }) end

local function passes(change, kind, old, new)
  local n = ffi.new("struct mw_notification", { type = kind, old = old, object = new })
  return C.mw_change_test(change, n, objects.unpacker, second)
end

local function add(change, o) return passes(change, C.MW_NOTIFY_ADD, nil, o) end
local function update(change, old, new) return passes(change, C.MW_NOTIFY_UPDATE, old, new) end
local function delete(change, o) return passes(change, C.MW_NOTIFY_DELETE, nil, o) end

local function test(kind) return ffi.gc(C.mw_change_new(kind), C.mw_change_free) end

local function of(kind, ...)
  local change = C.mw_change_new(kind)
  for _, child in ipairs { ... } do C.mw_change_add(change, ffi.gc(child, nil)) end
  return ffi.gc(change, C.mw_change_free)
end

local function in_namespace(ns)
  local p = C.mw_predicate_new()
  C.mw_predicate_set_ns(p, objects.slice(ns))
  return ffi.gc(C.mw_change_of_object(p), C.mw_change_free)
end

describe("a test of events", function()
  unit.no_leaks()

  local changes = {
    MW_CHANGE_GENERATION = { '"generation":1', '"generation":2' },
    MW_CHANGE_LABELS = { '"labels":{"a":"1"}', '"labels":{"a":"2"}' },
    MW_CHANGE_ANNOTATIONS = { '"annotations":{"a":"1"}', '"annotations":{"b":"1"}' },
  }
  for name, texts in pairs(changes) do
    it(("passes updates that changed what %s looks at, and no others"):format(name), function()
      local change = test(C[name])
      local one, two = unpack(texts)
      assert.is_true(update(change, pod("1", one), pod("2", two)))
      assert.is_true(update(change, pod("1", nil), pod("2", two)))
      assert.is_true(update(change, pod("1", one), pod("2", nil)))
      assert.is_false(update(change, pod("1", one), pod("2", one)))
      assert.is_false(update(change, pod("1", nil), pod("2", nil)))
      assert.is_true(add(change, pod("1", one)))
      assert.is_true(delete(change, pod("1", one)))
    end)
  end

  it("looks behind long metadata", function()
    local long = ('"annotations":{"x":"%s"},"generation":%%d'):format(("y"):rep(5000))
    local change = test(C.MW_CHANGE_GENERATION)
    assert.is_true(update(change, pod("1", long:format(1)), pod("2", long:format(2))))
    assert.is_false(update(change, pod("1", long:format(1)), pod("2", long:format(1))))
  end)

  it("passes updates that have another version, which a resync has not", function()
    local change = test(C.MW_CHANGE_VERSION)
    assert.is_true(update(change, pod("1"), pod("2")))
    assert.is_false(update(change, pod("2"), pod("2")))
    assert.is_true(add(change, pod("2")))
  end)

  it("of an object asks for the new one of an update", function()
    local change = in_namespace("d")
    local other = objects.pod("e", "a", { rv = "1" })
    assert.is_true(update(change, other, pod("2")))
    assert.is_false(update(change, pod("1"), other))
    assert.is_true(delete(change, pod("1")))
    assert.is_false(add(change, other))
  end)

  it("is put together by all, any and not", function()
    local one, two = pod("1", '"generation":1,"labels":{"a":"1"}'), pod("2", '"generation":1,"labels":{"a":"2"}')
    local function leaves() return test(C.MW_CHANGE_GENERATION), test(C.MW_CHANGE_LABELS) end
    assert.is_false(update(of(C.MW_CHANGE_ALL, leaves()), one, two))
    assert.is_true(update(of(C.MW_CHANGE_ANY, leaves()), one, two))
    assert.is_true(update(of(C.MW_CHANGE_NOT, (leaves())), one, two))
    assert.is_false(add(of(C.MW_CHANGE_NOT, (leaves())), one))
    assert.is_true(add(of(C.MW_CHANGE_ALL), one))
    assert.is_false(add(of(C.MW_CHANGE_ANY), one))
  end)

  it("of a callback asks it, and frees what it held", function()
    local asked, freed = 0, 0
    local cb = ffi.cast("mw_change_cb", function() asked = asked + 1 return asked > 1 end)
    local free = ffi.cast("void (*)(void *)", function() freed = freed + 1 end)
    local change = C.mw_change_of_call(cb, nil, free)
    assert.is_false(add(change, pod("1")))
    assert.is_true(add(change, pod("1")))
    C.mw_change_free(change)
    assert.are.equal(1, freed)
    cb:free()
    free:free()
  end)
end)

describe("an owner", function()
  unit.no_leaks()

  local function owners(metadata)
    local out = {}
    local cb = ffi.cast("mw_owner_cb", function(_, o)
      out[#out + 1] = ("%s %s %s %s %s"):format(unit.str(o.api_version), unit.str(o.kind),
        unit.str(o.name), unit.str(o.uid), tostring(o.controller))
      return 0
    end)
    local rc = C.mw_owner_each(pod("1", metadata), objects.unpacker, cb, nil)
    cb:free()
    return out, rc
  end

  it("is read with what it lacks left empty, escapes and all", function()
    assert.are.same({ "apps/v1 ReplicaSet r-1 u1 true", "v1 ConfigMap c\"ä u2 false", "    false" }, (owners(
      [["ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r-1","uid":"u1","controller":true},
      {"name":"c\"\u00e4","kind":"ConfigMap","uid":"u2","apiVersion":"v1","controller":false},{},"odd"] ]])))
  end)

  it("is none without references, or when they are no list", function()
    assert.are.same({}, (owners(nil)))
    assert.are.same({}, (owners('"ownerReferences":{"uid":"u"}')))
    assert.are.same({}, (owners('"ownerReferences":null')))
  end)
end)
