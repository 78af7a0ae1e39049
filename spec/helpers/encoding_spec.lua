-- kube.base64, kube.sha256, kube.yaml and kube.time.
local core = require "spec.support.helpers_env"
local encoding = require "kube._encoding"
local time = require "kube._time"
local codec = core.codec

local function refused(text, fn, ...)
  local ok, err = pcall(fn, ...)
  assert.is_false(ok)
  assert.truthy(tostring(err):find("^spec/helpers/encoding_spec%.lua:%d+: "), tostring(err))
  assert.truthy(tostring(err):find(text, 1, true), tostring(err))
end

describe("base64", function()
  it("encodes and decodes any bytes", function()
    for text, encoded in pairs { [""] = "", a = "YQ==", ["\0\255\254"] = "AP/+" } do
      assert.equal(encoded, encoding.base64.encode(text))
      assert.equal(text, encoding.base64.decode(encoded))
    end
  end)

  it("says what it cannot take", function()
    refused("base64.decode(): the text is not base64", encoding.base64.decode, "Y")
    refused("base64.decode() takes a string, not a nil", encoding.base64.decode, nil)
    refused("base64.encode() takes a string, not a table", encoding.base64.encode, {})
  end)
end)

describe("sha256", function()
  it("gives hexadecimal digits", function()
    assert.equal("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", encoding.sha256 "abc")
    refused("sha256() takes a string, not a number", encoding.sha256, 5)
  end)
end)

describe("yaml", function()
  it("keeps arrays, null and 64-bit integers", function()
    local text = "a: []\nb: {}\nc: null\nd: 9007199254740993\n"
    local value = encoding.yaml.decode(text)
    assert.equal('{"a":[],"b":{},"c":null,"d":9007199254740993}', codec.encode_sorted(value))
    assert.equal(text, encoding.yaml.encode(value))
  end)

  it("reads one document, or all of them", function()
    assert.is_nil(encoding.yaml.decode "")
    assert.is_nil(encoding.yaml.decode "# nothing\n")
    assert.equal("x", encoding.yaml.decode "x")
    assert.equal('[{"a":1},{"b":2}]', codec.encode(encoding.yaml.decode_all "a: 1\n---\n---\nb: 2\n"))
    refused("yaml.decode(): the text has 2 documents; kube.yaml.decode_all() reads them all", encoding.yaml.decode,
      "a: 1\n---\nb: 2\n")
  end)

  it("says what is wrong with a text or a value", function()
    refused("yaml.decode(): yaml: line 1:", encoding.yaml.decode, "a: [")
    refused("yaml.decode_all(): yaml: ", encoding.yaml.decode_all, "a: [")
    refused("yaml.encode(): ", encoding.yaml.encode, { f = print })
    refused("kube.null is null", encoding.yaml.encode, nil)
  end)
end)

describe("time", function()
  it("reads every form of RFC 3339", function()
    assert.equal(0, time.parse "1970-01-01T00:00:00Z")
    assert.equal(1582934400 + 86399, time.parse "2020-02-29T23:59:59Z")
    assert.equal(1582934400.5, time.parse "2020-02-29T01:30:00.500+01:30")
    assert.equal(-1, time.parse "1969-12-31T23:59:59Z")
    for _, wrong in ipairs { "", "2020-02-30T00:00:00Z", "2020-13-01T00:00:00Z", "2020-01-01T24:00:00Z", "2020-01-01",
      "2020-01-01T00:00:00", "2020-01-01T00:00:00.Z", "2020-01-01T00:00:00+1:00", "2020-01-01T00:00:00Zx" } do
      assert.is_nil(time.parse(wrong), wrong)
    end
    assert.is_nil(time.parse(nil))
  end)

  it("writes whole seconds, or as many digits as asked for", function()
    assert.equal("2020-02-29T23:59:59Z", time.format(1582934400 + 86399.9))
    assert.equal("1970-01-01T00:00:01.250000Z", time.format(1.25, 6))
    assert.equal("1969-12-31T23:59:59.750Z", time.format(-0.25, 3))
    refused("digits must be 0 to 9, not 10", time.format, 0, 10)
    refused("digits must be 0 to 9, not a table", time.format, 0, {})
    refused("seconds must be a number of seconds since 1970, not a table", time.format, {})
    refused("since 1970, not a string", time.format, "x")
  end)

  it("writes what it reads, on any day", function()
    math.randomseed(7)
    for _ = 1, 2000 do
      local seconds = math.random(-62135596800, 253402300799)
      local text = time.format(seconds)
      assert.equal(seconds, time.parse(text))
      if seconds >= 0 then assert.equal(os.date("!%Y-%m-%dT%H:%M:%SZ", seconds), text) end
    end
  end)

  it("knows how long ago something was", function()
    local before = time.now()
    assert.is_true(math.abs(before - os.time()) < 2)
    local since = time.since(time.format(before - 100, 6))
    assert.is_true(since >= 100 and since < 110)
    assert.is_true(time.since(before) >= 0)
    assert.is_nil(time.since(nil))
    assert.is_nil(time.since("never"))
  end)
end)
