local cjson = require "cjson"
local unit = require "spec.support.unit"
local C, ffi = unit.C, unit.ffi

local function byte(c) return c:byte() end

local function open(limit)
  local o = ffi.gc(ffi.new("struct mw_json_out"), C.mw_json_close)
  C.mw_json_open(o, limit or 1024)
  return o
end

local function text_of(o) return ffi.string(o.text.p, o.text.n) end

describe("json_write", function()
  it("puts commas and quotes where they belong", function()
    local o = open()
    C.mw_json_begin(o, nil, byte "{")
    C.mw_json_put_str(o, "a", 'x "y"\n')
    C.mw_json_begin(o, "list", byte "[")
    C.mw_json_end(o, byte "]")
    C.mw_json_begin(o, "more", byte "[")
    C.mw_json_put_num(o, nil, 1.5)
    C.mw_json_put_bool(o, nil, false)
    C.mw_json_begin(o, nil, byte "{")
    C.mw_json_end(o, byte "}")
    C.mw_json_end(o, byte "]")
    C.mw_json_put_str(o, "none", nil)
    C.mw_json_put_raw(o, "raw", unit.slice('{"b":1}'))
    C.mw_json_end(o, byte "}")
    assert.is_true(C.mw_json_ok(o))
    assert.equal([[{"a":"x \"y\"\n","list":[],"more":[1.5,false,{}],"none":null,"raw":{"b":1}}]], text_of(o))
  end)

  it("writes numbers that JSON has, and bytes that are not UTF-8 as '?'", function()
    local o = open()
    C.mw_json_begin(o, nil, byte "[")
    C.mw_json_put_num(o, nil, 0 / 0)
    C.mw_json_put_num(o, nil, math.huge)
    C.mw_json_put_num(o, nil, 1794928256.248)
    C.mw_json_put_str(o, nil, "caf\xe9 \xc3\xa9")
    C.mw_json_put_str(o, nil, "caf\xc3\xa9")
    C.mw_json_end(o, byte "]")
    assert.same({ 0, 0, 1794928256.248, "caf? ??", "café" }, cjson.decode(text_of(o)))
  end)

  it("never passes its limit, and says that it is not whole", function()
    for limit = 1, 40 do
      local o = open(limit)
      C.mw_json_begin(o, nil, byte "{")
      C.mw_json_put_str(o, "name", "caf\xe9")
      C.mw_json_put_num(o, "n", 12345)
      C.mw_json_end(o, byte "}")
      local whole = '{"name":"caf?","n":12345}'
      assert.equal(limit >= #whole, C.mw_json_ok(o), limit)
      assert.is_true(tonumber(o.text.n) <= limit)
      C.mw_json_reset(o)
      assert.is_true(C.mw_json_ok(o))
    end
  end)
end)
