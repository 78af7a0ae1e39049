-- What tells one function from another across the states of a reload: its code, its constants and the names of its
-- upvalues, but not what these hold, and no line numbers. Two loads of the same text give the same.
local core = require "kube._core"
local encoding = require "kube._encoding"

local util = core.bytecode -- jit.util

local LENGTH = 16

local describe

-- A table constructor's constants come in an order of their own in every state.
local function table_text(t)
  local parts = {}
  for key, value in pairs(t) do parts[#parts + 1] = describe(key) .. "=" .. describe(value) end
  table.sort(parts)
  return "{" .. table.concat(parts, ",") .. "}"
end

local function code_text(fn)
  local info = util.funcinfo(fn)
  if not info.bytecodes then return ("native %d"):format(info.ffid or 0) end
  local parts = { ("function %d %s %d %d"):format(info.params, info.isvararg, info.stackslots, info.upvalues) }
  for i = 0, info.upvalues - 1 do parts[#parts + 1] = tostring(util.funcuvname(fn, i)) end
  for pc = 1, info.bytecodes - 1 do parts[#parts + 1] = ("%x"):format((util.funcbc(fn, pc))) end
  for i = -info.gcconsts, -1 do parts[#parts + 1] = describe(util.funck(fn, i)) end
  for i = 0, info.nconsts - 1 do parts[#parts + 1] = describe(util.funck(fn, i)) end
  return table.concat(parts, " ")
end

function describe(constant)
  local kind = type(constant)
  if kind == "string" then return ("%q"):format(constant) end
  if kind == "number" then return ("%.17g"):format(constant) end
  if kind == "table" then return table_text(constant) end
  if kind == "proto" or kind == "function" then return code_text(constant) end
  return tostring(constant)
end

--- A short text that stands for what fn does.
---@param fn function
---@return string
return function(fn) return encoding.sha256(code_text(fn)):sub(1, LENGTH) end
