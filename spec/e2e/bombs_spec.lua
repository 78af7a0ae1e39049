-- Every kind of mistake, wherever a script's code runs.
local bombs = require "spec.support.bombs"
local run = require "spec.support.run"

local said = bombs.said

local function has(text, wanted)
  assert.is_truthy(text:find(wanted, 1, true), text)
end

-- Whether stderr has a log line or a report about this bomb, with its line.
local function told(stderr, name)
  local line, message = unpack(said[name], 1, 2)
  for report in stderr:gmatch("[^\n]+") do
    local about = report:find("bomb " .. name, 1, true) or report:find("default/" .. name, 1, true)
    local here = not line or report:find(("bombs.lua:%d: "):format(line), 1, true)
    if about and here and (not message or report:find(message, 1, true)) then return true end
  end
  return false
end

local function prepare(source, names)
  local list = {}
  for i, name in ipairs(names) do list[i] = ("%q"):format(name) end
  return ('local kube, bombs = require "kube", require "bombs"\nlocal names = { %s }\n')
    :format(table.concat(list, ", ")) .. source
end

-- Runs the script until it says so, stops it in order, and looks for what was said of each.
local function play(source, names, env)
  names = names or bombs.shallow
  local proc = run.start_script(prepare(source, names),
    { args = { "--memory-limit", "16Mi", "--sandbox" }, files = { ["bombs.lua"] = bombs.source }, env = env })
  proc:wait_line("^all is well$", 200)
  proc:kill("sigterm")
  assert.are.equal(0, proc:wait_exit(30), proc.stderr)
  for _, name in ipairs(names) do
    assert.is_true(told(proc.stderr, name), ("nothing is said of %s:\n%s"):format(name, proc.stderr))
  end
end

local eventually = [[
  local function eventually(condition)
    for _ = 1, 6000 do
      if condition() then return end
      kube.sleep(0.01)
    end
    error("it did not come true in a minute", 2)
  end
  local function create(name)
    kube.client:create { apiVersion = "v1", kind = "ConfigMap", metadata = { name = name, namespace = "default" } }
  end
  local function create_all()
    for _, name in ipairs(names) do create(name) end
  end
]]

describe("every kind of mistake costs only whoever makes it", function()
  it("in a task", function()
    play(eventually .. [[
      local ticks = 0
      kube.every { name = "beside", interval = 0.001, run = function() ticks = ticks + 1 end }
      for _, name in ipairs(names) do
        local over
        kube.background("bomb " .. name, function()
          kube.defer(function() over = ticks end)
          kube.sleep(0)  -- until here it is a part of whoever started it
          bombs[name]()
        end)
        eventually(function() return over and ticks > over end)
      end
      print("all is well")
      kube.sleep(1000)
    ]])
  end)

  it("in a timer", function()
    play(eventually .. [[
      local ticks = {}
      for _, name in ipairs(names) do
        ticks[name] = 0
        kube.every { name = "bomb " .. name, interval = 1000, immediate = true, run = function()
          ticks[name] = ticks[name] + 1
          bombs[name]()
        end }
      end
      local beside = 0
      kube.every { name = "beside", interval = 0.001, run = function() beside = beside + 1 end }
      for _, name in ipairs(names) do
        eventually(function() return ticks[name] == 1 end)
      end
      local before = beside
      eventually(function() return beside > before end)
      print("all is well")
      kube.sleep(1000)
    ]])
  end)

  it("in a handler", function()
    play(eventually .. [[
      local informer, failed, well = kube.informer("v1/configmaps"), {}, {}
      for _, name in ipairs(names) do  -- each has its own, for the errors of one are told now and then
        informer:add_event_handler { on_add = function(map)
          if map.metadata.name ~= name then return end
          failed[name] = true
          bombs[name]()
        end }
      end
      informer:add_event_handler { on_add = function(map) well[map.metadata.name] = true end }
      kube.sleep(0)
      create_all()
      for _, name in ipairs(names) do eventually(function() return failed[name] and well[name] end) end
      create("last")
      eventually(function() return well.last end)
      print("all is well")
      kube.sleep(1000)
    ]])
  end)

  local reconcile = eventually .. [[
      local failed, well = {}, {}
      kube.controller {
        name = "bad", resource = "v1/configmaps", namespaces = { "default" }, retry = { base = 1000, max = 1000 },
        reconcile = function(ctx)
          failed[ctx.name] = true
          if bombs[ctx.name] then bombs[ctx.name]() end
        end,
      }
      kube.controller {
        name = "good", resource = "v1/configmaps", namespaces = { "default" },
        reconcile = function(ctx) well[ctx.name] = true end,
      }
      kube.sleep(0)
      create_all()
      for _, name in ipairs(names) do eventually(function() return failed[name] and well[name] end) end
      create("last")
      eventually(function() return failed.last and well.last end)
      print("all is well")
      kube.sleep(1000)
    ]]

  it("in a reconcile", function() play(reconcile) end)

  it("also when it fills the stack", function()
    play(reconcile, bombs.deep, { MOONWATCH_LEAK_CHECK = "0", ASAN_OPTIONS = "detect_leaks=0" })
  end)

  it("and while loading, the script", function()
    for name in pairs(said) do
      local result = run.run_script(('require("bombs").%s()'):format(name),
        { args = { "--memory-limit", "16Mi" }, files = { ["bombs.lua"] = bombs.source }, timeout = 60 })
      local line, message = unpack(said[name], 1, 2)
      assert.are.equal(1, result.code, name)
      has(result.stderr, ("bombs.lua:%d: "):format(line))
      has(result.stderr, message == "cpu budget exceeded" and "loading took longer than 0.5 s" or message or "")
    end
  end)
end)
