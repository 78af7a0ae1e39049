-- moonwatch test examples/reloader
local kt = require "kube.test"

local DEPLOYMENTS, CONFIGMAPS = "apps/v1/deployments", "v1/configmaps"

local deployment = [[
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  annotations: {example.com/reload: "settings, flags"}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "nginx:1.27"}]}
]]

local function config(name, value)
  return { apiVersion = "v1", kind = "ConfigMap", metadata = { name = name }, data = { value = value } }
end

describe("the reloader", function()
  local t

  local function hash()
    local annotations = t:get(DEPLOYMENTS, "default/web").spec.template.metadata.annotations
    return annotations and annotations["example.com/config-hash"]
  end

  before_each(function()
    t = kt.new { script = "reloader.lua", manifests = { config("settings", "1"), config("flags", "1") } }
    t:apply(deployment)
  end)

  it("puts a hash of the configuration into the pod template", function()
    assert.same({ "patch apps/v1/deployments default/web" }, kt.summary(t:settle()))
    assert.matches("^%x+$", hash())
  end)

  it("changes it when the configuration changes, and only then", function()
    t:settle()
    local before = hash()
    t:apply(config("flags", "2"))
    assert.same({ "patch apps/v1/deployments default/web" }, kt.summary(t:settle()))
    assert.are_not.equal(before, hash())
    t:apply(config("flags", "1"))
    t:settle()
    assert.equal(before, hash())
    t:apply(config("unrelated", "1"))
    t:patch(CONFIGMAPS, "default/flags", { metadata = { labels = { seen = "yes" } } })
    assert.same({}, kt.summary(t:settle()))
  end)

  it("waits for a ConfigMap that is missing", function()
    t:settle()
    t:delete(CONFIGMAPS, "default/flags")
    assert.same({}, kt.summary(t:settle()))
    t:create(config("flags", "3"))
    assert.same({ "patch apps/v1/deployments default/web" }, kt.summary(t:settle()))
  end)
end)
