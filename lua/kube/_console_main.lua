-- The commands that operate a running process: status and its like. The main program of a state without a host; here is
-- all of Lua, and kube._console.
local console = require "kube._console"
local text = require "kube._console_text"

local codec = console.codec
local NOT_THERE, NOT_ALLOWED, BROKEN, RESET, REFUSED, TIMED_OUT = 2, 13, 32, 104, 111, 110  -- errno
local PATIENCE, LIST_PATIENCE = 10, 1
local RELOAD_PATIENCE = 150  -- caches may have to fill, and older revisions to end

local Failure = {}

-- Ends the command with a sentence.
local function fail(fmt, ...) error(setmetatable({ sentence = fmt:format(...) }, Failure), 0) end

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
      local status, body = console.request(process.path, "GET", "/status", LIST_PATIENCE)
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

-- Why there is no answer.
local function silence(path, reason, errno, patience)
  if errno == NOT_THERE then return ("nothing listens at %s"):format(path) end
  if errno == REFUSED or errno == RESET or errno == BROKEN then
    return ("nothing listens at %s any more: the process has ended"):format(path)
  end
  if errno == NOT_ALLOWED then
    return ("%s belongs to another user: run this as the one who runs the process"):format(path)
  end
  if errno == TIMED_OUT then
    return ("no answer from %s in %d s: its script keeps the process busy, or it is stopped"):format(path, patience)
  end
  return ("%s: %s"):format(path, reason)
end

-- The decoded answer, and its text; or nil and a sentence.
local function try(path, method, where, patience)
  patience = patience or PATIENCE
  local status, body, errno = console.request(path, method, where, patience)
  if not status then return nil, silence(path, body, errno, patience) end
  local ok, answer = pcall(codec.decode, body)
  if not ok or type(answer) ~= "table" then
    return nil, ("%s does not answer as a moonwatch run does"):format(path)
  end
  if status >= 400 then return nil, answer.error or body end
  return answer, body
end

-- The same; ends the program when there is none.
local function ask(options, method, where, patience)
  local answer, body = try(find(options), method, where, patience)
  if not answer then fail("%s", body) end
  return answer, body
end

local function encode(value)
  return (value:gsub("[^%w._~/-]", function(c) return ("%%%02X"):format(c:byte()) end))
end

-- "/path?name=value&...", without the values that are empty.
local function target(path, values)
  local parts = {}
  for name, value in pairs(values) do
    if value and value ~= "" then parts[#parts + 1] = name .. "=" .. encode(value) end
  end
  return path .. (parts[1] and "?" .. table.concat(parts, "&") or "")
end

-- What became of a revision, in words.
local OUTCOMES = {
  active = "%s: revision %s is active, in place of %s",
  unchanged = "%s: revision %s is active already; nothing has changed",
  failed = "%s: revision %s failed, and %s goes on:",
  held = "%s: revision %s waits, and %s goes on, because reloads are held; release them with: moonwatch hold off",
  replaced = "%s: another revision came after %s; active is %s",
  ended = "%s: the process ends; revision %s is not active, %s was",
  pending = "%s: revision %s is not active yet; %s goes on",
}
-- The same when nothing was active.
local FIRST_OUTCOMES = {
  active = "%s: revision %s is active",
  failed = "%s: revision %s does not load; it starts as soon as its files are mended:",
  held = "%s: revision %s waits, because reloads are held; release them with: moonwatch hold off",
  replaced = "%s: another revision came after %s; none is active yet",
  ended = "%s: the process ends; revision %s is not active",
  pending = "%s: revision %s is not active yet",
}
local DONE = { active = true, unchanged = true }

-- Tells what became of the revisions that were asked for; the exit code.
local function tell_outcomes(options, answer, body)
  local code = 0
  for _, script in ipairs(answer.scripts) do
    if not DONE[script.result] then code = 1 end
    local other = script.result == "active" and script.before or script.active
    local out = DONE[script.result] and io.stdout or io.stderr
    if options.output ~= "json" then
      if script.revision then
        out:write((other ~= "" and OUTCOMES or FIRST_OUTCOMES)[script.result]:format(script.script, script.revision,
          other), "\n")
      else
        out:write(script.script, ": cannot be read", other ~= "" and (", and revision %s goes on:"):format(other)
          or ":", "\n")
      end
      if script.report then out:write(text.indent(script.report, "  "), "\n") end
    end
  end
  if options.output == "json" then print(body) end
  return code
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

function commands.reload(options)
  return tell_outcomes(options, ask(options, "POST", target("/reload", { script = options.script }), RELOAD_PATIENCE))
end

function commands.rollback(options, revision)
  return tell_outcomes(options, ask(options, "POST", target("/rollback", { script = options.script,
    revision = revision }), RELOAD_PATIENCE))
end

function commands.hold(options, switch)
  local on = switch ~= "off"
  local status, body = ask(options, "POST", target("/hold", { script = options.script, on = tostring(on) }))
  if options.output == "json" then
    print(body)
    return 0
  end
  for _, script in ipairs(status.scripts) do
    if (script.held_since ~= nil) == on then
      print(("%s: %s"):format(script.script, on and "reloads are held; release them with: moonwatch hold off"
        or "reloads are taken again"))
    end
  end
  return 0
end

function commands.why(options, key)
  local answer, body = ask(options, "GET", target("/why", { key = key, controller = options.controller }))
  if options.output == "json" then
    print(body)
  else
    print(table.concat(require("kube._console_why").lines(key, answer), "\n"))
  end
  return 0
end

function commands.enqueue(options, controller, key)
  local answer, body = ask(options, "POST", target("/enqueue", { controller = controller, key = key }))
  if options.output == "json" then
    print(body)
    return 0
  end
  local known = answer.scripts[1].controllers[1]
  print(("%s is queued for %s%s"):format(key, controller, known and known.object and ""
    or "; there is no such object in the cache, so reconcile gets nil"))
  return 0
end

function commands.top(options)
  local top = require "kube._console_top"
  local path = find(options)
  local function look() return try(path, "GET", "/top") end
  if options.output ~= "json" and not options.once and console.is_terminal() then
    local problem = top.run(look)
    if problem then fail("%s", problem) end
    return 0
  end
  local answer, body = look()
  if not answer then fail("%s", body) end
  print(options.output == "json" and body or table.concat(top.lines(answer), "\n"))
  return 0
end

return function(command, output, control, pid, script, controller, once, ...)
  local ok, code = pcall(commands[command], { output = output, control = control, pid = pid, script = script,
    controller = controller, once = once ~= "" }, ...)
  if ok then return code end
  if getmetatable(code) ~= Failure then error(code, 0) end
  io.stderr:write("moonwatch: ", code.sentence, "\n")
  return 1
end
