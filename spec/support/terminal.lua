-- A terminal of its own size, in tmux, and a command in it.
--
--   local screen = terminal.open(100, 30, "moonwatch top", { TMPDIR = path })
--   screen:wait("running")            -- what it shows, once that matches
--   screen:press("C-c")
--   screen:wait("left with 0")        -- what is shown when the command has ended
--
-- It is closed after the spec.
local cleanup = require "spec.support.cleanup"
local run = require "spec.support.run"
local uv = require "luv"

local terminal = {}
local Screen = {}
Screen.__index = Screen

local opened = 0

local function quote(word) return "'" .. word:gsub("'", "'\\''") .. "'" end

function Screen:_tmux(...)
  local words = { "tmux", "-L", self._name, "-f", "/dev/null" }
  for _, word in ipairs { ... } do words[#words + 1] = quote(word) end
  return run.sh(table.concat(words, " "), { env = self._env })
end

function terminal.open(columns, rows, command, env)
  opened = opened + 1
  local self = setmetatable({ _name = ("mw-%d-%d"):format(uv.os_getpid(), opened), _env = env }, Screen)
  cleanup.later(function() self:close() end)
  local started = self:_tmux("new-session", "-d", "-x", tostring(columns), "-y", tostring(rows),
    command .. "; echo left with $?; exec cat")
  assert(started.code == 0, started.stderr)
  return self
end

--- Waits until what it shows matches, and returns that.
function Screen:wait(pattern)
  local shown
  for _ = 1, 1000 do
    shown = self:_tmux("capture-pane", "-p").stdout
    if shown:find(pattern) then return shown end
    uv.sleep(20)
  end
  error(("no %q on the terminal:\n%s"):format(pattern, shown), 2)
end

function Screen:press(key) self:_tmux("send-keys", key) end

function Screen:resize(columns, rows)
  self:_tmux("resize-window", "-x", tostring(columns), "-y", tostring(rows))
end

function Screen:close() self:_tmux("kill-server") end

return terminal
