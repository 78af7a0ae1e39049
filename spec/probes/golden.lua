-- The recorded transcripts of the real server: one file per group of probes, one line per step.
local json = require "spec.probes.json"

local golden = {}

local directory = "spec/fixtures/probes"

local function path_of(group) return ("%s/%s.json"):format(directory, group) end

--- The transcripts of a group by the name of the probe; empty when nothing is recorded.
function golden.read(group)
  local file = io.open(path_of(group))
  if not file then return {} end
  local text = file:read("*a")
  file:close()
  return assert(json.decode(text))
end

--- Writes the transcripts of a group.
function golden.write(group, transcripts)
  local probes = {}
  for i, name in ipairs(json.sorted_keys(transcripts)) do
    local steps = {}
    for n, step in ipairs(transcripts[name]) do steps[n] = "  " .. json.encode(step) end
    probes[i] = ("%s: [\n%s\n]"):format(json.encode(name), table.concat(steps, ",\n"))
  end
  local file = assert(io.open(path_of(group), "w"))
  file:write("{\n", table.concat(probes, ",\n"), "\n}\n")
  file:close()
end

return golden
