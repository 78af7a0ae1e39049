-- Runs probes and gives their normalised transcripts.
local all = require "spec.probes.all"
local normalise = require "spec.probes.normalise"
local probe = require "spec.probes.probe"

local runner = {}

--- Iterates over (group, probe), all or those whose "group/name" contains `only`.
function runner.each(only)
  return coroutine.wrap(function()
    for _, entry in ipairs(all) do
      for _, definition in ipairs(entry.probes) do
        local full = entry.group .. "/" .. definition.name
        if not only or full:find(only, 1, true) then coroutine.yield(entry.group, definition) end
      end
    end
  end)
end

--- The transcript of one probe, and the error that ended it, if one did.
function runner.run(definition, target, seed)
  local steps, names, problem = probe.run(definition, target, seed)
  return normalise.steps(steps, names), problem
end

--- The seed of this run: MOONWATCH_SEED, or one from the clock.
function runner.seed()
  return tonumber(os.getenv("MOONWATCH_SEED")) or os.time() % 100000
end

return runner
