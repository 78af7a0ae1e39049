local support = require "spec.support.codec"
local cjson = require "cjson"
local unit = require "spec.support.unit"
local codec, difference = support.codec, support.difference

local function round(json)
  return codec.encode(codec.decode(json))
end

local function message(f, ...)
  local ok, err = pcall(f, ...)
  assert.is_false(ok)
  return err
end

describe("codec", function()
  unit.no_leaks()

  it("keeps empty arrays apart from empty objects", function()
    assert.equal("[]", round "[]")
    assert.equal("{}", round "{ }")
    assert.equal('{"a":[]}', round '{"a":[]}')
    assert.equal('{"a":{}}', round '{"a":{}}')
  end)

  it("keeps an array an array and an object an object when a script empties them", function()
    local v = codec.decode '{"list":[1,2],"map":{"a":1}}'
    table.remove(v.list)
    table.remove(v.list)
    v.map.a = nil
    assert.equal("[]", codec.encode(v.list))
    assert.equal("{}", codec.encode(v.map))
  end)

  it("writes a plain table as an array when it is a sequence, else as an object", function()
    assert.equal("[1,2,3]", codec.encode { 1, 2, 3 })
    assert.equal('{"a":1}', codec.encode { a = 1 })
    assert.equal("{}", codec.encode {})
    assert.equal("[]", codec.encode(codec.array {}))
    assert.equal("[]", codec.encode(codec.array()))
    assert.equal("{}", codec.encode(codec.object()))
  end)

  it("tells arrays from objects", function()
    assert.is_true(codec.is_array(codec.decode "[]"))
    assert.is_false(codec.is_array(codec.decode "{}"))
    assert.is_true(codec.is_array { 1 })
    assert.is_false(codec.is_array {})
    assert.is_false(codec.is_array { a = 1 })
    assert.is_false(codec.is_array "x")
    assert.is_false(codec.is_array(nil))
  end)

  it("marks the table that it is given, and refuses one with a metatable of its own", function()
    local t = {}
    assert.equal(t, codec.array(t))
    assert.equal(t, codec.object(t))
    assert.equal("{}", codec.encode(t))
    assert.truthy(message(codec.array, setmetatable({}, {})):find("metatable of its own", 1, true))
  end)

  it("keeps null, which is the null of cjson", function()
    assert.equal(cjson.null, codec.null)
    assert.equal(codec.null, codec.decode '{"a":null}'.a)
    assert.equal('[1,null,2]', round "[1,null,2]")
    assert.equal("null", codec.encode(codec.null))
  end)

  it("reads integers up to 2^53 as numbers", function()
    assert.equal(9007199254740992, codec.decode "9007199254740992")
    assert.equal(-9007199254740992, codec.decode "-9007199254740992")
    assert.equal("number", type(codec.decode "9007199254740992"))
  end)

  it("keeps integers beyond 2^53 exactly", function()
    for _, text in ipairs { "9007199254740993", "-9007199254740993", "9223372036854775807", "-9223372036854775808",
      "9223372036854775808", "18446744073709551615" } do
      assert.equal("cdata", type(codec.decode(text)))
      assert.equal(text, round(text))
    end
  end)

  it("keeps the text of numbers that no machine type holds", function()
    for _, text in ipairs { "18446744073709551616", "-9223372036854775809", "1e999", "-1E+999", "1e-999",
      "0.1234567890123456789012", "1." .. ("0"):rep(80) .. "1", ("9"):rep(400), "1e99999999999999999999" } do
      assert.equal("userdata", type(codec.decode(text)))
      assert.equal(text, tostring(codec.decode(text)))
      assert.equal(text, round(text))
      assert.equal(codec.decode(text), codec.decode(text))
    end
    assert.are_not.equal(codec.decode "1e999", codec.decode "2e999")
    assert.is_false(getmetatable(codec.decode "1e999"))
  end)

  it("reads numbers that a double gives back as numbers", function()
    for text, expected in pairs { ["0.1"] = 0.1, ["1.0"] = 1, ["1.50"] = 1.5, ["1e2"] = 100, ["-2.5E-3"] = -0.0025,
      ["0.30000000000000004"] = 0.1 + 0.2, ["1.7976931348623157e308"] = 1.7976931348623157e308,
      ["5e-324"] = 5e-324, ["0.0"] = 0, ["123456789.125"] = 123456789.125, ["100e-2"] = 1, ["1e22"] = 1e22 } do
      assert.equal("number", type(codec.decode(text)), text)
      assert.equal(expected, codec.decode(text))
      assert.equal(expected, codec.decode(round(text)))
    end
  end)

  it("writes whole numbers without exponent or fraction", function()
    assert.equal("1000000000000000", codec.encode(1e15))
    assert.equal("123456789012345", codec.encode(123456789012345))
    assert.equal("9007199254740992", codec.encode(2 ^ 53))
    assert.equal("4611686018427387904", codec.encode(2 ^ 62))
    assert.equal("-3", codec.encode(-3))
    assert.equal("0", codec.encode(0))
    assert.equal("-0", codec.encode(codec.decode "-0"))
  end)

  it("writes every other double so that it reads back as the same", function()
    local random = support.random(7)
    for _ = 1, 2000 do
      local d = (random(1, 2 ^ 30) / random(1, 2 ^ 30)) * 10 ^ random(-300, 300)
      assert.equal(d, tonumber(codec.encode(d)))
      assert.equal(d, codec.decode(codec.encode(d)))
    end
    assert.equal("0.1", codec.encode(0.1))
  end)

  it("makes exact integers from numbers, strings and integers", function()
    assert.equal("9223372036854775807", codec.encode(codec.int64 "9223372036854775807"))
    assert.equal("-9223372036854775808", codec.encode(codec.int64 "-9223372036854775808"))
    assert.equal("18446744073709551615", codec.encode(codec.int64 "18446744073709551615"))
    assert.equal("42", codec.encode(codec.int64(42)))
    assert.equal("43", codec.encode(codec.int64(codec.int64(42)) + 1))
    for _, bad in ipairs { 1.5, 2 ^ 63, 0 / 0, "", "-", "1.0", "18446744073709551616", "0x10", {}, true } do
      assert.is_false(pcall(codec.int64, bad))
    end
  end)

  it("makes numbers from literals", function()
    assert.equal(1.5, codec.number "1.5")
    assert.equal("1e999", codec.encode(codec.number "1e999"))
    for _, bad in ipairs { "", "x", "1 ", " 1", "01", "1.", "+1", "0x1", "NaN" } do
      assert.is_false(pcall(codec.number, bad))
    end
  end)

  it("unescapes strings of any length and writes them with few escapes", function()
    assert.equal("é\n\"\\/\t😀", codec.decode [["\u00e9\n\"\\\/\t\ud83d\ude00"]])
    local long = ("line\n"):rep(2000)
    assert.equal(long, codec.decode(codec.encode(long)))
    assert.equal([["a/b é \" \\ \n \u0001"]], codec.encode('a/b é " \\ \n \1'))
    assert.equal("x\0y", codec.decode [["x\u0000y"]])
    assert.equal([["x\u0000y"]], codec.encode "x\0y")
  end)

  it("says where input stops being JSON", function()
    for json, offset in pairs { ['{"a":1,}'] = 7, ["[1,2"] = 4, ["nul"] = 3, ["1 2"] = 2, [""] = 0, ['"\255"'] = 1,
      ["[1]]"] = 3, ["{1:2}"] = 1 } do
      assert.truthy(message(codec.decode, json):find("at byte " .. offset .. "$"), json .. message(codec.decode, json))
    end
  end)

  it("says which value cannot be written", function()
    local cases = {
      { { spec = { containers = { { image = print } } } }, "spec.containers[1].image: a function" },
      { { spec = { replicas = 0 / 0 } }, "spec.replicas: NaN" },
      { { 1, math.huge }, "[2]: NaN and infinity" },
      { { a = { 1, 2, x = 3 } }, "a: the array has a key that is not a number" },
      { { a = codec.object { [1] = "x" } }, "a: the object has a key that is not a string" },
      { { a = { [1] = 1, [3] = 3 } }, "a: the array has holes" },
      { { a = { [1.5] = 1 } }, "a: the array has a key that is not a positive" },
      { { ["app.kubernetes.io/x"] = { y = "\255" } }, '["app.kubernetes.io/x"].y: the string is not valid UTF-8' },
      { { ["\255"] = 1 }, "[?]: the string is not valid UTF-8" },
      { { a = io.stdout }, "a: userdata" },
      { { a = coroutine.create(print) }, "a: a coroutine" },
      { { a = 1i }, "a: of cdata only" },
      { print, "the value: a function" },
    }
    for _, case in ipairs(cases) do
      local err = message(codec.encode, case[1])
      assert.truthy(err:find("cannot encode " .. case[2], 1, true), err)
    end
    assert.truthy(message(codec.encode, nil):find("nil is not JSON", 1, true))
  end)

  it("takes 256 levels of nesting both ways and refuses the next", function()
    local deep = ("["):rep(256) .. ("]"):rep(256)
    assert.equal(deep, round(deep))
    local objects = ('{"a":'):rep(255) .. "{}" .. ("}"):rep(255)
    assert.equal(objects, round(objects))
    assert.truthy(message(codec.decode, "[" .. deep .. "]"):find("nested deeper than 256", 1, true))
    assert.truthy(message(codec.encode, { codec.decode(deep) }):find("nested too deep", 1, true))
  end)

  it("refuses a table that contains itself", function()
    local t = {}
    t.t = t
    assert.truthy(message(codec.encode, t):find("nested too deep", 1, true))
    assert.truthy(message(codec.copy, t):find("contains itself", 1, true))
  end)

  it("decodes wide and deep documents, whatever the Lua stack can hold", function()
    local level = ('{"a":0,"b":0,"c":0,"d":0,"e":0,"f":0,"g":0,"h":0,"i":0,"j":0,"k":0,"l":0,"m":0,"n":0,"o":')
    local json = level:rep(255) .. "[]" .. ("}"):rep(255)
    assert.is_nil(difference(codec.decode(json), codec.decode(round(json))))
    local wide = {}
    for i = 1, 1000 do wide[i] = ('"k%d":%d'):format(i, i) end
    local v = codec.decode("{" .. table.concat(wide, ",") .. "}")
    for i = 1, 1000 do assert.equal(i, v["k" .. i]) end
  end)

  it("runs no metamethods of scripts while it encodes", function()
    local trap = setmetatable({ a = 1 }, { __index = error, __newindex = error, __tostring = error })
    assert.equal('{"a":1}', codec.encode(trap))
  end)

  it("takes the last of equal keys", function()
    assert.equal(2, codec.decode '{"a":1,"a":2}'.a)
  end)

  it("decodes what it encoded to the same document, 2000 times", function()
    local random = support.random(20240601)
    for n = 1, 2000 do
      local json = support.document(random)
      local first = codec.decode(json)
      local found = difference(first, codec.decode(codec.encode(first)))
      assert.is_nil(found, ("document %d: %s\n%s"):format(n, tostring(found), json))
    end
  end)

  it("agrees with lua-cjson where that keeps what it reads, 2000 times", function()
    local random = support.random(31415)
    for n = 1, 2000 do
      local json = support.document(random, { plain = true })
      local ours = codec.decode(json)
      local found = difference(cjson.decode("[" .. json .. "]")[1], ours)
        or difference(cjson.decode("[" .. codec.encode(ours) .. "]")[1], ours)
      assert.is_nil(found, ("document %d: %s\n%s"):format(n, tostring(found), json))
    end
  end)

  it("does not give scripts the FFI, and closes its state cleanly", function()
    local pipe = io.popen(([[luajit -e '
      local codec = package.loadlib("%s", "luaopen_mw_codec_spec")()
      for i = 1, 1000 do codec.decode("[9223372036854775807, {}]") end
      collectgarbage() collectgarbage()
      local literal = loadstring("return 9223372036854775807LL")()
      print(package.loaded.ffi, literal == codec.decode("9223372036854775807"))
    ']]):format(support.library))
    local text = pipe:read "*a"
    assert.is_true(pipe:close())
    assert.equal("nil\ttrue\n", text)
  end)
end)

describe("copy", function()
  unit.no_leaks()

  it("copies deeply, with the identity of arrays and objects", function()
    local v = codec.decode '{"a":[],"b":{},"c":[{"d":9223372036854775807}],"n":null}'
    local copy = codec.copy(v)
    assert.is_nil(difference(v, copy))
    copy.c[1].d = 1
    copy.a[1] = "x"
    assert.equal("9223372036854775807", codec.encode(v.c[1].d))
    assert.equal("[]", codec.encode(v.a))
  end)

  it("leaves other metatables behind", function()
    assert.is_nil(getmetatable(codec.copy(setmetatable({}, { __index = error }))))
  end)

  it("gives back what is no table", function()
    assert.equal("x", codec.copy "x")
    assert.equal(codec.null, codec.copy(codec.null))
  end)

  it("ends on a table that shares its parts without end", function()
    local t = {}
    for _ = 1, 60 do t = { t, t } end
    assert.truthy(message(codec.copy, t):find("more than", 1, true))
  end)
end)

describe("get", function()
  unit.no_leaks()

  local o = codec.decode [[{"spec":{"containers":[{"image":"a"},{"image":"b","ports":[]},{}],"nodeName":null},
    "metadata":{"labels":{"app.kubernetes.io/name":"web","q\"":"quoted"}},"items":[null,1]}]]

  it("reads a path", function()
    assert.equal("a", codec.get(o, "spec.containers[0].image"))
    assert.equal("web", codec.get(o, 'metadata.labels["app.kubernetes.io/name"]'))
    assert.equal("quoted", codec.get(o, 'metadata.labels["q\\""]'))
    assert.equal(o.spec, codec.get(o, "spec"))
  end)

  it("reads by keys as one would index", function()
    assert.equal("b", codec.get(o, "spec", "containers", 2, "image"))
    assert.equal("web", codec.get(o, "metadata", "labels", "app.kubernetes.io/name"))
    assert.equal("a", codec.get({ "a" }, 1))
  end)

  it("gives nil for what is absent, null, or no table", function()
    assert.is_nil(codec.get(o, "spec.nothing.at.all"))
    assert.is_nil(codec.get(o, "spec", "nothing", "at", "all"))
    assert.is_nil(codec.get(o, "spec.nodeName"))
    assert.is_nil(codec.get(o, "spec", "nodeName"))
    assert.is_nil(codec.get(o, "spec.nodeName.x"))
    assert.is_nil(codec.get(o, "spec.containers[7].image"))
    assert.is_nil(codec.get(nil, "spec"))
    assert.is_nil(codec.get(nil, "spec", "x"))
    assert.is_nil(codec.get("text", "a", "b"))
    assert.is_nil(codec.get(o, "spec", nil))
  end)

  it("gives an array of everything that [*] finds", function()
    assert.are.same({ "a", "b" }, codec.get(o, "spec.containers[*].image"))
    assert.equal("[]", codec.encode(codec.get(o, "spec.containers[*].nothing")))
    assert.equal("[]", codec.encode(codec.get(nil, "spec.containers[*].nothing")))
    assert.equal("[null,1]", codec.encode(codec.get(o, "items[*]")))
  end)

  it("says where a path is malformed", function()
    assert.truthy(message(codec.get, o, "spec..x"):find("column 6", 1, true))
  end)
end)
