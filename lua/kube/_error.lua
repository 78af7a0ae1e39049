-- Errors: tables with a code and a message, which print as one sentence.
local core = require "kube._core"

local errors = {}

--- Makes a structured error.
---@param code string a short word: "notfound", "timeout", "cancelled"...
---@param message string one sentence for the person who reads it
---@param fields? table further fields
function errors.new(code, message, fields)
  local err = {}
  for key, value in pairs(fields or {}) do err[key] = value end
  err.code, err.message = code, message
  return setmetatable(err, core.error_meta)
end

--- Raises misuse of the API, with the line of the script that called us.
function errors.misuse(fmt, ...)
  error(core.where() .. (select("#", ...) > 0 and fmt:format(...) or fmt), 0)
end

--- The line of the script that called us, for log lines.
---@return string
function errors.place() return (core.where():gsub(": $", "")) end

return errors
