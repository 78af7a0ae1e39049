-- A small instance for the specs of reading: a store, a frozen clock, two kinds, and requests that
-- go straight to a handler.
--
--   local rig = reads.new()
--   rig:put(rig.config_maps, "default", "a", { labels = { x = "1" } })
--   local code, document = rig:list("/api/v1/namespaces/default/configmaps?limit=2")
--   local stream = rig:watch("/api/v1/configmaps?watch=1");  stream:events()
local host = require "spec.support.sandbox_env"
local clock = require "kube.sandbox.clock"
local json = require "kube.sandbox.json"
local kinds = require "kube.sandbox.kinds"
local list = require "kube.sandbox.list"
local request = require "kube.sandbox.request"
local status = require "kube.sandbox.status"
local store = require "kube.sandbox.store"
local watch = require "kube.sandbox.watch"

local reads = {}

local Rig = {}
Rig.__index = Rig

local VERBS = { "delete", "get", "list", "create", "update", "watch" }

function reads.new(options)
  local S = { store = store.new(options), clock = clock.new(), kinds = kinds.new() }
  S.clock:freeze(1000)
  S.watches = watch.new(S)
  S.kinds:add(kinds.complete {
    group = "ex.io", version = "v1", plural = "widgets", kind = "Widget", namespaced = true,
    verb_list = VERBS, selectable_fields = { "spec.color", "spec.size" },
  })
  return setmetatable({
    S = S,
    store = S.store,
    config_maps = S.kinds:find("", "v1", "configmaps"),
    widgets = S.kinds:find("ex.io", "v1", "widgets"),
    namespaces = S.kinds:find("", "v1", "namespaces"),
  }, Rig)
end

local function key_of(R, namespace, name) return R.namespaced and namespace .. "/" .. name or name end

--- Creates or replaces an object; `fields` may have labels, data, spec.
function Rig:put(R, namespace, name, fields)
  fields = fields or {}
  local key = key_of(R, namespace, name)
  local doc = json.object {
    kind = R.kind,
    apiVersion = R.api_version,
    metadata = json.object {
      name = name,
      namespace = R.namespaced and namespace or nil,
      labels = fields.labels and json.object(fields.labels),
    },
    data = fields.data and json.object(fields.data),
    spec = fields.spec and json.object(fields.spec),
  }
  if self.store:get(R.storage, key) then return self.store:update(R, key, doc) end
  return self.store:create(R, key, doc)
end

function Rig:delete(R, namespace, name) return self.store:delete(R, key_of(R, namespace, name)) end

--- The context of a GET; `headers` by lower-case name.
function Rig:context(target, headers)
  local info = request.parse("GET", target)
  return {
    S = self.S,
    info = info,
    R = assert(self.S.kinds:find(info.group, info.version, info.resource), target),
    request = { header = function(name) return (headers or {})[name] end },
    warnings = {},
  }
end

--- Calls a handler: its results, or the code and document of the Status that it raised.
function Rig:call(handler, target, headers)
  local results = { pcall(handler, self:context(target, headers)) }
  if results[1] then return unpack(results, 2) end
  if not status.is(results[2]) then error(results[2], 0) end
  return results[2].code, results[2].document, results[2]
end

function Rig:list(target) return self:call(list.run, target) end

--- The names of a list's items in one text.
function Rig:names(target)
  local code, document = self:list(target)
  assert(code == 200, document.message)
  local names = {}
  for i, item in ipairs(document.items) do names[i] = item.metadata.name end
  return table.concat(names, " "), document.metadata
end

-- Streams ----------------------------------------------------------------------------------------

local Stream = {}
Stream.__index = Stream

function Stream:write(bytes)
  if self.refuses then return false end
  self.writes = self.writes + 1
  self.text = self.text .. bytes
  return true
end

function Stream:finish() self.finished = true end
function Stream:reset() self.cut = true end
function Stream:on_gone(fn) self.leave = fn end

--- What came since the last call: an array of events.
function Stream:events()
  local events = {}
  for text in self.text:gmatch("([^\n]*)\n") do events[#events + 1] = assert(json.decode(text)) end
  self.text = ""
  return events
end

--- The same, in short: "ADDED a/2 BOOKMARK -/3".
function Stream:short()
  local out = {}
  for i, event in ipairs(self:events()) do
    local m = event.object.metadata
    out[i] = ("%s %s/%s"):format(event.type, m.name or "-", m.resourceVersion or event.object.code or "")
  end
  return table.concat(out, " ")
end

--- Starts a watch; nil, code and Status when it is refused.
function Rig:watch(target, headers)
  local response, document = self:call(watch.run, target, headers)
  if type(response) ~= "table" then return nil, response, document end
  local stream = setmetatable({ text = "", writes = 0, response = response }, Stream)
  response.stream(stream)
  return stream
end

--- Lets time pass: what becomes due happens in its order.
function Rig:advance(seconds)
  local time = self.S.clock
  local limit = time.frozen + seconds
  while true do
    local first
    for timer in pairs(time.timers) do
      if timer.due <= limit and (not first or timer.due < first.due) then first = timer end
    end
    if not first then break end
    time.frozen, time.timers[first] = first.due, nil
    first.fn()
  end
  time.frozen = limit
end

--- One turn of the loop: what was put off for it happens.
function Rig.turn()
  local timers = host.timers
  host.timers = {}
  for _, timer in ipairs(timers) do timer.fn() end
end

return reads
