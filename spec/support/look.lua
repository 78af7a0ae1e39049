-- `moonwatch check` and `moonwatch rbac` on scripts of specs.
--
--   local path = look.directory { ["main.lua"] = "..." }
--   local out, err, code = look.moonwatch("check", path .. "/main.lua")
local cleanup = require "spec.support.cleanup"
local run = require "spec.support.run"
local uv = require "luv"

local look = {}

--- Writes files, by name, into a directory of their own; its path.
function look.directory(files)
  local path = assert(uv.fs_mkdtemp("/tmp/mw-XXXXXX"))
  local folders = {}
  for name, text in pairs(files) do
    local folder = name:match("^(.*)/")
    if folder and not folders[folder] then
      folders[folder] = true
      assert(uv.fs_mkdir(path .. "/" .. folder, 448))
    end
    local file = assert(io.open(path .. "/" .. name, "w"))
    file:write(text)
    file:close()
  end
  cleanup.later(function()
    for name in pairs(files) do os.remove(path .. "/" .. name) end
    for folder in pairs(folders) do uv.fs_rmdir(path .. "/" .. folder) end
    uv.fs_rmdir(path)
  end)
  return path
end

--- Writes one script; its path.
function look.script(text) return look.directory { ["main.lua"] = text } .. "/main.lua" end

--- Runs the binary where there is no cluster; stdout, stderr and the exit code.
function look.moonwatch(...)
  local result = run.run_command({ ... }, { timeout = 60,
    env = { KUBECONFIG = "/nonexistent", HOME = "/nonexistent" } })
  return result.stdout, result.stderr, result.code
end

return look
