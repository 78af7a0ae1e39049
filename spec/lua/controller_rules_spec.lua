-- The rules that controller-runtime has for controllers, on kube.controller. spec/README.md says which spec
-- shows which rule.
local rig = require "spec.support.controller_rig"
local play = rig.play

local function has(text, wanted) assert.is_truthy(text:find(wanted, 1, true), wanted .. "\nnot in:\n" .. text) end

describe("the failures of a key", function()
  it("are forgotten only when a run went well: not by an event, nor by a terminal error", function()
    play([[
      local fate = { "fail", "fail", "terminal", "terminal", "later", "well", "well" }
      kube.controller {
        name = "failing", resource = "v1/configmaps", namespaces = PLAY, retry = { base = 0.001 },
        predicate = { path = "data.v" },
        reconcile = function(ctx)
          local how = table.remove(fate, 1)
          note(how, ctx.attempt)
          if how == "fail" then error("no") end
          if how == "terminal" then error(kube.terminal("no")) end
          if how == "later" then return { requeue_after = 0.001 } end
        end,
      }
    ]], [[
      create("a", { v = "1" })
      logged("fail 1", "fail 2", "terminal 3")
      update("a", { v = "2" })
      logged("fail 1", "fail 2", "terminal 3", "terminal 3")
      update("a", { v = "3" })
      logged("fail 1", "fail 2", "terminal 3", "terminal 3", "later 3", "well 1")
      update("a", { v = "4" })
      logged("fail 1", "fail 2", "terminal 3", "terminal 3", "later 3", "well 1", "well 1")
    ]])
  end)

  it("decide when it comes back, whatever else the error says", function()
    play([[
      local controller
      controller = kube.controller {
        name = "failing", resource = "v1/configmaps", namespaces = PLAY, retry = { base = 0.01 },
        predicate = { path = "data.v" },
        reconcile = function(ctx)
          note(ctx.attempt, ctx.reasons[1])
          if ctx.attempt == 1 then error({ code = "odd", message = "no", requeue_after = 60, priority = 5 }) end
        end,
      }
    ]], [[
      create("a", { v = "1" })
      logged("1 add v1/configmaps", "2 retry")
      eventually(function() return #controller:history("play/a") == 2 end)
      local first = controller:history("play/a")[1]
      same({ "error", 0.01 }, { first.result, first.next })
    ]])
  end)

  it("of Lua itself are contained and tried again, and other keys go on", function()
    local _, err = play([[
      local function deeper(n) return 1 + deeper(n + 1) end
      local faults = {
        a = function() error() end,
        b = function() local none; return none.field end,
        c = function() deeper(1) end,
        d = function() error(setmetatable({}, { __tostring = function() return "odd" end })) end,
        e = function() return coroutine.yield() end,
      }
      local controller = kube.controller {
        name = "wild", resource = "v1/configmaps", namespaces = PLAY, retry = { base = 0.001 },
        predicate = { path = "data.v" },
        reconcile = function(ctx)
          if ctx.attempt == 1 and faults[ctx.name] then faults[ctx.name]() end
          note(ctx.name, ctx.attempt)
        end,
      }
    ]], [[
      for _, name in ipairs { "a", "b", "c", "d", "e", "f" } do create(name, { v = "1" }) end
      eventually(function() return #log == 6 end)
      table.sort(log)
      logged("a 2", "b 2", "c 2", "d 2", "e 2", "f 1")
      for _, name in ipairs { "a", "b", "c", "d", "e" } do
        same("error", controller:history("play/" .. name)[1].result)
      end
    ]])
    has(err, "stack overflow")
    has(err, "controller wild, key play/b, attempt 1")
  end)

  it("stops a run that never ends, and its worker goes on", function()
    local _, err = play([[
      local controller = kube.controller {
        name = "endless", resource = "v1/configmaps", namespaces = PLAY, retry = { base = 0.001 },
        predicate = { path = "data.v" },
        reconcile = function(ctx)
          note(ctx.name, ctx.attempt)
          while ctx.name == "a" and ctx.attempt == 1 do end
        end,
      }
    ]], [[
      create("a", { v = "1" })
      logged("a 1", "a 2")
      create("b", { v = "1" })
      logged("a 1", "a 2", "b 1")
      same("error", controller:history("play/a")[1].result)
    ]])
    has(err, "cpu budget exceeded: endless play/a ran for more than 1 s without awaiting")
    has(err, "controller endless, key play/a, attempt 1")
  end)

  it("are those of a task that it cancelled itself, too", function()
    play([[
      kube.controller {
        name = "cancels", resource = "v1/configmaps", namespaces = PLAY, retry = { base = 0.02 },
        reconcile = function(ctx)
          if ctx.name ~= "a" then return end
          note(ctx.attempt)
          if ctx.attempt > 1 then return end
          local child = kube.spawn(kube.sleep, 60)
          child:cancel()
          child:wait()
        end,
      }
    ]], [[
      create "a"
      logged(1, 2)
    ]])
  end)

  it("are timeouts only when its own time was over", function()
    play([[
      local controller = kube.controller {
        name = "slow", resource = "v1/configmaps", namespaces = PLAY, timeout = 0.3, workers = 3,
        retry = { attempts = 1 }, predicate = { path = "data.v" },
        reconcile = function(ctx)
          note(ctx.name)
          if ctx.name == "a" then kube.timeout(0.01, kube.sleep, 5) end
          if ctx.name == "b" then error { code = "timeout", message = "some other server's" } end
          kube.sleep(5)
        end,
      }
      local function result(name)
        local run = controller:history("play/" .. name)[1]
        return run and run.result .. (run.duration >= 0.3 and " late" or " early")
      end
    ]], [[
      for _, name in ipairs { "a", "b", "c" } do create(name, { v = "1" }) end
      eventually(function() return result "a" and result "b" and result "c" end)
      same({ "gave_up early", "gave_up early", "gave_up late" }, { result "a", result "b", result "c" })
    ]])
  end)
end)

describe("the priority of a key", function()
  -- One worker, which the key "gate" holds until `open` is true: what is queued meanwhile comes in the order
  -- of priorities.
  local gated = [[
    local open = false
    local function gate() eventually(function() return open end) end
    local controller
    local function hold()
      open = false
      controller:enqueue("gate", { priority = 1000 })
      eventually(function() return controller:stats().processing == 1 end)
    end
  ]]

  it("stays with it when it fails and when it comes back later", function()
    play(gated .. [[
      local how
      controller = kube.controller {
        name = "low", resource = "v1/configmaps", namespaces = PLAY, retry = { base = 0.05 },
        predicate = { path = "data.v" },
        reconcile = function(ctx)
          if ctx.key == "gate" then return gate() end
          note(ctx.key)
          if ctx.key ~= "low" or not how then return end
          local now = how
          how = nil
          if now == "fail" then error("no") end
          return { requeue_after = 0.05 }
        end,
      }
    ]], [[
      for _, each in ipairs { "fail", "later" } do
        how = each
        controller:enqueue("low", { priority = -5 })
        logged("low")
        hold()
        eventually(function() return controller:stats().ready == 1 end)
        controller:enqueue("mid", { priority = -1 })
        open = true
        logged("low", "mid", "low")
        log = {}
      end
    ]])
  end)

  it("is another one when the run says so", function()
    play(gated .. [[
      controller = kube.controller {
        name = "rising", resource = "v1/configmaps", namespaces = PLAY, predicate = { path = "data.v" },
        reconcile = function(ctx)
          if ctx.key == "gate" then return gate() end
          note(ctx.key)
          if ctx.key == "low" and #log == 1 then return { requeue_after = 0.05, priority = 3 } end
        end,
      }
    ]], [[
      controller:enqueue("low", { priority = -5 })
      logged("low")
      hold()
      controller:enqueue("mid", { priority = 1 })
      eventually(function() return controller:stats().ready == 2 end)
      open = true
      logged("low", "low", "mid")
    ]])
  end)

  it("is low for the initial list, so that what happens now goes first", function()
    play(gated .. [[
      kube.background("before", function()
        kube.client:create { apiVersion = "v1", kind = "Namespace", metadata = { name = "early" } }
        for _, name in ipairs { "a", "b", "c" } do
          kube.client:create { apiVersion = "v1", kind = "ConfigMap", metadata = { name = name, namespace = "early" },
            data = { v = "1" } }
        end
        controller = kube.controller {
          name = "initial", resource = "v1/configmaps", namespaces = { "early" }, predicate = { path = "data.v" },
          reconcile = function(ctx)
            if #log == 0 then gate() end
            note(ctx.name, ctx.reasons[1])
          end,
        }
      end)
    ]], [[
      eventually(function() return controller and controller:stats().processing == 1 end)
      kube.client:create { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "new", namespace = "early" },
        data = { v = "1" } }
      eventually(function() return controller:stats().ready == 3 end)
      open = true
      eventually(function() return #log == 4 end)
      same("new add v1/configmaps", log[2])
      table.sort(log)
      logged("a initial v1/configmaps", "b initial v1/configmaps", "c initial v1/configmaps", "new add v1/configmaps")
    ]])
  end)

  it("is low for resyncs, which queue every key again, and only its own resource's", function()
    play(gated .. [[
      controller = kube.controller {
        name = "resynced", resource = "v1/configmaps", namespaces = PLAY, predicate = { path = "data.v" }, resync = 1,
        watches = { { resource = "v1/secrets", map = function() return "secret" end } },
        reconcile = function(ctx)
          if ctx.key == "gate" then return gate() end
          note(ctx.key, ctx.reasons[1])
        end,
      }
    ]], [[
      create("a", { v = "1" })
      kube.client:create { apiVersion = "v1", kind = "Secret", metadata = { name = "s", namespace = "play" } }
      eventually(function() return #log == 2 end)
      log = {}
      hold()
      eventually(function() return controller:stats().ready == 1 end)
      controller:enqueue("mid", { priority = -1 })
      open = true
      logged("mid enqueue", "play/a resync v1/configmaps")
    ]])
  end)
end)

describe("the resync of a controller", function()
  it("queues every key again also where no namespaces are named", function()
    play([[
      kube.controller {
        name = "everywhere", resource = "v1/configmaps", predicate = { path = "data.v" }, resync = 1,
        reconcile = function(ctx)
          if ctx.key == "play/a" then note(ctx.reasons[1]) end
        end,
      }
    ]], [[
      create("a", { v = "1" })
      eventually(function() return log[3] end)
      same("resync v1/configmaps", log[2])
      same("resync v1/configmaps", log[3])
    ]])
  end)
end)

describe("the start of a controller", function()
  it("fails the script when its caches are not filled within sync_timeout, and says why", function()
    local _, err = play([[
      kube.background("before", function()
        sandbox.fault { resource = "secrets", status = 403, message = "not yours", count = 0 }
        kube.controller {
          name = "waiting", resource = "v1/configmaps", reads = { "v1/secrets" }, sync_timeout = 0.5,
          reconcile = function() print("RECONCILED") end,
        }
      end)
    ]], [[ kube.sleep(30) ]], { code = 1 })
    has(err, "controller waiting: no cache of v1/secrets")
    has(err, "not yours")
    has(err, "within 0.5 seconds")
  end)

  it("ends without an error when the script is told to stop meanwhile", function()
    local out, err = play([[
      kube.background("before", function()
        sandbox.fault { resource = "secrets", status = 403, count = 0 }
        kube.controller {
          name = "waiting", resource = "v1/configmaps", reads = { "v1/secrets" }, sync_timeout = 60,
          reconcile = function() print("RECONCILED") end,
        }
      end)
    ]], [[
      eventually(function() return #sandbox.requests({ resource = "secrets" }).items > 0 end)
    ]])
    assert.are.equal("", out)
    assert.is_nil(err:find('"level":"error"', 1, true), err)
  end)
end)

describe("the events of a controller", function()
  it("queue the key of what was deleted while nobody watched", function()
    play([[
      kube.controller {
        name = "gaps", resource = "v1/configmaps", namespaces = PLAY, predicate = { path = "data.v" },
        reconcile = function(ctx, object) note(ctx.key, object and "there" or "gone", ctx.reasons[1]) end,
      }
    ]], [[
      create("a", { v = "1" })
      logged("play/a there add v1/configmaps")
      sandbox.pause_watches()
      delete "a"
      sandbox.expire()
      sandbox.cut_watches()
      sandbox.resume_watches()
      logged("play/a there add v1/configmaps", "play/a gone delete v1/configmaps")
    ]])
  end)

  -- owned(name, references...): a Secret with these owners; owner("ConfigMap", "a", { ... }): one of them.
  local owners = [[
    local function owner(of, more)
      local reference = { apiVersion = of.apiVersion, kind = of.kind, name = of.metadata.name, uid = of.metadata.uid }
      for name, value in pairs(more or {}) do reference[name] = value end
      return reference
    end
    local function owned(name, ...)
      kube.client:create { apiVersion = "v1", kind = "Secret", metadata = { name = name, namespace = "play",
        ownerReferences = { ... } } }
    end
    local function never() return false end
  ]]

  it("know owners by group and kind, whatever the version, and only controllers", function()
    play(owners .. [[
      kube.controller {
        name = "owner", resource = "apps/v1/deployments", namespaces = PLAY, owns = { "v1/secrets" }, predicate = never,
        reconcile = function(ctx) note(ctx.key) end,
      }
      local function deployment(name)
        return kube.client:create { apiVersion = "apps/v1", kind = "Deployment",
          metadata = { name = name, namespace = "play" },
          spec = { replicas = 0, selector = { matchLabels = { a = "b" } }, template = { metadata = {
            labels = { a = "b" } }, spec = { containers = { { name = "c", image = "i" } } } } } }
      end
    ]], [[
      local a, b = deployment "a", deployment "b"
      owned("no-controller", owner(b))
      owned("other-group", owner(b, { apiVersion = "example.com/v1", controller = true }))
      owned("other-kind", owner(b, { kind = "StatefulSet", controller = true }))
      owned("other-version", owner(a, { apiVersion = "apps/v1beta9", controller = true }))
      logged("play/a")
    ]])
  end)

  it("know every owner where any will do", function()
    play(owners .. [[
      kube.controller {
        name = "owner", resource = "v1/configmaps", namespaces = PLAY, predicate = never,
        owns = { { resource = "v1/secrets", owner = "any" } },
        reconcile = function(ctx) note(ctx.key) end,
      }
    ]], [[
      local a, b, c = create "a", create "b", create "c"
      owned("s", owner(a), owner(b, { controller = true }), owner(c))
      eventually(function() return #log == 3 end)
      table.sort(log)
      logged("play/a", "play/b", "play/c")
    ]])
  end)

  it("know owners that are in no namespace", function()
    play(owners .. [[
      kube.controller {
        name = "owner", resource = "v1/namespaces", owns = { "v1/secrets" }, predicate = never,
        reconcile = function(ctx) note(ctx.key, ctx.namespace == "", ctx.name) end,
      }
    ]], [[
      local play = kube.client:get("v1/namespaces", "play")
      owned("s", owner(play, { controller = true }))
      logged("play true play")
    ]])
  end)

  it("are mapped as they were and as they are, each key once", function()
    play([[
      local function secret(target)
        return { apiVersion = "v1", kind = "Secret", metadata = { name = "s", namespace = "play",
          annotations = { target = target } } }
      end
      local controller = kube.controller {
        name = "mapped", resource = "v1/configmaps", namespaces = PLAY, predicate = function() return false end,
        watches = { { resource = "v1/secrets", map = function(object)
          local target = kube.get(object, "metadata.annotations.target")
          return target and { "play/" .. target, "play/all" }
        end } },
        reconcile = function(ctx) note(ctx.name) end,
      }
    ]], [[
      kube.client:create(secret "a")
      logged("a", "all")
      kube.client:patch("v1/secrets", "play/s", secret "b", { type = "merge" })
      eventually(function() return #log == 5 end)
      table.sort(log)
      logged("a", "a", "all", "all", "b")
      kube.client:delete("v1/secrets", "play/s")
      eventually(function() return #log == 7 end)
      kube.sleep(0.05)
      same(7, #log)
    ]])
  end)

  it("that a predicate holds back are in the cache all the same", function()
    play([[
      local controller = kube.controller {
        name = "picky", resource = "v1/configmaps", namespaces = PLAY,
        predicate = kube.predicate.all({ path = "data.v" }, function(object) return object.data.v ~= "no" end),
        reconcile = function(ctx) note(ctx.name, #ctx.cache:list("v1/configmaps", { selector = "l" })) end,
      }
    ]], [[
      create("a", { v = "no" }, { labels = { l = "1" } })
      create("b", { v = "yes" }, { labels = { l = "1" } })
      logged("b 2")
    ]])
  end)
end)

describe("a controller of some namespaces", function()
  local some = [[
    local function namespace(name)
      kube.client:create { apiVersion = "v1", kind = "Namespace", metadata = { name = name } }
    end
    local function put(where, name)
      kube.client:create { apiVersion = "v1", kind = "ConfigMap", metadata = { name = name, namespace = where },
        data = { v = "1" } }
    end
  ]]

  it("sees those and no other, has one cache of what is in no namespace, and lists across", function()
    play(some .. [[
      local function keys(list)
        local out = {}
        for i, object in ipairs(list) do out[i] = kube.key(object) end
        table.sort(out)
        return table.concat(out, ",")
      end
      kube.controller {
        name = "some", resource = "v1/configmaps", namespaces = { "one", "two" }, reads = { "v1/namespaces" },
        predicate = { path = "data.v" },
        reconcile = function(ctx)
          note(ctx.key, ctx.cache:get("v1/namespaces", "three") ~= nil)
          if ctx.name ~= "last" then return end
          local all = {}
          for _, object in ipairs(ctx.cache:list("v1/configmaps")) do
            if object.data.v then all[#all + 1] = object end
          end
          note(keys(all))
          note(select(2, pcall(ctx.cache.list, ctx.cache, "v1/configmaps", { namespace = "three" })))
        end,
      }
    ]], [[
      for _, name in ipairs { "three", "two", "one" } do namespace(name) end
      put("three", "x")
      put("two", "y")
      logged("two/y true")
      put("one", "last")
      eventually(function() return #log == 4 end)
      same({ "two/y true", "one/last true", "one/last,two/y" }, { log[1], log[2], log[3] })
      assert(log[4]:find("this controller does not watch the namespace 'three'; add it to namespaces", 1, true), log[4])
    ]])
  end)

  it("waits for none of them to be made", function()
    local _, err = play(some .. [[
      kube.controller {
        name = "some", resource = "v1/configmaps", namespaces = { "play", "later" }, predicate = { path = "data.v" },
        reconcile = function(ctx) note(ctx.key) end,
      }
    ]], [[
      create("a", { v = "1" })
      logged("play/a")
      namespace "later"
      put("later", "b")
      logged("play/a", "later/b")
    ]])
    assert.is_nil(err:find('"level":"error"', 1, true), err)
  end)
end)

describe("what is forbidden", function()
  it("at first is waited for, and said", function()
    local _, err = play([[
      local controller
      kube.background("before", function()
        sandbox.fault { resource = "secrets", status = 403, message = "secrets are not yours", count = 0 }
        controller = kube.controller {
          name = "waiting", resource = "v1/configmaps", namespaces = PLAY, reads = { "v1/secrets" },
          predicate = { path = "data.v" }, reconcile = function(ctx) note(ctx.key) end,
        }
      end)
    ]], [[
      create("a", { v = "1" })
      eventually(function() return controller and controller:stats().ready == 1 end)
      eventually(function() return #sandbox.requests({ resource = "secrets" }).items >= 2 end)
      same({ 0, false }, { #log, controller:has_synced() })
      sandbox.clear_faults()
      logged("play/a")
      same(true, controller:has_synced())
    ]])
    has(err, "secrets are not yours")
  end)

  it("for a while stops nothing: the cache stays, and nothing is missed", function()
    play([[
      kube.controller {
        name = "patient", resource = "v1/configmaps", namespaces = PLAY, predicate = { path = "data.v" },
        reconcile = function(ctx, object) note(ctx.name, object and object.data.v or "gone") end,
      }
    ]], [[
      create("a", { v = "1" })
      create("b", { v = "1" })
      logged("a 1", "b 1")
      for _, verb in ipairs { "list", "watch" } do
        sandbox.fault { verb = verb, resource = "configmaps", status = 403, count = 0 }
      end
      local since = sandbox.requests({ resource = "configmaps" }).last
      sandbox.expire()
      sandbox.cut_watches()
      eventually(function() return #sandbox.requests({ resource = "configmaps", since = since }).items >= 2 end)
      update("a", { v = "2" })
      delete "b"
      sandbox.clear_faults()
      eventually(function() return #log == 4 end)
      table.sort(log)
      logged("a 1", "a 2", "b 1", "b gone")
    ]])
  end)
end)
