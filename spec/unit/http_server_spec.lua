-- The HTTP/1.1 server, asked by sockets whose every byte is the spec's.
local server_rig = require "spec.support.server_rig"
local unit = require "spec.support.unit"
local C = unit.C

describe("http server", function()
  local rig

  local function serve(config, tls)
    rig = assert(server_rig.new(config, tls))
    return rig
  end

  after_each(function()
    if rig then rig:close() end
    rig = nil
  end)
  unit.no_leaks() -- after the rig is closed

  local function get(path, more) return "GET " .. path .. " HTTP/1.1\r\nHost: a\r\n" .. (more or "") .. "\r\n" end

  describe("answers", function()
    it("a request with a whole reply, and keeps the connection", function()
      serve()
      local client = rig:connect()
      for i = 1, 3 do
        local answer = client:ask(get("/" .. i), "hello$")
        assert.matches("^HTTP/1.1 200 OK\r\nDate: %a%a%a, %d%d %a%a%a %d%d%d%d %d%d:%d%d:%d%d GMT\r\n" ..
          "Content%-Length: 5\r\n\r\nhello$", answer)
      end
      assert.are.same({ method = "GET", target = "/3", body = "" }, rig.requests[3])
    end)

    it("with a chunked stream", function()
      serve()
      local held
      rig.handler = function(x)
        held = x
        rig:start(x, 200, "Content-Type: text/plain\r\n")
      end
      local client = rig:connect()
      assert.matches("Content%-Type: text/plain\r\nTransfer%-Encoding: chunked\r\n\r\n$",
        client:ask(get("/"), "\r\n\r\n$"))
      assert.is_true(server_rig.write(held, "one"))
      assert.are.equal("3\r\none\r\n", client:ask(nil, "\r\n$"))
      C.mw_exchange_finish(held)
      assert.are.equal("0\r\n\r\n", client:ask(nil, "\r\n\r\n$"))
    end)
  end)
end)
