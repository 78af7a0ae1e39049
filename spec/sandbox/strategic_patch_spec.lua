require "spec.support.sandbox_env"
local json = require "kube.sandbox.json"
local schema = require "kube.sandbox.schema"
local strategic = require "kube.sandbox.patch.strategic"

local deployment = schema.named "io.k8s.api.apps.v1.Deployment"

local function patched(document, patch)
  local doc, change = json.decode(document), json.decode(patch)
  local before = json.encode(change)
  local result, kind, message = strategic.apply(doc, change, deployment)
  assert.are.equal(json.encode(json.decode(document)), json.encode(doc))
  assert.are.equal(before, json.encode(change))
  return result, kind, message
end

-- The pod template of a document whose containers are a, b and c, after the patch of its spec.
local function containers(patch)
  local document = [[{"spec":{"template":{"spec":{"containers":[
    {"name":"a","image":"1","args":["x"],"env":[{"name":"E","value":"1"}]},{"name":"b","image":"2"},
    {"name":"c","image":"3"}]}}}}]]
  local result, _, message = patched(document, ('{"spec":{"template":{"spec":%s}}}'):format(patch))
  assert.is_nil(message)
  return result.spec.template.spec.containers
end

local function names(list)
  local out = {}
  for i, element in ipairs(list) do out[i] = element.name end
  return table.concat(out, " ")
end

local function finalizers(before, patch)
  local result, _, message = patched(('{"metadata":{"finalizers":%s}}'):format(before),
    ('{"metadata":%s}'):format(patch))
  assert.is_nil(message)
  return table.concat(result.metadata.finalizers, " ")
end

