-- Objects whose names begin alike are packed as what they have different from one of them.
local unit = require "spec.support.unit"
local C, ffi = unit.C, unit.ffi

local MEMBERS = 8 -- that a family has before there is a template

local SINGLE = "{" .. ('"x":1,'):rep(100) .. '"y":2}'

local rig

-- A packer that has a dictionary, and an unpacker.
local function new_rig()
  local r = { packer = C.mw_packer_new(), unpacker = C.mw_unpacker_new() }
  local out, dict, held = ffi.new "char[100000]", ffi.new "struct mw_dict *[1]", {}

  -- As an object does, what is packed holds its dictionary.
  function r.pack_only(name, raw, is_updated, managed)
    local hint = ffi.new("struct mw_pack_hint", { unit.slice(name), not is_updated })
    if managed then hint.beside.managed = unit.slice(managed) end
    local n = tonumber(C.mw_pack(r.packer, hint, unit.slice(raw), out, dict))
    held[#held + 1] = C.mw_dict_ref(dict[0])
    return n
  end

  function r.let_go()
    for i = 1, #held do C.mw_dict_unref(held[i]) end
    held = {}
  end

  -- Packs it, checks that it comes back, and returns the size, the dictionary and the packed bytes.
  function r.pack(name, raw, is_updated, managed)
    local n = r.pack_only(name, raw, is_updated, managed)
    for _, want in ipairs { #raw, math.floor(#raw / 2) } do
      C.mw_unpack_begin(r.unpacker, dict[0], ffi.new("struct mw_slice", { out, n }), #raw)
      local back = C.mw_unpack_more(r.unpacker, want)
      assert.is_true(back.p ~= nil and back.n >= want)
      assert.equal(raw:sub(1, want), unit.str(back):sub(1, want))
    end
    return n, dict[0], ffi.string(out, n)
  end

  function r.free()
    r.let_go()
    C.mw_packer_free(r.packer)
    C.mw_unpacker_free(r.unpacker)
  end

  for i = 1, 256 do r.pack("filler", ('{"metadata":{"name":"filler","uid":"%d"}}'):format(i)) end
  return r
end

local function hex(n)
  local t = {}
  for i = 1, n do t[i] = ("%x"):format(math.random(0, 15)) end
  return table.concat(t)
end

-- Members of an application have all but a few values in common; no two applications do.
local function member(app, more)
  local seed = {}
  for i = 1, #app do seed[i] = ("%q:%q"):format("key-" .. app .. i, ("value-%d-%s"):format(i * i, app):rep(8)) end
  return ('{"metadata":{"name":"%s-%s","uid":"%s","annotations":{%s}%s},"spec":{"replicas":%d,"node":"n%s.example.com",'
    .. '"settings":{%s}},"status":{"ip":"10.0.%d.%d","phase":"Running","ready":true}}'):format(app, hex(5), hex(32),
    table.concat(seed, ","), more or "", math.random(9), hex(3), table.concat(seed, ","), math.random(255),
    math.random(255))
end

local function dictionaries() return unit.live().dictionary or 0 end

describe("the members of a family", function()
  after_each(function() rig.free() end)
  unit.no_leaks()
  before_each(function()
    math.randomseed(5)
    rig = new_rig()
  end)

  it("are packed as their differences, once there are enough of them", function()
    local alone, template
    for i = 1, MEMBERS - 1 do
      local n, dict = rig.pack("web-" .. i, member "web")
      assert.is_true(dict == C.mw_packer_dict(rig.packer))
      alone = n
    end
    for i = 1, 50 do
      local n, dict = rig.pack("web-" .. hex(i), member "web")
      template = template or dict
      assert.is_true(dict == template and dict ~= C.mw_packer_dict(rig.packer))
      if i > 1 then assert.is_true(n < 150 and n * 2 < alone, n .. " of " .. alone) end
    end
    -- Those of another have another, and what has no family has none.
    for i = 1, MEMBERS do rig.pack("db-" .. i, member "database") end
    local _, other = rig.pack("db-x", member "database")
    assert.is_true(other ~= template and other ~= C.mw_packer_dict(rig.packer))
    local _, none = rig.pack("unheard.of", member "web")
    assert.is_true(none == C.mw_packer_dict(rig.packer))
  end)

  it("are objects, not versions of one", function()
    for _ = 1, 10 * MEMBERS do
      local _, dict = rig.pack("web-1", member "web", true)
      assert.is_true(dict == C.mw_packer_dict(rig.packer))
    end
    for i = 1, MEMBERS do rig.pack("web-" .. i, member "web") end
    local _, dict = rig.pack("web-1", member "web", true)
    assert.is_true(dict ~= C.mw_packer_dict(rig.packer))
  end)

  it("may have parts that the others lack, and lack others", function()
    for i = 1, MEMBERS do rig.pack("web-" .. i, member "webserver") end
    local plain, template = rig.pack("web-x", member "webserver")
    for _, more in ipairs { ',"labels":{"a":"b"}', ',"owners":[{"uid":"1"},{"uid":"2","controller":true}]',
      ',"text":"\\"quoted\\" \\\\ text"', ',"n":[1,2,3,4,5]', ',"x":{}' } do
      local n, dict = rig.pack("web-y", member("webserver", more))
      assert.is_true(dict == template)
      assert.is_true(n < plain + 2 * #more + 40, n .. " of " .. plain)
    end
    local n, dict = rig.pack("web-z", (member "webserver":gsub('"metadata":{.-},"spec"', '"spec"')))
    assert.is_true(dict == template and n < plain + 60)
  end)

  it("have a template, however large and with however many managed fields", function()
    local filling = hex(23 * 1024)
    local function large(i) return ('{"metadata":{"name":"web-%d"},"spec":{"text":"%s"}}'):format(i, filling) end
    for _, size in ipairs { 100, 12 * 1024, 17 * 1024, 20 * 1024, 70 * 1024 } do
      local name, managed = ("size%d-"):format(size), ('["%s"]'):format(hex(size))
      for i = 1, MEMBERS do rig.pack(name .. i, large(i), false, managed) end
      local n, dict = rig.pack(name .. "x", large(99), false, managed)
      assert.is_true(dict ~= C.mw_packer_dict(rig.packer) and n < 200, n .. " bytes with " .. size)
    end
  end)

  it("come back whatever has happened to them", function()
    for i = 1, MEMBERS do rig.pack("web-" .. i, member "webserver") end
    local beside = 0
    for _ = 1, 3000 do
      local raw = member "webserver"
      for _ = 1, math.random(4) do
        local from, to = math.random(#raw), math.random(40)
        local put = math.random(3) == 1 and "" or math.random(2) == 1 and ('"'):rep(math.random(9)) or hex(to)
        raw = raw:sub(1, from) .. put .. raw:sub(from + math.random(0, 60))
      end
      local _, dict = rig.pack("web-1", raw, true)
      if dict ~= C.mw_packer_dict(rig.packer) then beside = beside + 1 end
    end
    assert.is_true(beside > 2500, beside)
  end)

  it("are packed the same with wide registers and without, wherever they differ", function()
    local words = {}
    for i = 1, 40 do words[i] = hex(math.random(60)) end
    local text = ('["%s"]'):format(table.concat(words, '","'))
    for i = 1, MEMBERS do rig.pack("web-" .. i, text) end
    local function packed(raw, narrow)
      C.mw_narrow = narrow
      local _, dict, bytes = rig.pack("web-x", raw, true)
      C.mw_narrow = false
      assert.is_true(dict ~= C.mw_packer_dict(rig.packer))
      return bytes
    end
    for first = 1, 600 do
      local second, last = first + math.random(150), math.random(800, #text)
      local raw = text:sub(1, first - 1) .. "x" .. text:sub(first + 1, second - 1) .. "y" .. text:sub(second + 1, last)
      assert.equal(packed(raw, true), packed(raw, false))
    end
  end)

  it("get another template when the one they have is not like them", function()
    for i = 1, MEMBERS - 1 do rig.pack("web-" .. i, member "web") end
    rig.pack("web-odd", member "something entirely different")
    for i = 1, 2 * MEMBERS do rig.pack("web-" .. i, member "web") end
    local n, dict = rig.pack("web-x", member "web")
    assert.is_true(dict ~= C.mw_packer_dict(rig.packer) and n < 150)
  end)

  it("keep their place from many who have none", function()
    for i = 1, MEMBERS do rig.pack("web-" .. i, member "web") end
    local _, template = rig.pack("web-x", member "web")
    for i = 1, 50 do
      for k = 1, 500 do rig.pack_only(("single%d.%d"):format(i * 1000 + k, i), SINGLE) end
      local _, dict = rig.pack("web-" .. i, member "web", true)
      assert.is_true(dict == template)
    end
  end)

  it("take their template with them when they are gone, and give up their place", function()
    local before = dictionaries()
    for round = 1, 3 do
      for app = 1, 2000 do
        for i = 1, MEMBERS do rig.pack_only(("app%d.%d-%d"):format(round, app, i), SINGLE) end
      end
      assert.is_true(dictionaries() - before > 1500 and dictionaries() - before <= 2000)
      rig.let_go()
    end
    for i = 1, 4096 do rig.pack_only("single" .. i, SINGLE) end
    assert.equal(before, dictionaries())
  end)

  it("have a template only if they are neither small nor large", function()
    for _, raw in ipairs { '{"small":' .. ("1"):rep(490) .. "}", '{"large":[' .. ('"abc",'):rep(5000) .. '"d"]}' } do
      for i = 1, 2 * MEMBERS do
        local _, dict = rig.pack("web-" .. i, raw)
        assert.is_true(dict == C.mw_packer_dict(rig.packer))
      end
    end
  end)
end)

describe("a template", function()
  unit.no_leaks()

  it("is there until nothing needs it", function()
    local before = dictionaries()
    rig = new_rig()
    for i = 1, MEMBERS do rig.pack("web-" .. i, member "web") end
    local _, dict = rig.pack("web-x", member "web")
    C.mw_dict_ref(dict)
    rig.free()
    assert.equal(before + 1, dictionaries())
    C.mw_dict_unref(dict)
    assert.equal(before, dictionaries())
  end)
end)
