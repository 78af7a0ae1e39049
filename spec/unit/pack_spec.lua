local unit = require "spec.support.unit"
local C, ffi = unit.C, unit.ffi

local function packer() return ffi.gc(C.mw_packer_new(), C.mw_packer_free) end
local function unpacker() return ffi.gc(C.mw_unpacker_new(), C.mw_unpacker_free) end
local function done(x, free) free(ffi.gc(x, nil)) end

-- The packed bytes and the dictionary (with a reference), or nil for none.
local function pack(p, raw)
  local out = ffi.new("char[?]", tonumber(C.mw_pack_bound(#raw)) + 1)
  local dict = ffi.new("struct mw_dict *[1]")
  local n = tonumber(C.mw_pack(p, ffi.new("struct mw_pack_hint"), unit.slice(raw), out, dict))
  local ref = dict[0] ~= nil and ffi.gc(C.mw_dict_ref(dict[0]), C.mw_dict_unref) or nil
  return ffi.string(out, n), ref
end

local function unpack_(u, packed, dict, raw_len, want)
  local bytes = unit.slice(packed)
  C.mw_unpack_begin(u, dict, bytes, raw_len)
  local s = C.mw_unpack_more(u, want or raw_len)
  return s.p ~= nil and unit.str(s) or nil
end

local function hex(n)
  local t = {}
  for i = 1, n do t[i] = ("%x"):format(math.random(0, 15)) end
  return table.concat(t)
end

-- An object of app `app` as an API server prints it, unique in what is unique.
local function pod(app)
  local env = {}
  for i = 1, 10 do env[i] = ('{"name":"%s_SETTING_%d","value":"%s-%d"}'):format(app:upper(), i, app, i * 7) end
  return ('{"kind":"Pod","apiVersion":"v1","metadata":{"name":"%s-%s","namespace":"%s","uid":"%s",' ..
    '"resourceVersion":"%d","labels":{"app":"%s","pod-template-hash":"%s"}},"spec":{"containers":[{"name":"%s",' ..
    '"image":"registry.example.com/%s:1.0","env":[%s],"terminationMessagePath":"/dev/termination-log",' ..
    '"terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}],"restartPolicy":"Always","nodeName":' ..
    '"node-%d","schedulerName":"default-scheduler"},"status":{"phase":"Running","podIP":"10.0.%d.%d"}}'):format(
    app, hex(5), app, hex(32), math.random(1e6), app, hex(10), app, app, table.concat(env, ","),
    math.random(99), math.random(255), math.random(255))
end

describe("packed bytes", function()
  unit.no_leaks()
  before_each(function() math.randomseed(3) end)

  it("come back bit by bit, each time from where it stopped", function()
    local p, u = packer(), unpacker()
    for i = 1, 400 do
      local raw = pod("app" .. i % 3)
      local packed, dict = pack(p, raw)
      local s = unit.slice(packed)
      C.mw_unpack_begin(u, dict, s, #raw)
      local had, place = -1, nil
      for want = math.random(0, 50), #raw + 200, math.random(1, 300) do
        local got = C.mw_unpack_more(u, want)
        place = place or got.p
        assert.is_true(got.p == place and got.n >= math.min(want, #raw) and tonumber(got.n) >= had)
        had = tonumber(got.n)
        assert.equal(raw:sub(1, had), unit.str(got))
      end
      assert.equal(raw, unit.str(C.mw_unpack_more(u, #raw)))
    end
    done(p, C.mw_packer_free)
    done(u, C.mw_unpacker_free)
  end)

  it("are unpacked no further than is asked for", function()
    local p, u = packer(), unpacker()
    local parts = {}
    for i = 1, 20000 do parts[i] = hex(8) .. "the same again" end
    local raw = table.concat(parts)
    local packed = pack(p, raw)
    assert.is_true(#packed < #raw)
    local s = unit.slice(packed)
    C.mw_unpack_begin(u, nil, s, #raw)
    assert.is_true(C.mw_unpack_more(u, 2000).n < 2100)
    done(p, C.mw_packer_free)
    done(u, C.mw_unpacker_free)
  end)

  it("come back as they were, before and after the dictionary is frozen", function()
    local p, u = packer(), unpacker()
    local kept = {}
    for i = 1, 700 do
      local raw = pod("app" .. i % 7)
      local packed, dict = pack(p, raw)
      kept[i] = { raw = raw, packed = packed, dict = dict }
    end
    for _, o in ipairs(kept) do assert.equal(o.raw, unpack_(u, o.packed, o.dict, #o.raw)) end
    assert.is_nil(kept[1].dict)
    assert.is_not_nil(kept[700].dict)
    assert.is_true(C.mw_packer_dict(p) == kept[700].dict)
    done(p, C.mw_packer_free)
    -- Objects outlive the packer.
    for _, o in ipairs(kept) do assert.equal(o.raw, unpack_(u, o.packed, o.dict, #o.raw)) end
    done(u, C.mw_unpacker_free)
  end)

  it("are small once there is a dictionary", function()
    local p = packer()
    local raw_size, size = 0, 0
    for i = 1, 1500 do
      local raw = pod(("app%03d"):format(math.floor(i / 50)))
      local packed = pack(p, raw)
      if i > 1000 then raw_size, size = raw_size + #raw, size + #packed end
    end
    assert.is_true(size * 4 < raw_size, ("%d of %d"):format(size, raw_size))
    done(p, C.mw_packer_free)
  end)

  it("have one dictionary that is counted until nothing needs it", function()
    local function dictionaries() return unit.live().dictionary or 0 end
    local before = dictionaries()
    local p = packer()
    assert.is_true(C.mw_packer_dict(p) == nil)
    local last
    for _ = 1, 600 do _, last = pack(p, pod("a")) end
    assert.equal(before + 1, dictionaries())
    done(p, C.mw_packer_free)
    assert.equal(before + 1, dictionaries())
    done(last, C.mw_dict_unref)
    collectgarbage()
    collectgarbage()
    assert.equal(before, dictionaries())
  end)

  it("get a second dictionary when later objects differ from the first, and no third", function()
    local p, u = packer(), unpacker()
    local kept, dicts, count = {}, {}, 0
    for i = 1, 6000 do
      local raw = pod(i <= 300 and "first" or hex(8))
      local packed, dict = pack(p, raw)
      local id = dict and tostring(dict) or "none"
      if not dicts[id] then
        dicts[id], count = true, count + 1
        kept[count] = { raw = raw, packed = packed, dict = dict }
      end
    end
    assert.equal(3, count) -- none, the first, the second
    for _, o in ipairs(kept) do assert.equal(o.raw, unpack_(u, o.packed, o.dict, #o.raw)) end
    done(p, C.mw_packer_free)
    done(u, C.mw_unpacker_free)
  end)

  it("are stored as they are when packing does not make them smaller", function()
    local p, u = packer(), unpacker()
    for _, raw in ipairs { "", "x", "abcdefghijklmnop", "\0\1\2\3\4\5\6\7\8" } do
      local packed, dict = pack(p, raw)
      assert.equal(raw, packed)
      assert.is_nil(dict)
      assert.equal(raw, unpack_(u, packed, nil, #raw))
    end
    done(p, C.mw_packer_free)
    done(u, C.mw_unpacker_free)
  end)

  it("can be unpacked in part", function()
    local p, u = packer(), unpacker()
    local raw, packed, dict
    for _ = 1, 600 do
      raw = pod("a")
      packed, dict = pack(p, raw)
    end
    for _, want in ipairs { 0, 1, 100, #raw - 1, #raw } do
      local part = unpack_(u, packed, dict, #raw, want)
      assert.is_true(#part >= want)
      assert.equal(raw:sub(1, want), part:sub(1, want))
    end
    done(p, C.mw_packer_free)
    done(u, C.mw_unpacker_free)
  end)

  it("are told from damaged ones", function()
    local p, u = packer(), unpacker()
    local raw = pod("a")
    local packed, dict = pack(p, raw)
    assert.is_nil(unpack_(u, packed:sub(1, -2), dict, #raw))
    assert.is_nil(unpack_(u, packed, dict, #raw + 1))
    assert.is_nil(unpack_(u, packed, dict, #raw - 1))
    assert.is_nil(unpack_(u, packed, dict, 1))
    assert.is_nil(unpack_(u, packed, dict, 2 ^ 40))
    assert.is_nil(unpack_(u, ("\255"):rep(100), dict, 5000))
    done(p, C.mw_packer_free)
    done(u, C.mw_unpacker_free)
  end)

  it("of many dictionaries go through one unpacker", function()
    local u = unpacker()
    local kept = {}
    for k = 1, 7 do
      local p = packer()
      local raw, packed, dict
      for _ = 1, 520 do
        raw = pod("app" .. k)
        packed, dict = pack(p, raw)
      end
      kept[k] = { raw = raw, packed = packed, dict = dict }
      done(p, C.mw_packer_free)
    end
    for _ = 1, 3 do
      for _, o in ipairs(kept) do assert.equal(o.raw, unpack_(u, o.packed, o.dict, #o.raw)) end
    end
    done(u, C.mw_unpacker_free)
  end)

  it("of large objects work with and without a dictionary", function()
    local p, u = packer(), unpacker()
    local parts = {}
    for i = 1, 600 do
      parts[i] = pod("big")
      pack(p, parts[i])
    end
    local raw = "[" .. table.concat(parts, ",") .. "]"
    local packed, dict = pack(p, raw)
    assert.is_true(#packed < #raw / 2)
    assert.equal(raw, unpack_(u, packed, dict, #raw))
    local small = pod("big")
    packed, dict = pack(p, small)
    assert.equal(small, unpack_(u, packed, dict, #small))
    done(p, C.mw_packer_free)
    done(u, C.mw_unpacker_free)
  end)

  it("of every short length, of few letters and of many, come back as they were", function()
    local p, u = packer(), unpacker()
    for _ = 1, 2400 do pack(p, pod("app" .. math.random(9))) end
    local sample = pod("app1")
    for n = 0, 300 do
      local few, many = {}, {}
      for i = 1, n do
        few[i], many[i] = ("abc"):sub(math.random(3)):sub(1, 1), string.char(math.random(0, 255))
      end
      for _, raw in ipairs { ("x"):rep(n), table.concat(few), table.concat(many), sample:sub(1, n), sample:sub(-n) } do
        local packed, dict = pack(p, raw)
        assert.is_true(#packed <= #raw)
        assert.equal(raw, unpack_(u, packed, dict, #raw))
      end
    end
    done(p, C.mw_packer_free)
    done(u, C.mw_unpacker_free)
  end)

  it("that repeat what stands further back than can be told come back as they were", function()
    local p, u = packer(), unpacker()
    for _ = 1, 2400 do pack(p, pod("app" .. math.random(9))) end
    local sample, noise = pod("app1"), {}
    for _, n in ipairs { 1000, 60000, 65520, 65535, 65536, 65537, 70000, 200000 } do
      for i = 1, n do noise[i] = string.char(math.random(0, 255)) end
      local raw = sample .. table.concat(noise, "", 1, n) .. sample .. ("y"):rep(n) .. sample
      local packed, dict = pack(p, raw)
      assert.is_true(#packed < #raw)
      assert.equal(raw, unpack_(u, packed, dict, #raw))
    end
    done(p, C.mw_packer_free)
    done(u, C.mw_unpacker_free)
  end)
end)
