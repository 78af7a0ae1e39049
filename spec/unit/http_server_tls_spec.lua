-- The HTTP/1.1 server over TLS, and the certificates that it makes itself.
local server_rig = require "spec.support.server_rig"
local transport = require "spec.support.transport"
local unit = require "spec.support.unit"
local C, ffi = unit.C, unit.ffi

local function bufs()
  local all = {}
  for i = 1, 3 do
    all[i] = ffi.new("struct mw_buf")
    C.mw_buf_init(all[i], 65536)
  end
  return all
end

--- { ca =, certificate =, key = } for these hosts, or nil and a message.
local function certificate(hosts)
  local all, err = bufs(), unit.err()
  local names = ffi.new("const char *[?]", #hosts, hosts)
  local rc = C.mw_server_certificate(names, #hosts, all[1], all[2], all[3], err)
  local result = { ca = ffi.string(all[1].p or "", all[1].n), certificate = ffi.string(all[2].p or "", all[2].n),
    key = ffi.string(all[3].p or "", all[3].n) }
  for _, buf in ipairs(all) do C.mw_buf_deinit(buf) end
  if rc < 0 then return nil, ffi.string(err.message) end
  return result
end

local function output(command)
  local pipe = assert(io.popen(command .. " 2>&1"))
  local text = pipe:read("*a")
  pipe:close()
  return text
end

describe("http server over TLS", function()
  local rig, dir, tls

  after_each(function()
    if rig then rig:close() end
    if dir then transport.rmdir(dir) end
    rig, dir = nil, nil
  end)
  unit.no_leaks() -- after the rig is closed

  local function serve(config)
    tls = assert(certificate { "127.0.0.1", "localhost" })
    dir = transport.tmpdir()
    transport.write(dir .. "/ca.crt", tls.ca)
    rig = assert(server_rig.new(config, tls))
  end

  local function curl(...)
    return rig:run("curl", { "-sS", "--cacert", dir .. "/ca.crt", ... })
  end

  local function url(path) return ("https://127.0.0.1:%d%s"):format(rig.port, path or "/") end

  describe("makes a certificate", function()
    it("that openssl verifies against the CA, for the names and addresses asked for", function()
      tls = assert(certificate { "127.0.0.1", "::1", "localhost", "*.example.com" })
      dir = transport.tmpdir()
      transport.write(dir .. "/ca.crt", tls.ca)
      transport.write(dir .. "/server.crt", tls.certificate)
      local verify = "openssl verify -x509_strict -purpose sslserver -CAfile " .. dir .. "/ca.crt "
      for _, good in ipairs { "-verify_ip 127.0.0.1", "-verify_ip ::1", "-verify_hostname localhost",
        "-verify_hostname a.example.com" } do
        assert.matches(": OK\n$", output(verify .. good .. " " .. dir .. "/server.crt"))
      end
      for _, bad in ipairs { "-verify_ip 127.0.0.2", "-verify_hostname example.org" } do
        assert.matches("mismatch", output(verify .. bad .. " " .. dir .. "/server.crt"))
      end
      local text = output("openssl x509 -noout -text -in " .. dir .. "/server.crt")
      assert.matches("ASN1 OID: prime256v1", text)
      assert.matches("CA:FALSE", text)
      assert.matches("TLS Web Server Authentication", text)
    end)

    it("that no other CA has signed", function()
      local other = assert(certificate { "localhost" })
      tls = assert(certificate { "localhost" })
      dir = transport.tmpdir()
      transport.write(dir .. "/ca.crt", other.ca)
      transport.write(dir .. "/server.crt", tls.certificate)
      assert.matches("verification failed",
        output("openssl verify -CAfile " .. dir .. "/ca.crt " .. dir .. "/server.crt"))
    end)

    it("unless a host cannot be one, or there is none", function()
      local made, message = certificate { "localhost", "a,IP:10.0.0.1" }
      assert.is_nil(made)
      assert.matches("^cannot make a certificate: a host's name is malformed", message)
      made, message = certificate {}
      assert.is_nil(made)
      assert.matches("at least one host", message)
    end)
  end)

  it("says what is wrong with a certificate or a key", function()
    local one, other, err = assert(certificate { "a" }), assert(certificate { "a" }), unit.err()
    local function fails(cert, key)
      assert.is_true(C.mw_server_tls_new(unit.slice(cert), unit.slice(key), err) == nil)
      return ffi.string(err.message)
    end
    assert.matches("private key cannot be used: key values mismatch", fails(one.certificate, other.key))
    assert.matches("certificate cannot be used", fails("nonsense", one.key))
    assert.matches("private key cannot be used", fails(one.certificate, "nonsense"))
    assert.matches("needs a certificate and a private key", fails("", one.key))
  end)

  it("answers curl, which checks the certificate, and speaks HTTP/1.1 by ALPN", function()
    serve()
    assert.are.equal("hello 1.1 hello 1.1 ", curl("--http2", "-w", " %{http_version} ", url("/x"), url("/y")))
    assert.are.equal("/y", rig.requests[2].target)
    -- What curl tells and what it was sent are written to one pipe in any order, so the body goes elsewhere.
    assert.matches("ALPN: server accepted http/1.1", curl("-v", "--http2", "-o", "/dev/null", url()))
    local out = rig:run("curl", { "-sS", url() })
    assert.matches("unable to get local issuer certificate", out)
  end)

  it("answers our own client, in a stream too", function()
    serve()
    local held
    rig.handler = function(x)
      held = x
      rig:start(x, 200, "Content-Type: application/json\r\n")
    end
    local client = transport.client()
    local e = client:endpoint(('"server": "https://127.0.0.1:%d", "certificate-authority": "%s/ca.crt"')
      :format(rig.port, dir))
    local r = client:start(e, { path = "/watch" })
    local function wait(what)
      assert.is_true(rig:pump(function()
        C.mw_loop_turn(client.loop, 0)
        return what()
      end))
    end
    wait(function() return held end)
    for i = 1, 3 do
      assert.is_true(server_rig.write(held, "event " .. i .. "\n"))
      wait(function() return transport.body(r):find("event " .. i .. "\n", 1, true) end)
    end
    assert.are.equal(200, r.status)
    C.mw_exchange_finish(held)
    wait(function() return r.done > 0 end)
    assert.is_nil(r.err)
    client:close()
  end)

  it("takes and sends large bodies", function()
    serve()
    local body = ("0123456789abcdef"):rep(100000)
    rig.handler = function(x, request) rig:reply(x, 200, "", request.body:rep(5)) end
    transport.write(dir .. "/body", body)
    local out = curl("--data-binary", "@" .. dir .. "/body", "-o", dir .. "/out", url())
    assert.are.equal("", out)
    assert.are.equal(body:rep(5), transport.read(dir .. "/out"))
    assert.are.equal(body, rig.requests[1].body)
  end)

  it("refuses what is too large, in a way that the client hears", function()
    serve { body_max = 1000 }
    transport.write(dir .. "/body", ("x"):rep(4e6))
    local out = curl("-i", "-H", "Expect:", "--data-binary", "@" .. dir .. "/body", url())
    assert.matches("^HTTP/1.1 413 Request Entity Too Large\r\n", out)
    assert.matches("413 Request Entity Too Large\n$", out)
  end)

  it("says goodbye before it closes", function()
    serve()
    local out = rig:run("openssl", { "s_client", "-quiet", "-ign_eof", "-connect", "127.0.0.1:" .. rig.port,
      "-CAfile", dir .. "/ca.crt", "-verify_return_error" }, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    assert.matches("Connection: close\r\n\r\nhello", out)
    assert.not_matches("unexpected eof", out)
  end)

  it("sees a client go, and cuts a slow one", function()
    serve { backlog_max = 100000 }
    local held = {}
    rig.handler = function(x)
      held[#held + 1] = x
      rig:start(x, 200, "")
    end
    local function watch(path)
      local gone
      local process = server_rig.spawn("curl", { "-sS", "-N", "--cacert", dir .. "/ca.crt", url(path) }, {},
        function() gone = true end)
      local count = #held + 1
      assert.is_true(rig:pump(function() return #held == count end))
      return process, function()
        process:kill("sigkill")
        assert.is_true(rig:pump(function() return gone end))
        process:close()
      end
    end
    local slow, kill_slow = watch("/slow")
    slow:kill("sigstop")
    local chunk, written = ("x"):rep(1000), 0
    while server_rig.write(held[1], chunk) do
      written = written + #chunk
      assert.is_true(written < 20e6, "nobody was cut")
    end
    assert.is_true(rig:pump(function() return #rig.gone == 1 end))
    kill_slow()
    local _, kill_quick = watch("/quick")
    kill_quick()
    assert.is_true(rig:pump(function() return #rig.gone == 2 end))
    assert.are.same({ "/slow", "/quick" }, rig.gone)
  end)

  it("cuts one that does not finish its handshake, or speaks plain text", function()
    serve { header_seconds = 0.1 }
    local silent, plain = rig:connect(), rig:connect()
    plain:send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    plain:to_end(2)
    silent:to_end(2)
    assert.are.equal("", silent.text)
    assert.are.equal(0, #rig.requests)
  end)
end)
