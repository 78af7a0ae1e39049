-- What a controller has written and its caches do not show yet. Reads that go through it see the
-- controller's own writes or something newer, never what was before them, and what it deleted stays
-- deleted.
--
-- A write is forgotten once the store has caught up: the stored object, or the store as a whole, is at
-- its resource version or beyond. Versions of one server are numbers that grow, so they are compared.
-- A deletion carries no version: it is forgotten once the store, at or beyond the last version that the
-- object was known with, has it no more, has another of that name, or has it as one that is leaving. A server
-- that keeps what it said it deleted is believed in the end: KEPT seconds later, and once the store has moved.
--
-- The deletion of a collection is answered with the objects as they were before it. Those that something may
-- hold (finalizers, time to end, a policy for what they own) are shown as leaving, the others are gone.
--
-- What was written and is gone before the store has ever seen it, while a watch was down, makes no event:
-- nobody would notice. So whoever wrote it is told when the store has caught up without it.
local core = require "kube._core"
local time = require "kube._time"

local overlay = {}

local ENTRIES_MAX = 10000
local KEPT = 30  -- seconds that the end of an object may take to come behind other news of the store

-- Whether version a is b or later.
local function reached(a, b)
  if #a ~= #b then return #a > #b end
  return a >= b
end

local function version_of(object) return object and object.metadata.resourceVersion or "" end

---@class kube.Overlay
local Overlay = {}
Overlay.__index = Overlay

--- reader_of(resource, key): the reader of the store that has this key, or nil. vanished(by, resource): what
--- `by` had written is gone unseen. now(): seconds that only grow.
function overlay.new(reader_of, vanished, now)
  return setmetatable({ _reader_of = reader_of, _vanished = vanished, _now = now, _entries = {}, _count = 0 }, Overlay)
end

local function has_any(list) return type(list) == "table" and list[1] ~= nil end

-- Whether something holds an object that is being deleted.
local function is_held(resource, object)
  local metadata = object.metadata
  if has_any(metadata.finalizers) or (tonumber(metadata.deletionGracePeriodSeconds) or 0) > 0 then return true end
  return resource == "v1/namespaces" and has_any(core.codec.get(object, "spec", "finalizers"))
end

local function is_leaving(object) return type(object.metadata.deletionTimestamp) == "string" end

local function is_beyond(a, b) return a ~= b and reached(a, b) end

-- Whether the store has caught up with a deletion.
function Overlay:_has_gone(resource, entry, stored, reader)
  if not stored then return reached(reader:resource_version(), entry.version) end
  if stored.metadata.uid ~= entry.uid then return true end
  if is_leaving(stored) and is_held(resource, stored) and is_beyond(version_of(stored), entry.version) then
    return true
  end
  return self._now() - entry.at > KEPT and is_beyond(reader:resource_version(), entry.version)
end

function Overlay:_caught_up(resource, entry, stored, reader)
  if entry.deleted then return self:_has_gone(resource, entry, stored, reader) end
  return (stored and reached(version_of(stored), entry.version))
    or reached(reader:resource_version(), entry.version)
end

-- The store has caught up with an entry.
function Overlay:_drop(resource, key, stored)
  local entry = self._entries[resource][key]
  self._entries[resource][key] = nil
  self._count = self._count - 1
  if not entry.deleted and not stored then self._vanished(entry.by, resource) end
end

--- Forgets what the stores have caught up with.
function Overlay:sweep()
  if self._count == 0 then return end
  for resource, entries in pairs(self._entries) do
    for key, entry in pairs(entries) do
      local reader = self._reader_of(resource, key)
      local stored = reader:get(key)
      if self:_caught_up(resource, entry, stored, reader) then self:_drop(resource, key, stored) end
    end
  end
end

-- When a store does not catch up for that long, memory is the lesser loss.
function Overlay:_make_room()
  if self._count < ENTRIES_MAX then return end
  self:sweep()
  if self._count < ENTRIES_MAX then return end
  core.log.write("warn", "too many writes that no cache has seen; reads may be behind them",
    { writes = self._count })
  self._entries, self._count = {}, 0
end

function Overlay:_put(resource, key, entry)
  self:_make_room()
  local entries = self._entries[resource]
  if not entries then
    entries = {}
    self._entries[resource] = entries
  end
  if not entries[key] then self._count = self._count + 1 end
  entries[key] = entry
end

