-- What a work queue does, as simply as it can be said: every question walks over all keys. For
-- spec/unit/workqueue_model_spec.lua, which holds the core to it.
local model = {}

local FAIR = 16
local PRIORITY_MAX = 1000

local Model = {}
Model.__index = Model

--- limits: base_delay, max_delay.
function model.new(limits)
  return setmetatable({ limits = limits, keys = {}, now = 0, count = 0, passed = 0, adds = 0, retries = 0,
    taken = 0 }, Model)
end

-- Numbers in the order of asking.
function Model:next()
  self.count = self.count + 1
  return self.count
end

function Model:make_ready(entry)
  entry.state, entry.since = "ready", self.now
  self.adds = self.adds + 1
  if not entry.holder then entry.place = self:next() end
end

-- Those whose time has come, in the order of their times.
function Model:ripen()
  while true do
    local first
    for _, entry in pairs(self.keys) do
      if entry.state == "waiting" and entry.at <= self.now and (not first or entry.at < first.at
        or (entry.at == first.at and entry.asked < first.asked)) then
        first = entry
      end
    end
    if not first then return end
    self:make_ready(first)
  end
end

function Model:delay(entry, how)
  local delay = math.max(how.after or 0, 0)
  if not how.rate_limited then return delay end
  local limited = math.min(self.limits.base_delay * 2 ^ entry.failures, self.limits.max_delay)
  entry.failures = entry.failures + 1
  return delay == 0 and limited or math.min(delay, limited)
end

function Model:add(key, how)
  if self.shut then return end
  local entry = self.keys[key]
  if not entry then
    entry = { key = key, state = "idle", failures = 0, reasons = {} }
    self.keys[key] = entry
  end
  local delay = self:delay(entry, how)
  if delay > 0 then self.retries = self.retries + 1 end
  if how.reason then entry.reasons[how.reason] = true end
  local priority = math.max(-PRIORITY_MAX, math.min(PRIORITY_MAX, how.priority or 0))
  if entry.state == "idle" then
    entry.priority = priority
  elseif priority > entry.priority then
    entry.priority = priority
    if entry.state == "ready" and not entry.holder then entry.place = self:next() end
  end
  if entry.state == "ready" then return end
  local at = self.now + delay
  if delay == 0 then
    self:make_ready(entry)
  elseif entry.state == "idle" then
    entry.state, entry.at, entry.asked = "waiting", at, self:next()
  else
    entry.at = math.min(entry.at, at)
  end
end

-- The first of each priority among those that could be handed out: a list, highest first.
function Model:heads()
  local by_priority, list = {}, {}
  for _, entry in pairs(self.keys) do
    if entry.state == "ready" and not entry.holder then
      local head = by_priority[entry.priority]
      if not head or entry.place < head.place then by_priority[entry.priority] = entry end
    end
  end
  for _, entry in pairs(by_priority) do list[#list + 1] = entry end
  table.sort(list, function(a, b) return a.priority > b.priority end)
  return list
end

function Model:choose()
  local heads = self:heads()
  if #heads <= 1 then
    if #heads == 1 then self.passed = 0 end
    return heads[1]
  end
  self.passed = self.passed + 1
  if self.passed < FAIR then return heads[1] end
  self.passed = 0
  local oldest = heads[1]
  for _, entry in ipairs(heads) do if entry.since < oldest.since then oldest = entry end end
  return oldest
end

--- What is handed out to `holder`, or nil.
function Model:take(holder)
  self:ripen()
  local entry = self:choose()
  if not entry then return nil end
  local reasons = {}
  for reason in pairs(entry.reasons) do reasons[#reasons + 1] = reason end
  table.sort(reasons)
  entry.state, entry.holder, entry.started, entry.reasons = "idle", holder, self.now, {}
  self.taken = self.taken + 1
  return { key = entry.key, priority = entry.priority, waited = self.now - entry.since, requeues = entry.failures,
    reasons = reasons }
end

function Model:drop(entry)
  if entry.state == "idle" and not entry.holder and entry.failures == 0 then self.keys[entry.key] = nil end
end

--- Whether `holder` held the key.
function Model:done(key, holder)
  local entry = self.keys[key]
  if not entry or entry.holder ~= holder then return false end
  entry.holder = nil
  if entry.state == "ready" then entry.place = self:next() end
  self:drop(entry)
  return true
end

--- The holder goes; what it held is ready again, in the order of taking.
function Model:leave(holder)
  local held = {}
  for _, entry in pairs(self.keys) do if entry.holder == holder then held[#held + 1] = entry end end
  table.sort(held, function(a, b) return a.turn < b.turn end)
  for _, entry in ipairs(held) do
    entry.holder = nil
    if entry.state == "ready" then
      entry.place = self:next()
    elseif not self.shut then
      if entry.state == "idle" then self:make_ready(entry) end
    end
    self:drop(entry)
  end
end

function Model:forget(key)
  local entry = self.keys[key]
  if not entry then return end
  entry.failures = 0
  self:drop(entry)
end

function Model:requeues(key) return self.keys[key] and self.keys[key].failures or 0 end

function Model:shut_down()
  self.shut = true
  for _, entry in pairs(self.keys) do
    if entry.state == "waiting" then
      entry.state = "idle"
      self:drop(entry)
    end
  end
end

--- The same counts as those of the core.
function Model:stats()
  self:ripen()
  local s = { ready = 0, locked = 0, waiting = 0, processing = 0, failing = 0, keys = 0, unfinished = 0, longest = 0,
    adds = self.adds, retries = self.retries, taken = self.taken }
  for _, entry in pairs(self.keys) do
    s.keys = s.keys + 1
    if entry.state == "ready" then
      local name = entry.holder and "locked" or "ready"
      s[name] = s[name] + 1
    end
    if entry.state == "waiting" then s.waiting = s.waiting + 1 end
    if entry.failures > 0 then s.failing = s.failing + 1 end
    if entry.holder then
      s.processing = s.processing + 1
      s.unfinished = s.unfinished + self.now - entry.started
      s.longest = math.max(s.longest, self.now - entry.started)
    end
  end
  return s
end

return model