describe("strategic merge patch", function()
  it("merges maps and takes away what is null", function()
    local result = patched('{"metadata":{"labels":{"a":"1","b":"2"}},"spec":{"replicas":1}}',
      '{"metadata":{"labels":{"a":null,"c":"3","d":null}},"spec":{"paused":true}}')
    assert.are.equal('{"metadata":{"labels":{"b":"2","c":"3"}},"spec":{"paused":true,"replicas":1}}',
      json.encode(result))
  end)

  it("merges lists by their key, deeply, and appends new elements", function()
    local list = containers '{"containers":[{"name":"a","image":"9","env":[{"name":"F"}]},{"name":"n","image":"0"}]}'
    assert.are.equal('{"args":["x"],"env":[{"name":"F"},{"name":"E","value":"1"}],"image":"9","name":"a"}',
      json.encode(list[1]))
    assert.are.equal("a n b c", names(list))
  end)

  it("replaces lists that have no strategy", function()
    assert.are.equal('["y"]', json.encode(containers '{"containers":[{"name":"a","args":["y"]}]}'[1].args))
  end)

  it("orders what the patch names before what only the server has, unless it stood before it", function()
    assert.are.equal("b c a", names(containers '{"containers":[{"name":"c"},{"name":"a"}]}'))
    assert.are.equal("a c b", names(containers '{"containers":[{"name":"c"},{"name":"b"}]}'))
    assert.are.equal("a b c", names(containers '{"containers":[{"name":"b"}]}'))
  end)

  it("deletes and replaces elements", function()
    assert.are.equal("a c", names(containers '{"containers":[{"name":"b","$patch":"delete"}]}'))
    assert.are.equal("z", names(containers '{"containers":[{"name":"z"},{"$patch":"replace"}]}'))
    assert.are.equal("", names(containers '{"containers":[{"$patch":"replace"}]}'))
  end)

  it("replaces and deletes maps", function()
    local result = patched('{"spec":{"replicas":1,"paused":true}}', '{"spec":{"$patch":"replace","replicas":2}}')
    assert.are.equal('{"spec":{"replicas":2}}', json.encode(result))
    assert.are.equal('{"spec":{}}', json.encode(patched('{"spec":{"replicas":1}}', '{"spec":{"$patch":"delete"}}')))
  end)

  it("puts a list in the order of $setElementOrder", function()
    assert.are.equal("c b a", names(containers
      '{"$setElementOrder/containers":[{"name":"c"},{"name":"b"},{"name":"a"}]}'))
    assert.are.equal("b c n a", names(containers
      '{"$setElementOrder/containers":[{"name":"c"},{"name":"n"},{"name":"a"}],"containers":[{"name":"n"}]}'))
    assert.are.equal("c a", names(containers [[{"$setElementOrder/containers":[{"name":"c"},{"name":"a"}],
      "containers":[{"name":"b","$patch":"delete"},{"name":"c","image":"7"}]}]]))
  end)

  it("merges, deletes from and orders lists of scalars", function()
    assert.are.equal("c a b", finalizers('["a","b"]', '{"finalizers":["c","a"]}'))
    assert.are.equal("b", finalizers('["a","b","a"]', '{"$deleteFromPrimitiveList/finalizers":["a","x"]}'))
    assert.are.equal("b a", finalizers('["a","b"]', '{"$setElementOrder/finalizers":["b","a"]}'))
    assert.are.equal("c b", finalizers('["a","b"]', [[{"$setElementOrder/finalizers":["c","b"],"finalizers":["c"],
      "$deleteFromPrimitiveList/finalizers":["a"]}]]))
  end)

  it("clears what $retainKeys does not name", function()
    local before = '{"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1}}}}'
    local result = patched(before, '{"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"}}}')
    assert.are.equal('{"type":"Recreate"}', json.encode(result.spec.strategy))
  end)

  it("leaves directives and nulls out of what is new", function()
    local result = patched("{}", '{"metadata":{"labels":{"a":null,"b":"1"},"annotations":{"$patch":"delete"}}}')
    assert.are.equal('{"metadata":{"labels":{"b":"1"}}}', json.encode(result))
  end)

  it("does nothing for null", function()
    assert.are.equal('{"spec":{}}', json.encode(patched('{"spec":{}}', "null")))
  end)

  local document = [[{"metadata":{"finalizers":["a"]},"spec":{"template":{"spec":{"containers":[{"name":"c1"}]}}}}]]
  local refusals = {
    { "bad_request", "json: cannot unmarshal array into Go value of type map[string]interface {}", "[]" },
    { "unclassified", "map: map[image:x] does not contain declared merge key: name",
      '{"spec":{"template":{"spec":{"containers":[{"image":"x"}]}}}}' },
    { "unclassified", "unknown patch type: foo in map: map[$patch:foo name:c1]",
      '{"spec":{"template":{"spec":{"containers":[{"$patch":"foo","name":"c1"}]}}}}' },
    { "unclassified", "merging lists cannot yet be specified in the patch",
      '{"spec":{"template":{"spec":{"containers":[{"$patch":"merge","name":"c1"}]}}}}' },
    { "unclassified", "map: map[$patch:delete] does not contain declared merge key: name",
      '{"spec":{"template":{"spec":{"containers":[{"$patch":"delete"}]}}}}' },
    { "unclassified", "unknown patch type: merge in map: map[$patch:merge]",
      '{"spec":{"template":{"spec":{"$patch":"merge"}}}}' },
    { "unclassified", "unknown patch type: %!s(int64=5) in map: map[$patch:5]",
      '{"spec":{"template":{"spec":{"$patch":5}}}}' },
    { "bad_request", "invalid patch format of retainKeys",
      '{"spec":{"template":{"$retainKeys":"type"}}}' },
    { "bad_request", "invalid patch format of retainKeys",
      '{"spec":{"template":{"$retainKeys":["foo"],"spec":{}}}}' },
    { "unclassified", "expected a []interface {}, but received a string",
      '{"metadata":{"$setElementOrder/finalizers":"x"}}' },
    { "unclassified", "expected slice or array type, but got: struct",
      '{"metadata":{"$setElementOrder/labels":["x"]}}' },
    { "unclassified", 'unable to find api field in struct ObjectMeta for the json field "foo"',
      '{"metadata":{"$setElementOrder/foo":["x"]}}' },
    { "bad_request", "invalid patch format of setElementOrder list", '{"metadata":{"$setElementOrderx":["x"]}}' },
    { "bad_request", "invalid patch format of primitive list", '{"metadata":{"$deleteFromPrimitiveList":["x"]}}' },
    { "unclassified",
      "The order in patch list:\n[map[image:z name:c1]]\n doesn't match $setElementOrder list:\n[map[name:c2]]\n",
      [[{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"c2"}],
        "containers":[{"name":"c1","image":"z"}]}}}}]] },
    { "unclassified", "list element types are not identical: [[a] [1]]", '{"metadata":{"finalizers":[1]}}' },
    { "unclassified", "list element types are not identical: [[map[name:c1]] [<nil>]]",
      '{"spec":{"template":{"spec":{"containers":[null]}}}}' },
  }
  for _, case in ipairs(refusals) do
    it("refuses " .. case[3], function()
      local result, kind, message = patched(document, case[3])
      assert.is_nil(result)
      assert.are.equal(case[2], message)
      assert.are.equal(case[1], kind)
    end)
  end
end)
