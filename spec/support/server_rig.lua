-- For specs of core/server: a server whose handler is the spec's, and clients whose every byte is.
--
--   local rig = server_rig.new { header_max = 1000 }          -- fields of mw_http_server_config
--   rig.handler = function(x) rig:reply(x, 200, "", "hello") end
--   local client = rig:connect()                              -- a socket: send(), text, gone
--   client:send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
--   rig:pump(function() return client.text:find("hello") end)
--
-- The loop of the server and the loop of luv run by turns on this thread.
jit.off(true, true)
local transport = require "spec.support.transport"
local unit = require "spec.support.unit"
local uv = require "luv"
local C, ffi = unit.C, unit.ffi

local TAIL = 4096

local server_rig = {}
local Rig, Client = {}, {}
Rig.__index, Client.__index = Rig, Client

-- One set of C callbacks for all rigs; ctx is the number of the rig.
local rigs, last = {}, 0
local function rig_of(ctx) return rigs[tonumber(ffi.cast("intptr_t", ctx))] end

local on_request = ffi.cast("mw_exchange_cb", function(ctx, x)
  local rig = rig_of(ctx)
  local request = { method = unit.str(C.mw_exchange_method(x)), target = unit.str(C.mw_exchange_target(x)),
    body = unit.str(C.mw_exchange_body(x)) }
  rig.requests[#rig.requests + 1] = request
  rig.handler(x, request)
end)
local on_gone = ffi.cast("mw_exchange_cb", function(ctx, x)
  local rig = rig_of(ctx)
  rig.gone[#rig.gone + 1] = unit.str(C.mw_exchange_target(x))
  if rig.on_gone then rig.on_gone(x) end
end)
local on_drain = ffi.cast("mw_exchange_cb", function(ctx, x)
  local rig = rig_of(ctx)
  rig.drains = rig.drains + 1
  if rig.on_drain then rig.on_drain(x) end
end)
local on_closed = ffi.cast("mw_loop_cb", function(ctx) rig_of(ctx).closed = true end)

--- A server. config: fields of mw_http_server_config; tls: { certificate =, key = } as PEM.
function server_rig.new(config, tls)
  C.mw_log_set_level(C.MW_LOG_ERROR)
  last = last + 1
  local rig = setmetatable({ requests = {}, gone = {}, drains = 0, clients = {}, id = last }, Rig)
  rig.handler = function(x) rig:reply(x, 200, "", "hello") end
  rigs[last] = rig
  rig.loop = C.mw_loop_new("spec")
  local o = ffi.new("struct mw_http_server_config", config or {})
  local host = config and config.host or "127.0.0.1"
  o.host = host
  o.loop, o.on_request, o.on_gone, o.on_drain = rig.loop, on_request, on_gone, on_drain
  o.ctx = ffi.cast("void *", last)
  local err = unit.err()
  if tls then
    rig.tls = C.mw_server_tls_new(unit.slice(tls.certificate), unit.slice(tls.key), err)
    assert(rig.tls ~= nil, ffi.string(err.message))
    o.tls = rig.tls
  end
  rig.server = C.mw_http_server_new(o, err)
  if rig.server == nil then
    C.mw_loop_free(rig.loop)
    return nil, ffi.string(err.message)
  end
  rig.port = C.mw_http_server_port(rig.server)
  return rig
end

-- ---- the handler's side ----

function Rig:reply(x, status, headers, body)
  assert(self.server)
  C.mw_exchange_reply(x, status, unit.slice(headers or ""), unit.slice(body or ""))
end

function Rig:start(x, status, headers)
  assert(self.server)
  C.mw_exchange_start(x, status, unit.slice(headers or ""))
end

function server_rig.write(x, text) return C.mw_exchange_write(x, unit.slice(text)) end

--- The first header of that name, or nil.
function server_rig.header(x, name)
  local value = C.mw_exchange_header(x, name)
  return value.p ~= nil and unit.str(value) or nil
end

-- ---- the client's side ----

--- Connects. The client's `text` is what it has received, `gone` is true or an error once it ended.
function Rig:connect()
  local client = setmetatable({ rig = self, text = "", socket = uv.new_tcp() }, Client)
  self.clients[#self.clients + 1] = client
  client.socket:connect("127.0.0.1", self.port, function(err)
    client.connected = err or true
    if not err then client:read(true) end
  end)
  self:pump(function() return client.connected end)
  return client
end

function Client:read(on)
  if not on then return self.socket:read_stop() end
  self.socket:read_start(function(err, data)
    if data then
      self.text = self.text .. data
    else
      self.gone = err or true
      self:close()
    end
  end)
end

function Client:send(text) self.socket:write(text) end

function Client:close()
  if not self.socket:is_closing() then self.socket:close() end
end

-- Whether the pattern was received; one that ends with $ is looked for at the end only.
local function has(text, pattern)
  if pattern:find("%$$") then text = text:sub(-TAIL) end
  return text:find(pattern) ~= nil
end

--- Sends, waits until the pattern was received and returns everything since the last call.
function Client:ask(text, pattern)
  if text then self:send(text) end
  local ok = self.rig:pump(function() return has(self.text, pattern) or self.gone end)
  local answer = self.text
  self.text = ""
  if not (ok and has(answer, pattern)) then
    error(("not received: %s\nbut %d bytes: ...%s"):format(pattern, #answer, answer:sub(-TAIL)))
  end
  return answer
end

--- Waits until the server has closed the connection; returns everything that came before.
function Client:to_end(seconds)
  assert(self.rig:pump(function() return self.gone end, seconds), "still open: " .. self.text)
  return self.text
end

-- ---- both ----

--- Runs both loops until done() is true; false after `seconds` (10).
function Rig:pump(done, seconds)
  local stop = transport.now() + (seconds or 10)
  while not done() do
    if transport.now() > stop then return false end
    C.mw_loop_turn(self.loop, 1)
    uv.run("nowait")
  end
  return true
end

--- Runs both loops for a while, for what must not happen.
function Rig:idle(seconds)
  local stop = transport.now() + seconds
  self:pump(function() return transport.now() > stop end, seconds + 1)
end

--- Starts a command, without the sanitizer that may be preloaded here.
function server_rig.spawn(program, args, stdio, on_exit)
  local env = { "PATH=" .. os.getenv("PATH"), "HOME=" .. (os.getenv("HOME") or "/") }
  return (assert(uv.spawn(program, { args = args, stdio = stdio, env = env }, on_exit)))
end

--- Runs a command beside the server; returns what it printed and its exit code.
function Rig:run(program, args, input)
  local pipes, text, code, open = { uv.new_pipe(false), uv.new_pipe(false), uv.new_pipe(false) }, "", nil, 2
  local process = server_rig.spawn(program, args, pipes, function(status) code = status end)
  for i = 2, 3 do
    pipes[i]:read_start(function(_, data)
      text = text .. (data or "")
      if not data then open = open - 1 end
    end)
  end
  if input then pipes[1]:write(input) end
  pipes[1]:shutdown()
  assert(self:pump(function() return code and open == 0 end, 20), program .. " does not end: " .. text)
  process:close()
  for _, pipe in ipairs(pipes) do pipe:close() end
  return text, code
end

--- Starts the graceful end.
function Rig:shut(grace)
  if self.server then C.mw_http_server_close(self.server, grace, on_closed, ffi.cast("void *", self.id)) end
  self.server = nil
end

function Rig:close()
  self:shut(0)
  for _, client in ipairs(self.clients) do client:close() end
  assert(self:pump(function() return self.closed end), "the server does not end")
  for _ = 1, 3 do uv.run("nowait") end
  C.mw_server_tls_free(self.tls)
  C.mw_loop_free(self.loop)
  rigs[self.id] = nil
end

return server_rig
