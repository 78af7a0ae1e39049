-- `moonwatch sandbox` as a process for specs.
--
--   local sandbox = require("spec.support.sandbox").start()
--   -- sandbox.kubeconfig (a path), sandbox.url, sandbox.token
--   sandbox:stop()    -- it must leave in order, with nothing alive
local run = require "spec.support.run"
local uv = require "luv"

local sandbox = {}
local Sandbox = {}
Sandbox.__index = Sandbox

local function read(path)
  local file = io.open(path)
  if not file then return "" end
  local text = file:read("*a")
  file:close()
  return text
end

--- Starts a sandbox and waits until it can be used. options.args: more of its arguments.
function sandbox.start(options)
  local directory = assert(uv.fs_mkdtemp("/tmp/mw-sandbox-XXXXXX"))
  local self = setmetatable({ _directory = directory, kubeconfig = directory .. "/kubeconfig" }, Sandbox)
  local arguments = { "sandbox", "--listen", "127.0.0.1:0", "--kubeconfig-out", self.kubeconfig }
  for _, argument in ipairs(options and options.args or {}) do arguments[#arguments + 1] = argument end
  self.process = run.start_command(arguments, options)
  local text
  for _ = 1, 500 do
    text = read(self.kubeconfig)
    if text:find("contexts:") or self.process:ends_within(0.02) then break end
  end
  self.url, self.token = text:match("server: (%S+)"), text:match("token: (%S+)")
  if not self.url then
    self:_remove()
    error("the sandbox did not start:\n" .. self.process.stderr, 2)
  end
  return self
end

function Sandbox:_remove()
  os.remove(self.kubeconfig)
  uv.fs_rmdir(self._directory)
end

--- Ends it as an operator would; raises when it does not leave in order.
function Sandbox:stop()
  self.process:kill("sigterm")
  local code = self.process:wait_exit(15)
  self:_remove()
  assert(code == 0, ("the sandbox left with code %d\n%s"):format(code, self.process.stderr))
end

return sandbox
