-- kube.time: moments as seconds since 1970, and their text in objects (RFC 3339, UTC).
local errors = require "kube._error"
local options = require "kube._options"
local rfc3339 = require "kube._rfc3339"
local tools = require("kube._core").tools

local M = {}

--- The time of day, in seconds since 1970, with a fraction.
---@return number
function M.now() return tools.now() end

--- The moment that a text such as "2026-11-17T12:00:00Z" names; nil for nil and for what is no time.
---@param text? string
---@return number?
function M.parse(text)
  if type(text) ~= "string" then return nil end
  local seconds, fraction = rfc3339.parse(text)
  if not seconds then return nil end
  return seconds + (fraction ~= "" and tonumber("0." .. fraction) or 0)
end

--- The text of a moment, as objects have it: with whole seconds, or with so many digits behind the point
--- (6 for the fields of Leases and Events that are a MicroTime).
---@param seconds? number since 1970; default: now
---@param digits? integer 0 to 9, default: 0
---@return string
function M.format(seconds, digits)
  seconds, digits = seconds or M.now(), digits or 0
  if type(seconds) ~= "number" or not (seconds >= -62135596800 and seconds < 253402300800) then
    errors.misuse("time.format(seconds, digits): seconds must be a number of seconds since 1970, not %s",
      options.shown(seconds))
  elseif type(digits) ~= "number" or digits < 0 or digits > 9 or digits % 1 ~= 0 then
    errors.misuse("time.format(seconds, digits): digits must be 0 to 9, not %s", options.shown(digits))
  end
  local whole = math.floor(seconds)
  -- Cut, not rounded: a moment is not told before it has come.
  local part = math.floor((seconds - whole) * 10 ^ digits)
  return rfc3339.format(whole, digits > 0 and ("%0" .. digits .. "d"):format(part) or "")
end

--- Seconds that have passed since a moment; nil when there is none.
---@param moment string|number|nil a text of an object, or seconds since 1970
---@return number?
function M.since(moment)
  local seconds = type(moment) == "number" and moment or M.parse(moment)
  return seconds and M.now() - seconds
end

return M
