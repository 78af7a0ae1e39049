-- What a script gives to its next revision: kube.on_unload and kube.on_load.
local core = require "kube._core"
local errors = require "kube._error"

local codec = core.codec
local M = {}

local TEXT_MAX = 1024 * 1024
local unload, load

local function check(what, fn, before)
  if type(fn) ~= "function" then errors.misuse("%s takes a function, not a %s", what, type(fn)) end
  if before then errors.misuse("%s was called at %s: there is one", what, before.place) end
  if not core.task.is_loading() then
    errors.misuse("%s is for the load phase: call it before the first await", what)
  end
  return { fn = fn, place = errors.place() }
end

local function version_of(kube)
  local version = rawget(kube, "state_version")
  if version ~= nil and type(version) ~= "number" then
    errors.misuse("kube.state_version must be a number, not a %s", type(version))
  end
  return version
end

-- As text: what on_unload returned, with the version of its shape.
local function take()
  if not unload then return nil end
  local data = unload.fn()
  if data == nil then return nil end
  local ok, text = pcall(codec.encode, { version = version_of(require "kube"), data = data })
  if not ok then
    error(("what on_unload (%s) returned is not plain data: %s"):format(unload.place, tostring(text)), 0)
  elseif #text > TEXT_MAX then
    error(("what on_unload (%s) returned has %d bytes; 1 MiB is the limit"):format(unload.place, #text), 0)
  end
  return text
end

local function give(text, revision)
  if not load then return end
  local handed = text and codec.decode(text) or {}
  load.fn(handed.data, { from = revision, version = handed.version })
end

local function declare()
  if not (unload or load) then core.program.hand_over(take, give) end
end

--- Calls fn() when the next revision of this script is about to take over. What it returns, plain data of at most
--- 1 MiB, is what that one's on_load gets. It must change nothing: the take-over may still fail.
---@param fn fun(): any
function M.on_unload(fn)
  local checked = check("kube.on_unload", fn, unload)
  declare()
  unload = checked
end

--- Calls fn(data, info) before this script takes over from the revision before, with what its on_unload returned. An
--- error keeps that revision. Not called when the script is the first.
---@param fn fun(data: any, info: { from: string, version?: number }) from: the revision before; version: what
--- kube.state_version was there
function M.on_load(fn)
  local checked = check("kube.on_load", fn, load)
  declare()
  load = checked
end

return M
