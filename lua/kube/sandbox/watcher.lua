-- One watch: what it selects, what waits for its client, and when it ends. Events wait as pairs of
-- type and document, and become text only when they are sent.
local json = require "kube.sandbox.json"
local list_options = require "kube.sandbox.list_options"
local store = require "kube.sandbox.store"

local watcher = {}
watcher.__index = watcher

-- A client whose socket has so much to take gets no more until it took that.
local BACKLOG = 1024 * 1024
-- One piece of output: large enough to be cheap, small enough to notice a full socket.
local PIECE = 64 * 1024

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
    head = 1,
    tail = 0,
    sent = 0,
    timers = {},
  }, watcher)
end

function watcher:pending() return self.tail - self.head + 1 end

--- Puts an event behind the others.
function watcher:push(kind, doc)
  self.tail = self.tail + 1
  self.types[self.tail], self.docs[self.tail] = kind, doc
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
    self:push(change.type, change.new)
    return true
  end
  local was = change.old ~= nil and selects(self, change.old)
  local is = change.type ~= "DELETED" and selects(self, change.new)
  if not was and not is then return false end
  if is then
    self:push(was and "MODIFIED" or "ADDED", change.new)
  else
    self:push("DELETED", change.type == "DELETED" and change.new or left(change))
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
  local kind, doc = self.types[self.head], self.docs[self.head]
  self.types[self.head], self.docs[self.head] = nil, nil
  self.head = self.head + 1
  self.sent = self.sent + 1
  return self.event(kind, doc)
end

local function is_full(writer) return writer.backlog ~= nil and writer:backlog() > BACKLOG end

--- Sends at most `count` events (default: all that wait). The rest waits while the client is slow.
function watcher:pump(count)
  count = count or math.huge
  while not self.ended and count > 0 and self.head <= self.tail and not is_full(self.writer) do
    local pieces, size = {}, 0
    while size < PIECE and count > 0 and self.head <= self.tail do
      local text = take(self)
      pieces[#pieces + 1] = text
      size, count = size + #text, count - 1
    end
    if not self.writer:write(table.concat(pieces)) then return self:gone() end
  end
end

--- No more of it: the client is gone, or is told so by the caller.
function watcher:gone()
  if self.ended then return end
  self.ended = true
  for _, timer in pairs(self.timers) do timer:cancel() end
  self.timers, self.types, self.docs, self.head, self.tail = {}, {}, {}, 1, 0
  self.hub:remove(self)
end

--- Sends what waits, unless events are held back.
function watcher:flow()
  if not self.hub.paused then self:pump() end
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
