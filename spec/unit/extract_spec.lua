local unit = require "spec.support.unit"
local objects = require "spec.support.objects"
local C, ffi, slice = unit.C, unit.ffi, objects.slice

local function extract(kind, argument)
  local err = unit.err()
  local x = C.mw_extract_new(kind, slice(argument), err)
  if x == nil then return nil, ffi.string(err.message) end
  return ffi.gc(x, C.mw_extract_free)
end

local function values(kind, argument, o)
  local out = objects.values()
  assert.equal(0, C.mw_extract_values(assert(extract(kind, argument)), o, objects.unpacker, out))
  return objects.strings(out)
end

local function path(text, o) return values(C.MW_EXTRACT_PATH, text, o) end
local function owner(which, o) return values(C.MW_EXTRACT_OWNER, which, o) end

local pod = [["spec":{"nodeName":"n1","replicas":3,"ratio":-1.50e2,"on":true,"off":false,"none":null,
  "esc":"a\"b\u00e4","empty":"","map":{"x":1},"list":["a","b","a"],
  "containers":[{"image":"i1"},{"name":"no image"},{"image":"i2"}]}]]

describe("extract", function()
  unit.no_leaks()

  it("takes scalars at a path as plain text", function()
    local o = objects.pod("a", "b", { rest = pod })
    assert.are.same({ "n1" }, path("spec.nodeName", o))
    assert.are.same({ "3" }, path("spec.replicas", o))
    assert.are.same({ "-1.50e2" }, path("spec.ratio", o))
    assert.are.same({ "true" }, path("spec.on", o))
    assert.are.same({ "false" }, path("spec.off", o))
    assert.are.same({ 'a"bä' }, path("spec.esc", o))
    assert.are.same({ "" }, path("spec.empty", o))
  end)

  it("has no value for null, objects, lists and what is missing", function()
    local o = objects.pod("a", "b", { rest = pod })
    for _, text in ipairs { "spec.none", "spec.map", "spec.list", "spec.absent", "status.phase" } do
      assert.are.same({}, path(text, o), text)
    end
  end)

  it("takes every element of a list, in order", function()
    local o = objects.pod("a", "b", { rest = pod })
    assert.are.same({ "a", "b", "a" }, path("spec.list[*]", o))
    assert.are.same({ "i1", "i2" }, path("spec.containers[*].image", o))
  end)

  it("appends to what is there", function()
    local x, out = extract(C.MW_EXTRACT_PATH, "spec.nodeName"), objects.values()
    for i = 1, 2 do
      local o = objects.pod("a", "b", { rest = ('"spec":{"nodeName":"n%d"}'):format(i) })
      assert.equal(0, C.mw_extract_values(x, o, objects.unpacker, out))
    end
    assert.are.same({ "n1", "n2" }, objects.strings(out))
  end)

  it("brings its own unpacker when it is given none", function()
    local x, out = extract(C.MW_EXTRACT_PATH, "spec.nodeName"), objects.values()
    assert.equal(0, C.mw_extract_values(x, objects.pod("a", "b", { rest = pod }), nil, out))
    assert.equal(0, C.mw_extract_values(x, objects.pod("a", "c", { rest = pod }), nil, out))
    assert.are.same({ "n1", "n1" }, objects.strings(out))
  end)

  it("takes the value of one label", function()
    local o = objects.pod("a", "b", { labels = { ["x.io/app"] = "web", empty = "" } })
    assert.are.same({ "web" }, values(C.MW_EXTRACT_LABEL, "x.io/app", o))
    assert.are.same({ "" }, values(C.MW_EXTRACT_LABEL, "empty", o))
    assert.are.same({}, values(C.MW_EXTRACT_LABEL, "app", o))
  end)

  it("takes the uids of owners, or only the controller's", function()
    local refs = [["ownerReferences":[{"uid":"u1","kind":"A"},{"kind":"B","controller":true,"uid":"u2"},
      {"uid":"u3","controller":false},{"kind":"no uid","controller":true},"odd"] ]]
    local o = objects.pod("a", "b", { metadata = refs })
    assert.are.same({ "u1", "u2", "u3" }, owner("", o))
    assert.are.same({ "u2" }, owner("controller", o))
  end)

  it("finds owners behind metadata larger than the first look, each once", function()
    local list = {}
    for i = 1, 200 do list[i] = ('{"uid":"uid-%d","controller":%s}'):format(i, i == 150 and "true" or "false") end
    local o = objects.pod("a", "b", { metadata = '"ownerReferences":[' .. table.concat(list, ",") .. "]" })
    assert.equal(200, #owner("", o))
    assert.are.same({ "uid-150" }, owner("controller", o))
    local far = objects.pod("a", "b", { metadata = ('"annotations":{"x":"%s"},"ownerReferences":[{"uid":"u"}]')
      :format(("y"):rep(5000)) })
    assert.are.same({ "u" }, owner("", far))
  end)

  it("has no owners where there is no list of them", function()
    assert.are.same({}, owner("", objects.pod("a", "b")))
    assert.are.same({}, owner("", objects.pod("a", "b", { metadata = '"ownerReferences":null' })))
    assert.are.same({}, owner("", objects.pod("a", "b", { metadata = '"ownerReferences":[]' })))
  end)

  it("refuses arguments that make no sense", function()
    assert.is_nil((extract(C.MW_EXTRACT_PATH, "spec..x")))
    assert.is_nil((extract(C.MW_EXTRACT_LABEL, "")))
    local _, message = extract(C.MW_EXTRACT_OWNER, "boss")
    assert.matches('"boss"', message)
  end)
end)

describe("values", function()
  unit.no_leaks()

  it("are limited per object in number and size, but not for what is stored", function()
    local v = objects.values()
    for _ = 1, C.MW_VALUES_MAX do assert.equal(0, C.mw_values_add(v, slice "x")) end
    assert.equal(C.MW_ELIMIT, C.mw_values_add(v, slice "x"))
    C.mw_values_push(v, slice "y")
    assert.equal(C.MW_VALUES_MAX + 1, tonumber(v.count))
    assert.equal("y", unit.str(C.mw_values_get(v, C.MW_VALUES_MAX)))
    C.mw_values_reset(v)
    assert.equal(0, tonumber(v.count))
    local half = ("z"):rep(C.MW_VALUES_BYTES_MAX / 2)
    assert.equal(0, C.mw_values_add(v, slice(half)))
    assert.equal(0, C.mw_values_add(v, slice(half)))
    assert.equal(C.MW_ELIMIT, C.mw_values_add(v, slice "x"))
    assert.equal(0, C.mw_values_add(v, slice ""))
    assert.equal("", unit.str(C.mw_values_get(v, 2)))
  end)

  it("beyond the limit make the extraction fail", function()
    local list = {}
    for i = 1, C.MW_VALUES_MAX + 1 do list[i] = '"x"' end
    local o = objects.pod("a", "b", { rest = '"list":[' .. table.concat(list, ",") .. "]" })
    local x = extract(C.MW_EXTRACT_PATH, "list[*]")
    assert.equal(C.MW_ELIMIT, C.mw_extract_values(x, o, objects.unpacker, objects.values()))
  end)
end)

describe("predicate", function()
  unit.no_leaks()

  local function predicate(parts, labels, ns)
    local p = ffi.gc(C.mw_predicate_new(), C.mw_predicate_free)
    for _, part in ipairs(parts) do
      local v = ffi.new("struct mw_slice[?]", #part.values + 1)
      for i, text in ipairs(part.values) do v[i - 1] = slice(text) end
      local x = ffi.gc(assert(extract(part.kind or C.MW_EXTRACT_PATH, part.at)), nil)
      C.mw_predicate_add(p, ffi.new("struct mw_predicate_part", { x, v, #part.values, part.negate or false }))
    end
    if labels then C.mw_predicate_set_labels(p, C.mw_selector_parse(slice(labels), nil)) end
    if ns then C.mw_predicate_set_ns(p, slice(ns)) end
    return function(o) return C.mw_predicate_test(p, o, objects.unpacker) end
  end

  local o = function() return objects.pod("prod", "b", { rest = pod, labels = { app = "web" } }) end

  it("without parts holds for every object", function()
    assert.is_true(predicate {}(o()))
  end)

  it("holds when one of the values is there", function()
    assert.is_true(predicate { { at = "spec.nodeName", values = { "n0", "n1" } } }(o()))
    assert.is_false(predicate { { at = "spec.nodeName", values = { "n0" } } }(o()))
    assert.is_true(predicate { { at = "spec.list[*]", values = { "b" } } }(o()))
    assert.is_true(predicate { { at = "app", kind = C.MW_EXTRACT_LABEL, values = { "web" } } }(o()))
  end)

  it("without values asks whether there is any", function()
    assert.is_true(predicate { { at = "spec.nodeName", values = {} } }(o()))
    assert.is_false(predicate { { at = "spec.none", values = {} } }(o()))
    assert.is_true(predicate { { at = "spec.none", values = {}, negate = true } }(o()))
  end)

  it("negated holds when none of the values is there", function()
    assert.is_true(predicate { { at = "spec.nodeName", values = { "n2" }, negate = true } }(o()))
    assert.is_false(predicate { { at = "spec.list[*]", values = { "x", "b" }, negate = true } }(o()))
    assert.is_true(predicate { { at = "spec.absent", values = { "x" }, negate = true } }(o()))
  end)

  it("needs every part, the labels and the namespace", function()
    local node = { at = "spec.nodeName", values = { "n1" } }
    assert.is_true(predicate({ node, { at = "spec.on", values = { "true" } } }, "app=web", "prod")(o()))
    assert.is_false(predicate({ node, { at = "spec.on", values = { "false" } } }, "app=web", "prod")(o()))
    assert.is_false(predicate({ node }, "app=db", "prod")(o()))
    assert.is_false(predicate({ node }, "app=web", "test")(o()))
    assert.is_true(predicate({ node }, nil, "")(o()))
  end)
end)
