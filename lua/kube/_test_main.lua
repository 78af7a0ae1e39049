-- `moonwatch test`: busted, run as the main task of a host with a sandbox. Specs are part of that task, so they may
-- await. Here is all of Lua, and kube._core.test.
local core = require "kube._core"
local run = require "kube._test_run"
local sandbox = require "kube.sandbox"
local task = require "kube._task"
-- Loaded now: busted forgets what the specs of a file have loaded when it ends.
require "kube"
require "kube.test"

local ENDED = {} -- raised where busted would end the process

local function complain(message, ...)
  io.stderr:write("moonwatch: ", message:format(...), "\n")
  return 1
end

-- The arguments as busted takes them.
local function arguments()
  local words = { [0] = "moonwatch test", "--ignore-lua", "--pattern=_spec%.lua$" }
  for _, word in ipairs(core.test.arguments()) do words[#words + 1] = word end
  return words
end

-- Makes busted tell which file it is in, and end with an error of ours instead of the process.
local function tame(compatibility, make)
  local code = 0
  compatibility.exit = function(status)
    code = status ~= 0 and 1 or 0
    error(ENDED, 0)
  end
  package.loaded["busted.core"] = function()
    local busted = make()
    busted.subscribe({ "file", "start" }, function(file)
      run.enter(file.name)
      return nil, true
    end)
    busted.subscribe({ "file", "end" }, function()
      run.leave()
      return nil, true
    end)
    return busted
  end
  rawset(os, "exit", function() error("os.exit() is not for specs: the process ends when all of them have run", 2) end)
  return function() return code end
end

local function main()
  -- What lies beside the specs comes last: a controller in term.lua is not the module term of busted.
  package.path = package.path:gsub("^%./%?%.lua;", "") .. ";./?.lua"
  local found, compatibility = pcall(require, "busted.compatibility")
  if not found then
    return complain("the specs need busted, which is not installed: apt-get install lua-busted, or luarocks "
      .. "--lua-version 5.1 install busted")
  end
  local code = tame(compatibility, require "busted.core")
  _G.arg = arguments()
  io.stdout:setvbuf("line") -- what specs print stands between the lines of the log
  run.pristine = sandbox.snapshot()
  local ok, err = xpcall(require "busted.runner", function(err)
    return err == ENDED and ENDED or debug.traceback(tostring(err), 2)
  end, { standalone = false })
  run.leave()
  io.stdout:flush()
  if not ok and err ~= ENDED then return complain("busted failed: %s", err) end
  return code()
end

task.park("the specs")
core.task.shutdown(main())
