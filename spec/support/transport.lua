-- For specs of core/transport: a client that records what it is told, plain HTTP/1.1 peers whose
-- every byte the spec decides, and HTTP/2 peers over TLS (nghttpd).
--
-- The loop of the core and the loop of luv run by turns on this thread: callbacks from C into Lua
-- never come from another one.
jit.off(true, true)
local unit = require "spec.support.unit"
local uv = require "luv"
local C, ffi = unit.C, unit.ffi

local transport = {}

-- ---- time ----

function transport.now() return uv.hrtime() / 1e9 end

-- ---- the client ----

local Client = {}
Client.__index = Client

-- One set of C callbacks for all requests; ctx is the number of the request.
local records, last = {}, 0
local function record_of(ctx) return records[tonumber(ffi.cast("intptr_t", ctx))] end

local callbacks = ffi.new("struct mw_request_callbacks")
-- LuaJIT's callbacks cannot take a struct by value. The slice of on_done travels in two registers,
-- as its pointer and its length would.
callbacks.on_response = function(ctx, response)
  local r = record_of(ctx)
  r.events[#r.events + 1] = "response"
  r.status = response.status
  r.retry_after = response.retry_after
  r.content_type = unit.str(response.content_type)
  if r.on_response then r.on_response(r) end
end
callbacks.on_data = function(ctx, p, n)
  local r = record_of(ctx)
  n = tonumber(n)
  if r.events[#r.events] ~= "data" then r.events[#r.events + 1] = "data" end
  r.size = r.size + n
  r.parts[#r.parts + 1] = ffi.string(p, n)
  return r.on_data and r.on_data(r, r.parts[#r.parts]) or 0
end
-- 0, or the code that keeps the request from being sent.
callbacks.on_send = function(ctx, err)
  local r = record_of(ctx)
  local code = r.on_send and r.on_send(r) or 0
  if code < 0 then C.mw_err_set(err, code, "the spec refuses") end
  return code
end
local on_done = ffi.cast("void (*)(void *, const struct mw_err *, const char *, size_t)",
  function(ctx, err, p, n)
    local r = record_of(ctx)
    r.events[#r.events + 1] = "done"
    r.done = r.done + 1
    r.request[0] = nil
    if err ~= nil then
      r.err = ffi.string(C.mw_err_name(err.code))
      r.code = err.code
      r.message = ffi.string(err.message)
      r.http_status = err.http_status
    end
    r.error_body = n > 0 and ffi.string(p, tonumber(n)) or ""
    if r.on_done then r.on_done(r) end
  end)
callbacks.on_done = ffi.cast(ffi.typeof(callbacks.on_done), on_done)

--- A loop and a pool. config: fields of mw_http_config.
function transport.client(config)
  C.mw_log_set_level(C.MW_LOG_ERROR)
  local loop = C.mw_loop_new("spec")
  local http = C.mw_http_new(loop, ffi.new("struct mw_http_config", config or {}))
  return setmetatable({ loop = loop, http = http, endpoints = {} }, Client)
end

--- An endpoint from the text of a cluster and a user.
function Client:endpoint(cluster, user, dir)
  local yaml = ([[{"current-context": c,
    "contexts": [{"name": c, "context": {"cluster": c, "user": u}}],
    "clusters": [{"name": c, "cluster": {%s}}], "users": [{"name": u, "user": {%s}}]}]])
    :format(cluster, user or "")
  local err = unit.err()
  local k = C.mw_kubeconfig_parse(yaml, #yaml, nil, "spec", dir, err)
  assert(k ~= nil, ffi.string(err.message))
  local e = C.mw_endpoint_new(k)
  self.endpoints[#self.endpoints + 1] = e
  return e
end

--- Starts a request. options: fields of mw_request_options (body a string), and on_response,
--- on_data, on_done, on_send of the spec. Returns the record.
function Client:start(endpoint, options)
  local r = { events = {}, parts = {}, size = 0, done = 0,
    request = ffi.new("struct mw_request *[1]") }
  local o = ffi.new("struct mw_request_options")
  for name, value in pairs(options or {}) do
    if name == "body" then
      o.body = unit.slice(value)
    elseif type(value) == "function" then
      r[name] = value
    else
      o[name] = value
    end
  end
  options = options or {}
  local path = options.path or "/"
  o.path = path
  last = last + 1
  records[last] = r
  r.request[0] = C.mw_http_start(self.http, endpoint, o, callbacks, ffi.cast("void *", last))
  return r
end

function transport.cancel(r) C.mw_http_cancel(r.request) end
function transport.body(r) return table.concat(r.parts) end

--- Runs both loops until done() is true; fails after `seconds` (10).
function Client:pump(done, seconds)
  local stop = transport.now() + (seconds or 10)
  while not done() do
    if transport.now() > stop then return false end
    C.mw_loop_turn(self.loop, 1)
    uv.run("nowait")
  end
  return true
end

--- Runs both loops for a while, for what must not happen.
function Client:idle(seconds)
  local stop = transport.now() + seconds
  self:pump(function() return transport.now() > stop end, seconds + 1)
end

--- Waits until the request is done.
function Client:finish(r, seconds)
  assert(self:pump(function() return r.done > 0 end, seconds), "the request did not end")
  return r
end

--- Starts and waits.
function Client:fetch(endpoint, options) return self:finish(self:start(endpoint, options)) end

function Client:stats()
  local s = ffi.new("struct mw_http_stats")
  C.mw_http_stats(self.http, s)
  return { requests = tonumber(s.requests), retries = tonumber(s.retries),
    connections = tonumber(s.connections), pokes = tonumber(s.pokes),
    rescues = tonumber(s.rescues) }
end

local function each_auth(client, call, value)
  local link = client.http.logins.next
  while link ~= ffi.cast("struct mw_link *", ffi.cast("char *", client.http)
      + ffi.offsetof("struct mw_http", "logins")) do
    call(ffi.cast("struct mw_login *", link).auth, value)
    link = link.next
  end
end

--- Makes the files of every login of the pool so far older by so many seconds.
function Client:age_files(seconds) each_auth(self, C.mw_auth_age_files, seconds) end

--- How long plugins may run, for every login of the pool so far.
function Client:set_exec_timeout(seconds) each_auth(self, C.mw_auth_set_exec_timeout, seconds) end

-- The polls of libcurl's sockets are the only ones on the loop of a client.
ffi.cdef [[
  typedef struct uv_handle_s uv_handle_t;
  void uv_walk(uv_loop_t *loop, void (*cb)(uv_handle_t *handle, void *arg), void *arg);
  int uv_handle_get_type(const uv_handle_t *handle);
  const char *uv_handle_type_name(int type);
  int uv_fileno(const uv_handle_t *handle, int *fd);
  int uv_poll_stop(uv_handle_t *poll);
  int getsockopt(int fd, int level, int option, void *value, unsigned *size);
]]
local polls
local on_handle = ffi.cast("void (*)(uv_handle_t *, void *)", function(handle)
  local type = C.uv_handle_type_name(C.uv_handle_get_type(handle))
  if ffi.string(type) == "poll" then polls[#polls + 1] = handle end
end)

local function polls_of(client)
  polls = {}
  C.uv_walk(C.mw_loop_uv(client.loop), on_handle, nil)
  return polls
end

--- The descriptors of the sockets in use.
function Client:sockets()
  local fds, fd = {}, ffi.new("int[1]")
  for i, poll in ipairs(polls_of(self)) do
    assert(C.uv_fileno(poll, fd) == 0)
    fds[i] = fd[0]
  end
  return fds
end

--- An option of a socket, by Linux's numbers.
function transport.socket_option(fd, level, option)
  local value, size = ffi.new("int[1]"), ffi.new("unsigned[1]", 4)
  assert(C.getsockopt(fd, level, option, value, size) == 0)
  return value[0]
end

--- Has the loop hear no more of the sockets in use, as if all that comes had come before.
function Client:deafen()
  for _, poll in ipairs(polls_of(self)) do assert(C.uv_poll_stop(poll) == 0) end
end

function Client:close()
  C.mw_http_free(self.http)
  C.mw_loop_free(self.loop)
  for _, e in ipairs(self.endpoints) do C.mw_endpoint_unref(e) end
  C.mw_log_set_level(C.MW_LOG_INFO)
  records = {}
end

-- ---- plain HTTP/1.1 peers ----

local Peer, Connection = {}, {}
Peer.__index, Connection.__index = Peer, Connection

function Connection:send(text)
  if not self.socket:is_closing() then self.socket:write(text) end
end

function Connection:close()
  if not self.socket:is_closing() then self.socket:close() end
end

--- Ends the connection with a reset instead of a proper end.
function Connection:reset()
  if not self.socket:is_closing() then self.socket:close_reset() end
end

--- A whole response.
function Connection:answer(status, headers, body)
  local head = { ("HTTP/1.1 %d Whatever\r\n"):format(status) }
  for name, value in pairs(headers or {}) do head[#head + 1] = name .. ": " .. value .. "\r\n" end
  body = body or ""
  self:send(table.concat(head) .. ("Content-Length: %d\r\n\r\n"):format(#body) .. body)
end

local function parse_request(text)
  local head, rest = text:match("^(.-\r\n)\r\n(.*)$")
  if not head then return nil, text end
  local request = { headers = {}, lines = {} }
  request.method, request.target = head:match("^(%u+) (%S+) HTTP/1%.1\r\n")
  for name, value in head:gmatch("\r\n([^:\r\n]+): *([^\r\n]*)") do
    request.headers[name:lower()] = value
    request.lines[#request.lines + 1] = name .. ": " .. value
  end
  local n = tonumber(request.headers["content-length"] or 0)
  if #rest < n then return nil, text end
  request.body = rest:sub(1, n)
  return request, rest:sub(n + 1)
end

local function on_read(peer, connection, err, data)
  if err or not data then
    connection.gone = true
    connection:close()
    return
  end
  connection.received = connection.received .. data
  while true do
    local request
    request, connection.received = parse_request(connection.received)
    if not request then return end
    peer.requests[#peer.requests + 1] = request
    peer.script(request, connection, #peer.requests)
  end
end

--- A server that calls script(request, connection, count) for each request.
function transport.peer(script)
  local peer = setmetatable({ script = script, requests = {}, connections = {} }, Peer)
  peer.listener = uv.new_tcp()
  assert(peer.listener:bind("127.0.0.1", 0))
  peer.port = peer.listener:getsockname().port
  assert(peer.listener:listen(128, function()
    local socket = uv.new_tcp()
    peer.listener:accept(socket)
    local connection = setmetatable({ socket = socket, received = "" }, Connection)
    peer.connections[#peer.connections + 1] = connection
    socket:read_start(function(err, data) on_read(peer, connection, err, data) end)
  end))
  return peer
end

function Peer:cluster() return ('"server": "http://127.0.0.1:%d"'):format(self.port) end

function Peer:close()
  if not self.listener:is_closing() then self.listener:close() end
  for _, connection in ipairs(self.connections) do connection:close() end
  for _ = 1, 3 do uv.run("nowait") end
end

--- A port on which nobody listens.
function transport.free_port()
  local tcp = uv.new_tcp()
  assert(tcp:bind("127.0.0.1", 0))
  local port = tcp:getsockname().port
  tcp:close()
  uv.run("nowait")
  return port
end

-- ---- files ----

function transport.tmpdir()
  return assert(uv.fs_mkdtemp((os.getenv("TMPDIR") or "/tmp") .. "/mw-spec-XXXXXX"))
end

function transport.rmdir(dir)
  assert(dir:match("/mw%-spec%-%w+$"))
  os.execute("rm -r " .. dir)
end

function transport.write(path, text)
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
  return path
end

function transport.read(path)
  local file = assert(io.open(path))
  local text = file:read("*a")
  file:close()
  return text
end

-- ---- TLS ----

local function sh(command)
  assert(os.execute(command .. " >/dev/null 2>&1") == 0, command)
end

--- Makes dir/<name>.crt and .key: a CA of its own.
function transport.make_ca(dir, name)
  sh(("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 " ..
    "-subj /CN=%s -keyout %s/%s.key -out %s/%s.crt"):format(name, dir, name, dir, name))
end

--- Makes dir/<name>.crt and .key, signed by dir/<ca>; san as in "IP:127.0.0.1,DNS:localhost".
function transport.make_cert(dir, ca, name, san)
  transport.write(dir .. "/" .. name .. ".ext", "subjectAltName=" .. san .. "\n")
  sh(("openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=%s " ..
    "-keyout %s/%s.key -out %s/%s.csr"):format(name, dir, name, dir, name))
  sh(("openssl x509 -req -in %s/%s.csr -CA %s/%s.crt -CAkey %s/%s.key -CAcreateserial -days 2 " ..
    "-extfile %s/%s.ext -out %s/%s.crt"):format(dir, name, dir, ca, dir, ca, dir, name, dir, name))
end

local H2 = {}
H2.__index = H2

local function accepts(port)
  local tcp, state = uv.new_tcp(), nil
  tcp:connect("127.0.0.1", port, function(err) state = err or "up" end)
  while not state do uv.run("once") end
  tcp:close()
  uv.run("nowait")
  return state == "up"
end

--- nghttpd with dir/<cert>.{key,crt}, serving the files of dir/htdocs. extra: more arguments.
function transport.h2(dir, cert, extra)
  local port = transport.free_port()
  local args = { "-d", dir .. "/htdocs" }
  for _, arg in ipairs(extra or {}) do args[#args + 1] = arg end
  args[#args + 1] = tostring(port)
  args[#args + 1] = dir .. "/" .. cert .. ".key"
  args[#args + 1] = dir .. "/" .. cert .. ".crt"
  local out = uv.new_pipe(false)
  local server = setmetatable({ port = port, log = "", out = out }, H2)
  server.process = assert(uv.spawn("nghttpd", { args = args, stdio = { nil, out, nil } },
    function() server.gone = true end))
  out:read_start(function(_, data) server.log = server.log .. (data or "") end)
  local stop = transport.now() + 10
  while not accepts(port) do
    assert(not server.gone and transport.now() < stop, "nghttpd does not start")
  end
  return server
end

function H2:cluster(ca_file, more)
  return ('"server": "https://127.0.0.1:%d", "certificate-authority": "%s"%s')
    :format(self.port, ca_file, more and ", " .. more or "")
end

function H2:close()
  self.process:kill("sigkill")
  while not self.gone do uv.run("once") end
  self.process:close()
  self.out:close()
  uv.run("nowait")
end

return transport
