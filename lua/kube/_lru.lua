-- A map of bounded size: when it is full, what was not asked for the longest is forgotten. Pure.
local Lru = {}
Lru.__index = Lru

-- Entries are in a ring with a head that is none: head.next is the newest, head.previous the oldest.
local function unlink(entry) entry.previous.next, entry.next.previous = entry.next, entry.previous end

local function link(head, entry)
  entry.previous, entry.next = head, head.next
  head.next.previous, head.next = entry, entry
end

--- The value of a key, which is the newest then; nil when there is none.
function Lru:get(key)
  local entry = self._entries[key]
  if not entry then return nil end
  unlink(entry)
  link(self._head, entry)
  return entry.value
end

--- Sets the value of a key, which is the newest then.
function Lru:set(key, value)
  local entry = self._entries[key]
  if entry then
    unlink(entry)
  else
    if self._count == self._size then self:remove(self._head.previous.key) end
    entry = { key = key }
    self._entries[key] = entry
    self._count = self._count + 1
  end
  entry.value = value
  link(self._head, entry)
end

--- Forgets a key.
function Lru:remove(key)
  local entry = self._entries[key]
  if not entry then return end
  unlink(entry)
  self._entries[key] = nil
  self._count = self._count - 1
end

function Lru:count() return self._count end

--- An array of all { key, value }, the newest first.
function Lru:items()
  local items, entry = {}, self._head.next
  while entry ~= self._head do
    items[#items + 1] = { entry.key, entry.value }
    entry = entry.next
  end
  return items
end

local M = {}

--- A map of at most `size` keys.
function M.new(size)
  local head = {}
  head.next, head.previous = head, head
  return setmetatable({ _size = size, _entries = {}, _count = 0, _head = head }, Lru)
end

return M
