-- Errors: tables with a code and a message, which print as one sentence.
local meta = require("kube._core").error_meta

local errors = {}

--- Makes a structured error.
---@param code string a short word: "notfound", "timeout", "cancelled"...
---@param message string one sentence for the person who reads it
---@param fields? table further fields
function errors.new(code, message, fields)
  local err = {}
  for key, value in pairs(fields or {}) do err[key] = value end
  err.code, err.message = code, message
  return setmetatable(err, meta)
end

--- Raises misuse of the API as an error at the place where the script called us.
---@param level integer as for error(), counted from the caller of this function
function errors.misuse(level, fmt, ...)
  error(select("#", ...) > 0 and fmt:format(...) or fmt, level + 1)
end

return errors
