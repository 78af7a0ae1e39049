-- What one run of `moonwatch test` has, across its specs: the file that runs, the script under test, and the sandbox as
-- it was at the beginning.
local core = require "kube._core"
local sandbox = require "kube.sandbox"
local task = require "kube._task"

local M = {
  pristine = nil, -- a snapshot
  file = nil,     -- of the spec
  script = nil,   -- what core.test.script() made
}

--- Stops the script under test, if there is one, and waits until it has ended.
function M.stop()
  local script = M.script
  if not script then return end
  script:stop()
  task.wait_until(function() return script:has_ended() end, nil, "kube.test")
  M.script = nil
  core.test.forget()
end

--- The specs of a file begin.
---@param name string
function M.enter(name) M.file = name end

--- They are over.
function M.leave()
  M.stop()
  M.file = nil
end

--- Puts the sandbox back to how it was.
function M.reset()
  M.stop()
  sandbox.clear_faults()
  sandbox.thaw()
  sandbox.resume_watches()
  sandbox.restore(M.pristine)
  sandbox.clear_requests()
end

--- Starts a script. Waits; raises nothing, but returns nil and why it does not load.
---@param path string
---@return boolean?
---@return string?
function M.start(path)
  local script, problem = core.test.script(path)
  if not script then return nil, problem end
  M.script = script
  local ok, why = script:start()
  if ok then return true end
  M.stop()
  return nil, why
end

--- A path that is written beside the spec.
---@param path string
---@return string
function M.beside(path)
  if path:find("^/") or not M.file then return path end
  return (M.file:match("^(.*/)") or "") .. path
end

return M
