-- Pruning and defaulting by structural schemas, against results recorded from kube-apiserver 1.36.3.
require "spec.support.sandbox_env"
local json = require "kube.sandbox.json"
local default = require "kube.sandbox.crd.default"
local prune = require "kube.sandbox.crd.prune"
local recorded = require "spec.support.recorded"

describe("pruning and defaulting", function()
  it("make of random objects what the server makes of them, and leave the given ones alone", function()
    for i, case in ipairs(recorded.read "validate.json") do
      local before = json.encode(case.object)
      local pruned, unknown = prune.prune(case.object, case.schema)
      assert.same({ unpack(case.unknown) }, unknown, "case " .. i)
      assert.equal(json.encode(case.result), json.encode(default.apply(pruned, case.schema)), "case " .. i)
      assert.equal(before, json.encode(case.object))
    end
  end)

  it("keep what preserves unknown fields, but look into what is specified there", function()
    local node = json.decode [[{"type":"object","properties":{"any":{"type":"object",
      "x-kubernetes-preserve-unknown-fields":true,"properties":{"in":{"type":"object",
      "properties":{"a":{"type":"string"}}}}}}}]]
    local out, unknown = prune.prune(json.decode '{"any":{"x":{"y":1},"in":{"a":"b","c":1}},"z":1}', node)
    assert.equal('{"any":{"in":{"a":"b"},"x":{"y":1}}}', json.encode(out))
    assert.same({ "any.in.c", "z" }, unknown)
  end)

  it("give a default to what is missing or may not be null, also inside of defaults", function()
    local node = json.decode [[{"type":"object","properties":{"a":{"type":"object","default":{},
      "properties":{"b":{"type":"integer","default":3}}},"n":{"type":"string","nullable":true,"default":"x"},
      "s":{"type":"string","default":"y"},"gone":{"type":"string"}}}]]
    assert.equal('{"a":{"b":3},"n":null,"s":"y"}',
      json.encode(default.apply(json.decode '{"n":null,"s":null,"gone":null}', node)))
  end)
end)
