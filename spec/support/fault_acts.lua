-- What can go wrong, by the moment in which it does. Each act is a function that plays itself on a
-- world (spec/support/fault_world.lua) and tells the model what the client must make of it; it
-- returns false when it does not fit the moment.
local uv = require "luv"
local fault_world = require "spec.support.fault_world"

local status = fault_world.status

local acts = { event = {}, stream = {}, watch = {}, stream_list = {}, list = {}, page = {} }

-- Statuses.

local function pick_expired(rand)
  return rand:pick { status(410, "Expired"), status(410, "Gone"), status(410, "") }
end

local function pick_too_large(rand)
  return rand:pick {
    status(504, "Timeout", ',"details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"no"}]}'),
    status(504, "Timeout", ',"details":{"causes":[{"reason":"","message":"Too large resource version"}]}'),
    (status(504, "Timeout"):gsub("made up", "Too large resource version: 99, current: 9")),
  }
end

local throttled = status(429, "TooManyRequests")
local internal = status(500, "InternalError")

local function pick_other(rand)
  return rand:pick { status(403, "Forbidden"), status(409, "Conflict"), '{"kind":"Widget"}', "{}",
    '{"kind":"Status","apiVersion":"other/v1","code":410,"reason":"Expired"}' }
end

local garbage = { "\0\255\254\1", "<html>502 Bad Gateway</html>\n", "]]]]", "null\n",
  '{"type":5,"object":{}}\n', '{"object":{}}\n', "{}\n", '{"type":"ADDED"}\n',
  '{"type":"ADDED","object":[1,2]}\n', '{"type":"ADDED","object":{"metadata":{"name":1e}}}\n' }

local function after_internal(world) return world.budget and "watch" or "snapshot" end

local function later(ms, fn)
  local timer = uv.new_timer()
  timer:start(ms, 0, function()
    timer:close()
    fn()
  end)
end

local function how(rand) return rand:pick { "fin", "rst" } end

-- While an event is sent.

local function sent(world, entry)
  world.model:sent(entry.rv, { kind = entry.kind, name = entry.object.name, rv = entry.rv })
end

