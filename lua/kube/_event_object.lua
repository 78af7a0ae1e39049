-- Events as objects: what they refer to, their names, and the two APIs that have them. Pure: time and names
-- that cannot be guessed come from outside.
local core = require "kube._core"
local object = require "kube._object"
local time = require "kube._time"

local some = object.some

local M = {}

local MESSAGE_MAX = 1024 -- bytes, as the API server has it
local NAME_MAX = 253

--- The reference to an object, or nil when it has no kind or name to refer to.
---@param obj table
---@return table?
function M.reference(obj)
  local metadata = object.metadata(obj)
  local name, kind, version = some(metadata.name), some(obj.kind), some(obj.apiVersion)
  if type(name) ~= "string" or type(kind) ~= "string" or type(version) ~= "string" then return nil end
  return { apiVersion = version, kind = kind, name = name, namespace = object.namespace(obj),
    uid = some(metadata.uid), resourceVersion = some(metadata.resourceVersion) }
end

-- A whole number of microseconds times 1000, and more, in hexadecimal; a double has not that many digits.
local function hexadecimal(microseconds, more)
  local high, low = math.floor(microseconds / 65536), microseconds % 65536
  low = low * 1000 + more
  return (("%x%04x"):format(high * 1000 + math.floor(low / 65536), low % 65536))
end

local function is_subdomain(name)
  if #name > NAME_MAX or name == "" then return false end
  for label in (name .. "."):gmatch("([^.]*)%.") do
    if not label:find("^[%l%d-]+$") or label:find("^-") or label:find("-$") then return false end
  end
  return true
end

--- A generator of names for events about an object: its name and the time in hexadecimal nanoseconds, which
--- never come twice; or a UUID where that cannot be a name.
---@param uuid fun(): string
---@return fun(name: string, now: number): string
function M.namer(uuid)
  local last, more = 0, 0
  return function(name, now)
    local microseconds = math.floor(now * 1e6)
    more = more + 1
    if microseconds > last then
      last, more = microseconds, 0
    elseif more == 1000 then
      last, more = last + 1, 0
    end
    local full = name .. "." .. hexadecimal(last, more)
    return is_subdomain(full) and full or uuid()
  end
end

-- The text without what is too long of it, at the border of a character.
local function cut(message)
  if #message <= MESSAGE_MAX then return message end
  local stop = MESSAGE_MAX - 3
  while stop > 0 and message:byte(stop + 1) >= 0x80 and message:byte(stop + 1) < 0xC0 do stop = stop - 1 end
  return message:sub(1, stop) .. "..."
end

---@class kube.EventNote what is known when something happens
---@field reference table
---@field related? table
---@field type "Normal"|"Warning"
---@field reason string
---@field action? string
---@field message string
---@field now number

-- Which revision of the script said so; it is no part of what makes two events the same.
local function metadata_of(note, name)
  local revision = core.program and core.program.revision()
  return { name = name, namespace = note.reference.namespace or "default",
    annotations = revision and { ["moonwatch.dev/revision"] = revision } or nil }
end

--- The core/v1 Event of a note.
---@param note kube.EventNote
---@param who { component: string, host?: string }
---@param name string
function M.core(note, who, name)
  local now = time.format(note.now)
  return {
    apiVersion = "v1", kind = "Event", metadata = metadata_of(note, name),
    involvedObject = note.reference, related = note.related, type = note.type, reason = note.reason,
    action = note.action, message = cut(note.message), count = 1, firstTimestamp = now, lastTimestamp = now,
    source = { component = who.component, host = who.host },
    reportingComponent = who.component, reportingInstance = who.host or "",
  }
end

--- The events.k8s.io/v1 Event of a note.
function M.events(note, who, name)
  return {
    apiVersion = "events.k8s.io/v1", kind = "Event", metadata = metadata_of(note, name),
    regarding = note.reference, related = note.related, type = note.type, reason = note.reason,
    action = note.action or note.reason, note = cut(note.message), eventTime = time.format(note.now, 6),
    reportingController = who.component, reportingInstance = who.component .. "-" .. (who.host or "moonwatch"),
  }
end

return M
