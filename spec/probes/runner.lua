-- Runs probes and gives their normalised transcripts.
local all = require "spec.probes.all"
local normalise = require "spec.probes.normalise"
local probe = require "spec.probes.probe"

local runner = {}

--- The name of the group of recorded transcripts of a kubectl.
function runner.kubectl_group(version) return "kubectl-" .. version end

--- Iterates over (group, probe), all or those whose "group/name" contains `only`; with a version of
--- kubectl over the cases for it instead.
function runner.each(only, kubectl_version)
  local entries = all
  if kubectl_version then
    entries = { { group = runner.kubectl_group(kubectl_version), probes = require "spec.support.kubectl_cases" } }
  end
  return coroutine.wrap(function()
    for _, entry in ipairs(entries) do
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
