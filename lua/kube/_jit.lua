-- Whether a script is compiled: kube.jit.
local core = require "kube._core"
local errors = require "kube._error"

local M = {}

--- "on": this script is compiled with LuaJIT from its first await on. Arithmetic is several times faster, reading
--- objects hardly. Compiled code cannot be interrupted: a loop that never ends holds up every script of the process,
--- until --stuck-timeout ends it. "off": it is interpreted, and stopped at its limits, as all scripts are that say
--- nothing. Before the first await; each revision says it for itself.
---@param mode "on"|"off"
function M.jit(mode)
  if mode ~= "on" and mode ~= "off" then
    errors.misuse("kube.jit takes \"on\" or \"off\", not %s", type(mode) == "string" and ("%q"):format(mode)
      or "a " .. type(mode))
  elseif not core.task.is_loading() then
    errors.misuse("kube.jit is for the load phase: call it before the first await")
  end
  core.program.jit(mode == "on")
end

return M
