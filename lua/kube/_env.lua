-- The environment of scripts: what is in a new state is cut down to what a script may use. Run once
-- per state by the host, after the bindings are in place; `host` holds what only C can do.
local host = ...

local error, load, pairs = error, load, pairs
local select, setmetatable, tonumber, tostring, type = select, setmetatable, tonumber, tostring, type
local concat = table.concat
local stdout = host.answers and io.stderr or io.stdout
local options = require "kube._options"
local hide_status = require("kube._core").log.hide_status
local where = require("kube._core").where

-- Coroutines. An await yields a private tag, which every resume in between hands on upwards, and
-- the answer comes down the same way; so a generator may await. A task's own stack looks like the
-- main one: it cannot be resumed or yielded by hand.
local create, resume, yield = coroutine.create, coroutine.resume, coroutine.yield
local running, status = coroutine.running, coroutine.status
local nest, unnest, owns_stack, tag = host.nest, host.unnest, host.owns_stack, host.tag
local awaiting = setmetatable({}, { __mode = "k" })
local hand_down

local function hand_up(co, ok, first, ...)
  unnest()
  if ok and first == tag then
    awaiting[co] = true
    return hand_down(co, yield(tag))
  end
  return ok, first, ...
end

function hand_down(co, ...)
  awaiting[co] = nil
  nest()
  return hand_up(co, resume(co, ...))
end

local function relayed_resume(co, ...)
  if type(co) ~= "thread" then
    error("bad argument #1 to 'resume' (coroutine expected, got " .. type(co) .. ")", 2)
  end
  if awaiting[co] then return false, "cannot resume a coroutine that awaits" end
  return hand_down(co, ...)
end

local function unwrap(ok, ...)
  if ok then return ... end
  error((...), 0)
end

local relayed = {
  create = create,
  resume = relayed_resume,
  status = status,
  running = function()
    if owns_stack() then return nil end
    return running()
  end,
  isyieldable = function() return not owns_stack() end,
  wrap = function(f)
    local co = create(f)
    return function(...) return unwrap(relayed_resume(co, ...)) end
  end,
  yield = function(...)
    if owns_stack() then
      error("attempt to yield from outside a coroutine; to let others run, use kube.sleep(0)", 2)
    end
    return yield(...)
  end,
}

-- A message handler may fail, or run for ever.
local xpcall, guard_handler = xpcall, host.guard_handler

local function guarded_xpcall(f, handler, ...)
  if type(handler) ~= "function" then return xpcall(f, handler, ...) end
  return xpcall(f, guard_handler(handler), ...)
end

-- Source code comes as text only, from the files of the bundle.
local function load_text(chunk, name, _, ...)
  return load(chunk, name, "t", ...)
end

local function search_bundle(name)
  if not name:find("^[%w_%-%.]+$") or name:find("..", 1, true) then
    return "\n\tonly names of letters, digits, '_', '-' and '.' are looked up in files"
  end
  local chunk = host.find(name)
  if chunk then return chunk end
  return ("\n\tno file '%s.lua' or '%s/init.lua' belongs to %s"):format(name:gsub("%.", "/"), name:gsub("%.", "/"),
    host.origin)
end

local package = package
for i = #package.loaders, 2, -1 do package.loaders[i] = nil end
package.loaders[2] = search_bundle

-- Libraries.
local os, collect, traceback = os, collectgarbage, debug.traceback
local allowed_collect = { count = true, collect = true, step = true }

local function no_exit()
  error("os.exit is not available to scripts: one ends when nothing is left to do, and fails with error(message)", 2)
end

local replaced = {
  coroutine = relayed,
  xpcall = guarded_xpcall,
  debug = { traceback = traceback },
  os = options.library({ time = os.time, date = os.date, clock = os.clock, getenv = os.getenv,
                         difftime = os.difftime, exit = no_exit }, "the os of scripts"),
  load = load_text,
  loadstring = function(text, name) return load(text, name or text, "t") end,
  collectgarbage = function(what, ...)
    what = what or "collect"
    if not allowed_collect[what] then
      error(("collectgarbage(%q) is not available to scripts"):format(tostring(what)), 2)
    end
    return collect(what, ...)
  end,
  print = function(...)
    local parts = {}
    for i = 1, select("#", ...) do parts[i] = tostring((select(i, ...))) end
    hide_status()
    local ok, message = stdout:write(concat(parts, "\t"), "\n")
    if ok then ok, message = stdout:flush() end
    if not ok then error("print: " .. message, 2) end
  end,
}
local by_require = "require \"name\" loads the file name.lua beside the script"
-- And what to use instead.
local removed = {
  io = "print() writes a line, log.info() logs one, and kube.store keeps values for the next revision",
  dofile = by_require, loadfile = by_require, module = by_require, package = by_require,
  gcinfo = "collectgarbage(\"count\") tells the KiB in use",
  jit = "kube.jit \"on\" has the script compiled",
  ffi = "what a script can do is in kube",
  newproxy = "setmetatable({}, ...) makes a table with a metatable",
}
for name, value in pairs(replaced) do _G[name] = value end
for name in pairs(removed) do _G[name] = nil end
rawset(string, "dump", nil)

-- One typing error in a count should not take all of the memory.
local rep, rep_max = string.rep, 16 * 1024 * 1024
rawset(string, "rep", function(s, n, separator)
  local each = #tostring(s) + (separator and #tostring(separator) or 0)
  if each == 0 then return "" end
  if each * (tonumber(n) or 0) > rep_max then
    error(("string.rep would make a string of %.0f bytes; %d are the most"):format(each * n, rep_max), 2)
  end
  return rep(s, n, separator)
end)

for name in pairs(package.loaded) do
  if name:find("^jit") or name == "ffi" or name == "io" or name == "package" then
    package.loaded[name] = nil
  elseif replaced[name] then
    package.loaded[name] = replaced[name]
  end
end
local function refuse_server_module(name)
  error(('%s%s is part of the sandbox\'s server and not for scripts; require "kube.sandbox" has the calls to it')
    :format(where(), name), 0)
end
for name in pairs(package.preload) do
  if not (name:find("^kube") or name:find("^cjson")) then
    package.preload[name] = nil
  elseif name:find("^kube%.sandbox%.") then
    package.preload[name] = refuse_server_module
  end
end

-- Globals are what is here: nothing can be added, and what is not there cannot be read by mistake.
-- kube and log come on first use.
local require = require
local provided = {}

local function undefined(_, name)
  if name == "kube" then
    provided.kube = require "kube"
    return provided.kube
  elseif name == "log" then
    provided.log = require("kube").log
    return provided.log
  elseif removed[name] then
    error(("scripts have no '%s': %s"):format(name, removed[name]), 2)
  end
  local names = { kube = true, log = true }
  for known in pairs(_G) do names[known] = true end
  local near = options.nearest(tostring(name), names)
  error(("undefined variable '%s'%s"):format(tostring(name),
    near and ("; did you mean '%s'?"):format(near) or ""), 2)
end

local function undeclared(_, name)
  if name == "kube" or name == "log" then
    error(("'%s' is read-only; write local %s"):format(name, name), 2)
  end
  error(("variable '%s' is not declared; write local %s"):format(tostring(name), tostring(name)), 2)
end

setmetatable(_G, {
  __index = setmetatable(provided, { __index = undefined }),
  __newindex = undeclared,
  __metatable = false,
})
