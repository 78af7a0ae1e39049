-- What happens in a world, from a seed: its objects, its changes, its faults, and when.
--
-- Changes and faults have random numbers of their own, so that the one does not depend on how far
-- the other has come. When all is done, faults stop and an object "zz-done" appears.
local uv = require "luv"
local acts = require "spec.support.fault_acts"
local fault_rand = require "spec.support.fault_rand"
local fault_world = require "spec.support.fault_world"

-- SURELY_SHORT: a watch without an event that ends before so many seconds is a short one to the client, however
-- slow the machine is: a world does not live as long.
local fault_plan = { MIN_EVENTS = 200, MIN_FAULTS = 10, DONE = "zz-done", SURELY_SHORT = 3600 }
local Player = {}
Player.__index = Player

local NAMES, GROUPS, TAGS = 90, { "g0", "g1", "g2" }, { "a", "b", "c", "d" }

-- What happens does not grow with the time that a slow machine takes: so much without the client
-- hearing of it, and so much beside each fault when all events that are wanted were sent.
local MAX_AHEAD, BESIDE_A_FAULT = 80, 8

-- Acts that cost the client a second, because a lost connection or a Retry-After says so.
local SLOW = { "watch.retry_later", "watch.lost", "stream_list.lost", "list.lost" }
local is_slow = {}
for _, name in ipairs(SLOW) do is_slow[name] = true end

-- How often a hook is taken.
local weights = { event = 5, stream = 9, watch = 6, stream_list = 7, list = 4, page = 3 }

