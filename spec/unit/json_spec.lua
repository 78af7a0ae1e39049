local support = require "spec.support.codec"
local unit = require "spec.support.unit"
local C, ffi = unit.C, unit.ffi

-- A cursor over a copy of the text in memory of exactly its size, so that a sanitizer build sees
-- any read behind the end.
local function cursor(text)
  local memory = ffi.gc(ffi.cast("char *", C.mw_xmalloc(math.max(#text, 1))), C.mw_free)
  ffi.copy(memory, text, #text)
  local c = ffi.new("struct mw_json", { memory, memory + #text })
  return c, function() return tonumber(c.p - memory) end, memory
end

local function skip(text)
  local c, offset, memory = cursor(text)
  local rc = C.mw_json_skip(c)
  return rc, offset(), memory
end

local function buf(limit)
  local b = ffi.gc(ffi.new("struct mw_buf"), C.mw_buf_deinit)
  C.mw_buf_init(b, limit or 1024)
  return b
end

local function text_of(b) return b.n == 0 and "" or ffi.string(b.p, b.n) end

local function unescape(raw)
  local b = buf()
  assert.equal(0, C.mw_json_unescape(unit.slice(raw), b))
  return text_of(b)
end

describe("json", function()
  describe("skip", function()
    for _, text in ipairs {
      "{}", "[]", '""', "0", "-0", "1.5", "-1e9", "1E+2", "10.25e-3", "true", "false", "null",
      '{"a":1}', '{"a":{"b":[{},[],"",null]},"c":-1}', "[[[[]]]]", ' { "a" : [ 1 , 2 ] } ',
      "\t\r\n[\n1\n]", '"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD83D\\uDE00"', '"\\ud800"',
      '"é 漢 😀 \127"', '"' .. ("x"):rep(200) .. '"', '"' .. ("é"):rep(100) .. '"',
    } do
      it("accepts " .. text:sub(1, 40):gsub("%c", "?"), function()
        local rc, at = skip(text)
        assert.equal(0, rc)
        assert.equal(#text:gsub("%s+$", ""), at)
      end)
    end

    -- text, offset of the offending byte
    for _, case in ipairs {
      { "", 0 }, { "   ", 3 }, { "{", 1 }, { "[", 1 }, { '"', 1 }, { "}", 0 }, { "]", 0 }, { ",", 0 },
      { '{"a"}', 4 }, { '{"a":}', 5 }, { '{"a":1,}', 7 }, { '{a:1}', 1 }, { "{'a':1}", 1 },
      { '{"a":1 "b":2}', 7 }, { '{"a":1]', 6 }, { "[1}", 2 }, { "[1,]", 3 }, { "[1 2]", 3 },
      { "[,1]", 1 }, { "-", 1 }, { "-x", 1 }, { "1.", 2 }, { "1.x", 2 }, { "1e", 2 }, { "1e+", 3 },
      { ".5", 0 }, { "+1", 0 }, { "tru", 3 }, { "trux", 3 }, { "nul", 3 }, { "NaN", 0 },
      { '"\\x"', 2 }, { '"\\u12g4"', 5 }, { '"\\u12', 5 }, { '"\\', 2 }, { '"a\nb"', 2 },
      { '"a\0b"', 2 }, { '"' .. ("x"):rep(100) .. "\1", 101 }, { '{"a":1', 6 }, { '{"a":[1', 7 },
      { '{"a" 1}', 5 }, { "[01]", 2 },
    } do
      it("refuses " .. case[1]:sub(1, 20):gsub("%c", "?") .. " at byte " .. case[2], function()
        local rc, at = skip(case[1])
        assert.equal(C.MW_EPARSE, rc)
        assert.equal(case[2], at)
      end)
    end

    it("refuses bytes that are not UTF-8, at the beginning of the bad sequence", function()
      for _, bad in ipairs { "\128", "\191", "\192\128", "\193\191", "\224\159\191", "\237\160\128",
        "\237\191\191", "\240\143\191\191", "\244\144\128\128", "\245\128\128\128", "\255",
        "\226\130", "\195", "\240\159\152", "\195(" } do
        for _, before in ipairs { "", "abc", ("x"):rep(15), ("x"):rep(70) } do
          local rc, at = skip('"' .. before .. bad .. '"')
          assert.equal(C.MW_EPARSE, rc)
          assert.equal(1 + #before, at)
          assert.is_false(C.mw_utf8_valid(unit.slice(before .. bad)))
        end
      end
    end)

    it("accepts 256 levels of nesting and refuses 257 with MW_ELIMIT", function()
      assert.equal(0, (skip(("["):rep(256) .. ("]"):rep(256))))
      assert.equal(0, (skip(('{"a":'):rep(256) .. "1" .. ("}"):rep(256))))
      local rc, at = skip(("["):rep(257) .. ("]"):rep(257))
      assert.equal(C.MW_ELIMIT, rc)
      assert.equal(256, at)
      assert.equal(C.MW_ELIMIT, (skip(("["):rep(1000000))))
    end)

    it("gives the same verdict for a string wherever it begins", function()
      for pad = 0, 130 do
        local text = "[" .. (" "):rep(pad) .. '"plain","q\\"uote","é\\u00e9",{"k":"v"}]'
        local rc, at = skip(text)
        assert.equal(0, rc)
        assert.equal(#text, at)
        rc, at = skip(text:sub(1, -3))
        assert.equal(C.MW_EPARSE, rc)
        assert.equal(#text - 2, at)
      end
    end)

    it("takes as long for an element wherever it stands", function()
      local function seconds(count)
        local c, offset, memory = cursor("[" .. ("[[],7],"):rep(count) .. "[]]")
        local first, n, start = ffi.new("bool[1]", true), 0, os.clock()
        assert.equal(0, C.mw_json_enter(c))
        while C.mw_json_element(c, first) > 0 do
          if C.mw_json_skip(c) ~= 0 then error("refused") end
          n = n + 1
        end
        local took = os.clock() - start
        assert.same({ count + 1, 7 * count + 4 }, { n, offset() })
        assert(memory)
        return took
      end
      seconds(20000)
      assert.is_true(seconds(160000) < 30 * seconds(20000))
    end)

    -- The byte-wise skimmer knows nothing of blocks and of hurrying. Where the text is cut it has no place to
    -- name.
    local function skim(text)
      local c, offset = cursor(text)
      local s, p = ffi.new("struct mw_skim"), ffi.new("const char *[1]", { c.p })
      C.mw_skim_start(s)
      local rc = C.mw_skim_feed(s, p, c["end"])
      c.p = p[0] - s.back
      if rc == 0 then return C.MW_EPARSE end
      return rc == 1 and 0 or rc, offset()
    end

    local parts = { "{", "}", "[", "]", ",", ":", '"', "\\", " ", "\n", "x", "7", "-", "true", "null", "\1",
      "é", "\195", '"a":', '"b"', '{"k":"v"}', '[1,{}]', '{}', ("y"):rep(40), '"\\u00e9"', '"\\q"' }

    -- Puts something in, or takes something out, somewhere.
    local function damage(text, random)
      local at = random(#text)
      local behind = text:sub(at + random(0, 2))
      return text:sub(1, at - 1) .. parts[random(#parts)] .. behind
    end

    it("says what reading byte by byte says, wide or narrow, near the end or far from it", function()
      local random, accepted, refused = support.random(5), 0, 0
      for i = 1, 20000 do
        local options = { tight = i % 3 > 0 }
        local text = "[" .. support.document(random, options, 4) .. "," .. support.document(random, options, 4) .. "]"
        if i % 2 == 0 then text = damage(text, random) end
        text = text .. (" "):rep(random(0, 1) * 130)
        local rc, at = skim(text)
        for _, narrow in ipairs { true, false } do
          C.mw_narrow = narrow
          local found, where = skip(text)
          C.mw_narrow = false
          if rc ~= found or at and at ~= where then
            error(("%q: %d at byte %d instead of %d at byte %s"):format(text, found, where, rc, at))
          end
        end
        if rc == 0 then accepted = accepted + 1 else refused = refused + 1 end
      end
      assert.is_true(accepted > 10000 and refused > 5000, accepted .. " " .. refused)
    end)
  end)

  it("peeks at the kind of the next value behind white space", function()
    for text, kind in pairs {
      [" {"] = C.MW_JSON_OBJECT, ["["] = C.MW_JSON_ARRAY, ['\n"'] = C.MW_JSON_STRING,
      ["-"] = C.MW_JSON_NUMBER, ["7"] = C.MW_JSON_NUMBER, ["t"] = C.MW_JSON_TRUE,
      ["f"] = C.MW_JSON_FALSE, ["n"] = C.MW_JSON_NULL, [""] = C.MW_JSON_NONE, ["?"] = C.MW_JSON_NONE,
    } do
      assert.equal(tonumber(kind), tonumber(C.mw_json_peek((cursor(text)))))
    end
  end)

  describe("strings", function()
    it("come raw, with the knowledge whether anything is escaped", function()
      local raw, escaped = ffi.new("struct mw_slice"), ffi.new("bool[1]")
      for _, case in ipairs { { ' "é" ', "é", false, 5 }, { '"a\\tb"', "a\\tb", true, 6 } } do
        local c, at, memory = cursor(case[1])
        assert.equal(0, C.mw_json_string(c, raw, escaped))
        assert.equal(case[2], unit.str(raw))
        assert.equal(case[3], escaped[0])
        assert.equal(case[4], at())
        assert.is_not_nil(memory)
      end
    end)

    it("unescape every form, pairs of surrogates too", function()
      assert.equal('"\\/\b\f\n\r\t', unescape('\\"\\\\\\/\\b\\f\\n\\r\\t'))
      assert.equal("Aé€😀", unescape("\\u0041\\u00e9\\u20AC\\ud83d\\ude00"))
      assert.equal("\0", unescape("\\u0000"))
    end)

    it("read a lone surrogate as U+FFFD, as Go does", function()
      assert.equal("\239\191\189", unescape("\\ud83d"))
      assert.equal("\239\191\189x", unescape("\\ude00x"))
      assert.equal("\239\191\189A", unescape("\\ud83d\\u0041"))
    end)

    it("are quoted so that they read back the same", function()
      for _, text in ipairs { "", "plain", 'q"b\\', "\0\1\31\127", "\b\f\n\r\t", "é漢😀" } do
        local b = buf()
        assert.equal(0, C.mw_json_quote(unit.slice(text), b))
        local quoted = text_of(b)
        assert.equal(0, (skip(quoted)))
        assert.equal(text, unescape(quoted:sub(2, -2)))
      end
    end)

    it("are not quoted when they are not UTF-8", function()
      assert.equal(C.MW_EPARSE, C.mw_json_quote(unit.slice("a\255"), buf()))
    end)

    it("stop at the ceiling of the buffer", function()
      assert.equal(C.MW_ELIMIT, C.mw_json_quote(unit.slice("abcdef"), buf(4)))
      assert.equal(C.MW_ELIMIT, C.mw_json_unescape(unit.slice("abc\\n"), buf(3)))
    end)
  end)

  it("tells integers from other numbers and gives the literal", function()
    local text, is_int = ffi.new("struct mw_slice"), ffi.new("bool[1]")
    for literal, int in pairs { ["0"] = true, ["-12345678901234567890"] = true, ["1.0"] = false, ["1e3"] = false } do
      local c, at, memory = cursor(literal .. ",")
      assert.equal(0, C.mw_json_number(c, text, is_int))
      assert.equal(literal, unit.str(text))
      assert.equal(int, is_int[0])
      assert.equal(#literal, at())
      assert.is_not_nil(memory)
    end
  end)

  describe("pass", function()
    local function pass(text)
      local c, offset = cursor(text)
      return C.mw_json_pass(c), offset()
    end

    it("ends where skip ends, over values of any kind and length", function()
      local long = ("x"):rep(70)
      for _, text in ipairs {
        "{}", "[]", '"a"', "0", "-1.5e3", "true", "null", '{"a":{"b":[{},[],"",null]},"c":-1}',
        '["' .. long .. '{",["]",{"}":"\\""}]]', '{"' .. long .. '\\\\":["' .. long .. '"]}',
        "[" .. ("[1,"):rep(100) .. "0" .. ("]"):rep(101),
      } do
        for pad = 0, 64, 7 do
          local value = text:gsub("^%[", "[" .. ('"",'):rep(pad))
          if skip(value) ~= 0 then value = text end
          local rc, offset, _ = skip(value .. ',"next":[]}')
          assert.equal(0, rc)
          for _, narrow in ipairs { true, false } do
            C.mw_narrow = narrow
            assert.same({ 0, offset }, { pass(value .. ',"next":[]}') })
          end
        end
      end
    end)

    it("reports a value that does not end", function()
      for _, text in ipairs { "{", '["', '[{"a":"]}', '{"a":"\\"}', "", '"abc' } do
        assert.equal(C.MW_EPARSE, (pass(text)))
      end
    end)

    it("finds the same end with wide registers as without, in any bytes", function()
      math.randomseed(11)
      local parts = { "{", "}", "[", "]", '"', '\\', "x", "xxxxxxxxxxxxxxx", '"a":', "\\\\" }
      local ended = 0
      for _ = 1, 5000 do
        local text = { "{" }
        for i = 2, math.random(2, 120) do text[i] = parts[math.random(#parts)] end
        text = table.concat(text)
        C.mw_narrow = true
        local rc, offset = pass(text)
        C.mw_narrow = false
        assert.same({ rc, offset }, { pass(text) })
        if rc == 0 then ended = ended + 1 end
      end
      assert.is_true(ended > 500 and ended < 4500, ended)
    end)
  end)

  it("walks members and elements and consumes the closing bracket", function()
    local c, at, memory = cursor('{"a":[1,2],"b":{}} ')
    local first, key, escaped = ffi.new("bool[1]", true), ffi.new("struct mw_slice"), ffi.new("bool[1]")
    assert.equal(0, C.mw_json_enter(c))
    assert.equal(1, C.mw_json_member(c, first, key, escaped))
    assert.equal("a", unit.str(key))
    local inner, elements = ffi.new("bool[1]", true), 0
    assert.equal(0, C.mw_json_enter(c))
    while C.mw_json_element(c, inner) == 1 do
      elements = elements + 1
      assert.equal(0, C.mw_json_skip(c))
    end
    assert.equal(2, elements)
    assert.equal(1, C.mw_json_member(c, first, key, escaped))
    assert.equal("b", unit.str(key))
    assert.equal(0, C.mw_json_skip(c))
    assert.equal(0, C.mw_json_member(c, first, key, escaped))
    assert.equal(18, at())
    assert.is_not_nil(memory)
  end)

  describe("find", function()
    local function find(text, key)
      local c, at, memory = cursor(text)
      local rc = C.mw_json_find(c, unit.slice(key))
      return rc, at(), memory
    end

    it("stops at the value of the member", function()
      local rc, at = find('{"x":{"a":0},"a": 7}', "a")
      assert.equal(1, rc)
      assert.equal(18, at)
    end)

    it("knows a key by its unescaped form", function()
      assert.equal(1, (find('{"n\\u0061me":1}', "name")))
    end)

    it("passes over the whole object when the member is absent", function()
      local rc, at = find('{"x":1}  ', "a")
      assert.equal(0, rc)
      assert.equal(7, at)
    end)

    it("fails on what it passes over and on what is no object", function()
      assert.equal(C.MW_EPARSE, (find('{"x":tru,"a":1}', "a")))
      assert.equal(C.MW_EPARSE, (find("[1]", "a")))
    end)
  end)
end)
