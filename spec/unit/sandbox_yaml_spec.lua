-- Manifests: YAML as kubectl and the API server read it.
local host = require "spec.support.sandbox_env"
local support = require "spec.support.codec"
local unit = require "spec.support.unit"
local codec = host.codec

local function read(text)
  local documents, message = host.yaml_decode(text)
  assert(documents, message)
  return codec.encode_sorted(documents)
end

local function problem(text)
  local documents, message = host.yaml_decode(text)
  assert.is_nil(documents)
  return message
end

describe("yaml_decode", function()
  unit.no_leaks()

  it("reads every document and leaves out the empty ones", function()
    assert.equal('[{"a":1},{"b":2}]', read "---\n# nothing\n---\na: 1\n---\n---\nb: 2\n")
    assert.equal("[]", read "")
    assert.equal("[]", read "# only a comment\n")
    assert.equal('[{"apiVersion":"v1","items":[]}]', read '{"apiVersion": "v1", "items": []}')
  end)

  it("types plain scalars as YAML 1.1 does", function()
    assert.equal('[[1,-1,8,255,3,8,1000000,9007199254740993,18446744073709551615]]',
      read "[1, -1, 010, 0xFF, 0b11, 0o10, 1_000_000, 9007199254740993, 18446744073709551615]")
    assert.equal('[[1.5,0.5,1000,-0.25,8]]', read "[1.5, .5, 1e3, -2.5e-1, 08]")
    assert.equal('[[true,true,true,true,false,false,false]]', read "[true, Yes, on, y, false, NO, off]")
    assert.equal('[[null,null,null,null]]', read "[~, null, Null, NULL]")
    assert.equal('[{"a":null}]', read "a:\n")
    assert.equal('[["tRue","1.2.3","1:30","2020-01-01","2020-01-01T00:00:00Z","1e","0x","-","nope","v1"]]',
      read "[tRue, 1.2.3, 1:30, 2020-01-01, 2020-01-01T00:00:00Z, 1e, 0x, '-', nope, v1]")
  end)

  it("takes quoted, block and tagged scalars for strings", function()
    assert.equal('[["1","true","",["null"],"12","13","a\\nb\\n"]]',
      read "- '1'\n- \"true\"\n- ''\n- ['null']\n- !!str 12\n- ! 13\n- |\n  a\n  b\n")
    assert.equal("[[12]]", read "[!!int '12']")
  end)

  it("makes strings of keys", function()
    assert.equal('[{"1":"a","1.5":"c","true":"b"}]', read "1: a\nyes: b\n1.5: c\n")
    assert.truthy(problem("~: 1"):find("unsupported map key", 1, true))
    assert.truthy(problem("? [a]\n: 1"):find("invalid map key", 1, true))
  end)

  it("expands anchors into values of their own, and merges", function()
    local doc = host.yaml_decode("a: &x {b: [1]}\nc: *x\n")[1]
    assert.equal('{"a":{"b":[1]},"c":{"b":[1]}}', codec.encode_sorted(doc))
    assert.not_equal(doc.a, doc.c)
    assert.equal('[{"base":{"x":1,"z":2},"got":{"x":1,"z":3}}]', read "base: &b {x: 1, z: 2}\ngot: {z: 3, <<: *b}\n")
    assert.equal('[[{"x":1},{"x":2,"z":2},{"x":1,"z":2}]]', read "- &a {x: 1}\n- &b {x: 2, z: 2}\n- <<: [*a, *b]\n")
    assert.truthy(problem("a: {<<: 1}"):find("map merge requires map", 1, true))
  end)

  it("refuses anchors that are not there, contain themselves or multiply", function()
    assert.equal("yaml: unknown anchor 'x' referenced", problem "a: *x\n")
    assert.equal("yaml: unknown anchor 'x' referenced", problem "a: &x [*x]\n")
    local bomb = { "a0: &a0 [x,x,x,x,x,x,x,x,x,x]" }
    for i = 1, 9 do bomb[#bomb + 1] = ("a%d: &a%d [%s]"):format(i, i, ("*a" .. i - 1 .. ","):rep(10)) end
    assert.equal("yaml: document contains excessive aliasing", problem(table.concat(bomb, "\n")))
  end)

  it("refuses a text that is too long", function()
    assert.equal("yaml: more than 33554432 bytes", problem(("#"):rep(2 ^ 25 + 1)))
  end)

  it("refuses keys that are there twice, and names the line", function()
    assert.equal('yaml: unmarshal errors:\n  line 4: key "x" already set in map',
      problem "a:\n  x: 1\n  z: 2\n  x: 3\n")
    assert.equal('yaml: unmarshal errors:\n  line 1: key "1" already set in map', problem '{1: a, "1": b}')
  end)

  it("takes the last of keys that are there twice, and tells of them, when there is a table for that", function()
    local repeated = {}
    local documents = assert(host.yaml_decode("a:\n  x: 1\n  x: 2\na: 3\n", repeated))
    assert.equal(3, documents[1].a)
    assert.same({ 'line 3: key "x" already set in map', 'line 4: key "a" already set in map' }, repeated)
  end)

  it("says what is wrong as kubectl does", function()
    assert.equal("yaml: line 2: mapping values are not allowed in this context", problem "a: b\nc: d: e\n")
    assert.truthy(problem("a: ["):find("^yaml: "))
    assert.truthy(problem("a: .nan"):find("NaN and infinity are not JSON", 1, true))
    assert.truthy(problem(("["):rep(400)):find("max depth", 1, true))
    assert.truthy(problem("a: \255"):find("^yaml: "))
  end)
end)

describe("yaml_encode", function()
  unit.no_leaks()

  it("writes block style with lists at the level of their key", function()
    assert.equal("a:\n- b: 1\n  c:\n  - x\n  - \"y\"\nd: {}\ne: []\nf: null\n",
      host.yaml_encode(codec.decode '{"f":null,"a":[{"c":["x","y"],"b":1}],"e":[],"d":{}}'))
  end)

  it("quotes what would read as something else, and only that", function()
    local text = host.yaml_encode { a = "true", b = "1", c = "plain text", d = "a: b", e = "", f = "2020-01-01",
      g = "12:30:45", h = "line\nline\n", i = "é", j = "*x", k = "<b>", l = "v1", m = "~" }
    assert.equal('a: "true"\nb: "1"\nc: plain text\nd: \'a: b\'\ne: ""\nf: "2020-01-01"\ng: "12:30:45"\n' ..
      'h: |\n  line\n  line\ni: é\nj: \'*x\'\nk: <b>\nl: v1\nm: "~"\n', text)
  end)

  it("breaks long lines at the first space behind column 80, as the server does", function()
    local words = ("word "):rep(20) .. "end"
    assert.equal("a: " .. ("word "):rep(15) .. "word\n  word word word word end\n", host.yaml_encode { a = words })
  end)

  it("writes what yaml_decode reads back", function()
    local random = support.random(11)
    for _ = 1, 200 do
      local value = codec.decode(("[%s]"):format(support.document(random, { plain = true })))
      local again = assert(host.yaml_decode(host.yaml_encode(value)))[1]
      assert.equal(codec.encode_sorted(value), codec.encode_sorted(again))
    end
  end)
end)
