-- The HTTP/1.1 server, asked by sockets whose every byte is the spec's. Malformed requests, limits
-- and deadlines are in http_server_limits_spec.lua, TLS is in http_server_tls_spec.lua.
local server_rig = require "spec.support.server_rig"
local transport = require "spec.support.transport"
local unit = require "spec.support.unit"
local uv = require "luv"
local C, ffi = unit.C, unit.ffi

local function get(path, more)
  return "GET " .. path .. " HTTP/1.1\r\nHost: a\r\n" .. (more or "") .. "\r\n"
end

local function post(path, body, more)
  return ("POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n%s\r\n%s"):format(path, #body, more or "", body)
end

describe("http server", function()
  local rig

  local function serve(config)
    rig = assert(server_rig.new(config))
    return rig
  end

  -- Keeps the exchange of each request for later.
  local function hold()
    local held = {}
    rig.handler = function(x) held[#held + 1] = x end
    return held
  end

  local function stream(more)
    local held = {}
    rig.handler = function(x)
      rig:start(x, 200, more or "")
      held[#held + 1] = x
    end
    return held
  end

  after_each(function()
    if rig then rig:close() end
    rig = nil
  end)
  unit.no_leaks() -- after the rig is closed

  describe("listens", function()
    it("on an IPv6 address, and tells the port that it was given", function()
      local message
      rig, message = server_rig.new { host = "::1" }
      if not rig then
        assert.matches("^cannot listen on ::1 port 0: ", message)
        return pending("there is no IPv6 here")
      end
      assert.is_true(rig.port > 0)
      local out = rig:run("curl", { "-sS", ("http://[::1]:%d/"):format(rig.port) })
      assert.are.equal("hello", out)
    end)

    it("on a unix socket that is its owner's alone, and takes that away when it closes", function()
      local path = os.tmpname()
      os.remove(path)
      serve { path = path }
      assert.are.equal("600", ("%o"):format(uv.fs_lstat(path).mode % 4096))
      assert.are.equal("hello", (rig:run("curl", { "-sS", "--unix-socket", path, "http://a/" })))
      local _, message = server_rig.new { path = path }
      assert.are.equal(("cannot listen on %s: there is something already"):format(path), message)
      _, message = server_rig.new { path = "/tmp/" .. ("x"):rep(200) }
      assert.matches("a path can have at most 107 bytes here$", message)
      rig:close()
      rig = nil
      assert.is_nil(uv.fs_lstat(path))
    end)

    it("or says which address it could not have", function()
      serve()
      local other, message = server_rig.new { port = rig.port }
      assert.is_nil(other)
      assert.matches("^cannot listen on 127.0.0.1 port " .. rig.port .. ": Address already in use", message)
      other, message = server_rig.new { host = "localhost" }
      assert.is_nil(other)
      assert.matches('^cannot listen on "localhost" port 0: not a numeric address', message)
    end)
  end)

  describe("takes a request", function()
    it("with its method, target, headers and body", function()
      serve()
      local names, values, missing = {}, {}, nil
      rig.handler = function(x)
        local name, value = ffi.new("struct mw_slice[1]"), ffi.new("struct mw_slice[1]")
        local i = 0
        while C.mw_exchange_header_at(x, i, name, value) do
          names[#names + 1], values[#values + 1] = unit.str(name[0]), unit.str(value[0])
          i = i + 1
        end
        assert.are.equal("one", server_rig.header(x, "x-A"))
        missing = server_rig.header(x, "x-c")
        assert.are.equal("", server_rig.header(x, "x-b"))
        rig:reply(x, 201, "X-Mine: yes\r\n", "made")
      end
      local answer = rig:connect():ask("PATCH /a%20b?c=d&e HTTP/1.1\r\nHost: a\r\nX-a:  one \t \r\n" ..
        "X-B:\r\nX-A: two\r\nContent-Length: 3\r\n\r\nx\0y", "made$")
      assert.matches("^HTTP/1.1 201 Created\r\n", answer)
      assert.matches("\r\nX%-Mine: yes\r\n", answer)
      assert.are.same({ method = "PATCH", target = "/a%20b?c=d&e", body = "x\0y" }, rig.requests[1])
      assert.are.same({ "Host", "X-a", "X-B", "X-A", "Content-Length" }, names)
      assert.are.same({ "a", "one", "", "two", "3" }, values)
      assert.is_nil(missing)
    end)

    it("byte by byte as well as at once", function()
      serve()
      local client = rig:connect()
      for byte in post("/slow?q", "body", "X-Long-Name: a value\r\n"):gmatch(".") do
        client:send(byte)
        rig:pump(function() return client.socket:get_write_queue_size() == 0 end)
        C.mw_loop_turn(rig.loop, 0)
      end
      client:ask(nil, "hello$")
      assert.are.same({ method = "POST", target = "/slow?q", body = "body" }, rig.requests[1])
    end)

    it("with a chunked body, of which extensions and trailers are dropped", function()
      serve()
      local smuggled
      rig.handler = function(x)
        smuggled = server_rig.header(x, "authorization")
        rig:reply(x, 200, "", "hello")
      end
      local client = rig:connect()
      client:ask("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n" ..
        "A\r\n0123456789\r\n0\r\nAuthorization: Bearer x\r\n\r\n" .. get("/next"), "hello.*hello$")
      assert.are.equal("abc0123456789", rig.requests[1].body)
      assert.are.equal("/next", rig.requests[2].target)
      assert.is_nil(smuggled)
    end)

    it("with very many small chunks", function()
      serve()
      rig:connect():ask("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" ..
        ("1\r\nx\r\n"):rep(50000) .. "0\r\n\r\n", "hello$")
      assert.are.equal(("x"):rep(50000), rig.requests[1].body)
    end)

    it("whose target is a whole URL, as its path", function()
      serve()
      rig:connect():ask(get("http://example.com:80/a?b"), "hello$")
      assert.are.equal("/a?b", rig.requests[1].target)
      rig:connect():ask("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "hello$")
      assert.are.equal("*", rig.requests[2].target)
    end)

    it("and sends 100 Continue when its client waits for that, and only then", function()
      serve()
      local client = rig:connect()
      client:send("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
      assert.are.equal("HTTP/1.1 100 Continue\r\n\r\n", client:ask(nil, "\r\n\r\n$"))
      assert.are.equal(0, #rig.requests)
      assert.matches("^HTTP/1.1 200 OK\r\n", client:ask("body", "hello$"))
      assert.are.equal("body", rig.requests[1].body)
      assert.matches("^HTTP/1.1 200 OK\r\n", client:ask(post("/b", "body", "Expect: 100-continue\r\n"), "hello$"))
    end)

    it("one after the other when they come in one piece", function()
      serve()
      rig.handler = function(x, request) rig:reply(x, 200, "", request.target .. request.body .. ".") end
      local client = rig:connect()
      client:send(get("/1") .. post("/2", "two") .. get("/3") .. get("/4"):sub(1, 20))
      assert.matches("/1%..*/2two%..*/3%.$", client:ask(nil, "/3%.$"))
      assert.are.equal(3, #rig.requests)
      client:ask(get("/4"):sub(21), "/4%.$")
    end)

    it("only when the one before is answered, however late that is", function()
      serve()
      local held = hold()
      local client = rig:connect()
      client:send(get("/1") .. get("/2") .. get("/3"))
      rig:pump(function() return #held == 1 end)
      rig:idle(0.05)
      assert.are.equal(1, #held)
      for i = 1, 3 do
        rig:reply(held[i], 200, "", "answer " .. i)
        assert.are.equal(i, #held) -- the next one never comes from inside the reply
        client:ask(nil, "answer " .. i .. "$")
        rig:pump(function() return #held > i end, 0.2)
      end
    end)

    it("of a client that closes its half behind it", function()
      serve()
      local client = rig:connect()
      client:send(get("/1") .. get("/2"))
      client.socket:shutdown()
      local text = client:to_end()
      assert.matches("hello.*hello$", text)
      assert.are.equal(2, #rig.requests)
    end)
  end)

  describe("answers", function()
    it("with a whole reply, and keeps the connection", function()
      serve()
      local client = rig:connect()
      for i = 1, 3 do
        local answer = client:ask(get("/" .. i), "hello$")
        assert.matches("^HTTP/1.1 200 OK\r\nDate: %a%a%a, %d%d %a%a%a %d%d%d%d %d%d:%d%d:%d%d GMT\r\n" ..
          "Content%-Length: 5\r\n\r\nhello$", answer)
      end
      assert.are.same({ method = "GET", target = "/3", body = "" }, rig.requests[3])
    end)

    it("HEAD without a body, but with its length", function()
      serve()
      local client = rig:connect()
      local answer = client:ask("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n" .. get("/"), "hello$")
      assert.matches("^HTTP/1.1 200 OK\r\n[^\r]+\r\nContent%-Length: 5\r\n\r\nHTTP/1.1 200 OK\r\n", answer)
    end)

    it("HEAD with the head of a stream only", function()
      serve()
      rig.handler = function(x, request)
        if request.method == "GET" then return rig:reply(x, 200, "", "hello") end
        rig:start(x, 200)
        assert.is_true(server_rig.write(x, "unseen"))
        C.mw_exchange_finish(x)
      end
      local answer = rig:connect():ask("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n" .. get("/"), "hello$")
      assert.matches("^HTTP/1.1 200 OK\r\n[^\r]+\r\nTransfer%-Encoding: chunked\r\n\r\nHTTP/1.1 200 OK\r\n", answer)
    end)

    it("204 and 304 without length and body", function()
      serve()
      rig.handler = function(x, request) rig:reply(x, tonumber(request.target:sub(2)), "", "") end
      local client = rig:connect()
      assert.matches("^HTTP/1.1 204 No Content\r\nDate: [^\r]+\r\n\r\n$", client:ask(get("/204"), "\r\n\r\n$"))
      assert.matches("^HTTP/1.1 304 Not Modified\r\nDate: [^\r]+\r\n\r\n$", client:ask(get("/304"), "\r\n\r\n$"))
    end)

    it("and closes when the client asks for that", function()
      serve()
      local client = rig:connect()
      client:send(get("/", "Connection: close\r\n") .. get("/never"))
      assert.matches("\r\nConnection: close\r\n\r\nhello$", client:to_end())
      assert.is_true(client.gone)
      assert.are.equal(1, #rig.requests)
    end)

    it("HTTP/1.0 and closes, unless the client wants more", function()
      serve()
      local client = rig:connect()
      local answer = client:ask("GET /1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "hello$")
      assert.matches("\r\nConnection: keep%-alive\r\n", answer)
      client:send("GET /2 HTTP/1.0\r\n\r\n")
      assert.matches("\r\nConnection: close\r\n\r\nhello$", client:to_end())
    end)

    it("more than the socket takes, as fast as the client reads", function()
      serve()
      local body = ("0123456789abcdef"):rep(2 * 1024 * 1024)
      rig.handler = function(x) rig:reply(x, 200, "", body) end
      local client = rig:connect()
      client:read(false)
      client:send(get("/1") .. get("/2"))
      rig:pump(function() return #rig.requests == 1 end)
      rig:idle(0.05)
      assert.are.equal(1, #rig.requests)
      local parts, size = {}, 0
      client.socket:read_start(function(_, data)
        parts[#parts + 1] = data
        size = size + #(data or "")
      end)
      assert.is_true(rig:pump(function() return size > 2 * #body end))
      local text = table.concat(parts)
      assert.are.equal(body, text:match("\r\n\r\n(0.-f)HTTP"))
      assert.are.equal(2, #rig.requests)
    end)
  end)

  describe("streams", function()
    it("in chunks, then keeps the connection", function()
      serve()
      local held = stream("Content-Type: text/plain\r\n")
      local client = rig:connect()
      assert.matches("Content%-Type: text/plain\r\nTransfer%-Encoding: chunked\r\n\r\n$",
        client:ask(get("/"), "\r\n\r\n$"))
      assert.is_true(server_rig.write(held[1], "one"))
      assert.are.equal("3\r\none\r\n", client:ask(nil, "\r\n$"))
      assert.is_true(server_rig.write(held[1], "")) -- an empty chunk would be the end
      assert.is_true(server_rig.write(held[1], ("x"):rep(300)))
      assert.matches("^12c\r\nx+\r\n$", client:ask(nil, "\r\n$"))
      C.mw_exchange_finish(held[1])
      assert.are.equal("0\r\n\r\n", client:ask(nil, "\r\n\r\n$"))
      client:ask(get("/2"), "chunked\r\n\r\n$")
      C.mw_exchange_finish(held[2])
      client:ask(nil, "0\r\n\r\n$")
    end)

    it("to HTTP/1.0 without chunks; the end is the connection's", function()
      serve()
      local held = stream()
      local client = rig:connect()
      assert.matches("GMT\r\nConnection: close\r\n\r\n$",
        client:ask("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "\r\n\r\n$"))
      assert.is_true(server_rig.write(held[1], "one"))
      assert.is_true(server_rig.write(held[1], "two"))
      C.mw_exchange_finish(held[1])
      assert.are.equal("onetwo", client:to_end())
    end)

    it("and answers a request that was sent meanwhile, afterwards", function()
      serve()
      local held = stream()
      local client = rig:connect()
      client:ask(get("/1"), "\r\n\r\n$")
      client:send(get("/2"))
      rig:idle(0.02)
      assert.are.equal(1, #held)
      C.mw_exchange_finish(held[1])
      client:ask(nil, "0\r\n\r\nHTTP/1.1 200.*\r\n\r\n$")
      C.mw_exchange_finish(held[2])
    end)

    it("until the client leaves, which the owner hears once and from the loop", function()
      serve()
      local held = stream()
      local client = rig:connect()
      client:ask(get("/watch"), "\r\n\r\n$")
      C.mw_exchange_set_data(held[1], ffi.cast("void *", 42))
      local data
      rig.on_gone = function(x)
        data = tonumber(ffi.cast("intptr_t", C.mw_exchange_data(x)))
        assert.is_false(server_rig.write(x, "too late"))
        C.mw_exchange_finish(x) -- too late as well, and harmless
      end
      client:close()
      assert.is_true(rig:pump(function() return #rig.gone > 0 end))
      assert.are.equal(42, data)
      rig:idle(0.02)
      assert.are.same({ "/watch" }, rig.gone)
    end)

    it("and tells when the client leaves before the reply has begun", function()
      serve()
      local held = hold()
      local client = rig:connect()
      client:send(get("/poll"))
      rig:pump(function() return #held == 1 end)
      client:close()
      assert.is_true(rig:pump(function() return #rig.gone > 0 end))
      assert.are.same({ "/poll" }, rig.gone)
    end)

    it("to a slow client until its backlog is full, then cuts it with a reset", function()
      serve { backlog_max = 100000 }
      local held = stream()
      local client = rig:connect()
      client:ask(get("/slow"), "\r\n\r\n$")
      client:read(false)
      local chunk, written = ("x"):rep(1000), 0
      while server_rig.write(held[1], chunk) do
        written = written + #chunk
        assert.is_true(tonumber(C.mw_exchange_backlog(held[1])) <= 110000)
        assert.is_true(written < 20e6, "nobody was cut")
      end
      assert.is_false(server_rig.write(held[1], chunk))
      assert.are.same({}, rig.gone) -- not from inside the write
      assert.is_true(rig:pump(function() return #rig.gone > 0 end))
      client:read(true)
      -- An orderly end would have let the kernel deliver everything that it had taken.
      assert.is_true(#client:to_end() < written - 110000)
      assert.are.same({ "/slow" }, rig.gone)
    end)

    it("a chunk of any size when nothing waits, and says when it is out", function()
      serve { backlog_max = 1000 }
      local held = stream()
      local client = rig:connect()
      client:ask(get("/"), "\r\n\r\n$")
      client:read(false)
      assert.is_true(server_rig.write(held[1], ("x"):rep(8e6)))
      assert.is_true(C.mw_exchange_backlog(held[1]) > 0)
      local drained = 0
      rig.on_drain = function(x)
        drained = drained + 1
        C.mw_exchange_finish(x)
      end
      client:read(true)
      client:ask(nil, "x\r\n0\r\n\r\n$")
      assert.are.equal(1, drained)
    end)

    it("until the owner cuts them", function()
      serve()
      local held = stream()
      local client = rig:connect()
      client:ask(get("/"), "\r\n\r\n$")
      C.mw_exchange_reset(held[1])
      client:to_end()
      assert.are.equal("ECONNRESET", client.gone)
      assert.are.same({}, rig.gone)
    end)
  end)

  describe("ends", function()
    it("at once when nobody is there", function()
      serve()
      rig:shut(60)
      assert.is_true(rig:pump(function() return rig.closed end, 1))
    end)

    it("after the replies under way, which say that the connection closes", function()
      serve()
      local held = hold()
      local idle, asking = rig:connect(), rig:connect()
      asking:send(get("/"))
      rig:pump(function() return #held == 1 end)
      rig:shut(60)
      idle:to_end()
      rig:idle(0.05)
      assert.is_nil(rig.closed)
      assert.are_not.equal(true, asking.gone)
      C.mw_exchange_reply(held[1], 200, unit.slice(""), unit.slice("last"))
      assert.matches("Connection: close\r\n\r\nlast$", asking:to_end())
      assert.is_true(rig:pump(function() return rig.closed end, 2))
    end)

    it("when the grace is over, whoever is still there", function()
      serve()
      local held = stream()
      local client = rig:connect()
      client:ask(get("/watch"), "\r\n\r\n$")
      local from = transport.now()
      rig:shut(0.1)
      assert.is_true(server_rig.write(held[1], "still there"))
      assert.is_true(rig:pump(function() return rig.closed end, 2))
      assert.is_true(transport.now() - from >= 0.1)
      assert.are.same({ "/watch" }, rig.gone)
      assert.matches("still there", client:to_end())
    end)

    it("from inside a request's handler", function()
      serve()
      rig.handler = function(x)
        rig:reply(x, 200, "", "bye")
        rig:shut(5)
      end
      local client = rig:connect()
      client:send(get("/1") .. get("/2"))
      assert.matches("bye$", client:to_end())
      assert.is_true(rig:pump(function() return rig.closed end, 2))
      assert.are.equal(1, #rig.requests)
    end)
  end)
end)
