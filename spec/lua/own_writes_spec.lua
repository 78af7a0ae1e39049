-- What a controller reads back of its own writes where that is not simply what was answered, in the real
-- binary on a sandbox.
local play = require("spec.support.controller_rig").play

describe("an object that a controller deletes", function()
  it("is gone at once where the server answers with it, and is not missed", function()
    play([[
      kube.controller {
        name = "deleter", resource = "v1/configmaps", namespaces = PLAY, reads = { "v1/services" },
        reconcile = function(ctx, object)
          if not object or not kube.get(object, "data.go") then return end
          if ctx.name ~= "a" then return note(ctx.name) end
          ctx.client:create { apiVersion = "v1", kind = "Service", spec = { ports = { { port = 80 } } },
            metadata = { name = "s", namespace = "play" } }
          local answer = ctx.client:delete("v1/services", "play/s")
          note(answer.kind, ctx.cache:get("v1/services", "play/s"), #ctx.cache:list("v1/services"))
        end,
      }
    ]], [[
      create("a", { go = "1" })
      logged("Service nil 0")
      create("b", { go = "1" })
      logged("Service nil 0", "b")
    ]])
  end)

  it("is there while it has a finalizer, and gone when the last one is taken away", function()
    play([[
      kube.controller {
        name = "deleter", resource = "v1/configmaps", namespaces = PLAY, reads = { "v1/secrets" },
        predicate = { path = "data.go" },
        reconcile = function(ctx, object)
          if not object then return end
          ctx.client:create { apiVersion = "v1", kind = "Secret",
            metadata = { name = "s", namespace = "play", finalizers = { "example.com/a" } } }
          ctx.client:delete("v1/secrets", "play/s")
          note(ctx.cache:get("v1/secrets", "play/s").metadata.deletionTimestamp ~= nil)
          ctx.client:patch("v1/secrets", "play/s", { metadata = { finalizers = kube.null } })
          note(ctx.cache:get("v1/secrets", "play/s"))
        end,
      }
    ]], [[
      create("a", { go = "1" })
      logged("true", "nil")
    ]])
  end)

  it("is there while it has time left, and a namespace while it is emptied", function()
    play([[
      local ran = false
      kube.controller {
        name = "deleter", resource = "v1/configmaps", namespaces = PLAY, reads = { "v1/pods", "v1/namespaces" },
        predicate = { path = "data.go" },
        reconcile = function(ctx, object)
          if not object or ran then return end
          ran = true -- where the cache is ahead of the answers, what came and went unseen is looked at again
          local function is_leaving(resource, key)
            return kube.get(ctx.cache:get(resource, key), "metadata.deletionTimestamp") ~= nil
          end
          ctx.client:create { apiVersion = "v1", kind = "Pod", metadata = { name = "p", namespace = "play" },
            spec = { nodeName = "n", containers = { { name = "c", image = "i" } } } }
          ctx.client:delete("v1/pods", "play/p", { grace = 30 })
          note(is_leaving("v1/pods", "play/p"))
          ctx.client:delete("v1/pods", "play/p", { grace = 0 })
          note(ctx.cache:get("v1/pods", "play/p"))
          ctx.client:create { apiVersion = "v1", kind = "Namespace", metadata = { name = "short" } }
          ctx.client:delete("v1/namespaces", "short")
          note(not ctx.cache:get("v1/namespaces", "short") or is_leaving("v1/namespaces", "short"))
        end,
      }
    ]], [[
      create("a", { go = "1" })
      logged("true", "nil", "true")
    ]])
  end)
end)

describe("an object that a controller writes", function()
  it("is in its namespace's index at once", function()
    play([[
      kube.controller {
        name = "writer", resource = "v1/configmaps", namespaces = PLAY, reads = { "v1/secrets" },
        predicate = { path = "data.go" },
        reconcile = function(ctx, object)
          if not object then return end
          ctx.client:create { apiVersion = "v1", kind = "Secret", metadata = { name = "s", namespace = "play" } }
          note(#ctx.cache:by_index("v1/secrets", "namespace", "play"),
            #ctx.cache:by_index("v1/secrets", "namespace", "other"))
        end,
      }
    ]], [[
      create("a", { go = "1" })
      logged("1 0")
    ]])
  end)
end)

describe("a collection that a controller deletes", function()
  it("is gone at once, but for what others keep, and what was not chosen", function()
    play([[
      kube.controller {
        name = "deleter", resource = "v1/configmaps", namespaces = PLAY, reads = { "v1/secrets" },
        predicate = { path = "data.go" },
        reconcile = function(ctx, object)
          if not object then return end
          local function secret(name, chosen, finalizers)
            ctx.client:create { apiVersion = "v1", kind = "Secret", metadata = { name = name, namespace = "play",
              labels = { chosen = chosen }, finalizers = finalizers } }
          end
          secret("a", "yes")
          secret("b", "yes", { "example.com/a" })
          secret("c", "no")
          ctx.client:delete_collection("v1/secrets", { namespace = "play", label_selector = "chosen=yes" })
          local function leaving(s) return kube.get(s, "metadata.deletionTimestamp") and "leaves" or "stays" end
          local function found()
            local names = {}
            for _, s in ipairs(ctx.cache:list "v1/secrets") do
              names[#names + 1] = s.kind .. " " .. s.metadata.name .. " " .. leaving(s)
            end
            table.sort(names)
            return table.concat(names, ", ")
          end
          note(ctx.cache:get("v1/secrets", "play/a"), leaving(ctx.cache:get("v1/secrets", "play/b")))
          note(found())
          -- The cache comes to say the same by itself, and not for a moment anything else.
          local last = found()
          eventually(function()
            assert(found() == last, found())
            return kube.get(ctx.cache:get("v1/secrets", "play/b"), "metadata.deletionGracePeriodSeconds")
          end)
          ctx.client:patch("v1/secrets", "play/b", { metadata = { finalizers = kube.null } })
          note(found())
        end,
      }
    ]], [[
      create("a", { go = "1" })
      logged("nil leaves", "Secret b leaves, Secret c stays", "Secret c stays")
    ]])
  end)

  it("is shown as leaving where its objects have time to end, or what they own comes first", function()
    play([[
      kube.controller {
        name = "deleter", resource = "v1/configmaps", namespaces = PLAY, reads = { "v1/pods", "v1/secrets" },
        predicate = { path = "data.go" },
        reconcile = function(ctx, object)
          if not object then return end
          -- What goes by itself may be gone by now.
          local function leaving(resource, key)
            local found = ctx.cache:get(resource, key)
            return not found or found.metadata.deletionTimestamp ~= nil
          end
          ctx.client:create { apiVersion = "v1", kind = "Pod", metadata = { name = "p", namespace = "play" },
            spec = { nodeName = "n", containers = { { name = "c", image = "i" } } } }
          ctx.client:create { apiVersion = "v1", kind = "Secret", metadata = { name = "s", namespace = "play" } }
          ctx.client:delete_collection("v1/pods", { namespace = "play", all = true })
          ctx.client:delete_collection("v1/secrets", { namespace = "play", all = true, propagation = "Foreground" })
          note(leaving("v1/pods", "play/p"), leaving("v1/secrets", "play/s"))
          ctx.client:delete_collection("v1/pods", { namespace = "play", all = true, grace = 0 })
          note(ctx.cache:get("v1/pods", "play/p"))
        end,
      }
    ]], [[
      create("a", { go = "1" })
      logged("true true", "nil")
    ]])
  end)

  it("is as it was after a dry run", function()
    play([[
      kube.controller {
        name = "deleter", resource = "v1/configmaps", namespaces = PLAY, reads = { "v1/secrets" },
        predicate = { path = "data.go" },
        reconcile = function(ctx, object)
          if not object then return end
          ctx.client:create { apiVersion = "v1", kind = "Secret", metadata = { name = "s", namespace = "play" } }
          ctx.client:delete_collection("v1/secrets", { namespace = "play", all = true, dry_run = true })
          note(ctx.cache:get("v1/secrets", "play/s").metadata.name, #ctx.cache:list "v1/secrets")
        end,
      }
    ]], [[
      create("a", { go = "1" })
      logged("s 1")
    ]])
  end)
end)

describe("what a controller writes where it does not look", function()
  it("is not missed when its selector leaves it out", function()
    play([[
      kube.controller {
        name = "copier", resource = "v1/configmaps", namespaces = PLAY, label_selector = "role=template",
        reconcile = function(ctx)
          if ctx.name == "a" then
            note(table.concat(ctx.reasons, ", "))
            ctx.client:apply { apiVersion = "v1", kind = "ConfigMap",
              metadata = { name = "copy", namespace = "play" } }
          elseif ctx.cache:get("v1/configmaps", "play/copy") then
            return { requeue_after = 0.01 }
          else
            note(ctx.name)
          end
        end,
      }
      local TEMPLATE = { labels = { role = "template" } }
    ]], [[
      create("a", nil, TEMPLATE)
      logged("add v1/configmaps")
      create("b", nil, TEMPLATE)  -- by which the cache is beyond the copy
      logged("add v1/configmaps", "b")
      create("c", nil, TEMPLATE)  -- behind all that is queued by now
      logged("add v1/configmaps", "b", "c")
    ]])
  end)

  it("is in no cache of a script that was told of another namespace", function()
    play([[
      kube.controller {
        name = "maker", resource = "v1/configmaps", reads = { "v1/secrets" }, predicate = { path = "data.go" },
        reconcile = function(ctx, object)
          if not object then return end
          ctx.client:create { apiVersion = "v1", kind = "Namespace", metadata = { name = "other" } }
          for _, namespace in ipairs { "play", "other" } do
            ctx.client:apply { apiVersion = "v1", kind = "Secret", metadata = { name = "s", namespace = namespace } }
          end
          for _, found in ipairs(ctx.cache:list "v1/secrets") do note(kube.key(found)) end
          local _, problem = pcall(ctx.cache.get, ctx.cache, "v1/secrets", "other/s")
          note(tostring(problem):match("does not watch the namespace 'other'"))
        end,
      }
    ]], [[
      create("a", { go = "1" })
      logged("play/s", "does not watch the namespace 'other'")
    ]], { args = { "-n", "play" } })
  end)
end)
