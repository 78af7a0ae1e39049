-- The registry of kinds and their schemas: what the generated data says, and what custom resources add.
local host = require "spec.support.sandbox_env"
local json = require "kube.sandbox.json"
local kinds = require "kube.sandbox.kinds"
local schema = require "kube.sandbox.schema"

local function widget(version, more)
  local R = {
    group = "ex.io",
    version = version,
    plural = "widgets",
    kind = "Widget",
    namespaced = true,
    verb_list = { "get", "list" },
    subresources = { { name = "status", kind = "Widget", verb_list = { "get" } } },
  }
  for key, value in pairs(more or {}) do R[key] = value end
  return kinds.complete(R)
end

describe("the registry of kinds", function()
  local registry
  before_each(function() registry = kinds.new() end)

  it("finds a built-in resource by its plural and by its kind", function()
    local R = registry:find("apps", "v1", "deployments")
    assert.equal("Deployment", R.kind)
    assert.equal("DeploymentList", R.list_kind)
    assert.equal("apps/v1", R.api_version)
    assert.equal("deployments.apps", R.resource_name)
    assert.equal("Deployment.apps", R.kind_name)
    assert.equal("apps/deployments", R.storage)
    assert.is_true(R.namespaced)
    assert.is_true(R.verbs.deletecollection)
    assert.equal("Scale", R.subresources.scale.kind)
    assert.equal("autoscaling", R.subresources.scale.group)
    assert.equal(R, registry:by_kind("apps/v1", "Deployment"))
    assert.equal("configmaps", registry:find("", "v1", "configmaps").resource_name)
    assert.is_nil(registry:find("apps", "v2", "deployments"))
    assert.is_nil(registry:by_kind("v1", "Deployment"))
  end)

  it("keeps both kinds of events in one storage", function()
    local old, new = registry:find("", "v1", "events"), registry:find("events.k8s.io", "v1", "events")
    assert.equal(old.storage, new.storage)
    assert.equal(old.hash, new.hash)
    assert.equal("involvedObject.name", old.rules.fields["involvedObject.name"])
    assert.equal("involvedObject.name", new.rules.fields["regarding.name"])
    assert.is_nil(old.rules.default_policy)
  end)

  it("stores both versions of autoscalers in one place", function()
    assert.same({ "v2", "v1" }, registry:versions("autoscaling"))
    assert.equal(registry:find("autoscaling", "v2", "horizontalpodautoscalers").storage,
      registry:find("autoscaling", "v1", "horizontalpodautoscalers").storage)
    assert.is_table(schema.of_kind("autoscaling/v1", "Scale").properties)
  end)

  it("knows a schema for every resource and columns for every list", function()
    for _, R in ipairs(registry:all()) do
      assert.is_table(schema.of(R), R.resource_name)
      if R.verbs.list then
        assert.is_string(kinds.columns(R)[1].name, R.resource_name)
        assert.is_string(kinds.columns(R)[1].description)
      end
    end
  end)

  it("computes the hash that the server gives a kind that is stored in its own version", function()
    local R = registry:find("apps", "v1", "deployments")
    assert.equal(R.hash, kinds.storage_hash("apps", "v1", "Deployment"))
    assert.equal("qFsyl6wFWjQ=", kinds.storage_hash("", "v1", "ConfigMap"))
  end)

  it("has rules for every kind, and those of custom resources", function()
    local function rules(group, plural) return registry:find(group, "v1", plural).rules end
    assert.is_false(rules("", "configmaps").generation)
    assert.is_true(rules("", "configmaps").unconditional_update)
    assert.is_true(rules("apps", "deployments").generation)
    assert.is_true(rules("apps", "deployments").status)
    assert.is_false(rules("", "configmaps").status)
    assert.is_true(rules("coordination.k8s.io", "leases").create_on_update)
    assert.is_false(rules("coordination.k8s.io", "leases").unconditional_update)
    assert.is_true(rules("", "pods").returns_deleted)
    assert.is_true(rules("", "pods").graceful)
    assert.equal("label", rules("", "namespaces").name)
    assert.equal("Orphan", rules("batch", "jobs").default_policy)
    assert.equal("spec.nodeName", rules("", "pods").fields["spec.host"])
    local custom = widget("v1", { selectable_fields = { "spec.color" } }).rules
    assert.is_true(custom.generation)
    assert.is_false(custom.unconditional_update)
    assert.equal("spec.color", custom.fields["spec.color"])
  end)

  it("lists custom groups after the others and their versions by age", function()
    local builtin = #registry:groups()
    for _, version in ipairs { "v1beta1", "v1", "foo", "v2", "v10alpha1", "v11beta2" } do
      registry:add(widget(version))
    end
    registry:add(kinds.complete {
      group = "aa.io", version = "v1", plural = "things", kind = "Thing", verb_list = {},
    })
    local groups = registry:groups()
    assert.same({ "aa.io", "ex.io" }, { groups[builtin + 1], groups[builtin + 2] })
    assert.same({ "v2", "v1", "v11beta2", "v1beta1", "v10alpha1", "foo" }, registry:versions("ex.io"))
  end)

  it("forgets a version and a group with their last resource", function()
    local before = registry.generation
    registry:add(widget("v1"))
    registry:add(widget("v1beta1"))
    assert.is_true(registry:remove(widget("v1beta1")))
    assert.same({ "v1" }, registry:versions("ex.io"))
    assert.is_true(registry:remove(widget("v1")))
    assert.is_false(registry:remove(widget("v1")))
    assert.same({}, registry:versions("ex.io"))
    assert.is_nil(registry:by_kind("ex.io/v1", "Widget"))
    assert.is_true(registry.generation > before)
  end)

  it("replaces a resource that is added again", function()
    registry:add(widget("v1"))
    local again = widget("v1", { short_names = { "w" } })
    registry:add(again)
    assert.equal(again, registry:find("ex.io", "v1", "widgets"))
    assert.equal(1, #registry:resources("ex.io", "v1"))
  end)

  it("starts within what a start of the sandbox may cost", function()
    collectgarbage()
    local before = collectgarbage("count")
    local fresh = kinds.new()
    collectgarbage()
    assert.is_true(collectgarbage("count") - before < 2048)
    assert.is_table(fresh)
  end)
end)

describe("a schema", function()
  local registry = kinds.new()

  it("is read through references, and keeps what stands beside them", function()
    local spec = schema.field(schema.of(registry:find("apps", "v1", "deployments")), "spec")
    assert.same({ "selector", "template" }, { unpack(spec.required) })
    local strategy = schema.field(spec, "strategy")
    assert.equal("retainKeys", strategy["x-kubernetes-patch-strategy"])
    assert.equal("object", strategy.type)
    local containers = schema.field(schema.field(schema.field(spec, "template"), "spec"), "containers")
    assert.equal("name", containers["x-kubernetes-patch-merge-key"])
    local container = schema.items(containers)
    assert.equal("string", schema.field(container, "image").type)
    assert.is_nil(schema.field(container, "nonsense"))
    assert.equal("int-or-string", schema.field(schema.field(strategy, "rollingUpdate"), "maxSurge").format)
  end)

  it("of a map gives the schema of its values for any field", function()
    local data = schema.field(schema.of(registry:find("", "v1", "configmaps")), "data")
    assert.equal("string", schema.field(data, "anything").type)
  end)

  it("of a custom resource has the fields that every object has", function()
    local node = json.decode [[{"type":"object","properties":{"spec":{"type":"object"}}}]]
    local R = widget("v1", { schema = node })
    local of = schema.of(R)
    assert.equal("object", schema.field(of, "spec").type)
    assert.equal("set", schema.field(schema.field(of, "metadata"), "finalizers")["x-kubernetes-list-type"])
    assert.equal("string", schema.field(of, "apiVersion").type)
    assert.is_nil(node.properties.metadata)
    assert.equal(of, schema.of(R))
  end)

  it("of a custom resource without one keeps everything", function()
    assert.is_true(schema.of(widget("v1"))["x-kubernetes-preserve-unknown-fields"])
  end)

  it("has no prose", function()
    assert.is_nil(host.data("schema/io.k8s.api.core.v1.json"):find('"description":"', 1, true))
  end)
end)
