-- What becomes of what the functions of a controller return, in the real binary on a sandbox.
local play = require("spec.support.controller_rig").play

describe("what reconcile returns", function()
  for _, result in ipairs { "{ requeue_after = 0 / 0 }", "{ requeue_after = math.huge }",
    "{ requeue_after = 1, priority = 0.5 }", "{ priority = 1001 }" } do
    it(("is said to be wrong when it is %s, and its worker goes on"):format(result), function()
      local _, err = play(([[
        kube.controller {
          name = "wrong", resource = "v1/configmaps", namespaces = PLAY, predicate = { path = "data.go" },
          reconcile = function(ctx)
            note(ctx.name)
            if ctx.name == "a" then return %s end
          end,
        }
      ]]):format(result), [[
        create("a", { go = "1" })
        logged("a")
        create("b", { go = "1" })
        logged("a", "b")
      ]])
      assert.is_truthy(err:find("what reconcile returned: %a+_?%a* must be a "), err)
    end)
  end
end)

describe("what finalize returns", function()
  for _, result in ipairs { "nil", "{}", "{ requeue_after = 0 }" } do
    it(("lets the object go when it is %s"):format(result), function()
      play(([[
        kube.controller {
          name = "tidy", resource = "v1/configmaps", namespaces = PLAY, finalizer = "example.com/tidy",
          predicate = { path = "data.go" },
          reconcile = function(_, object) note(object and "there" or "gone") end,
          finalize = function() return %s end,
        }
      ]]):format(result), [[
        create("a", { go = "1" })
        eventually(function() return log[#log] == "there" end)
        delete "a"
        eventually(function() return log[#log] == "gone" end)
      ]])
    end)
  end

  it("keeps it until it comes back when it says when", function()
    play([[
      local times = 0
      kube.controller {
        name = "tidy", resource = "v1/configmaps", namespaces = PLAY, finalizer = "example.com/tidy",
        predicate = { path = "data.go" },
        reconcile = function() end,
        finalize = function()
          times = times + 1
          note(get("a") and "there" or "gone")
          if times < 3 then return { requeue_after = 0.01 } end
        end,
      }
    ]], [[
      create("a", { go = "1" })
      eventually(function() return get("a").metadata.finalizers end)
      delete "a"
      logged("there", "there", "there")
      eventually(function() return not get("a") end)
    ]])
  end)
end)

describe("a key that a map function returns", function()
  it("is said to be wrong when it is empty, and not queued", function()
    local _, err = play([[
      kube.controller {
        name = "empty", resource = "v1/configmaps", namespaces = PLAY, predicate = { path = "data.go" },
        watches = { { resource = "v1/secrets", map = function() return "" end } },
        reconcile = function(ctx) note(ctx.key) end,
      }
    ]], [[
      kube.client:create { apiVersion = "v1", kind = "Secret", metadata = { name = "s", namespace = "play" } }
      create("b", { go = "1" })
      logged("play/b")
    ]])
    assert.is_truthy(err:find("map returned an empty key", 1, true), err)
  end)
end)
