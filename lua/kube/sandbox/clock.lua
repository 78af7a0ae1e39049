-- Time as the sandbox tells it: the machine's, or a virtual one that moves only when told.
local host = require "kube._server"

local clock = {}
clock.__index = clock

function clock.new() return setmetatable({ timers = {} }, clock) end

--- Seconds since 1970.
function clock:now() return self.frozen or host.now() end

--- RFC 3339 with whole seconds, as metav1.Time is written.
function clock.rfc3339(t) return os.date("!%Y-%m-%dT%H:%M:%SZ", math.floor(t)) end

--- With microseconds, as metav1.MicroTime is written.
function clock.micro(t)
  local whole = math.floor(t)
  return ("%s.%06dZ"):format(os.date("!%Y-%m-%dT%H:%M:%S", whole), math.floor((t - whole) * 1e6))
end

--- The present as objects carry it.
function clock:stamp() return clock.rfc3339(self:now()) end

local function disarm(entry)
  if entry.handle then entry.handle:cancel() end
  entry.handle = nil
end

local function arm(self, entry)
  if self.frozen then return end
  entry.handle = host.after(math.max(0, entry.due - host.now()), function()
    entry.handle = nil
    self.timers[entry] = nil
    entry.fn()
  end)
end

local timer = {}
timer.__index = timer

function timer:cancel()
  self.clock.timers[self] = nil
  disarm(self)
end

--- Calls fn once, `seconds` from now by this clock.
function clock:after(seconds, fn)
  self.count = (self.count or 0) + 1
  local entry = setmetatable({ clock = self, due = self:now() + seconds, fn = fn, order = self.count }, timer)
  self.timers[entry] = true
  arm(self, entry)
  return entry
end

--- Stops the clock at t (default: now); timers fire only by advance().
function clock:freeze(t)
  self.frozen = t or self:now()
  for entry in pairs(self.timers) do disarm(entry) end
end

local function next_due(self, limit)
  local first
  for entry in pairs(self.timers) do
    local sooner = not first or entry.due < first.due or entry.due == first.due and entry.order < first.order
    if entry.due <= limit and sooner then first = entry end
  end
  return first
end

--- Moves a frozen clock on and fires what becomes due, in order.
function clock:advance(seconds)
  local limit = self.frozen + seconds
  while true do
    local entry = next_due(self, limit)
    if not entry then break end
    self.frozen = math.max(self.frozen, entry.due)
    self.timers[entry] = nil
    entry.fn()
  end
  self.frozen = limit
end

--- Back to the machine's time.
function clock:thaw()
  local offset = self.frozen and host.now() - self.frozen or 0
  self.frozen = nil
  for entry in pairs(self.timers) do
    entry.due = entry.due + offset
    arm(self, entry)
  end
end

return clock
