-- kube.recorder, kube.events: tells people what a controller does, as Events of the objects that it does it to.
--
-- Recording never waits: what happened goes into a queue, and a task of the recorder writes it, one by one so
-- that a patch finds what was created before it. It lives while there is something to write. When the script
-- ends it has the grace period, and one try for each.
local core = require "kube._core"
local declared = require "kube._declared"
local correlator = require "kube._event_correlator"
local errors = require "kube._error"
local object = require "kube._object"
local objects = require "kube._event_object"
local options = require "kube._options"
local series = require "kube._event_series"
local task = require "kube._task"
local uuid = require "kube._uuid"
local verbs = require "kube._verbs"
local writer = require "kube._event_writer"

local log, tools = core.log, core.tools

local M = {}

local QUEUE_MAX = 1000
local FINISH_SECONDS, REFRESH_SECONDS = 360, 1800 -- how often series are looked at, and written again
local TYPES = { Normal = true, Warning = true }

-- The two APIs: how an event is made, where it goes, what comes before it.
local APIS = {
  core = { make = objects.core, resource = "v1/events", correlator = correlator },
  events = { make = objects.events, resource = "events.k8s.io/v1/events", correlator = series },
}

-- From 0 up to 1.
local function random()
  local a, b, c = tools.random(3):byte(1, 3)
  return (a * 65536 + b * 256 + c) / 16777216
end

-- The end of the script: closed once, for all recorders.
local ending

local function end_of_script()
  if not ending then
    ending = { signal = core.task.signal(), begun = false }
    core.task.on_stop(function()
      ending.begun = true
      ending.signal:fire()
    end)
  end
  return ending
end

local wait = task.awaiting("writing events", function(signal, seconds)
  return signal:wait(seconds, "writing events")
end)

local family -- moonwatch_events_total, of all recorders

local SERIES_MAX = 1000

--- Who records events: kube.events, ctx.events, or one of kube.recorder.
---@class kube.Recorder
local Recorder = {}
Recorder.__index = Recorder
Recorder.__metatable = false

function Recorder.__tostring(self) return ("recorder %s"):format(self._who.component) end

-- Counts what became of an event, for stats() and for /metrics.
function Recorder:_count(result)
  self._stats[result] = self._stats[result] + 1
  local counter = self._series[result]
  if not counter then
    family = family or assert(core.metric.new("counter", "moonwatch_events_total",
      "Events of recorders, by what became of them.", { "recorder", "result" }, {}, SERIES_MAX))
    counter = family:series { self._who.component, result }
    self._series[result] = counter
  end
  counter:add(1)
end

-- Writing --------------------------------------------------------------------------------------------

local FAILURES = {
  refused = { "warn", "the server refused an event" },
  ["given up"] = { "error", "an event could not be written and is given up" },
}

function Recorder:_note(what, event, err)
  self:_count((what:gsub(" ", "_")))
  local line = FAILURES[what]
  if not line then return end
  log.write(line[1], line[2], { recorder = self._who.component, event = core.codec.object_key(event),
    reason = event.reason, error = tostring(err) })
end

-- What the writer needs of the world.
function Recorder:_io()
  local session = verbs.session { client = self._client, field_manager = self._who.component }
  local resource, last = self._api.resource, end_of_script()
  return {
    create = function(event) return session:try_create(event, { resource = resource }) end,
    patch = function(event, patch)
      return session:try_patch(resource, core.codec.object_key(event), patch, { type = "strategic" })
    end,
    sleep = function(seconds)
      if not last.begun then wait(last.signal, seconds) end
    end,
    random = random,
    is_stopping = function() return last.begun end,
    note = function(...) self:_note(...) end,
  }
end

function Recorder:_take()
  local entry = self._queue[self._first]
  if not entry then return nil end
  self._queue[self._first] = nil
  self._first = self._first + 1
  if self:_waiting() < QUEUE_MAX / 2 then self._dropping = false end
  return entry
end

function Recorder:_write(io, entry)
  local event, patch = entry.event, entry.patch
  if not entry.correlated then event, patch = self._correlator:correlate(event) end
  if event then return writer.write(io, event, patch) end
  self:_count("merged")
end

-- The task that writes until nothing waits. What goes wrong with one event is no reason to forget the others,
-- but for the end of the task.
local function run(self)
  local io = self:_io()
  for entry in self._take, self do
    local ok, err = pcall(self._write, self, io, entry)
    if not ok and errors.predicates.is_cancelled(err) then
      self._writing = false
      error(err, 0)
    elseif not ok then
      self:_note("refused", entry.event, err)
    end
  end
  self._writing = false
end

-- Queue -----------------------------------------------------------------------------------------------

function Recorder:_waiting() return self._last - self._first + 1 end

function Recorder:_drop()
  self:_count("dropped")
  if self._dropping then return end
  self._dropping = true
  log.write("warn", ("events are dropped: %d wait to be written already"):format(QUEUE_MAX),
    { recorder = self._who.component })
end

function Recorder:_push(entry)
  if self:_waiting() >= QUEUE_MAX then return self:_drop() end
  self._last = self._last + 1
  self._queue[self._last] = entry
  if self._writing then return end
  end_of_script()
  self._writing = true
  core.task.start({ name = "events of " .. self._who.component, drains = true }, run, self)
end

function Recorder:_write_due(refresh)
  for _, due in ipairs(self._correlator:due(refresh)) do
    self:_push { event = due[1], patch = due[2], correlated = true }
  end
end

