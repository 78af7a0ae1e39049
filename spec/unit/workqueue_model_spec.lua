-- The work queue against a model of it (spec/support/queue_model.lua): thousands of random steps, and
-- after each the two agree. A failure names its seed:
--   MOONWATCH_SEED=n scripts/test spec/unit/workqueue_model_spec.lua
jit.off(true, true)
local queue_kit = require "spec.support.queue_kit"
local queue_model = require "spec.support.queue_model"
local unit = require "spec.support.unit"
local C = unit.C

local SEEDS = 12
local STEPS = 4000
local LIMITS = { base_delay = 1, max_delay = 16 }

-- A small generator of our own: the same numbers everywhere.
local function generator(seed)
  local state = seed * 2654435761 % 4294967296
  return function(n)
    state = (state * 1103515245 + 12345) % 2147483648
    return math.floor(state / 65536) % n + 1
  end
end

-- The core counts in nanoseconds, the model in seconds.
local function round(v) return math.floor(v * 1e6 + 0.5) / 1e6 end

local World = {}
World.__index = World

local function new_world(seed)
  local rig = queue_kit.new(LIMITS)
  return setmetatable({ rig = rig, model = queue_model.new(LIMITS), pick = generator(seed), users = { rig.user },
    turns = 0, held = {} }, World)
end

function World:key() return "key " .. self.pick(self.pick(4) == 1 and 200 or 12) end

function World:options()
  local pick = self.pick
  if pick(3) == 1 then return {} end
  return {
    after = pick(3) == 1 and pick(20) or nil,
    rate_limited = pick(4) == 1,
    priority = pick(2) == 1 and (pick(5) - 3) * (pick(20) == 1 and 900 or 1) or nil,
    reason = pick(3) == 1 and "reason " .. pick(6) or nil,
  }
end

local steps = {}

function steps.add(self)
  local key, how = self:key(), self:options()
  self.model:add(key, how)
  self.rig:add(key, how)
  return "add " .. key
end

function steps.take(self)
  local holder = self.pick(#self.users)
  local wanted = self.model:take(holder)
  local got = self.rig:take(self.users[holder])
  if got then
    table.sort(got.reasons)
    got.waited = round(got.waited)
  end
  assert.are.same(wanted, got)
  if wanted then
    self.turns = self.turns + 1
    self.model.keys[wanted.key].turn = self.turns
    self.held[#self.held + 1] = { wanted.key, holder }
  end
  return "take"
end

function steps.done(self)
  local at = self.pick(20) > 1 and #self.held > 0 and self.pick(#self.held)
  local key, holder = self:key(), self.pick(#self.users)
  if at then key, holder = unpack(table.remove(self.held, at)) end
  local wanted = self.model:done(key, holder)
  assert.are.equal(wanted and 0 or C.MW_ESTATE, self.rig:done(key, self.users[holder]))
  return "done " .. key
end

function steps.forget(self)
  local key = self:key()
  assert.are.equal(self.model:requeues(key), self.rig:requeues(key))
  self.model:forget(key)
  self.rig:forget(key)
  return "forget " .. key
end

function steps.pass(self)
  local seconds = self.pick(3)
  self.model.now = self.model.now + seconds
  self.rig:pass(seconds)
  return "pass " .. seconds
end

-- A user leaves with what it holds, and another takes its number.
function steps.leave(self)
  if #self.users < 2 then
    self.users[2] = C.mw_workqueue_join(self.rig.queue, nil, nil)
    return "join"
  end
  self.model:leave(2)
  C.mw_workqueue_leave(self.users[2])
  self.users[2] = C.mw_workqueue_join(self.rig.queue, nil, nil)
  for i = #self.held, 1, -1 do if self.held[i][2] == 2 then table.remove(self.held, i) end end
  return "leave"
end

function steps.shut_down(self)
  self.model:shut_down()
  C.mw_workqueue_shut_down(self.rig.queue)
  return "shut down"
end

-- How often each step comes, of 100.
local weights = { { 45, "add" }, { 22, "take" }, { 20, "done" }, { 3, "forget" }, { 9, "pass" }, { 1, "leave" } }

function World:step()
  local n = self.pick(100)
  for _, weight in ipairs(weights) do
    if n <= weight[1] then return steps[weight[2]](self) end
    n = n - weight[1]
  end
end

function World:compare()
  local got = self.rig:stats()
  got.bytes = nil
  for name, v in pairs(got) do got[name] = round(v) end
  assert.are.same(self.model:stats(), got)
end

local function play(world, note)
  for i = 1, STEPS do
    note(("step %d: %s"):format(i, tostring(world:step())))
    if i % 10 == 0 then world:compare() end
    if i == STEPS - 200 then steps.shut_down(world) end
  end
  world:compare()
end

describe("a work queue beside its model", function()
  unit.no_leaks()
  local only = tonumber(os.getenv("MOONWATCH_SEED"))

  for seed = only or 1, only or SEEDS do
    it(("does the same for %d random steps, seed %d"):format(STEPS, seed), function()
      local last
      local world = new_world(seed)
      local ok, err = pcall(play, world, function(text) last = text end)
      if world.users[2] then C.mw_workqueue_leave(world.users[2]) end
      world.rig:close()
      if not ok then
        error(("MOONWATCH_SEED=%d scripts/test spec/unit/workqueue_model_spec.lua, after %s:\n%s"):format(seed,
          tostring(last), tostring(err.message or err)), 0)
      end
    end)
  end
end)
