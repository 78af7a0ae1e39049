-- The probes as specs: one per probe, which fails with what differs.
local compare = require "spec.probes.compare"
local golden = require "spec.probes.golden"
local known = require "spec.probes.known"
local runner = require "spec.probes.runner"
local sandbox = require "spec.support.sandbox"
local target = require "spec.probes.target"

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

--- In a describe block: adds specs that the real server and a sandbox answer alike when the names are the same, and
--- both as recorded. options: kubectl, its commands of that version instead of the probes; part and parts, every so
--- many-th probe beginning with that, or all of them.
function judge.side_by_side(options)
  local spec = getfenv(2) -- a required module does not see busted's functions
  local version, seed, at = options.kubectl, runner.seed(), 0
  local box, real, small

  spec.setup(function()
    -- kubectl sends no token without TLS.
    box = sandbox.start { args = not version and { "--plain-http" } or nil }
    real, small = target.real(), target.sandbox(box)
    if version then
      real:use_kubectl(version)
      small:use_kubectl(version)
    end
  end)

  spec.teardown(function()
    real:close()
    small:close()
    box:stop()
  end)

  for group, definition in runner.each(nil, version) do
    at = at % (options.parts or 1) + 1
    if at == (options.part or 1) then
      local full = group .. "/" .. definition.name
      spec.it(full, function()
        local expected = runner.run(definition, real, seed)
        local stale = compare.transcripts(judge.recorded(group, definition), expected)
        assert(#stale == 0, full .. " is not as recorded: run scripts/probes record\n" .. table.concat(stale, "\n"))
        judge.compare(full, expected, (runner.run(definition, small, seed)), seed)
      end)
    end
  end
end

return judge
