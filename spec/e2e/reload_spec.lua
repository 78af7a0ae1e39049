-- Hot reload: files change while the script runs.
local cleanup = require "spec.support.cleanup"
local reload_rig = require "spec.support.reload_rig"

-- A controller that prints `word`, the key's name and its value.
local function controller(word, more)
  return ([[
    kube.controller {
      name = "echo", resource = "v1/configmaps", namespaces = { "default" }, %s
      reconcile = function(ctx, object)
        if ctx.name == "kube-root-ca.crt" then return end
        print("%s " .. ctx.name .. " " .. (object and object.data.v or "gone"))
      end,
    }
  ]]):format(more or "", word)
end

describe("hot reload", function()
  cleanup.install()

  it("swaps the logic of a running controller and keeps its cache", function()
    local rig = reload_rig.start { ["main.lua"] = controller "one" }
    rig:create("a", { v = "1" })
    rig:line("^one a 1$")
    rig:save("main.lua", controller "two")
    rig:line("^two a 1$") -- every key once more
    rig:stderr("reloaded")
    rig:update("a", { v = "2" })
    rig:line("^two a 2$")
    rig:delete("a")
    rig:line("^two a gone$")
    assert.are.same({ ["watch configmaps"] = 1 }, rig:reads())
    assert.are.equal(0, rig:stop())
    assert.is_nil(rig.process.stdout:match("\ntwo .*\none "))
  end)

  it("changes nothing when a save is broken, and says why", function()
    local rig = reload_rig.start { ["main.lua"] = 'local lib = require "lib.word"\n' .. controller "one",
      ["lib/word.lua"] = "return {}" }
    rig:create("a", { v = "1" })
    rig:line("^one a 1$")
    rig:save("lib/word.lua", "return {\n  1,\n  x = = 2 }")
    rig:stderr("reload failed[^\n]*lib/word%.lua:3[^\n]*'='")
    rig:update("a", { v = "2" })
    rig:line("^one a 2$")
    rig:save("main.lua", "print('all is commented out')")
    rig:stderr("reload failed[^\n]*declares nothing, and would end at once")
    rig:save("main.lua", 'local lib = require "lib.word"\n' .. controller "one")
    rig:save("lib/word.lua", "error('nobody home')")
    rig:stderr("reload failed[^\n]*lib/word%.lua:1: nobody home")
    rig:save("lib/word.lua", "return {}")
    rig:save("main.lua", controller("one", "workres = 2,"))
    rig:stderr("reload failed[^\n]*did you mean 'workers'")
    rig:save("main.lua", 'local lib = require "lib.word"\n' .. controller "one")
    rig:stderr("the files are what runs again")
    rig:save("main.lua", controller "two")
    rig:line("^two a 2$")
    assert.are.equal(0, rig:stop())
  end)

  it("lets what has begun end on the old code, and runs that key once more", function()
    local slow = controller "old":gsub("print%(", "kube.sleep(1) print(")
    local rig = reload_rig.start { ["main.lua"] = slow:gsub("if ctx.name", 'print("begun " .. ctx.name) if ctx.name') }
    rig:create("a", { v = "1" })
    rig:line("^begun a$")
    rig:save("main.lua", controller "new")
    rig:stderr("reloaded")
    rig:line("^old a 1$")
    rig:line("^new a 1$")
    assert.are.equal(0, rig:stop())
    assert.is_nil(rig.process.stdout:match("new a.*old a"))
  end)

  it("waits for it at a shutdown, too", function()
    local slow = controller "old":gsub("print%(", "kube.sleep(1) print(")
    local rig = reload_rig.start { ["main.lua"] = slow:gsub("if ctx.name", 'print("begun " .. ctx.name) if ctx.name') }
    rig:create("a", { v = "1" })
    rig:line("^begun a$")
    rig:save("main.lua", controller "new")
    rig:stderr("reloaded")
    assert.are.equal(0, rig:stop())
    assert.matches("old a 1", rig.process.stdout)
  end)

  it("gives every event to one handler, and to the new one first all that is cached", function()
    local function handlers(word)
      return ([[
        local informer = kube.informer("v1/configmaps", { namespace = "default" })
        informer:add_event_handler {
          on_add = function(obj, initial) print("%s add " .. obj.metadata.name .. " " .. tostring(initial)) end,
          on_update = function(_, obj) print("%s update " .. obj.metadata.name .. " " .. obj.data.v) end,
          on_delete = function(obj) print("%s delete " .. obj.metadata.name) end,
        }
      ]]):format(word, word, word)
    end
    local rig = reload_rig.start { ["main.lua"] = handlers "one" }
    rig:line("^one add kube%-root")
    rig:create("a")
    rig:line("^one add a false$")
    rig:save("main.lua", handlers "two")
    rig:line("^two add a true$")
    rig:update("a", { v = "2" })
    rig:line("^two update a 2$")
    rig:delete("a")
    rig:line("^two delete a$")
    assert.are.equal(0, rig:stop())
    assert.is_nil(rig.process.stdout:match("one update"))
  end)

  it("reads what a new revision watches before it takes over, and goes back when it cannot", function()
    local rig = reload_rig.start { ["main.lua"] = controller "one" }
    rig:create("a", { v = "1" })
    rig:line("^one a 1$")
    rig:save("main.lua", controller("two", 'reads = { "v1/secrets" },'))
    rig:stderr('takes over when it has its caches"[^\n]*"missing":"v1/secrets"')
    rig:line("^two a 1$")
    assert.are.equal(0, rig:stop())
  end)

  it("takes a revision back that fails soon after", function()
    local rig = reload_rig.start { ["main.lua"] = controller "one" }
    rig:create("a", { v = "1" })
    rig:line("^one a 1$")
    rig:save("main.lua", controller "two" .. "kube.sleep(0.2) error('too bad')")
    rig:line("^two a 1$")
    rig:stderr("going back to the one before[^\n]*too bad")
    rig:line("^one a 1$")
    rig:update("a", { v = "2" })
    rig:line("^one a 2$")
    assert.are.equal(0, rig:stop())
  end)

  it("fails when the one before fails, too, after it was taken back", function()
    local rig = reload_rig.start { ["main.lua"] = controller "one" .. [[
      kube.sleep(0)
      while not kube.store.get("spoilt") do kube.sleep(0.05) end
      error("spoilt")
    ]] }
    rig:create("a", { v = "1" })
    rig:line("^one a 1$")
    rig:save("main.lua", controller "two" .. 'kube.sleep(0) kube.store.set("spoilt", true) error("too bad")')
    rig:stderr("going back to the one before[^\n]*too bad")
    assert.are.equal(1, rig.process:wait_exit(30))
    assert.matches("script failed: [^\n]*spoilt", rig.process.stderr)
  end)

  it("can be switched off", function()
    local rig = reload_rig.start({ ["main.lua"] = controller "one" }, { args = { "--no-reload" } })
    rig:create("a", { v = "1" })
    rig:line("^one a 1$")
    rig:save("main.lua", controller "two")
    rig:update("a", { v = "2" })
    rig:line("^one a 2$")
    assert.are.equal(0, rig:stop())
  end)
end)
