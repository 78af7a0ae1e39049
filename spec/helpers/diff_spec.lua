-- kube.diff, kube.equal, kube.edit and kube.merge.
local core = require "spec.support.helpers_env"
local diff = require "kube._diff"
local edit = require "kube._edit"
local support = require "spec.support.codec"
local codec = core.codec

local decode = codec.decode

local function lines(a, b) return tostring(diff.diff(decode(a), decode(b))) end

-- Applies a patch, by a second reading of RFC 6902.
local function apply(document, patch)
  for _, op in ipairs(patch) do
    local tokens = {}
    for token in op.path:gmatch("/([^/]*)") do tokens[#tokens + 1] = token:gsub("~1", "/"):gsub("~0", "~") end
    if #tokens == 0 then
      document = op.value
    else
      local place = document
      local function key(token) return codec.is_array(place) and tonumber(token) + 1 or token end
      for i = 1, #tokens - 1 do place = place[key(tokens[i])] end
      local last = key(tokens[#tokens])
      if codec.is_array(place) and op.op == "add" then
        table.insert(place, last, op.value)
      elseif codec.is_array(place) and op.op == "remove" then
        assert(place[last] ~= nil)
        table.remove(place, last)
      else
        assert(op.op == "add" or place[last] ~= nil, op.path)
        place[last] = op.value
      end
    end
  end
  return document
end

local function document(random) return decode(support.document(random, {}, 4)) end

-- A document that comes of another by some changes here and there.
local function changed(random, value)
  if random(6) == 1 then return document(random) end
  if not diff.is_container(value) then return value end
  local copy = codec.copy(value)
  if codec.is_array(copy) then
    for i = #copy, 1, -1 do
      local pick = random(8)
      if pick == 1 then table.remove(copy, i) elseif pick == 2 then copy[i] = changed(random, copy[i]) end
    end
    if random(3) == 1 then table.insert(copy, random(#copy + 1), document(random)) end
    return copy
  end
  for key, child in pairs(value) do
    local pick = random(6)
    if pick == 1 then copy[key] = nil elseif pick == 2 then copy[key] = changed(random, child) end
  end
  if random(3) == 1 then copy["new" .. random(3)] = document(random) end
  return copy
end

local function patch_text(a, change)
  local _, patch = edit.edit(decode(a), change)
  return codec.encode_sorted(patch)
end

describe("diff", function()
  it("tells additions, removals and replacements in the order of their keys", function()
    assert.equal('+ a: 1\n~ b.c: 1 -> 2\n- b.d: [1]\n~ e: [] -> {}',
      lines('{"b":{"c":1,"d":[1]},"e":[]}', '{"a":1,"b":{"c":2},"e":{}}'))
    assert.equal("", lines('{"a":[{"b":null}]}', '{"a":[{"b":null}]}'))
    assert.equal("~ (all): 1 -> null", lines("1", "null"))
    assert.equal("+ a: false\n- b: false", lines('{"b":false}', '{"a":false}'))
  end)

  it("names places as kube.get reads them", function()
    local a = decode '{"m":{"a.b/c":[{"x\\"y":1}]}}'
    local found = diff.diff(a, decode '{"m":{"a.b/c":[{"x\\"y":2}]}}')
    assert.equal('m["a.b/c"][0]["x\\"y"]', found[1].path)
    local plain = diff.diff(decode '{"m":{"a.b/c":[{"x":1}]}}', decode '{"m":{"a.b/c":[{"x":2}]}}')[1]
    assert.equal(1, codec.get(decode '{"m":{"a.b/c":[{"x":1}]}}', plain.path))
  end)

  it("finds one element that was put into a list or taken out of it", function()
    assert.equal('+ [1]: {"n":"x"}', lines('[{"n":"a"},{"n":"b"}]', '[{"n":"a"},{"n":"x"},{"n":"b"}]'))
    assert.equal('- [0]: 1', lines("[1,2,3]", "[2,3]"))
    assert.equal('- [2]: 3\n- [1]: 2', lines("[1,2,3,4]", "[1,4]"))
  end)

  it("compares numbers by value and tells null from nothing", function()
    assert.equal(0, #diff.diff({ n = 5 }, { n = codec.int64("5") }))
    assert.equal(1, #diff.diff(decode '{"n":9007199254740993}', decode '{"n":9007199254740992}'))
    assert.equal("+ a: null", lines("{}", '{"a":null}'))
    assert.equal(1, #diff.diff(nil, {}))
  end)

  it("is the same backwards, for any two documents", function()
    local seed = os.time()
    local random = support.random(seed)
    for _ = 1, 300 do
      local a = document(random)
      local b = changed(random, a)
      local there, back = {}, {}
      for _, d in ipairs(diff.diff(a, b)) do
        there[#there + 1] = codec.encode_sorted { d.path, d.op, tostring(d.old == nil), tostring(d.new == nil),
          d.old ~= nil and d.old or 0, d.new ~= nil and d.new or 0 }
      end
      local reverse = { add = "remove", remove = "add", replace = "replace" }
      for _, d in ipairs(diff.diff(b, a)) do
        back[#back + 1] = codec.encode_sorted { d.path, reverse[d.op], tostring(d.new == nil), tostring(d.old == nil),
          d.new ~= nil and d.new or 0, d.old ~= nil and d.old or 0 }
      end
      table.sort(there)
      table.sort(back)
      assert.same(there, back, "seed " .. seed)
    end
  end)

  it("refuses a table that contains itself", function()
    local a, b = {}, {}
    a.x, b.x = a, b
    local ok, err = pcall(diff.diff, a, b)
    assert.is_false(ok)
    assert.truthy(tostring(err):find("spec/helpers/diff_spec.lua:%d+: cannot compare: nested deeper"))
  end)
end)

describe("equal", function()
  it("takes null, {} and [] of a field for nothing", function()
    local empty = { a = {}, b = codec.null, c = codec.array {}, d = { e = {} } }
    assert.is_true(diff.equal(empty, { d = { e = codec.null } }))
    assert.is_false(diff.equal(empty, {}))
    assert.is_true(diff.equal(nil, {}))
    assert.is_true(diff.equal(codec.null, codec.array {}))
    assert.is_false(diff.equal({ a = 0 }, {}))
    assert.is_false(diff.equal({ a = "" }, {}))
    assert.is_false(diff.equal({ a = false }, {}))
  end)

  it("counts each element of a list", function()
    assert.is_false(diff.equal({ codec.null }, {}))
    assert.is_false(diff.equal({ 1, 2 }, { 2, 1 }))
    assert.is_false(diff.equal({ { a = 1 } }, { { a = 1 }, { a = 1 } }))
    assert.is_true(diff.equal({ { a = 1, b = {} } }, { { a = 1 } }))
  end)

  it("compares numbers by value and texts as they are", function()
    assert.is_true(diff.equal({ a = 3 }, { a = codec.int64("3") }))
    assert.is_true(diff.equal(decode "18446744073709551615", decode "18446744073709551615"))
    assert.is_false(diff.equal(decode "9007199254740993", decode "9007199254740992"))
    assert.is_false(diff.equal("1", 1))
    assert.is_false(diff.equal("1Gi", "1024Mi"))
  end)
end)

describe("edit", function()
  it("returns a changed copy and the patch that makes it", function()
    local a = decode '{"spec":{"replicas":1,"list":[1,2]},"a/b":{"c~d":1}}'
    local copy, patch = edit.edit(a, function(o)
      o.spec.replicas = 3
      o["a/b"]["c~d"] = nil
      table.insert(o.spec.list, 3)
      o.status = { phase = "x" }
    end)
    assert.equal('[{"op":"remove","path":"/a~1b/c~0d"},{"op":"add","path":"/spec/list/2","value":3},'
      .. '{"op":"replace","path":"/spec/replicas","value":3},{"op":"add","path":"/status","value":{"phase":"x"}}]',
      codec.encode_sorted(patch))
    assert.equal('{"a/b":{"c~d":1},"spec":{"list":[1,2],"replicas":1}}', codec.encode_sorted(a))
    assert.equal(3, copy.spec.replicas)
  end)

  it("makes no operation of nothing, and of null one", function()
    assert.equal("[]", patch_text('{"a":{}}', function(o) o.a.b = nil end))
    assert.equal('[{"op":"add","path":"/a/b","value":false}]',
      patch_text('{"a":{}}', function(o) o.a.b = false end))
    assert.equal('[{"op":"add","path":"/a/b","value":null}]',
      patch_text('{"a":{}}', function(o) o.a.b = codec.null end))
  end)

  it("makes a patch that gives the copy, for any two documents", function()
    local seed = os.time()
    local random = support.random(seed)
    for _ = 1, 500 do
      local a = { x = document(random) }
      local b = changed(random, a.x)
      local _, patch = edit.edit(a, function(o) o.x = b end)
      local made = apply(codec.copy(a), decode(codec.encode(patch)))
      assert.is_nil(support.difference(decode(codec.encode { x = b }), decode(codec.encode(made))), "seed " .. seed)
    end
  end)

  it("refuses another document for the copy", function()
    local ok, err = pcall(edit.edit, {}, function() return {} end)
    assert.is_false(ok)
    assert.truthy(err:find("diff_spec.lua:%d+: edit%(obj, fn%): fn changes the copy"), err)
    assert.is_false(pcall(edit.edit, {}))
    assert.is_false(pcall(edit.edit, nil, print))
  end)
end)

describe("merge", function()
  -- The examples of RFC 7386, appendix A.
  local examples = {
    { '{"a":"b"}', '{"a":"c"}', '{"a":"c"}' }, { '{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}' },
    { '{"a":"b"}', '{"a":null}', "{}" }, { '{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}' },
    { '{"a":["b"]}', '{"a":"c"}', '{"a":"c"}' }, { '{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}' },
    { '{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}' },
    { '{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}' }, { '["a","b"]', '["c","d"]', '["c","d"]' },
    { '{"a":"b"}', '["c"]', '["c"]' }, { '{"a":"foo"}', "null", "null" }, { '{"a":"foo"}', '"bar"', '"bar"' },
    { '{"e":null}', '{"a":1}', '{"a":1,"e":null}' }, { "[1,2]", '{"a":"b","c":null}', '{"a":"b"}' },
    { "{}", '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}' },
  }

  it("does what RFC 7386 shows", function()
    for _, e in ipairs(examples) do
      assert.equal(e[3], codec.encode_sorted(edit.merge(decode(e[1]), decode(e[2]))), e[1] .. " " .. e[2])
    end
  end)

  it("shares nothing with its arguments", function()
    local a, b = { x = { y = 1 } }, { z = { w = { 1 } } }
    local made = edit.merge(a, b)
    made.x.y, made.z.w[1] = 2, 2
    assert.same({ { x = { y = 1 } }, { z = { w = { 1 } } } }, { a, b })
  end)
end)
