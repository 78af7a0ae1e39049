-- What the codec does for the sandbox: documents as Go writes them, and repeated keys.
local host = require "spec.support.sandbox_env"
local support = require "spec.support.codec"
local unit = require "spec.support.unit"
local codec = host.codec

local function sorted(json) return codec.encode_sorted(codec.decode(json)) end

describe("encode_sorted", function()
  unit.no_leaks()

  it("orders keys by their bytes at every level", function()
    assert.equal('{"":0,"A":1,"a":{"x":[{"a":1,"b":2}],"y":1},"a.b":2,"aa":3,"é":4}',
      sorted '{"aa":3,"é":4,"a":{"y":1,"x":[{"b":2,"a":1}]},"A":1,"a.b":2,"":0}')
  end)

  it("orders objects with many keys, too", function()
    local t, wanted = {}, {}
    for i = 1, 5000 do
      local key = ("k%05d"):format((i * 7919) % 5000)
      t[key] = i % 3 == 0 and { b = i, a = true } or i
    end
    for key, value in pairs(t) do
      wanted[#wanted + 1] = ('"%s":%s'):format(key,
        type(value) == "table" and ('{"a":true,"b":%d}'):format(value.b) or value)
    end
    table.sort(wanted)
    assert.equal("{" .. table.concat(wanted, ",") .. "}", codec.encode_sorted(t))
  end)

  it("escapes what Go escapes", function()
    assert.equal([["\u003ca href=\"x\"\u003e \u0026 \u2028\u2029 \\ \n\t\b\f\u0001 é"]],
      codec.encode_sorted "<a href=\"x\"> & \226\128\168\226\128\169 \\ \n\t\b\f\1 é")
    assert.equal('{"\\u003c":"€ \127"}', codec.encode_sorted { ["<"] = "€ \127" })
  end)

  it("writes the document that encode writes, in another order", function()
    local random = support.random(7)
    for _ = 1, 300 do
      local value = codec.decode(support.document(random))
      local text = codec.encode_sorted(value)
      assert.is_nil(support.difference(value, codec.decode(text)))
      assert.equal(text, codec.encode_sorted(codec.decode(text)))
    end
  end)

  it("keeps null, empty containers and exact numbers", function()
    local json = '{"a":[],"b":{},"c":null,"d":9223372036854775807,"e":18446744073709551615,"f":0.1}'
    assert.equal(json, sorted(json))
  end)

  it("writes numbers as Go does", function()
    for number, text in pairs {
      [0.1] = "0.1", [-2.5] = "-2.5", [1e-6] = "0.000001", [1.5e-7] = "1.5e-7", [1e-7] = "1e-7", [-1e-10] = "-1e-10",
      [1e20] = "100000000000000000000", [1.5e20] = "150000000000000000000", [1e21] = "1e+21", [1.25e100] = "1.25e+100",
      [123456.789] = "123456.789", [0.00012] = "0.00012", [5e-324] = "5e-324", [1e15] = "1000000000000000",
      [1.7976931348623157e308] = "1.7976931348623157e+308",
    } do
      assert.equal(text, codec.encode_sorted(number))
    end
  end)

  it("names the place of what it cannot write, and works again afterwards", function()
    local ok, message = pcall(codec.encode_sorted, { a = { b = { 1, print } } })
    assert.is_false(ok)
    assert.truthy(message:find("cannot encode a.b[2]: a function is not JSON", 1, true))
    local loop = {}
    loop.loop = loop
    assert.is_false(pcall(codec.encode_sorted, loop))
    assert.is_false(pcall(codec.encode_sorted, { [1] = 1, a = 2 }))
    assert.equal('{"a":1}', codec.encode_sorted { a = 1 })
  end)
end)

describe("duplicates", function()
  unit.no_leaks()

  it("tells the path of each key that an object has more than once", function()
    assert.same({ "data.a" }, codec.duplicates '{"data":{"a":1,"b":2,"a":3,"a":4}}')
    assert.same({ "spec.containers[1].name", "kind" },
      codec.duplicates '{"kind":"x","spec":{"containers":[{"name":1},{"name":1,"name":2}]},"kind":"y"}')
    assert.same({ "[0][1].x" }, codec.duplicates '[[1,{"x":{},"x":[]}]]')
  end)

  it("tells equal keys of different objects apart, and sees through escapes", function()
    assert.same({}, codec.duplicates '{"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}]}')
    assert.same({ "m.é" }, codec.duplicates [[{"m":{"\u00e9":1,"é":2}}]])
    assert.same({ "ab" }, codec.duplicates [[{"\u0061b":1,"a\u0062":2}]])
  end)

  it("says nothing about what is not JSON", function()
    for _, text in ipairs { "", "{", '{"a":1,"a":2', '{"a":1,"a":2} x', "null", ("["):rep(300) } do
      assert.same({}, codec.duplicates(text))
    end
  end)

  it("tells a hundred at most and takes time in proportion to the text", function()
    local parts = {}
    for i = 1, 200000 do parts[i] = ('"k%d":%d'):format(i % 100000, i) end
    local clock = os.clock()
    assert.equal(100, #codec.duplicates("{" .. table.concat(parts, ",") .. "}"))
    local long = ('{"%s":{%s}}'):format(("x"):rep(1000000), ('"a":1,'):rep(100000) .. '"b":2')
    assert.equal(1, #codec.duplicates(long))
    assert.is_true(os.clock() - clock < 2)
  end)
end)
