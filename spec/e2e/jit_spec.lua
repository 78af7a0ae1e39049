-- kube.jit: one script is compiled, and only that one gives up being stopped.
local cleanup = require "spec.support.cleanup"
local reload_rig = require "spec.support.reload_rig"
local run = require "spec.support.run"

local function has(text, wanted)
  assert.is_truthy(text:find(wanted, 1, true), text)
end

-- Computes for longer than a script may, when asked to by an object named `name`. mode: of kube.jit; nil: not called.
local function computes(name, mode)
  return (mode and ('kube.jit "%s"\n'):format(mode) or "\n") .. ([[
    kube.informer("v1/configmaps", { namespace = "default" }):add_event_handler { on_add = function(object)
      if object.metadata.name ~= "%s" then return end
      local began = os.clock()
      while os.clock() - began < 1.3 do end
      print("%s computed")
    end }
    kube.sleep(0)
    print("%s is here")
  ]]):format(name, name, name)
end

describe("kube.jit", function()
  cleanup.install()

  it("lets one script compute, while the one beside it is stopped", function()
    local rig = reload_rig.start({ ["a.lua"] = computes("a", "on"), ["b.lua"] = computes("b", "off") },
      { entry = "a.lua", more = { "b.lua" } })
    rig:line("^a is here$")
    rig:line("^b is here$")
    rig:create("a")
    rig:line("^a computed$")
    rig:create("b")
    rig:stderr("b.lua:5: cpu budget exceeded")
    assert.are.equal(0, rig:stop())
    has(rig.process.stderr, "script ran long without awaiting")
    assert.is_nil(rig.process.stderr:find("a.lua:%d+: cpu budget exceeded"), rig.process.stderr)
    assert.is_nil(rig.process.stdout:find("b computed", 1, true))
  end)

  it("is said by each revision for itself", function()
    local rig = reload_rig.start { ["main.lua"] = computes("a", "off") }
    rig:line("^a is here$")
    rig:create("a")
    rig:stderr("main.lua:5: cpu budget exceeded")
    rig:save("main.lua", computes("b", "on"))
    rig:line("^b is here$")
    rig:create("b")
    rig:line("^b computed$")
    rig:save("main.lua", computes "c")
    rig:line("^c is here$")
    rig:create("c")
    rig:stderr("main.lua:5: cpu budget exceeded[^\n]*\n.*main.lua:5: cpu budget exceeded")
    assert.are.equal(0, rig:stop())
    assert.is_nil(rig.process.stdout:find("[ac] computed"), rig.process.stdout)
  end)

  it("makes arithmetic faster, and is off unless it is asked for", function()
    local function seconds(first)
      local result = run.run_script(first .. [[
        kube.sleep(0)
        local function add(a, b) return a + b end
        local best = math.huge
        for _ = 1, 5 do
          local began, sum = os.clock(), 0
          for i = 1, 3e6 do sum = add(sum, i) end
          best = math.min(best, os.clock() - began)
          kube.sleep(0)
        end
        print(best)
      ]], { timeout = 60 })
      assert.are.equal(0, result.code, result.stderr)
      return tonumber(result.stdout)
    end
    local compiled = seconds 'kube.jit "on"'
    assert.is_true(seconds 'kube.jit "on" kube.jit "off"' > 2 * compiled)
    assert.is_true(seconds "" > 2 * compiled)
  end)

  it("leaves loading its budget", function()
    local result = run.run_script('kube.jit "on"\nwhile true do end', { timeout = 60 })
    assert.are.equal(1, result.code)
    has(result.stderr, "script.lua:2: loading took longer than 0.5 s: ")
  end)

  it("takes on or off, before the first await", function()
    local result = run.run_script('kube.jit "yes"\nkube.jit(true)\nkube.jit()')
    assert.are.equal(1, result.code)
    has(result.stderr, 'script.lua:1: kube.jit takes "on" or "off", not "yes"')
    has(result.stderr, 'script.lua:2: kube.jit takes "on" or "off", not a boolean')
    has(result.stderr, 'script.lua:3: kube.jit takes "on" or "off", not a nil')
    result = run.run_script('kube.sleep(0)\nkube.jit "on"')
    assert.are.equal(1, result.code)
    has(result.stderr, "script.lua:2: kube.jit is for the load phase: call it before the first await")
  end)
end)
