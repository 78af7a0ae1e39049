-- Controllers in a script of their own with a sandbox of its own.
--
--   local play = require("spec.support.controller_rig").play
--   play([[ kube.controller { ... } ]], [[ create "a"; eventually(...) ]])
--
-- The first text is the script as it loads, the second runs behind the first await. They have `kube`,
-- `sandbox`, and: eventually(condition), same(wanted, got), log (a list that the script fills) and
-- logged(...), which waits until it has just these lines; create, update, delete and get of ConfigMaps in
-- the namespace "play".
local run = require "spec.support.run"

local rig = {}

local prelude = [[
  local kube = require "kube"
  local sandbox = require "kube.sandbox"
  local log = {}

  local function eventually(condition, what)
    for _ = 1, 3000 do
      if condition() then return end
      kube.sleep(0.005)
    end
    error((what or "it did not come true") .. "; log: " .. table.concat(log, " | "), 2)
  end
  local function text(value)
    if type(value) ~= "table" then return tostring(value) end
    local parts = {}
    for i, part in ipairs(value) do parts[i] = tostring(part) end
    return table.concat(parts, " | ")
  end
  local function same(wanted, got)
    if text(wanted) ~= text(got) then
      error(("wanted: %s\ngot: %s"):format(text(wanted), text(got)), 2)
    end
  end
  local function note(...)
    local parts = {}
    for i = 1, select("#", ...) do parts[i] = tostring((select(i, ...))) end
    log[#log + 1] = table.concat(parts, " ")
  end
  local function logged(...)
    local wanted = table.concat({ ... }, " | ")
    eventually(function() return text(log) == wanted end, "wanted: " .. wanted)
  end
  local function config(name, data, meta)
    local metadata = { name = name, namespace = "play" }
    for key, value in pairs(meta or {}) do metadata[key] = value end
    return { apiVersion = "v1", kind = "ConfigMap", metadata = metadata, data = data }
  end
  local function create(name, data, meta) return kube.client:create(config(name, data, meta)) end
  local function update(name, data)
    return kube.client:patch("v1/configmaps", "play/" .. name, { data = data }, { type = "merge" })
  end
  local function delete(name) kube.client:delete("v1/configmaps", "play/" .. name) end
  local function get(name) return (kube.client:try_get("v1/configmaps", "play/" .. name)) end
  local PLAY = { "play" }
]]

local behind = [[

  kube.background("spec", function()
    local ok, err = xpcall(function()
      kube.client:create { apiVersion = "v1", kind = "Namespace", metadata = { name = "play" } }
%s
    end, debug.traceback)
    if not ok then
      print("FAILED", tostring(err))
    end
    require("kube._core").task.shutdown(ok and 0 or 1)
  end)
]]

--- Runs a script; what it printed. options.code: the exit code that is wanted, default 0; options.args.
function rig.play(declare, act, options)
  options = options or {}
  local args = { "--sandbox" }
  for _, argument in ipairs(options.args or {}) do args[#args + 1] = argument end
  local result = run.run_script(prelude .. declare .. behind:format(act),
    { args = args, timeout = 20, env = options.env })
  assert(result.code == (options.code or 0), ("exit code %d\n%s%s"):format(result.code, result.stdout, result.stderr))
  return result.stdout, result.stderr
end

--- A script that does not load: what it says.
function rig.refused(source)
  local result = run.run_script(prelude .. source, { args = { "--sandbox" }, timeout = 20 })
  assert(result.code ~= 0, "it loaded\n" .. result.stdout .. result.stderr)
  return result.stderr
end

return rig
