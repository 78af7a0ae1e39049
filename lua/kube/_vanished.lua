-- How long a key waits whose writes have vanished unseen: not at all for the first time, then more and more.
--
-- Who writes what others take away at once would else go round as fast as it can; and since each run of it goes well,
-- the limit of failures does not hold it up.
local lru = require "kube._lru"

local KEPT = 1000  -- keys of which it is remembered how often
local CALM = 60    -- seconds without it after which that is forgotten

local Vanished = {}
Vanished.__index = Vanished

--- The seconds that a key has to wait.
---@param key string
---@param now number seconds that only grow
---@return number
function Vanished:delay(key, now)
  local before = self._keys:get(key)
  local times = before and now < before.calm and before.times + 1 or 0
  local delay = times > 0 and math.min(self._base * 2 ^ (times - 1), self._max) or 0
  self._keys:set(key, { times = times, calm = now + delay + CALM })
  return delay
end

local M = {}

--- base: seconds for the second time, which double up to max.
function M.new(base, max) return setmetatable({ _base = base, _max = max, _keys = lru.new(KEPT) }, Vanished) end

return M
