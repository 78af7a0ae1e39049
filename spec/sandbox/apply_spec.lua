require "spec.support.sandbox_env"
local json = require "kube.sandbox.json"
local kinds = require "spec.support.apply_kinds"
local managed = require "kube.sandbox.apply.managed"
local reset_fields = require "kube.sandbox.apply.reset_fields"
local schema = require "kube.sandbox.schema"

-- LuaJIT as Debian 12 has it compiles some loops over pairs() into code that loses half a pointer.
require("jit").off()

local function options(manager, more)
  local out = { manager = manager, api_version = "v1", time = "2026-01-01T00:00:01Z", kind = "ConfigMap",
    schema = kinds.ConfigMap.schema(), reset_fields = {} }
  for k, v in pairs(more or {}) do out[k] = v end
  return out
end

local function config_map(rest)
  local document = json.decode(rest)
  document.apiVersion, document.kind = "v1", "ConfigMap"
  document.metadata = document.metadata or json.object {}
  document.metadata.name = "x"
  return document
end

local function at(second) return { time = ("2026-01-01T00:00:%02dZ"):format(second) } end

-- managedFields, one line for each entry.
local function owners(managed_fields)
  local out = {}
  for i, entry in ipairs(managed_fields or {}) do
    out[i] = ("%s %s%s %s %s"):format(entry.manager, entry.operation,
      entry.subresource and "/" .. entry.subresource or "", (entry.time or "-"):match("(%d%d)Z$") or "-",
      json.encode(entry.fieldsV1))
  end
  return out
end

local function created(rest, manager, more)
  local document = config_map(rest)
  document.metadata.managedFields = managed.update(nil, document, options(manager or "probe", more))
  return document
end

local function applied(live, rest, manager, more)
  local before = live and json.encode(live)
  local config = config_map(rest)
  local sent = json.encode(config)
  local document, refusal = managed.apply(live, config, options(manager, more))
  assert.are.equal(sent, json.encode(config))
  assert(not live or json.encode(live) == before)
  return document, refusal
end

