-- The changes of one storage that the store still remembers: a queue that drops its oldest entries
-- when there are too many of them, or when the states they keep alive grow too large.
--
-- A change is { rev, type = "ADDED" | "MODIFIED" | "DELETED", key, old, new }. `old` is the state
-- before (nil for ADDED). `new` is the state after; for DELETED it is the state that watchers are
-- told: the last one, with the deletion's resourceVersion.
local history = {}
history.__index = history

--- `floor` is the revision since when every change is remembered.
function history.new(limits, floor)
  return setmetatable({ limits = limits, floor = floor, first = 1, last = 0, bytes = 0, sizes = {}, entries = {} },
    history)
end

-- About what a value costs in memory. Only the order of magnitude matters.
local function estimate(value)
  if type(value) == "string" then return 24 + #value end
  if type(value) ~= "table" then return 16 end
  local sum = 64
  for key, child in pairs(value) do
    sum = sum + 40 + estimate(child)
    if type(key) == "string" then sum = sum + #key end
  end
  return sum
end

local function drop_first(self)
  local i = self.first
  self.floor = self.entries[i].rev
  self.bytes = self.bytes - self.sizes[i]
  self.entries[i], self.sizes[i] = nil, nil
  self.first = i + 1
end

--- Remembers a change, and forgets old ones as the limits ask.
function history:append(change)
  local size = change.old and estimate(change.old) or 64
  self.last = self.last + 1
  self.entries[self.last], self.sizes[self.last] = change, size
  self.bytes = self.bytes + size
  while self.last - self.first >= self.limits.entries
    or self.bytes > self.limits.bytes and self.first < self.last do
    drop_first(self)
  end
end

--- Forgets everything before `revision`.
function history:expire(revision)
  self.entries, self.sizes = {}, {}
  self.first, self.last, self.bytes, self.floor = 1, 0, 0, revision
end

--- The index of the first change after `since`; above `last` if there is none.
function history:after(since)
  local low, high = self.first, self.last + 1
  while low < high do
    local middle = math.floor((low + high) / 2)
    if self.entries[middle].rev > since then high = middle else low = middle + 1 end
  end
  return low
end

--- The changes after `since`, oldest first; nil if they are not all known.
function history:since(since)
  if since < self.floor then return nil end
  local changes = {}
  for i = self:after(since), self.last do changes[#changes + 1] = self.entries[i] end
  return changes
end

--- What was different at `revision`: key -> the state then, false for none.
function history:undo(revision)
  local states = {}
  for i = self.last, self:after(revision), -1 do
    local change = self.entries[i]
    states[change.key] = change.old or false
  end
  return states
end

return history
