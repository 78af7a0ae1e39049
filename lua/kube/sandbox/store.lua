-- The sandbox's memory: one revision for everything, and per storage ("configmaps",
-- "apps/deployments") an ordered map from key ("namespace/name" or "name") to document and the
-- changes of late, so that the past can be listed and watches can begin in it.
--
-- Documents are immutable once they are here. Nothing yields, so each call is atomic.
local history = require "kube.sandbox.history"
local json = require "kube.sandbox.json"
local ordered = require "kube.sandbox.ordered"

local store = {}
store.__index = store

local HISTORY_ENTRIES = 10000
local HISTORY_BYTES = 64 * 1024 * 1024

--- { history = changes kept per storage, history_bytes = and about how much memory they may hold,
--- first_revision = 1 }.
function store.new(options)
  options = options or {}
  local revision = options.first_revision or 1
  return setmetatable({
    revision = revision,
    first_revision = revision,
    limits = { entries = options.history or HISTORY_ENTRIES, bytes = options.history_bytes or HISTORY_BYTES },
    storages = {},
    subscribers = {},
    subscribers_of_all = {},
    subscribers_of_restore = {},
    pending = {},
  }, store)
end

local function storage_of(self, name)
  local storage = self.storages[name]
  if not storage then
    storage = { docs = {}, keys = ordered.new(), history = history.new(self.limits, self.expired_at
      or self.first_revision) }
    self.storages[name] = storage
  end
  return storage
end

local function version(revision) return ("%d"):format(revision) end

--- The document with another resourceVersion; the rest is shared.
function store.with_version(doc, revision)
  return json.with(doc, "metadata", json.with(doc.metadata, "resourceVersion", version(revision)))
end

-- Subscribers ------------------------------------------------------------------------------------

local function call_all(list, ...)
  -- A subscriber may leave, or others join, while it is called.
  local count = #list
  for i = 1, count do
    local handle = list[i]
    if handle.fn then handle.fn(...) end
  end
  for i = #list, 1, -1 do
    if not list[i].fn then table.remove(list, i) end
  end
end