describe("managedFields", function()
  it("records what a create sets, but not what every object has", function()
    local document = created '{"metadata":{"labels":{"x":"1"},"uid":"u","resourceVersion":"1"},"data":{"k":"v"}}'
    assert.are.same({ 'probe Update 01 {"f:data":{".":{},"f:k":{}},"f:metadata":{"f:labels":{".":{},"f:x":{}}}}' },
      owners(document.metadata.managedFields))
  end)

  it("has no entry for an object that has only a name", function()
    assert.is_nil(created("{}").metadata.managedFields)
  end)

  it("takes a changed field from the one who had it, and removed fields from all", function()
    local live = created('{"data":{"a":"1","b":"1","c":"1"}}', "one")
    local new = config_map '{"data":{"a":"2","b":"1"}}'
    assert.are.same({ 'one Update 01 {"f:data":{".":{},"f:b":{}}}', 'two Update 05 {"f:data":{"f:a":{}}}' },
      owners(managed.update(live, new, options("two", at(5)))))
  end)

  it("adds to the manager's own entry and moves its time", function()
    local live = created('{"data":{"a":"1"}}', "one")
    assert.are.same({ 'one Update 05 {"f:data":{".":{},"f:a":{},"f:b":{}}}' },
      owners(managed.update(live, config_map '{"data":{"a":"1","b":"1"}}', options("one", at(5)))))
  end)

  it("keeps the time when nothing was set", function()
    local live = created('{"data":{"a":"1","b":"1"}}', "one")
    assert.are.same({ 'one Update 01 {"f:data":{".":{},"f:a":{}}}' },
      owners(managed.update(live, config_map '{"data":{"a":"1"}}', options("one", at(5)))))
  end)

  it("is cleared by a client that sends an empty list or an empty entry, and then stays away", function()
    local live = created('{"data":{"a":"1"}}', "one")
    for _, reset in ipairs { "[]", "[{}]" } do
      local new = config_map(('{"metadata":{"managedFields":%s},"data":{"a":"2"}}'):format(reset))
      assert.is_nil(managed.update(live, new, options("one", at(5))))
    end
    assert.is_nil(managed.update(config_map '{"data":{"a":"1"}}', config_map '{"data":{"a":"2"}}', options "one"))
  end)

  it("is taken from the live object when the client sends something that is none", function()
    local live = created('{"data":{"a":"1"}}', "one")
    for _, given in ipairs {
      '[{"operation":"Other","apiVersion":"v1","fieldsType":"FieldsV1"}]',
      '[{"operation":"Update","fieldsType":"FieldsV1"}]', '[{"operation":"Update","apiVersion":"v1"}]',
      '[{"operation":"Update","apiVersion":"v1","fieldsType":"FieldsV9"}]',
      '[{"operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"x":{}}}]', "null",
    } do
      local new = config_map(('{"metadata":{"managedFields":%s},"data":{"a":"1"}}'):format(given))
      assert.are.same(owners(live.metadata.managedFields), owners(managed.update(live, new, options("two", at(5)))))
    end
  end)

  it("is taken from the client when it can be read, but not through a subresource", function()
    local live = created('{"data":{"a":"1"}}', "one")
    local new = config_map [[{"data":{"a":"1"},"metadata":{"managedFields":[{"manager":"own","operation":"Update",
      "apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:a":{}}}}]}}]]
    assert.are.same({ 'own Update - {"f:data":{"f:a":{}}}' }, owners(managed.update(live, new, options "two")))
    assert.are.same(owners(live.metadata.managedFields),
      owners(managed.update(live, new, options("two", { subresource = "status" }))))
  end)

  it("merges the oldest of more than ten updaters", function()
    local live = created('{"data":{"k":"0"}}', "m0")
    for i = 1, 12 do
      local new = json.with(live, "data", json.with(live.data, "k" .. i, "1"))
      live = json.with(new, "metadata", json.with(new.metadata, "managedFields",
        managed.update(live, new, options("m" .. i, at(i + 1)))))
    end
    local list = owners(live.metadata.managedFields)
    assert.are.equal(10, #list)
    assert.are.equal('ancient-changes Update 04 {"f:data":{".":{},"f:k":{},"f:k1":{},"f:k2":{},"f:k3":{}}}', list[1])
    assert.are.equal('m4 Update 05 {"f:data":{"f:k4":{}}}', list[2])
  end)

  it("does not count a write that only moves times", function()
    local live = created('{"data":{"a":"1"}}', "one")
    local entry = json.with(live.metadata.managedFields[1], "time", "2027-01-01T00:00:00Z")
    local later = json.with(live, "metadata", json.with(live.metadata, "managedFields", json.array { entry }))
    assert.are.equal(live, managed.settle(live, later))
    local changed = json.with(later, "data", json.object {})
    assert.are.equal(changed, managed.settle(live, changed))
  end)

  it("names the fields that endpoints reset", function()
    local R = { builtin = true, resource_name = "deployments.apps", subresources = { status = {} } }
    assert.are.same({ { "status" } }, reset_fields.of(R))
    assert.are.same({ { "spec" }, { "metadata", "labels" } }, reset_fields.of(R, "status"))
    assert.are.same({ { "metadata" }, { "spec" } }, reset_fields.of({ subresources = { status = {} } }, "status"))
    assert.are.same({}, reset_fields.of { builtin = true, resource_name = "configmaps", subresources = {} })
  end)
end)

