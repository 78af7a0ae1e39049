local unit = require "spec.support.unit"
local objects = require "spec.support.objects"
local C, ffi, str, slice = unit.C, unit.ffi, unit.str, objects.slice

local UUID = "0a1b2c3d-4e5f-6789-abcd-ef0123456789"

local function uid(o)
  local out = ffi.new("char[?]", C.MW_OBJECT_UID_MAX + 1)
  local n = tonumber(C.mw_object_uid(o, out))
  assert.equal(n, #ffi.string(out))
  return ffi.string(out)
end

local function label(o, key)
  local value = ffi.new("struct mw_slice")
  if C.mw_object_label(o, objects.unpacker, slice(key), value) == 1 then return str(value) end
end

describe("object", function()
  unit.no_leaks()

  it("keeps key, namespace, name, version and JSON of a namespaced object", function()
    local json = '{"kind":"Pod","metadata":{"name":"web-1","namespace":"prod","resourceVersion":"42"}}'
    local o = objects.make(json)
    assert.equal("prod/web-1", str(C.mw_object_key(o)))
    assert.equal("prod", str(C.mw_object_ns(o)))
    assert.equal("web-1", str(C.mw_object_name(o)))
    assert.equal("42", str(C.mw_object_rv(o)))
    assert.equal(C.mw_hash(slice("prod/web-1")), C.mw_object_hash(o))
    assert.equal(json, str(C.mw_object_json(o, objects.unpacker)))
    assert.equal(#json, tonumber(C.mw_object_raw_size(o)))
    assert.is_false(C.mw_object_deleting(o))
  end)

  it("has a key without a slash when there is no namespace", function() -- row 46
    local o = objects.pod("", "node-1")
    assert.equal("node-1", str(C.mw_object_key(o)))
    assert.equal("", str(C.mw_object_ns(o)))
    assert.equal("node-1", str(C.mw_object_name(o)))
    assert.equal("", str(C.mw_object_rv(o)))
    assert.equal("", uid(o))
  end)

  it("tells that a deletion has begun", function()
    assert.is_true(C.mw_object_deleting(
      objects.pod("a", "b", { metadata = '"deletionTimestamp":"2024-01-01T00:00:00Z"' })))
  end)

  it("gives back every uid as it came, in 16 bytes when it is a UUID in lower case", function()
    for _, text in ipairs { UUID, UUID:upper(), "x", ("f"):rep(36), ("u"):rep(128),
                            UUID:sub(1, 35), UUID:sub(1, 35) .. "g", (UUID:gsub("-", "_")) } do
      assert.equal(text, uid(objects.pod("a", "b", { uid = text })))
    end
    for i = 1, #UUID do
      for _, byte in ipairs { "-", "/", ":", "`", "g", "A", "é", "0", "f" } do
        local text = UUID:sub(1, i - 1) .. byte .. UUID:sub(i + #byte)
        assert.equal(text, uid(objects.pod("a", "b", { uid = text })))
      end
    end
    local packed = C.mw_object_memory(objects.pod("a", "b", { uid = UUID }))
    local plain = C.mw_object_memory(objects.pod("a", "b", { uid = UUID:upper() }))
    assert.equal(20, tonumber(plain - packed))
  end)

  it("compares uids, whatever their form", function()
    local a = objects.pod("a", "b", { uid = UUID })
    assert.is_true(C.mw_object_same_uid(a, objects.pod("c", "d", { uid = UUID })))
    assert.is_false(C.mw_object_same_uid(a, objects.pod("a", "b", { uid = UUID:upper() })))
    assert.is_false(C.mw_object_same_uid(a, objects.pod("a", "b", { uid = (UUID:gsub("9$", "8")) })))
    assert.is_false(C.mw_object_same_uid(a, objects.pod("a", "b")))
  end)

  it("is the same version only with the same uid and a resourceVersion that is equal", function()
    local function same(o, u, rv)
      return C.mw_object_same_version(o, objects.item(
        ('{"metadata":{"name":"b","uid":"%s","resourceVersion":"%s"}}'):format(u, rv)))
    end
    local o = objects.pod("", "b", { uid = UUID, rv = "7" })
    assert.is_true(same(o, UUID, "7"))
    assert.is_false(same(o, UUID, "8"))
    assert.is_false(same(o, UUID:upper(), "7"))
    assert.is_false(same(objects.pod("", "b", { uid = UUID }), UUID, ""))
  end)

  it("refuses what cannot be stored and says why", function() -- row 42
    local function why(json)
      local o, message = objects.make(json)
      assert.is_nil(o)
      return message
    end
    assert.matches("no metadata", why '{"kind":"Pod"}')
    assert.matches("no metadata", why '{"metadata":"x"}')
    assert.matches("no metadata.name", why '{"metadata":{"namespace":"a"}}')
    assert.matches("namespace and name are too long", why(('{"metadata":{"name":"%s"}}'):format(("n"):rep(1024))))
    assert.matches("uid is too long", why(('{"metadata":{"name":"a","uid":"%s"}}'):format(("n"):rep(129))))
    assert.matches("resourceVersion is too long",
      why(('{"metadata":{"name":"a","resourceVersion":"%s"}}'):format(("1"):rep(129))))
  end)

  it("lives as long as its last reference", function()
    local before = tonumber(C.mw_live_get(C.MW_LIVE_OBJECT))
    local o = ffi.gc(objects.pod("a", "b"), nil)
    assert.equal(o, C.mw_object_ref(o))
    C.mw_object_unref(o)
    assert.equal("a/b", objects.key(o))
    assert.equal(before + 1, tonumber(C.mw_live_get(C.MW_LIVE_OBJECT)))
    C.mw_object_unref(o)
    assert.equal(before, tonumber(C.mw_live_get(C.MW_LIVE_OBJECT)))
    assert.is_true(C.mw_object_ref(nil) == nil)
    C.mw_object_unref(nil)
  end)

  it("costs 32 bytes and 4 per label on top of its texts and packed bytes", function()
    local bare = tonumber(C.mw_object_memory(objects.pod("ns", "name")))
    local json = '{"kind":"Pod","metadata":{"name":"name","namespace":"ns"}}'
    assert.is_true(bare <= 32 + #"ns/name" + 1 + #json, bare)
  end)

  describe("labels", function()
    it("are read from the packed bytes", function()
      local o = objects.pod("a", "b", { labels = { app = "web", ["x.io/tier"] = "front", empty = "" } })
      assert.equal("web", label(o, "app"))
      assert.equal("front", label(o, "x.io/tier"))
      assert.equal("", label(o, "empty"))
      assert.is_nil(label(o, "ap"))
      assert.is_nil(label(objects.pod("a", "b"), "app"))
    end)

    it("are found behind metadata that is larger than the first look", function()
      local notes = ('"annotations":{"big":"%s"},"labels":{"app":"web"}'):format(("x"):rep(9000))
      local o = objects.pod("a", "b", { metadata = notes })
      assert.equal("web", label(o, "app"))
    end)

    it("are unescaped, and the last of equal keys wins", function()
      local o = objects.make '{"metadata":{"name":"a","labels":{"k\\u0065y":"v\\u00e4l","app":"one","app":"two"}}}'
      assert.equal("väl", label(o, "key"))
      assert.equal("two", label(o, "app"))
      assert.equal("two", label(o, "app"))
    end)

    it("that are null are none", function()
      assert.is_nil(label(objects.make '{"metadata":{"name":"a","labels":null}}', "n"))
    end)

    it("have fingerprints that never deny what is there", function()
      local labels = {}
      for i = 1, 60 do labels["key-" .. i] = "value-" .. i end
      local o = objects.pod("a", "b", { labels = labels })
      for k, v in pairs(labels) do
        assert.is_true(C.mw_object_may_have_label(o, slice(k)))
        assert.is_true(C.mw_object_may_have_label_value(o, slice(k), slice(v)))
      end
    end)

    it("have fingerprints that rule out almost everything else", function()
      local o = objects.pod("a", "b", { labels = { app = "web", tier = "front" } })
      local keys, values = 0, 0
      for i = 1, 1000 do
        if C.mw_object_may_have_label(o, slice("other-" .. i)) then keys = keys + 1 end
        if C.mw_object_may_have_label_value(o, slice("app"), slice("other-" .. i)) then values = values + 1 end
      end
      assert.is_true(keys < 5 and values < 5, keys .. " " .. values)
      assert.is_false(C.mw_object_may_have_label_value(o, slice("app"), slice("front")))
    end)

    it("beyond the stored fingerprints may still be there, and are found", function()
      local labels = {}
      for i = 1, 300 do labels["key-" .. i] = "value-" .. i end
      local o = objects.pod("a", "b", { labels = labels })
      for k, v in pairs(labels) do
        assert.is_true(C.mw_object_may_have_label_value(o, slice(k), slice(v)))
        assert.equal(v, label(o, k))
      end
      assert.is_nil(label(o, "absent"))
    end)
  end)

  it("gives at least the wanted head of its JSON", function()
    local o = objects.pod("a", "b", { rest = '"spec":"' .. ("0123456789"):rep(2000) .. '"' })
    local whole = str(C.mw_object_json(o, objects.unpacker))
    for _, want in ipairs { 1, 100, 5000, #whole, #whole + 1000 } do
      C.mw_object_unpack(o, objects.unpacker)
      local head = str(C.mw_unpack_more(objects.unpacker, want))
      local sure = math.min(want, #whole)
      assert.is_true(#head >= sure)
      assert.equal(whole:sub(1, sure), head:sub(1, sure))
    end
  end)

  it("makes lists that hold their objects, NULL included", function()
    local l = ffi.new("struct mw_object_list")
    for i = 1, 100 do C.mw_object_list_add(l, objects.pod("a", "p" .. i)) end
    C.mw_object_list_add(l, nil)
    C.mw_object_list_give(l, ffi.gc(objects.pod("a", "given"), nil))
    collectgarbage()
    collectgarbage()
    assert.equal(102, tonumber(l.n))
    assert.equal("a/p77", objects.key(l.v[76]))
    assert.is_true(l.v[100] == nil)
    assert.equal("a/given", objects.key(l.v[101]))
    C.mw_object_list_deinit(l)
    assert.equal(0, tonumber(l.n))
  end)

  it("gives memory back after most of many objects are gone, once", function()
    C.mw_object_trim()
    local l = ffi.new("struct mw_object_list")
    local item, packer = objects.item('{"metadata":{"name":"a"}}'), C.mw_packer_new()
    for _ = 1, 25000 do C.mw_object_list_give(l, C.mw_object_new(item, packer, true, nil)) end
    assert.is_false(C.mw_object_trim())
    C.mw_object_list_deinit(l)
    assert.is_true(C.mw_object_trim())
    assert.is_false(C.mw_object_trim())
    C.mw_packer_free(packer)
  end)

  it("gives memory back when more than a quarter of many objects are gone, and not of less", function()
    local item, packer = objects.item('{"metadata":{"name":"a"}}'), C.mw_packer_new()
    local function list(count)
      local l = ffi.new("struct mw_object_list")
      for _ = 1, count do C.mw_object_list_give(l, C.mw_object_new(item, packer, true, nil)) end
      return l
    end
    local less, more, rest = list(12000), list(1000), list(37000)
    C.mw_object_trim()
    C.mw_object_list_deinit(less)
    assert.is_false(C.mw_object_trim())
    C.mw_object_list_deinit(more)
    assert.is_true(C.mw_object_trim())
    C.mw_object_list_deinit(rest)
    C.mw_packer_free(packer)
  end)
end)

describe("key", function()
  local function split(key)
    local ns, name = ffi.new("struct mw_slice"), ffi.new("struct mw_slice")
    local rc = C.mw_key_split(slice(key), ns, name)
    if rc < 0 then return rc end
    return str(ns), str(name)
  end

  it("splits at its only slash", function() -- rows 46, 56
    assert.are.same({ "", "" }, { split "" })
    assert.are.same({ "", "name" }, { split "name" })
    assert.are.same({ "ns", "name" }, { split "ns/name" })
    assert.are.same({ "", "name" }, { split "/name" })
    assert.are.same({ "ns", "" }, { split "ns/" })
  end)

  it("with more slashes is refused", function() -- rows 46, 56
    assert.equal(C.MW_EINVAL, split "a/b/c")
    assert.equal(C.MW_EINVAL, split "//")
  end)
end)

describe("resource version", function()
  local function compare(a, b)
    local order = ffi.new("int[1]")
    if C.mw_rv_compare(slice(a), slice(b), order) < 0 then return "refused" end
    return order[0]
  end

  it("compares by length, then by digits, without a limit", function()
    assert.equal(-1, compare("9", "10"))
    assert.equal(1, compare("10", "9"))
    assert.equal(0, compare("123", "123"))
    assert.equal(-1, compare("123", "124"))
    assert.equal(1, compare(("9"):rep(40), "1" .. ("0"):rep(38)))
  end)

  it("is refused unless it is a plain positive decimal", function()
    for _, bad in ipairs { "", "0", "01", "-1", "+1", "1a", "1.0", " 1", "١" } do
      assert.equal("refused", compare(bad, "1"), bad)
      assert.equal("refused", compare("1", bad), bad)
    end
  end)
end)
