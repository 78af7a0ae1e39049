-- `moonwatch sandbox` as a process for specs.
--
--   local sandbox = require("spec.support.sandbox").start { args = { "--plain-http" }, keep = true }
--   -- sandbox.kubeconfig (a path), sandbox.url, sandbox.token, sandbox.ca (a path; nil without TLS)
--   sandbox:ask("POST", "/sandbox/v1/expire")   -- the body of the answer, which must be a good one
--   sandbox:restart()                           -- same port, same objects; needs keep
--   sandbox:stop()                              -- it must leave in order, with nothing alive
local http_client = require "spec.support.http_client"
local run = require "spec.support.run"
local uv = require "luv"

local sandbox = {}
local Sandbox = {}
Sandbox.__index = Sandbox

local function read(path)
  local file = assert(io.open(path))
  local text = file:read("*a")
  file:close()
  return text
end

local function launch(self, address)
  local arguments = { "sandbox", "--listen", address, "--kubeconfig-out", self.kubeconfig }
  for _, argument in ipairs(self._options.args or {}) do arguments[#arguments + 1] = argument end
  if self._options.keep then
    arguments[#arguments + 1] = "--data"
    arguments[#arguments + 1] = self._directory .. "/state"
  end
  self.process = run.start_command(arguments, self._options)
  self.process:wait_line("^Try: ", 30)
end

-- What the kubeconfig says, for clients that do not read one.
local function learn(self)
  local text = read(self.kubeconfig)
  self.url, self.token = text:match("server: (%S+)"), text:match("token: (%S+)")
  local data = text:match("certificate%-authority%-data: (%S+)")
  if data then
    self.ca = self._directory .. "/ca.crt"
    assert(run.sh("base64 -d > " .. self.ca, { stdin = data }).code == 0)
  end
  self._client = http_client.new { url = self.url, ca = self.ca,
    headers = { { "Authorization", "Bearer " .. self.token }, { "Content-Type", "application/json" } } }
end

--- Starts a sandbox and waits until it can be used. options.args: more of its arguments;
--- options.keep: its objects survive a restart; and those of run.start_command.
function sandbox.start(options)
  local directory = assert(uv.fs_mkdtemp("/tmp/mw-sandbox-XXXXXX"))
  local self = setmetatable({ _directory = directory, _options = options or {},
    kubeconfig = directory .. "/kubeconfig" }, Sandbox)
  local ok, problem = pcall(function()
    launch(self, "127.0.0.1:0")
    learn(self)
  end)
  if ok then return self end
  if self.process then self.process:kill("sigkill") end
  self:_remove()
  error("the sandbox did not start: " .. problem, 0)
end

--- Sends a request with the token and returns the body of the answer; raises when it is a failure.
function Sandbox:ask(method, path, body)
  local answer = self._client:request { method = method, path = path, body = body }
  assert(answer.status < 300, ("%s %s: %d %s"):format(method, path, answer.status, answer.body))
  return answer.body
end

function Sandbox:_end()
  if self._client then self._client:close() end
  self.process:kill("sigterm")
  local code = self.process:wait_exit(15)
  assert(code == 0, ("the sandbox left with code %d\n%s"):format(code, self.process.stderr))
end

--- Ends it and starts it again at the same address.
function Sandbox:restart()
  self:_end()
  launch(self, self.url:match("//(.*)$"))
end

function Sandbox:_remove()
  run.sh("rm -rf " .. self._directory) -- clients may keep things in there, too
end

--- Ends it as an operator would; raises when it does not leave in order.
function Sandbox:stop()
  local ok, problem = pcall(self._end, self)
  self:_remove()
  if not ok then error(problem, 0) end
end

return sandbox
