-- moonwatch test examples/website
local kt = require "kube.test"

local WEBSITES, DEPLOYMENTS, CONFIGMAPS = "example.com/v1/websites", "apps/v1/deployments", "v1/configmaps"

describe("the website controller", function()
  local t

  before_each(function()
    t = kt.new { script = "website.lua", manifests = { "crd.yaml", "site.yaml" } }
  end)

  it("makes a Deployment, a Service and an entry of a Website, and says how far it is", function()
    assert.same({
      "patch example.com/v1/websites default/shop", -- the finalizer
      "apply v1/namespaces website-directory",
      "apply apps/v1/deployments default/shop",
      "apply v1/services default/shop",
      "apply v1/configmaps website-directory/default.shop",
      "patch example.com/v1/websites/status default/shop",
    }, kt.summary(t:settle()))
    assert.equal("shop.example.com", t:get(CONFIGMAPS, "website-directory/default.shop").data.host)
    assert.is_false(kt.condition(t:get(WEBSITES, "default/shop"), "Ready"))
  end)

  it("is ready when its replicas are", function()
    t:settle()
    t:set_status(DEPLOYMENTS, "default/shop", { replicas = 2, readyReplicas = 2 })
    assert.same({ "patch example.com/v1/websites/status default/shop" }, kt.summary(t:settle()))
    local ready, condition = kt.condition(t:get(WEBSITES, "default/shop"), "Ready")
    assert.is_true(ready)
    assert.equal("2 of 2 replicas are ready", condition.message)
  end)

  it("puts back what somebody else changed", function()
    t:settle()
    t:patch(DEPLOYMENTS, "default/shop", { spec = { replicas = 7 } })
    assert.same({ "apply apps/v1/deployments default/shop" }, kt.summary(t:settle()))
    assert.equal(2, t:get(DEPLOYMENTS, "default/shop").spec.replicas)
    t:delete(CONFIGMAPS, "website-directory/default.shop")
    assert.same({ "apply v1/configmaps website-directory/default.shop" }, kt.summary(t:settle()))
  end)

  it("writes nothing when there is nothing to do", function()
    t:settle()
    t:cut_watches()
    t:patch(WEBSITES, "default/shop", { metadata = { labels = { seen = "yes" } } })
    assert.same({}, kt.summary(t:settle()))
  end)

  it("takes the site out of the directory when it goes", function()
    t:settle()
    t:delete(WEBSITES, "default/shop")
    t:settle()
    assert.is_nil(t:get(WEBSITES, "default/shop"))
    assert.is_nil(t:get(DEPLOYMENTS, "default/shop"))
    assert.is_nil(t:get(CONFIGMAPS, "website-directory/default.shop"))
  end)

  it("tries again when the server refuses", function()
    t:settle()
    t:fail { verb = "patch", resource = DEPLOYMENTS, status = 500, message = "not now" }
    t:patch(WEBSITES, "default/shop", { spec = { image = "nginx:1.28" } })
    t:eventually(function()
      return t:get(DEPLOYMENTS, "default/shop").spec.template.spec.containers[1].image == "nginx:1.28"
    end)
    assert.same({
      "apply apps/v1/deployments default/shop (500)",
      "apply apps/v1/deployments default/shop",
      "patch example.com/v1/websites/status default/shop", -- that it has seen the new generation
    }, kt.summary(t:settle()))
  end)
end)
