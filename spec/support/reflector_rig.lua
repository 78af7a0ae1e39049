-- A real reflector on the real transport against a scripted server, all on the spec's thread.
--
--   local r = rig.new { list = { answer, ... }, watch = { ... }, stream = { ... }, config = { ... } }
--   r:start()
--   r:pump(function() return #r.log == 1 end)
--   r:close()
--
-- The n-th list (watch, streaming list) gets the n-th answer of its kind; a function is called with
-- the request. When answers run out a list fails the spec, and a watch stays open and silent.
-- r.log holds what reached the sink, as text; r.errors what reached on_error; r.states the states;
-- r.opened has an entry per watch that opened.
jit.off(true, true)
local uv = require "luv"
local script_server = require "spec.support.script_server"
local unit = require "spec.support.unit"
local C, ffi = unit.C, unit.ffi

local rig = {}
local Rig = {}
Rig.__index = Rig

local current  -- the rig that the callbacks belong to

-- Documents.

function rig.pod(name, rv, more)
  more = more or {}
  return ('{"apiVersion":"v1","kind":"%s","metadata":{"name":"%s","namespace":"%s","uid":"%s",' ..
    '"resourceVersion":"%s"},"spec":{}}'):format(more.kind or "Pod", name, more.ns or "default",
    more.uid or ("uid-" .. name), rv)
end

--- A pod that is nested too deeply to be stored.
function rig.deep(...)
  return (rig.pod(...):gsub('"spec":{}', '"spec":' .. ("["):rep(300) .. ("]"):rep(300)))
end

function rig.list(rv, items, continue)
  return { body = ('{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"%s"%s},' ..
    '"items":[%s]}'):format(rv, continue and (',"continue":"%s"'):format(continue) or "",
    table.concat(items, ",")) }
end

function rig.event(type, object)
  return ('{"type":"%s","object":%s}\n'):format(type, object)
end

function rig.bookmark(rv, annotation)
  local annotations = annotation
    and (',"annotations":{"k8s.io/initial-events-end":"%s"}'):format(annotation) or ""
  return rig.event("BOOKMARK", ('{"apiVersion":"v1","kind":"Pod","metadata":{"resourceVersion":' ..
    '"%s"%s}}'):format(rv, annotations))
end

function rig.marker(rv) return rig.bookmark(rv, "true") end

function rig.status(code, reason, message, details)
  return ('{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"%s",' ..
    '"reason":"%s"%s,"code":%d}'):format(message or "said no", reason,
    details and (',"details":' .. details) or "", code)
end

-- Answers.

function rig.fail(code, reason, message, details)
  return { status = code, body = rig.status(code, reason, message, details) }
end

function rig.open(...) return { chunks = { ... }, open = true } end
function rig.ended(...) return { chunks = { ... } } end
function rig.cut(...) return { chunks = { ... }, cut = true } end
function rig.error_event(...) return rig.event("ERROR", rig.status(...)) end

-- The sink and the callbacks. LuaJIT makes one C function of each, so they are made once and serve
-- whichever rig is current.

local function describe(o)
  return ("%s@%s"):format(unit.str(C.mw_object_key(o)), unit.str(C.mw_object_rv(o)))
end

local function note(what, ...)
  current.log[#current.log + 1] = what
  local hook = current.hooks[what:match("^%a+")]
  if hook then hook(...) end
end

local function on_object(verb)
  return ffi.cast("void (*)(void *, struct mw_object *)", function(_, o)
    note(verb .. " " .. describe(o), o)
  end)
end

-- LuaJIT's callbacks take no struct by value; a slice travels like a pointer and a size.
local function on_replace(_, all, p, n)
  local texts = {}
  current.pointers = {}
  for i = 0, tonumber(all.n) - 1 do
    texts[#texts + 1] = describe(all.v[i])
    current.pointers[#texts] = tonumber(ffi.cast("intptr_t", all.v[i]))
  end
  note(("replace %s: %s"):format(ffi.string(p, n), table.concat(texts, " ")))
end

local sink = ffi.new("struct mw_sink", {
  add = on_object("add"), update = on_object("update"), remove = on_object("remove"),
  replace = ffi.cast("void (*)(void *, struct mw_object_list *, struct mw_slice)", ffi.cast("void *",
    ffi.cast("void (*)(void *, struct mw_object_list *, const char *, size_t)", on_replace))),
  bookmark = ffi.cast("void (*)(void *, struct mw_slice)", ffi.cast("void *",
    ffi.cast("void (*)(void *, const char *, size_t)", function(_, p, n)
      note("bookmark " .. ffi.string(p, n))
    end))),
  resync = ffi.cast("void (*)(void *)", function() note("resync") end),
})

local places = { [0] = "list", "stream", "open", "watch" }

local callbacks = ffi.new("struct mw_reflector_callbacks", {
  on_error = ffi.cast("void (*)(void *, enum mw_error_place, const struct mw_err *, const char *)",
    function(_, place, err, again)
      current.errors[#current.errors + 1] = { place = places[tonumber(place)],
        code = ffi.string(C.mw_err_name(err.code)), status = err.http_status,
        message = ffi.string(err.message), again = ffi.string(again) }
      if current.hooks.error then current.hooks.error() end
    end),
  on_state = ffi.cast("void (*)(void *, enum mw_reflector_state)", function(_, state)
    local name = ffi.string(C.mw_reflector_state_name(state))
    current.states[#current.states + 1] = name
    if current.hooks[name] then current.hooks[name]() end
  end),
  on_opened = ffi.cast("void (*)(void *)", function()
    local sent = #current.sent.watch + #current.sent.stream
    current.opened[#current.opened + 1] = sent .. " watches sent"
  end),
  on_stopped = ffi.cast("void (*)(void *)", function() current.stopped = true end),
})

-- The rig.

local function kind_of(request)
  if request.query.sendInitialEvents then return "stream" end
  return request.query.watch and "watch" or "list"
end

local function script(self, answers)
  return function(request)
    local kind = kind_of(request)
    local sent = self.sent[kind]
    sent[#sent + 1] = request
    local answer = (answers[kind] or {})[#sent]
    if type(answer) == "function" then answer = answer(request) end
    if answer then return answer end
    if kind == "list" then self.surplus = request.target end
    return kind == "list" and rig.fail(500, "InternalError", "no answer left") or rig.open()
  end
end

local function new_config(self, options)
  local config = ffi.new("struct mw_reflector_config")
  config.backoff = { 0.005, 2, 0, 0.04, 10, 0 }
  config.seed = 1
  local resource = options.resource or "v1/pods"
  assert(C.mw_resource_parse(unit.slice(resource), config.resource, nil) == 0)
  for name, value in pairs(options) do
    if name ~= "resource" then config[name] = value end
  end
  self.config = options  -- keeps the strings alive
  return config
end

function rig.new(answers)
  local self = setmetatable({ log = {}, errors = {}, states = {}, opened = {}, hooks = {},
    sent = { list = {}, watch = {}, stream = {} } }, Rig)
  C.mw_log_set_level(os.getenv("SPEC_LOG") and C.MW_LOG_DEBUG or -1)
  self.server = script_server.new(script(self, answers))
  self.loop = C.mw_loop_new("spec")
  self.http = C.mw_http_new(self.loop, nil)
  self.endpoint = unit.endpoint(self.server:url())
  local config = new_config(self, answers.config or {})
  self.reflector = C.mw_reflector_new(self.loop, self.http, self.endpoint, config, sink, callbacks)
  current = self
  return self
end

function Rig:start() C.mw_reflector_start(self.reflector) end
function Rig:stop() C.mw_reflector_stop(self.reflector) end

function Rig:turn()
  C.mw_loop_turn(self.loop, 1)
  self.server.turn()
end

--- Runs both loops until the condition holds; fails the spec after 5 seconds.
function Rig:pump(condition)
  local deadline = uv.hrtime() + 5e9
  while not condition() do
    self:turn()
    if uv.hrtime() > deadline then
      local told = {}
      for i, e in ipairs(self.errors) do told[i] = e.place .. ": " .. e.message end
      error(("timed out\nlog: %s\nerrors: %s\nstates: %s"):format(table.concat(self.log, "; "),
        table.concat(told, "; "), table.concat(self.states, " ")), 2)
    end
  end
end

--- Runs both loops for a while, to show that nothing (more) happens.
function Rig:idle(seconds)
  local deadline = uv.hrtime() + (seconds or 0.03) * 1e9
  while uv.hrtime() < deadline do self:turn() end
end

--- Waits until so many requests of a kind have arrived and returns the last of them.
function Rig:wait_for(kind, count)
  self:pump(function() return #self.sent[kind] >= count end)
  return self.sent[kind][count]
end

--- Waits until the sink has been called so many times and returns what it was called with.
function Rig:wait_log(count)
  self:pump(function() return #self.log >= count end)
  return self.log
end

function Rig:stats()
  local stats = ffi.new("struct mw_reflector_stats")
  C.mw_reflector_stats(self.reflector, stats)
  return stats
end

--- How often a row of the decision table was taken.
function Rig:decided(name)
  return tonumber(self:stats().decisions[C["MW_DECISION_" .. name]])
end

function Rig:rv() return ffi.string(self:stats().last_rv) end

--- Stops and frees everything; fails when the reflector does not stop or asked for too much.
function Rig:close()
  self:stop()
  self:pump(function() return self.stopped end)
  C.mw_reflector_free(self.reflector)
  C.mw_endpoint_unref(self.endpoint)
  C.mw_http_free(self.http)
  C.mw_loop_free(self.loop)
  self.server:close()
  current = nil
  assert(self.surplus == nil, "a list without an answer: " .. tostring(self.surplus))
end

return rig
