-- The commands that operate a running process: status and its like. The main program of a state without a host; here is
-- all of Lua, and kube._console.
local console = require "kube._console"

local codec = console.codec
local NOT_THERE, NOT_ALLOWED, REFUSED, TIMED_OUT = 2, 13, 111, 110  -- errno
local PATIENCE = 10

local function fail(fmt, ...)
  io.stderr:write("moonwatch: ", select("#", ...) > 0 and fmt:format(...) or fmt, "\n")
  os.exit(1)
end

-- The socket of the process that is meant.
local function find(options)
  if options.control ~= "" then return options.control end
  local found = console.find()
  if options.pid ~= "" then
    for _, process in ipairs(found) do
      if process.pid == tonumber(options.pid) then return process.path end
    end
    fail("no process %s of yours can be operated: it has ended, was started with --control, or is no moonwatch run",
      options.pid)
  end
  if not found[1] then
    fail("nothing is running: start a script with moonwatch run, or give --control PATH if it was started with that")
  end
  if found[2] then
    local lines = {}
    for i, process in ipairs(found) do
      local status, body = console.request(process.path, "GET", "/status", PATIENCE)
      local scripts = {}
      for _, script in ipairs(status == 200 and codec.decode(body).scripts or {}) do
        scripts[#scripts + 1] = script.script
      end
      lines[i] = ("  --pid %d  %s"):format(process.pid, table.concat(scripts, " "))
    end
    fail("there are several processes; say which:\n%s", table.concat(lines, "\n"))
  end
  return found[1].path
end

-- The decoded answer, and its text; ends the program when there is none.
local function ask(options, method, target, patience)
  local path = find(options)
  local status, body, errno = console.request(path, method, target, patience or PATIENCE)
  if not status then
    if errno == NOT_THERE then fail("nothing listens at %s", path) end
    if errno == REFUSED then fail("nothing listens at %s any more: the process has ended", path) end
    if errno == NOT_ALLOWED then fail("%s belongs to another user: run this as the one who runs the process", path) end
    if errno == TIMED_OUT then
      fail("no answer from %s in %d s: its script keeps the process busy, or it is stopped", path, patience or PATIENCE)
    end
    fail("%s: %s", path, body)
  end
  local ok, answer = pcall(codec.decode, body)
  if not ok or type(answer) ~= "table" then fail("%s does not answer as a moonwatch run does", path) end
  if status >= 400 then fail("%s", answer.error or body) end
  return answer, body
end

local commands = {}

function commands.status(options)
  local status, body = ask(options, "GET", "/status")
  if options.output == "json" then
    print(body)
  else
    print(table.concat(require("kube._console_status").lines(status), "\n"))
  end
  return 0
end

return function(command, output, control, pid, script, controller, once, ...)
  return commands[command]({ output = output, control = control, pid = pid, script = script, controller = controller,
    once = once ~= "" }, ...)
end
