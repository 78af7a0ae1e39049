-- What becomes of an Event (core/v1) before it is written: similar ones are combined, the same one again
-- counts up the first, and an object that has too many gets no more. Pure: the clock comes from outside.
--
-- The order is: aggregate, count, filter. Counting goes on for events that the filter drops.
local lru = require "kube._lru"

local M = {}

local PREFIX = "(combined from similar events): "

local DEFAULTS = {
  cache_size = 4096, -- keys of each of the three
  aggregate_count = 10, -- so many different messages of a group are one,
  aggregate_seconds = 600, -- unless more time than this lies between two of them
  burst = 25, -- events of an object at once,
  refill_seconds = 300, -- and one more each time that this has passed
}

local function joined(...) return table.concat({ ... }, "\0") end

local function source_key(event)
  local source = event.source or {}
  return joined(source.component or "", source.host or "")
end

local function object_key(event)
  local o = event.involvedObject
  return joined(o.kind or "", o.namespace or "", o.name or "", o.uid or "", o.apiVersion or "")
end

-- Events of one group differ in their message only.
local function group_key(event)
  return joined(source_key(event), object_key(event), event.type, event.reason, event.reportingComponent or "",
    event.reportingInstance or "")
end

local function event_key(event) return joined(group_key(event), event.involvedObject.fieldPath or "", event.message) end

--- The key under which the filter counts, unless told otherwise: not the reason, not the message.
function M.spam_key(event) return joined(source_key(event), object_key(event), event.type) end

---@class kube.EventCorrelator
local Correlator = {}
Correlator.__index = Correlator

-- The event, or one that stands for its group; and the key that counts it.
function Correlator:_aggregate(event, now)
  local key = group_key(event)
  local group = self._groups:get(key)
  if not group or now - group.last > self._settings.aggregate_seconds then group = { messages = {}, count = 0 } end
  group.last = now
  self._groups:set(key, group)
  if not group.messages[event.message] then
    -- The set never grows to its limit: the message that would fill it is the one that is combined.
    if group.count + 1 >= self._settings.aggregate_count then return self:_combined(event, now), key end
    group.messages[event.message] = true
    group.count = group.count + 1
  end
  return event, event_key(event)
end

function Correlator:_combined(event, now)
  local copy = {}
  for name, value in pairs(event) do copy[name] = value end
  copy.metadata = { name = self._name(event.involvedObject.name, now), namespace = event.metadata.namespace }
  copy.message = PREFIX .. event.message
  copy.count = 1
  return copy
end

-- The event with the name, count and first time of those before it, and the patch that says so.
function Correlator:_count(event, key)
  local known = self._counted:get(key)
  local patch
  if known then
    local copy = {}
    for name, value in pairs(event) do copy[name] = value end
    event = copy
    event.metadata = { name = known.name, namespace = event.metadata.namespace }
    event.firstTimestamp, event.count = known.first, known.count + 1
    patch = { count = event.count, lastTimestamp = event.lastTimestamp, message = event.message }
  end
  self._counted:set(key, { name = event.metadata.name, first = event.firstTimestamp, count = event.count })
  return event, patch
end

-- Whether the object of the event has had too many of its type.
function Correlator:_is_spam(event, now)
  local key = self._spam_key(event)
  local bucket = self._buckets:get(key) or { tokens = self._settings.burst, at = now }
  local gained = math.max(0, now - bucket.at) / self._settings.refill_seconds
  bucket.tokens, bucket.at = math.min(self._settings.burst, bucket.tokens + gained), now
  self._buckets:set(key, bucket)
  if bucket.tokens < 1 then return true end
  bucket.tokens = bucket.tokens - 1
  return false
end

--- What is to be written for an event: the event, and the patch when it is one that was written before;
--- nothing when the filter drops it.
---@param event table
---@return table? event
---@return table? patch of the event with that name
function Correlator:correlate(event)
  local now = self._now()
  local aggregated, key = self:_aggregate(event, now)
  local counted, patch = self:_count(aggregated, key)
  if self:_is_spam(counted, now) then return nil end
  return counted, patch
end

--- A correlator.
---@param opts { now: function, name: function, spam_key?: function, settings?: table } now(): seconds; name(object,
--- now): that of a new event; spam_key(event); settings: any of aggregate_count, aggregate_seconds, burst,
--- refill_seconds, cache_size
---@return kube.EventCorrelator
function M.new(opts)
  local settings = setmetatable(opts.settings or {}, { __index = DEFAULTS })
  return setmetatable({
    _settings = settings, _now = opts.now, _name = opts.name, _spam_key = opts.spam_key or M.spam_key,
    _groups = lru.new(settings.cache_size), _counted = lru.new(settings.cache_size),
    _buckets = lru.new(settings.cache_size),
  }, Correlator)
end

return M
