-- A real HTTP/1.1 server on luv whose answers can go wrong in every way that a network and a server
-- can: byte by byte, stalled, cut by FIN or RST in any place, refused. What to answer is the
-- business of its worlds (spec/support/fault_world.lua), one per namespace.
--
--   local server = fault_server.new()
--   server:add_world("w1", world)          -- world:request(conn, request)
--   server:refuse(); server:listen()       -- ECONNREFUSED in between, same port afterwards
--   server:close()
--
-- A request is { method, target, path, query = { decoded }, headers = { lower-case } }.
local uv = require "luv"

local fault_server = {}
local Server, Conn = {}, {}
Server.__index, Conn.__index = Server, Conn

-- A client may give up in the middle of what it is sent: that is an error of the write, not our end.
local broken_pipe = uv.new_signal()
broken_pipe:start("sigpipe", function() end)
broken_pipe:unref()

-- Below the range that outgoing connections take their ports from: a port that was closed for a
-- moment must still be free afterwards, and a refused connection must not meet itself.
local FIRST_PORT, LAST_PORT = 20000, 32000

local reasons = { [200] = "OK", [400] = "Bad Request", [403] = "Forbidden", [404] = "Not Found",
  [410] = "Gone", [422] = "Unprocessable Entity", [429] = "Too Many Requests",
  [500] = "Internal Server Error", [503] = "Service Unavailable", [504] = "Gateway Timeout" }

local function unescape(s)
  return (s:gsub("+", " "):gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end))
end

local function parse_request(head)
  local method, target = head:match("^(%u+) (%S+) HTTP/1%.1\r\n")
  if not method then return nil end
  local path, text = target:match("^([^?]*)%??(.*)$")
  local request = { method = method, target = target, path = path, query = {}, headers = {} }
  for pair in text:gmatch("[^&]+") do
    local key, value = pair:match("^([^=]*)=?(.*)$")
    request.query[unescape(key)] = unescape(value)
  end
  for name, value in head:gmatch("\r\n([^:\r\n]+): *([^\r\n]*)") do
    request.headers[name:lower()] = value
  end
  return request
end

-- Connections.

--- Bytes as they are.
function Conn:raw(bytes)
  if not self.gone then self.socket:write(bytes) end
end

--- A whole response. headers is a string of complete lines, or nil.
function Conn:reply(status, headers, body)
  self:raw(("HTTP/1.1 %d %s\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s")
    :format(status, reasons[status] or "Unknown", headers or "", #body, body))
end

--- The head of a response that comes in chunks.
function Conn:start()
  self:raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
end

--- One chunk; with `size`, in chunks of at most so many bytes.
function Conn:chunk(bytes, size)
  if #bytes == 0 then return end
  if not size then
    self:raw(("%x\r\n%s\r\n"):format(#bytes, bytes))
    return
  end
  local parts = {}
  for at = 1, #bytes, size do
    local part = bytes:sub(at, at + size - 1)
    parts[#parts + 1] = ("%x\r\n%s\r\n"):format(#part, part)
  end
  self:raw(table.concat(parts))
end

--- The proper end of a response in chunks; the connection stays usable.
function Conn:finish() self:raw("0\r\n\r\n") end

local function lose(conn)
  if conn.gone then return false end
  conn.gone = true
  conn.server.conns[conn] = nil
  if conn.on_gone then conn.on_gone() end
  return true
end

--- Ends the connection when what was written has left.
function Conn:fin()
  if not lose(self) then return end
  local socket = self.socket
  socket:shutdown(function()
    if not socket:is_closing() then socket:close() end
  end)
end

--- Resets the connection.
function Conn:rst()
  if not lose(self) then return end
  if not self.socket:is_closing() then self.socket:close_reset() end
end

local function serve(conn, head)
  local request = parse_request(head)
  local ns = request and request.path:match("^/apis?/.+/namespaces/([^/]+)/[^/]+$")
  local world = ns and conn.server.worlds[ns]
  conn.server.requests = conn.server.requests + 1
  if world and request.method == "GET" then
    world:request(conn, request)
  else
    conn:reply(404, nil, '{"kind":"Status","apiVersion":"v1","code":404,"reason":"NotFound"}')
  end
end

local function on_read(conn, err, data)
  if err or not data then
    if lose(conn) and not conn.socket:is_closing() then conn.socket:close() end
    return
  end
  conn.received = conn.received .. data
  while not conn.gone do
    local stop = select(2, conn.received:find("\r\n\r\n", 1, true))
    if not stop then return end
    local head = conn.received:sub(1, stop)
    conn.received = conn.received:sub(stop + 1)
    serve(conn, head)
  end
end

local function on_connection(server)
  local socket = uv.new_tcp()
  server.listener:accept(socket)
  socket:nodelay(true)
  local conn = setmetatable({ server = server, socket = socket, received = "", gone = false }, Conn)
  server.conns[conn] = true
  socket:read_start(function(err, data) on_read(conn, err, data) end)
end

-- The server.

local function try_port(port)
  local listener = uv.new_tcp()
  if listener:bind("127.0.0.1", port) and listener:listen(128, function() end) then
    listener:close()
    return true
  end
  listener:close()
  return false
end

-- A free port; where the search starts differs from process to process.
local next_port = FIRST_PORT + uv.os_getpid() * 7 % (LAST_PORT - FIRST_PORT)
local function free_port()
  for _ = FIRST_PORT, LAST_PORT do
    next_port = next_port + 1
    if next_port > LAST_PORT then next_port = FIRST_PORT end
    if try_port(next_port) then return next_port end
  end
  error("no free port")
end

--- Listens, or listens again on the same port.
function Server:listen()
  if self.listener then return end
  self.port = self.port or free_port()
  self.listener = uv.new_tcp()
  assert(self.listener:bind("127.0.0.1", self.port))
  assert(self.listener:listen(128, function() on_connection(self) end))
end

--- Refuses connections from now on and ends those that are open, by RST or else by FIN.
function Server:refuse(rst)
  if self.listener then self.listener:close() end
  self.listener = nil
  local open = {}
  for conn in pairs(self.conns) do open[#open + 1] = conn end
  for _, conn in ipairs(open) do
    if rst then conn:rst() else conn:fin() end
  end
end

function Server:add_world(ns, world) self.worlds[ns] = world end

function Server:url() return "http://127.0.0.1:" .. self.port end

function Server:close() self:refuse(true) end

function fault_server.new()
  local server = setmetatable({ worlds = {}, conns = {}, requests = 0 }, Server)
  server:listen()
  return server
end

return fault_server
