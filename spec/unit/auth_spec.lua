-- Credentials: token files that are replaced, plugins that hand out tokens, and what a 401 does.
local transport = require "spec.support.transport"
local unit = require "spec.support.unit"
local C, ffi = unit.C, unit.ffi

local V1 = "client.authentication.k8s.io/v1"

describe("auth", function()
  unit.no_leaks()

  describe("with a server", function()
    local client, peer, dir
    local accepted  -- the token that the server takes; nil: any

    before_each(function()
      dir = transport.tmpdir()
      accepted = nil
      client = transport.client()
      peer = transport.peer(function(request, connection)
        local token = (request.headers.authorization or ""):match("^Bearer (.*)$")
        local good = accepted == nil or token == accepted
        connection:answer(good and 200 or 401, nil, good and "welcome" or "who are you")
      end)
    end)

    after_each(function()
      client:close()
      peer:close()
      transport.rmdir(dir)
    end)

    -- A plugin is a shell script; it counts its runs in dir/runs.
    local function plugin(script, more, cluster)
      transport.write(dir .. "/plugin", "#!/bin/sh\necho x >> " .. dir .. "/runs\n" .. script)
      os.execute("chmod +x " .. dir .. "/plugin")
      return client:endpoint(peer:cluster() .. (cluster or ""),
        ([["exec": {"apiVersion": "%s", "interactiveMode": Never, "command": "./plugin",
        "args": [one, "two words"], "env": [{"name": FROM_CONFIG, "value": "yes"}] %s}]])
        :format(V1, more or ""), dir)
    end

    local function prints(status)
      return ([[echo '{"kind": "ExecCredential", "apiVersion": "%s", "status": {%s}}']])
        :format(V1, status)
    end

    local function runs()
      local n = 0
      for _ in io.lines(dir .. "/runs") do n = n + 1 end
      return n
    end

    local function tokens()
      local seen = {}
      for i, request in ipairs(peer.requests) do
        seen[i] = (request.headers.authorization or ""):match("^Bearer (.*)$") or "none"
      end
      return seen
    end

    describe("and a token file", function()
      local e

      before_each(function()
        transport.write(dir .. "/token", " first\n")
        e = client:endpoint(peer:cluster(), '"tokenFile": "token"', dir)
      end)

      it("sends its content, and reads it again only when it is a minute old", function()
        client:fetch(e)
        transport.write(dir .. "/token", "second\n")
        client:fetch(e)
        client:age_files(45)
        client:fetch(e)
        client:age_files(15)
        client:fetch(e)
        assert.are.same({ "first", "first", "first", "second" }, tokens())
      end)

      it("reads it again after a 401 and tries once more", function()
        client:fetch(e)
        accepted = "second"
        transport.write(dir .. "/token", "second")
        local r = client:fetch(e)
        assert.is_nil(r.err)
        assert.are.same({ "response", "data", "done" }, r.events)
        assert.are.same({ "first", "first", "second" }, tokens())
      end)

      it("tells a second 401 to the caller", function()
        accepted = "never"
        local r = client:fetch(e)
        assert.are.equal("EHTTP", r.err)
        assert.are.equal(401, r.http_status)
        assert.are.equal("who are you", r.error_body)
        assert.are.equal(2, #peer.requests)
      end)

      it("keeps the last token when the file is gone", function()
        client:fetch(e)
        os.remove(dir .. "/token")
        client:age_files(60)
        assert.is_nil(client:fetch(e).err)
        assert.are.same({ "first", "first" }, tokens())
      end)

      it("fails when the file was never there, is empty or holds no token", function()
        os.remove(dir .. "/token")
        local r = client:fetch(e)
        assert.are.equal("EAUTH", r.err)
        assert.are.equal(('kubeconfig spec, context "c": %s/token: No such file or directory')
          :format(dir), r.message)
        transport.write(dir .. "/token", " \n")
        assert.matches("token is empty$", client:fetch(e).message)
        transport.write(dir .. "/token", "s3cret\ns3cret")
        r = client:fetch(e)
        assert.matches("token does not hold a token$", r.message)
        assert.are.equal(0, #peer.requests)
        transport.write(dir .. "/token", "good")
        assert.is_nil(client:fetch(e).err)
      end)
    end)

    it("sends the token that is given until the token file holds one", function()
      local e = client:endpoint(peer:cluster(), '"token": "given", "tokenFile": "token"', dir)
      assert.is_nil(client:fetch(e).err)
      transport.write(dir .. "/token", "\n")
      assert.is_nil(client:fetch(e).err)
      transport.write(dir .. "/token", "fresh\n")
      assert.is_nil(client:fetch(e).err)
      transport.write(dir .. "/token", "")
      client:age_files(60)
      assert.is_nil(client:fetch(e).err)
      assert.are.same({ "given", "given", "fresh", "fresh" }, tokens())
    end)

    it("does not try a fixed token twice", function()
      accepted = "other"
      local r = client:fetch(client:endpoint(peer:cluster(), '"token": "mine"'))
      assert.are.equal(401, r.http_status)
      assert.are.equal(1, #peer.requests)
    end)

    describe("and a plugin", function()
      it("runs it once for all who wait, and keeps the token while it is good", function()
        local e = plugin("sleep 0.05\n" .. prints('"token": "fresh"'))
        local records = {}
        for i = 1, 5 do records[i] = client:start(e) end
        for _, r in ipairs(records) do assert.is_nil(client:finish(r).err) end
        client:fetch(e)
        assert.are.equal(1, runs())
        assert.are.same({ "fresh", "fresh", "fresh", "fresh", "fresh", "fresh" }, tokens())
      end)

      it("tells it what it is run for", function()
        local e = plugin(([[
printf '%%s|%%s|%%s|%%s' "$1" "$2" "$FROM_CONFIG" "$HOME" > %s/seen
printf '%%s' "$KUBERNETES_EXEC_INFO" > %s/info
%s]]):format(dir, dir, prints('"token": "t"')), ', "provideClusterInfo": true',
          ', "extensions": [{"name": "client.authentication.k8s.io/exec", ' ..
          '"extension": {"audience": shop, "retries": 3, "strict": yes}}]')
        client:fetch(e)
        assert.are.equal("one|two words|yes|" .. os.getenv("HOME"), transport.read(dir .. "/seen"))
        assert.are.equal(('{"kind":"ExecCredential","apiVersion":"%s","spec":{"interactive":' ..
          'false,"cluster":{"insecure-skip-tls-verify":false,"server":"http://127.0.0.1:%d",' ..
          '"config":{"audience":"shop","retries":3,"strict":true}}}}')
          :format(V1, peer.port), transport.read(dir .. "/info"))
      end)

      it("runs it again when its token has expired, not before", function()
        local e = plugin(prints('"token": "\'$(wc -l < ' .. dir ..
          '/runs)\'", "expirationTimestamp": "\'$(cat ' .. dir .. '/expiry)\'"'))
        transport.write(dir .. "/expiry", "2001-01-01T00:00:00Z")
        client:fetch(e)
        transport.write(dir .. "/expiry", "2999-01-01T00:00:00+02:00")
        client:fetch(e)
        client:fetch(e)
        assert.are.same({ "1", "2", "2" }, tokens())
      end)

      it("runs it again after a 401, once for all who got one", function()
        local e = plugin(prints('"token": "\'$(wc -l < ' .. dir .. '/runs)\'"'))
        client:fetch(e)
        accepted = "2"
        local records = {}
        for i = 1, 5 do records[i] = client:start(e) end
        for _, r in ipairs(records) do assert.is_nil(client:finish(r).err) end
        assert.are.equal(2, runs())
      end)

      it("reads indented JSON, tabs and v1beta1", function()
        transport.write(dir .. "/out", '{\n\t"kind": "ExecCredential",\n\t"apiVersion": ' ..
          '"client.authentication.k8s.io/v1beta1",\n\t"spec": {},\n\t"status": {\n\t\t"token": ' ..
          '"a\\/b"\n\t}\n}\n')
        local e = client:endpoint(peer:cluster(), ([["exec": {"command": cat, "args": ["%s/out"],
          "apiVersion": "client.authentication.k8s.io/v1beta1"}]]):format(dir))
        local r = client:fetch(e)
        assert.is_nil(r.message)
        assert.are.same({ "a/b" }, tokens())
      end)

      local function says(expected, e)
        local r = client:fetch(e)
        assert.are.same({ "done" }, r.events)
        assert.are.equal("EAUTH", r.err)
        assert.matches('^kubeconfig spec, context "c": exec plugin "%S+" ' .. expected, r.message)
        assert.are.equal(0, #peer.requests)
        return r
      end

      it("says why it failed, and runs it again for the next request", function()
        local e = plugin("exit 3")
        says("failed with exit code 3; what it said is on stderr$", e)
        says("failed with exit code 3", e)
        assert.are.equal(2, runs())
        says("was killed by signal 9$", plugin("kill -9 $$"))
      end)

      it("says what is wrong with its output, and never the output itself", function()
        says("did not print JSON$", plugin("echo '{s3cret'"))
        says("did not print an ExecCredential$", plugin("true"))
        says("did not print an ExecCredential$", plugin("echo s3cret"))
        says("printed neither status.token nor a client certificate$", plugin(prints("")))
        says("must print clientCertificateData and clientKeyData together$",
          plugin(prints('"clientKeyData": "s3cret"')))
        says("printed a client certificate or key that is not PEM$",
          plugin(prints('"clientKeyData": "s3cret", "clientCertificateData": "x"')))
        says("printed an expirationTimestamp that is not RFC 3339$",
          plugin(prints('"token": "s3cret", "expirationTimestamp": "tomorrow"')))
        says("printed a token with control characters$", plugin(prints('"token": "s3\\\\ncret"')))
        says("printed apiVersion client.authentication.k8s.io/v1beta1, but exec.apiVersion is",
          plugin((prints('"token": "s3cret"'):gsub("/v1", "/v1beta1"))))
        says("printed more than 1048576 bytes$", plugin("head -c 2000000 /dev/zero"))
      end)

      it("says how to get one that is missing", function()
        local e = client:endpoint(peer:cluster(), ([["exec": {"command": "no-such-plugin",
          "apiVersion": "%s", "interactiveMode": Never,
          "installHint": "see example.com"}]]):format(V1))
        says("was not found: see example.com$", e)
        e = client:endpoint(peer:cluster(), ([["exec": {"command": "./no-such-plugin",
          "apiVersion": "%s", "interactiveMode": IfAvailable}]]):format(V1), dir)
        says("was not found: install it or correct exec.command$", e)
      end)

      it("kills one that takes too long, with its children", function()
        local e = plugin("(sleep 300; true) &\necho $! > " .. dir .. "/child\nwait")
        local r = client:start(e)
        client:set_exec_timeout(0.2)
        client:finish(r)
        assert.are.equal("EAUTH", r.err)
        assert.matches("did not answer within 0.2 seconds$", r.message)
        local child = transport.read(dir .. "/child"):match("%d+")
        assert.is_true(client:pump(function()
          local state = io.open("/proc/" .. child .. "/stat")
          if not state then return true end
          local text = state:read("*a")
          state:close()
          return text:match("%) Z") ~= nil
        end))
      end)

      it("lets a request be cancelled while it runs, and the pool be closed", function()
        local e = plugin("sleep 300")
        local r, other = client:start(e), client:start(e)
        assert.is_true(client:pump(function() return io.open(dir .. "/runs") ~= nil end))
        transport.cancel(r)
        transport.cancel(other)
        client:idle(0.05)
        assert.are.same({}, r.events)
      end)

      it("does not let a deadline wait for it", function()
        local r = client:fetch(plugin("sleep 300"), { timeout = 0.1 })
        assert.are.equal("ETIMEOUT", r.err)
      end)
    end)
  end)

  it("reads times as RFC 3339 writes them", function()
    local function seconds(text) return C.mw_time_rfc3339(unit.slice(text)) end
    assert.are.equal(1609459200, seconds("2021-01-01T00:00:00Z"))
    assert.are.equal(1609459200, seconds("2021-01-01T02:30:00.123456789+02:30"))
    assert.are.equal(1609459200, seconds("2020-12-31t19:00:00-05:00"))
    for _, bad in ipairs { "", "2021-01-01", "2021-01-01T00:00:00", "2021-01-01T00:00:00X",
      "2021-01-01 00:00:00Z", "2021/01/01T00:00:00Z", "2021-01-01T00:00:00+0200",
      "2021-01-01T00:00:00.", "xxxx-01-01T00:00:00Z" } do
      assert.are.equal(-1, seconds(bad), bad)
    end
  end)

  it("encodes base64", function()
    local buf = ffi.new("struct mw_buf")
    C.mw_buf_init(buf, 100)
    for plain, coded in pairs { [""] = "", a = "YQ==", ab = "YWI=", abc = "YWJj", abcd = "YWJjZA==",
      ["\255\254\253"] = "//79" } do
      C.mw_buf_reset(buf)
      assert.are.equal(0, C.mw_base64_encode(unit.slice(plain), buf))
      assert.are.equal(coded, ffi.string(buf.p, buf.n))
    end
    C.mw_buf_deinit(buf)
  end)
end)
