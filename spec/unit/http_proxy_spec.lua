-- Who is to blame when there may be a proxy, of the kubeconfig or of the environment.
local transport = require "spec.support.transport"
local unit = require "spec.support.unit"
local uv = require "luv"
local C, ffi = unit.C, unit.ffi

local VARIABLES = { "HTTPS_PROXY", "https_proxy", "http_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY",
  "no_proxy" }
local ENVIRONMENT = "HTTPS_PROXY and its like in the environment"
local KUBECONFIG = 'proxy-url of kubeconfig spec, context "c"'

describe("addresses of servers", function()
  it("have a host and a port, which is the scheme's unless it is written", function()
    for server, parts in pairs {
      ["https://api.example"] = { "api.example", "443" }, ["http://api.example/p:1"] = { "api.example", "80" },
      ["https://api.example:"] = { "api.example", "443" }, ["http://[::1]:/p"] = { "::1", "80" },
      ["https://[fe80::1%25lo]:6443/p"] = { "fe80::1%25lo", "6443" },
      ["https://10.0.0.1:8443"] = { "10.0.0.1", "8443" },
    } do
      local port = ffi.new("struct mw_slice")
      local host = C.mw_server_host(server, port)
      assert.are.same(parts, { unit.str(host), unit.str(port) })
    end
  end)

  it("are one in another spelling", function()
    local function same(a, b) return C.mw_host_same(unit.slice(a), unit.slice(b)) end
    for a, b in pairs {
      ["0:0::1"] = "::1", ["FE80::A"] = "fe80:0::a", ["fe80::1%25eth0"] = "fe80::1", ["127.1"] = "127.0.0.1",
      ["0x7f.0.0.01"] = "127.0.0.1", ["::ffff:10.0.0.1"] = "10.0.0.1", ["Api.Example."] = "api.example",
    } do
      assert.is_true(same(a, b), a)
      assert.is_true(same(b, a), b)
    end
    for a, b in pairs {
      ["::1"] = "::2", ["10.0.0.1"] = "10.0.0.2", ["127.0.0.1"] = "::1", ["a.example"] = "b.example",
      ["a"] = "a.example", ["1"] = "one",
    } do
      assert.is_false(same(a, b), a)
    end
  end)

  it("are on this machine or not, whatever the system makes of names", function()
    for _, host in ipairs { "127.0.0.1", "127.1", "127.255.0.1:1", "[::1]", "[0:0::1]:1", "[::ffff:127.0.0.1]",
      "localhost:1", "LocalHost.", "localhost:" } do
      assert.is_true(C.mw_server_is_local("https://" .. host), host)
    end
    for _, host in ipairs { "10.0.0.1", "0.0.0.0", "[::2]", "localhost.example", "alocalhost", "1", ("a"):rep(300) } do
      assert.is_false(C.mw_server_is_local("https://" .. host), host)
    end
  end)
end)

