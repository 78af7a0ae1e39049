-- What a script's mistakes cost: the task that makes them, and nobody else.
local run = require "spec.support.run"

-- Runs the source until it ends; beside it, another task counts to three and says so.
local function survives(source, args)
  local result = run.run_script(source .. [[
    for i = 1, 3 do kube.sleep(0.01) print("beside", i) end
  ]], { args = args or {}, timeout = 60 })
  assert.are.equal(0, result.code, result.stderr)
  assert.is_truthy(result.stdout:find("beside\t3\n", 1, true), result.stdout)
  return result.stderr, result.stdout
end

local function has(text, wanted)
  assert.is_truthy(text:find(wanted, 1, true), text)
end

describe("the memory limit", function()
  it("stops a task that holds too much, at its line, and the others go on", function()
    local err, out = survives([[
      kube.background("hoarder", function()
        local held = {}
        while true do
          held[#held + 1] = { #held }
        end
      end)
      print("held", collectgarbage("count") < 16 * 1024)
    ]], { "--memory-limit", "16Mi" })
    has(err, "script.lua:4: memory limit of 16 MiB reached: 1")
    has(err, "are in use when all garbage is gone; hold less at a time, or raise --memory-limit")
    has(err, "in task hoarder")
    has(out, "held\ttrue\n")
  end)

  it("refuses one piece that is larger than what is left, at its line", function()
    local err = survives([[
      kube.background("doubler", function()
        local text = "x"
        while true do text = text .. text end
      end)
    ]], { "--memory-limit", "16Mi" })
    has(err, "script.lua:3: memory limit of 16 MiB reached: ")
    has(err, "more were wanted at once; hold less at a time, or raise --memory-limit")
    has(err, "in task doubler")
  end)

  it("leaves alone what makes much garbage and holds little", function()
    local err = survives([[
      kube.sleep(0)
      local held = {}
      for i = 1, 90000 do held[i] = { i } end
      for round = 1, 40 do
        local garbage = {}
        for i = 1, 10000 do garbage[i % 100] = { tostring(i) .. ("x"):rep(50) } end
        kube.sleep(0)
      end
      assert(#held == 90000)
      kube.background("at once", function()
        for i = 1, 1000000 do local garbage = { i } end
      end)
    ]], { "--memory-limit", "16Mi" })
    assert.is_nil(err:find("memory limit", 1, true), err)
  end)

  it("is none with 0, and must be a size", function()
    local err = survives([[
      kube.sleep(0)
      local held = {}
      for i = 1, 1200000 do held[i] = { i } end
    ]], { "--memory-limit", "0" })
    assert.is_nil(err:find("memory", 1, true), err)
    for _, size in ipairs { "12Q", "Mi", "-1", "1.5Gi", "999999999999Gi" } do
      local result = run.run_script("", { args = { "--memory-limit=" .. size } })
      assert.are.equal(2, result.code)
      has(result.stderr, "--memory-limit takes bytes, or a size such as 64Mi or 1Gi, not " .. size)
    end
  end)
end)
