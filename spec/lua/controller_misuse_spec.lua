-- What a script does wrongly with a controller is said where it was written.
local rig = require "spec.support.controller_rig"
local run = require "spec.support.run"
local play = rig.play

local function has(text, wanted) assert.is_truthy(text:find(wanted, 1, true), wanted .. "\nnot in:\n" .. text) end

-- refused(text, fn, ...): fn fails with a message that begins with a place in this script and has the text.
local prelude = [[
  local function refused(text, fn, ...)
    local ok, err = pcall(fn, ...)
    local message = tostring(err)
    assert(not ok, "it was not refused: " .. text)
    assert(message:find("^[^\n]*script%.lua:%d+: "), "no place: " .. message)
    assert(message:find(text, 1, true), ("wanted %s\ngot %s"):format(text, message))
  end
  local function pods(more)
    local opts = { resource = "v1/pods", reconcile = print }
    for name, value in pairs(more) do opts[name] = value end
    return kube.controller(opts)
  end
]]

describe("an option of kube.controller", function()
  it("that has the wrong type is named", function()
    play(prelude .. [[
      local wrong = { name = 5, resource = 5, reconcile = "fn", owns = "v1/secrets", watches = print, reads = "v1/pods",
        predicate = "paused", finalizer = 5, finalize = "fn", workers = "2", timeout = "1s", retry = 5, resync = "1h",
        namespaces = "default", label_selector = 5, field_selector = 5, sync_timeout = "1m" }
      for name, value in pairs(wrong) do
        refused(("option '%s' must be a "):format(name), pods, { [name] = value })
      end
      for _, name in ipairs { "base", "max", "attempts" } do
        refused(("option '%s' must be a number"):format(name), pods, { retry = { [name] = "1" } })
      end
    ]], "")
  end)

  it("that has a value which makes no sense is named, with those that do", function()
    play(prelude .. [[
      for _, bad in ipairs { 0, 1.5, -1, 1025, 0 / 0 } do
        refused("workers must be a whole number from 1 to 1024", pods, { workers = bad })
      end
      for _, name in ipairs { "timeout", "resync", "sync_timeout" } do
        for _, bad in ipairs { 0, -1, 1 / 0, 0 / 0 } do
          refused(name .. " must be a number above 0", pods, { [name] = bad })
        end
      end
      refused("retry.base must be a number above 0", pods, { retry = { base = 0 } })
      refused("retry.max must be a number above 0", pods, { retry = { max = -1 } })
      refused("retry.attempts must be a whole number from 1", pods, { retry = { attempts = 1.5 } })
      refused("owner is \"controller\" or \"any\", not 'all'", pods,
        { owns = { { resource = "v1/secrets", owner = "all" } } })
      refused("owns[1]: resource: 'secrets' is not a resource", pods, { owns = { "secrets" } })
      refused("owns[1] has no option 'map'", pods, { owns = { { resource = "v1/secrets", map = print } } })
      refused("watches[1]: resource", pods, { watches = { { map = print } } })
      refused("option 'map' must be a function", pods, { watches = { { resource = "v1/secrets", map = "x" } } })
      refused("watches[1] must be a table with a resource", pods, { watches = { true } })
      refused("reads[1]", pods, { reads = { "pods" } })
      refused("resource: there is no 'v1/pod' (did you mean 'v1/pods'?)", pods, { resource = "v1/pod" })
      refused("owns[1]: resource: there is no 'v1/secret' (did you mean 'v1/secrets'?)", pods,
        { owns = { "v1/secret" } })
      refused("reads[1]: there is no 'v1/deployments' (did you mean 'apps/v1/deployments'?)", pods,
        { reads = { "v1/deployments" } })
      refused("reads is a list, and 'a' is no place in one", pods, { reads = { a = "v1/pods" } })
      refused("namespaces[2] must be the name of a namespace", pods, { namespaces = { "a", 5 } })
      refused("namespaces[3] is 'a', and so is namespaces[1]", pods, { namespaces = { "a", "b", "a" } })
      refused("label selector, column", pods, { label_selector = "a in (" })
      refused("field selector, column", pods, { field_selector = "spec.nodeName" })
      refused("predicate: give one of path, label and owner", pods, { predicate = { equals = "x" } })
      local changed = { kube.predicate.generation_changed, { path = "a" } }
      refused("predicate: for more than one of kube.predicate write kube.predicate.all(...) or any(...)", pods,
        { predicate = changed })
      refused("nested more than 16 deep", function()
        local p = kube.predicate.negate { path = "a" }
        for _ = 1, 20 do p = kube.predicate.negate(p) end
      end)
      -- A name that was refused is free.
      pods {}
    ]], "")
  end)

  it("that names a resource that is not there is waited for, and said when the time is over", function()
    local _, err = play([[
      kube.controller { resource = "example.com/v1/widgets", reconcile = print, sync_timeout = 0.5 }
    ]], "kube.sleep(30)", { code = 1 })
    has(err, "script failed: controller widgets: no cache of example.com/v1/widgets (")
    has(err, "within 0.5 seconds")
  end)
end)

