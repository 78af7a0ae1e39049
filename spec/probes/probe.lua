-- What a probe works with: random names, requests whose answers are noted down, and watches in the
-- background. A probe is { name = , run = function(p) }; see spec/probes/all.lua.
--
--   local a = p:name "a"                                    random, <a> in the transcript
--   local answer = p:post(p:core "configmaps", { ... })     noted; answer.status, answer.json
--   local watch = p:watch(p:core "configmaps")              noted when events are taken
--   watch:take(2); watch:close()
--   p:note("what this is", value)
--
-- Options of requests: type (Content-Type), accept, headers, user (of the kubeconfig, or false for
-- nobody), raw (compare the text, not the value), pick (a function that makes of the value what is
-- compared), quiet (note nothing; "unseen": its versions do not count either), as (the path as it is
-- noted), timeout.
local http_client = require "spec.support.http_client"
local json = require "spec.probes.json"
local rand = require "spec.support.fault_rand"

local probe = {}
local Probe, Watch = {}, {}
Probe.__index, Watch.__index = Probe, Watch

local consonants = "bcdfghjklmnpqrstvwxz"

-- ---- names ----

--- A random name that begins with its label, so that order does not depend on the seed. No vowels,
--- so that it is not part of any text by chance.
function Probe:name(label)
  local made = self._labels[label]
  if made then return made end
  local letters = { label }
  for i = 1, 6 do
    local at = self._rand:int(1, #consonants)
    letters[i + 1] = consonants:sub(at, at)
  end
  made = table.concat(letters)
  self._labels[label], self.names[made] = made, label
  return made
end

--- Several names at once.
function Probe:draw(...)
  local out = {}
  for i = 1, select("#", ...) do out[i] = self:name((select(i, ...))) end
  return unpack(out)
end

--- The probe's own namespace; it is made when it is asked for first and deleted at the end.
function Probe:namespace()
  if not self._namespace then
    self._namespace = self:name "ns"
    self:setup("POST", "/api/v1/namespaces", { metadata = { name = self._namespace } })
    self:later(function() self:quiet("DELETE", "/api/v1/namespaces/" .. self._namespace) end)
  end
  return self._namespace
end

--- Paths within the probe's namespace.
function Probe:core(resource, name) return self:path("/api/v1", resource, name) end
function Probe:path(version, resource, name)
  return ("%s/namespaces/%s/%s%s"):format(version, self:namespace(), resource, name and "/" .. name or "")
end

-- ---- requests ----

local kept_headers = { warning = true, ["retry-after"] = true, ["content-encoding"] = true, vary = true }
local usual_cache, usual_type = "no-cache, private", "application/json"

-- What the sandbox says of itself, that it did not check something, is no other server's to say.
local function without_confessions(values)
  local kept = {}
  for _, value in ipairs(values) do
    if not value:find('^299 %- "sandbox: ') then kept[#kept + 1] = value end
  end
  return kept
end

-- The headers that count. The usual ones are left out.
local function headers_of(answer)
  local out = {}
  for name, values in pairs(answer.headers) do
    if name == "warning" then values = without_confessions(values) end
    if kept_headers[name] and values[1] then out[name] = json.array(values) end
    if name == "etag" then out[name] = "<etag>" end
  end
  local cache, content_type = answer:header("cache-control") or "", answer:header("content-type") or ""
  if cache ~= usual_cache then out["cache-control"] = cache end
  if content_type ~= usual_type then out["content-type"] = content_type end
  return next(out) and json.object(out) or nil
end

local function request_headers(self, options)
  local headers = {}
  for i, pair in ipairs(options.headers or {}) do headers[i] = pair end
  local function add(name, value) headers[#headers + 1] = { name, value } end
  if options.type then add("Content-Type", options.type) end
  add("Accept", options.accept or "application/json")
  add("User-Agent", options.agent or "probe/1.0")
  if options.user ~= nil then
    add("Authorization", options.user and "Bearer " .. self.target:token(options.user))
  end
  return headers
end

local function encode(body)
  if type(body) == "table" then return json.encode(body) end
  return body
end

--- Adds a step to the transcript.
function Probe:add_step(step) self.steps[#self.steps + 1] = step end

--- Notes a value that the probe worked out.
function Probe:note(label, value)
  self:add_step { note = label, body = value }
end

function Probe:_send(method, path, body, options)
  local content_type = options.type
  if content_type == nil and body then options.type = "application/json" end
  local exchange = self.target.client:send { method = method, path = path, body = encode(body),
    headers = request_headers(self, options) }
  options.type = content_type
  return exchange
end

local function note_answer(self, answer, options)
  local body
  if options.raw or not answer.json then
    body = answer.body
  else
    body = answer.json
    if options.pick then body = options.pick(body) end
    -- The step gets a value of its own: normalising writes into it.
    body = json.decode(json.encode(body))
  end
  self:add_step { request = ("%s %s"):format(answer.method, options.as or answer.path), status = answer.status,
    headers = headers_of(answer), body = body ~= "" and body or nil }
end

--- Sends a request, waits for the answer and notes it.
function Probe:request(method, path, body, options)
  options = options or {}
  local answer = self:_send(method, path, body, options):finish(options.timeout)
  if answer.body:find("^[{%[]") then answer.json = json.decode(answer.body) end
  if not options.quiet then
    note_answer(self, answer, options)
  elseif answer.json and answer.status < 300 and options.quiet ~= "unseen" then
    -- Its versions have their place among the others.
    self:add_step { hidden = true, body = json.decode(answer.body) }
  end
  return answer
end

function Probe:get(path, options) return self:request("GET", path, nil, options) end
function Probe:post(path, body, options) return self:request("POST", path, body, options) end
function Probe:put(path, body, options) return self:request("PUT", path, body, options) end
function Probe:delete(path, body, options) return self:request("DELETE", path, body, options) end

local patch_types = { json = "application/json-patch+json", merge = "application/merge-patch+json",
  strategic = "application/strategic-merge-patch+json", apply = "application/apply-patch+yaml" }

--- kind: json, merge, strategic or apply.
function Probe:patch(kind, path, body, options)
  local own = { type = patch_types[kind] }
  for name, value in pairs(options or {}) do own[name] = value end
  return self:request("PATCH", path, body, own)
end

--- A request that is not noted.
function Probe:quiet(method, path, body) return self:request(method, path, body, { quiet = true }) end

--- A request that is not noted and must succeed.
function Probe:setup(method, path, body)
  local answer = self:quiet(method, path, body)
  assert(answer.status < 300, ("%s %s: %d %s"):format(method, path, answer.status, answer.body))
  return answer
end

--- Repeats a GET until done(answer), and notes only the last answer. Raises when that takes longer
--- than the target's patience.
function Probe:poll(path, done, options)
  options = options or {}
  local answer
  local quiet = { quiet = "unseen", accept = options.accept }
  local seconds = self.target.patience
  local stop = os.time() + seconds
  while true do
    answer = self:get(path, quiet)
    if done(answer) then break end
    assert(os.time() <= stop, ("GET %s: not as expected in %d s: %d %s"):format(path, seconds, answer.status,
      answer.body:sub(1, 300)))
    http_client.wait(function() return false end, 0.02)
  end
  if not options.quiet then note_answer(self, answer, options) end
  return answer
end

--- Sends all requests ({ method, path, body, options }) at once; returns the answers, notes nothing.
function Probe:parallel(requests)
  local exchanges = {}
  for i, r in ipairs(requests) do exchanges[i] = self:_send(r[1], r[2], r[3], r[4] or {}) end
  for _, exchange in ipairs(exchanges) do exchange:finish() end
  return exchanges
end

-- ---- watches ----

--- Opens a watch. Its label names it in the transcript.
function Probe:watch(path, options)
  options = options or {}
  local exchange = self:_send("GET", path .. (path:find("?", 1, true) and "&" or "?") .. "watch=1", nil, options)
  assert(http_client.wait(function() return exchange.status or exchange.done end, 10), "no answer to the watch")
  local watch = setmetatable({ probe = self, exchange = exchange, pick = options.pick, _taken = 0, _at = 1 }, Watch)
  self:later(function() watch:close() end)
  self:add_step { request = "WATCH " .. exchange.path, status = exchange.status,
    headers = headers_of(exchange), chunked = exchange.chunked or nil }
  return watch
end

function Watch:_next()
  local stop = self.exchange.body:find("\n", self._at, true)
  if not stop then return nil end
  local line = self.exchange.body:sub(self._at, stop - 1)
  self._at = stop + 1
  return json.decode(line) or line
end

function Watch:_events(count, seconds)
  local events = json.array {}
  seconds = math.min(seconds, self.probe.target.patience)
  http_client.wait(function()
    while #events < count do
      local event = self:_next()
      if not event then break end
      events[#events + 1] = event
    end
    return #events >= count or self.exchange.done
  end, seconds)
  return events
end

local function is_plain_bookmark(event)
  return event ~= nil and event.type == "BOOKMARK" and not json.get(event, "object", "metadata", "annotations")
end

-- How often a server says the same is a matter of its timers.
local function without_repeated_bookmarks(events)
  local out = json.array {}
  for _, event in ipairs(events) do
    if not is_plain_bookmark(event) or not is_plain_bookmark(out[#out]) then out[#out + 1] = event end
  end
  return out
end

function Watch:_note(events, over)
  events = without_repeated_bookmarks(events)
  local body = events
  if self.pick then
    body = json.array {}
    for i, event in ipairs(events) do body[i] = self.pick(event) end
  end
  self.probe:add_step { watch = self.exchange.path, body = json.decode(json.encode(body)), over = over }
  return events
end

--- Waits for that many more events and notes them (fewer when the time or the stream is over).
function Watch:take(count, seconds) return self:_note(self:_events(count, seconds or 10)) end

--- Notes all events up to the end of the stream, and whether it came.
function Watch:finish(seconds)
  local events = self:_events(math.huge, seconds or 10)
  return self:_note(events, self.exchange.done and not self.exchange.failure)
end

--- The rest of a stream that is not one of JSON lines: the body of a refused watch.
function Watch:refusal()
  self.exchange:finish(10)
  local body = json.decode(self.exchange.body) or self.exchange.body
  self.probe:add_step { watch = self.exchange.path, body = body, over = true }
end

function Watch:close()
  if not self.exchange.done then self.exchange:close() end
end

-- ---- running ----

--- Calls fn when the probe is over.
function Probe:later(fn) table.insert(self._later, fn) end

--- Takes the finalizers off an object when the probe is over, so that its namespace can go.
function Probe:release(path)
  self:later(function()
    self:patch("merge", path, { metadata = { finalizers = json.null } }, { quiet = "unseen" })
  end)
end

--- Makes the server forget all history before now.
function Probe:expire() self.target:expire() end

-- What a probe draws depends on its whole name, so that no two draw the same.
local function purpose_of(name)
  local sum = 0
  for i = 1, #name do sum = (sum * 31 + name:byte(i)) % 1000003 end
  return sum
end

--- Runs a probe on a target and returns its raw steps and the names it drew. An error of the probe
--- itself is its last step.
function probe.run(definition, target, seed)
  local self = setmetatable({ target = target, steps = {}, names = {}, _labels = {}, _later = {},
    _rand = rand.new(seed, purpose_of(definition.full or definition.name)) }, Probe)
  local ok, problem = xpcall(function() definition.run(self) end, function(e)
    return tostring(e):gsub("^[^:]+:%d+: ", "") .. "\n" .. debug.traceback()
  end)
  if not ok then self:add_step { error = problem } end
  for i = #self._later, 1, -1 do pcall(self._later[i]) end
  return self.steps, self.names, not ok and problem or nil
end

return probe
