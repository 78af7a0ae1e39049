-- Hot reload: what a revision hands to the next one, and what stays by itself.
local cleanup = require "spec.support.cleanup"
local reload_rig = require "spec.support.reload_rig"

describe("across a reload", function()
  cleanup.install()

  it("kube.store keeps what was set, and variables go", function()
    local function script(n)
      return ([[
        local local_count = 0
        kube.every { name = "tick", interval = 0.05, jitter = 0, run = function()
          local_count = local_count + 1
          print("%d", kube.store.incr("ticks"), local_count, #kube.store.names())
        end }
      ]]):format(n)
    end
    local rig = reload_rig.start { ["main.lua"] = script(1) }
    rig:line("^1\t3\t3\t1$")
    rig:save("main.lua", script(2))
    local line = rig:line("^2\t%d+\t1\t1$")
    assert.is_true(tonumber(line:match("^2\t(%d+)")) > 3)
    assert.are.equal(0, rig:stop())
  end)

  it("on_unload gives to on_load, with the version of its shape", function()
    local rig = reload_rig.start { ["main.lua"] = [[
      kube.state_version = 1
      local seen = {}
      kube.on_load(function() error("the first one has nobody before it") end)
      kube.on_unload(function() return { seen = seen } end)
      kube.sleep(0)
      seen.a = 1.5
      seen.list = kube.array { 1, 2 }
      print("ready")
      kube.sleep(1000)
    ]] }
    rig:line("^ready$")
    rig:save("main.lua", [[
      kube.on_load(function(data, info)
        print("loaded", data.seen.a, #data.seen.list, info.version, #info.from)
      end)
      kube.sleep(0)
      print("running")
      kube.sleep(1000)
    ]])
    rig:line("^loaded\t1.5\t2\t1\t12$")
    rig:line("^running$")
    rig:save("main.lua", [[
      kube.on_load(function(data, info) print("nothing", data, info.version) end)
      kube.sleep(1000)
    ]])
    rig:line("^nothing\tnil\tnil$")
    assert.are.equal(0, rig:stop())
  end)

  it("an on_load that raises, and an on_unload that awaits or returns a function, keep the old one", function()
    local function first(body)
      return ([[
        kube.on_unload(function() %s end)
        kube.every { name = "tick", interval = 0.05, run = function() print("old") end }
      ]]):format(body)
    end
    local next_one = [[
      kube.on_load(function(data) assert(data == 1, "I want a 1") end)
      kube.every { name = "tick", interval = 0.05, run = function() print("new") end }
    ]]
    for body, report in pairs {
      ["return 2"] = "main%.lua:1: I want a 1",
      ["kube.sleep(1)"] = "kube%.sleep%(%).-kube%.on_unload",
      ["return { f = print }"] = "on_unload %([^)]*main%.lua:1%) returned is not plain data",
      ["return ('x'):rep(2 ^ 20)"] = "1 MiB is the limit",
    } do
      local rig = reload_rig.start { ["main.lua"] = first(body) }
      rig:line("^old$")
      rig:save("main.lua", next_one)
      rig:stderr("reload failed[^\n]*" .. report)
      rig.process.stdout, rig.process._lines, rig.process._parsed = "", {}, 0
      rig:line("^old$")
      assert.are.equal(0, rig:stop())
      assert.is_nil(rig.process.stdout:match("new"))
    end
  end)

  it("a timer of the same interval keeps its phase, and another one begins anew", function()
    local function script(interval, word)
      return ([[
        kube.every { name = "slow", interval = %g, jitter = 0, immediate = true, run = function(ctx)
          print("%s", ctx.count)
        end }
      ]]):format(interval, word)
    end
    local rig = reload_rig.start { ["main.lua"] = script(600, "one") }
    rig:line("^one\t1$")
    rig:save("main.lua", script(600, "two")) -- its time has not come
    rig:stderr("reloaded")
    rig:save("main.lua", script(601, "three"))
    rig:line("^three\t1$")
    assert.are.equal(0, rig:stop())
    assert.is_nil(rig.process.stdout:match("two"))
  end)

  it("a key that failed is tried at once by the new code", function()
    local rig = reload_rig.start { ["main.lua"] = [[
      kube.controller { name = "c", resource = "v1/configmaps", namespaces = { "default" },
        retry = { base = 600, max = 600 }, reconcile = function(ctx)
          print("old", ctx.name)
          error("not today")
        end }
    ]] }
    rig:create("a")
    rig:line("^old\ta$")
    rig:save("main.lua", [[
      kube.controller { name = "c", resource = "v1/configmaps", namespaces = { "default" },
        retry = { base = 600, max = 600 }, resync_on_reload = false, reconcile = function(ctx)
          print("new", ctx.name, ctx.attempt)
        end }
    ]])
    rig:line("^new\ta\t1$")
    assert.are.equal(0, rig:stop())
  end)

  it("with keep_backoff a key that failed waits on", function()
    local function script(word)
      return ([[
        kube.controller { name = "c", resource = "v1/configmaps", namespaces = { "default" }, keep_backoff = true,
          retry = { base = 600, max = 600 }, resync_on_reload = false, reconcile = function(ctx)
            print("%s", ctx.name)
            if ctx.name == "a" then error("not today") end
          end }
      ]]):format(word)
    end
    local rig = reload_rig.start { ["main.lua"] = script "old" }
    rig:create("a")
    rig:line("^old\ta$")
    rig:save("main.lua", script "new")
    rig:stderr("reloaded")
    rig:create("b") -- comes after all that could be tried at once
    rig:line("^new\tb$")
    assert.is_nil(rig.process.stdout:match("new\ta"))
    assert.are.equal(0, rig:stop())
  end)

  it("a controller that was renamed takes over the keys of the old one", function()
    local rig = reload_rig.start { ["main.lua"] = [[
      kube.controller { name = "before", resource = "v1/configmaps", namespaces = { "default" },
        reconcile = function(ctx) print("old", ctx.name) return { requeue_after = 2 } end }
    ]] }
    rig:create("a")
    rig:line("^old\ta$")
    rig:save("main.lua", [[
      kube.controller { name = "after", was = "before", resource = "v1/configmaps", namespaces = { "default" },
        resync_on_reload = false, reconcile = function(ctx) print("new", ctx.name, ctx.reasons[1]) end }
    ]])
    rig:line("^new\ta\trequeue_after$")
    rig:create("b")
    rig:line("^new\tb\tadd v1/configmaps$")
    assert.are.equal(0, rig:stop())
  end)

  it("a loop over a named queue ends with the item that it has, and the new code goes on with the rest", function()
    local source = [[
      local kube = require "kube"
      local q = kube.workqueue { name = "jobs" }
      kube.background("worker", function()
        while true do
          local item, shutdown = q:get()
          if shutdown then break end
          print("%s begins " .. item)
          kube.sleep(0.4)
          q:done(item)
          print("%s ends " .. item)
        end
        print("%s is over")
      end)
      kube.sleep(0)
      %s
      kube.sleep(3600)
    ]]
    local function revision(name, more) return source:format(name, name, name, more or "") end
    local rig = reload_rig.start { ["main.lua"] = revision("old", 'q:add "a" q:add "b" q:add "c"') }
    rig:line("^old begins a$")
    rig:save("main.lua", revision "new")
    rig:line("^new begins b$")
    rig:line("^old ends a$")
    rig:line("^old is over$")
    -- What the old code had in hand comes once more, behind what was waiting.
    for _, key in ipairs { "b", "c", "a" } do rig:line("^new ends " .. key .. "$") end
    assert.are.equal(0, rig:stop())
    assert.is_nil(rig.process.stdout:find("old begins [bc]"))
  end)

  it("without resync_on_reload only what changes is queued", function()
    local function script(word)
      return ([[
        kube.controller { name = "c", resource = "v1/configmaps", namespaces = { "default" }, resync_on_reload = false,
          reconcile = function(ctx) print("%s", ctx.name) end }
      ]]):format(word)
    end
    local rig = reload_rig.start { ["main.lua"] = script "old" }
    rig:create("a")
    rig:line("^old\ta$")
    rig:save("main.lua", script "new")
    rig:stderr("reloaded")
    rig:create("b")
    rig:line("^new\tb$")
    assert.are.equal(0, rig:stop())
    assert.is_nil(rig.process.stdout:match("new\ta"))
  end)

  it("the new revision is in log lines and events", function()
    local function script(word)
      return ([[
        kube.controller { name = "c", resource = "v1/configmaps", namespaces = { "default" },
          reconcile = function(ctx, object)
            if ctx.name ~= "a" then return end
            ctx.log:info("%s")
            ctx.events:normal(object, "Seen", "%s")
          end }
      ]]):format(word, word)
    end
    local rig = reload_rig.start { ["main.lua"] = script "one" }
    rig:create("a")
    local before = rig:stderr('"msg":"one"[^\n]*"revision":"%x+"'):match('"revision":"(%x+)"')
    rig:save("main.lua", script "two")
    local after = rig:stderr('"msg":"two"[^\n]*"revision":"%x+"'):match('"revision":"(%x+)"')
    assert.are_not.equal(before, after)
    local found
    for _ = 1, 400 do
      found = rig.server:ask("GET", "/api/v1/namespaces/default/events")
      if found:find(before, 1, true) and found:find(after, 1, true) then break end
      rig.process:ends_within(0.05)
    end
    assert.is_truthy(found:find('"moonwatch.dev/revision":"' .. before, 1, true))
    assert.is_truthy(found:find('"moonwatch.dev/revision":"' .. after, 1, true))
    assert.are.equal(0, rig:stop())
  end)

  it("handlers are resynced as often as they would be after a restart", function()
    local function script(word, factory, handler)
      return ([[
        local kube = require "kube"
        local factory = kube.shared_informer_factory { namespace = "default", resync = %g, min_resync = 0.05 }
        factory:core():v1():configmaps():informer():add_event_handler_with_resync_period({
          on_update = function(old, new)
            if new.metadata.name == "a" and rawequal(old, new) then print("%s") end
          end,
        }, %g)
        factory:start()
      ]]):format(factory, word, handler)
    end
    local rig = reload_rig.start({ ["main.lua"] = script("seldom", 60, 60) },
      { before = function(server) server:ask("POST", "/api/v1/namespaces/default/configmaps",
        '{ "metadata": { "name": "a" }, "data": { "v": "0" } }') end })
    rig:stderr('"synced"')
    rig:save("main.lua", script("often", 60, 0.1))
    for _ = 1, 3 do rig:line("^often$") end
    rig:save("main.lua", script("seldom", 60, 0.1):gsub("seldom", "on", 1) .. "-- and again\n")
    for _ = 1, 3 do rig:line("^on$") end
    assert.is_nil(rig.process.stderr:find("raised", 1, true))
    assert.are.equal(0, rig:stop())
  end)
end)
