-- An HTTP/1.1 server for specs, in this process, on luv's default loop. It is as stupid as it can
-- be: the spec's function gets each request and returns what to answer, byte for byte.
--
--   local server = script_server.new(function(request, server) return { body = "{}" } end)
--   ... pump server:turn() ...
--   server:close()
--
-- A request is { method, target, path, query = { decoded }, headers = { lower-case }, body = text }.
-- An answer is a table:
--   status   200 unless given
--   headers  { name = value }
--   body     a whole response with Content-Length
--   chunks   instead of body: a chunked response; strings are sent, numbers are pauses in seconds
--   open     with chunks: leaves the response open; it is server.streams[#server.streams]
--   cut      with chunks: closes the connection behind them, without the last chunk
--   silent   no answer at all, while the connection stays
--   lost     no answer either, but the connection is closed
-- A stream has send(text), finish() (the proper end), cut(), and `gone` once the client left.
jit.off(true, true)
local uv = require "luv"

local script_server = {}
local Server, Stream = {}, {}
Server.__index, Stream.__index = Server, Stream

local reasons = { [200] = "OK", [403] = "Forbidden", [404] = "Not Found", [410] = "Gone",
  [429] = "Too Many Requests", [500] = "Internal Server Error" }

local function unescape(s)
  return (s:gsub("+", " "):gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end))
end

local function parse_query(text)
  local query = {}
  for pair in text:gmatch("[^&]+") do
    local key, value = pair:match("^([^=]*)=?(.*)$")
    query[unescape(key)] = unescape(value)
  end
  return query
end

local function parse_request(head)
  local method, target = head:match("^(%u+) (%S+) HTTP/1%.1\r\n")
  assert(method, "not a request: " .. head)
  local path, query = target:match("^([^?]*)%??(.*)$")
  local request = { method = method, target = target, path = path, query = parse_query(query),
    headers = {} }
  for name, value in head:gmatch("\r\n([^:\r\n]+): *([^\r\n]*)") do
    request.headers[name:lower()] = value
  end
  return request
end

local function close_handle(handle)
  if not handle:is_closing() then handle:close() end
end

-- Streams.

function Stream:send(text)
  if self.gone or self.ended then return end
  self.socket:write(("%x\r\n%s\r\n"):format(#text, text))
end

function Stream:finish()
  if self.gone or self.ended then return end
  self.ended = true
  self.socket:write("0\r\n\r\n")
end

function Stream:cut()
  self.ended = true
  close_handle(self.socket)
end

local function play(stream, answer, at)
  for i = at, #answer.chunks do
    local chunk = answer.chunks[i]
    if type(chunk) == "number" then
      local timer = uv.new_timer()
      stream.server.timers[timer] = true
      timer:start(math.floor(chunk * 1000), 0, function()
        stream.server.timers[timer] = nil
        close_handle(timer)
        play(stream, answer, i + 1)
      end)
      return
    end
    stream:send(chunk)
  end
  if answer.cut then
    -- The bytes have to leave before the connection does.
    stream.socket:shutdown(function() stream:cut() end)
  elseif not answer.open then
    stream:finish()
  end
end

-- The server.

local function answer_request(server, socket, request)
  server.requests[#server.requests + 1] = request
  local answer = server.script(request, server)
  if answer.lost then close_handle(socket) end
  if answer.lost or answer.silent then return end
  local status = answer.status or 200
  local head = { ("HTTP/1.1 %d %s\r\n"):format(status, reasons[status] or "Unknown"),
    "Content-Type: application/json\r\n" }
  for name, value in pairs(answer.headers or {}) do
    head[#head + 1] = ("%s: %s\r\n"):format(name, value)
  end
  if answer.chunks then
    socket:write(table.concat(head) .. "Transfer-Encoding: chunked\r\n\r\n")
    local stream = setmetatable({ socket = socket, server = server, request = request }, Stream)
    server.sockets[socket] = stream
    server.streams[#server.streams + 1] = stream
    play(stream, answer, 1)
  else
    local body = answer.body or ""
    socket:write(("%sContent-Length: %d\r\n\r\n%s"):format(table.concat(head), #body, body))
  end
end

local function on_read(server, socket, received, err, data)
  if err or not data then
    local stream = server.sockets[socket]
    if type(stream) == "table" then stream.gone = true end
    server.sockets[socket] = nil
    close_handle(socket)
    return received
  end
  received = received .. data
  while true do
    local head, rest = received:match("^(.-\r\n)\r\n(.*)$")
    local request = head and parse_request(head)
    local size = request and tonumber(request.headers["content-length"]) or 0
    if not request or #rest < size then return received end
    request.body, received = rest:sub(1, size), rest:sub(size + 1)
    answer_request(server, socket, request)
  end
end

--- Listens (again) on the server's port.
function Server:listen()
  self.listener = uv.new_tcp()
  assert(self.listener:bind("127.0.0.1", self.port or 0))
  assert(self.listener:listen(16, function()
    local socket = uv.new_tcp()
    self.listener:accept(socket)
    self.sockets[socket] = true
    local received = ""
    socket:read_start(function(err, data)
      received = on_read(self, socket, received, err, data)
    end)
  end))
  self.port = self.listener:getsockname().port
end

--- Refuses connections from now on and closes those that are open.
function Server:refuse()
  close_handle(self.listener)
  for socket, stream in pairs(self.sockets) do
    if type(stream) == "table" then stream.ended = true end
    close_handle(socket)
  end
  self.sockets = {}
end

function Server:url() return "http://127.0.0.1:" .. self.port end

--- One turn of the loop, without waiting.
function Server.turn() uv.run("nowait") end

function Server:close()
  self:refuse()
  for timer in pairs(self.timers) do close_handle(timer) end
  for _ = 1, 3 do uv.run("nowait") end
end

function script_server.new(script)
  local server = setmetatable(
    { script = script, requests = {}, streams = {}, sockets = {}, timers = {} }, Server)
  server:listen()
  return server
end

return script_server
