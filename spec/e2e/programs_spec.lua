-- Several scripts in one process.
local cleanup = require "spec.support.cleanup"
local exposition = require "spec.support.exposition"
local reload_rig = require "spec.support.reload_rig"
local scrape = require "spec.support.scrape"

local function controller(name, body)
  return ([[
    kube.controller { name = "%s", resource = "v1/configmaps", namespaces = { "default" },
      reconcile = function(ctx, object)
        if ctx.name == "kube-root-ca.crt" then return end
        %s
      end }
  ]]):format(name, body)
end

local function start(files, options)
  options = options or {}
  options.entry = "a.lua"
  options.more = { "b.lua" }
  return reload_rig.start(files, options)
end

describe("several scripts", function()
  cleanup.install()

  it("share one cache, and are reloaded each by itself", function()
    local rig = start { ["a.lua"] = controller("a", 'print("a1", ctx.name)'),
      ["b.lua"] = controller("b", 'print("b1", ctx.name)') }
    rig:create("x")
    rig:line("^a1\tx$")
    rig:line("^b1\tx$")
    local once = { ["watch configmaps"] = 1 }
    assert.are.same(once, rig:reads())
    rig:save("b.lua", controller("b", 'print("b2", ctx.name)'))
    rig:line("^b2\tx$")
    rig:create("y")
    rig:line("^a1\ty$")
    rig:line("^b2\ty$")
    assert.are.same(once, rig:reads())
    assert.are.equal(0, rig:stop())
    assert.is_nil(rig.process.stdout:match("b1\ty"))
  end)

  it("hear each of the failing watch that they share, also after the reload of one", function()
    local function script(who)
      return ([[
        local informer = kube.informer("v1/configmaps", { namespace = "default", backoff = { duration = 0.01 } })
        informer:set_watch_error_handler(function(err) print("%s", err.place, err.status) end)
        informer:add_event_handler { on_add = function(object) print("%s sees " .. object.metadata.name) end }
        kube.wait_for_cache_sync(nil, informer)
        print("%s synced")
      ]]):format(who, who, who)
    end
    local rig = start { ["a.lua"] = script "a1", ["b.lua"] = script "b1" }
    rig:line("^a1 synced$")
    rig:line("^b1 synced$")
    -- A watch that had an event is opened again when it is cut.
    local function fail(name)
      rig:create(name)
      rig:line("^a1 sees " .. name .. "$")
      rig.server:ask("POST", "/sandbox/v1/faults", '{"resource":"configmaps","verb":"watch","status":403,"count":1}')
      rig.server:ask("POST", "/sandbox/v1/watches", '{"action":"cut"}')
    end
    fail("x")
    rig:line("^a1\twatch_open\t403$")
    rig:line("^b1\twatch_open\t403$")
    rig:save("b.lua", script "b2")
    rig:line("^b2 synced$")
    fail("y")
    rig:line("^a1\twatch_open\t403$")
    rig:line("^b2\twatch_open\t403$")
    assert.are.equal(0, rig:stop())
    assert.are.equal(1, select(2, rig.process.stdout:gsub("b1\twatch_open", "")))
  end)

  it("do not disturb each other: one fails, and comes back when it is mended", function()
    local rig = start { ["a.lua"] = controller("a", 'print("a", ctx.name)'),
      ["b.lua"] = controller("b", 'print("b", ctx.name)') .. 'kube.sleep(0.3) error("b is ill")' }
    rig:stderr("script failed; the others go on[^\n]*b is ill")
    rig:create("x")
    rig:line("^a\tx$")
    rig:save("b.lua", controller("b", 'print("b", ctx.name)'))
    rig:line("^b\tx$")
    rig:create("y")
    rig:line("^b\ty$")
    assert.are.equal(0, rig:stop())
  end)

  it("go on while one loops for ever", function()
    local rig = start { ["a.lua"] = controller("a", 'print("a", ctx.name)'),
      ["b.lua"] = controller("b", "while true do end") }
    rig:create("x")
    rig:line("^a\tx$")
    rig:stderr("cpu budget exceeded")
    rig:create("y")
    rig:line("^a\ty$")
    rig:stop()
  end)

  it("have memory metrics of their own, and a reload loses nothing that was counted", function()
    local hog = [[
      kube.background("hog", function()
        pcall(function()
          local all = {}
          for i = 1, 1e7 do all[i] = { i } end
        end)
        print("held too much")
      end)
    ]]
    local rig = start({ ["a.lua"] = controller("a", ""), ["b.lua"] = controller("b", "") .. hog },
      { args = { "--memory-limit", "16Mi" } })
    rig:line("^held too much$")
    local seen = scrape.of(rig.process)
    local a, b = { script = rig.directory .. "/a.lua" }, { script = rig.directory .. "/b.lua" }
    seen:wait_value(function(v) return v >= 1 end, "moonwatch_lua_memory_limit_hits_total", b)
    local hits = exposition.value(seen:metrics(), "moonwatch_lua_memory_limit_hits_total", b)
    rig:save("b.lua", controller("b", ""))
    local revision = rig:stderr('"reloaded"[^\n]*"revision":"%x+"'):match('"revision":"(%x+)"')
    -- Both are told of at once.
    seen:wait_value(1, "moonwatch_bundle_info", { script = b.script, revision = revision })
    local families = seen:metrics()
    local function value(name, labels) return exposition.value(families, "moonwatch_lua_memory_" .. name, labels) end
    assert.are.same({ 0, hits }, { value("limit_hits_total", a), value("limit_hits_total", b) })
    for _, script in ipairs { a, b } do
      assert.are.equal(16 * 1024 * 1024, value("limit_bytes", script))
      assert.is_true(value("bytes", script) > 1e5 and value("bytes", script) < 16 * 1024 * 1024)
    end
    assert.are.equal(0, rig:stop())
  end)

  it("cannot have one controller twice", function()
    local rig = start { ["a.lua"] = controller("a", ""), ["b.lua"] = controller("a", "") }
    assert.are.equal(1, rig.process:wait_exit(20))
    assert.matches("%.lua:%d+: another script of this process has a controller or a queue named 'a'",
      rig.process.stderr)
  end)
end)
