require "spec.support.sandbox_env"
local json = require "kube.sandbox.json"
local json_patch = require "kube.sandbox.patch.json_patch"

local REFUSED = "the server rejected our request due to an error in our request"

local function patched(document, ops)
  local doc = json.decode(document)
  local result, kind, message = json_patch.apply(doc, json.decode(ops))
  assert.are.equal(json.encode(json.decode(document)), json.encode(doc))
  return result and json.encode(result), kind, message
end

local function refuses(document, ops)
  local result, kind, message = patched(document, ops)
  assert.is_nil(result)
  assert.are.equal("unprocessable", kind)
  assert.are.equal(REFUSED, message)
end

describe("JSON patch", function()
  it("adds members, inserts into arrays and appends with a dash", function()
    assert.are.equal('{"a":1,"b":[0,1,2,3]}', patched('{"b":[1,2]}', [==[[
      {"op":"add","path":"/a","value":1}, {"op":"add","path":"/b/0","value":0}, {"op":"add","path":"/b/-","value":3}
    ]]==]))
    assert.are.equal('{"b":[1,2,9]}', patched('{"b":[1,2]}', '[{"op":"add","path":"/b/2","value":9}]'))
  end)

  it("reads escaped pointers, and ignores what stands before the first slash", function()
    assert.are.equal('{"a/b":{"m~n":2}}', patched('{"a/b":{"m~n":1}}',
      '[{"op":"replace","path":"/a~1b/m~0n","value":2}]'))
    assert.are.equal('{"c":1,"data":{}}', patched('{"data":{}}', '[{"op":"add","path":"data/c","value":1}]'))
    assert.are.equal('{"~1":1}', patched('{}', '[{"op":"add","path":"/~01","value":1}]'))
  end)

  it("counts negative indices from the end, as the server does", function()
    assert.are.equal('{"b":[1,9]}', patched('{"b":[1,2]}', '[{"op":"replace","path":"/b/-1","value":9}]'))
    assert.are.equal('{"b":[1,2,9]}', patched('{"b":[1,2]}', '[{"op":"add","path":"/b/-1","value":9}]'))
    assert.are.equal('{"b":[2]}', patched('{"b":[1,2]}', '[{"op":"remove","path":"/b/-2"}]'))
    refuses('{"b":[1,2]}', '[{"op":"remove","path":"/b/-3"}]')
  end)

  it("removes, moves and copies", function()
    assert.are.equal('{"b":[2],"c":{"x":1}}', patched('{"a":{"x":1},"b":[1,2]}',
      '[{"op":"move","from":"/a","path":"/c"},{"op":"remove","path":"/b/0"}]'))
    assert.are.equal('{"a":{"x":1},"c":{"x":2}}', patched('{"a":{"x":1}}',
      '[{"op":"copy","from":"/a","path":"/c"},{"op":"replace","path":"/c/x","value":2}]'))
    assert.are.equal('{"d":null}', patched('{}', '[{"op":"copy","from":"/none","path":"/d"}]'))
  end)

  it("replaces a missing member, but no missing element", function()
    assert.are.equal('{"data":{"zz":"q"}}', patched('{"data":{}}',
      '[{"op":"replace","path":"/data/zz","value":"q"}]'))
    refuses('{"b":[]}', '[{"op":"replace","path":"/b/0","value":"q"}]')
  end)

  it("replaces the whole document by an object or array only", function()
    assert.are.equal('{"x":1}', patched('{"a":1}', '[{"op":"replace","path":"","value":{"x":1}}]'))
    refuses('{"a":1}', '[{"op":"replace","path":"","value":1}]')
    refuses('{"a":1}', '[{"op":"add","path":"","value":{}}]')
  end)

  it("tests values deeply, and a missing member against null", function()
    assert.are.equal('{"a":{"b":[1,{}]}}', patched('{"a":{"b":[1,{}]}}',
      '[{"op":"test","path":"/a","value":{"b":[1,{}]}}]'))
    assert.are.equal("{}", patched("{}", '[{"op":"test","path":"/nope","value":null}]'))
    refuses('{"a":[]}', '[{"op":"test","path":"/a","value":{}}]')
    refuses('{"a":"1"}', '[{"op":"test","path":"/a","value":1}]')
    refuses('{"a":"1"}', '[{"op":"test","path":"/a/b","value":1}]')
  end)

  it("refuses missing parents, missing targets, bad indices and unknown operations", function()
    refuses("{}", '[{"op":"add","path":"/a/b","value":1}]')
    refuses('{"a":null}', '[{"op":"add","path":"/a/b","value":1}]')
    refuses("{}", '[{"op":"remove","path":"/a"}]')
    refuses('{"b":[1]}', '[{"op":"add","path":"/b/2","value":1}]')
    refuses('{"b":[1]}', '[{"op":"add","path":"/b/x","value":1}]')
    refuses('{"b":[1]}', '[{"op":"remove","path":"/b/1"}]')
    refuses("{}", '[{"op":"nop","path":"/a"}]')
    refuses("{}", "[null]")
    refuses('{"a":1}', '[{"op":"remove"}]')
  end)

  it("leaves nothing of a patch whose last operation fails", function()
    refuses('{"a":{"b":1}}', '[{"op":"remove","path":"/a/b"},{"op":"test","path":"/a/b","value":1}]')
  end)

  it("does not change the values it was given when later operations go into them", function()
    local ops = json.decode '[{"op":"add","path":"/a","value":{"x":1}},{"op":"add","path":"/a/y","value":2}]'
    assert.are.equal('{"a":{"x":1,"y":2}}', json.encode(json_patch.apply(json.object {}, ops)))
    assert.are.equal('{"x":1}', json.encode(ops[1].value))
  end)

  it("refuses what is no patch, and more than 10000 operations", function()
    local _, kind, message = patched("{}", "{}")
    assert.are.equal("bad_request", kind)
    assert.are.equal("json: cannot unmarshal object into Go value of type jsonpatch.Patch", message)
    _, kind, message = patched("{}", "[1]")
    assert.are.equal("bad_request", kind)
    assert.are.equal("json: cannot unmarshal number into Go value of type jsonpatch.Operation", message)
    local many = "[" .. ('{"op":"test","path":"/a","value":1},'):rep(10000) .. '{"op":"test","path":"/a","value":1}]'
    _, kind, message = patched('{"a":1}', many)
    assert.are.equal("too_large", kind)
    assert.are.equal(
      "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001", message)
    assert.are.equal("{}", (patched("{}", "null")))
  end)

  it("says what field validation says about the operations", function()
    local function check(text) return json_patch.check(json.decode(text)) end
    assert.are.same({ 'json patch unknown field "[1].bar"', 'json patch unknown field "[1].foo"' },
      check '[{"op":"add"},{"op":"add","foo":1,"bar":2}]')
    local _, message = check '{"op":"add"}'
    assert.are.equal("error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
      message)
    _, message = check "[1]"
    assert.are.equal("error decoding patch: json: cannot unmarshal number into Go value of type handlers.jsonPatchOp",
      message)
    _, message = check '[{"op":5}]'
    assert.are.equal(
      "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string", message)
  end)
end)
