require "spec.support.sandbox_env"
local json = require "kube.sandbox.json"
local merge_patch = require "kube.sandbox.patch.merge_patch"

local function patched(document, patch)
  local doc, change = json.decode(document), json.decode(patch)
  local before = json.encode(change)
  local result, kind, message = merge_patch.apply(doc, change)
  assert.are.equal(json.encode(json.decode(document)), json.encode(doc))
  assert.are.equal(before, json.encode(change))
  return result and json.encode(result), kind, message
end

describe("JSON merge patch", function()
  it("merges objects, replaces everything else and takes away what is null", function()
    assert.are.equal('{"a":"c"}', patched('{"a":"b"}', '{"a":"c"}'))
    assert.are.equal('{"a":"b","b":"c"}', patched('{"a":"b"}', '{"b":"c"}'))
    assert.are.equal("{}", patched('{"a":"b"}', '{"a":null}'))
    assert.are.equal('{"a":["b"]}', patched('{"a":{"b":"c"}}', '{"a":["b"]}'))
    assert.are.equal('{"a":{"b":"d"}}', patched('{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}'))
    assert.are.equal('{"a":[1]}', patched('{"a":[{"b":"c"}]}', '{"a":[1]}'))
  end)

  it("drops the nulls of objects that are new, also inside arrays, and keeps null elements", function()
    assert.are.equal('{"a":{"bb":{}}}', patched("{}", '{"a":{"bb":{"ccc":null}}}'))
    assert.are.equal('{"a":[null,{"y":1}]}', patched("{}", '{"a":[null,{"x":null,"y":1}]}'))
    assert.are.equal('{"a":[{}]}', patched('{"a":[1]}', '{"a":[{"x":null}]}'))
  end)

  it("keeps the nulls inside an array that replaces an object, as the server does", function()
    assert.are.equal('{"a":[{"x":null}]}', patched('{"a":{}}', '{"a":[{"x":null}]}'))
  end)

  it("refuses what is not an object", function()
    local function refusal(patch)
      local result, kind, message = patched('{"a":1}', patch)
      assert.is_nil(result)
      assert.are.equal("bad_request", kind)
      return message
    end
    local text = "error decoding patch: json: cannot unmarshal %s into Go value of type map[string]interface {}"
    assert.are.equal(text:format "array", refusal "[]")
    assert.are.equal(text:format "number", refusal "5")
    assert.are.equal("Invalid JSON Patch", refusal "null")
  end)
end)
