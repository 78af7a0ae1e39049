-- kubectl as a process, with a home of its own, and what it says made comparable.
--
--   local kubectl = require("spec.support.kubectl").new(path, kubeconfig)
--   local result = kubectl:run("get cm -o name", { input = "..." })   -- code, stdout, stderr
--   local process = kubectl:start("get cm -w"); process:wait(function(p) ... end, 5); process:stop()
--   kubectl:close()
local http_client = require "spec.support.http_client"
local run = require "spec.support.run"
local uv = require "luv"

local kubectl = {}
local Kubectl, Process = {}, {}
Kubectl.__index, Process.__index = Kubectl, Process

--- The kubectl at `path`, for the server of a kubeconfig.
function kubectl.new(path, kubeconfig)
  local home = assert(uv.fs_mkdtemp("/tmp/mw-kubectl-XXXXXX"))
  return setmetatable({ path = path, kubeconfig = kubeconfig, home = home }, Kubectl)
end

local function read_into(self, pipe, name)
  self[name] = ""
  pipe:read_start(function(_, data)
    if data then
      self[name] = self[name] .. data
    else
      self._open = self._open - 1
      pipe:close()
    end
  end)
end

--- Starts a command, a line for the shell without the word kubectl. options: input, editor.
function Kubectl:start(line, options)
  options = options or {}
  local self_process = setmetatable({ _open = 2 }, Process)
  local stdin, stdout, stderr = uv.new_pipe(false), uv.new_pipe(false), uv.new_pipe(false)
  local handle, problem
  handle, problem = uv.spawn("/bin/sh", {
    args = { "-c", ("exec %s %s"):format(self.path, line) },
    env = { "PATH=" .. os.getenv("PATH"), "HOME=" .. self.home, "KUBECONFIG=" .. self.kubeconfig,
      "KUBE_EDITOR=" .. (options.editor or "false"), "TMPDIR=" .. self.home, "LC_ALL=C" },
    stdio = { stdin, stdout, stderr },
  }, function(code, signal)
    self_process.code = signal ~= 0 and 128 + signal or code
    handle:close()
  end)
  assert(handle, problem)
  self_process._handle = handle
  read_into(self_process, stdout, "stdout")
  read_into(self_process, stderr, "stderr")
  if options.input then stdin:write(options.input) end
  stdin:shutdown(function() stdin:close() end)
  return self_process
end

--- Waits until condition(process) holds; whether it did in time.
function Process:wait(condition, seconds)
  return http_client.wait(function() return condition(self) or (self.code and self._open == 0) end, seconds)
    and condition(self) and true or false
end

--- Ends it, if it has not ended itself, and waits for that.
function Process:stop()
  if not self.code then self._handle:kill("sigterm") end
  http_client.wait(function() return self.code and self._open == 0 end, 10)
end

--- Runs a command to its end.
function Kubectl:run(line, options)
  local process = self:start(line, options)
  local ended = http_client.wait(function() return process.code and process._open == 0 end, 60)
  if not ended then process:stop() end
  assert(ended, "kubectl " .. line .. " did not end\n" .. process.stdout .. process.stderr)
  return process
end

function Kubectl:close() run.sh("rm -rf '" .. self.home .. "'") end

--- Without what is a matter of time or of the machine: ages, widths of columns, scratch files.
function kubectl.plain(text)
  -- Who owns what is sorted by time there.
  text = text:gsub("\n  Managed Fields:.-(\n  %u)", "%1")
  text = text:gsub("/[%w%-/]*mw%-kubectl%-%w+", "<home>")
  text = text:gsub("(<home>/[%u]+)%-%d+", "%1"):gsub("(/%w+%-)%d+", "%1<number>")
  text = text:gsub("%d%d%d%d%-%d%d%-%d%d %d%d:%d%d:%d%d%.%d+ [%+%-]%d%d%d%d", "<instant>")
  text = text:gsub("%u%l%l, %d%d %u%l%l %d%d%d%d %d%d:%d%d:%d%d [%+%-]%d%d%d%d", "<instant>")
  text = text:gsub("(%s)%d+[smhd]%d*[smh]?(%s)", "%1<age>%2"):gsub("(Resource Version: +)%d+", "%1<rv>")
  text = text:gsub("10%.%d+%.%d+%.%d+", "<ip>"):gsub("192%.0%.2%.%d+", "<ip>")
  text = text:gsub(" +\n", "\n"):gsub("   +", "  ")
  return text
end

return kubectl
