-- What a controller has written and its caches do not show yet. Reads that go through it see the
-- controller's own writes or something newer, never what was before them, and what it deleted stays
-- deleted.
--
-- A write is forgotten once the store has caught up: the stored object, or the store as a whole, is at
-- its resource version or beyond. Versions of one server are numbers that grow, so they are compared.
-- A deletion carries no version: it is forgotten once the store, at or beyond the last version that the
-- object was known with, has it no more, or has another of that name.
--
-- What was written and is gone before the store has ever seen it, while a watch was down, makes no event:
-- nobody would notice. So whoever wrote it is told when the store has caught up without it.
local core = require "kube._core"

local overlay = {}

local ENTRIES_MAX = 10000

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
--- `by` had written is gone unseen.
function overlay.new(reader_of, vanished)
  return setmetatable({ _reader_of = reader_of, _vanished = vanished, _entries = {}, _count = 0 }, Overlay)
end

local function caught_up(entry, stored, reader)
  if not entry.object then
    if stored then return stored.metadata.uid ~= entry.uid end
    return reached(reader:resource_version(), entry.version)
  end
  return (stored and reached(version_of(stored), entry.version))
    or reached(reader:resource_version(), entry.version)
end

-- The store has caught up with an entry.
function Overlay:_drop(resource, key, stored)
  local entry = self._entries[resource][key]
  self._entries[resource][key] = nil
  self._count = self._count - 1
  if entry.object and not stored then self._vanished(entry.by, resource) end
end

--- Forgets what the stores have caught up with.
function Overlay:sweep()
  if self._count == 0 then return end
  for resource, entries in pairs(self._entries) do
    for key, entry in pairs(entries) do
      local reader = self._reader_of(resource, key)
      local stored = reader:get(key)
      if caught_up(entry, stored, reader) then self:_drop(resource, key, stored) end
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

local function has_any(list) return type(list) == "table" and list[1] ~= nil end

-- Whether an answer is the last that there is of its object. A deletion answers with what was deleted for some
-- kinds, and whoever takes the last finalizer from an object that has no time left deletes it.
local function is_last(verb, resource, object)
  local metadata = object.metadata
  if type(metadata.deletionTimestamp) ~= "string" then return verb == "delete" end
  if has_any(metadata.finalizers) or (tonumber(metadata.deletionGracePeriodSeconds) or 0) > 0 then return false end
  return resource ~= "v1/namespaces" or not has_any(core.codec.get(object, "spec", "finalizers"))
end

--- The server answered a write with `object`, nil when it is gone. by: who wrote it.
function Overlay:note(verb, resource, key, object, by)
  local reader = self._reader_of(resource, key)
  if not reader then return end
  local known = self._entries[resource] and self._entries[resource][key]
  if object and not is_last(verb, resource, object) then
    local version = version_of(object)
    -- Answers of writes that were sent at once may come in any order.
    if version ~= "" and not (known and known.object and reached(known.version, version)) then
      self:_put(resource, key, { object = object, version = version, uid = object.metadata.uid, by = by })
    end
    return
  end
  local stored = reader:get(key)
  local uid = (object and object.metadata.uid) or (known and known.uid) or (stored and stored.metadata.uid)
  if not uid or not (object or verb == "delete") then return end
  local version = later(later(known and known.version or "", version_of(stored)), version_of(object))
  self:_put(resource, key, { uid = uid, version = version })
end

--- The object of this key as the controller must see it, from what the store has.
---@return table?
function Overlay:get(resource, key, stored, reader)
  local entries = self._entries[resource]
  local entry = entries and entries[key]
  if not entry then return stored end
  if not caught_up(entry, stored, reader) then return entry.object end
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
