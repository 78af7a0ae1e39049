-- What the revisions of a script wrote of their events and reconciles, checked line by line as it comes. What is
-- kept is per key, and not per line: a ledger may be as long as it likes.
--
--   local ledger = reload_ledger.new { ["pod-1"] = 1, ["pod-2"] = 2 }   -- the versions at the start
--   ledger:sent("pod-1", "MODIFIED", 3)             -- the server changes it
--   ledger:line "event 1 MODIFIED pod-1 3"          -- raises when this must not be the next line
--   ledger:finish()                                 -- raises when lines are missing
--   ledger.events, ledger.revision                  -- how many events; the last revision that wrote of any
--   ledger.reconciled[key]                          -- the version that it was reconciled with last, or "gone"
--   ledger.most, ledger.generations                 -- reconciles at once; revisions that began any
--
-- Each change must come exactly once, those of a key in their order, whichever revisions they come to. Revisions must
-- write of events one behind the other, none left out, and each first of all that is cached, once, as those before
-- left it: "replay N key version". Of reconciles, "begin N key version" and "end N key", no two of a key overlap.
local reload_ledger = {}
local Ledger = {}
Ledger.__index = Ledger

local function check(condition, ...)
  if not condition then error(select("#", ...) > 1 and string.format(...) or ..., 0) end
end

--- versions: by key.
function reload_ledger.new(versions)
  local self = setmetatable({ at = {}, queues = {}, owed = {}, owes = 0, revision = 0, events = 0, reconciled = {},
    running = {}, runs = 0, most = 0, began = {}, generations = 0 }, Ledger)
  for key, version in pairs(versions) do
    self.at[key] = tostring(version)
    self.queues[key] = { first = 1, last = 0 } -- what was sent and has not come yet
  end
  return self
end

function Ledger:sent(key, type, version)
  local queue = self.queues[key]
  queue.last = queue.last + 1
  queue[queue.last] = type .. " " .. version
end

local function take(queue)
  local text = queue[queue.first]
  if not text then return nil end
  queue[queue.first] = nil
  queue.first = queue.first + 1
  if queue.first > queue.last then queue.first, queue.last = 1, 0 end
  return text
end

-- The handlers of revision n write. A new one owes a replay of every key that is there.
function Ledger:_turn_to(n)
  if n == self.revision then return end
  check(n == self.revision + 1, "revision %d wrote of an event after revision %d", n, self.revision)
  check(self.owes == 0, "revision %d did not replay %s", self.revision, next(self.owed) or "")
  self.revision = n
  for key in pairs(self.at) do
    self.owed[key] = true
    self.owes = self.owes + 1
  end
end

local take_line = {}

function take_line.replay(self, n, rest)
  local key, version = rest:match("^(%S+) (%S+)$")
  self:_turn_to(n)
  check(self.owed[key], "a replay too many")
  check(self.at[key] == version, "it was at %s before", self.at[key] or "")
  self.owed[key] = nil
  self.owes = self.owes - 1
end

function take_line.event(self, n, rest)
  local type, key, version = rest:match("^(%S+) (%S+) (%S+)$")
  self:_turn_to(n)
  check(self.owes == 0, "an event before the replay of %s", next(self.owed) or "")
  local expected = take(self.queues[key])
  check(expected == type .. " " .. version, "expected: %s", expected or "nothing")
  self.at[key] = type ~= "DELETED" and version or nil
  self.events = self.events + 1
end

function take_line.begin(self, n, rest)
  local key, version = rest:match("^(%S+) (%S+)$")
  check(not self.running[key], "it still runs in revision %d", self.running[key] or 0)
  self.running[key] = n
  self.runs = self.runs + 1
  self.most = math.max(self.most, self.runs)
  if not self.began[n] then self.generations = self.generations + 1 end
  self.began[n] = true
  self.reconciled[key] = version
end

take_line["end"] = function(self, n, key)
  check(self.running[key] == n, "it did not run there")
  self.running[key] = nil
  self.runs = self.runs - 1
end

function Ledger:line(text)
  local word, n, rest = text:match("^(%a+) (%d+) (.*)$")
  check(take_line[word], "what is this: %s", text)
  local ok, why = pcall(take_line[word], self, tonumber(n), rest)
  check(ok, "%s: %s", text, why)
end

function Ledger:finish()
  for key, queue in pairs(self.queues) do check(take(queue) == nil, "an event of %s was lost", key) end
  check(self.owes == 0, "revision %d did not replay %s", self.revision, next(self.owed) or "")
  check(self.runs == 0, "%s did not end", next(self.running) or "")
end

return reload_ledger
