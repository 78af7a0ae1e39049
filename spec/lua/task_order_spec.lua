-- MOONWATCH_TASK_SEED: which of the tasks that could run does is drawn.
local run = require "spec.support.run"

-- Tasks of which several are ready at once, again and again, and by no clock; what ran, in order.
local source = [[
  local kube = require "kube"
  local order = {}
  local function note(text) order[#order + 1] = text end
  local stop = kube.stop_channel()
  kube.sleep(0)
  local tasks = {}
  for i = 1, 6 do
    tasks[#tasks + 1] = kube.background("sleeper", function()
      for n = 1, 4 do kube.sleep(0) note("s" .. i .. n) end
    end)
    tasks[#tasks + 1] = kube.background("waiter", function() stop:wait() note("w" .. i) end)
  end
  stop:close()
  local first = kube.any { function() kube.sleep(0) return "x" end, function() kube.sleep(0) return "y" end }
  note(tostring(first))
  for _, task in ipairs(tasks) do task:wait() end
  print(table.concat(order, " "))
]]

local function order_of(seed)
  local result = run.run_script(source, { timeout = 20, args = { "--sandbox" },
    env = { MOONWATCH_TASK_SEED = seed and tostring(seed) or "" } })
  assert(result.code == 0, result.stdout .. result.stderr)
  return result.stdout
end

-- Each thing that happened, sorted.
local function parts_of(order)
  local parts = {}
  for part in order:gmatch("%S+") do parts[#parts + 1] = part:gsub("^[xy]$", "first") end
  table.sort(parts)
  return parts
end

describe("the order of tasks", function()
  it("is the same for the same seed, another for another, and the same things happen in each", function()
    local first = order_of(1)
    assert.are.equal(first, order_of(1))
    local seen, kinds = { [first] = true }, 1
    for seed = 2, 6 do
      local order = order_of(seed)
      assert.are.same(parts_of(first), parts_of(order))
      if not seen[order] then kinds = kinds + 1 end
      seen[order] = true
    end
    assert.are.equal(6, kinds)
  end)

  it("is that in which they are woken where no seed is set", function()
    local order = order_of(nil)
    assert.are.equal(order, order_of(nil))
    local sleepers = {}
    for name in order:gmatch("s%d%d") do sleepers[#sleepers + 1] = name end
    local wanted = {}
    for n = 1, 4 do
      for i = 1, 6 do wanted[#wanted + 1] = ("s%d%d"):format(i, n) end
    end
    assert.are.same(wanted, sleepers)
  end)
end)
