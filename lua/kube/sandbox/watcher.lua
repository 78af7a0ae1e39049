-- One watch: what it selects, what waits for its client, and when it ends. Events wait as type,
-- document and the revision they are of, and become text only when they are sent. What waits is what
-- the store's history keeps anyway: a client that falls further behind than that is cut.
local host = require "kube._server"
local json = require "kube.sandbox.json"
local list_options = require "kube.sandbox.list_options"
local store = require "kube.sandbox.store"

local watcher = {}
watcher.__index = watcher

-- One piece of output. The next one goes out when the socket has taken it, so this is also how much
-- of a client's backlog is text.
local PIECE = 128 * 1024
-- Pieces that one watch may send before the others have their turn.
local PIECES = 8

--- `options` as list_options.parse reads them; `event(type, doc)` makes the text of an event.
function watcher.new(hub, R, namespace, options, event)
  local first, stop = store.bounds(namespace)
  return setmetatable({
    hub = hub,
    R = R,
    namespace = namespace,
    options = options,
    event = event,
    first_key = first,
    stop_key = stop,
    selective = not options.labels:empty() or not options.fields:empty(),
    types = {},
    docs = {},
    revisions = {},
    head = 1,
    tail = 0,
    sent = 0,
    timers = {},
  }, watcher)
end

function watcher:pending() return self.tail - self.head + 1 end

--- Puts an event behind the others; `revision` (now) is when it was true.
function watcher:push(kind, doc, revision)
  local tail = self.tail + 1
  self.tail = tail
  self.types[tail], self.docs[tail], self.revisions[tail] = kind, doc, revision or self.hub.store.revision
end

--- Whether what waits is older than `floor`, the first revision that the store remembers.
function watcher:is_behind(floor)
  local oldest = self.revisions[self.head]
  return oldest ~= nil and oldest < floor
end

local function selects(self, doc) return not self.selective or list_options.selects(self.options, doc) end

--- Puts the documents of a view there, as if they were created now.
function watcher:push_state(view)
  for _, doc in view:each(self.first_key, self.stop_key) do
    if selects(self, doc) then self:push("ADDED", doc) end
  end
end

-- What was selected until this change, with the change's resourceVersion; made once per change.
local function left(change)
  change.left = change.left or store.with_version(change.old, change.rev)
  return change.left
end

--- Puts a change there, as it looks through the selectors. True when it is to be seen.
function watcher:push_change(change)
  if change.rev <= self.since then return false end
  if self.first_key and (change.key < self.first_key or change.key >= self.stop_key) then return false end
  if not self.selective then
    self:push(change.type, change.new, change.rev)
    return true
  end
  local was = change.old ~= nil and selects(self, change.old)
  local is = change.type ~= "DELETED" and selects(self, change.new)
  if not was and not is then return false end
  if is then
    self:push(was and "MODIFIED" or "ADDED", change.new, change.rev)
  else
    self:push("DELETED", change.type == "DELETED" and change.new or left(change), change.rev)
  end
  return true
end

--- Puts a bookmark there: everything up to now was sent.
function watcher:push_bookmark(annotations)
  local revision = self.hub.store.revision
  -- Who waits for the future has not been told anything yet.
  if revision < self.since then return end
  self:push("BOOKMARK", json.object {
    kind = self.R.kind,
    apiVersion = self.R.api_version,
    metadata = json.object { resourceVersion = ("%d"):format(revision), annotations = annotations },
  })
end

local function take(self)
  local head = self.head
  local kind, doc = self.types[head], self.docs[head]
  self.types[head], self.docs[head], self.revisions[head] = nil, nil, nil
  self.head = head + 1
  self.sent = self.sent + 1
  return self.event(kind, doc)
end

-- The text of one piece of at most `count` events, and how many there are in it.
local function piece(self, count)
  local texts, n, size = {}, 0, 0
  while size < PIECE and n < count and self.head <= self.tail do
    n = n + 1
    texts[n] = take(self)
    size = size + #texts[n]
  end
  return table.concat(texts), n
end

-- Sends one piece; how many events there were, none while the client is slow. A watch whose events
-- cannot be written ends alone: the others are sent theirs by the same loop.
local function send_piece(self, count)
  local writer = self.writer
  if self.ended or self.head > self.tail or writer.backlog and writer:backlog() > 0 then return 0 end
  local ok, text, n = xpcall(piece, debug.traceback, self, count)
  if not ok then
    host.log("error", "the sandbox failed on a watch", { resource = self.R.resource_name, why = text })
    self:cut()
    return 0
  end
  if not writer:write(text) then self:gone() end
  return n
end

--- Sends at most `count` events, as far as the client takes them now.
function watcher:pump(count)
  while count > 0 do
    local sent = send_piece(self, count)
    if sent == 0 then return end
    count = count - sent
  end
end

--- No more of it: the client is gone, or is told so by the caller.
function watcher:gone()
  if self.ended then return end
  self.ended = true
  for _, timer in pairs(self.timers) do timer:cancel() end
  self.timers, self.types, self.docs, self.revisions, self.head, self.tail = {}, {}, {}, {}, 1, 0
  self.hub:remove(self)
end

--- Sends what waits, unless events are held back or the client is slow; a long story in turns.
function watcher:flow()
  if self.hub.paused then return end
  for _ = 1, PIECES do
    if send_piece(self, math.huge) == 0 then return end
  end
  self.hub:schedule()
end

--- Ends it in an orderly way, without what still waits.
function watcher:stop()
  if self.ended then return end
  self:gone()
  self.writer:finish()
end

--- Ends it in an orderly way.
function watcher:finish()
  self:flow()
  self:stop()
end

--- Ends it as a broken connection does.
function watcher:cut()
  if self.ended then return end
  self:gone()
  self.writer:reset()
end

return watcher
