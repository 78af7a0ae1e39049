-- What the HTTP/1.1 server refuses: malformed requests, and those that are too large, too many or
-- too slow.
local server_rig = require "spec.support.server_rig"
local transport = require "spec.support.transport"
local unit = require "spec.support.unit"
local uv = require "luv"
local C, ffi = unit.C, unit.ffi

ffi.cdef [[
  struct spec_rlimit { unsigned long now, max; };
  int getrlimit(int, struct spec_rlimit *);
  int setrlimit(int, const struct spec_rlimit *);
  int open(const char *, int, ...);
  int close(int);
]]

local GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

describe("http server", function()
  local rig

  local function serve(config)
    rig = assert(server_rig.new(config))
    return rig
  end

  -- Sends and returns the whole answer, after which the server must hang up.
  local function refused(text, seconds)
    local client = rig:connect()
    client:send(text)
    return client:to_end(seconds), client
  end

  local function assert_refused(status, text)
    local answer = refused(text)
    assert.matches("^HTTP/1.1 " .. status .. " %a[^\r]*\r\n", answer, nil, nil, text)
    assert.matches("\r\nContent%-Type: text/plain; charset=utf%-8\r\nContent%-Length: %d+\r\n" ..
      "Cache%-Control: no%-cache, private\r\nConnection: close\r\n\r\n" .. status .. " %a[^\n]*\n$", answer)
    assert.are.equal(0, #rig.requests, text)
  end

  after_each(function()
    if rig then rig:close() end
    rig = nil
  end)
  unit.no_leaks() -- after the rig is closed

  describe("refuses", function()
    local malformed = {
      { "no HTTP at all", 400, "hello there\r\n\r\n" },
      { "binary nonsense", 400, "\22\3\1\2\0\1\0\1\252\3\3" },
      { "an unknown method", 400, "FETCH / HTTP/1.1\r\nHost: a\r\n\r\n" },
      { "a target that is neither path nor URL", 400, "GET a/b HTTP/1.1\r\nHost: a\r\n\r\n" },
      { "a control character in the target", 400, "GET /\1 HTTP/1.1\r\nHost: a\r\n\r\n" },
      { "HTTP/0.9", 505, "GET /\r\n\r\n" },
      { "HTTP/2.0 in the clothes of 1.1", 505, "GET / HTTP/2.0\r\nHost: a\r\n\r\n" },
      { "HTTP/2 with its preface", 505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" },
      { "HTTP/1.2", 505, "GET / HTTP/1.2\r\nHost: a\r\n\r\n" },
      { "CONNECT", 501, "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n" },
      { "methods of RTSP", 501, "DESCRIBE rtsp://a/b RTSP/1.0\r\n\r\n" },
      { "no Host", 400, "GET / HTTP/1.1\r\n\r\n" },
      { "two Hosts", 400, "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n" },
      { "a space before the colon", 400, "GET / HTTP/1.1\r\nHost : a\r\n\r\n" },
      { "a header without a name", 400, "GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n" },
      { "a header without a name before all others", 400, "GET / HTTP/1.1\r\n: b\r\nHost: a\r\n\r\n" },
      { "a header without a colon", 400, "GET / HTTP/1.1\r\nHost: a\r\nbroken\r\n\r\n" },
      { "a folded header", 400, "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n" },
      { "a folded header whose first line is empty", 400, "GET / HTTP/1.1\r\nHost: a\r\nX:\r\n\tc\r\n\r\n" },
      { "a NUL in a header", 400, "GET / HTTP/1.1\r\nHost: a\r\nX: b\0c\r\n\r\n" },
      { "a bare CR in a header", 400, "GET / HTTP/1.1\r\nHost: a\r\nX: b\rc\r\n\r\n" },
      { "length and chunks together", 400,
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" },
      { "chunks and length together", 400,
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n" },
      { "two lengths", 400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc" },
      { "a length that is no number", 400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\nabc" },
      { "a length of many numbers", 400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3, 3\r\n\r\nabc" },
      { "a length beyond 64 bits", 400,
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n" },
      { "chunks in HTTP/1.0", 400,
        "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" },
      { "a coding that nobody here speaks", 501,
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" },
      { "a coding whose last word is not chunked", 400,
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n" },
      { "the coding twice", 400,
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" },
      { "a chunk's size that is no number", 400,
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n" },
      { "a chunk without its line end", 400,
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd0\r\n\r\n" },
      { "a chunk's size beyond 64 bits", 400,
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n" },
      { "an expectation that it cannot meet", 417,
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: more\r\n\r\n" },
    }
    for _, case in ipairs(malformed) do
      it(case[1], function()
        serve()
        assert_refused(case[2], case[3])
      end)
    end

    it("a folded header that comes in pieces", function()
      serve()
      local client = rig:connect()
      for _, piece in ipairs { "GET / HTTP/1.1\r\nHost: a\r\nX: b\r", "\n", " c\r\n\r\n" } do
        client:send(piece)
        rig:idle(0.01)
      end
      assert.matches("^HTTP/1.1 400 ", client:to_end())
    end)

    it("to become another protocol: the request is as any other", function()
      serve()
      local client = rig:connect()
      client:ask("GET /1 HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n" .. GET,
        "hello.*hello$")
      client:ask("POST /2 HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n" ..
        "Content-Length: 3\r\n\r\nabc" .. GET, "hello.*hello$")
      assert.are.equal("abc", rig.requests[3].body)
    end)

    it("and answers what came before the nonsense", function()
      serve()
      assert.matches("^HTTP/1.1 200 OK.*helloHTTP/1.1 400 Bad Request", (refused(GET .. "nonsense\r\n\r\n")))
    end)
  end)

  describe("has a limit for", function()
    it("the head, however it is filled", function()
      serve { header_max = 2000 }
      local head = "GET / HTTP/1.1\r\nHost: a\r\n"
      rig:connect():ask(head .. "X: " .. ("x"):rep(1800) .. "\r\n\r\n", "hello$")
      rig.requests = {}
      assert_refused(431, "GET /" .. ("x"):rep(2000) .. " HTTP/1.1\r\nHost: a\r\n\r\n")
      assert_refused(431, head .. "X: " .. ("x"):rep(2000) .. "\r\n\r\n")
      assert_refused(431, head .. ("x"):rep(2000) .. ": x\r\n\r\n")
      assert_refused(431, head .. ("X: \r\n"):rep(500) .. "\r\n")
      assert_refused(431, head .. "X: " .. (" "):rep(2000) .. "x\r\n\r\n")
    end)

    it("what stands between chunks and behind them", function()
      serve { header_max = 2000 }
      local head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
      assert_refused(431, head .. "1;" .. ("x"):rep(2100) .. "\r\nx\r\n0\r\n\r\n")
      assert_refused(431, head .. "1\r\nx\r\n0\r\n" .. ("X: yz\r\n"):rep(300) .. "\r\n")
    end)

    it("the body, announced or not", function()
      serve { body_max = 1000 }
      local chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
      local announced = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n"
      rig:connect():ask(announced:format(1000) .. ("x"):rep(1000), "hello$")
      rig:connect():ask(chunked .. "3e8\r\n" .. ("x"):rep(1000) .. "\r\n0\r\n\r\n", "hello$")
      rig.requests = {}
      assert_refused(413, announced:format(1001))
      assert_refused(413, chunked .. "3e8\r\n" .. ("x"):rep(1000) .. "\r\n1\r\nx")
    end)

    it("the body, which the client hears before it was told to continue", function()
      serve { body_max = 1000 }
      assert_refused(413, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\nExpect: 100-continue\r\n\r\n")
    end)

    it("the body, of which the client hears although it goes on sending", function()
      local json = '{"kind":"Status","code":413}'
      serve { body_max = 1000, oversize_body = json, oversize_type = "application/json" }
      local dir = transport.tmpdir()
      local file = transport.write(dir .. "/large", ("x"):rep(8e6))
      local out, code = rig:run("curl", { "-sS", "-i", "-H", "Expect:", "--data-binary", "@" .. file,
        "http://127.0.0.1:" .. rig.port })
      transport.rmdir(dir)
      assert.matches("^HTTP/1.1 413 Request Entity Too Large\r\n.*\r\nContent%-Type: application/json\r\n", out)
      assert.are.equal(json, out:match("\r\n\r\n(.*)$"))
      assert.are.equal(0, code)
    end)

    it("connections; one that is over it hears 503", function()
      serve { connections_max = 2 }
      local one, two = rig:connect(), rig:connect()
      one:ask(GET, "hello$")
      two:ask(GET, "hello$")
      rig.requests = {}
      assert_refused(503, "")
    end)

    it("connections, and takes new ones when old ones have gone", function()
      serve { connections_max = 1 }
      local one = rig:connect()
      one:ask(GET, "hello$")
      assert.matches("^HTTP/1.1 503 Service Unavailable\r\n", (refused("")))
      one:close()
      assert.is_true(rig:pump(function()
        local client = rig:connect()
        client:send(GET)
        rig:pump(function() return client.gone or client.text:find("hello") end)
        return client.text:find("hello")
      end))
    end)
  end)

  describe("has a deadline for", function()
    -- Sends one more byte every 20 ms until the server hangs up; tells how long that took.
    local function drip(client, byte)
      local from, timer = transport.now(), uv.new_timer()
      timer:start(20, 20, function() client:send(byte) end)
      local ok, text = pcall(client.to_end, client, 5)
      timer:close()
      assert(ok, text)
      return text, transport.now() - from
    end

    it("the head, whatever drips in", function()
      serve { header_seconds = 0.2 }
      local client = rig:connect()
      client:send("GET / HTTP/1.1\r\nHost: a\r\nX: ")
      local text, took = drip(client, "x")
      assert.matches("^HTTP/1.1 408 Request Timeout\r\n", text)
      assert.is_true(took >= 0.15 and took < 2)
    end)

    it("the body, whatever drips in", function()
      serve { body_seconds = 0.2 }
      local client = rig:connect()
      client:send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n")
      local text, took = drip(client, "x")
      assert.matches("^HTTP/1.1 408 Request Timeout\r\n", text)
      assert.is_true(took >= 0.15 and took < 2)
      assert.are.equal(0, #rig.requests)
    end)

    it("idle connections, which it closes without a word", function()
      serve { idle_seconds = 0.1 }
      local fresh, used = rig:connect(), rig:connect()
      used:ask(GET, "hello$")
      assert.are.equal("", used:to_end(2))
      assert.are.equal("", fresh:to_end(2))
    end)

    it("idle connections, which empty lines do not move", function()
      serve { idle_seconds = 0.2 }
      local _, took = drip(rig:connect(), "\r\n")
      assert.is_true(took < 2)
    end)

    it("replies that nobody takes", function()
      serve { body_seconds = 0.2 }
      rig.handler = function(x) rig:reply(x, 200, "", ("x"):rep(16e6)) end
      local client = rig:connect()
      client:read(false)
      client:send(GET)
      rig:pump(function() return #rig.requests == 1 end)
      rig:idle(0.5)
      client:read(true)
      assert.is_true(#client:to_end() < 16e6)
    end)

    it("none of these while the owner thinks", function()
      serve { header_seconds = 0.05, body_seconds = 0.05, idle_seconds = 0.05 }
      local held
      rig.handler = function(x) held = x end
      local client = rig:connect()
      client:send(GET)
      rig:idle(0.2)
      rig:reply(held, 200, "", "hello")
      client:ask(nil, "hello$")
    end)

    it("nothing that came in time while the server was busy", function()
      serve { header_seconds = 0.1 }
      local client = rig:connect()
      client:send(GET:sub(1, 10))
      rig:idle(0.03)
      client:send(GET:sub(11))
      uv.run("nowait")
      uv.sleep(200)
      client:ask(nil, "hello$")
    end)
  end)

  it("waits, and does not spin, when there are no file descriptors left", function()
    local RLIMIT_NOFILE = 7
    serve()
    local before, limit = ffi.new("struct spec_rlimit"), ffi.new("struct spec_rlimit")
    ffi.C.getrlimit(RLIMIT_NOFILE, before)
    limit.now, limit.max = 200, before.max
    local taken, client = {}, nil
    ffi.C.setrlimit(RLIMIT_NOFILE, limit)
    local ok, err = pcall(function()
      repeat
        local fd = ffi.C.open("/dev/null", 0)
        if fd >= 0 then taken[#taken + 1] = fd end
      until fd < 0
      ffi.C.close(table.remove(taken))
      client = rig:connect()
      client:send(GET)
      local turns, stop = 0, transport.now() + 0.5
      while transport.now() < stop do
        C.mw_loop_turn(rig.loop, 50)
        uv.run("nowait")
        turns = turns + 1
      end
      assert.is_true(turns < 60, turns .. " turns in half a second")
      assert.are.equal(0, #rig.requests)
    end)
    for _, fd in ipairs(taken) do ffi.C.close(fd) end
    ffi.C.setrlimit(RLIMIT_NOFILE, before)
    assert(ok, err)
    client:ask(nil, "hello$")
  end)
end)