describe("a method of a controller", function()
  it("takes keys, and is called with a colon", function()
    play(prelude .. [[
      local c = pods {}
      refused("call it with a colon: controller:enqueue", c.enqueue, "a/b")
      refused("controller:enqueue takes a key such as \"default/web\"", c.enqueue, c, 5)
      refused("did you mean 'priority'?", c.enqueue, c, "a/b", { priorty = 1 })
      refused("must be a whole number between -1000 and 1000", c.enqueue, c, "a/b", { priority = 5000 })
      refused("controller:history takes a key", c.history, c)
      refused("controller has no 'enqeue' (did you mean 'enqueue'?)", function() c:enqeue("a/b") end)
      refused("kube.terminal() takes a message or an error, not a nil", kube.terminal)
    ]], "")
  end)
end)

describe("an await", function()
  it("in a map function or a predicate is refused with its line, and the rest goes on", function()
    local _, err = play([[
      local function waits() kube.client:get("v1/configmaps", "play/x") end
      kube.controller {
        name = "waiting", resource = "v1/configmaps", namespaces = PLAY,
        predicate = function(object)
          if object.metadata.name == "a" then kube.sleep(0) end
          return object.metadata.name == "b"
        end,
        watches = { { resource = "v1/secrets", map = function(object)
          if object.metadata.name == "a" then waits() end
          return "mapped"
        end } },
        reconcile = function(ctx) note(ctx.key) end,
      }
    ]], [[
      create("a", { v = "1" })
      create("b", { v = "1" })
      for _, name in ipairs { "a", "b" } do
        kube.client:create { apiVersion = "v1", kind = "Secret", metadata = { name = name, namespace = "play" } }
      end
      eventually(function() return #log == 3 end)
      table.sort(log)
      logged("mapped", "play/a", "play/b") -- of a the predicate failed, so that it counts
    ]])
    has(err, "kube.sleep() awaits and cannot be used inside a predicate")
    has(err, "client:get awaits and cannot be used inside a map function")
    assert.is_truthy(err:find("script%.lua:%d+: kube%.sleep"), err)
    assert.is_truthy(err:find("script%.lua:%d+: client:get"), err)
  end)

  it("of a write in a required file is refused: it is still loading", function()
    local result = run.run_script('require "mod"', { args = { "--sandbox" }, files = { ["mod.lua"] = [[
      local kube = require "kube"
      kube.client:create { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "a", namespace = "default" } }
    ]] } })
    assert.is_true(result.code ~= 0)
    has(result.stderr, "mod.lua:2: ")
    has(result.stderr, "client:create cannot be used while the script loads")
    has(result.stderr, "write it behind the first await")
  end)
end)

