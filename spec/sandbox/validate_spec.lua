-- Schemas, formats, patterns and strict reading, against answers recorded from kube-apiserver 1.36.3.
require "spec.support.sandbox_env"
local json = require "kube.sandbox.json"
local format = require "kube.sandbox.validate.format"
local kinds = require "kube.sandbox.kinds"
local openapi = require "kube.sandbox.validate.openapi"
local regex = require "kube.sandbox.validate.regex"
local strict = require "kube.sandbox.validate.strict"
local recorded = require "spec.support.recorded"

local lines = recorded.lines

describe("validation by schema", function()
  it("tells what the server tells, for random schemas and objects, new and changed", function()
    for i, case in ipairs(recorded.read "validate.json") do
      local before = json.encode(case.result)
      local errors = openapi.validate(case.schema, case.result, nil, case.old)
      assert.same(lines(case.errors), lines(errors), "case " .. i .. ": " .. json.encode(case.schema))
      assert.equal(before, json.encode(case.result))
    end
  end)

  it("places errors of a part where the part stands", function()
    local node = json.object { type = "object", properties = json.object { n = json.object { type = "integer" } } }
    local errors = openapi.validate(node, json.object { n = "x" }, "status")
    assert.equal("status.n", errors[1].field)
    assert.equal('Invalid value: "string": n in body must be of type integer: "string"', errors[1].message)
  end)

  it("forgives what was invalid before and did not change", function()
    local node = json.object { type = "object", properties = json.object {
      a = json.object { type = "string", maxLength = 1 }, b = json.object { type = "string" } } }
    local old = json.object { a = "long", b = "x" }
    assert.equal(0, #openapi.validate(node, json.object { a = "long", b = "y" }, nil, old))
    assert.equal(1, #openapi.validate(node, json.object { a = "longer", b = "y" }, nil, old))
    assert.equal(1, #openapi.validate(node, json.object { a = "long", b = "y" }))
  end)
end)

describe("validation of a resource", function()
  local R = { schema = json.decode [[{"type":"object","properties":{"spec":{"type":"object","properties":{
    "replicas":{"type":"integer"}}},"status":{"type":"object","properties":{"replicas":{"type":"integer"},
    "selector":{"type":"string"}}}}}]], scale = json.decode [[{"specReplicasPath":".spec.replicas",
    "statusReplicasPath":".status.replicas","labelSelectorPath":".status.selector"}]] }

  local function told(text, old, subresource)
    return lines(openapi.validate_resource(R, json.decode(text), old and json.decode(old), subresource))
  end

  it("looks at the numbers of its scale subresource", function()
    assert.same({}, told '{"spec":{"replicas":3}}')
    assert.same({}, told '{}')
    assert.same({ "FieldValueInvalid .spec.replicas Invalid value: -1: should be a non-negative integer" },
      told '{"spec":{"replicas":-1}}')
    assert.same({ "FieldValueInvalid .spec.replicas Invalid value: 3000000000: should be less than or equal to "
      .. "2147483647" }, told '{"spec":{"replicas":3000000000}}')
    assert.same({ 'FieldValueInvalid .spec.replicas Invalid value: 0: .spec.replicas accessor error: x is of the type '
      .. 'string, expected map[string]interface{}',
      'FieldValueTypeInvalid spec Invalid value: "string": spec in body must be of type object: "string"' },
      told '{"spec":"x"}')
    assert.same({ 'FieldValueInvalid .spec.replicas Invalid value: 0: .spec.replicas accessor error: x is of the type '
      .. 'string, expected int64',
      'FieldValueTypeInvalid spec.replicas Invalid value: "string": spec.replicas in body must be of type integer: '
      .. '"string"' }, told '{"spec":{"replicas":"x"}}')
  end)

  it("looks only at the status when only the status is written", function()
    local wrong = '{"spec":{"replicas":-1},"status":{"replicas":"x"}}'
    assert.same({ 'FieldValueInvalid .status.replicas Invalid value: 0: .status.replicas accessor error: x is of the '
      .. 'type string, expected int64', 'FieldValueTypeInvalid status.replicas Invalid value: "string": replicas in '
      .. 'body must be of type integer: "string"' }, told(wrong, '{"spec":{"replicas":-1}}', "status"))
  end)
end)

describe("patterns", function()
  local function matches(pattern, text) return assert(regex.compile(pattern)):match(text) end

  it("match as RE2 does", function()
    assert.is_true(matches("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "a-b-c"))
    assert.is_false(matches("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "a-"))
    assert.is_true(matches("(?i)^ab{2,3}$", "ABBb"))
    assert.is_false(matches("(?i)^ab{2,3}$", "ab"))
    assert.is_true(matches("\\bfoo\\b", "a foo b"))
    assert.is_false(matches("\\bfoo\\b", "afoo b"))
    assert.is_true(matches("^.$", "é"))
    assert.is_true(matches("^(a|b|)$", ""))
  end)

  it("take no longer for a pattern that makes others backtrack", function()
    local started = os.clock()
    assert.is_false(matches("^(a+)+$", ("a"):rep(2000) .. "b"))
    assert.is_true(os.clock() - started < 2)
  end)

  it("refuse what they do not understand, in Go's words where Go refuses it too", function()
    local function problem(pattern) return select(2, regex.compile(pattern)) end
    assert.equal("error parsing regexp: missing closing ): `(a`", problem "(a")
    assert.equal("error parsing regexp: missing closing ]: `[a`", problem "x[a")
    assert.equal("error parsing regexp: invalid nested repetition operator: `**`", problem "a**")
    assert.equal("error parsing regexp: invalid or unsupported Perl syntax: `(?=`", problem "(?=x)")
    assert.equal("error parsing regexp: invalid repeat count: `{1001}`", problem "a{1001}")
    assert.equal("the sandbox does not support Unicode classes (\\p)", problem "\\p{L}+")
  end)
end)

describe("formats", function()
  local good = {
    date = "2024-02-29", ["date-time"] = "2024-01-02T03:04:05.5+01:00", email = "Bob <a@b.c>", ipv4 = "1.2.3.4",
    ipv6 = "::ffff:1.2.3.4", cidr = "::/0", uri = "mailto:a@b", uuid = "123e4567-e89b-12d3-a456-426614174000",
    byte = "aGVsbG8=", duration = "3 days", hostname = "a-b.com", mac = "00:11:22:33:44:55",
    ["k8s-short-name"] = "a-b", creditcard = "4111 1111 1111 1111", isbn13 = "978-0321751041",
  }
  local bad = {
    date = "2023-02-29", ["date-time"] = "2024-01-02T24:00:00Z", email = "a..b@c", ipv4 = "256.1.1.1",
    ipv6 = "1:2:3", cidr = "1.2.3.4/33", uri = "a b", uuid = "123", byte = "aGVsbG8", duration = "5 foo",
    hostname = "-a", mac = "00:11", ["k8s-short-name"] = "A", creditcard = "4111111111111112", isbn13 = "978-1",
  }

  it("take what the server takes and refuse what it refuses", function()
    for name, value in pairs(good) do assert.is_true(format.check(name)(value) and true, name) end
    for name, value in pairs(bad) do assert.is_false(format.check(name)(value) or false, name) end
  end)

  it("are checked only for the types that they belong to", function()
    assert.is_true(format.known("int32", "integer"))
    assert.is_false(format.known("int32", "string"))
    assert.is_false(format.known("date", "object"))
    assert.is_false(format.known("foo", "string"))
  end)
end)

describe("strict reading", function()
  local registry = kinds.new()

  it("tells of built-in kinds what the server's decoder tells", function()
    for i, case in ipairs(recorded.read "strict.json") do
      local R = registry:find(case.group, case.version, case.plural)
      local _, problems, refusal = strict.check(R, json.decode(case.body), case.body)
      local said = refusal or problems[1] and "strict decoding error: " .. table.concat(problems, ", ") or ""
      assert.equal(case.expect, said, ("case %d: %s"):format(i, case.body))
    end
  end)

  it("leaves out unknown fields and nulls, and nothing else", function()
    local R = registry:find("", "v1", "configmaps")
    local document = json.decode('{"metadata":{"name":"x","foo":1,"labels":null},"data":{"a":null,"b":"c"},"bar":1}')
    local before = json.encode(document)
    local clean = strict.check(R, document)
    assert.equal('{"data":{"a":"","b":"c"},"metadata":{"name":"x"}}', json.encode(clean))
    assert.equal(before, json.encode(document))
  end)

  local widget = { builtin = false, schema = json.decode [[{"type":"object","properties":{"spec":{"type":"object",
    "properties":{"size":{"type":"integer"},"list":{"type":"array","items":{"type":"object",
    "properties":{"a":{"type":"string"}}}},"map":{"type":"object","additionalProperties":{"type":"object",
    "properties":{"a":{"type":"string"}}}},"emb":{"type":"object","x-kubernetes-embedded-resource":true,
    "x-kubernetes-preserve-unknown-fields":true}}}}}]] }

  local function read(text) return strict.check(widget, json.decode(text), text) end

  it("tells duplicates of a custom resource first, then its metadata, then the rest by path", function()
    local clean, problems = read [[{"apiVersion":"ex.io/v1","kind":"Widget","metadata":{"name":"x","name":"y","zz":1,
      "aa":1},"zz":1,"spec":{"size":1,"size":2,"foo":1,"list":[{"b":1,"b":2,"a":"x","a":"y"}],"bar":{"q":1,"q":2},
      "map":{"k.x":{"z":1}}},"foo":1,"foo":2}]]
    assert.equal('duplicate field "metadata.name", duplicate field "spec.size", duplicate field "spec.list[0].b", '
      .. 'duplicate field "spec.list[0].a", duplicate field "spec.bar.q", duplicate field "foo", '
      .. 'unknown field "metadata.aa", unknown field "metadata.zz", unknown field "foo", unknown field "spec.bar", '
      .. 'unknown field "spec.foo", unknown field "spec.list[0].b", unknown field "spec.map.k.x.z", '
      .. 'unknown field "zz"', table.concat(problems, ", "))
    assert.equal('{"apiVersion":"ex.io/v1","kind":"Widget","metadata":{"name":"y"},"spec":{"list":[{"a":"y"}],'
      .. '"map":{"k.x":{}},"size":2}}', json.encode(clean))
  end)

  it("refuses metadata of the wrong type, its own and that of objects inside", function()
    local function refusal(text) return select(3, read(text)) end
    assert.equal("json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string",
      refusal '{"metadata":{"labels":{"a":1}}}')
    assert.equal("json: cannot unmarshal string into Go value of type v1.ObjectMeta", refusal '{"metadata":"x"}')
    assert.equal('parsing time "zz" as "2006-01-02T15:04:05Z07:00": cannot parse "zz" as "2006"',
      refusal '{"metadata":{"creationTimestamp":"zz"}}')
    assert.equal("spec.emb.apiVersion: Invalid value: 5: must be a string", refusal '{"spec":{"emb":{"apiVersion":5}}}')
    assert.equal('spec.emb.metadata: Invalid value: {"name":5}: json: cannot unmarshal number into Go struct field '
      .. "ObjectMeta.name of type string", refusal '{"spec":{"emb":{"metadata":{"name":5}}}}')
  end)
end)