-- Series are looked at from the first event on.
function Recorder:_watch_series()
  if self._api.correlator ~= series or self._watches then return end
  self._watches = true
  core.task.every(FINISH_SECONDS, function() self:_write_due(false) end)
  core.task.every(REFRESH_SECONDS, function() self:_write_due(true) end)
end

-- Recording -------------------------------------------------------------------------------------------

local function check_text(what, name, value)
  if type(value) ~= "string" or value == "" then
    errors.misuse("%s: %s must be a text, not %s", what, name, value == "" and "an empty one" or "a " .. type(value))
  end
end

local function refuse(self, message, note)
  self:_count("invalid")
  log.write("error", message, { recorder = self._who.component, reason = note.reason, at = errors.place() })
end

-- A note of what happened becomes an event that waits to be written; one that cannot become one is logged.
local function record(self, note, obj)
  if not TYPES[note.type] then
    return refuse(self, ("an event is Normal or Warning, not '%s'"):format(tostring(note.type)), note)
  end
  note.reference = objects.reference(obj)
  if not note.reference then
    return refuse(self, "an event needs an object with apiVersion, kind and metadata.name", note)
  end
  note.now = tools.now()
  self:_count("recorded")
  self:_watch_series()
  self:_push { event = self._api.make(note, self._who, self._name(note.reference.name, note.now)) }
end

local function text_of(what, fmt, ...)
  if select("#", ...) == 0 then return fmt end
  local ok, text = pcall(string.format, fmt, ...)
  if ok then return text end
  errors.misuse("%s: the message: %s", what, (tostring(text):gsub("^.-: ", "")))
end

local function record_text(self, what, obj, type_name, reason, fmt, ...)
  object.check(what, "the object", obj)
  check_text(what, "the reason", reason)
  if type(fmt) ~= "string" then errors.misuse("%s: the message must be a text, not a %s", what, type(fmt)) end
  record(self, { type = type_name, reason = reason, message = text_of(what, fmt, ...) }, obj)
end

--- Records an event of an object. It never waits, and never fails because of the server: an event that
--- cannot be written is logged.
---@param obj table
---@param type_name "Normal"|"Warning"
---@param reason string one word in CamelCase: why
---@param fmt string as for string.format when arguments follow
function Recorder:event(obj, type_name, reason, fmt, ...)
  record_text(self, "recorder:event", obj, type_name, reason, fmt, ...)
end

--- Records an event of the type Normal.
---@param obj table
---@param reason string
---@param fmt string
function Recorder:normal(obj, reason, fmt, ...)
  record_text(self, "recorder:normal", obj, "Normal", reason, fmt, ...)
end

--- Records an event of the type Warning.
---@param obj table
---@param reason string
---@param fmt string
function Recorder:warn(obj, reason, fmt, ...)
  record_text(self, "recorder:warn", obj, "Warning", reason, fmt, ...)
end

local NOTE = {
  object = "table", related = "table", type = "string", reason = "string", action = "string", message = "string",
}

--- Records an event with all that it can have: what was done (action), and to which second object.
---@param note { object: table, related?: table, type?: string, reason: string, action?: string, message: string }
--- type: default "Normal"
function Recorder:record(note)
  options.check("recorder:record", note, NOTE)
  object.check("recorder:record", "object", note.object)
  check_text("recorder:record", "reason", note.reason)
  if type(note.message) ~= "string" then
    errors.misuse("recorder:record: message must be a text, not a %s", type(note.message))
  end
  record(self, { type = note.type or "Normal", reason = note.reason, action = note.action, message = note.message,
    related = note.related and objects.reference(note.related) }, note.object)
end

--- How many events were recorded, and what became of them: written, merged (counted or filtered, so that
--- nothing was to be written), superfluous, refused, given_up, dropped, invalid; and how many are waiting.
---@return table<string, integer>
function Recorder:stats()
  local stats = { waiting = self:_waiting() }
  for name, value in pairs(self._stats) do stats[name] = value end
  return stats
end

options.guard(Recorder, "recorder", {
  is = function(value) return type(value) == "table" and rawget(value, "_who") ~= nil end,
})

local KNOWN = { name = "string", api = "string", client = "client", host = "string" }

--- A recorder of events.
---@param opts { name: string, api?: "core"|"events", client?: kube.Client, host?: string } name: who reports, as
--- kubectl describe shows it; api: core/v1, the default, or events.k8s.io/v1
---@return kube.Recorder
function M.recorder(opts)
  opts = options.check("recorder", opts, KNOWN)
  check_text("recorder", "name", opts.name)
  if not APIS[opts.api or "core"] then
    errors.misuse("recorder: api is \"core\" or \"events\", not '%s'", opts.api)
  end
  declared.add("recorders", { name = opts.name, resource = APIS[opts.api or "core"].resource })
  return M.new(opts)
end

--- kube.recorder for kube itself: a recorder that no script has declared.
function M.new(opts)
  local api = APIS[opts.api or "core"]
  local name = objects.namer(function() return uuid.of(tools.hex(tools.random(16))) end)
  return setmetatable({
    _who = { component = opts.name, host = opts.host }, _api = api, _client = opts.client, _name = name,
    _correlator = api.correlator.new { now = tools.now, name = name },
    _queue = {}, _first = 1, _last = 0, _writing = false, _dropping = false, _watches = false,
    _series = {},
    _stats = { recorded = 0, written = 0, merged = 0, superfluous = 0, refused = 0, given_up = 0, dropped = 0,
      invalid = 0 },
  }, Recorder)
end

return M
