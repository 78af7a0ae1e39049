-- Pods of the sandbox: what their watchers see when they go, and when an eviction may take them.
local rig = require "spec.support.sandbox_rig"

local PODS = "/api/v1/namespaces/default/pods"
local BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"

describe("a pod", function()
  local box
  before_each(function() box = rig.new { seed = 3 } end)

  local function make(name, spec)
    spec = spec or {}
    spec.containers = { { name = "main", image = "example.com/a:1" } }
    local code, document = box:post(PODS, { metadata = { name = name, labels = { app = "x" } }, spec = spec })
    assert.are.equal(201, code, document.message)
    return document
  end

  local function evict(name)
    return box:post(PODS .. "/" .. name .. "/eviction", { apiVersion = "policy/v1", kind = "Eviction",
      metadata = { name = name } })
  end

  local function set_status(path, status)
    local code, document = box:request("PATCH", path .. "/status", { status = status },
      { ["content-type"] = "application/merge-patch+json" })
    assert.are.equal(200, code, document.message)
  end

  it("that runs nowhere is marked and then gone, for its watchers", function()
    make "a"
    local events = box:watch(PODS .. "?watch=1&resourceVersion=" .. box.S.store.revision)
    local code, document = box:request("DELETE", PODS .. "/a")
    assert.are.equal(200, code)
    assert.are.equal(0, document.metadata.deletionGracePeriodSeconds)
    assert.are.equal("MODIFIED", events[1].type)
    assert.are.equal(0, events[1].object.metadata.deletionGracePeriodSeconds)
    assert.are.equal("DELETED", events[2].type)
    assert.are.equal(document.metadata.resourceVersion, events[2].object.metadata.resourceVersion)
    assert.are.equal(2, events[2].object.metadata.generation)
  end)

  it("is evicted as often as its budget allows, once somebody has counted", function()
    make("a", { nodeName = "n" })
    make("b", { nodeName = "n" })
    for _, name in ipairs { "a", "b" } do set_status(PODS .. "/" .. name, { phase = "Running" }) end
    assert.are.equal(201, (box:post(BUDGETS, { metadata = { name = "budget" },
      spec = { minAvailable = 1, selector = { matchLabels = { app = "x" } } } })))
    local code, refusal = evict "a"
    assert.are.equal(429, code)
    assert.are.equal("The disruption budget budget is still being processed by the server.",
      refusal.details.causes[1].message)
    set_status(BUDGETS .. "/budget", { observedGeneration = 1, disruptionsAllowed = 1, desiredHealthy = 1,
      currentHealthy = 2, expectedPods = 2 })
    assert.are.equal(201, (evict "a"))
    code, refusal = evict "b"
    assert.are.equal(429, code)
    assert.are.equal("The disruption budget budget needs 1 healthy pods and has 2 currently",
      refusal.details.causes[1].message)
    local _, budget = box:get(BUDGETS .. "/budget")
    assert.are.equal(0, budget.status.disruptionsAllowed)
    assert.is_truthy(budget.status.disruptedPods.a)
  end)
end)
