-- Random trees of tasks: whatever is cancelled, times out or fails, no task is left behind, every deferred
-- function ran once, and children never outlive their parents. MOONWATCH_SEED repeats a run.
local run = require "spec.support.run"

local source = [[
local kube = require "kube"
local seed, rounds = %d, %d
math.randomseed(seed)
local random = math.random

local begun, ended, deferred, ran, alive = 0, 0, 0, 0, 0
local known = {}

local node
local function leave(state)
  assert(state.open, "a task ended twice")
  state.open = false
  alive = alive - 1
  ended = ended + 1
  for _, child in ipairs(state.children) do assert(not child.open, "a child outlives its parent") end
end

local function act(depth, state)
  local choice = random(12)
  if choice <= 3 then
    kube.sleep(random(0, 4) / 1000)
  elseif choice == 4 then
    error(random(2) == 1 and "text" or { code = "table" })
  elseif choice == 5 then
    pcall(kube.sleep, random(0, 4) / 1000)
  elseif choice == 6 and #known > 0 then
    known[random(#known)]:cancel()
  elseif choice == 7 and #known > 0 and random(3) == 1 then
    local other = known[random(#known)]
    pcall(kube.timeout, 0.005, function() return other:wait() end)
  elseif depth > 0 then
    node(depth - 1, state, choice)
  end
end

-- The function of a task that does a few things and keeps account of itself.
local function body(depth, parent)
  local state = { open = true, children = {} }
  parent.children[#parent.children + 1] = state
  return function()
    begun, alive = begun + 1, alive + 1
    kube.defer(function() leave(state) end)
    for _ = 1, random(0, 2) do
      deferred = deferred + 1
      local awaits, done = random(3) == 1, false
      kube.defer(function()
        assert(not done, "deferred twice")
        done, ran = true, ran + 1
        if awaits then kube.sleep(0.001) end
        if random(10) == 1 then error("deferred") end
      end)
    end
    for _ = 1, random(0, 4) do act(depth, state) end
  end, state
end

-- A task that never ran has nothing to account for.
local function list(depth, parent)
  local fns = {}
  for i = 1, random(0, 4) do
    local fn, state = body(depth, parent)
    state.open = false
    fns[i] = function() state.open = true return fn() end
  end
  return fns
end

function node(depth, parent, choice)
  local limit = { limit = random(3) }
  if choice == 8 then
    known[#known + 1] = kube.spawn((body(depth, parent)))
    if random(2) == 1 then pcall(known[#known].wait, known[#known]) end
  elseif choice == 9 then
    pcall(kube.all, list(depth, parent), limit)
  elseif choice == 10 then
    pcall(kube[random(2) == 1 and "any" or "all_settled"], list(depth, parent), limit)
  elseif choice == 11 then
    local fn, state = body(depth, parent)
    state.open = false
    pcall(kube.timeout, random(1, 6) / 1000, function() state.open = true return fn() end)
  else
    local fn, state = body(depth, parent)
    state.open = false
    pcall(kube.shield, function() state.open = true return fn() end)
  end
end

local task = require "kube._task"
for _ = 1, rounds do
  known = {}
  local root = { children = {}, open = true }
  local fn = body(4, root)
  local canceller = kube.background("canceller", function()
    kube.sleep(random(1, 10) / 1000)
    if #known > 0 then known[random(#known)]:cancel() end
  end)
  task.run({ name = "root", timeout = random(2) == 1 and random(1, 20) / 1000 or nil }, fn)
  assert(alive == 0, "tasks are left: " .. alive)
  pcall(canceller.wait, canceller)
end
assert(begun == ended, begun .. " began and " .. ended .. " ended")
assert(deferred == ran, deferred .. " were deferred and " .. ran .. " ran")
print("done", begun > rounds, deferred > 0)
]]

describe("random trees of tasks", function()
  local given = tonumber(os.getenv("MOONWATCH_SEED") or "")
  local first = given or os.time()
  for i = 0, given and 0 or 3 do
    it(("end in order, every one (seed %d)"):format(first + i), function()
      local result = run.run_script(source:format(first + i, 150),
        { timeout = 60, args = { "--log-level", "error" } })
      assert.are.same({ 0, "done\ttrue\ttrue\n" }, { result.code, result.stdout },
        ("seed %d: %s"):format(first + i, result.stderr:sub(-3000)))
    end)
  end
end)
