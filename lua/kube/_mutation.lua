-- Cached objects are read-only by contract, and this tells who broke it. When a task ends, the tables that it was
-- given are compared with the objects behind them: of one task in a hundred, or of every task with
-- MOONWATCH_MUTATION_DETECTOR=1, which then looks once a second, too, at what is still in use; 0 turns it off.
-- What was changed is logged, once, and the next read decodes the object anew.
local core = require "kube._core"

local PERIOD = 1

local function report(findings)
  for _, finding in ipairs(findings) do
    core.log.write("error", "a cached object was changed; use kube.copy() to get one of your own", finding)
  end
end

core.codec.on_mutations(report)

local setting = os.getenv("MOONWATCH_MUTATION_DETECTOR")
if setting and setting ~= "" and setting ~= "0" then
  local function look() report(core.codec.mutations()) end
  core.task.every(PERIOD, look)
  core.task.on_stop(look)
end
