-- kube.duration: spans of time as Go writes them ("1h30m0s"), which is how objects have them; in Lua they
-- are seconds.
local errors = require "kube._error"
local options = require "kube._options"

local M = {}

local UNITS = { ns = 1, us = 1e3, ["µs"] = 1e3, ["μs"] = 1e3, ms = 1e6, s = 1e9, m = 60e9, h = 3600e9 }
local NANOSECONDS_MAX = 2 ^ 63
local SECONDS_MAX = 2 ^ 63 / 1e9

--- Seconds of a text such as "1h30m", "1.5s" or "300ms"; nil and what is wrong when it is no duration.
---@param text string
---@return number?
---@return string? problem
function M.parse(text)
  if type(text) ~= "string" then return nil, ("a duration is a text as \"1h30m\", not a %s"):format(type(text)) end
  local sign, rest = text:match("^([+-]?)(.*)$")
  if rest == "0" then return 0 end
  local total, at = 0, 1
  while at <= #rest or at == 1 do
    local number, unit, stop = rest:match("^([%d.]+)([^%d.]+)()", at)
    local factor = UNITS[unit]
    if not factor or not number:find("%d") or number:find("%..*%.") then
      return nil, ("'%s' is not a duration, which is numbers with the units h, m, s, ms, us or ns: \"1h30m\"")
        :format(text)
    end
    total = total + tonumber(number) * factor
    at = stop
  end
  if total >= NANOSECONDS_MAX then return nil, ("'%s' is longer than a duration can be"):format(text) end
  return (sign == "-" and -total or total) / 1e9
end

-- "1.500" without zeros behind the point, and without the point when nothing is left.
local function shortened(text)
  return text:find(".", 1, true) and text:gsub("0+$", ""):gsub("%.$", "") or text
end

-- Digits behind the point, as many of the nine as a double still has.
local function decimals(value, most)
  local whole = ("%.0f"):format(math.floor(value))
  return shortened(("%." .. math.max(0, math.min(most, 15 - #whole)) .. "f"):format(value))
end

--- The text as Go writes it: "1h30m0s", "1.5s", "300ms", "0s".
---@param seconds number
---@return string
function M.format(seconds)
  if type(seconds) ~= "number" or seconds ~= seconds or math.abs(seconds) >= SECONDS_MAX then
    errors.misuse("duration.format() takes a number of seconds, not %s", options.shown(seconds))
  end
  local sign = seconds < 0 and "-" or ""
  local rest = math.abs(seconds)
  local nanoseconds = math.floor(rest * 1e9 + 0.5)
  if nanoseconds == 0 then return "0s" end
  if nanoseconds < 1e3 then return ("%s%dns"):format(sign, nanoseconds) end
  if nanoseconds < 1e6 then return sign .. decimals(nanoseconds / 1e3, 3) .. "µs" end
  if nanoseconds < 1e9 then return sign .. decimals(nanoseconds / 1e6, 6) .. "ms" end
  -- By the decimal text: what is behind the point must not come out of a subtraction of doubles.
  local whole, fraction = decimals(rest, 9):match("^(%d+)(.*)$")
  whole = tonumber(whole)
  local text = ("%d%ss"):format(whole % 60, fraction)
  if whole >= 60 then text = ("%dm"):format(math.floor(whole / 60) % 60) .. text end
  if whole >= 3600 then text = ("%.0fh"):format(math.floor(whole / 3600)) .. text end
  return sign .. text
end

return M
