-- Debian's kubectl does with the sandbox what it did with a real server.
local judge = require "spec.probes.judge"
local runner = require "spec.probes.runner"
local target = require "spec.probes.target"
local sandbox = require "spec.support.sandbox"

describe("kubectl works with the sandbox as with a real server:", function()
  local box, server

  setup(function()
    box = sandbox.start()
    server = target.sandbox(box)
    server:use_kubectl("debian")
  end)

  teardown(function()
    server:close()
    box:stop()
  end)

  judge.against_recorded(it, function() return server end, runner.seed(), "debian")
end)