describe("server-side apply", function()
  it("creates an object that belongs to the applier", function()
    local document = applied(nil, '{"metadata":{"labels":{"a":"b"}},"data":{"k":"v"}}', "one")
    assert.are.equal("v", document.data.k)
    assert.are.same({ 'one Apply 01 {"f:data":{"f:k":{}},"f:metadata":{"f:labels":{"f:a":{}}}}' },
      owners(document.metadata.managedFields))
  end)

  it("takes away what is no longer applied and nobody else holds", function()
    local live = applied(nil, '{"data":{"a":"1","b":"1","c":"1"}}', "one")
    live = applied(live, '{"data":{"b":"1"}}', "two", at(3))
    local document = applied(live, '{"data":{"a":"1"}}', "one", at(5))
    assert.are.equal('{"a":"1","b":"1"}', json.encode(document.data))
    assert.are.same({ 'two Apply - {"f:data":{"f:b":{}}}', 'one Apply 05 {"f:data":{"f:a":{}}}' },
      owners(document.metadata.managedFields))
  end)

  it("shares a field that two apply with one value, without a time for who changed nothing", function()
    local live = applied(nil, '{"data":{"a":"1"}}', "one")
    assert.are.same({ 'two Apply - {"f:data":{"f:a":{}}}', 'one Apply 01 {"f:data":{"f:a":{}}}' },
      owners(applied(live, '{"data":{"a":"1"}}', "two", at(5)).metadata.managedFields))
  end)

  it("refuses to change another's field, and says which", function()
    local live = created('{"data":{"n":"1"}}', "probe")
    local document, refusal = applied(live, '{"data":{"n":"2"}}', "one")
    assert.is_nil(document)
    assert.are.equal("conflict", refusal.kind)
    assert.are.equal('Apply failed with 1 conflict: conflict with "probe" using v1: .data.n', refusal.message)
    assert.are.equal(
      '[{"field":".data.n","message":"conflict with \\"probe\\" using v1","reason":"FieldManagerConflict"}]',
      json.encode(refusal.causes))
  end)

  it("lists several conflicts by manager", function()
    local live = applied(created('{"data":{"n":"1","m":"1"}}', "probe"), '{"data":{"z":"1"}}', "other")
    local _, refusal = applied(live, '{"data":{"n":"2","m":"2","z":"2"}}', "one")
    assert.are.equal('Apply failed with 3 conflicts: conflicts with "other":\n- .data.z\n' ..
      'conflicts with "probe" using v1:\n- .data.m\n- .data.n', refusal.message)
    assert.are.equal(3, #refusal.causes)
  end)

  it("takes the field with force", function()
    local live = created('{"data":{"n":"1"}}', "probe")
    local document = applied(live, '{"data":{"n":"2"}}', "one", { force = true })
    assert.are.equal("2", document.data.n)
    assert.are.same({ 'one Apply 01 {"f:data":{"f:n":{}}}', 'probe Update 01 {"f:data":{}}' },
      owners(document.metadata.managedFields))
  end)

  it("gives what was there before the first apply to before-first-apply", function()
    local document = applied(config_map '{"data":{"a":"1"}}', '{"data":{"b":"2"}}', "one")
    assert.are.same({
      'one Apply 01 {"f:data":{"f:b":{}}}', 'before-first-apply Update 01 {"f:data":{".":{},"f:a":{}}}',
    }, owners(document.metadata.managedFields))
  end)

  it("refuses managedFields, another kind, and what does not fit the schema", function()
    local function refusal(rest, change)
      local config = config_map(rest)
      if change then change(config) end
      local document, found = managed.apply(nil, config, options "one")
      assert.is_nil(document)
      return found.kind .. ": " .. found.message
    end
    assert.are.equal("bad_request: metadata.managedFields must be nil", refusal '{"metadata":{"managedFields":[]}}')
    assert.are.equal("bad_request: invalid object type: /v1, Kind=Secret",
      refusal("{}", function(c) c.kind = "Secret" end))
    local misfit = "unclassified: failed to create typed patch object (/x; /v1, Kind=ConfigMap): "
    local cases = {
      [".data.a: expected string, got &value.valueUnstructured{Value:5}"] = '{"data":{"a":5}}',
      ['.data.a: expected string, got &value.valueUnstructured{Value:map[string]interface {}{"b":1}}'] =
        '{"data":{"a":{"b":1}}}',
      [".dat: field not declared in schema"] = '{"dat":{"a":5},"foo":1}',
      [".immutable: expected boolean, got &{x}"] = '{"immutable":"x"}',
      [".data: expected map, got &{[1]}"] = '{"data":[1]}',
      [".metadata.finalizers: expected list, got &{x}"] = '{"metadata":{"finalizers":"x"}}',
      ['.metadata.finalizers: duplicate entries for key [="x.io/a"]'] =
        '{"metadata":{"finalizers":["x.io/a","x.io/a"]}}',
    }
    for text, rest in pairs(cases) do assert.are.equal(misfit .. text, refusal(rest)) end
  end)

  it("walks into maps that nobody declared, and knows an object inside another", function()
    local node = json.decode [[{"type":"object","properties":{"spec":{"type":"object",
      "x-kubernetes-preserve-unknown-fields":true,"properties":{
        "known":{"type":"object","properties":{"a":{"type":"string"}}},
        "inner":{"type":"object","x-kubernetes-embedded-resource":true}}}}}]]
    local config = json.decode [[{"apiVersion":"e.io/v1","kind":"E","spec":{"free":{"list":[{"x":1}],"map":{"y":{}}},
      "known":{"a":"1","more":{"b":"2"}},
      "inner":{"apiVersion":"v1","metadata":{"labels":{"l":"1"}},"data":{"k":"v"}}}}]]
    local document = assert(managed.apply(nil, config, options("one", {
      api_version = "e.io/v1", kind = "E", schema = schema.of { builtin = false, schema = node },
    })))
    assert.are.same({ 'one Apply 01 {"f:spec":{"f:free":{".":{},"f:list":{},"f:map":{".":{},"f:y":{}}},' ..
      '"f:inner":{"f:apiVersion":{},"f:data":{".":{},"f:k":{}},"f:metadata":{"f:labels":{"f:l":{}}}},' ..
      '"f:known":{"f:a":{},"f:more":{".":{},"f:b":{}}}}}' }, owners(document.metadata.managedFields))
  end)

  it("says all that is wrong with a larger configuration", function()
    local config = json.decode [[{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"q"},"spec":{
      "replicas":{"a":1},"paused":5,"template":{"spec":{"containers":[{"name":"x"},{"name":"x"},null]}}}}]]
    local _, refusal = managed.apply(nil, config, options("one", {
      api_version = "apps/v1", kind = "Deployment", schema = kinds.Deployment.schema(),
    }))
    assert.are.equal([[failed to create typed patch object (/q; apps/v1, Kind=Deployment): errors:
  .spec.paused: expected boolean, got &{5}
  .spec.replicas: expected numeric (int or float), got map[string]interface {}
  .spec.template.spec.containers: duplicate entries for key [name="x"]
  .spec.template.spec.containers: element 2: associative list with keys may not have a null element]], refusal.message)
  end)
end)

