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
---@field result string "success", "requeue_after", "error", "terminal", "timeout", "gave_up", "cancelled"
---@field error? string
---@field place? string where it failed: "script.lua:12"
---@field next? number seconds until it is tried again

local History = {}
History.__index = History

-- Keys in two halves: those worked on since the younger one was begun, and those that were before. When the
-- younger is full, the older is forgotten.
function history.new() return setmetatable({ _young = {}, _old = {}, _count = 0 }, History) end

-- The runs of a key, which is in the younger half from now on.
function History:_touch(key)
  local runs = self._young[key]
  if runs then return runs end
  runs = self._old[key] or { first = 1, last = 0 }
  self._old[key] = nil
  if self._count >= KEYS_MAX / 2 then
    self._young, self._old, self._count = {}, self._young, 0
  end
  self._young[key] = runs
  self._count = self._count + 1
  return runs
end

function History:add(key, run)
  local runs = self:_touch(key)
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
  local runs, out = self._young[key] or self._old[key], core.codec.array {}
  for i = runs and runs.first or 1, runs and runs.last or 0 do out[#out + 1] = runs[i] end
  return out
end

--- Calls visit(key, run) with the last run of each key.
function History:each_last(visit)
  for _, half in ipairs { self._young, self._old } do
    for key, runs in pairs(half) do visit(key, runs[runs.last]) end
  end
end

--- The last runs of each key, by key, at most so many of each: for those who ask when it is gone.
---@param count integer
---@return table<string, kube.Run[]>
function History:last(count)
  local out = {}
  for _, half in ipairs { self._young, self._old } do
    for key, runs in pairs(half) do
      local list = {}
      for i = math.max(runs.first, runs.last - count + 1), runs.last do list[#list + 1] = runs[i] end
      out[key] = list
    end
  end
  return out
end

return history
