-- A sorted set of strings, in byte order: chunks of a few hundred keys each, so that an insertion
-- moves little and a walk is linear. `first` is inclusive, `stop` exclusive; nil means no bound.
local ordered = {}
ordered.__index = ordered

local FULL = 512

function ordered.new() return setmetatable({ chunks = { {} }, size = 0 }, ordered) end

-- The first index in `keys` whose key is not below `key`.
local function lower_bound(keys, key)
  local low, high = 1, #keys + 1
  while low < high do
    local middle = math.floor((low + high) / 2)
    if keys[middle] < key then low = middle + 1 else high = middle end
  end
  return low
end

-- The chunk where `key` is or belongs: the last one that does not begin above it.
local function chunk_of(self, key)
  local low, high = 1, #self.chunks
  while low < high do
    local middle = math.floor((low + high + 1) / 2)
    if self.chunks[middle][1] <= key then low = middle else high = middle - 1 end
  end
  return low
end

local function split(self, at)
  local keys, upper = self.chunks[at], {}
  local half = FULL / 2
  for i = half + 1, #keys do
    upper[i - half], keys[i] = keys[i], nil
  end
  table.insert(self.chunks, at + 1, upper)
end

--- Adds a key that is not in the set.
function ordered:insert(key)
  local at = chunk_of(self, key)
  local keys = self.chunks[at]
  table.insert(keys, lower_bound(keys, key), key)
  self.size = self.size + 1
  if #keys > FULL then split(self, at) end
end

--- Takes away a key that is in the set.
function ordered:remove(key)
  local at = chunk_of(self, key)
  local keys = self.chunks[at]
  table.remove(keys, lower_bound(keys, key))
  self.size = self.size - 1
  if #keys == 0 and #self.chunks > 1 then table.remove(self.chunks, at) end
end

-- Where a bound lies: chunk and index.
local function locate(self, key)
  if not key then return 1, 1 end
  local at = chunk_of(self, key)
  return at, lower_bound(self.chunks[at], key)
end

--- Iterates over the keys in order. The set must not change meanwhile.
function ordered:each(first, stop)
  local chunks = self.chunks
  local at, i = locate(self, first)
  local keys = chunks[at]
  return function()
    local key = keys[i]
    while key == nil do
      at, i = at + 1, 1
      keys = chunks[at]
      if not keys then
        at, keys = at - 1, {}
        return nil
      end
      key = keys[1]
    end
    if stop and key >= stop then return nil end
    i = i + 1
    return key
  end
end

--- How many keys there are between the bounds.
function ordered:count(first, stop)
  if first and stop and first >= stop then return 0 end
  local from_chunk, from = locate(self, first)
  local to_chunk, to = #self.chunks, #self.chunks[#self.chunks] + 1
  if stop then to_chunk, to = locate(self, stop) end
  local count = to - from
  for at = from_chunk, to_chunk - 1 do count = count + #self.chunks[at] end
  return count
end

return ordered
