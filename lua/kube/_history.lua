-- What a controller did, key by key: the last runs of the keys that were worked on last. Bounded in
-- both, so that it can always be on.
local core = require "kube._core"

local history = {}

local KEYS_MAX, RUNS_MAX = 1024, 32

---@class kube.Run
---@field time number when it began, seconds since 1970
---@field reasons string[] why the key was queued
---@field attempt integer 1 for the first, more after failures
---@field waited number seconds in the queue
---@field duration number seconds
---@field reads integer of caches and of the server
---@field writes string[] "apply apps/v1/deployments default/web"
---@field result string "success", "requeue_after", "error", "terminal", "timeout", "cancelled"
---@field error? string
---@field next? number seconds until it is tried again

local History = {}
History.__index = History

function history.new()
  return setmetatable({ _runs = {}, _used = {}, _clock = 0, _count = 0 }, History)
end

-- Forgets the half of the keys that was used longest ago.
function History:_make_room()
  local order = {}
  for key in pairs(self._runs) do order[#order + 1] = key end
  table.sort(order, function(a, b) return self._used[a] < self._used[b] end)
  for i = 1, math.floor(#order / 2) do
    self._runs[order[i]], self._used[order[i]] = nil, nil
    self._count = self._count - 1
  end
end

function History:add(key, run)
  local runs = self._runs[key]
  if not runs then
    if self._count >= KEYS_MAX then self:_make_room() end
    runs = { first = 1, last = 0 }
    self._runs[key] = runs
    self._count = self._count + 1
  end
  self._clock = self._clock + 1
  self._used[key] = self._clock
  runs.last = runs.last + 1
  runs[runs.last] = run
  if runs.last - runs.first >= RUNS_MAX then
    runs[runs.first] = nil
    runs.first = runs.first + 1
  end
end

--- The runs of a key, oldest first; an empty list when none is known.
---@param key string
---@return kube.Run[]
function History:of(key)
  local runs, out = self._runs[key], core.codec.array {}
  for i = runs and runs.first or 1, runs and runs.last or 0 do out[#out + 1] = runs[i] end
  return out
end

return history
