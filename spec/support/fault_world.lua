-- One resource in one namespace, served as an API server does: LIST with pages, WATCH with
-- bookmarks, streaming lists. Its history is the truth that a client is measured by.
--
-- It also keeps a model of what the client may know (`model`), from the bytes that were sent:
-- which resource versions it may stand at, which events it must have seen, and whether it was told
-- that its version is unavailable. A request that does not follow from that is a violation.
--
-- What goes wrong on the way comes from spec/support/fault_acts.lua: world.armed is a queue of acts
-- { hook, name }, and the first one is played when its hook comes along.
local fault_world = {}
local World, Model = {}, {}
World.__index, Model.__index = World, Model

local GROUP_VERSION, KIND = "fault.example.com/v1", "Widget"
local MAX_TRIES = 20

-- Text that a splitter could trip over.
local pads = { "", "plain", [[{\"type\":\"DELETED\"}\n]], [[\u00e9\ud83d\ude00 ]] .. ("x"):rep(300),
  [[]}]}\\\"]], ("\195\169{["):rep(40) }

-- The model of the client.

local function new_model()
  return setmetatable({ track = { { rv = "" } }, acked = {}, flag = "no" }, Model)
end

--- An event or snapshot with this resource version was sent.
function Model:sent(rv, event, snapshot)
  self.track[#self.track + 1] = { rv = ("%d"):format(rv), event = event, snapshot = snapshot }
  if snapshot and self.flag == "yes" then self.flag = "maybe" end
end

function Model:take(n)
  local seen = false
  for i = 1, n do
    local item = self.track[i]
    if item.event then self.acked[#self.acked + 1] = item.event end
    seen = seen or item.snapshot
  end
  if seen then
    self.flag = "no"
  elseif self.flag == "maybe" then
    self.flag = "yes"
  end
  self.track = { { rv = self.track[n].rv } }
end

--- The client has surely seen everything that was sent.
function Model:commit() self:take(#self.track) end

-- The first item with this resource version, not before `from`.
local function find(track, rv, from)
  for i = from, #track do
    if track[i].rv == rv then return i end
  end
end

local function first_snapshot(track)
  for i = 1, #track do
    if track[i].snapshot then return i end
  end
end

--- The client says that it stands at rv. Returns whether it can.
function Model:resolve(rv)
  local at = self.flag == "maybe" and find(self.track, rv, first_snapshot(self.track))
    or find(self.track, rv, 1)
  if at then self:take(at) end
  return at ~= nil
end

--- The client asks for the newest state, as one who was told that its version is unavailable.
function Model:resolve_unavailable()
  if self.flag == "no" then return false end
  if self.flag == "maybe" then
    for i = #self.track, first_snapshot(self.track), -1 do self.track[i] = nil end
    self.flag = "yes"
  end
  return true
end

function Model:may_stand_at()
  local rvs = {}
  for i, item in ipairs(self.track) do rvs[i] = item.rv end
  return table.concat(rvs, " ")
end

-- State.

function World:render(o, replayed)
  return ('{"apiVersion":"%s","kind":"%s","metadata":{"name":"%s","namespace":"%s","uid":"%s",'
    .. '"resourceVersion":"%d","labels":{"group":"%s"%s},"managedFields":[{"manager":"x"}]},'
    .. '"spec":{"group":"%s","n":%d,"tags":[%s],"pad":"%s"}}')
    :format(GROUP_VERSION, KIND, o.name, self.ns, o.uid, o.rv, o.group,
      replayed and ',"replayed":"true"' or "", o.group, o.n,
      #o.tags > 0 and '"' .. table.concat(o.tags, '","') .. '"' or "", pads[o.pad])
end

local function render_event(kind, object) return ('{"type":"%s","object":%s}\n'):format(kind, object) end

local function copy(o)
  local c = {}
  for k, v in pairs(o) do c[k] = v end
  return c
end

function World:record(kind, o)
  self.rv = self.rv + self.rv_rand:int(1, 3)
  o.rv = self.rv
  self.log[#self.log + 1] = { kind = kind, object = o, rv = o.rv, json = self:render(o) }
  if self.stream then self:pump() end
end

--- Creates or changes an object; fields: group, n, tags, pad (a number).
function World:put(name, fields)
  local before = self.objects[name]
  local o = copy(fields)
  o.name = name
  if before then
    o.uid = before.uid
  else
    self.uids = self.uids + 1
    o.uid = ("%s-%d"):format(self.ns, self.uids)
    self.count = self.count + 1
  end
  self.objects[name] = o
  self:record(before and "MODIFIED" or "ADDED", o)
end

function World:delete(name)
  local o = copy(self.objects[name])
  self.objects[name] = nil
  self.count = self.count - 1
  self:record("DELETED", o)
end

--- The objects as of a place in the log, by name.
function World:state_at(place)
  local state = {}
  for i = 1, place do
    local e = self.log[i]
    state[e.object.name] = e.kind ~= "DELETED" and e or nil
  end
  return state
end

-- The newest upsert of every object, sorted by name.
local function sorted(state)
  local list = {}
  for _, e in pairs(state) do list[#list + 1] = e end
  table.sort(list, function(a, b) return a.object.name < b.object.name end)
  return list
end

-- Faults.

--- Counts something that was made to go wrong.
function World:fault(name)
  self.faults = self.faults + 1
  self.fault_names[name] = (self.fault_names[name] or 0) + 1
  self:note("fault " .. name)
end

function World:violation(fmt, ...)
  self.violations[#self.violations + 1] = fmt:format(...)
  self:note("VIOLATION " .. fmt:format(...))
end

--- One line of the world's diary, shown when a seed fails.
function World:note(text)
  if self.verbose then print(("%8.3f %s %s"):format(self.clock(), self.ns, text)) end
  self.diary[#self.diary + 1] = ("%8.3f %s"):format(self.clock(), text)
end

-- Plays the first armed act if it belongs to this hook. An act returns false when it cannot be
-- played here and now; it then stays armed.
function World:play(hook, ...)
  local act = self.armed[1]
  if not act or act.hook ~= hook then return false end
  table.remove(self.armed, 1)
  if self.acts[hook][act.name](self, ...) == false then
    table.insert(self.armed, 1, act)
    self:retry(act)
    return false
  end
  self:fault(hook .. "." .. act.name)
  return true
end

--- The first armed act has to wait for another occasion; it is given up when that does not come.
function World:retry(act)
  act.tries = (act.tries or 0) + 1
  if act.tries > MAX_TRIES then table.remove(self.armed, 1) end
end

-- Streams.

local Stream = {}
Stream.__index = Stream

function Stream:send(bytes) self.conn:chunk(bytes, self.chunk_size) end

--- Sends an event that moves the client's resource version.
function Stream:send_event(kind, entry, json)
  self:send(render_event(kind, json or entry.json))
  self.world.model:sent(entry.rv, { kind = kind, name = entry.object.name, rv = entry.rv })
  self.events = self.events + 1
  self.world.events_sent = self.world.events_sent + 1
end

--- A bookmark; annotation is the value of k8s.io/initial-events-end, nil for none.
function Stream:send_bookmark(rv, annotation, kind)
  local annotations = annotation
    and (',"annotations":{"k8s.io/initial-events-end":"%s"}'):format(annotation) or ""
  self:send(render_event("BOOKMARK",
    ('{"apiVersion":"%s","kind":"%s","metadata":{"resourceVersion":"%d"%s}}')
      :format(GROUP_VERSION, kind or KIND, rv, annotations)))
end

--- The world sends nothing on it any more.
function Stream:drop()
  self.dead = true
  if self.world.stream == self then self.world.stream = nil end
end

--- The client sees all that was sent, and then `next` is what it must do.
function Stream:settle(next)
  self:drop()
  if self.plain then self.world.model:commit() end
  self.world:expect(next)
end

--- What must follow when it ends without an error. Before its marker a streaming list may be over or begin again.
function Stream:after_end()
  if not self.plain then return nil end
  return self.events > 0 and "watch" or self.world:after_short()
end

--- Ends it properly.
function Stream:finish()
  self:settle(self:after_end())
  self.conn:finish()
end

--- Ends the connection. A reset may overtake what was sent.
function Stream:cut(how)
  if how == "rst" then
    self:drop()
    self.conn:rst()
  else
    self:settle(self:after_end())
    self.conn:fin()
  end
end

--- What must follow a watch that ended at once.
function World:after_short() return self.surely_short and "snapshot" or nil end

--- Ends it by an event of type ERROR; text is the object, next what must follow.
function Stream:error(text, next)
  self:settle(next)
  self.conn:chunk(render_event("ERROR", text))
end

--- Sends what has happened since.
function World:pump()
  local s = self.stream
  if not s or not s.plain then return end
  while self.stream == s and not s.busy and s.at < #self.log do
    local entry = self.log[s.at + 1]
    local bytes = render_event(entry.kind, entry.json)
    if not self:play("event", s, entry, bytes) then s:send_event(entry.kind, entry) end
    s.at = s.at + 1
  end
end

function World:open_stream(conn, at)
  local s = setmetatable({ world = self, conn = conn, at = at, events = 0, plain = false }, Stream)
  conn:start()
  conn.on_gone = function() s:drop() end
  self.stream = s
  if self.rand:chance(0.1) then s.chunk_size = self.rand:pick { 1, 3, 17, 100 } end
  return s
end

-- Requests.

local function status(code, reason, more)
  return ('{"kind":"Status","apiVersion":"v1","status":"Failure","message":"made up",'
    .. '"reason":"%s","code":%d%s}'):format(reason, code, more or "")
end
fault_world.status = status

-- Where in the log a resource version is: the last entry that is not newer.
local function place_of(self, rv)
  local low, high = 0, #self.log
  while low < high do
    local mid = math.floor((low + high + 1) / 2)
    if self.log[mid].rv <= rv then low = mid else high = mid - 1 end
  end
  return low
end

function World:watch(conn, q)
  local rv = q.resourceVersion or ""
  if rv == "" or not self.model:resolve(rv) then
    self:violation("watch at '%s', the client can stand at: %s", rv, self.model:may_stand_at())
  elseif self.model.flag ~= "no" then
    self:violation("watch at '%s' before a new snapshot", rv)
  end
  if q.resourceVersionMatch then self:violation("watch with resourceVersionMatch") end
  if self:play("watch", conn) then return end
  if (tonumber(rv) or 0) < self.floor then
    self:fault("watch.history")
    self:expect("snapshot")
    conn:reply(410, nil, status(410, "Expired"))
    return
  end
  local s = self:open_stream(conn, place_of(self, tonumber(rv) or 0))
  s.plain = true
  self:pump()
end

-- A snapshot was asked for at rv; never is what stands for a client that has nothing yet.
local function check_snapshot(self, what, rv, never)
  local m = self.model
  if rv == "" and m:resolve_unavailable() then return end
  local stands_at = rv == never and m.track[1].rv == "" and "" or rv
  if not m:resolve(stands_at) or m.flag ~= "no" then
    self:violation("%s at '%s', the client can stand at: %s; unavailable: %s", what, rv,
      m:may_stand_at(), m.flag)
  end
end

--- The client was told that its resource version is unavailable.
function World:make_unavailable() self.model.flag = "yes" end

function World:begin_stream_list(conn, at)
  local s = self:open_stream(conn, at)
  s.initial = {}
  for _, e in pairs(self:state_at(at)) do s.initial[#s.initial + 1] = e end
  table.sort(s.initial, function(a, b) return a.rv < b.rv end)
  self.rand:shuffle(s.initial)
  return s
end

--- Sends the initial objects from..to.
function World.send_initial(_, s, from, to)
  local parts = {}
  for i = from, to do parts[#parts + 1] = render_event("ADDED", s.initial[i].json) end
  s:send(table.concat(parts))
end

--- The marker: the initial objects are complete as of now.
function World:end_initial(s)
  s:send_bookmark(self.rv, "true")
  self.model:sent(self.rv, nil, true)
  s.plain, s.at, s.streamed, self.kind_sure = true, #self.log, true, true
  self:pump()
end

function World:stream_list(conn, q)
  check_snapshot(self, "streaming list", q.resourceVersion or "", "")
  if q.resourceVersionMatch ~= "NotOlderThan" or q.allowWatchBookmarks ~= "true" then
    self:violation("streaming list without resourceVersionMatch=NotOlderThan or bookmarks")
  end
  local armed = self.armed[1]
  local refuse = armed and (armed.hook == "list" or armed.hook == "page")
  if self.no_streaming or refuse then
    self:fault("stream_list.refused")
    self:expect("list")
    conn:reply(422, nil, status(422, "Invalid"))
    return
  end
  if self:play("stream_list", conn, q) then return end
  local s = self:begin_stream_list(conn, #self.log)
  self:send_initial(s, 1, #s.initial)
  self:end_initial(s)
end

-- Pages.

function World:render_list(items, rv, token)
  local parts = {}
  for i, e in ipairs(items) do
    local json = e.json
    if self.bare_items then json = json:gsub('^{"apiVersion":"[^"]*","kind":"[^"]*",', "{") end
    parts[i] = json
  end
  local meta = ('"metadata":{"resourceVersion":"%d"%s}'):format(rv,
    token and (',"continue":"%s","remainingItemCount":1'):format(token) or "")
  local body = ('"items":[%s]'):format(table.concat(parts, ","))
  local first, second = meta, body
  if self.rand:chance(0.3) then first, second = body, meta end
  return ('{"kind":"%sList","apiVersion":"%s",%s,%s}'):format(KIND, GROUP_VERSION, first, second)
end

-- Serves one page of a snapshot; size nil: all of it. Returns the body and whether it is the last.
-- Only the version on the first page is the snapshot's.
function World:page(snapshot, from, size)
  local items, last = {}, size and math.min(from + size - 1, #snapshot.items) or #snapshot.items
  for i = from, last do items[#items + 1] = snapshot.items[i] end
  local rv = from > 1 and self.rand:chance(0.5) and self.rv or snapshot.rv
  if last >= #snapshot.items then return self:render_list(items, rv), true end
  self.snapshots[#self.snapshots + 1] = { snapshot = snapshot, from = last + 1 }
  return self:render_list(items, rv, ("page-%d="):format(#self.snapshots)), false
end

local function send_whole(_, conn, body, done)
  conn:reply(200, nil, body)
  done()
end

--- Answers with a page, and notes the snapshot when all of the last was sent. send(world, conn, body, done)
--- is how; it calls done when all has left, or never.
function World:reply_page(conn, snapshot, from, size, send)
  local body, whole = self:page(snapshot, from, size)
  local function done()
    if whole then
      self.model:sent(snapshot.rv, nil, true)
      self.kind_sure = #snapshot.items > 0
    end
    self:expect(whole and "watch" or "list")
  end
  send = send or send_whole
  send(self, conn, body, done)
end

local function later_page(self, conn, q)
  local page = self.snapshots[tonumber(q.continue:match("^page%-(%d+)=$"))]
  if not page or q.resourceVersion then
    self:violation("page at '%s' with resourceVersion '%s'", q.continue, tostring(q.resourceVersion))
    conn:reply(400, nil, status(400, "BadRequest"))
    return
  end
  if self:play("page", conn, page, q) then return end
  self:reply_page(conn, page.snapshot, page.from, tonumber(q.limit))
end

-- Whether the list is the one that follows an expired page, as it must be.
local function check_full(self, q)
  local rv = self.expect_full
  self.expect_full = nil
  if rv and (q.limit or q.continue or (q.resourceVersion or "") ~= rv) then
    self:violation("after an expired page: list at '%s' with limit %s instead of all at '%s'",
      tostring(q.resourceVersion), tostring(q.limit), rv)
  end
end

--- Answers with a snapshot, or the first page of one.
function World:reply_list(conn, q, send)
  local rv, place = q.resourceVersion or "", #self.log
  -- Version 0 may be answered from any cache, however old.
  if rv == "0" and self.rand:chance(0.5) then place = self.rand:int(self.seeded, place) end
  local snapshot = { items = sorted(self:state_at(place)),
    rv = place == #self.log and self.rv or place > 0 and self.log[place].rv or self.first_rv,
    asked = rv }
  local size = tonumber(q.limit)
  if size and self.armed[1] and self.armed[1].hook == "page" then
    size = math.min(size, math.max(0, #snapshot.items - 1))
  end
  self:reply_page(conn, snapshot, 1, size, send)
end

function World:list(conn, q)
  check_full(self, q)
  if q.resourceVersionMatch or q.sendInitialEvents then
    self:violation("list with resourceVersionMatch or sendInitialEvents")
  end
  if q.continue then return later_page(self, conn, q) end
  check_snapshot(self, "list", q.resourceVersion or "", "0")
  if not self:play("list", conn, q) then self:reply_list(conn, q) end
end

--- What the client must ask for next: "watch", "stream_list", "list", or "snapshot" for what its
--- cycles begin with. nil: it is not certain.
function World:expect(what)
  self.expected = what == "snapshot" and (self.client_streams and "stream_list" or "list") or what
end

function World:request(conn, request)
  local q = request.query
  local kind = q.watch ~= "true" and "list" or q.sendInitialEvents == "true" and "stream_list"
    or "watch"
  if self.stream then self.stream:drop() end
  self:note(("%s %s"):format(kind, request.target:match("%?(.*)$") or ""))
  if self.expected and self.expected ~= kind then
    self:violation("a %s came where a %s had to", kind, self.expected)
  end
  self.expected = nil
  self.requests[kind] = self.requests[kind] + 1
  self[kind](self, conn, q)
end

--- Forgets history: a watch from before now is answered with 410.
function World:compact() self.floor = self.rv end

--- opts: ns, rand (shapes of answers), rv_rand, faults_rand, acts, clock, rv (where it starts), verbose,
--- no_streaming (the server refuses streaming lists), client_streams, budget (the client's for
--- internal errors), surely_short (a watch that ends without an event is a short one to the client), bare_items.
function fault_world.new(opts)
  local world = setmetatable(copy(opts), World)
  world.objects, world.count, world.uids = {}, 0, 0
  world.log, world.floor, world.seeded, world.first_rv = {}, 0, 0, world.rv
  world.armed, world.snapshots = {}, {}
  world.faults, world.fault_names, world.events_sent = 0, {}, 0
  world.violations, world.diary = {}, {}
  world.requests = { list = 0, watch = 0, stream_list = 0 }
  world.model = new_model()
  return world
end

return fault_world