describe("what a map function returns", function()
  it("is a key or a list of keys, or it is said what it was", function()
    local _, err = play([[
      local returned = { a = true, b = { 5 }, c = "c", d = {} }
      kube.controller {
        name = "mapping", resource = "v1/configmaps", namespaces = PLAY, predicate = function() return false end,
        watches = { { resource = "v1/secrets", map = function(object) return returned[object.metadata.name] end } },
        reconcile = function(ctx) note(ctx.key) end,
      }
    ]], [[
      for _, name in ipairs { "a", "b", "d", "c" } do
        kube.client:create { apiVersion = "v1", kind = "Secret", metadata = { name = name, namespace = "play" } }
      end
      logged("c")
    ]])
    has(err, "map returns a key, a list of keys or nothing, not a boolean")
    has(err, "key 1 of what map returned is a number, not a string")
  end)
end)

describe("a map function that raises", function()
  it("is called again with the object, and the event is not lost", function()
    local _, err = play([[
      local calls = {}
      kube.controller {
        name = "mapping", resource = "v1/configmaps", namespaces = PLAY, predicate = function() return false end,
        watches = { { resource = "v1/secrets", map = function(object)
          local name = object.metadata.name
          calls[name] = (calls[name] or 0) + 1
          if calls[name] <= 3 then error("not yet " .. name) end
          return { "play/of-" .. name, "play/too" }
        end } },
        reconcile = function(ctx) note(ctx.key, unpack(ctx.reasons)) end,
      }
    ]], [[
      kube.client:create { apiVersion = "v1", kind = "Secret", metadata = { name = "a", namespace = "play" } }
      logged("play/of-a retry v1/secrets", "play/too retry v1/secrets")
      same(4, calls.a)
    ]])
    has(err, "not yet a")
    has(err, '"a map function failed again"')
    has(err, '"attempt":3')
  end)

  it("is asked for each state of the object: what it was, and what it became since", function()
    play([[
      local broken, asked = true, {}
      kube.controller {
        name = "mapping", resource = "v1/configmaps", namespaces = PLAY, predicate = function() return false end,
        retry = { base = 0.01, max = 0.01 },
        watches = { { resource = "v1/secrets", map = function(object)
          local owner = object.metadata.labels.of
          asked[owner] = true
          if broken and owner ~= "first" then error("no " .. owner) end
          return "play/" .. owner
        end } },
        reconcile = function(ctx) note(ctx.key, unpack(ctx.reasons)) end,
      }
      local function label(of)
        kube.client:patch("v1/secrets", "play/s", { metadata = { labels = { of = of } } })
        eventually(function() return asked[of] end)
      end
    ]], [[
      kube.client:create { apiVersion = "v1", kind = "Secret",
        metadata = { name = "s", namespace = "play", labels = { of = "first" } } }
      eventually(function() return #log == 1 end)
      label("second")
      eventually(function() return #log == 2 end)
      same("play/first update v1/secrets", log[2])
      label("third")
      broken = false
      eventually(function() return #log == 4 end)
      table.sort(log, function(a, b) return a < b end)
      same({ "play/second retry v1/secrets", "play/third retry v1/secrets" }, { log[3], log[4] })
    ]])
  end)

  it("is given up after as many attempts as a run has", function()
    local _, err = play([[
      local calls = 0
      kube.controller {
        name = "mapping", resource = "v1/configmaps", namespaces = PLAY, retry = { attempts = 3 },
        watches = { { resource = "v1/secrets", map = function() calls = calls + 1 error("never") end } },
        reconcile = function(ctx) note(ctx.key) end,
      }
    ]], [[
      kube.client:create { apiVersion = "v1", kind = "Secret", metadata = { name = "a", namespace = "play" } }
      eventually(function() return calls == 3 end)
      kube.client:create { apiVersion = "v1", kind = "Secret", metadata = { name = "b", namespace = "play" } }
      eventually(function() return calls == 6 end)
    ]])
    has(err, "a map function failed again: gave up")
  end)
end)

describe("the context of a run", function()
  it("ends with it: what goes on needs a client of its own", function()
    play([[
      local kept
      kube.controller {
        name = "leaky", resource = "v1/configmaps", namespaces = PLAY, predicate = { path = "data.v" },
        reconcile = function(ctx)
          ctx.cache:get("v1/configmaps", ctx.key)
          kept = ctx
        end,
      }
    ]], prelude .. [[
      create("a", { v = "1" })
      eventually(function() return kept end)
      kube.sleep(0)
      for _, name in ipairs { "client", "cache" } do
        refused(("ctx.%s: the run of play/a has ended; "):format(name), function() return kept[name] end)
      end
      same({ "play/a", 1 }, { kept.key, kept.attempt })
      kept.log:info("still there")
    ]])
  end)

  it("says what is wrong with its log, its cache and its names", function()
    play(prelude .. [[
      kube.controller {
        name = "wrong", resource = "v1/configmaps", namespaces = PLAY, predicate = { path = "data.v" },
        reconcile = function(ctx)
          local ok, err = pcall(function()
            refused("ctx has no 'atempt' (did you mean 'attempt'?)", function() return ctx.atempt end)
            refused("fields must be a table, not a string", function() ctx.log:info("m", "f") end)
            refused("cache:get(resource, key): key must be a string, not a nil", ctx.cache.get, ctx.cache,
              "v1/configmaps")
            refused("did you mean 'v1/configmaps'?", ctx.cache.get, ctx.cache, "v1/configmap", "play/a")
            refused("cache:list has no option 'selectr' (did you mean 'selector'?)", ctx.cache.list, ctx.cache,
              "v1/configmaps", { selectr = "a" })
            refused("cache has no 'lst' (did you mean 'list'?)", function() ctx.cache:lst() end)
            refused("call it with a colon: cache:get(...)", ctx.cache.get, "v1/configmaps", "play/a")
            refused("value must be a string, not nothing", ctx.cache.by_index, ctx.cache,
              "v1/configmaps", "namespace")
          end)
          note(ok, err)
        end,
      }
    ]], [[
      create("a", { v = "1" })
      logged("true nil")
    ]])
  end)

  it("is no place to declare a controller again and again", function()
    local _, err = play([[
      kube.controller {
        name = "outer", resource = "v1/configmaps", namespaces = PLAY, retry = { attempts = 1 },
        predicate = { path = "data.v" },
        reconcile = function(ctx)
          note(ctx.name)
          kube.controller { name = "inner", resource = "v1/secrets", reconcile = function() end }
        end,
      }
    ]], [[
      create("a", { v = "1" })
      create("b", { v = "1" })
      logged("a", "b")
      kube.sleep(0.05)
    ]])
    assert.is_truthy(err:find("there is a controller 'inner' already %([^)]*script%.lua:%d+%)"), err)
  end)
end)

describe("a cached object that a reconcile changes", function()
  it("is reported with controller, key, path, function and line, and is read anew", function()
    local _, err = play([[
      local spoilt = false
      kube.controller {
        name = "spoiling", resource = "v1/configmaps", namespaces = PLAY, predicate = { path = "data.v" },
        reconcile = function(ctx, object)
          note(object.data.v)
          if not spoilt then
            spoilt = true
            object.data.v = "spoilt"
            return { requeue_after = 0.001 }
          end
        end,
      }
    ]], [[
      create("a", { v = "1" })
      logged("1", "1")
    ]], { env = { MOONWATCH_MUTATION_DETECTOR = "1" } })
    assert.is_truthy(err:find('"msg":"a cached object was changed[^"]*","function":"[^"]*script.lua:%d+%-%d+","key":'
      .. '"play/a","path":"data.v","task":"spoiling play/a","trigger":"controller spoiling, key play/a, attempt 1'),
      err)
    assert.are.equal(1, select(2, err:gsub("a cached object was changed", "")), err)
  end)
end)

describe("a script that declares several things wrongly", function()
  it("is told all of them at once, and runs nothing", function()
    local err = rig.refused [[
      kube.controller { resource = "v1/pods", reconcil = print }
      kube.every { name = "tick", interval = 0.01, immediate = true, run = function() print("ran") end }
      kube.every { name = "tock", intervall = 1, run = print }
    ]]
    has(err, "kube.controller has no option 'reconcil' (did you mean 'reconcile'?)")
    has(err, "every has no option 'intervall' (did you mean 'interval'?)")
    assert.is_nil(err:find("ran", 1, true), err)
  end)
end)