local function later(a, b) return reached(a, b) and a or b end

-- Whether an answer is the last that there is of its object. A deletion answers with what was deleted for some
-- kinds, and whoever takes the last finalizer from an object that has no time left deletes it.
local function is_last(verb, resource, object)
  if not is_leaving(object) then return verb == "delete" end
  return not is_held(resource, object)
end

-- What was deleted: as `leaving`, or nil when it is to be gone at once.
function Overlay:_put_deleted(resource, key, uid, version, leaving)
  self:_put(resource, key, { deleted = true, object = leaving, uid = uid, version = version, at = self._now() })
end

-- Answers of writes that were sent at once may come in any order. Nobody writes to what is gone: such a write
-- came before, and its version is one that the store must have passed.
local function is_older(known, object)
  if not known then return false end
  if known.object then return reached(known.version, version_of(object)) end
  if known.uid ~= object.metadata.uid then return false end
  known.version = later(known.version, version_of(object))
  return true
end

--- The server answered a write with `object`, nil when it is gone. by: who wrote it.
function Overlay:note(verb, resource, key, object, by)
  local reader = self._reader_of(resource, key)
  if not reader then return end
  local known = self._entries[resource] and self._entries[resource][key]
  if object and not is_last(verb, resource, object) then
    local version = version_of(object)
    if version ~= "" and not is_older(known, object) then
      self:_put(resource, key, { object = object, version = version, uid = object.metadata.uid, by = by })
    end
    return
  end
  local stored = reader:get(key)
  local uid = (object and object.metadata.uid) or (known and known.uid) or (stored and stored.metadata.uid)
  if not uid or not (object or verb == "delete") then return end
  self:_put_deleted(resource, key, uid,
    later(later(known and known.version or "", version_of(stored)), version_of(object)))
end

-- Kinds that leave what they own behind unless told otherwise, which is done before they go.
local ORPHANING = { ["batch/v1/jobs"] = true, ["v1/replicationcontrollers"] = true }

-- Whether an object may stay for a while when it is deleted with these DeleteOptions.
local function may_stay(resource, object, sent)
  if has_any(object.metadata.finalizers) then return true end
  if resource == "v1/pods" and sent.gracePeriodSeconds ~= 0 then return true end
  local policy = sent.propagationPolicy
  return policy == "Foreground" or policy == "Orphan" or (policy == nil and ORPHANING[resource] == true)
end

local function as_leaving(object)
  if is_leaving(object) then return object end
  local copy = core.codec.copy(object)
  copy.metadata.deletionTimestamp = time.format()
  return copy
end

--- The server answered the deletion of a collection. items: complete objects, as they were before it; sent: its
--- DeleteOptions.
function Overlay:note_collection(resource, items, sent)
  for _, item in ipairs(items) do
    local key = core.codec.object_key(item)
    -- Not the version of the store, which may have heard of the deletion before us.
    if self._reader_of(resource, key) then
      local known = self._entries[resource] and self._entries[resource][key]
      self:_put_deleted(resource, key, item.metadata.uid, later(known and known.version or "", version_of(item)),
        may_stay(resource, item, sent) and as_leaving(item) or nil)
    end
  end
end

--- The object of this key as the controller must see it, from what the store has.
---@return table?
function Overlay:get(resource, key, stored, reader)
  local entries = self._entries[resource]
  local entry = entries and entries[key]
  if not entry then return stored end
  if not self:_caught_up(resource, entry, stored, reader) then return entry.object end
  self:_drop(resource, key, stored)
  return stored
end

--- Lays the writes over a list of stored objects, in place. matches: which objects belong in it.
---@param resource string
---@param items table[]
---@param matches fun(object: table, key: string): boolean
---@return table[]
function Overlay:merge(resource, items, matches)
  local entries = self._entries[resource]
  if not entries or not next(entries) then return items end
  self:sweep()
  local kept, seen = {}, {}
  for _, item in ipairs(items) do
    local key = core.codec.object_key(item)
    local entry = entries[key]
    seen[key] = true
    if not entry then
      kept[#kept + 1] = item
    elseif entry.object and matches(entry.object, key) then
      kept[#kept + 1] = entry.object
    end
  end
  for key, entry in pairs(entries) do
    if not seen[key] and entry.object and matches(entry.object, key) then kept[#kept + 1] = entry.object end
  end
  return kept
end

return overlay
