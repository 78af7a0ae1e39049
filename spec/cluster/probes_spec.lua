-- Every probe on the real server and on the sandbox, with the same names: both answer alike, and as
-- recorded.
local judge = require "spec.probes.judge"
local runner = require "spec.probes.runner"
local target = require "spec.probes.target"
local compare = require "spec.probes.compare"
local sandbox = require "spec.support.sandbox"

local function both(kubectl_version, arguments)
  local seed = runner.seed()
  local box, real, small

  setup(function()
    box = sandbox.start { args = arguments }
    real, small = target.real(), target.sandbox(box)
    if kubectl_version then
      real:use_kubectl(kubectl_version)
      small:use_kubectl(kubectl_version)
    end
  end)

  teardown(function()
    real:close()
    small:close()
    box:stop()
  end)

  for group, definition in runner.each(nil, kubectl_version) do
    local full = group .. "/" .. definition.name
    it(full, function()
      local expected = runner.run(definition, real, seed)
      local stale = compare.transcripts(judge.recorded(group, definition), expected)
      assert(#stale == 0, full .. " is not as recorded: run scripts/probes record\n" .. table.concat(stale, "\n"))
      judge.compare(full, expected, (runner.run(definition, small, seed)), seed)
    end)
  end
end

describe("the sandbox and the real server answer alike:", function() both(nil, { "--plain-http" }) end)
describe("Debian's kubectl does the same with both:", function() both("debian") end)
describe("the newest kubectl does the same with both:", function() both("built") end)
