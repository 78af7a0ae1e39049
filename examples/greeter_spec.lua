-- moonwatch test examples/greeter_spec.lua
local kt = require "kube.test"

describe("the greeter", function()
  local t

  before_each(function() t = kt.new { script = "greeter.lua" } end)

  it("greets the namespaces that are there, and those that come", function()
    assert.equal(#t:list("v1/namespaces"), #t:settle())
    t:create { apiVersion = "v1", kind = "Namespace", metadata = { name = "shop" } }
    assert.same({ "apply v1/configmaps shop/greeting" }, kt.summary(t:settle()))
    assert.equal("shop", t:get("v1/configmaps", "shop/greeting").data.hello)
  end)

  it("does not let a greeting be taken away", function()
    t:settle()
    t:delete("v1/configmaps", "default/greeting")
    assert.same({ "apply v1/configmaps default/greeting" }, kt.summary(t:settle()))
  end)
end)
