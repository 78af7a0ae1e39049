-- The probes as specs: one per probe, which fails with what differs.
local compare = require "spec.probes.compare"
local golden = require "spec.probes.golden"
local known = require "spec.probes.known"
local runner = require "spec.probes.runner"

local judge = {}

local count = 0
for _ in pairs(known) do count = count + 1 end
assert(count <= 5, "spec/probes/known.lua lists more than five differences")

--- Raises with the differences between two transcripts, and the seed that repeats them. A listed
--- probe must differ.
function judge.compare(full, expected, actual, seed)
  local differences = compare.transcripts(expected, actual)
  if known[full] then
    assert(#differences > 0, full .. " does not differ any more: take it out of spec/probes/known.lua")
  elseif #differences > 0 then
    error(("MOONWATCH_SEED=%d: %s\n%s"):format(seed, full, table.concat(differences, "\n")), 0)
  end
end

--- What was recorded of a probe.
function judge.recorded(group, definition)
  return golden.read(group)[definition.name]
    or error(("%s/%s is not recorded: run scripts/probes record"):format(group, definition.name), 0)
end

--- Adds specs (to a describe block) that a server answers as recorded. server() is asked when a spec
--- runs.
function judge.against_recorded(it, server, seed, kubectl_version)
  for group, definition in runner.each(nil, kubectl_version) do
    local full = group .. "/" .. definition.name
    it(full, function()
      judge.compare(full, judge.recorded(group, definition), (runner.run(definition, server(), seed)), seed)
    end)
  end
end

return judge
