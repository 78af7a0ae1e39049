-- kube.controller, in the real binary on a sandbox.
local rig = require "spec.support.controller_rig"
local play = rig.play

describe("a controller", function()
  it("reconciles what is there, what comes, what changes and what goes", function()
    play([[
      kube.controller {
        name = "echo", resource = "v1/configmaps", namespaces = PLAY,
        reconcile = function(ctx, object)
          if ctx.name ~= "kube-root-ca.crt" then note(ctx.key, object and object.data.v or "gone") end
        end,
      }
    ]], [[
      create("a", { v = "1" })
      logged("play/a 1")
      update("a", { v = "2" })
      logged("play/a 1", "play/a 2")
      delete("a")
      logged("play/a 1", "play/a 2", "play/a gone")
    ]])
  end)

  it("never has a key in two workers, and runs it once more when it changed meanwhile", function()
    play([[
      local running, most, keys = {}, 0, 0
      kube.controller {
        name = "slow", resource = "v1/configmaps", namespaces = PLAY, workers = 8,
        reconcile = function(ctx, object)
          if not ctx.name:find("^k") then return end
          assert(not running[ctx.key], "two workers")
          running[ctx.key] = true
          local busy = 0
          for _ in pairs(running) do busy = busy + 1 end
          most = math.max(most, busy)
          kube.sleep(0.02)
          running[ctx.key] = nil
          if object then note(ctx.name, object.data.v) end
        end,
      }
      local function last(name)
        for i = #log, 1, -1 do
          if log[i]:find("^" .. name .. " ") then return log[i] end
        end
      end
    ]], [[
      for i = 1, 4 do create("k" .. i, { v = "0" }) end
      for v = 1, 20 do
        for i = 1, 4 do update("k" .. i, { v = tostring(v) }) end
      end
      for i = 1, 4 do eventually(function() return last("k" .. i) == ("k%d 20"):format(i) end) end
      assert(most > 1, "never two keys at once")
      assert(#log < 84, "nothing was merged: " .. #log)
    ]])
  end)

  it("tries again after an error, later each time, and forgets that when it went well", function()
    play([[
      local failures, times = 3, {}
      kube.controller {
        name = "failing", resource = "v1/configmaps", namespaces = PLAY, retry = { base = 0.02 },
        reconcile = function(ctx)
          if ctx.name ~= "a" then return end
          times[#times + 1] = require("kube._core").task.now()
          note(ctx.attempt)
          if failures > 0 then
            failures = failures - 1
            error("not yet")
          end
        end,
      }
    ]], [[
      create "a"
      logged(1, 2, 3, 4)
      for i, least in ipairs { 0.02, 0.04, 0.08 } do
        assert(times[i + 1] - times[i] >= least - 0.002, ("%d: %g"):format(i, times[i + 1] - times[i]))
      end
      update("a", { v = "2" })
      logged(1, 2, 3, 4, 1)
    ]])
  end)

  it("does not try again after a terminal error, until something changes", function()
    local _, err = play([[
      kube.controller {
        name = "terminal", resource = "v1/configmaps", namespaces = PLAY, retry = { base = 0.001 },
        reconcile = function(ctx)
          if ctx.name ~= "a" then return end
          note(ctx.attempt)
          error(kube.terminal("the spec is nonsense"))
        end,
      }
    ]], [[
      create "a"
      logged(1)
      kube.sleep(0.2)
      logged(1)
      update("a", { v = "2" })
      logged(1, 1)
    ]])
    assert.is_truthy(err:find("terminal error: the spec is nonsense", 1, true), err)
  end)

  it("gives up after the attempts that it was given", function()
    local _, err = play([[
      kube.controller {
        name = "limited", resource = "v1/configmaps", namespaces = PLAY, retry = { base = 0.001, attempts = 3 },
        reconcile = function(ctx)
          if ctx.name ~= "a" then return end
          note(ctx.attempt)
          error("never")
        end,
      }
    ]], [[
      create "a"
      logged(1, 2, 3)
      kube.sleep(0.2)
      logged(1, 2, 3)
    ]])
    assert.is_truthy(err:find("gave up after 3 attempts", 1, true), err)
  end)

  it("comes back after requeue_after, which is no failure", function()
    play([[
      local runs, times = 0, {}
      kube.controller {
        name = "patient", resource = "v1/configmaps", namespaces = PLAY,
        reconcile = function(ctx)
          if ctx.name ~= "a" then return end
          runs = runs + 1
          times[runs] = require("kube._core").task.now()
          note(ctx.attempt, ctx.reasons[1])
          if runs < 3 then return { requeue_after = 0.1 } end
          return { requeue_after = -1 }
        end,
      }
    ]], [[
      create "a"
      logged("1 add v1/configmaps", "1 requeue_after", "1 requeue_after")
      assert(times[2] - times[1] >= 0.09 and times[3] - times[2] >= 0.09)
      kube.sleep(0.2)
      same(3, runs)
    ]])
  end)

  it("starts only when every source has seen its initial list", function()
    play([[
      local count = 0
      kube.background("before", function()
        kube.client:create { apiVersion = "v1", kind = "Namespace", metadata = { name = "early" } }
        for i = 1, 30 do
          kube.client:create { apiVersion = "v1", kind = "Secret", metadata = { name = "s" .. i, namespace = "early" } }
        end
        kube.controller {
          name = "late", resource = "v1/namespaces", reads = { "v1/secrets" },
          watches = { { resource = "v1/secrets", map = function() count = count + 1 return nil end } },
          reconcile = function(ctx)
            if ctx.name == "early" then note(count, #ctx.cache:list("v1/secrets", { namespace = "early" })) end
          end,
        }
      end)
    ]], [[
      logged("30 30")
    ]])
  end)

  it("queues the owner of what it owns, and both owners when it changes hands", function()
    play([[
      local controller = kube.controller {
        name = "owner", resource = "v1/configmaps", namespaces = PLAY,
        owns = { "v1/secrets" },
        predicate = function(object) return object.data ~= nil end,
        reconcile = function(ctx, object)
          if ctx.name == "a" or ctx.name == "b" then note(ctx.name, unpack(ctx.reasons)) end
        end,
      }
      local function secret(owner)
        return { apiVersion = "v1", kind = "Secret", metadata = { name = "s", namespace = "play", ownerReferences = {
          { apiVersion = "v1", kind = "ConfigMap", name = owner.metadata.name, uid = owner.metadata.uid,
            controller = true } } } }
      end
    ]], [[
      eventually(function() return controller:has_synced() end)
      local a, b = create "a", create "b"
      kube.client:create(secret(a))
      logged("a add v1/secrets")
      kube.client:patch("v1/secrets", "play/s", { metadata = secret(b).metadata }, { type = "merge" })
      eventually(function() return #log == 3 end)
      table.sort(log)
      logged("a add v1/secrets", "a update v1/secrets", "b update v1/secrets")
      kube.client:delete("v1/secrets", "play/s")
      eventually(function() return #log == 4 end)
      same("b delete v1/secrets", log[4])
    ]])
  end)

  it("asks its predicates before it queues", function()
    play([[
      local p = kube.predicate
      kube.controller {
        name = "picky", resource = "v1/configmaps", namespaces = PLAY,
        predicate = p.all(p.any(p.labels_changed, p.annotations_changed), p.negate { label = "skip" },
          function(object, old, event) return event ~= "delete" end),
        reconcile = function(ctx, object)
          if ctx.name ~= "kube-root-ca.crt" then note(ctx.name, kube.get(object, "metadata.labels.l")) end
        end,
      }
      local function label(name, value)
        kube.client:patch("v1/configmaps", "play/" .. name, { metadata = { labels = value } }, { type = "merge" })
      end
    ]], [[
      create "a"
      logged("a nil")
      update("a", { v = "2" })
      label("a", { l = "1" })
      logged("a nil", "a 1")
      label("a", { skip = "yes" })
      delete "a"
      create "z"
      logged("a nil", "a 1", "z nil")
    ]])
  end)

  it("takes an event whose predicate failed for one that matters, and says so", function()
    local _, err = play([[
      kube.controller {
        name = "careless", resource = "v1/configmaps", namespaces = PLAY,
        predicate = function(object) return object.data.missing.more end,
        reconcile = function(ctx) if ctx.name == "a" then note(ctx.name) end end,
      }
    ]], [[
      create("a", { v = "1" })
      logged("a")
    ]])
    assert.is_truthy(err:find("a predicate failed, and the event counts all the same: ", 1, true), err)
    assert.is_truthy(err:find("script.lua:%d+: attempt to index field 'missing'"), err)
  end)

  it("puts its finalizer on, cleans up once the object is deleted, and lets it go then", function()
    play([[
      local undone = 1
      kube.controller {
        name = "tidy", resource = "v1/configmaps", namespaces = PLAY, retry = { base = 0.01 },
        finalizer = "example.com/tidy", predicate = { path = "data.tidy" },
        reconcile = function(ctx, object) note("reconcile", object and object.metadata.finalizers[1] or "gone") end,
        finalize = function(ctx, object)
          note("finalize", object.metadata.name)
          if undone > 0 then
            undone = undone - 1
            error("not yet")
          end
        end,
      }
    ]], [[
      create("a", { tidy = "1" })
      eventually(function() return #log > 0 end)
      eventually(function() return get("a").metadata.finalizers[1] == "example.com/tidy" end)
      log[1] = nil
      for i = 2, #log do log[i] = nil end
      delete "a"
      eventually(function() return get("a") == nil end)
      eventually(function() return log[#log] == "reconcile gone" end)
      local finalized = 0
      for _, line in ipairs(log) do if line == "finalize a" then finalized = finalized + 1 end end
      same(2, finalized)
    ]])
  end)

  it("sees its own writes at once in its cache, and never what was before them", function()
    play([[
      local wrong = 0
      kube.controller {
        name = "writer", resource = "v1/configmaps", namespaces = PLAY, reads = { "v1/secrets" },
        predicate = { path = "data.go" },
        reconcile = function(ctx, object)
          if not object then return end
          local key = "play/" .. ctx.name
          for i = 1, 10 do
            local made = ctx.client:apply { apiVersion = "v1", kind = "Secret", stringData = { n = tostring(i) },
              metadata = { name = ctx.name, namespace = "play", labels = { n = "v" .. i } } }
            local cached = ctx.cache:get("v1/secrets", key)
            if not cached or cached.metadata.labels.n ~= "v" .. i then wrong = wrong + 1 end
            local listed = ctx.cache:list("v1/secrets", { namespace = "play", selector = "n=v" .. i })
            if #listed < 1 then wrong = wrong + 1 end
            kube.sleep(0)
            if ctx.cache:get("v1/secrets", key).metadata.labels.n ~= "v" .. i then wrong = wrong + 1 end
            assert(made.metadata.uid)
          end
          ctx.client:delete("v1/secrets", key)
          for _ = 1, 20 do
            if ctx.cache:get("v1/secrets", key) then wrong = wrong + 1 end
            for _, other in ipairs(ctx.cache:list("v1/secrets", { namespace = "play" })) do
              if kube.key(other) == key then wrong = wrong + 1 end
            end
            kube.sleep(0.001)
          end
          note(ctx.name, wrong)
        end,
      }
    ]], [[
      for _, name in ipairs { "a", "b", "c" } do
        create(name, { go = "1" })
        eventually(function() return log[#log] == name .. " 0" end)
      end
    ]])
  end)

  it("makes again what it made and somebody removed before its cache had seen it", function()
    play([[
      kube.controller {
        name = "maker", resource = "v1/configmaps", namespaces = PLAY, predicate = { path = "data.go" },
        owns = { "v1/secrets" },
        reconcile = function(ctx, object)
          if not object then return end
          ctx.client:apply(kube.set_owner({ apiVersion = "v1", kind = "Secret",
            metadata = { name = ctx.name, namespace = "play" } }, object))
          note(table.concat(ctx.reasons, ", "))
        end,
      }
      local function secret() return (kube.client:try_get("v1/secrets", "play/a")) end
    ]], [[
      create("other", { go = "1" })
      eventually(function() return #log > 0 end)
      kube.sleep(0.2)
      for i = #log, 1, -1 do log[i] = nil end
      sandbox.fault { verb = "watch", resource = "secrets", count = 0, status = 503 }
      sandbox.cut_watches()
      create("a", { go = "1" })
      eventually(secret)
      kube.client:delete("v1/secrets", "play/a")
      sandbox.expire()
      sandbox.clear_faults()
      eventually(secret, "it was not made again")
      assert(text(log):find("vanished v1/secrets", 1, true), text(log))
    ]])
  end)

  it("stops a run at its timeout, and tries again", function()
    local _, err = play([[
      kube.controller {
        name = "stuck", resource = "v1/configmaps", namespaces = PLAY, timeout = 0.1, retry = { base = 0.01 },
        reconcile = function(ctx)
          if ctx.name ~= "a" then return end
          note(ctx.attempt)
          assert(ctx:remaining() <= 0.1)
          if ctx.attempt == 1 then pcall(kube.sleep, 60) kube.sleep(60) end
        end,
      }
    ]], [[
      create "a"
      logged(1, 2)
    ]])
    assert.is_truthy(err:find("timeout", 1, true), err)
  end)

  it("keeps the last runs of each key", function()
    play([[
      local controller = kube.controller {
        name = "remembering", resource = "v1/configmaps", namespaces = PLAY, retry = { base = 0.01 },
        predicate = { path = "data.v" },
        reconcile = function(ctx, object)
          note(ctx.attempt)
          ctx.cache:get("v1/configmaps", ctx.key)
          if ctx.attempt == 1 then error("at first") end
          ctx.client:apply { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "out", namespace = "play" } }
          return { requeue_after = 60 }
        end,
      }
    ]], [[
      create("a", { v = "1" })
      logged(1, 2)
      local runs = controller:history("play/a")
      eventually(function() runs = controller:history("play/a") return #runs == 2 end)
      same({ "error", "requeue_after" }, { runs[1].result, runs[2].result })
      same({ "add v1/configmaps", "retry" }, { runs[1].reasons[1], runs[2].reasons[1] })
      same({ 1, 0, 1, "apply v1/configmaps play/out", 60 },
        { runs[1].reads, #runs[1].writes, runs[2].reads, runs[2].writes[1], runs[2].next })
      assert(runs[1].error:find("at first") and runs[1].duration >= 0 and runs[1].next > 0)
      same(0, #controller:history("play/none"))
    ]])
  end)

  it("waits for a resource that comes later, and goes on when it went and returned", function()
    local _, err = play([[
      local function crd(name)
        return { apiVersion = "apiextensions.k8s.io/v1", kind = "CustomResourceDefinition",
          metadata = { name = "webs.example.com" },
          spec = { group = "example.com", scope = "Namespaced", names = { plural = "webs", kind = "Web" },
            versions = { { name = "v1", served = true, storage = true, schema = { openAPIV3Schema = {
              type = "object", ["x-kubernetes-preserve-unknown-fields"] = true } } } } } }
      end
      local function web(name)
        return { apiVersion = "example.com/v1", kind = "Web", metadata = { name = name, namespace = "play" } }
      end
      kube.controller {
        name = "webs", resource = "example.com/v1/webs", owns = { "v1/secrets" },
        reconcile = function(ctx, object) note(ctx.key, object ~= nil) end,
      }
      local function made(name)
        eventually(function() return (kube.client:try_create(web(name))) end)
      end
    ]], [[
      kube.sleep(0.3)
      kube.client:create(crd())
      made "a"
      logged("play/a true")
      kube.client:delete("apiextensions.k8s.io/v1/customresourcedefinitions", "webs.example.com")
      logged("play/a true", "play/a false")
      eventually(function() return (kube.client:try_create(crd())) end)
      made "b"
      logged("play/a true", "play/a false", "play/b true")
    ]])
    assert.is_nil(err:find('"level":"error"', 1, true), err)
  end)
end)

describe("what is wrong with a controller", function()
  -- pods { ... }: a controller of pods with these options more.
  local prelude = [[
    local function pods(more)
      more.resource, more.reconcile = "v1/pods", print
      kube.controller(more)
    end
  ]]
  local cases = {
    { 'kube.controller { resource = "v1/pods" }', "kube.controller needs reconcile = function(ctx, object) ... end" },
    { "kube.controller()", 'kube.controller needs resource = "group/version/plural"' },
    { 'kube.controller { reconcile = print }', 'kube.controller needs resource = "group/version/plural"' },
    { 'kube.controller { resource = "v1/pods", recncile = print }',
      "has no option 'recncile' (did you mean 'reconcile'?)" },
    { 'kube.controller { resource = "pods", reconcile = print }', "'pods' is not a resource: write version/plural" },
    { 'pods { workers = 0 }', "workers must be a whole number from 1 to 1024, not 0" },
    { 'pods { timeout = -1 }', "timeout must be a number above 0, not -1" },
    { 'pods { finalizer = "x" }', "finalizer and finalize go together" },
    { 'pods { finalizer = "x", finalize = print }',
      "finalizer must be a name with a domain" },
    { 'pods { owns = { 7 } }', "owns[1] must be a table with a resource" },
    { 'pods { watches = { { resource = "v1/secrets" } } }',
      "watches[1] needs map = function(object) return keys end" },
    { 'pods { retry = { bas = 1 } }', "did you mean 'base'?" },
    { 'pods { predicate = {} }', "predicate must be one of kube.predicate" },
    { 'pods { predicate = kube.predicate.generation_chnged }',
      "kube.predicate has no 'generation_chnged' (did you mean 'generation_changed'?)" },
    { 'pods {}\npods {}',
      "there is a controller 'pods' already (" },
    { 'pods { namespaces = { "" } }', "namespaces[1] must be the name of a namespace" },
    { 'pods { namespaces = {} }', "namespaces is empty, so there is nothing to watch" },
    { 'pods { name = "a b" }', "name must be letters, digits" },
    { 'kube:controller { resource = "v1/pods" }', "call it with a dot: kube.controller(...)" },
    { 'kube.controller "pods"', "kube.controller takes a table of options, not a string" },
  }
  for _, case in ipairs(cases) do
    it(("is said with its place: %s"):format(case[2]), function()
      local text = rig.refused(prelude .. case[1])
      assert.is_truthy(text:find(case[2], 1, true), text)
      assert.is_truthy(text:find("script.lua:%d+: "), text)
    end)
  end

  it("is said of what reconcile returns, and of what it reads", function()
    local _, err = play([[
      kube.controller {
        name = "odd", resource = "v1/configmaps", namespaces = PLAY, predicate = { path = "data.v" },
        reconcile = function(ctx, object)
          note(ctx.name)
          if ctx.name == "a" then return true end
          if ctx.name == "b" then return { requeueAfter = 5 } end
          if ctx.name == "c" then ctx.cache:get("v1/secret", "play/x") end
          if ctx.name == "d" then ctx.cache:get("v1/configmaps", "other/x") end
          if ctx.name == "e" then return ctx.clent end
        end,
        retry = { attempts = 1 },
      }
    ]], [[
      for _, name in ipairs { "a", "b", "c", "d", "e" } do create(name, { v = "1" }) end
      eventually(function() return #log == 5 end)
      kube.sleep(0.1)
    ]])
    for _, text in ipairs { "reconcile returned a boolean; return nothing, or { requeue_after = seconds }",
      "has no option 'requeueAfter' (did you mean 'requeue_after'?)", "this controller has no cache of 'v1/secret'",
      "this controller does not watch the namespace 'other'", "ctx has no 'clent' (did you mean 'client'?)" } do
      assert.is_truthy(err:find(text, 1, true), text .. "\n" .. err)
    end
  end)
end)