describe("http", function()
  unit.no_leaks()

  describe("with a proxy of the environment", function()
    local client, peer, saved

    local function environment(values)
      for _, name in ipairs(VARIABLES) do uv.os_unsetenv(name) end
      for name, value in pairs(values) do uv.os_setenv(name, value) end
    end

    local function fetch(cluster) return client:fetch(client:endpoint(cluster), { max_retries = -1 }) end

    before_each(function()
      saved = {}
      for _, name in ipairs(VARIABLES) do saved[name] = uv.os_getenv(name) end
      client = transport.client { guard_interval = 0.2 }
    end)

    after_each(function()
      client:close()
      if peer then peer:close() end
      peer = nil
      environment(saved)
    end)

    it("blames the server that it asked without the proxy, however that is written", function()
      local port, proxy = transport.free_port(), "http://127.0.0.1:1"
      environment { HTTPS_PROXY = proxy, NO_PROXY = "0.0.0.0,::" }
      for _, host in ipairs { "[0:0::1]", "127.1", "[::ffff:127.0.0.1]", "0", "0x0.0.0.0", "[0::0]" } do
        local r = fetch(('"server": "https://%s:0%d"'):format(host, port))
        assert.are.equal("EREFUSED", r.err, r.message)
        assert.are.equal(('%s:0%d: connection refused: is the API server running (kubeconfig spec, context "c")?')
          :format(host, port), r.message)
      end
    end)

    it("says where a proxy that cannot be used comes from", function()
      environment { HTTPS_PROXY = "http://no.invalid:1" }
      local says = "api.invalid: the proxy cannot be used (Could not resolve proxy: no.invalid): check "
      local r = fetch('"server": "https://api.invalid"')
      assert.are.same({ "ECONNECT", says .. ENVIRONMENT }, { r.err, r.message })
      r = fetch('"server": "https://api.invalid", "proxy-url": "http://no.invalid:2"')
      assert.are.same({ "ECONNECT", says .. KUBECONFIG }, { r.err, r.message })

      peer = transport.peer(function() end)
      environment { ALL_PROXY = "socks5h://127.0.0.1:" .. peer.port }
      local started = client:start(client:endpoint('"server": "http://api.invalid:8080"'))
      assert.is_true(client:pump(function() return peer.connections[1] end))
      peer.connections[1]:send("\5\1") -- Kerberos, which it was not offered
      client:finish(started)
      assert.are.equal("ECONNECT", started.err)
      assert.matches("the proxy cannot be used %(.+%): check " .. ENVIRONMENT .. "$", started.message)
    end)

    it("does not repeat the address of one that cannot be read, which may hold a password", function()
      local says = "api.invalid: the proxy cannot be used (its address is not valid): check "
      for _, proxy in ipairs { "http://joe:s3cret@a b:1", "gopher://joe:s3cret@a:1" } do
        environment { HTTPS_PROXY = proxy }
        assert.are.equal(says .. ENVIRONMENT, fetch('"server": "https://api.invalid"').message)
      end
      local r = fetch('"server": "https://api.invalid", "proxy-url": "http://joe:s3cret@h:port:x"')
      assert.are.same({ "ECONNECT", says .. KUBECONFIG }, { r.err, r.message })
    end)

    it("takes a tunnel that is refused for no lost connection, and asks no second time", function()
      local status
      peer = transport.peer(function(_, connection)
        connection:answer(status, { ["Content-Type"] = "text/html" }, "<h1>No</h1>")
      end)
      local proxy = "http://127.0.0.1:" .. peer.port
      environment { HTTPS_PROXY = proxy }
      local own = ('"server": "https://api.invalid", "proxy-url": "%s"'):format(proxy)
      for _, refused in ipairs { 403, 407 } do
        status = refused
        local says = ("api.invalid: the proxy refused to connect (CONNECT tunnel failed, response %d): check ")
          :format(status)
        for cluster, source in pairs { ['"server": "https://api.invalid"'] = ENVIRONMENT, [own] = KUBECONFIG } do
          local r = client:fetch(client:endpoint(cluster))
          assert.are.same({ "ECONNECT", says .. source, "", {} }, { r.err, r.message, r.error_body, r.parts })
        end
      end
      status = 502
      local r = client:fetch(client:endpoint(own))
      assert.are.same({ "EREFUSED", "api.invalid: the proxy could not connect (CONNECT tunnel failed, response 502)" ..
        ': is the API server running (kubeconfig spec, context "c"), and can the proxy reach it (' .. KUBECONFIG ..
        ")?" }, { r.err, r.message })
      assert.are.equal(5, #peer.requests)
      assert.are.equal("CONNECT", peer.requests[5].method)
    end)

    describe("and TLS,", function()
      local dir, server

      setup(function()
        dir = transport.tmpdir()
        transport.make_ca(dir, "ca")
        transport.make_ca(dir, "other")
        transport.make_cert(dir, "ca", "server", "IP:127.0.0.1")
      end)

      teardown(function() transport.rmdir(dir) end)

      before_each(function() server = transport.h2(dir, "server") end)

      after_each(function() server:close() end)

      it("blames the proxy for its own certificate", function()
        local proxy = "https://127.0.0.1:" .. server.port
        local cluster = '"server": "https://api.invalid"'
        environment { HTTPS_PROXY = proxy }
        local r = fetch(cluster)
        assert.are.equal("ETLS", r.err)
        assert.matches("^api%.invalid: the proxy's certificate is not signed by a CA of this system %(.+%): check "
          .. ENVIRONMENT .. "$", r.message)
        environment {}
        r = fetch(('%s, "certificate-authority": "%s/other.crt", "proxy-url": "%s"'):format(cluster, dir, proxy))
        assert.matches("^api%.invalid: the proxy's certificate is signed neither by the given CA nor by one of "
          .. "this system %(.+%): check " .. KUBECONFIG:gsub("%p", "%%%0") .. "$", r.message)
      end)

      it("takes a proxy's certificate from the CA of the cluster, and any where none is checked", function()
        local given = ('"certificate-authority": "%s/ca.crt"'):format(dir)
        for _, how in ipairs { given, '"insecure-skip-tls-verify": true' } do
          local r = fetch(('"server": "https://api.invalid", "proxy-url": "https://127.0.0.1:%d", %s')
            :format(server.port, how))
          assert.are.equal("EEOF", r.err, r.message) -- it speaks HTTP/2, which proxies are not asked in
        end
      end)

      it("blames the proxy that speaks none", function()
        peer = transport.peer(function() end)
        environment { HTTPS_PROXY = "https://127.0.0.1:" .. peer.port }
        local r = client:start(client:endpoint('"server": "https://api.invalid"'))
        assert.is_true(client:pump(function() return peer.connections[1] end))
        peer.connections[1]:send("HTTP/1.1 400 Bad Request\r\n\r\n")
        client:finish(r)
        assert.are.equal("ETLS", r.err)
        assert.matches("^api%.invalid: the proxy does not speak TLS, is it http:// instead%? %(.+%): check " ..
          ENVIRONMENT .. "$", r.message)
      end)

      it("blames the cluster for the certificate of a server behind a tunnel", function()
        local upstream = uv.new_tcp()
        peer = transport.peer(function(_, connection)
          connection.socket:read_stop()
          upstream:connect("127.0.0.1", server.port, function(failed)
            assert(not failed, failed)
            upstream:read_start(function(_, data)
              if data then connection:send(data) else connection:close() end
            end)
            connection.socket:read_start(function(_, data)
              if data then upstream:write(data) end
            end)
            connection:send("HTTP/1.1 200 OK\r\n\r\n")
          end)
        end)
        local r = fetch(('"proxy-url": "http://127.0.0.1:%d", %s'):format(peer.port,
          server:cluster(dir .. "/other.crt")))
        upstream:close()
        assert.are.equal("ETLS", r.err)
        assert.matches("^127%.0%.0%.1:%d+: the server's certificate is not signed by the CA of kubeconfig spec, " ..
          'context "c" %(.+%): check certificate%-authority$', r.message)
      end)
    end)
  end)
end)
