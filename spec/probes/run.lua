-- luajit spec/probes/run.lua [options]: runs the probes by hand and tells what differs.
--
--   --target real|sandbox   the cluster of scripts/kube (its environment must be set), or a sandbox
--                           that is started for it; default: sandbox
--   --kubectl debian|built  instead of the probes, the commands of kubectl: Debian's, or the one of
--                           scripts/kube
--   --only TEXT             only probes whose "group/name" contains TEXT
--   --record                write what the target answers as the recorded transcripts
--   --show                  print the transcripts instead of comparing them
--   --names                 print only which probes differ
--
-- MOONWATCH_SEED repeats the names of an earlier run.
package.path = "./?.lua;" .. package.path
local compare = require "spec.probes.compare"
local golden = require "spec.probes.golden"
local json = require "spec.probes.json"
local runner = require "spec.probes.runner"
local target = require "spec.probes.target"

local function arguments()
  local out, i = { target = "sandbox" }, 1
  while arg[i] do
    local name = arg[i]:match("^%-%-(%l+)$")
    if name == "record" or name == "show" or name == "names" then
      out[name] = true
    elseif name == "target" or name == "only" or name == "kubectl" then
      i = i + 1
      out[name] = assert(arg[i], arg[i - 1] .. " needs a value")
    else
      error("unknown argument " .. arg[i], 0)
    end
    i = i + 1
  end
  return out
end

local function open(name, kubectl_version)
  local server, close
  if name == "real" then
    server, close = target.real(), function() end
  else
    -- kubectl sends no token without TLS.
    local sandbox = require("spec.support.sandbox").start { args = not kubectl_version and { "--plain-http" } or nil }
    server, close = target.sandbox(sandbox), function() sandbox:stop() end
  end
  if kubectl_version then server:use_kubectl(kubectl_version) end
  return server, close
end

local function show(transcript)
  for _, step in ipairs(transcript) do print("  " .. json.encode(step)) end
end

-- Whether the probe is as recorded, or was recorded or shown.
local function handle(options, group, definition, transcript, problem, recorded)
  if options.record then
    if problem then
      print(("%s/%s: %s"):format(group, definition.name, problem))
      return false
    end
    recorded[definition.name] = transcript
    golden.write(group, recorded)
    return true
  end
  if options.show then
    print(group .. "/" .. definition.name)
    show(transcript)
    return true
  end
  local differences = compare.transcripts(recorded[definition.name] or {}, transcript)
  if #differences == 0 then return true end
  print(("%s/%s"):format(group, definition.name))
  if not options.names then print("  " .. table.concat(differences, "\n  ")) end
  return false
end

local function main()
  local options = arguments()
  local seed = runner.seed()
  local server, close = open(options.target, options.kubectl)
  local good, bad, steps, records = 0, 0, 0, {}
  for group, definition in runner.each(options.only, options.kubectl) do
    records[group] = records[group] or (options.record and not options.only) and {} or records[group]
      or golden.read(group)
    local transcript, problem = runner.run(definition, server, seed)
    steps = steps + #transcript
    if handle(options, group, definition, transcript, problem, records[group]) then
      good = good + 1
    else
      bad = bad + 1
    end
    io.stdout:flush()
  end
  server:close()
  close()
  print(("seed %d, %s: %d probes in order, %d not; %d steps"):format(seed, options.target, good, bad, steps))
  os.exit(bad == 0 and 0 or 1)
end

main()
