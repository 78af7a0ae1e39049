local unit = require "spec.support.unit"
local C, ffi = unit.C, unit.ffi

local function path(text)
  local err = unit.err()
  local p = C.mw_path_new(unit.slice(text), err)
  if p == nil then return nil, ffi.string(err.message) end
  return ffi.gc(p, C.mw_path_free)
end

local function good_path(text)
  local p, message = path(text)
  if p == nil then error(message, 2) end
  return p
end

-- The FFI has no callbacks that take a struct by value; two words are passed in the same way.
local function each(text, json, stop_after)
  local found = {}
  local cb = ffi.cast("bool (*)(void *, const char *, size_t)", function(_, p, n)
    found[#found + 1] = ffi.string(p, n)
    return #found ~= stop_after
  end)
  local rc = C.mw_path_each(good_path(text), unit.slice(json), ffi.cast("mw_path_cb", cb), nil)
  cb:free()
  return found, rc
end
jit.off(each)

local function projection(keep, drop)
  local err = unit.err()
  local function slices(list)
    local array = ffi.new("struct mw_slice[?]", #list + 1)
    for i, text in ipairs(list) do array[i - 1] = unit.slice(text) end
    return array
  end
  local p = C.mw_projection_new(slices(keep), #keep, slices(drop), #drop, err)
  if p == nil then return nil, ffi.string(err.message) end
  return ffi.gc(p, C.mw_projection_free)
end

local function good_projection(keep, drop)
  local p, message = projection(keep, drop)
  if p == nil then error(message, 2) end
  return p
end

local function text_of(p) return unit.str(C.mw_projection_text(p)) end

local pod = [[{"metadata":{"labels":{"app.kubernetes.io/name":"web","a.b":"c","q\"":"quote"}},
  "spec":{"nodeName":"n1","containers":[{"image":"a","ports":[1,2]},{"name":"x"},{"image":"b","ports":[3]}]},
  "status":{"conditions":[{"type":"Ready"},{"type":"Other"}],"nothing":null}}]]

describe("path", function()
  unit.no_leaks()

  describe("lookup", function()
    for text, values in pairs {
      ["spec.nodeName"] = { '"n1"' },
      ['metadata.labels["app.kubernetes.io/name"]'] = { '"web"' },
      ['["metadata"].labels["a.b"]'] = { '"c"' },
      ['metadata.labels["q\\""]'] = { '"quote"' },
      ["spec.containers[*].image"] = { '"a"', '"b"' },
      ["spec.containers[*].ports[*]"] = { "1", "2", "3" },
      ["spec.containers[*].ports[0]"] = { "1", "3" },
      ["status.conditions[0].type"] = { '"Ready"' },
      ["status.conditions[1]"] = { '{"type":"Other"}' },
      ["status.conditions[2]"] = {},
      ["status.nothing"] = { "null" },
      ["status.nothing.more"] = {},
      ["spec[0]"] = {},
      ["status.conditions.type"] = {},
      ["absent"] = {},
    } do
      it("finds " .. #values .. " at " .. text, function()
        local found, rc = each(text, pod)
        assert.are.same(values, found)
        assert.equal(#values, rc)
      end)
    end

    it("stops when the callback says so", function()
      local found, rc = each("spec.containers[*].ports[*]", pod, 2)
      assert.are.same({ "1", "2" }, found)
      assert.equal(2, rc)
    end)

    it("knows a key by its unescaped form", function()
      assert.are.same({ "1" }, (each("ab", '{"\\u0061b":1}')))
    end)

    it("fails on a document that is not JSON", function()
      local _, rc = each("b", '{"a":tru}')
      assert.equal(C.MW_EPARSE, rc)
      _, rc = each("b", "")
      assert.equal(C.MW_EPARSE, rc)
    end)
  end)

  it("keeps the text it was made from", function()
    assert.equal("spec.nodeName", unit.str(C.mw_path_text(good_path("spec.nodeName"))))
  end)

  describe("syntax", function()
    for text, column in pairs {
      [""] = 1, ["."] = 1, [".a"] = 1, ["a."] = 3, ["a..b"] = 3, ["a["] = 3, ["a[]"] = 3,
      ["a[x]"] = 3, ["a[1"] = 4, ["a[*"] = 4, ['a["x]'] = 6, ['a["x"'] = 6, ["a]"] = 2,
      ["a b"] = 2, ["a[99999999]"] = 9, ["a[-1]"] = 3, ["a[1]b"] = 5,
    } do
      it("error in '" .. text .. "' is reported at column " .. column, function()
        local p, message = path(text)
        assert.is_nil(p)
        assert.matches("column " .. column .. ":", message, 1, true)
      end)
    end

    it("says that only double quotes enclose a key", function()
      local p, message = path("metadata.labels['a.b/c']")
      assert.is_nil(p)
      assert.equal("path 'metadata.labels['a.b/c']', column 17: expected an index, '*' or a key in double quotes",
        message)
    end)

    it("has limits for length and segments", function()
      assert.is_not_nil(path("a" .. (".a"):rep(31)))
      assert.is_nil(path("a" .. (".a"):rep(32)))
      assert.is_not_nil(path(("a"):rep(1024)))
      assert.is_nil(path(("a"):rep(1025)))
    end)
  end)
end)

describe("projection", function()
  unit.no_leaks()

  it("has the same text for the same meaning, in any order and with repeats", function()
    local a = good_projection({ "spec.a", "status" }, { "status.x" })
    local b = good_projection({ "status", 'spec["a"]', "status.y", "spec.a" }, { "status.x", "status.x.y" })
    assert.equal(text_of(a), text_of(b))
  end)

  it("has another text for another meaning", function()
    local seen = {}
    for _, lists in ipairs {
      { {}, {} }, { {}, { "spec" } }, { { "spec" }, {} }, { { "spec.a" }, {} }, { { "spec[*].a" }, {} },
      { {}, { "metadata.managedFields" } }, { {}, { "spec.a" } }, { { "spec" }, { "spec.a" } },
    } do
      local text = text_of(good_projection(lists[1], lists[2]))
      assert.is_nil(seen[text])
      seen[text] = true
    end
  end)

  it("is the shared one by text when it says the same", function()
    assert.equal(text_of(C.mw_projection_default()), text_of(good_projection({}, { "metadata.managedFields" })))
    assert.equal(text_of(C.mw_projection_all()), text_of(good_projection({}, {})))
  end)

  it("is partial when anything but managedFields goes", function()
    assert.is_false(C.mw_projection_is_partial(C.mw_projection_default()))
    assert.is_false(C.mw_projection_is_partial(C.mw_projection_all()))
    assert.is_false(C.mw_projection_is_partial(good_projection({}, { "metadata.managedFields" })))
    assert.is_false(C.mw_projection_is_partial(good_projection({}, { "metadata.name" })))
    assert.is_true(C.mw_projection_is_partial(good_projection({}, { "metadata.annotations" })))
    assert.is_true(C.mw_projection_is_partial(good_projection({ "spec" }, {})))
  end)

  it("refuses numeric indexes and malformed paths", function()
    local p, message = projection({ "spec.containers[0]" }, {})
    assert.is_nil(p)
    assert.matches("no index", message, 1, true)
    p, message = projection({}, { "a..b" })
    assert.is_nil(p)
    assert.matches("column 3", message, 1, true)
  end)
end)
