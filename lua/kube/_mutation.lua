-- MOONWATCH_MUTATION_DETECTOR=1: cached objects are read-only by contract, and this tells who broke
-- it. Every second each table that was handed out is compared with the object behind it; a changed
-- one is logged, once. It decodes everything that was read once more, so it is for debugging.
local core = require "kube._core"

local PERIOD = 1

local function report()
  for _, finding in ipairs(core.codec.mutations()) do
    local key, path = finding:match("^(%S*): (.*)$")
    core.log.write("error", "a cached object was changed; use kube.copy() to get one of your own",
      { key = key, path = path })
  end
end

local setting = os.getenv("MOONWATCH_MUTATION_DETECTOR")
if setting and setting ~= "" and setting ~= "0" then
  core.codec.mutation_detector(true)
  core.task.every(PERIOD, report)
  core.task.on_stop(report)
end
