-- `moonwatch run` on a sandbox, and the commands that operate it, in a world of their own: neither finds the processes
-- of others.
--
--   local rig = require("spec.support.control_rig").new()
--   local proc = rig:run({ ["main.lua"] = source }, { "--no-reload" })   -- a directory is run
--   local out, err, code = rig:moonwatch("status")
--   local status = rig:json("status")
--   rig:write("main.lua", text)
local cjson = require "cjson"
local cleanup = require "spec.support.cleanup"
local run = require "spec.support.run"
local uv = require "luv"

local M = {}
local Rig = {}
Rig.__index = Rig

local function remove(path)
  for name, kind in uv.fs_scandir_next, (uv.fs_scandir(path)) do
    if kind == "directory" then remove(path .. "/" .. name) else uv.fs_unlink(path .. "/" .. name) end
  end
  uv.fs_rmdir(path)
end

function M.new()
  local directory = assert(uv.fs_mkdtemp("/tmp/mw-XXXXXX"))
  local self = setmetatable({ directory = directory, runtime = directory .. "/run", scripts = directory .. "/script",
    count = 0 }, Rig)
  assert(uv.fs_mkdir(self.runtime, 448))
  assert(uv.fs_mkdir(self.scripts, 448))
  self.env = { XDG_RUNTIME_DIR = self.runtime, TMPDIR = self.runtime }
  cleanup.later(function() remove(directory) end)
  return self
end

--- Writes a file of the script in place of what was there, at once.
function Rig:write(name, text)
  local path = self.scripts .. "/" .. name
  local file = assert(io.open(path .. ".new", "w"))
  file:write(text)
  file:close()
  assert(os.rename(path .. ".new", path))
  return path
end

--- Runs a directory with these files, or what `args` says, until the end of the spec; on a sandbox of its own unless
--- they name a kubeconfig.
function Rig:run(files, args, env)
  for name, text in pairs(files) do self:write(name, text) end
  local arguments, sandbox = { "run", "--log-format", "json" }, true
  for _, argument in ipairs(args or { self.scripts }) do
    arguments[#arguments + 1] = argument
    sandbox = sandbox and argument ~= "--kubeconfig"
  end
  if sandbox then arguments[#arguments + 1] = "--sandbox" end
  local all = {}
  for name, value in pairs(self.env) do all[name] = value end
  for name, value in pairs(env or {}) do all[name] = value end
  local proc = run.start_command(arguments, { env = all })
  cleanup.later(function()
    proc:kill("sigterm")
    local code = proc:wait_exit(30)
    assert(code == 0 or proc.fails, ("it left with code %d\n%s"):format(code, proc.stderr))
  end)
  return proc
end

--- stdout, stderr and the exit code of a command.
function Rig:moonwatch(...)
  local proc = run.start_command({ ... }, { env = self.env })
  local code = proc:wait_exit(60)
  return proc.stdout, proc.stderr, code
end

--- What a command says with -o json; it must succeed.
function Rig:json(...)
  local arguments = { ... }
  arguments[#arguments + 1] = "-o"
  arguments[#arguments + 1] = "json"
  local out, err, code = self:moonwatch(unpack(arguments))
  assert(code == 0, err)
  return cjson.decode(out)
end

--- Repeats a command until condition(what it says with -o json) holds; what it said.
function Rig:until_json(condition, ...)
  local arguments = { ... }
  arguments[#arguments + 1] = "-o"
  arguments[#arguments + 1] = "json"
  local out, err, code
  for _ = 1, 1000 do
    out, err, code = self:moonwatch(unpack(arguments))
    local answer = code == 0 and cjson.decode(out)
    if answer and condition(answer) then return answer end
    uv.sleep(20)
  end
  error(("it did not come true: %s%s"):format(out, err), 2)
end

--- The same for a status.
function Rig:status_when(condition, ...) return self:until_json(condition, "status", ...) end

return M
