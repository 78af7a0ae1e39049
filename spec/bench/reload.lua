-- luajit reload.lua BINARY KUBECONFIG DIRECTORY COUNT: saves a script that runs, COUNT times, for scripts/bench reload.
--
-- Prints "name value" lines. Of each save: detect, stage, commit, active and first, in milliseconds, with the prefix
-- "c." for a script whose index runs in C and "lua." for one whose index is a function that has changed; there, turn
-- is the longest that the revision before had to wait for the loop between the save and the commit. Last: relists.
local cjson = require "cjson"
local uv = require "luv"

local binary, kubeconfig, directory, count = arg[1], arg[2], arg[3], tonumber(arg[4])
local FILES, FILE_BYTES = 9, 5400
local TIMEOUT = 120

local MAIN = [[
local kube = require "kube"
local now = kube.time.now
local N = %d
for i = 1, %d do require("lib.part" .. i) end

kube.informer("v1/pods"):add_indexers { by_node = %s }

local first = true
kube.controller { name = "bench", resource = "v1/pods", reconcile = function()
  if first then print("run " .. N) end
  first = false
end }

kube.background("turns", function()
  local before = now()
  while true do
    kube.sleep(0)
    local at = now()
    if at - before > 0.001 then print(("turn %%.3f"):format((at - before) * 1000)) end
    before = at
  end
end)
]]

local C_INDEX = '{ path = "spec.nodeName" }'
local LUA_INDEX = 'function(pod) return { pod.spec.nodeName .. "-%d" } end'

-- Seconds of the wall clock, which the log's times are of.
local function wall()
  local seconds, micros = uv.gettimeofday()
  return seconds + micros / 1e6
end

local function save(name, text)
  local path = directory .. "/" .. name
  local file = assert(io.open(path .. "~", "w"))
  file:write(text)
  file:close()
  assert(os.rename(path .. "~", path))
end

local function part(i)
  local lines = {}
  for n = 1, math.ceil(FILE_BYTES / 54) do
    lines[n] = ("function M.f%03d(a, b) return a + b * %04d + #tostring(a) end"):format(n, i * 1000 + n)
  end
  return "local M = {}\n" .. table.concat(lines, "\n") .. "\nreturn M\n"
end

-- ---- the process ----

local seen = { stdout = "", stderr = "" }
local reloaded, runs, turn, ended = nil, 0, 0, nil

local function on_line(line)
  if line:find('"msg":"reloaded"', 1, true) then
    reloaded = cjson.decode(line)
    reloaded.at = wall()
  elseif not line:find("^%l+ [%d.]+$") then
    io.stderr:write(line, "\n")
  end
  runs = tonumber(line:match("^run (%d+)")) or runs
  turn = math.max(turn, tonumber(line:match("^turn ([%d.]+)")) or 0)
end

local function read(pipe, name)
  pipe:read_start(function(_, data)
    if not data then return pipe:close() end
    seen[name] = (seen[name] .. data):gsub("([^\n]*)\n", function(line)
      on_line(line)
      return ""
    end)
  end)
end

local function wait(condition, what)
  local deadline = wall() + TIMEOUT
  while not condition() do
    if ended or wall() > deadline then error(what .. " did not come") end
    uv.run("once")
  end
end

local function start()
  local out, err = uv.new_pipe(false), uv.new_pipe(false)
  local handle
  handle = assert(uv.spawn(binary, {
    args = { "run", directory, "--kubeconfig", kubeconfig, "--log-format", "json",
      "--control", directory .. "/control" },
    stdio = { nil, out, err },
  }, function(code)
    ended = code
    handle:close()
  end))
  read(out, "stdout")
  read(err, "stderr")
  return handle
end

local function lists()
  local pipe = assert(io.popen(("%s status -o json --control %s/control"):format(binary, directory)))
  local status = cjson.decode(pipe:read("*a"))
  pipe:close()
  local sum = 0
  for _, informer in ipairs(status.informers) do sum = sum + informer.lists end
  return sum
end

-- ---- measuring ----

local revision = 0
local function text(lua)
  revision = revision + 1
  return MAIN:format(revision, FILES, lua and LUA_INDEX:format(revision) or C_INDEX)
end

local function say(name, seconds) print(("%s %.3f"):format(name, seconds * 1000)) end

local function measure(lua)
  local prefix = lua and "lua." or "c."
  local source = text(lua)
  reloaded, turn = nil, 0
  local saved = wall()
  save("main.lua", source)
  wait(function() return reloaded end, "the reload")
  if lua then say("lua.turn", turn / 1000) end
  local active = reloaded.at - saved
  wait(function() return runs == revision end, "its first reconcile")
  say(prefix .. "detect", active - reloaded.seconds)
  say(prefix .. "stage", reloaded.seconds)
  say(prefix .. "commit", reloaded.commit)
  say(prefix .. "active", active)
  say(prefix .. "first", wall() - saved)
end

assert(uv.fs_mkdir(directory, 448))
assert(uv.fs_mkdir(directory .. "/lib", 448))
for i = 1, FILES do save(("lib/part%d.lua"):format(i), part(i)) end
save("main.lua", text(false))
local process = start()
wait(function() return runs == revision end, "the first reconcile")
local before = lists()
for _ = 1, count do measure(false) end
for _ = 1, count do measure(true) end
print("relists " .. lists() - before)
process:kill("sigterm")
wait(function() return ended == 0 end, "a good end")