--- The connection ends inside the event.
function acts.event.cut(world, s, entry, bytes)
  s:send(bytes:sub(1, world.faults_rand:int(1, #bytes - 1)))
  local events = s.events
  local ending = how(world.faults_rand)
  if ending == "fin" then world.model:commit() end
  sent(world, entry)  -- the last byte is white space: all of it may be there
  s:drop()
  if ending == "rst" then
    s.conn:rst()
  else
    world:expect(events > 0 and "watch" or nil)
    s.conn:fin()
  end
end

--- The connection ends inside a chunk that had promised more.
function acts.event.cut_chunk(world, s, entry, bytes)
  s.conn:raw(("%x\r\n%s"):format(#bytes, bytes:sub(1, world.faults_rand:int(1, #bytes - 1))))
  sent(world, entry)
  s:drop()
  s.conn[how(world.faults_rand)](s.conn)
end

--- Half of the event comes later.
function acts.event.stall(world, s, entry, bytes)
  local half = world.faults_rand:int(1, #bytes - 1)
  s.conn:chunk(bytes:sub(1, half))
  s.busy = true
  later(world.faults_rand:int(5, 80), function()
    s.busy = false
    if s.dead then return end
    s.conn:chunk(bytes:sub(half + 1))
    sent(world, entry)
    s.events, world.events_sent = s.events + 1, world.events_sent + 1
    world:pump()
  end)
end

--- A few bytes now and then.
function acts.event.dribble(world, s, entry, bytes)
  local at, step = 1, math.ceil(#bytes / world.faults_rand:int(5, 25))
  s.busy = true
  local timer = uv.new_timer()
  timer:start(0, 1, function()
    if s.dead or at > #bytes then
      timer:close()
      s.busy = false
      if s.dead then return end
      sent(world, entry)
      s.events, world.events_sent = s.events + 1, world.events_sent + 1
      world:pump()
      return
    end
    s.conn:chunk(bytes:sub(at, at + step - 1))
    at = at + step
  end)
end

--- Each byte is a chunk.
function acts.event.bytes(_, s, entry)
  local size = s.chunk_size
  s.chunk_size = 1
  s:send_event(entry.kind, entry)
  s.chunk_size = size
end

--- The event is not finished, another begins, and the stream ends.
function acts.event.truncated(world, s, _, bytes)
  s.conn:chunk(bytes:sub(1, world.faults_rand:int(1, #bytes - 10)) .. "\n" .. bytes)
  s:settle(nil)
  s.conn:finish()
end

-- While a watch is open. Nothing is under way on it.

function acts.stream.finish(_, s) s:finish() end
function acts.stream.fin(_, s) s:cut("fin") end
function acts.stream.rst(_, s) s:cut("rst") end
function acts.stream.error_expired(world, s) s:error(pick_expired(world.faults_rand), "snapshot") end
function acts.stream.error_throttled(_, s) s:error(throttled, "watch") end
function acts.stream.error_internal(world, s) s:error(internal, after_internal(world)) end
function acts.stream.error_other(world, s) s:error(pick_other(world.faults_rand), "snapshot") end
function acts.stream.error_too_large(world, s)
  s:error(pick_too_large(world.faults_rand), "snapshot")
end

function acts.stream.garbage(world, s)
  s:settle(after_internal(world))
  s.conn:chunk(world.faults_rand:pick(garbage))
end

-- The client knows what kind its objects are from a list of some, or a marker.
local function knows_kind(world, s) return s.streamed or (s.events > 0 and world.kind_sure) end

--- Something of another kind under a name that exists: must be passed over.
function acts.stream.wrong_kind(world, s)
  local entry = world.log[#world.log]
  if not knows_kind(world, s) or not entry then return false end
  s:send(('{"type":"%s","object":%s}\n'):format(world.faults_rand:pick { "MODIFIED", "DELETED" },
    (entry.json:gsub('"kind":"Widget"', '"kind":"Gadget"')
      :gsub('"resourceVersion":"%d+"', '"resourceVersion":"99999999"'))))
end

function acts.stream.table(world, s)
  local entry = world.log[#world.log]
  if not entry then return false end
  s:send(('{"type":"DELETED","object":%s}\n'):format(
    (entry.json:gsub('"kind":"Widget"', '"kind":"Table"')
      :gsub('"resourceVersion":"%d+"', '"resourceVersion":"99999999"'))))
end

function acts.stream.no_metadata(_, s)
  s:send('{"type":"ADDED","object":{"apiVersion":"fault.example.com/v1","kind":"Widget"}}\n')
end

-- Takes the next resource version: something else in the cluster has changed.
local function other_change(world)
  world.rv = world.rv + 1
  return world.rv
end

--- An object that cannot be stored; its resource version counts.
function acts.stream.no_name(world, s)
  local rv = other_change(world)
  s:send(('{"type":"ADDED","object":{"apiVersion":"fault.example.com/v1","kind":"Widget",'
    .. '"metadata":{"namespace":"%s","resourceVersion":"%d"}}}\n'):format(world.ns, rv))
  world.model:sent(rv)
  s.events = s.events + 1
end

function acts.stream.unknown_type(world, s)
  local rv = other_change(world)
  s:send(('{"type":"FUTURE","object":{"apiVersion":"fault.example.com/v1","kind":"Widget",'
    .. '"metadata":{"name":"future","namespace":"%s","resourceVersion":"%d"}}}\n')
    :format(world.ns, rv))
  world.model:sent(rv)
  s.events = s.events + 1
end

--- Not a fault by itself: a version that only a bookmark tells, and history before it forgotten.
function acts.stream.bookmark(world, s)
  local rv = other_change(world)
  s:send_bookmark(rv, world.faults_rand:pick { "true", "false", "" })
  world.model:sent(rv)
  s.events = s.events + 1
  world:compact()
  s:finish()
end

function acts.stream.duplicate(world, s)
  local entry = world.log[s.at]
  if not entry or s.events == 0 or entry.rv ~= world.rv then return false end
  s:send_event(entry.kind, entry)
  if entry.kind == "DELETED" then world.unknown_deletes = (world.unknown_deletes or 0) + 1 end
end

--- Old versions of some objects come again, also of deleted ones; then all must be read anew.
function acts.stream.out_of_order(world, s)
  local newest, old = {}, {}
  for i = #world.log, 1, -1 do
    local e = world.log[i]
    if newest[e.object.name] and e.kind ~= "DELETED" then old[#old + 1] = e end
    newest[e.object.name] = true
  end
  if #old == 0 then return false end
  for _ = 1, world.faults_rand:int(1, 3) do
    local e = world.faults_rand:pick(old)
    s:send_event(e.kind, e, world:render(e.object, true))
  end
  s:error(pick_expired(world.faults_rand), "snapshot")
end

--- The connection ends, and what comes next is forgotten before the client is back.
function acts.stream.forget(world, s)
  if s.events == 0 then return false end
  s:cut("fin")
  world:next_change()
  world:compact()
end

-- Answers to a watch.

local function answer(code, body, headers, next)
  return function(world, conn)
    world:expect(next)
    conn:reply(code, headers, type(body) == "function" and body(world.faults_rand) or body)
  end
end

acts.watch.throttled = answer(429, throttled, nil, "watch")
acts.watch.throttled_body = answer(429, "slow down", nil, "watch")
acts.watch.retry_now = answer(429, throttled, "Retry-After: 0\r\n", "watch")
acts.watch.retry_later = answer(503, status(503, "ServiceUnavailable"), "Retry-After: 1\r\n", "watch")
acts.watch.retry_date = answer(429, throttled, "Retry-After: Wed, 21 Oct 2026 07:28:00 GMT\r\n", "watch")
acts.watch.failed = answer(500, internal, nil, "snapshot")
acts.watch.unavailable = answer(503, "<html>", nil, "snapshot")
acts.watch.expired = answer(410, pick_expired, nil, "snapshot")
acts.watch.forbidden = answer(403, status(403, "Forbidden"), nil, "snapshot")
function acts.watch.lost(world, conn)
  world:expect("watch")
  conn[how(world.faults_rand)](conn)
end

--- Opened and ended at once.
function acts.watch.short(world, conn)
  world:expect(world:after_short())
  conn:start()
  conn:finish()
end

-- Answers to a streaming list.

acts.stream_list.bad_request = answer(400, status(400, "BadRequest"), nil, "list")
acts.stream_list.forbidden = answer(403, status(403, "Forbidden"), nil, "list")
acts.stream_list.failed = answer(500, internal, nil, "list")
acts.stream_list.unavailable = answer(503, "upstream connect error", nil, "list")
acts.stream_list.throttled = answer(429, throttled, nil, "stream_list")
acts.stream_list.retry_now = answer(500, internal, "Retry-After: 0\r\n", "stream_list")

local function unavailable(code, pick, next)
  return function(world, conn)
    world:make_unavailable()
    world:expect(next)
    conn:reply(code, nil, pick(world.faults_rand))
  end
end

-- What follows when the version of a streaming list is unavailable: the newest state; and when that
-- had been asked for already, a list.
local function after_unavailable(world) return world.model.flag == "no" and "stream_list" or "list" end

local function stream_unavailable(code, pick)
  return function(world, conn)
    unavailable(code, pick, after_unavailable(world))(world, conn)
  end
end
acts.stream_list.expired = stream_unavailable(410, pick_expired)
acts.stream_list.too_large = stream_unavailable(504, pick_too_large)

-- A streaming list that has sent some of its objects; and how many.
local function partial(world, conn)
  local s = world:begin_stream_list(conn, #world.log)
  local many = world.faults_rand:int(math.min(1, #s.initial), #s.initial)
  world:send_initial(s, 1, many)
  return s, many
end

function acts.stream_list.cut(world, conn)
  local s, many = partial(world, conn)
  s:drop()
  local ending = world.faults_rand:chance(0.3) and "finish" or how(world.faults_rand)
  s.conn[ending](s.conn)
  local short = world.surely_short and "list" or nil
  -- A reset may overtake what was sent.
  world:expect(ending ~= "rst" and (many > 0 and "stream_list" or short) or nil)
end

function acts.stream_list.short(world, conn)
  world:expect(world.surely_short and "list" or nil)
  conn:start()
  conn:finish()
end

function acts.stream_list.error_expired(world, conn)
  local s = partial(world, conn)
  local next = after_unavailable(world)
  world:make_unavailable()
  s:error(world.faults_rand:pick { pick_expired, pick_too_large }(world.faults_rand), next)
end

function acts.stream_list.error_throttled(world, conn)
  partial(world, conn):error(throttled, "stream_list")
end

function acts.stream_list.error_other(world, conn)
  partial(world, conn):error(world.faults_rand:chance(0.5) and internal
    or pick_other(world.faults_rand), "list")
end

function acts.stream_list.garbage(world, conn)
  local s = partial(world, conn)
  s:settle("list")
  s.conn:chunk(world.faults_rand:pick(garbage))
end

--- Bookmarks that are no end marker, in the middle of the objects: one without the annotation, one
--- with another value.
function acts.stream_list.false_marker(world, conn)
  local s = world:begin_stream_list(conn, #world.log)
  local half = math.ceil(#s.initial / 2)
  world:send_initial(s, 1, half)
  s:send_bookmark(world.rv)
  s:send_bookmark(world.rv, world.faults_rand:pick { "false", "", "True", "true " })
  world:send_initial(s, half + 1, #s.initial)
  world:end_initial(s)
end

--- A marker that is of another kind than what came before it.
function acts.stream_list.wrong_marker(world, conn)
  local s = partial(world, conn)
  s:send_bookmark(world.rv)
  s:settle("list")
  s:send_bookmark(world.rv, "true", "Gadget")
end

--- The objects of a while ago, and what has changed since, before the marker.
function acts.stream_list.changes(world, conn, q)
  local oldest = world.seeded
  local asked = tonumber(q.resourceVersion)
  while oldest < #world.log and asked and world.log[oldest + 1].rv <= asked do oldest = oldest + 1 end
  if oldest >= #world.log then return false end
  local from = world.faults_rand:int(oldest, #world.log - 1)
  local s = world:begin_stream_list(conn, from)
  world:send_initial(s, 1, #s.initial)
  for i = from + 1, #world.log do
    s:send(('{"type":"%s","object":%s}\n'):format(world.log[i].kind, world.log[i].json))
  end
  world:end_initial(s)
end

--- Objects come twice.
function acts.stream_list.duplicates(world, conn)
  local s = world:begin_stream_list(conn, #world.log)
  world:send_initial(s, 1, #s.initial)
  world:send_initial(s, 1, math.ceil(#s.initial / 2))
  world:end_initial(s)
end

function acts.stream_list.slow(world, conn)
  local s = partial(world, conn)
  local sent_so_far = s.initial
  later(world.faults_rand:int(5, 80), function()
    if s.dead then return end
    world:send_initial({ initial = sent_so_far, send = function(_, b) s:send(b) end }, 1, #sent_so_far)
    -- What has changed meanwhile is part of the snapshot.
    for i = s.at + 1, #world.log do
      s:send(('{"type":"%s","object":%s}\n'):format(world.log[i].kind, world.log[i].json))
    end
    world:end_initial(s)
  end)
end

function acts.stream_list.lost(world, conn)
  world:expect("stream_list")
  conn[how(world.faults_rand)](conn)
end

-- Answers to a list.

acts.list.failed = answer(500, internal, nil, "snapshot")
acts.list.unavailable = answer(503, "<html>", nil, "snapshot")
acts.list.throttled = answer(429, throttled, nil, "snapshot")
acts.list.forbidden = answer(403, status(403, "Forbidden"), nil, "snapshot")
acts.list.retry_now = answer(503, throttled, "Retry-After: 0\r\n", "list")
acts.list.expired = unavailable(410, pick_expired)
acts.list.too_large = unavailable(504, pick_too_large)
acts.list.garbage = answer(200, function(rand) return rand:pick(garbage) end, nil, "snapshot")
acts.list.status = answer(200, status(200, ""), nil, "snapshot")
acts.list.table = answer(200,
  '{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},"rows":[]}', nil,
  "snapshot")
acts.list.no_items = answer(200,
  '{"kind":"WidgetList","apiVersion":"fault.example.com/v1","metadata":{"resourceVersion":"7"}}',
  nil, "snapshot")

local function some_list(world)
  return (world:render_list({ world.log[1], world.log[#world.log] }, world.rv))
end

--- A document that stops in the middle, sent whole.
function acts.list.truncated(world, conn)
  local body = some_list(world)
  world:expect("snapshot")
  conn:reply(200, nil, body:sub(1, world.faults_rand:int(1, #body - 1)))
end

--- A body that stops in the middle.
function acts.list.cut(world, conn)
  local body = some_list(world)
  world:expect("snapshot")
  conn:raw(("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s"):format(#body,
    body:sub(1, world.faults_rand:int(1, #body - 1))))
  conn:fin()
end

function acts.list.lost(world, conn)
  world:expect("list")
  conn[how(world.faults_rand)](conn)
end

-- Answers to a later page.

function acts.page.expired(world, conn, page)
  world.expect_full = page.snapshot.asked
  world:expect("list")
  conn:reply(410, nil, status(410, "Expired", ',"metadata":{"continue":"page-1="}'))
end

acts.page.gone = unavailable(410, function() return status(410, "Gone") end)
acts.page.too_large = unavailable(504, pick_too_large)
acts.page.failed = answer(500, internal, nil, "snapshot")
acts.page.garbage = acts.list.garbage
acts.page.cut = acts.list.cut

--- The last object of the page before comes again.
function acts.page.duplicate(world, conn, page, q)
  if page.from < 2 then return false end
  world:reply_page(conn, page.snapshot, page.from - 1, tonumber(q.limit) + 1)
end

--- Nothing, and there is more.
function acts.page.empty(world, conn, page)
  world:reply_page(conn, page.snapshot, page.from, 0)
end

-- Bodies of lists and pages that do not come at once. What is right in them is told when all has left.

-- Begins a response; returns what sends a part of its body, and what ends it.
local function begin_body(world, conn, body)
  if world.faults_rand:chance(0.5) then
    conn:start()
    return function(part) conn:chunk(part) end, function() conn:finish() end
  end
  conn:raw(("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"):format(#body))
  return function(part) conn:raw(part) end, function() end
end

-- Sends some of a body, and after a while calls fn(send, finish, rest) if the connection is still there.
local function halfway(world, conn, body, fn)
  local send, finish = begin_body(world, conn, body)
  local half = world.faults_rand:int(1, #body - 1)
  send(body:sub(1, half))
  later(world.faults_rand:int(5, 80), function()
    if not conn.gone then fn(send, finish, body:sub(half + 1)) end
  end)
end

local bodies = {}

--- Each byte is a chunk.
function bodies.bytes(_, conn, body, done)
  conn:start()
  conn:chunk(body, 1)
  conn:finish()
  done()
end

--- A few bytes now and then.
function bodies.dribble(world, conn, body, done)
  local send, finish = begin_body(world, conn, body)
  local at, step = 1, math.ceil(#body / world.faults_rand:int(5, 25))
  local timer = uv.new_timer()
  timer:start(0, 1, function()
    send(body:sub(at, at + step - 1))
    at = at + step
    if at <= #body and not conn.gone then return end
    timer:close()
    if conn.gone then return end
    finish()
    done()
  end)
end

--- Half of it comes later.
function bodies.stall(world, conn, body, done)
  halfway(world, conn, body, function(send, finish, rest)
    send(rest)
    finish()
    done()
  end)
end

--- Half of it never comes.
function bodies.stall_cut(world, conn, body)
  local ending = how(world.faults_rand)
  halfway(world, conn, body, function()
    world:expect(ending == "fin" and "snapshot" or nil)  -- a reset may overtake the head
    conn[ending](conn)
  end)
end

for name, send in pairs(bodies) do
  acts.list[name] = function(world, conn, q) world:reply_list(conn, q, send) end
  acts.page[name] = function(world, conn, page, q)
    world:reply_page(conn, page.snapshot, page.from, tonumber(q.limit), send)
  end
end

acts.bodies = bodies
acts.throttled, acts.pick_expired, acts.pick_other = throttled, pick_expired, pick_other

return acts
