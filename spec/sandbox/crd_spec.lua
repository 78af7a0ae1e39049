-- Definitions of custom resources, against answers recorded from kube-apiserver 1.36.3.
require "spec.support.sandbox_env"
local json = require "kube.sandbox.json"
local definition = require "kube.sandbox.crd.definition"
local definition_warnings = require "kube.sandbox.crd.definition_warnings"
local descriptor = require "kube.sandbox.crd.descriptor"
local status = require "kube.sandbox.crd.status"
local recorded = require "spec.support.recorded"

local lines = recorded.lines

-- A definition as it is before it is validated for the first time.
local function prepared(document)
  document = definition.default(document)
  return json.with(document, "status", status.initial(document))
end

local function widgets(changes)
  local spec = json.decode [[{"group":"ex.io","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},
    "versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}]]
  for key, value in pairs(changes or {}) do spec[key] = value end
  local name = spec.names.plural .. "." .. spec.group
  return prepared(json.object { metadata = json.object { name = name }, spec = spec })
end

describe("a definition", function()
  it("is refused for what the server refuses, with the same words at the same places", function()
    for i, case in ipairs(recorded.read "definitions.json") do
      local before = json.encode(case.definition)
      local errors = definition.validate(prepared(case.definition))
      assert.same(lines(case.errors), lines(errors), "case " .. i .. ": " .. before)
      assert.equal(before, json.encode(case.definition))
    end
  end)

  it("gets its names and its conversion filled in", function()
    local spec = widgets().spec
    assert.equal("WidgetList", spec.names.listKind)
    assert.equal("widget", spec.names.singular)
    assert.equal("None", spec.conversion.strategy)
    assert.equal(0, #definition.validate(widgets()))
  end)

  it("with a conversion webhook is refused: the sandbox calls none", function()
    local errors = definition.validate(widgets { conversion = json.decode [[{"strategy":"Webhook","webhook":{
      "clientConfig":{"url":"https://x/"},"conversionReviewVersions":["v1"]}}]] })
    assert.equal("spec.conversion.strategy", errors[1].field)
    assert.equal("Forbidden: the sandbox does not call conversion webhooks", errors[1].message)
  end)

  it("keeps its group, plural and, once established, its scope and kind", function()
    local old = status.establish(status.name(widgets(), {}, "now"), "now")
    local new = json.with(json.copy(old), "spec", json.with(old.spec, "scope", "Cluster"))
    assert.same({ "FieldValueInvalid spec.scope Invalid value: \"Cluster\": field is immutable" },
      lines(definition.validate(new, old)))
  end)

  it("may not drop a version that was stored", function()
    local old = widgets()
    local versions = json.copy(old.spec.versions)
    versions[1].name = "v2"
    local new = json.with(json.with(old, "spec", json.with(old.spec, "versions", versions)), "metadata", old.metadata)
    new = json.with(new, "status", status.carry(new, old))
    assert.same({ "v1", "v2" }, { unpack(new.status.storedVersions) })
    local errors = definition.validate(new, old)
    assert.equal("status.storedVersions[0]", errors[1].field)
  end)

  it("is warned about formats that nobody checks, once", function()
    local strange = widgets { versions = json.decode [=[[{"name":"v1","served":true,"storage":true,"schema":{
      "openAPIV3Schema":{"type":"object","properties":{"a":{"type":"string","format":"foo"}}}}}]]=] }
    assert.same({ 'unrecognized format "foo"' }, definition_warnings.of(strange))
    assert.same({}, definition_warnings.of(strange, strange))
  end)
end)

describe("the status of a definition", function()
  local function condition(document, kind)
    local found = status.condition(document, kind)
    return found and ("%s %s: %s"):format(found.status, found.reason, found.message)
  end

  it("begins empty, gets its names and is established", function()
    local document = widgets()
    assert.equal('{"acceptedNames":{"kind":"","plural":""},"conditions":null,"storedVersions":["v1"]}',
      json.encode(document.status))
    document = status.name(document, {}, "t1")
    assert.equal("True NoConflicts: no conflicts found", condition(document, "NamesAccepted"))
    assert.equal("False Installing: the initial names have been accepted", condition(document, "Established"))
    document = status.establish(document, "t2")
    assert.equal("True InitialNamesAccepted: the initial names have been accepted", condition(document, "Established"))
    assert.equal("widgets", document.status.acceptedNames.plural)
    assert.equal("t2", status.condition(document, "Established").lastTransitionTime)
    assert.equal(document, status.establish(document, "t3"))
    assert.equal(document, status.name(document, { document }, "t3"))
  end)

  it("tells of names that another definition of the group has", function()
    local first = status.name(widgets { names = json.decode
      '{"plural":"as","kind":"A","singular":"a","listKind":"AList","shortNames":["x","y"]}' }, {}, "t")
    local function second(names)
      return status.name(widgets { names = json.decode(names) }, { first }, "t")
    end
    local same_kind = second '{"plural":"bs","kind":"A"}'
    assert.equal('False ListKindConflict: "AList" is already in use', condition(same_kind, "NamesAccepted"))
    assert.equal("False NotAccepted: not all names are accepted", condition(same_kind, "Established"))
    assert.equal('{"kind":"","plural":"bs"}', json.encode(same_kind.status.acceptedNames))
    assert.equal(same_kind, status.establish(same_kind, "t"))
    assert.equal('False ShortNamesConflict: ["x" is already in use, "as" is already in use]',
      condition(second '{"plural":"cs","kind":"C","shortNames":["x","as","q"]}', "NamesAccepted"))
    assert.equal('False SingularConflict: "as" is already in use',
      condition(second '{"plural":"ds","kind":"D","singular":"as"}', "NamesAccepted"))
  end)

  it("tells how far its deletion is, and lets go at the end", function()
    local document = status.establish(status.name(widgets(), {}, "t"), "t")
    document.metadata.finalizers = json.array { status.FINALIZER, "other.io/x" }
    document = status.pending(document, "t")
    assert.equal("True InstanceDeletionPending: CustomResourceDefinition marked for deletion; CustomResource deletion "
      .. "will begin soon", condition(document, "Terminating"))
    document = status.deleting(document, "t")
    assert.equal("True InstanceDeletionInProgress: CustomResource deletion is in progress",
      condition(document, "Terminating"))
    document = status.deleted(document, "t")
    assert.equal("False InstanceDeletionCompleted: removed all instances", condition(document, "Terminating"))
    assert.same({ "other.io/x" }, { unpack(document.metadata.finalizers) })
  end)
end)

describe("the descriptors of a definition", function()
  it("are one for each served version, with what that version says", function()
    local document = widgets { versions = json.decode [=[[
      {"name":"v1beta1","served":true,"storage":false,"deprecated":true,"schema":{"openAPIV3Schema":{"type":"object"}}},
      {"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}},
       "subresources":{"status":{},"scale":{"specReplicasPath":".spec.r","statusReplicasPath":".status.r"}},
       "selectableFields":[{"jsonPath":".spec.color"}]},
      {"name":"v2","served":false,"storage":false}]]=] }
    local beta, v1, none = unpack(descriptor.of(status.name(document, {}, "t")))
    assert.is_nil(none)
    assert.equal("ex.io/v1beta1", beta.api_version)
    assert.equal("ex.io/v1beta1 Widget is deprecated; use ex.io/v1 Widget", beta.deprecation_warning)
    assert.equal(beta.storage, v1.storage)
    assert.equal(beta.hash, v1.hash)
    assert.same({ "status", "scale" }, v1.subresource_list)
    assert.equal(".spec.r", v1.scale.specReplicasPath)
    assert.same({ "spec.color" }, v1.selectable_fields)
    assert.is_true(v1.verbs.create)
  end)

  it("read what is stored as their schema has it now", function()
    local document = widgets { versions = json.decode [=[[{"name":"v1","served":true,"storage":true,"schema":{
      "openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"a":{"type":"integer"},
      "late":{"type":"string","default":"d"}}}}}}}]]=] }
    local R = descriptor.of(document)[1]
    local stored = json.decode [[{"apiVersion":"ex.io/v0","kind":"Widget","metadata":{"name":"w"},
      "spec":{"a":1,"gone":2}}]]
    local before = json.encode(stored)
    local view = R.from_storage(stored)
    assert.equal('{"apiVersion":"ex.io/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"a":1,"late":"d"}}',
      json.encode(view))
    assert.equal(view, R.from_storage(stored))
    assert.equal(view, R.from_storage(view))
    assert.equal(before, json.encode(stored))
  end)

  it("lose the verbs that write while the definition is being deleted", function()
    local document = widgets()
    document.metadata.deletionTimestamp = "2026-01-01T00:00:00Z"
    local R = descriptor.of(status.name(document, {}, "t"))[1]
    assert.same({ "delete", "deletecollection", "get", "list", "watch" }, R.verb_list)
  end)
end)
