-- Runs the real binary on small scripts.
--
--   local run = require "spec.support.run"
--   local result = run.run_script('print("hi")', { args = {}, env = {}, timeout = 10 })
--   -- result.code, result.signal, result.stdout, result.stderr
--   local proc = run.start_script(source, { kubeconfig = path })
--   proc:wait_line("^ready", 5); proc:kill("sigterm"); proc:wait_exit(5)
--
-- A source that is the path of a file (it ends in .lua and is one line) is run where it is; else it
-- is written to script.lua in a directory of its own, beside options.files ({ name = text }).
-- MOONWATCH_LEAK_CHECK is on unless env says otherwise.
local uv = require "luv"
local wait = require "spec.support.wait"

local run = {}

run.binary = (os.getenv("MOONWATCH_BUILD") or "build") .. "/moonwatch"

local function write_file(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

-- The path to run, and what removes it again.
local function place(source, files)
  if source:find("^[^\n]*%.lua$") and not source:find("[%s\"']") then
    return source, function() end
  end
  local directory = assert(uv.fs_mkdtemp("/tmp/mw-XXXXXX"))
  local made = {}
  local function put(name, text)
    local folder = name:match("^(.*)/")
    if folder then uv.fs_mkdir(directory .. "/" .. folder, 448) made[#made + 1] = folder end
    write_file(directory .. "/" .. name, text)
    made[#made + 1] = name
  end
  put("script.lua", source)
  for name, text in pairs(files or {}) do put(name, text) end
  return directory .. "/script.lua", function()
    for i = #made, 1, -1 do os.remove(directory .. "/" .. made[i]) end
    uv.fs_rmdir(directory)
  end
end

local function environment(extra)
  local all = { MOONWATCH_LEAK_CHECK = "1" }
  for name, value in pairs(uv.os_environ()) do all[name] = value end
  for name, value in pairs(extra or {}) do all[name] = value or nil end
  local list = {}
  for name, value in pairs(all) do list[#list + 1] = name .. "=" .. value end
  return list
end

local Process = {}
Process.__index = Process

local function read_into(self, pipe, name)
  pipe:read_start(function(err, data)
    assert(not err, err)
    if data then
      self[name] = self[name] .. data
    else
      self._open = self._open - 1
      pipe:close()
    end
  end)
end

local function spawn(program, arguments, options)
  local self = setmetatable({ stdout = "", stderr = "", _open = 2, _lines = {}, _parsed = 0 },
    Process)
  local stdin, stdout, stderr = uv.new_pipe(false), uv.new_pipe(false), uv.new_pipe(false)
  local pid
  self._handle, pid = uv.spawn(options.cwd and assert(uv.fs_realpath(program)) or program, {
    args = arguments,
    cwd = options.cwd,
    env = environment(options.env),
    stdio = { stdin, stdout, stderr },
  }, function(code, signal)
    self.code, self.signal = code, signal
    self._handle:close()
  end)
  assert(self._handle, ("%s: %s"):format(program, tostring(pid)))
  self.pid = pid
  read_into(self, stdout, "stdout")
  read_into(self, stderr, "stderr")
  if options.stdin then stdin:write(options.stdin) end
  stdin:shutdown(function() stdin:close() end)
  return self
end

--- Starts the binary with arguments and returns at once. options: env, cwd, stdin.
function run.start_command(arguments, options)
  assert(uv.fs_access(run.binary, "X"), run.binary .. " is not there: run scripts/build")
  return spawn(run.binary, arguments, options or {})
end

--- Starts `moonwatch run` on a script and returns at once.
function run.start_script(source, options)
  options = options or {}
  local path, remove = place(source, options.files)
  local arguments = { "run", path }
  if options.kubeconfig then
    arguments[#arguments + 1] = "--kubeconfig"
    arguments[#arguments + 1] = options.kubeconfig
  end
  for _, argument in ipairs(options.args or {}) do arguments[#arguments + 1] = argument end
  local proc = run.start_command(arguments, options)
  proc._remove = remove
  return proc
end

--- Sends a signal by name ("sigterm"); nothing when the process has ended.
function Process:kill(signal)
  if not self.code then self._handle:kill(signal or "sigterm") end
  if signal == "sigkill" then self:wait_exit(10) end
end

--- Whether the process ends within so many seconds.
function Process:ends_within(seconds)
  return wait(function() return self.code ~= nil end, seconds)
end

--- The exit code once the process has ended and all its output was read; raises after timeout.
--- A process that was ended by a signal has 128 + its number.
function Process:wait_exit(timeout)
  local ended = wait(function() return self.code and self._open == 0 end, timeout or 10)
  if not ended then
    if not self.code then self._handle:kill("sigkill") end
    wait(function() return self.code and self._open == 0 end, 5)
  end
  if self._remove then self._remove() end
  self._remove = nil
  assert(ended, ("not ended after %g s\nstdout:\n%s\nstderr:\n%s"):format(timeout or 10,
    self.stdout, self.stderr))
  return self.signal ~= 0 and 128 + self.signal or self.code
end

function Process:_take_line(pattern)
  while true do
    local stop = self.stdout:find("\n", self._parsed + 1, true)
    if not stop then break end
    self._lines[#self._lines + 1] = self.stdout:sub(self._parsed + 1, stop - 1)
    self._parsed = stop
  end
  for i, line in ipairs(self._lines) do
    if line:find(pattern) then return table.remove(self._lines, i) end
  end
end

--- The first line of stdout that matches and was not returned before; raises after timeout.
function Process:wait_line(pattern, timeout)
  local line
  wait(function()
    line = line or self:_take_line(pattern)
    return line ~= nil or (self.code ~= nil and self._open == 0)
  end, timeout or 10)
  return line or error(("no line %q in %g s\nstdout:\n%s\nstderr:\n%s"):format(pattern,
    timeout or 10, self.stdout, self.stderr), 2)
end

--- Waits until stderr matches; raises after timeout.
function Process:wait_stderr(pattern, timeout)
  local found = wait(function()
    return self.stderr:find(pattern) ~= nil or (self.code ~= nil and self._open == 0)
  end, timeout or 10) and self.stderr:find(pattern)
  if not found then
    error(("no %q on stderr in %g s:\n%s"):format(pattern, timeout or 10, self.stderr), 2)
  end
end

local function finish(proc, options)
  if options.sigterm_after then
    wait(function() return proc.code end, options.sigterm_after)
    proc:kill("sigterm")
  end
  local code = proc:wait_exit(options.timeout or 10)
  return { code = code, stdout = proc.stdout, stderr = proc.stderr }
end

--- Runs a script to its end. options.sigterm_after: seconds until it is asked to stop.
function run.run_script(source, options)
  options = options or {}
  return finish(run.start_script(source, options), options)
end

--- Runs the binary with these arguments to its end.
function run.run_command(arguments, options)
  options = options or {}
  return finish(run.start_command(arguments, options), options)
end

--- Runs a shell command to its end, without the sanitizer that may be preloaded here. Also:
--- options.stdin, the input.
function run.sh(command, options)
  options = options or {}
  local env = { LD_PRELOAD = false }
  for name, value in pairs(options.env or {}) do env[name] = value end
  return finish(spawn("/bin/sh", { "-c", command }, { env = env, stdin = options.stdin }), options)
end

return run
