-- The program has an HTTP/2 of its own, other than the library of spec/unit.
local rig = require "spec.support.client_rig"
local transport = require "spec.support.transport"
local uv = require "luv"

describe("the program", function()
  local later = require "spec.support.cleanup".install()

  it("speaks HTTP/2 with a server that offers it", function()
    local dir = transport.tmpdir()
    later(function() transport.rmdir(dir) end)
    assert(uv.fs_mkdir(dir .. "/htdocs", tonumber("700", 8)))
    transport.write(dir .. "/htdocs/large", ("0123456789abcde\n"):rep(65536))
    transport.make_ca(dir, "ca")
    transport.make_cert(dir, "ca", "server", "IP:127.0.0.1")
    local server = transport.h2(dir, "server", { "-v" })
    later(function() server:close() end)
    rig.run(rig.serve(rig.echo), ([[
      local url, ca = "https://127.0.0.1:%d/large", %q
      local function size() return #kube.http.get(url, { ca = ca }).body end
      same({ 1048576, 1048576 }, kube.all { size, size })
    ]]):format(server.port, transport.read(dir .. "/ca.crt")))
    assert.matches(":authority: 127.0.0.1:" .. server.port, server.log)
  end)
end)
