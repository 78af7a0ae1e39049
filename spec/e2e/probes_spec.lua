-- The sandbox answers as a real server did when it was recorded (spec/fixtures/probes).
local judge = require "spec.probes.judge"
local runner = require "spec.probes.runner"
local target = require "spec.probes.target"
local sandbox = require "spec.support.sandbox"

describe("the sandbox answers like a real server:", function()
  local box, server

  setup(function()
    box = sandbox.start { args = { "--plain-http" } }
    server = target.sandbox(box)
  end)

  teardown(function()
    server:close()
    box:stop()
  end)

  judge.against_recorded(it, function() return server end, runner.seed())
end)
