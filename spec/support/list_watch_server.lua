-- A small API server for pods: it holds objects, answers lists, watches and streaming lists, and
-- remembers its events, so that a watch that comes back misses nothing.
--
--   local server = list_watch_server.new()
--   server:put("a", { app = "web" })     server:remove("a")
--   server:cut()                         -- ends every open watch as a broken connection does
--   server:expire()                      -- a watch from an older version gets 410
--   server:fail("list", answer)          -- the next list gets this answer instead
--   server:mute()                        -- answers lists and keeps watches silent from now on
jit.off(true, true)
local pod = require "spec.support.pod"
local script_server = require "spec.support.script_server"

local list_watch_server = {}
local Server = {}
Server.__index = Server

local function event(type, json) return ('{"type":"%s","object":%s}\n'):format(type, json) end

local function bookmark(rv, annotations)
  return event("BOOKMARK", ('{"apiVersion":"v1","kind":"Pod","metadata":{"resourceVersion":' ..
    '"%d"%s}}'):format(rv, annotations or ""))
end

local marker = ',"annotations":{"k8s.io/initial-events-end":"true"}'

local gone = '{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too old",' ..
  '"reason":"Expired","code":410}'

-- Whether a request wants to hear of an object.
local function wants(request, object)
  local ns = request.path:match("^/api/v1/namespaces/([^/]+)/pods$")
  local app = (request.query.labelSelector or ""):match("^app=(.+)$")
  return (not ns or ns == object.more.ns) and (not app or app == object.more.app)
end

local function json(object, rv) return pod(object.name, rv or object.rv, object.more) end

function Server:matching(request)
  local found = {}
  for _, object in pairs(self.objects) do
    if wants(request, object) then found[#found + 1] = object end
  end
  table.sort(found, function(a, b) return a.rv < b.rv end)
  return found
end

local function answer_list(self, request)
  local items = {}
  for i, object in ipairs(self:matching(request)) do items[i] = json(object) end
  return { body = ('{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"%d"},' ..
    '"items":[%s]}'):format(self.rv, table.concat(items, ",")) }
end

local function answer_stream(self, request)
  local chunks = {}
  for i, object in ipairs(self:matching(request)) do chunks[i] = event("ADDED", json(object)) end
  chunks[#chunks + 1] = bookmark(self.rv, marker)
  return { chunks = chunks, open = true }
end

local function answer_watch(self, request)
  local from = tonumber(request.query.resourceVersion) or self.rv
  if from < self.oldest then return { chunks = { event("ERROR", gone) } } end
  local chunks = {}
  for _, past in ipairs(self.history) do
    if past.rv > from and wants(request, past.object) then chunks[#chunks + 1] = past.text end
  end
  return { chunks = chunks, open = true }
end

local function kind_of(request)
  if request.query.sendInitialEvents then return "stream" end
  return request.query.watch and "watch" or "list"
end

local answers = { list = answer_list, stream = answer_stream, watch = answer_watch }

local function answer(self, request)
  local kind = kind_of(request)
  self.count[kind] = self.count[kind] + 1
  local failure = table.remove(self.failures[kind], 1)
  return failure or answers[kind](self, request)
end

local function emit(self, type, object, rv)
  local text = event(type, json(object, rv))
  self.history[#self.history + 1] = { rv = rv, text = text, object = object }
  if self.muted then return end
  for _, stream in ipairs(self.http.streams) do
    if wants(stream.request, object) then stream:send(text) end
  end
end

local function key_of(name, more) return (more.ns or "default") .. "/" .. name end

--- Creates or changes a pod and returns its version.
function Server:put(name, more)
  more = more or {}
  more.ns, more.app = more.ns or "default", more.app or "web"
  self.rv = self.rv + 1
  local known = self.objects[key_of(name, more)]
  local object = { name = name, more = more, rv = self.rv }
  self.objects[key_of(name, more)] = object
  emit(self, known and "MODIFIED" or "ADDED", object, self.rv)
  return self.rv
end

function Server:remove(name, more)
  local key = key_of(name, more or {})
  local object = assert(self.objects[key], "no pod " .. key)
  self.rv = self.rv + 1
  self.objects[key] = nil
  emit(self, "DELETED", object, self.rv)
  return self.rv
end

--- Sends a bookmark with a new version to every open watch.
function Server:bookmark()
  self.rv = self.rv + 1
  for _, stream in ipairs(self.http.streams) do stream:send(bookmark(self.rv)) end
  return self.rv
end

--- Makes changes without telling the watches that are open.
function Server:mute() self.muted = true end

function Server:cut()
  self.muted = false
  for _, stream in ipairs(self.http.streams) do
    if not stream.gone and not stream.ended then stream:cut() end
  end
end

function Server:expire()
  self.history = {}
  self.oldest = self.rv
end

function Server:fail(kind, instead) table.insert(self.failures[kind], instead) end

--- An error event into every open watch.
function Server:break_watches()
  self.muted = false
  for _, stream in ipairs(self.http.streams) do stream:send(event("ERROR", gone)) end
end

function Server:open_watches()
  local n = 0
  for _, stream in ipairs(self.http.streams) do
    if not stream.gone and not stream.ended then n = n + 1 end
  end
  return n
end

function Server:url() return self.http:url() end
function Server:turn() self.http.turn() end
function Server:close() self.http:close() end

function list_watch_server.new()
  local self = setmetatable({ objects = {}, history = {}, rv = 100, oldest = 0,
    count = { list = 0, watch = 0, stream = 0 },
    failures = { list = {}, watch = {}, stream = {} } }, Server)
  self.http = script_server.new(function(request) return answer(self, request) end)
  return self
end

return list_watch_server