describe("objects of many kinds", function()
  local registry = require("kube.sandbox.kinds").new()

  for line in io.lines "spec/fixtures/sandbox/creates.jsonl" do
    local case = json.decode(line)
    it(("have the owners that kube-apiserver wrote: %s of a %s"):format(case.op, case.kind), function()
      local body, expected = case.body, case.result.metadata.managedFields
      local R = registry:by_kind(body.apiVersion, body.kind)
      local how = { manager = "one", api_version = body.apiVersion, kind = body.kind, time = case.now,
        schema = schema.of(R), reset_fields = reset_fields.of(R) }
      local found
      if case.op == "apply" then
        found = assert(managed.apply(nil, body, how)).metadata.managedFields
      else
        local created_as = json.with(case.result, "metadata", json.with(case.result.metadata, "managedFields", nil))
        found = managed.update(nil, created_as, how)
      end
      assert.are.equal(json.encode(expected), json.encode(found))
    end)
  end
end)

describe("writes recorded from kube-apiserver", function()
  local check = require "spec.support.apply_check"

  for line in io.lines "spec/fixtures/sandbox/writes.jsonl" do
    local case = json.decode(line)
    local live
    for i, step in ipairs(case.steps) do
      local before = live
      it(("%s %s, write %d: %s by %s%s"):format(case.kind, case.steps[1].body.metadata.name, i, step.op, step.manager,
        step.subresource and " to " .. step.subresource or ""), function()
        assert.is_nil(check.step(case, step, before))
      end)
      if step.code < 300 then live = step.result end
    end
  end
end)
