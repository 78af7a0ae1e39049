-- Requests over HTTP/1.1 to peers whose every byte is the spec's.
local transport = require "spec.support.transport"
local unit = require "spec.support.unit"
local C = unit.C

local OK = { ["Content-Type"] = "application/json" }

describe("http", function()
  unit.no_leaks()

  describe("over HTTP/1.1", function()
    local client, peer

    local function serve(script)
      peer = transport.peer(script)
      return client:endpoint(peer:cluster(), '"token": "t0ken"')
    end

    before_each(function() client = transport.client { guard_interval = 0.2 } end)

    after_each(function()
      client:close()
      if peer then peer:close() end
      peer = nil
    end)

    it("tells status, data and end in this order, and never inside start", function()
      local e = serve(function(_, connection) connection:answer(200, OK, "hello") end)
      local r = client:start(e, { path = "/api?x=1" })
      assert.are.same({}, r.events)
      client:finish(r)
      assert.are.same({ "response", "data", "done" }, r.events)
      assert.are.equal(200, r.status)
      assert.are.equal(-1, r.retry_after)
      assert.are.equal("application/json", r.content_type)
      assert.are.equal("hello", transport.body(r))
      assert.is_nil(r.err)
    end)

    it("tells status and end when there is no body", function()
      local e = serve(function(_, connection) connection:answer(200) end)
      local r = client:fetch(e)
      assert.are.same({ "response", "done" }, r.events)
      assert.is_nil(r.err)
    end)

    it("sends method, path, headers and body as asked, and nothing it was not asked for", function()
      local e = serve(function(_, connection) connection:answer(201) end)
      client:fetch(e, { method = "PATCH", path = "/a/../b?c=%20d", accept = "text/plain",
        content_type = "application/apply-patch+yaml", body = "a\0b" })
      local request = peer.requests[1]
      assert.are.equal("PATCH", request.method)
      assert.are.equal("/a/../b?c=%20d", request.target)
      assert.are.equal("a\0b", request.body)
      table.sort(request.lines)
      assert.are.same({
        "Accept: text/plain",
        "Authorization: Bearer t0ken",
        "Content-Length: 3",
        "Content-Type: application/apply-patch+yaml",
        "Host: 127.0.0.1:" .. peer.port,
        "User-Agent: moonwatch/0.1.0",
      }, request.lines)
    end)

    it("sends every method, with and without a body", function()
      local e = serve(function(request, connection)
        if request.method == "HEAD" then
          connection:send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
        else
          connection:answer(200, nil, request.method .. " " .. request.body)
        end
      end)
      for _, method in ipairs { "GET", "POST", "PUT", "PATCH", "DELETE" } do
        assert.are.equal(method .. " ", transport.body(client:fetch(e, { method = method })))
        if method ~= "GET" then
          local r = client:fetch(e, { method = method, body = "x" })
          assert.are.equal(method .. " x", transport.body(r))
        end
      end
      assert.is_nil(client:fetch(e, { method = "HEAD" }).err)
      assert.are.equal(1, client:stats().connections)
    end)

    it("has the kernel look for peers that are gone, silent as they may be, and give them up", function()
      local e = serve(function() end)
      local r = client:start(e)
      assert.is_true(client:pump(function() return #peer.requests == 1 end))
      local sockets = client:sockets()
      assert.are.equal(1, #sockets)
      local SOL_SOCKET, SO_KEEPALIVE, IPPROTO_TCP = 1, 9, 6
      local TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_USER_TIMEOUT = 4, 5, 18
      local function tcp(option) return transport.socket_option(sockets[1], IPPROTO_TCP, option) end
      assert.are.equal(1, transport.socket_option(sockets[1], SOL_SOCKET, SO_KEEPALIVE))
      assert.are.same({ 15, 5, 30000 }, { tcp(TCP_KEEPIDLE), tcp(TCP_KEEPINTVL), tcp(TCP_USER_TIMEOUT) })
      transport.cancel(r)
    end)

    it("has buffers of 128 KiB and more, with which libcurl does not stall, whatever it is told", function()
      for asked, taken in pairs { [0] = 256, [1] = 128, [16] = 128, [129] = 129, [4096] = 512 } do
        local other = transport.client { buffer_size = asked * 1024 }
        assert.are.equal(taken * 1024, tonumber(other.http.config.buffer_size))
        other:close()
      end
    end)

    describe("asks whether it may send", function()
      local function refuse_from(nth, count)
        return function(r)
          count = (count or 0) + 1
          r.asked = count
          return count >= nth and C.MW_ENOT_LEADING or 0
        end
      end

      it("before it connects", function()
        local e = serve(function(_, connection) connection:answer(200) end)
        local r = client:fetch(e, { method = "DELETE", on_send = refuse_from(1) })
        assert.are.same({ "ENOT_LEADING", "the spec refuses", 1 }, { r.err, r.message, r.asked })
        client:idle(0.05)
        assert.are.same({ 0, 0 }, { #peer.connections, #peer.requests })
      end)

      it("when the connection stands, and sends nothing on it", function()
        local e = serve(function(_, connection) connection:answer(200) end)
        local r = client:fetch(e, { method = "DELETE", on_send = refuse_from(2) })
        assert.are.same({ "ENOT_LEADING", "the spec refuses", 2 }, { r.err, r.message, r.asked })
        client:idle(0.05)
        assert.are.same({ 1, 0, "" }, { #peer.connections, #peer.requests, peer.connections[1].received })
      end)

      it("for each piece of the body, and ends the connection in the middle of it", function()
        local e = serve(function(_, connection) connection:answer(200) end)
        local r = client:fetch(e, { method = "PUT", body = ("x"):rep(4e6), on_send = refuse_from(4) })
        assert.are.same({ "ENOT_LEADING", 4 }, { r.err, r.asked })
        client:pump(function() return peer.connections[1].gone end)
        assert.are.equal(0, #peer.requests)
      end)

      it("before each attempt", function()
        local e = serve(function(_, connection) connection:answer(503, { ["Retry-After"] = "0" }) end)
        local r = client:fetch(e, { method = "DELETE", on_send = refuse_from(3) })
        assert.are.equal("ENOT_LEADING", r.err)
        assert.are.equal(1, #peer.requests)
      end)
    end)

    it("sends the headers of impersonation", function()
      peer = transport.peer(function(_, connection) connection:answer(200) end)
      local e = client:endpoint(peer:cluster(), [["as": "jane", "as-uid": "7", "as-groups": [a, b],
        "as-user-extra": {"example.com/x y": [one, two]}]])
      client:fetch(e)
      local lines = table.concat(peer.requests[1].lines, "\n")
      assert.matches("Impersonate%-User: jane\n", lines)
      assert.matches("Impersonate%-Uid: 7\n", lines)
      assert.matches("Impersonate%-Group: a\nImpersonate%-Group: b\n", lines)
      assert.matches("Impersonate%-Extra%-example.com%%2Fx%%20y: one\n", lines)
      assert.matches("Impersonate%-Extra%-example.com%%2Fx%%20y: two", lines)
    end)

    it("sends user and password, and goes through a proxy", function()
      peer = transport.peer(function(_, connection) connection:answer(200) end)
      local e = client:endpoint(
        ('"server": "http://api.invalid:8080", "proxy-url": "http://127.0.0.1:%d"')
        :format(peer.port),
        '"username": "joe", "password": "pw"')
      client:fetch(e, { path = "/x" })
      assert.are.equal("http://api.invalid:8080/x", peer.requests[1].target)
      assert.are.equal("Basic am9lOnB3", peer.requests[1].headers.authorization)
    end)

    it("names the proxy that cannot be reached, not the server behind it", function()
      local port = transport.free_port()
      for _, proxy in ipairs { "http", "socks5" } do
        local r = client:fetch(client:endpoint(
          ('"server": "http://[::1]:8080", "proxy-url": "%s://127.0.0.1:%d"'):format(proxy, port)))
        assert.are.equal("EREFUSED", r.err)
        assert.are.equal(("[::1]:8080: the proxy, 127.0.0.1 port %d, cannot be reached (Connection refused): " ..
          'check proxy-url of kubeconfig spec, context "c"'):format(port), r.message)
      end
      local r = client:fetch(client:endpoint(('"server": "http://[::1]:%d"'):format(port)))
      assert.matches("connection refused: is the API server running", r.message)
    end)

    it("offers a SOCKS proxy no Kerberos, and refuses one that wants it", function()
      peer = transport.peer(function() end)
      local e = client:endpoint(
        ('"server": "http://api.invalid:8080", "proxy-url": "socks5://127.0.0.1:%d"'):format(peer.port))
      local r = client:start(e)
      assert.is_true(client:pump(function()
        return peer.connections[1] and #peer.connections[1].received >= 3
      end))
      assert.are.equal("\5\1\0", peer.connections[1].received) -- version 5, one method: none
      peer.connections[1]:send("\5\1") -- Kerberos, all the same
      client:finish(r)
      assert.are.equal("ECONNECT", r.err)
      assert.matches("the proxy cannot be used .*: check proxy%-url of kubeconfig spec", r.message)
    end)

    it("hands the body of an error to on_done, not to on_data", function()
      local e = serve(function(_, connection) connection:answer(404, OK, '{"kind":"Status"}') end)
      local r = client:fetch(e, { path = "/gone" })
      assert.are.same({ "response", "done" }, r.events)
      assert.are.equal(404, r.status)
      assert.are.equal("EHTTP", r.err)
      assert.are.equal(404, r.http_status)
      assert.are.equal('{"kind":"Status"}', r.error_body)
      assert.matches("^127.0.0.1:%d+: GET /gone: the server answered 404$", r.message)
    end)

    it("keeps 64 KiB of an error's body and reads no further", function()
      local e = serve(function(_, connection)
        connection:answer(500, OK, ("x"):rep(1024 * 1024))
      end)
      local r = client:fetch(e)
      assert.are.equal("EHTTP", r.err)
      assert.are.equal(64 * 1024, #r.error_body)
    end)

    it("does not follow redirects", function()
      local e = serve(function(_, connection)
        connection:answer(302, { Location = "http://127.0.0.1:1/" })
      end)
      local r = client:fetch(e)
      assert.are.equal(302, r.http_status)
      assert.are.equal(1, #peer.requests)
    end)

    it("opens a watch only with status 200", function()
      local e = serve(function(_, connection) connection:answer(202, OK, "x") end)
      local r = client:fetch(e, { is_watch = true })
      assert.are.equal("EHTTP", r.err)
      assert.are.equal("x", r.error_body)
    end)

    it("tells the status of a watch before its first byte, and every part as it comes", function()
      local connection
      local e = serve(function(_, c)
        connection = c
        c:send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
      end)
      local r = client:start(e, { is_watch = true })
      assert.is_true(client:pump(function() return r.status == 200 end))
      assert.are.same({ "response" }, r.events)
      connection:send("3\r\none\r\n")
      assert.is_true(client:pump(function() return r.size == 3 end))
      connection:send("3\r\ntwo\r\n")
      assert.is_true(client:pump(function() return r.size == 6 end))
      connection:send("0\r\n\r\n")
      client:finish(r)
      assert.is_nil(r.err)
      assert.are.equal("onetwo", transport.body(r))
    end)

    it("skips interim responses and takes trailers for none", function()
      local e = serve(function(_, connection)
        connection:send("HTTP/1.1 103 Early Hints\r\nRetry-After: 5\r\n\r\n" ..
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Retry-After\r\n\r\n" ..
          "2\r\nhi\r\n0\r\nRetry-After: 3\r\n\r\n")
      end)
      local r = client:fetch(e)
      assert.are.same({ "response", "data", "done" }, r.events)
      assert.are.equal(-1, r.retry_after)
      assert.are.equal("hi", transport.body(r))
    end)

    it("ends with what on_data returned", function()
      local e = serve(function(_, connection) connection:answer(200, OK, "hello") end)
      local r = client:fetch(e, { on_data = function() return C.MW_EPARSE end })
      assert.are.equal("EPARSE", r.err)
      assert.are.equal(1, r.done)
    end)

    describe("failures:", function()
      it("connection refused", function()
        local port = transport.free_port()
        local e = client:endpoint(('"server": "http://127.0.0.1:%d"'):format(port),
          '"token": "s3cret"')
        local r = client:fetch(e)
        assert.are.same({ "done" }, r.events)
        assert.are.equal("EREFUSED", r.err)
        assert.are.equal(("127.0.0.1:%d: connection refused: is the API server running " ..
          '(kubeconfig spec, context "c")?'):format(port), r.message)
      end)

      it("a name that does not resolve", function()
        local e = client:endpoint('"server": "https://api.invalid:6443"')
        local r = client:fetch(e)
        assert.are.equal("ECONNECT", r.err)
        assert.are.equal("api.invalid:6443: could not resolve host: check server of kubeconfig " ..
          'spec, context "c"', r.message)
      end)

      it("TLS to a server that speaks none, and HTTP to one that speaks something else", function()
        peer = transport.peer(function() end)
        peer.script = function() end
        local e = client:endpoint(('"server": "https://127.0.0.1:%d"'):format(peer.port))
        local r = client:start(e)
        assert.is_true(client:pump(function() return #peer.connections == 1 end))
        peer.connections[1]:send("HTTP/1.1 400 Bad Request\r\n\r\n")
        client:finish(r)
        assert.are.equal("ETLS", r.err)
        assert.matches("does not speak TLS", r.message)
        e = client:endpoint(peer:cluster())
        peer.script = function(_, connection) connection:send("SSH-2.0-OpenSSH\r\n") end
        r = client:fetch(e)
        assert.are.equal("ECONNECT", r.err)
        assert.matches("does not speak HTTP", r.message)
      end)

      it("a server that closes in the middle of a body", function()
        local e = serve(function(_, connection)
          connection:send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
          connection.socket:shutdown(function() connection:close() end)
        end)
        local r = client:fetch(e)
        assert.are.same({ "response", "data", "done" }, r.events)
        assert.are.equal("EEOF", r.err)
        assert.are.equal(1, #peer.requests)
        assert.are.equal(0, client:stats().retries)
      end)

      it("a path that is no path", function()
        local e = serve(function() end)
        local r = client:fetch(e, { path = "/a b\r\nX: y" })
        assert.are.equal("EINVAL", r.err)
        assert.are.equal(0, #peer.requests)
      end)

      it("nothing for the idle timeout, also in the middle of a body", function()
        local e = serve(function(_, connection)
          connection:send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        end)
        local started = transport.now()
        local r = client:fetch(e, { path = "/x", idle_timeout = 0.1 })
        local took = transport.now() - started
        assert.are.equal("ETIMEOUT", r.err)
        assert.matches("GET /x: nothing arrived for 0.1 seconds$", r.message)
        assert.is_true(took >= 0.1 and took < 2, took)
      end)

      it("no answer for the head timeout, which ends when the head is there", function()
        local connection
        local e = serve(function(_, c) connection = c end)
        local r = client:fetch(e, { head_timeout = 0.1 })
        assert.are.equal("ETIMEOUT", r.err)
        assert.matches("no answer for 0.1 seconds$", r.message)
        r = client:start(e, { head_timeout = 0.1, is_watch = true })
        connection = nil
        assert.is_true(client:pump(function() return connection ~= nil end))
        connection:send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n")
        client:idle(0.25)
        connection:send("x")
        client:finish(r)
        assert.is_nil(r.err)
        r = client:fetch(e, { head_timeout = 60, idle_timeout = 0.1 })
        assert.are.equal("ETIMEOUT", r.err)
      end)

      it("not the idle timeout while bytes keep coming", function()
        local connection
        local e = serve(function(_, c)
          connection = c
          c:send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")
        end)
        local r = client:start(e, { idle_timeout = 0.15, is_watch = true })
        assert.is_true(client:pump(function() return connection ~= nil end))
        local started = transport.now()
        for _ = 1, 10 do
          client:idle(0.05)
          connection:send("x")
        end
        client:finish(r)
        assert.is_nil(r.err)
        assert.is_true(transport.now() - started > 0.3)
      end)

      it("the timeout of the whole request", function()
        local r = client:fetch(serve(function() end), { timeout = 0.1 })
        assert.are.equal("ETIMEOUT", r.err)
        assert.matches("not finished in time$", r.message)
      end)

      it("what there was when another attempt would begin after the timeout", function()
        local e = serve(function(_, connection) connection:close() end)
        local r = client:fetch(e, { timeout = 0.5 })
        assert.are.equal("EEOF", r.err)
        peer.script = function(_, connection) connection:answer(503, { ["Retry-After"] = "100" }) end
        r = client:fetch(e, { timeout = 10 })
        assert.are.same({ "EHTTP", 503 }, { r.err, r.status })
        assert.are.equal(2, #peer.requests)
      end)
    end)

    describe("retries", function()
      it("when the server says after how many seconds", function()
        for _, status in ipairs { 429, 500, 503 } do
          local e = serve(function(_, connection, count)
            if count < 3 then
              connection:answer(status, { ["Retry-After"] = "0" }, "later")
            else
              connection:answer(200, OK, "now")
            end
          end)
          local r = client:fetch(e, { method = "POST", body = "again" })
          assert.are.same({ "response", "data", "done" }, r.events)
          assert.are.equal("now", transport.body(r))
          assert.are.equal("again", peer.requests[3].body)
          peer:close()
        end
        assert.are.equal(6, client:stats().retries)
      end)

      it("after the seconds that the server names", function()
        local e = serve(function(_, connection, count)
          connection:answer(count == 1 and 429 or 200, { ["Retry-After"] = "1" })
        end)
        local started = transport.now()
        local r = client:fetch(e)
        assert.is_nil(r.err)
        assert.is_true(transport.now() - started >= 1)
      end)

      it("never when Retry-After is a date, negative, empty or missing, nor below 500", function()
        local header, status = nil, 503
        local e = serve(function(_, connection)
          connection:answer(status, { ["Retry-After"] = header })
        end)
        local bad = { "Wed, 21 Oct 2026 07:28:00 GMT", "-1", "1.5", "", "99999999999" }
        for _, value in ipairs(bad) do
          header = value
          local r = client:fetch(e)
          assert.are.equal("EHTTP", r.err)
          assert.are.equal(503, r.status)
          assert.are.equal(-1, r.retry_after)
        end
        header = nil
        assert.are.equal(503, client:fetch(e).http_status)
        header, status = "0", 404
        local r = client:fetch(e)
        assert.are.equal(404, r.http_status)
        assert.are.equal(0, r.retry_after)
        assert.are.equal(0, client:stats().retries)
      end)

      it("at most ten times, or as often as asked", function()
        local e = serve(function(_, connection)
          connection:answer(503, { ["Retry-After"] = "0" })
        end)
        local r = client:fetch(e)
        assert.are.equal(11, #peer.requests)
        assert.are.equal("EHTTP", r.err)
        assert.are.equal(0, r.retry_after)
        assert.are.same({ "response", "done" }, r.events)
        client:fetch(e, { max_retries = 2 })
        assert.are.equal(11 + 3, #peer.requests)
        client:fetch(e, { max_retries = -1 })
        assert.are.equal(11 + 3 + 1, #peer.requests)
      end)

      it("a GET whose connection is lost before its first byte of body, after a second", function()
        local e = serve(function(_, connection, count)
          if count == 1 then
            connection:send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
            connection.socket:shutdown(function() connection:close() end)
          else
            connection:answer(200, OK, "whole")
          end
        end)
        local started = transport.now()
        local r = client:fetch(e)
        assert.are.same({ "response", "data", "done" }, r.events)
        assert.are.equal("whole", transport.body(r))
        assert.is_true(transport.now() - started >= 1)
      end)

      it("no write whose connection is lost", function()
        local e = serve(function(_, connection) connection:reset() end)
        local r = client:fetch(e, { method = "POST", body = "{}" })
        assert.are.equal("EEOF", r.err)
        assert.are.equal(1, #peer.requests)
      end)

      it("no write on a connection that was used before", function()
        local e = serve(function(request, connection)
          if request.method == "GET" then return connection:answer(200, OK, "fine") end
          connection:close()
        end)
        for _, request in ipairs { { "POST", "{}" }, { "PUT", "{}" }, { "PATCH", "{}" }, { "POST" }, { "DELETE" } } do
          local method, body = request[1], request[2]
          client:fetch(e)
          local before = #peer.requests
          local r = client:fetch(e, { method = method, body = body })
          assert.are.equal("EEOF", r.err)
          assert.are.same({ method, body or "" },
            { peer.requests[before + 1].method, peer.requests[before + 1].body })
          assert.are.equal(before + 1, #peer.requests)
        end
      end)

      it("a watch whose connection is lost before it opened, twice at most, and tells why then", function()
        local e = serve(function(_, connection) connection:reset() end)
        local r = client:fetch(e, { is_watch = true, max_retries = 1 })
        assert.are.same({ "done" }, r.events)
        assert.are.equal("EEOF", r.err)
        assert.are.equal(2, #peer.requests)
        r = client:fetch(e, { is_watch = true })
        assert.are.equal("EEOF", r.err)
        assert.are.equal(2 + 3, #peer.requests)
      end)

      it("no watch that waited for its answer in vain", function()
        local e = serve(function() end)
        local r = client:fetch(e, { path = "/x", is_watch = true, head_timeout = 0.1, idle_timeout = 60 })
        assert.are.same({ "done" }, r.events)
        assert.are.equal("ETIMEOUT", r.err)
        assert.matches("GET /x: no answer for 0.1 seconds$", r.message)
        assert.are.equal(1, #peer.requests)
      end)

      it("no watch that has opened", function()
        local e = serve(function(_, connection)
          connection:send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
          connection.socket:shutdown(function() connection:close() end)
        end)
        local r = client:fetch(e, { is_watch = true })
        assert.are.same({ "response", "done" }, r.events)
        assert.are.equal("EEOF", r.err)
        assert.are.equal(1, #peer.requests)
      end)
    end)

    describe("cancel", function()
      -- After a cancel nothing is told; the record must stay as it was.
      local function stays(r)
        local events = #r.events
        assert.is_true(r.request[0] == nil)
        client:idle(0.05)
        assert.are.equal(events, #r.events)
        assert.are.equal(0, r.done)
        assert.are.equal(0, tonumber(C.mw_live_get(C.MW_LIVE_REQUEST)))
      end

      it("works before anything happened", function()
        local e = serve(function() end)
        local r = client:start(e)
        transport.cancel(r)
        transport.cancel(r)
        stays(r)
        assert.are.equal(0, #peer.requests)
      end)

      it("works while connecting", function()
        local e = serve(function() end)
        local r = client:start(e)
        C.mw_loop_turn(client.loop, 0)
        transport.cancel(r)
        stays(r)
      end)

      it("works while a name is resolved, without waiting for it", function()
        -- The resolver's thread may be done before the turn is: then the request has failed already.
        local e, r = client:endpoint('"server": "http://api.invalid:1"'), nil
        for _ = 1, 50 do
          r = client:start(e)
          C.mw_loop_turn(client.loop, 0)
          if r.done == 0 then break end
        end
        transport.cancel(r)
        stays(r)
      end)

      it("works while the response is awaited, and closes the connection", function()
        local e = serve(function() end)
        local r = client:start(e)
        assert.is_true(client:pump(function() return #peer.requests == 1 end))
        transport.cancel(r)
        assert.is_true(client:pump(function() return peer.connections[1].gone end))
        stays(r)
      end)

      it("works while a body arrives", function()
        local e = serve(function(_, connection)
          connection:send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        end)
        local r = client:start(e)
        assert.is_true(client:pump(function() return r.size == 4 end))
        transport.cancel(r)
        stays(r)
      end)

      it("works inside on_response and inside on_data", function()
        local e = serve(function(_, connection) connection:answer(200, OK, ("x"):rep(1000000)) end)
        local r = client:start(e, { on_response = transport.cancel })
        assert.is_true(client:pump(function() return r.status ~= nil end))
        stays(r)
        assert.are.same({ "response" }, r.events)
        r = client:start(e, { on_data = function(record) transport.cancel(record) return 0 end })
        assert.is_true(client:pump(function() return r.size > 0 end))
        stays(r)
        r = client:start(e, { is_watch = true, on_response = transport.cancel })
        assert.is_true(client:pump(function() return r.status ~= nil end))
        stays(r)
      end)

      it("works inside on_response that comes with the end", function()
        local e = serve(function(_, connection) connection:answer(404) end)
        local r = client:start(e, { on_response = transport.cancel })
        assert.is_true(client:pump(function() return r.status == 404 end))
        stays(r)
      end)

      it("works while a retry is awaited", function()
        local e = serve(function(_, connection)
          connection:answer(503, { ["Retry-After"] = "100" })
        end)
        local r = client:start(e)
        assert.is_true(client:pump(function() return client:stats().retries == 1 end))
        transport.cancel(r)
        stays(r)
      end)

      it("of another request works inside on_data and inside on_done", function()
        local e = serve(function(_, connection) connection:answer(200, OK, "x") end)
        local a, b
        local function cancel_b()
          transport.cancel(b)
          return 0
        end
        for _, callback in ipairs { "on_response", "on_data", "on_done" } do
          a = client:start(e, { [callback] = cancel_b })
          b = client:start(e)
          client:finish(a)
          assert.is_true(b.done == 0 or b.done == 1)
          if b.done == 0 then stays(b) end
        end
      end)

      it("of requests that ended in the same turn works inside on_done", function()
        local e = client:endpoint('"server": "http://127.0.0.1:1"', '"tokenFile": "/not/there"')
        local a, b
        a = client:start(e, { on_done = function() transport.cancel(b) end })
        b = client:start(e)
        client:finish(a)
        assert.are.equal("EAUTH", a.err)
        stays(b)
      end)

      it("inside on_done does nothing", function()
        local e = serve(function(_, connection) connection:answer(200) end)
        local r = client:fetch(e, { on_done = function(record)
          local p = unit.ffi.new("struct mw_request *[1]", record.request[0])
          C.mw_http_cancel(p)
        end })
        assert.are.equal(1, r.done)
      end)
    end)

    it("may start a request inside every callback", function()
      local e = serve(function(_, connection) connection:answer(200, OK, "x") end)
      local more = {}
      local function another()
        more[#more + 1] = client:start(e)
        return 0
      end
      client:fetch(e, { on_response = another, on_data = another, on_done = another })
      assert.are.equal(3, #more)
      for _, r in ipairs(more) do
        client:finish(r)
        assert.is_nil(r.err)
      end
    end)

    it("uses a connection again, and a new one when the server closed it", function()
      local e = serve(function(_, connection) connection:answer(200) end)
      client:fetch(e)
      client:fetch(e)
      assert.are.equal(1, client:stats().connections)
      peer.connections[1]:close()
      local r = client:fetch(e)
      assert.is_nil(r.err)
      assert.are.equal(2, client:stats().connections)
    end)

    it("pokes silent sockets with running transfers, and no others", function()
      local e = serve(function() end)
      local r = client:start(e)
      assert.is_true(client:pump(function() return client:stats().pokes >= 2 end))
      assert.are.equal(0, client:stats().rescues)
      transport.cancel(r)
      local pokes = client:stats().pokes
      client:idle(0.5)
      assert.are.equal(pokes, client:stats().pokes)
    end)
  end)
end)
