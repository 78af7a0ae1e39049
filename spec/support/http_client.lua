-- An HTTP/1.1 client for specs, on luv's default loop: whole responses and streams, over plain TCP,
-- a unix socket or TLS. TLS is openssl's own client as a process per connection, whose pipes are the bytes.
--
--   local client = http_client.new { url = "https://127.0.0.1:6443", ca = "/path/ca.crt" }
--   local answer = client:request { method = "GET", path = "/version", headers = { { "Accept", "*/*" } } }
--   -- answer.status, answer.headers["content-type"][1], answer.body
--   local stream = client:send { path = "/api/v1/pods?watch=1" }   -- returns at once
--   http_client.wait(function() return #stream.body > 0 end, 5)
--   client:close()
jit.off(true, true)
local ffi = require "ffi"
local uv = require "luv"

-- A server that ends must not take the spec along.
ffi.cdef "void (*signal(int, void (*)(int)))(int);"
ffi.C.signal(13, ffi.cast("void (*)(int)", 1))

local http_client = { wait = require "spec.support.wait" }
local Client, Connection, Exchange = {}, {}, {}
Client.__index, Connection.__index, Exchange.__index = Client, Connection, Exchange

-- ---- responses ----

function Exchange:_end(failure)
  if self.done then return end
  self.done, self.failure = true, failure
end

-- A response of a known or unknown length; the latter ends with the connection.
function Exchange:_take_plain()
  local length = tonumber((self.headers["content-length"] or {})[1])
  if not length then
    self.body, self._input = self.body .. self._input, ""
    return
  end
  local need = length - #self.body
  self.body, self._input = self.body .. self._input:sub(1, need), self._input:sub(need + 1)
  if #self.body == length then self:_end() end
end

function Exchange:_take_chunks()
  while not self.done do
    local size, start = self._input:match("^(%x+)[^\r\n]*\r\n()")
    if not size then return end
    local length = tonumber(size, 16)
    if #self._input < start + length + 1 then return end
    self.body = self.body .. self._input:sub(start, start + length - 1)
    self._input = self._input:sub(start + length + 2)
    if length == 0 then self:_end() end
  end
end

function Exchange:_take_head()
  local head, rest = self._input:match("^(.-\r\n)\r\n(.*)$")
  if not head then return false end
  local status = tonumber(head:match("^HTTP/1%.[01] (%d%d%d)"))
  self._input = rest
  if not status then self:_end("not a response: " .. head) return false end
  if status == 100 then return self:_take_head() end
  self.headers = {}
  for name, value in head:gmatch("\r\n([^:\r\n]+): *([^\r\n]*)") do
    name = name:lower()
    self.headers[name] = self.headers[name] or {}
    table.insert(self.headers[name], value)
  end
  self.chunked = self:header("transfer-encoding") == "chunked"
  self.status = status
  if self.method == "HEAD" or status == 204 or status == 304 then self:_end() end
  return true
end

function Exchange:_feed(data)
  self._input = self._input .. data
  if not self.status and not self:_take_head() then return end
  if self.done then return end
  if self.chunked then self:_take_chunks() else self:_take_plain() end
end

--- The first value of a response header, or nil.
function Exchange:header(name) return (self.headers and self.headers[name] or {})[1] end

--- Gives up; the connection is closed.
function Exchange:close()
  self:_end("closed by the spec")
  self._connection:close()
end

--- Waits for the end and raises when it does not come, or is not a proper one.
function Exchange:finish(seconds)
  assert(http_client.wait(function() return self.done end, seconds or 20),
    ("%s %s: no end of the response in %g s"):format(self.method, self.path, seconds or 20))
  assert(not self.failure, ("%s %s: %s"):format(self.method, self.path, tostring(self.failure)))
  return self
end

-- ---- connections ----

function Connection:_data(err, data)
  local exchange = self.exchange
  if err or not data then
    self:close()
    if exchange and not exchange.done then
      local whole = exchange.status and not exchange.chunked and not exchange.headers["content-length"]
      exchange:_end(not whole and ("the connection ended " .. (err or "early")) or nil)
    end
    return
  end
  if not exchange then return end
  exchange:_feed(data)
  if exchange.done then
    self.exchange = nil
    local keep = exchange:header("connection") ~= "close" and not exchange.failure and not self.closed
    if keep then table.insert(self.client._idle, self) else self:close() end
  end
end

function Connection:close()
  if self.closed then return end
  self.closed = true
  for i, other in ipairs(self.client._idle) do
    if other == self then table.remove(self.client._idle, i) break end
  end
  if self._process then self._process:kill("sigterm") end
  for _, handle in ipairs(self._handles) do
    if not handle:is_closing() then handle:close() end
  end
end

function Connection:write(text)
  if self._ready then self._out:write(text) else self._pending = (self._pending or "") .. text end
end

local function connect_plain(self, host, port)
  local socket = uv.new_tcp()
  self._out, self._handles = socket, { socket }
  socket:connect(host, port, function(err)
    if err then return self:_data(err) end
    self._ready = true
    socket:nodelay(true)
    if self._pending then socket:write(self._pending) end
    socket:read_start(function(read_err, data) self:_data(read_err, data) end)
  end)
end

local function connect_unix(self, path)
  local socket = uv.new_pipe(false)
  self._out, self._handles = socket, { socket }
  socket:connect(path, function(err)
    if err then return self:_data(err) end
    self._ready = true
    if self._pending then socket:write(self._pending) end
    socket:read_start(function(read_err, data) self:_data(read_err, data) end)
  end)
end

local function connect_tls(self, host, port)
  local stdin, stdout = uv.new_pipe(false), uv.new_pipe(false)
  local process, problem
  process, problem = uv.spawn("openssl", {
    args = { "s_client", "-quiet", "-verify_quiet", "-verify_return_error", "-CAfile", self.client.ca,
      "-connect", host .. ":" .. port },
    stdio = { stdin, stdout, nil },
  }, function() process:close() end)
  assert(process, "openssl: " .. tostring(problem))
  self._process = process
  self._out, self._handles, self._ready = stdin, { stdin, stdout }, true
  stdout:read_start(function(err, data) self:_data(err, data) end)
end

local function connect(client)
  local self = setmetatable({ client = client }, Connection)
  if client.socket then
    connect_unix(self, client.socket)
  elseif client.tls then
    connect_tls(self, client.host, client.port)
  else
    connect_plain(self, client.host, client.port)
  end
  return self
end

-- ---- the client ----

--- options: url, ca (a file, for https), headers (an array of pairs, sent with every request); or socket, the path of
--- a unix socket, instead of a url.
function http_client.new(options)
  if options.socket then
    return setmetatable({ socket = options.socket, host = "localhost", port = 0, headers = {}, _idle = {} }, Client)
  end
  local scheme, host, port = options.url:match("^(https?)://([^:/]+):(%d+)/?$")
  assert(scheme, "not a URL with a port: " .. tostring(options.url))
  return setmetatable({ tls = scheme == "https", host = host, port = tonumber(port), ca = options.ca,
    headers = options.headers or {}, _idle = {} }, Client)
end

--- Sends a request and returns its exchange at once. options: method, path, headers (an array of
--- pairs that replace the client's of the same name; a value false leaves one out), body.
function Client:send(options)
  local method = options.method or "GET"
  local lines = { ("%s %s HTTP/1.1"):format(method, options.path), ("Host: %s:%d"):format(self.host, self.port) }
  local given = {}
  for _, pair in ipairs(options.headers or {}) do
    given[pair[1]:lower()] = true
    if pair[2] then lines[#lines + 1] = ("%s: %s"):format(pair[1], pair[2]) end
  end
  for _, pair in ipairs(self.headers) do
    if not given[pair[1]:lower()] then lines[#lines + 1] = ("%s: %s"):format(pair[1], pair[2]) end
  end
  if options.body or method == "POST" or method == "PUT" or method == "PATCH" then
    lines[#lines + 1] = ("Content-Length: %d"):format(#(options.body or ""))
  end
  local connection = table.remove(self._idle) or connect(self)
  local exchange = setmetatable({ method = method, path = options.path, body = "", _input = "",
    _connection = connection }, Exchange)
  connection.exchange = exchange
  connection:write(table.concat(lines, "\r\n") .. "\r\n\r\n" .. (options.body or ""))
  return exchange
end

--- Sends a request and returns the whole response; raises when there is none.
function Client:request(options)
  return self:send(options):finish(options.timeout)
end

--- Closes the connections that no exchange uses.
function Client:close()
  while #self._idle > 0 do self._idle[#self._idle]:close() end
  uv.run("nowait")
end

return http_client
