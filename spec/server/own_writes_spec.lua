-- What a controller reads back of a collection that it deleted, on an API server (see spec/support/cluster.lua).
local cleanup = require "spec.support.cleanup"
local cluster = require "spec.support.cluster"

local script = [[
  local kube = require "kube"
  local ns = "%s"
  local function state_of(object)
    if not object then return "gone" end
    return object.metadata.deletionTimestamp and "leaving" or "there"
  end
  local ran = false
  kube.controller {
    name = "deleter", resource = "v1/configmaps", namespaces = { ns }, predicate = { path = "data.go" },
    reads = { "v1/secrets" },
    reconcile = function(ctx)
      if ran then return end
      ran = true
      local function secret(name, finalizers)
        ctx.client:create { apiVersion = "v1", kind = "Secret",
          metadata = { name = name, namespace = ns, labels = { of = "spec" }, finalizers = finalizers } }
      end
      local function states()
        local out = {}
        for _, name in ipairs { "plain", "held", "other" } do
          out[#out + 1] = name .. " " .. state_of(ctx.cache:get("v1/secrets", ns .. "/" .. name))
        end
        return table.concat(out, ", ")
      end
      secret("plain")
      secret("held", { "example.com/a" })
      ctx.client:create { apiVersion = "v1", kind = "Secret", metadata = { name = "other", namespace = ns } }
      ctx.client:delete_collection("v1/secrets", { namespace = ns, label_selector = "of=spec" })
      local first = states()
      print("states", first)
      -- Until the cache has heard of all of it, and a while beyond.
      ctx.client:create { apiVersion = "v1", kind = "Secret", metadata = { name = "last", namespace = ns } }
      for _ = 1, 50 do
        if states() ~= first then print("changed", states()) end
        kube.sleep(0.01)
      end
      ctx.client:patch("v1/secrets", ns .. "/held", { metadata = { finalizers = kube.null } })
      print("released", states())
    end,
  }
]]

describe("a controller that deletes a collection", function()
  cluster.install()
  cleanup.install()

  it("sees what is gone as gone and what is held as leaving, at once and from then on", function()
    local ns = cluster.namespace()
    cluster.kubectl(("-n %s create configmap a --from-literal=go=1"):format(ns))
    local proc = cluster.start(script:format(ns))
    assert.are.equal("states\tplain gone, held leaving, other there", proc:wait_line("^states", 30))
    assert.are.equal("released\tplain gone, held gone, other there", proc:wait_line("^released", 30))
    assert.is_nil(proc.stdout:find("changed", 1, true), proc.stdout)
    cluster.stop(proc)
  end)
end)
