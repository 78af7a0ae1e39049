-- Rules in CEL, against answers recorded from kube-apiserver 1.36.3's own validator.
require "spec.support.sandbox_env"
local json = require "kube.sandbox.json"
local default = require "kube.sandbox.crd.default"
local definition = require "kube.sandbox.crd.definition"
local definition_warnings = require "kube.sandbox.crd.definition_warnings"
local openapi = require "kube.sandbox.validate.openapi"
local prune = require "kube.sandbox.crd.prune"
local recorded = require "spec.support.recorded"
local rules = require "kube.sandbox.crd.rules"
local status = require "kube.sandbox.crd.status"

local lines = recorded.lines

-- A schema whose spec has these rules.
local function schema_with(spec, on_spec, on_number)
  local node = json.with(spec, "x-kubernetes-validations", on_spec)
  if on_number then
    local properties = json.shallow(node.properties)
    properties.i = json.with(properties.i, "x-kubernetes-validations", on_number)
    node.properties = properties
  end
  return json.object { type = "object", properties = json.object { spec = node } }
end

local function object(spec) return spec and json.object { metadata = json.object { name = "w" }, spec = spec } end

local function rule(source, more)
  local entry = json.object { rule = source }
  for key, value in pairs(more or {}) do entry[key] = value end
  return json.array { entry }
end

describe("rules", function()
  it("break where the server says so, with its words, for random objects new and changed", function()
    local answers = recorded.read "rules.json"
    for i, case in ipairs(answers.cases) do
      local node = schema_with(answers.schema, case.rules, case.number_rules)
      local document = default.apply((prune.prune(object(case.object), node)), node)
      local errors = openapi.validate(node, document, nil, object(case.old))
      assert.same(lines(case.errors), lines(errors), ("case %d: %s"):format(i, json.encode(case.rules)))
    end
  end)

  it("see the name of the object at the root", function()
    local node = json.object { type = "object", properties = json.object {},
      ["x-kubernetes-validations"] = rule "self.metadata.name.startsWith('w')" }
    assert.equal(0, #rules.validate(node, object(json.object {})))
    local bad = json.object { metadata = json.object { name = "x" } }
    assert.same({ "FieldValueInvalid <nil> Invalid value: failed rule: self.metadata.name.startsWith('w')" },
      lines(rules.validate(node, bad)))
  end)

  it("that compare with the past wait for a past, unless they say that there may be none", function()
    local node = json.object { type = "integer", ["x-kubernetes-validations"] = rule "self >= oldSelf" }
    assert.equal(0, #rules.validate(node, 1, nil, "spec.i"))
    assert.equal(1, #rules.validate(node, 1, 2, "spec.i"))
    local first = json.object { type = "integer", ["x-kubernetes-validations"] =
      rule("oldSelf.hasValue() || self == 0", { optionalOldSelf = true }) }
    assert.equal(1, #rules.validate(first, 1, nil, "spec.i"))
    assert.equal(0, #rules.validate(first, 1, 5, "spec.i"))
  end)

  it("that were broken before only warn while the value stays", function()
    local node = json.object { type = "integer",
      ["x-kubernetes-validations"] = rule("self > 5", { message = "small" }) }
    local errors, warnings = rules.validate(node, 1, 1, "spec.i")
    assert.equal(0, #errors)
    assert.same({ "spec.i: Invalid value: 1: small" }, warnings)
    assert.equal(1, #rules.validate(node, 2, 1, "spec.i"))
  end)

  it("that the sandbox cannot read are not checked, and every write and the definition say so", function()
    local source = "quantity(self.spec.q).isGreaterThan(quantity('1Gi'))"
    local node = json.object { type = "object", ["x-kubernetes-validations"] = rule(source),
      properties = json.decode '{"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}' }
    local text = ("sandbox: the rule %q is not checked: quantity() is not supported"):format(source)
    local errors, warnings = openapi.validate(node, object(json.object { q = "1" }))
    assert.equal(0, #errors)
    assert.same({ text }, warnings)
    local document = json.object { spec = json.object { versions = json.array { json.object {
      schema = json.object { openAPIV3Schema = node } } } } }
    local cost = "sandbox: the cost of rules in CEL is not estimated: kube-apiserver may refuse them as too expensive"
    assert.same({ text, cost }, definition_warnings.of(document))
    assert.same({ text }, definition_warnings.of(document, document))
  end)

  it("that name fields which the schema does not have are refused as the compiler refuses them", function()
    local node = json.decode [=[{"type":"object","properties":{"l":{"type":"array","items":{"type":"object",
      "properties":{"n":{"type":"integer"}}}},"m":{"type":"object","additionalProperties":{"type":"string"}}},
      "x-kubernetes-validations":[{"rule":"self.l.all(e, e.k == 1)"},{"rule":"self.m.any == 'x' && has(self.metadata)"},
      {"rule":"has(self.q)"}]}]=]
    local value = '{"Rule":"%s","Message":"","MessageExpression":"","Reason":null,"FieldPath":"",'
      .. '"OptionalOldSelf":null}'
    assert.same({
      "FieldValueInvalid at.x-kubernetes-validations[0].rule Invalid value: "
        .. value:format "self.l.all(e, e.k == 1)" .. ": compilation failed: ERROR: <input>:1:16: undefined field 'k'\n"
        .. " | self.l.all(e, e.k == 1)\n | ...............^",
      "FieldValueInvalid at.x-kubernetes-validations[2].rule Invalid value: " .. value:format "has(self.q)"
        .. ": compilation failed: ERROR: <input>:1:4: undefined field 'q'\n | has(self.q)\n | ...^",
    }, lines(rules.check(node, "at")))
  end)

  it("may not compare items of a list that have no identity with the past", function()
    local document = definition.default(json.decode [=[{"metadata":{"name":"ws.ex.io"},"spec":{"group":"ex.io",
      "scope":"Cluster","names":{"plural":"ws","kind":"W"},"versions":[{"name":"v1","served":true,"storage":true,
      "schema":{"openAPIV3Schema":{"type":"object","properties":{"l":{"type":"array","items":{"type":"string",
      "x-kubernetes-validations":[{"rule":"self == oldSelf"}]}}}}}}]}}]=])
    document = json.with(document, "status", status.initial(document))
    local at = "spec.validation.openAPIV3Schema.properties[l]"
    assert.same({ ("FieldValueInvalid %s.items.x-kubernetes-validations[0].rule Invalid value: \"self == oldSelf\": "
      .. "oldSelf cannot be used on the uncorrelatable portion of the schema within %s"):format(at, at) },
      lines(definition.validate(document)))
  end)

  it("end when they take too long", function()
    local list = json.array {}
    for i = 1, 200 do list[i] = i end
    local node = json.object { type = "array", items = json.object { type = "integer" },
      ["x-kubernetes-validations"] = rule "self.all(a, self.all(b, self.all(c, a + b + c > 0)))" }
    local errors = rules.validate(node, list, nil, "spec.l")
    assert.matches("actual cost limit exceeded", errors[1].message)
  end)
end)
