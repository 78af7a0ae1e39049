-- Watches: streams of events, one JSON object per line. The hub hears every change, hands it to the
-- watchers of its storage, and lets them send once per turn of the loop, so that a burst of changes
-- is one write. It can hold them back: pause, step, resume.
local always = require "kube.sandbox.always"
local encoded = require "kube.sandbox.encoded"
local host = require "kube._server"
local json = require "kube.sandbox.json"
local list_options = require "kube.sandbox.list_options"
local negotiate = require "kube.sandbox.negotiate"
local object = require "kube.sandbox.object"
local status = require "kube.sandbox.status"
local watcher = require "kube.sandbox.watcher"

local watch = {}

local Hub = {}
Hub.__index = Hub

-- Seconds: between bookmarks, from the last one to the end, and how long a watch lasts that did not say.
local BOOKMARK, BOOKMARK_BEFORE_END, SHORTEST, LONGEST = 60, 2, 1800, 3600

-- Changes that may be held back from one watcher beyond those it began with, before it is dropped.
local PENDING_MAX = 100000

--- The hub of an instance { store, clock }.
function watch.new(S)
  local self = setmetatable({
    store = S.store,
    clock = S.clock,
    texts = encoded.new(),
    storages = {},
    count = 0,
    pending_max = PENDING_MAX,
  }, Hub)
  self.subscription = S.store:subscribe_all(function(change, storage) self:on_change(change, storage) end)
  self.restored = S.store:on_restore(function() self:finish() end)
  return self
end

local function set_of(self, storage)
  self.storages[storage] = self.storages[storage] or {}
  return self.storages[storage]
end