local function sorted_names(of)
  local names = {}
  for name in pairs(of) do names[#names + 1] = name end
  table.sort(names)
  return names
end

local names_of = {}
for hook in pairs(weights) do
  names_of[hook] = {}
  for _, name in ipairs(sorted_names(acts[hook])) do
    local body = (hook == "list" or hook == "page") and acts.bodies[name]
    if not body and not is_slow[hook .. "." .. name] then table.insert(names_of[hook], name) end
  end
end

local function pick_act(r, o)
  local hooks = {}
  for _, hook in ipairs(sorted_names(weights)) do
    local useless = (hook == "stream_list" and (o.no_streaming or not o.client_streams))
      or (hook == "page" and not o.page_size)
    for _ = 1, useless and 0 or weights[hook] do hooks[#hooks + 1] = hook end
  end
  local hook = r:pick(hooks)
  return { hook = hook, name = r:pick(names_of[hook]) }
end

local function pick_acts(r, o)
  local list = {}
  for i = 1, r:int(fault_plan.MIN_FAULTS, fault_plan.MIN_FAULTS + 4) do list[i] = pick_act(r, o) end
  if o.own_port then
    for _ = 1, r:int(1, 2) do
      table.insert(list, r:int(1, #list), { hook = "refuse", name = r:pick { "watch", "snapshot" } })
    end
  end
  if r:chance(0.08) then
    local hook, name = r:pick(SLOW):match("(.*)%.(.*)")
    if hook ~= "stream_list" or o.client_streams and not o.no_streaming then
      table.insert(list, r:int(1, #list), { hook = hook, name = name })
    end
  end
  return list
end

-- Bodies that do not come at once have random numbers of their own: the other faults of a seed are
-- the same with and without them.
local function add_bodies(list, o)
  local r, names = fault_rand.new(o.seed, 8), sorted_names(acts.bodies)
  for _, hook in ipairs { "list", "page" } do
    if r:chance(0.5) and (hook == "list" or o.page_size) then
      table.insert(list, r:int(1, #list), { hook = hook, name = r:pick(names) })
    end
  end
end

--- The options of the world of a seed. Some concern the client: client_streams, page_size, budget,
--- fifo_bound, late (seconds after which a handler is added), resync, short_watch.
function fault_plan.options(seed)
  local r = fault_rand.new(seed, 1)
  local o = { seed = seed, ns = "w" .. seed }
  local size = r:next()
  o.initial = size < 0.2 and r:int(0, 3) or size < 0.85 and r:int(4, 20) or r:int(21, 60)
  o.rv = r:pick { 1, 7, 95, 990, 99990, 4294967290, 9007199254000000 }
  o.client_streams = not r:chance(0.15)
  o.no_streaming = r:chance(0.1)
  o.page_size = r:chance(0.4) and r:int(2, 9) or nil
  o.budget = r:chance(0.3) and 60 or nil
  o.fifo_bound = r:chance(0.15) and r:int(1, 8) or nil
  o.own_port = r:chance(0.2)
  o.starts_closed = o.own_port and r:chance(0.3)
  o.bare_items = r:chance(0.5)
  o.late = r:int(0, 80) / 100
  o.faults = pick_acts(r, o)
  add_bodies(o.faults, o)
  o.resync = fault_rand.new(seed, 7):chance(0.2) and 0.2 or nil
  o.short_watch = fault_rand.new(seed, 9):chance(0.7) and fault_plan.SURELY_SHORT or 0.05
  return o
end

-- Changes.

local function fields(r)
  local tags = {}
  for _, tag in ipairs(TAGS) do
    if r:chance(0.25) then tags[#tags + 1] = tag end
  end
  return { group = r:pick(GROUPS), n = r:int(0, 99), tags = tags, pad = r:int(1, 6) }
end

local function name_of(i) return ("k%02d"):format(i) end

-- A name that is used, or one that is not, as wanted.
local function pick_name(r, world, used)
  local from = r:int(1, NAMES)
  for i = 0, NAMES - 1 do
    local name = name_of((from + i) % NAMES + 1)
    if (world.objects[name] ~= nil) == used then return name end
  end
end

--- The next thing that happens to the objects.
function Player:change()
  local r, world = self.changes_rand, self.world
  local p = r:next()
  self.changes = self.changes + 1
  local full = world.count >= math.min(2 * self.options.initial + 10, NAMES - 10)
  if world.count == 0 or (p < 0.25 and not full) then
    world:put(pick_name(r, world, false), fields(r))
  elseif p < 0.65 then
    world:put(pick_name(r, world, true), fields(r))
  else
    local name = pick_name(r, world, true)
    world:delete(name)
    if p > 0.85 then
      self.changes = self.changes + 1
      world:put(name, fields(r))
    end
  end
end

local function started(world)
  local n = world.requests
  return n.list + n.watch + n.stream_list > 0
end

local function has_enough(self)
  return self.changes >= fault_plan.MIN_EVENTS and self.world.events_sent >= fault_plan.MIN_EVENTS
end

local function is_far_ahead(self)
  local world = self.world
  local s = world.stream
  if s and s.plain then self.client_at = s.at end
  return #world.log - self.client_at > MAX_AHEAD
end

local function burst(self)
  local r = self.time_rand
  if self.options.starts_closed and not self.opened then return end
  if not started(self.world) or is_far_ahead(self) then return end
  local enough = has_enough(self)
  local awaited = self.world.armed[1] and self.world.armed[1].hook == "event"
  if enough and not awaited then
    if self.beside == 0 or not r:chance(0.3) then return end
    self.beside = self.beside - 1
  end
  local many = not enough and r:chance(0.1)
  for _ = 1, enough and 1 or many and r:int(10, 40) or r:int(1, 4) do self:change() end
end

-- Faults.

-- Ends the open watch so that the client watches again.
local function make_rewatch(world, s)
  world:fault("trigger.rewatch")
  local r = world.faults_rand
  if s.events == 0 then
    s:error(acts.throttled, "watch")
  elseif r:chance(0.5) then
    s:finish()
  else
    s:cut(r:pick { "fin", "rst" })
  end
end

local function make_relist(world, s)
  world:fault("trigger.relist")
  local r = world.faults_rand
  s:error(r:pick { acts.pick_expired, acts.pick_other }(r), "snapshot")
end

local function refuse(self, act, s)
  local world, server = self.world, self.world.server
  if act.name == "snapshot" then
    s:error(acts.pick_expired(world.faults_rand), nil)
  elseif s.events == 0 then
    world:retry(act)
    return
  else
    s:cut("fin")
  end
  world:fault("refuse." .. act.name)
  table.remove(world.armed, 1)
  world:expect(nil)
  server:refuse()
  self.closed = true
  self:after(world.faults_rand:int(20, 90), function()
    server:listen()
    self.closed = false
  end)
end

-- Brings the moment about that the first armed act waits for.
local function advance(self)
  local world = self.world
  local act, s = world.armed[1], world.stream
  if not s or not s.plain or s.busy then return end
  if act.hook == "stream" then
    world:play("stream", s)
  elseif act.hook == "refuse" then
    refuse(self, act, s)
  elseif act.hook == "watch" then
    world:retry(act)
    make_rewatch(world, s)
  elseif act.hook ~= "event" then
    world:retry(act)
    make_relist(world, s)
  end
end

--- The end: the last object, and if a watch is open, behind it a bookmark (n says that it comes).
function Player:finish()
  local world = self.world
  local s = world.stream
  local bookmark = s and s.plain and not s.busy
  self.finished = true
  world:note("faults end")
  world:put(fault_plan.DONE, { group = "g1", n = bookmark and 1 or 0, tags = {}, pad = 1 })
  if not bookmark then return end
  world.rv = world.rv + 1
  s:send_bookmark(world.rv)
  world.model:sent(world.rv)
end

local function step(self)
  local world = self.world
  if world.armed[1] then
    advance(self)
  elseif self.next_fault <= #self.options.faults then
    local act = self.options.faults[self.next_fault]
    world.armed[1] = { hook = act.hook, name = act.name }
    self.next_fault = self.next_fault + 1
    self.beside = BESIDE_A_FAULT
  elseif world.faults < fault_plan.MIN_FAULTS then
    world.armed[1] = { hook = "stream", name = "finish" }
    self.beside = BESIDE_A_FAULT
  elseif has_enough(self) and not self.closed then
    self:finish()
  end
end

-- Time.

function Player:after(ms, fn)
  local timer = uv.new_timer()
  self.timers[timer] = true
  timer:start(ms, 0, function()
    self.timers[timer] = nil
    timer:close()
    fn()
  end)
end

-- Calls fn again and again, with pauses of low..high milliseconds, until all is done.
local function every(self, low, high, fn)
  self:after(self.time_rand:int(low, high), function()
    if self.finished then return end
    fn(self)
    if not self.finished then every(self, low, high, fn) end
  end)
end

function Player:start()
  every(self, 2, 20, burst)
  every(self, 5, 25, step)
  if self.options.starts_closed then
    self.world.server:refuse()
    self:after(400, function()
      self.world.server:listen()
      self.opened = true
    end)
  end
end

function Player:stop()
  self.finished = true
  for timer in pairs(self.timers) do timer:close() end
  self.timers = {}
end

--- The world of a seed with its objects in it, and the player that makes things happen. server is
--- where it is to be found; common are further options of the world.
function fault_plan.new(options, server, common)
  local seed = options.seed
  local world_options = { server = server, acts = acts, surely_short = options.short_watch == fault_plan.SURELY_SHORT,
    rand = fault_rand.new(seed, 2), rv_rand = fault_rand.new(seed, 3), faults_rand = fault_rand.new(seed, 4) }
  for _, from in ipairs { options, common } do
    for key, value in pairs(from) do
      if key ~= "faults" then world_options[key] = value end
    end
  end
  local world = fault_world.new(world_options)
  local player = setmetatable({ options = options, world = world, timers = {}, next_fault = 1,
    changes = 0, beside = BESIDE_A_FAULT, changes_rand = fault_rand.new(seed, 5),
    time_rand = fault_rand.new(seed, 6) }, Player)
  for _ = 1, options.initial do
    world:put(pick_name(player.changes_rand, world, false), fields(player.changes_rand))
  end
  world.seeded, player.client_at = #world.log, #world.log
  world.next_change = function() player:change() end
  server:add_world(options.ns, world)
  return player
end

return fault_plan
