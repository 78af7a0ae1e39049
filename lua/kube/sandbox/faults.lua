-- Faults on demand: which request is to fail, and how.
--
-- A fault is { verb, group, resource, subresource, namespace, name, nth, count, status, reason,
-- message, retry_after, delay, cut, expired, event_delay, cut_after }. The first six say which
-- requests it is about (absent: any), nth and count which of those: from the nth on (1), count of them (1, 0:
-- all). Of the rest, what is given is done: an HTTP status (with the reason and text of a Status),
-- a delay before the answer, a cut connection, 410; for watches a delay before each event, a cut
-- after so many events.
local json = require "kube.sandbox.json"
local status = require "kube.sandbox.status"

local faults = {}

faults.FIELDS = require("kube._sandbox_fields").fault

local EFFECTS = { "status", "delay", "cut", "expired", "event_delay", "cut_after" }

local REASONS = {
  [400] = "BadRequest", [401] = "Unauthorized", [403] = "Forbidden", [404] = "NotFound", [409] = "Conflict",
  [410] = "Expired", [422] = "Invalid", [429] = "TooManyRequests", [500] = "InternalError",
  [503] = "ServiceUnavailable", [504] = "Timeout",
}

--- Adds a fault; returns it with its id, or nil and what is wrong with it.
function faults.add(S, given)
  local any = false
  for _, name in ipairs(EFFECTS) do any = any or given[name] ~= nil end
  if not any then return nil, "a fault needs one of " .. table.concat(EFFECTS, ", ") end
  if given.status and (given.status < 400 or given.status > 599) then
    return nil, "'status' must be one of a failure: 400 to 599"
  end
  S.fault_count = (S.fault_count or 0) + 1
  local fault = json.shallow(json.object(given))
  fault.id, fault.seen, fault.done = tostring(S.fault_count), 0, 0
  S.faults[#S.faults + 1] = fault
  return fault
end

function faults.list(S) return json.array { unpack(S.faults) } end

--- Takes one away, or all without an id; false when there is no such.
function faults.clear(S, id)
  if not id then
    S.faults = {}
    return true
  end
  for i, fault in ipairs(S.faults) do
    if fault.id == id then
      table.remove(S.faults, i)
      return true
    end
  end
  return false
end

local MATCHED = { "verb", "group", "resource", "subresource", "namespace", "name" }

local function is_meant(fault, info)
  for _, name in ipairs(MATCHED) do
    if fault[name] ~= nil and fault[name] ~= info[name] then return false end
  end
  return true
end

-- Counts the request, and says whether it is one of those.
local function is_due(fault)
  fault.seen = fault.seen + 1
  if fault.seen < (fault.nth or 1) then return false end
  local count = fault.count or 1
  if count ~= 0 and fault.done >= count then return false end
  fault.done = fault.done + 1
  return true
end

local function refusal(fault)
  if fault.expired then return status.expired("too old resource version: 0 (1)") end
  local code = fault.status
  return status.new {
    code = code,
    reason = fault.reason or REASONS[code],
    message = fault.message or "sandbox: a fault that was asked for",
    details = {},
    retry_after = fault.retry_after,
  }
end

--- The fault that this request runs into, or nil.
function faults.find(S, info)
  for _, fault in ipairs(S.faults) do
    if is_meant(fault, info) and is_due(fault) then return fault end
  end
end

-- A watch is told that history is gone as the server tells it: by an event, and the end.
local function expired_watch(fault)
  local text = json.encode(refusal(fault).document)
  return {
    status = 200,
    headers = { { "Content-Type", "application/json" } },
    stream = function(writer)
      writer:write(('{"type":"ERROR","object":%s}\n'):format(text))
      writer:finish()
    end,
  }
end

--- What a fault wants before a request is looked at: a response, nil, or a Status that is raised.
function faults.before(fault, info)
  if fault.cut then return { status = 0, headers = {}, reset = true } end
  if fault.expired and info.verb == "watch" then return expired_watch(fault) end
  if fault.status or fault.expired then error(refusal(fault)) end
end

-- A writer that hands lines on one by one, each after a delay, and cuts after some. It takes the next
-- piece when the last one is out, as a slow socket does: what waits behind it is bounded by the watch.
local function slow_writer(S, fault, writer)
  local queue, gone, busy, sent = {}, false, false, 0
  local step, drained
  local function send(bytes)
    if gone then return end
    writer:write(bytes)
    sent = sent + 1
    if fault.cut_after and sent >= fault.cut_after then
      gone = true
      writer:reset()
    end
  end
  function step()
    local bytes = table.remove(queue, 1)
    busy = bytes ~= nil
    if gone then return end
    if not bytes then return drained and drained() end
    S.clock:after(fault.event_delay or 0, function()
      if bytes == "finish" then writer:finish() else send(bytes) end
      step()
    end)
  end
  local function push(bytes)
    queue[#queue + 1] = bytes
    if not busy then step() end
  end
  return {
    write = function(_, bytes)
      for line in bytes:gmatch("[^\n]*\n") do push(line) end
      return not gone
    end,
    backlog = function() return #queue + (busy and 1 or 0) end,
    on_drain = function(_, fn) drained = fn end,
    finish = function() push("finish") end,
    reset = function() writer:reset() end,
    on_gone = function(_, fn)
      writer:on_gone(function()
        gone = true
        fn()
      end)
    end,
  }
end

--- Spoils an answer as the fault wants.
function faults.after(S, fault, response)
  response.delay = fault.delay
  local stream = response.stream
  if stream and (fault.event_delay or fault.cut_after) then
    response.stream = function(writer) return stream(slow_writer(S, fault, writer)) end
  end
  return response
end

return faults
