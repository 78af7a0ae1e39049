require "spec.support.sandbox_env"
local field_set = require "kube.sandbox.apply.field_set"
local json = require "kube.sandbox.json"

local function set(text) return assert(field_set.from_fields(json.decode(text))) end

local function is(expected, got) assert.are.equal(expected, field_set.encode(got)) end

describe("a field set", function()
  it("reads fieldsV1 and writes it in the server's order", function()
    local text = [==[{"f:a":{},"f:b":{".":{},"f:c":{},"k:{\"port\":80,\"protocol\":\"TCP\"}":{},]==] ..
      [==["k:{\"port\":443,\"protocol\":\"TCP\"}":{".":{},"f:x":{}},"v:2":{},"v:10":{},"v:\"a\"":{},]==] ..
      [==["v:true":{},"i:3":{}}}]==]
    is(text, set(text))
  end)

  it("gives documents with the same members", function()
    local text = '{"f:data":{".":{},"f:k":{}},"f:metadata":{"f:labels":{"f:x":{}}}}'
    assert.are.equal(text, json.encode(field_set.to_fields(set(text))))
  end)

  it("knows an element in whatever way it is written", function()
    is([[{"k:{\"a\":1,\"b\":2}":{}}]], set [[{"k:{ \"b\": 2, \"a\":1 }":{}}]])
    is([[{"v:\"\\u003c\"":{}}]], set [[{"v:\"<\"":{}}]])
  end)

  it("drops elements of kinds it does not know, and refuses what is no element", function()
    is('{"f:a":{}}', set '{"f:a":{"z:new":{}}}')
    is("{}", set '{".":{}}')
    for _, text in ipairs { '{"x":{}}', '{"k:{":{}}', '{"k:[]":{}}', '{"f:a":1}', '{"i:x":{}}', "[]" } do
      local found, problem = field_set.from_fields(json.decode(text))
      assert.is_nil(found)
      assert.is_string(problem)
    end
  end)

  it("tells a field from what is below it", function()
    local own, below = '{"f:a":{}}', '{"f:a":{"f:b":{}}}'
    local both = '{"f:a":{".":{},"f:b":{}}}'
    is(both, field_set.union(set(own), set(below)))
    is(both, field_set.union(set(below), set(own)))
    is(below, field_set.difference(set(both), set(own)))
    is(own, field_set.difference(set(both), set(below)))
    is("{}", field_set.difference(set(both), set(both)))
    is(own, field_set.intersection(set(both), set(own)))
    is(below, field_set.intersection(set(below), set(both)))
    is("{}", field_set.intersection(set(own), set(below)))
    is(below, field_set.leaves(set(both)))
    is("{}", field_set.recursive_difference(set(both), set(own)))
    is(own, field_set.recursive_difference(set(both), set(below)))
  end)

  it("changes none of its operands", function()
    local a, b = set '{"f:a":{"f:b":{}},"f:c":{}}', set '{"f:a":{".":{},"f:d":{}}}'
    for _, operation in ipairs { "union", "difference", "intersection", "recursive_difference" } do
      field_set[operation](a, b)
      is('{"f:a":{"f:b":{}},"f:c":{}}', a)
      is('{"f:a":{".":{},"f:d":{}}}', b)
    end
  end)

  it("is made of paths and asked for them", function()
    local s = field_set.of { { "metadata" }, { "metadata", "labels" }, { "spec" } }
    is('{"f:metadata":{".":{},"f:labels":{}},"f:spec":{}}', s)
    assert.is_true(field_set.has(s, { "f:metadata" }))
    assert.is_true(field_set.has(s, { "f:metadata", "f:labels" }))
    assert.is_false(field_set.has(s, { "f:spec", "f:x" }))
    assert.is_false(field_set.has(set '{"f:a":{"f:b":{}}}', { "f:a" }))
    assert.is_true(field_set.equal(s, field_set.of { { "spec" }, { "metadata", "labels" }, { "metadata" } }))
    assert.is_false(field_set.equal(s, field_set.of { { "spec" } }))
    assert.is_false(field_set.equal(field_set.of { { "spec" } }, s))
  end)

  it("shows paths as messages do, each level before those below it", function()
    local s = set [==[{"f:a":{"f:b":{},"v:\"x\"":{},"i:2":{},
      "k:{\"name\":\"c\",\"port\":80}":{".":{},"f:image":{}}},"f:z":{}}]==]
    assert.are.same({ ".z", ".a.b", '.a[name="c",port=80]', '.a[="x"]', ".a[2]", '.a[name="c",port=80].image' },
      field_set.paths(s))
  end)
end)
