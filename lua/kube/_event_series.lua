-- What becomes of an Event (events.k8s.io/v1) before it is written: the first is created, the second makes a
-- series of it, further ones are only counted until the series is written again. Pure: the clock comes from
-- outside.
local lru = require "kube._lru"

local M = {}

local CACHE_SIZE = 4096
local FINISH_SECONDS = 360 -- a series that was idle for so long is over

local function joined(...) return table.concat({ ... }, "\0") end

local function reference_key(o)
  if not o then return "" end
  return joined(o.kind or "", o.namespace or "", o.name or "", o.uid or "", o.apiVersion or "", o.fieldPath or "")
end

-- Events of one key are the same thing again, whatever their note says.
local function event_key(event)
  return joined(event.type, event.action, event.reason, event.reportingController, event.reportingInstance,
    reference_key(event.regarding), reference_key(event.related))
end

---@class kube.EventSeries
local Series = {}
Series.__index = Series

-- What is to be written of a known event: itself, with its series as it is now.
local function written(known)
  local copy = {}
  for name, value in pairs(known.event) do copy[name] = value end
  if known.count > 1 then copy.series = { count = known.count, lastObservedTime = known.last } end
  known.written = known.count
  return copy, copy.series and { series = copy.series }
end

--- What is to be written for an event: it and, when there is one already, the patch that makes it a series;
--- nothing when it is only counted.
---@param event table with eventTime
---@return table? event
---@return table? patch
function Series:correlate(event)
  local key, now = event_key(event), self._now()
  local known = self._events:get(key)
  if not known then
    known = { event = event, count = 1, seen = now }
    self._events:set(key, known)
    return written(known)
  end
  known.count, known.last, known.seen = known.count + 1, event.eventTime, now
  if known.count > 2 then return nil end
  return written(known)
end

--- The events whose series is to be written again, each { event, patch }: those that are over, which are
--- forgotten, and with `refresh` those that go on.
---@param refresh boolean
---@return { [1]: table, [2]: table }[]
function Series:due(refresh)
  local due, now = {}, self._now()
  for _, item in ipairs(self._events:items()) do
    local key, known = item[1], item[2]
    local over = now - known.seen > FINISH_SECONDS
    local is_behind = known.count > 1 and known.written ~= known.count
    if is_behind and (over or refresh) then due[#due + 1] = { written(known) } end
    if over then self._events:remove(key) end
  end
  return due
end

---@param opts { now: fun(): number }
---@return kube.EventSeries
function M.new(opts) return setmetatable({ _now = opts.now, _events = lru.new(CACHE_SIZE) }, Series) end

return M
