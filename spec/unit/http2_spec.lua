-- Requests over TLS: HTTP/2 with many streams, certificates, names. The peer is nghttpd.
local transport = require "spec.support.transport"
local unit = require "spec.support.unit"

describe("http over TLS", function()
  unit.no_leaks()

  describe("to nghttpd", function()
    local dir, server, client
    local files = {}

    -- Content in which every line differs, so that bytes of one stream in another are seen.
    local function content(seed, lines)
      local out = {}
      for i = 1, lines do out[i] = ("%s %08d %08x\n"):format(seed, i, (i * 2654435761) % 2 ^ 32) end
      return table.concat(out)
    end

    setup(function()
      dir = transport.tmpdir()
      os.execute("mkdir " .. dir .. "/htdocs")
      for i = 0, 9 do
        files[i] = content("file" .. i, 9000 + i * 17)
        assert(#files[i] > 200 * 1024)
        transport.write(("%s/htdocs/%d"):format(dir, i), files[i])
      end
      transport.write(dir .. "/htdocs/large", content("large", 2 * 1000 * 1000))
      os.execute("truncate -s 1T " .. dir .. "/htdocs/endless") -- takes no room
      transport.make_ca(dir, "ca")
      transport.make_ca(dir, "other")
      transport.make_cert(dir, "ca", "server", "IP:127.0.0.1")
      transport.make_cert(dir, "ca", "named", "DNS:api.internal")
      transport.make_cert(dir, "ca", "me", "DNS:me")
    end)

    teardown(function() transport.rmdir(dir) end)

    before_each(function() client = transport.client { guard_interval = 0.2 } end)

    after_each(function()
      client:close()
      if server then server:close() end
      server = nil
    end)

    it("trusts the configured CA, given as a file or as data, and speaks HTTP/2", function()
      server = transport.h2(dir, "server", { "-v" })
      local e = client:endpoint(server:cluster(dir .. "/ca.crt"))
      local r = client:fetch(e, { path = "/1" })
      assert.is_nil(r.message)
      assert.is_true(transport.body(r) == files[1])
      assert.matches(":authority: 127.0.0.1:" .. server.port, server.log)
      local pipe = io.popen("base64 -w0 " .. dir .. "/ca.crt")
      local data = pipe:read("*a")
      pipe:close()
      e = client:endpoint(('"server": "https://127.0.0.1:%d", "certificate-authority-data": "%s"')
        :format(server.port, data))
      assert.is_nil(client:fetch(e, { path = "/1" }).message)
    end)

    it("does not trust another CA, and says what to check", function()
      server = transport.h2(dir, "server")
      local r = client:fetch(client:endpoint(server:cluster(dir .. "/other.crt")))
      assert.are.same({ "done" }, r.events)
      assert.are.equal("ETLS", r.err)
      assert.matches("^127.0.0.1:%d+: the server's certificate is not signed by the CA of " ..
        'kubeconfig spec, context "c" .*: check certificate%-authority$', r.message)
    end)

    it("does not trust a server without a CA, unless told to", function()
      server = transport.h2(dir, "server")
      local address = ('"server": "https://127.0.0.1:%d"'):format(server.port)
      local r = client:fetch(client:endpoint(address))
      assert.are.equal("ETLS", r.err)
      assert.matches("^127.0.0.1:%d+: the server's certificate is not signed by a CA of this system .*, and " ..
        'kubeconfig spec, context "c" names no other: add certificate%-authority$', r.message)
      r = client:fetch(client:endpoint(address .. ', "insecure-skip-tls-verify": true'),
        { path = "/1" })
      assert.is_nil(r.message)
    end)

    it("says so when a CA file holds no certificate", function()
      server = transport.h2(dir, "server")
      transport.write(dir .. "/junk.crt", "junk")
      local r = client:fetch(client:endpoint(server:cluster(dir .. "/junk.crt")))
      assert.are.equal("ETLS", r.err)
      assert.matches("certificate%-authority of kubeconfig spec", r.message)
    end)

    it("verifies and asks for tls-server-name, and keeps the server's own host", function()
      server = transport.h2(dir, "named", { "-v" })
      local r = client:fetch(client:endpoint(server:cluster(dir .. "/ca.crt")))
      assert.are.equal("ETLS", r.err)
      assert.matches("is for another name .*tls%-server%-name of kubeconfig spec", r.message)
      local e = client:endpoint(server:cluster(dir .. "/ca.crt",
        '"tls-server-name": "api.internal"'))
      r = client:fetch(e, { path = "/2" })
      assert.is_nil(r.message)
      assert.is_true(transport.body(r) == files[2])
      assert.matches(":authority: 127.0.0.1:" .. server.port, server.log)
      assert.not_matches("api.internal", server.log)
    end)

    it("shows its client certificate", function()
      server = transport.h2(dir, "server", { "--verify-client" })
      local r = client:fetch(client:endpoint(server:cluster(dir .. "/ca.crt")),
        { method = "DELETE" })
      -- Whether its alert or the end of the connection is seen first is a matter of luck.
      assert.is_true(r.err == "ETLS" or r.err == "EEOF", r.message)
      local e = client:endpoint(server:cluster(dir .. "/ca.crt"),
        '"client-certificate": "me.crt", "client-key": "me.key"', dir)
      assert.is_nil(client:fetch(e, { path = "/1" }).message)
      client:close()
      client = transport.client()
      e = client:endpoint(server:cluster(dir .. "/ca.crt"),
        '"client-certificate": "me.crt", "client-key": "ca.key"', dir)
      r = client:fetch(e, { path = "/1" })
      assert.are.equal("ETLS", r.err)
      assert.matches("client%-certificate or client%-key of kubeconfig spec", r.message)
    end)

    it("uses a CA file that was replaced, on new connections", function()
      server = transport.h2(dir, "server")
      local ca = transport.write(dir .. "/rotating.crt", transport.read(dir .. "/ca.crt"))
      local e = client:endpoint(server:cluster(ca))
      assert.is_nil(client:fetch(e, { path = "/1" }).message)
      transport.write(ca, transport.read(dir .. "/other.crt"))
      assert.is_nil(client:fetch(e, { path = "/1" }).message, "not read again within a minute")
      client:age_files(60)
      assert.are.equal("ETLS", client:fetch(e, { path = "/1" }).err)
      transport.write(ca, transport.read(dir .. "/other.crt") .. transport.read(dir .. "/ca.crt"))
      client:age_files(60)
      assert.is_nil(client:fetch(e, { path = "/1" }).message)
    end)

    it("speaks HTTP/1.1 when told to", function()
      client:close()
      client = transport.client { http1_only = true }
      server = transport.h2(dir, "server", { "-v" })
      local r = client:fetch(client:endpoint(server:cluster(dir .. "/ca.crt")),
        { max_retries = -1 })
      -- nghttpd speaks nothing but HTTP/2: that it is refused shows what was offered.
      assert.is_not_nil(r.err)
      assert.not_matches(":authority", server.log)
    end)

    -- The stall of libcurl cannot be had at will. What it is like can: the loop hears nothing of bytes
    -- that have come. The server stands still until it is deaf, and no other timer of libcurl's is near.
    it("brings the bytes of streams of which the loop hears nothing, by poking their socket", function()
      client:close()
      client = transport.client { guard_interval = 0.02, connect_timeout = 600 }
      server = transport.h2(dir, "server")
      local e = client:endpoint(server:cluster(dir .. "/ca.crt"))
      assert.is_nil(client:fetch(e, { path = "/1" }).message)
      server.process:kill("sigstop")
      local records, asked = {}, 0
      for i = 1, 5 do
        records[i] = client:start(e, { path = "/" .. i, on_send = function()
          asked = asked + 1
          return 0
        end })
      end
      -- Each is asked about twice; the second time is when it is sent.
      assert.is_true(client:pump(function() return asked == 2 * #records end))
      assert.are.equal(1, #client:sockets())
      client:deafen()
      local rescues = client:stats().rescues
      server.process:kill("sigcont")
      for i, r in ipairs(records) do
        client:finish(r)
        assert.is_nil(r.message)
        assert.is_true(transport.body(r) == files[i])
      end
      assert.is_true(client:stats().rescues > rescues)
      assert.are.equal(1, client:stats().connections)
    end)

    it("brings every byte of 100 concurrent streams on few connections, again and again", function()
      server = transport.h2(dir, "server")
      local e = client:endpoint(server:cluster(dir .. "/ca.crt"))
      local slowest = 0
      for round = 1, 20 do
        local started = transport.now()
        local records = {}
        for i = 1, 100 do records[i] = client:start(e, { path = "/" .. i % 10 }) end
        for i, r in ipairs(records) do
          client:finish(r, 20)
          assert.is_nil(r.message)
          assert.is_true(transport.body(r) == files[i % 10],
            ("round %d stream %d"):format(round, i))
        end
        slowest = math.max(slowest, transport.now() - started)
      end
      local stats = client:stats()
      assert.are.equal(2000, stats.requests)
      assert.are.equal(0, stats.retries)
      assert.is_true(stats.connections <= 4, stats.connections)
      assert.is_true(slowest < 15, slowest)
      if os.getenv("MOONWATCH_SPEC_NUMBERS") then
        print(("slowest round %.2f s, %d connections, %d pokes, %d rescues"):format(slowest,
          stats.connections, stats.pokes, stats.rescues))
      end
    end)

    it("opens more connections for more streams than the server takes on one, and starves none",
      function()
        server = transport.h2(dir, "server", { "--max-concurrent-streams=4" })
        local e = client:endpoint(server:cluster(dir .. "/ca.crt"))
        local records = {}
        for i = 1, 20 do
          records[i] = client:start(e, { path = "/endless" })
        end
        -- All of them stay open, as watches do.
        assert.is_true(client:pump(function()
          for _, r in ipairs(records) do
            if r.size == 0 then return false end
          end
          return true
        end))
        for _, r in ipairs(records) do transport.cancel(r) end
      end)

    it("cancels one stream without harm to the others", function()
      server = transport.h2(dir, "server")
      local e = client:endpoint(server:cluster(dir .. "/ca.crt"))
      local records = {}
      for i = 1, 30 do
        local on_data
        if i % 3 == 0 then
          on_data = function(r)
            transport.cancel(r)
            return 0
          end
        end
        records[i] = client:start(e, { path = "/" .. i % 10, on_data = on_data })
      end
      for i, r in ipairs(records) do
        if i % 3 ~= 0 then
          client:finish(r)
          assert.is_true(transport.body(r) == files[i % 10])
        end
      end
      for i = 3, 30, 3 do
        -- Its first byte may come after the others' last.
        assert.is_true(client:pump(function() return records[i].request[0] == nil end))
        assert.are.equal(0, records[i].done)
      end
      assert.are.equal(1, client:stats().connections)
    end)

    it("ends with an error when the server dies", function()
      server = transport.h2(dir, "server")
      local e = client:endpoint(server:cluster(dir .. "/ca.crt"))
      local r = client:start(e, { path = "/large", on_data = function(record)
        if record.events[2] and not server.killed then
          server.killed = true
          server.process:kill("sigkill")
        end
        return 0
      end })
      client:finish(r)
      assert.are.equal("EEOF", r.err)
      r = client:fetch(e, { path = "/1" })
      assert.are.equal("EREFUSED", r.err)
    end)
  end)
end)