local function add(self, w)
  local members = set_of(self, w.R.storage)
  members[#members + 1] = w
  self.count = self.count + 1
end

--- Forgets a watcher; it calls this itself.
function Hub:remove(w)
  local members = set_of(self, w.R.storage)
  for i, other in ipairs(members) do
    if other == w then
      table.remove(members, i)
      self.count = self.count - 1
      return
    end
  end
end

-- A copy, because watchers leave while they are gone through.
local function watchers(self, storage)
  local all = {}
  for name, members in pairs(self.storages) do
    if not storage or name == storage then
      for _, w in ipairs(members) do all[#all + 1] = w end
    end
  end
  return all
end

--- Sends what waits in the next turn of the loop.
function Hub:schedule()
  if self.scheduled then return end
  self.scheduled = true
  host.after(0, function() self:flush() end)
end

-- A client that did not take what waits for it in all the time that the store remembers is cut.
local function drop_slow(self, w, floor)
  if self.paused then
    if w:pending() > w.pending_max then w:stop() end
  elseif w:is_behind(floor) then
    w:flow()
    if w:is_behind(floor) then w:cut() end
  end
end

function Hub:on_change(change, storage)
  local members = self.storages[storage]
  if not members or not members[1] then return end
  local floor = self.store:oldest(storage)
  for i = #members, 1, -1 do
    local w = members[i]
    if w:push_change(change) then self:schedule() end
    drop_slow(self, w, floor)
  end
end

--- Sends what waits, to everybody; the loop calls this after each turn with changes.
function Hub:flush()
  self.scheduled = false
  for _, w in ipairs(watchers(self)) do w:flow() end
end

--- Holds all events back, until step or resume.
function Hub:pause() self.paused = true end

--- Lets every watcher have its next `count` events (1) while they are held back.
function Hub:step(count)
  for _, w in ipairs(watchers(self)) do w:pump(count or 1) end
end

--- Events flow again, those that were held back first.
function Hub:resume()
  self.paused = false
  self:flush()
end

--- Sends all watches that want bookmarks one, behind what waits.
function Hub:bookmark()
  for _, w in ipairs(watchers(self)) do
    if w.options.bookmarks then w:push_bookmark() end
  end
  if not self.paused then self:flush() end
end

--- Ends all watches, or those of one storage (its definition is gone), once they were told all.
function Hub:finish(storage)
  for _, w in ipairs(watchers(self, storage)) do w:finish() end
end

--- Breaks the connections of all watches.
function Hub:cut()
  for _, w in ipairs(watchers(self)) do w:cut() end
end

--- Ends all watches and hears no more changes.
function Hub:close()
  self.subscription:cancel()
  self.restored:cancel()
  self:finish()
end

--- What is watched: { paused, items = array of { resource, namespace, sent, pending } }.
function Hub:state()
  local items = json.array {}
  for i, w in ipairs(watchers(self)) do
    items[i] = json.object {
      resource = w.R.resource_name,
      namespace = w.namespace,
      sent = w.sent,
      pending = w:pending(),
    }
  end
  return json.object { paused = self.paused or false, items = items }
end

-- Events as text ---------------------------------------------------------------------------------

local function line(kind, text) return ('{"type":"%s","object":%s}\n'):format(kind, text) end

-- What an event shows: a Status and a bookmark are not from the store.
local function shown(ctx, representation, kind, doc)
  if kind == "ERROR" then return doc end
  if kind ~= "BOOKMARK" then
    doc = object.view(ctx.R, doc)
  elseif representation.as == "Table" then
    doc = always.fill(ctx.R, doc)
  end
  return negotiate.transform(ctx, representation, doc)
end

-- Tables show ages, so their text is not shared; only the first one has the columns.
local function table_event(ctx, representation)
  local titled = false
  return function(kind, doc)
    local seen = shown(ctx, representation, kind, doc)
    if titled and seen.kind == "Table" then seen = json.with(seen, "columnDefinitions", json.null) end
    titled = true
    return line(kind, json.encode(seen))
  end
end

local function shared_event(ctx, representation)
  local texts = ctx.S.watches.texts
  -- A definition that changes changes what is read of the same document.
  local edition = json.get(ctx.R, "crd", "metadata", "generation") or ""
  local form = table.concat({ representation.as or "", representation.version, ctx.R.api_version, edition }, " ")
  local function encode(doc) return json.encode(shown(ctx, representation, "ADDED", doc)) end
  return function(kind, doc)
    local own = kind == "ERROR" or kind == "BOOKMARK"
    return line(kind, own and json.encode(shown(ctx, representation, kind, doc)) or texts:get(doc, form, encode))
  end
end

-- Beginning ------------------------------------------------------------------------------------------

local function fail(w, e)
  w:push("ERROR", e.document)
  w:pump(1)
  w:stop()
end

local INITIAL_END = json.object { ["k8s.io/initial-events-end"] = "true" }

local function begin_with_state(w, revision, text)
  local store = w.hub.store
  if revision and revision > store.revision then
    return fail(w, status.too_large_resource_version(text, store.revision))
  end
  w:push_state(store:view(w.R.storage))
  if w.options.bookmarks then w:push_bookmark(INITIAL_END) end
end

local function begin_with_past(w, revision)
  local store = w.hub.store
  if not revision or revision == 0 then revision = store.revision end
  local changes = store:changes(w.R.storage, revision)
  if not changes then
    return fail(w, status.expired(("too old resource version: %d (%d)"):format(revision, store:oldest(w.R.storage))))
  end
  w.since = revision
  for _, change in ipairs(changes) do w:push_change(change) end
end

-- Bookmarks every minute and shortly before the end; the end.
local function set_timers(w, seconds)
  local clock, timers = w.hub.clock, w.timers
  timers.deadline = clock:after(seconds, function() w:finish() end)
  if not w.options.bookmarks then return end
  local function bookmark()
    w:push_bookmark()
    w.hub:schedule()
  end
  local function again()
    bookmark()
    timers.bookmark = clock:after(BOOKMARK, again)
  end
  timers.bookmark = clock:after(BOOKMARK, again)
  if seconds > BOOKMARK_BEFORE_END then
    timers.last = clock:after(seconds - BOOKMARK_BEFORE_END, bookmark)
  end
end

local function seconds_of(options)
  if options.timeout and options.timeout ~= 0 then return options.timeout end
  return math.random(SHORTEST, LONGEST)
end

local function begin(ctx, w, writer, revision)
  w.writer, w.since = writer, 0
  local hub, options = w.hub, w.options
  writer:on_gone(function() w:gone() end)
  if writer.on_drain then writer:on_drain(function() w:flow() end) end
  add(hub, w)
  local seconds = seconds_of(options)
  if seconds < 0 or ctx.representation.as == "PartialObjectMetadataList" then return w:stop() end
  if options.initial then
    begin_with_state(w, revision, options.version)
  else
    begin_with_past(w, revision)
  end
  if w.ended then return end
  w.pending_max = w:pending() + hub.pending_max
  set_timers(w, seconds)
  w:flow()
end

--- Handles a watch: the answer with its stream.
function watch.run(ctx)
  local representation = negotiate.check(ctx)
  local options = list_options.parse(ctx, true)
  local revision, problem = list_options.revision(options.version)
  if problem then error(status.unclassified(problem)) end
  if representation.as == "Table" then negotiate.include(ctx) end
  local make = representation.as == "Table" and table_event or shared_event
  local w = watcher.new(ctx.S.watches, ctx.R, ctx.info.namespace, options, make(ctx, representation))
  return {
    status = 200,
    headers = { { "Cache-Control", "no-cache, private" }, { "Content-Type", "application/json" } },
    stream = function(writer) begin(ctx, w, writer, revision) end,
  }
end

return watch