-- A subscriber that writes makes another change; everybody hears of the first one before.
local function publish(self, name, change)
  local pending = self.pending
  pending[#pending + 1] = { name, change }
  if self.publishing then return end
  self.publishing = true
  local i = 1
  while pending[i] do
    local storage_name, next_change = pending[i][1], pending[i][2]
    if self.subscribers[storage_name] then call_all(self.subscribers[storage_name], next_change) end
    call_all(self.subscribers_of_all, next_change, storage_name)
    i = i + 1
  end
  self.pending, self.publishing = {}, false
end

local Handle = {}
Handle.__index = Handle

--- No more calls.
function Handle:cancel() self.fn = nil end

local function add_subscriber(list, fn)
  local handle = setmetatable({ fn = fn }, Handle)
  list[#list + 1] = handle
  return handle
end

--- Calls fn(change) for every change of a storage, in order.
function store:subscribe(name, fn)
  self.subscribers[name] = self.subscribers[name] or {}
  return add_subscriber(self.subscribers[name], fn)
end

--- Calls fn(change, storage) for every change.
function store:subscribe_all(fn) return add_subscriber(self.subscribers_of_all, fn) end

--- Calls fn() when a snapshot took the place of everything.
function store:on_restore(fn) return add_subscriber(self.subscribers_of_restore, fn) end

-- Writing ----------------------------------------------------------------------------------------

local function record(self, name, change)
  storage_of(self, name).history:append(change)
  publish(self, name, change)
end

local function put(self, name, key, doc)
  local storage = storage_of(self, name)
  self.revision = self.revision + 1
  local stored = store.with_version(doc, self.revision)
  local old = storage.docs[key]
  storage.docs[key] = stored
  if not old then storage.keys:insert(key) end
  record(self, name, { rev = self.revision, type = old and "MODIFIED" or "ADDED", key = key, old = old, new = stored })
  return stored
end

--- Stores a new document; returns it as stored, with its resourceVersion.
function store:create(R, key, doc)
  assert(not self:get(R.storage, key), "the key is taken")
  return put(self, R.storage, key, doc)
end

--- Replaces a document; returns it as stored, with its resourceVersion.
function store:update(R, key, doc)
  assert(self:get(R.storage, key), "no such key")
  return put(self, R.storage, key, doc)
end

--- Removes a document; returns it (or `last`, its state then) with the deletion's resourceVersion.
function store:delete(R, key, last)
  local storage = storage_of(self, R.storage)
  local old = assert(storage.docs[key], "no such key")
  self.revision = self.revision + 1
  local gone = store.with_version(last or old, self.revision)
  storage.docs[key] = nil
  storage.keys:remove(key)
  record(self, R.storage, { rev = self.revision, type = "DELETED", key = key, old = old, new = gone })
  return gone
end

-- Reading ----------------------------------------------------------------------------------------

--- The present document, or nil.
function store:get(name, key)
  local storage = self.storages[name]
  return storage and storage.docs[key]
end

--- The bounds of a namespace's keys, for each() and count() of a view; nil for all.
function store.bounds(namespace)
  if not namespace or namespace == "" then return nil, nil end
  return namespace .. "/", namespace .. "0" -- "0" follows "/"
end

-- A storage as it was at one revision; good until the next write. `states` is what differed from
-- now, `extra` the keys that are gone since.
local View = {}
View.__index = View

local function no_keys() end

--- Iterates over key, document in order.
function View:each(first, stop)
  local docs, states = self.storage.docs, self.states
  local now = self.storage.keys:each(first, stop)
  if not states then
    return function()
      local key = now()
      if key then return key, docs[key] end
    end
  end
  local gone = self.extra and self.extra:each(first, stop) or no_keys
  local a, b = now(), gone()
  return function()
    while a or b do
      local key
      if b and not (a and a < b) then
        key, b = b, gone()
      else
        key, a = a, now()
      end
      local doc = states[key]
      if doc == nil then doc = docs[key] end
      if doc then return key, doc end
    end
  end
end

--- How many documents there are between the bounds.
function View:count(first, stop)
  if not self.states then return self.storage.keys:count(first, stop) end
  local count = 0
  for _ in self:each(first, stop) do count = count + 1 end
  return count
end

--- The documents of a storage now, or at a revision: a view with `revision`, each(first, stop) and
--- count(first, stop). nil and "expired" or "future" when that is not known.
function store:view(name, revision)
  local storage = storage_of(self, name)
  if revision and revision > self.revision then return nil, "future" end
  if revision and revision < storage.history.floor then return nil, "expired" end
  local view = { storage = storage, revision = revision or self.revision }
  if revision then
    view.states = storage.history:undo(revision)
    if next(view.states) == nil then view.states = nil end
    for key, state in pairs(view.states or {}) do
      if state and not storage.docs[key] then
        view.extra = view.extra or ordered.new()
        view.extra:insert(key)
      end
    end
  end
  return setmetatable(view, View)
end

local function documents(view, namespace)
  local docs, n = {}, 0
  for _, doc in view:each(store.bounds(namespace)) do
    n = n + 1
    docs[n] = doc
  end
  return docs
end

--- The documents now, in key order, and the revision. Where there are none, this costs nothing.
function store:scan(name, namespace)
  local storage = self.storages[name]
  if not storage or storage.keys.size == 0 then return {}, self.revision end
  return documents(self:view(name), namespace), self.revision
end

--- The documents as they were at `revision`; nil and "expired" or "future" when that is not known.
function store:scan_at(name, namespace, revision)
  local view, why = self:view(name, revision)
  if not view then return nil, why end
  return documents(view, namespace)
end

--- The changes after `since`, oldest first; nil and "expired" when some are forgotten.
function store:changes(name, since)
  local changes = storage_of(self, name).history:since(since)
  if not changes then return nil, "expired" end
  return changes
end

--- The oldest revision that a list or watch of this storage may ask for.
function store:oldest(name) return storage_of(self, name).history.floor end

-- The whole -----------------------------------------------------------------------------------------

--- Forgets what was before now: whoever asks for it is told that it expired.
function store:expire()
  self.expired_at = self.revision
  for _, storage in pairs(self.storages) do storage.history:expire(self.revision) end
end

--- Forgets a storage that has no documents, and its past (its definition is gone).
function store:drop(name)
  local storage = storage_of(self, name)
  assert(storage.keys.size == 0, "the storage has documents")
  storage.history:expire(self.revision)
end

--- Everything that is stored now: { revision, storages = { name = { key = document } } }. It can be
--- encoded; it shares the documents.
function store:snapshot()
  local storages = json.object {}
  for name, storage in pairs(self.storages) do
    local docs = json.object {}
    for key, doc in pairs(storage.docs) do docs[key] = doc end
    storages[name] = docs
  end
  return json.object { revision = self.revision, storages = storages }
end

--- Puts a snapshot in the place of everything. A store that was never written to continues at the
--- snapshot's revision; any other goes on above both, so that no client mistakes the new state for
--- a continuation of what it knew.
function store:restore(snapshot)
  local fresh = self.revision == self.first_revision
  self.revision = fresh and snapshot.revision or math.max(self.revision, snapshot.revision) + 1
  self.expired_at = self.revision
  self.storages = {}
  for name, docs in pairs(snapshot.storages) do
    local storage = storage_of(self, name)
    for key, doc in pairs(docs) do
      storage.docs[key] = doc
      storage.keys:insert(key)
    end
  end
  call_all(self.subscribers_of_restore)
end

return store
