-- Times as text: RFC 3339, on the Gregorian calendar. Pure: scripts' kube.time and the sandbox share it.
local M = {}

local DAY = 86400

-- Days since 1970 of a date, whose years here begin in March.
local function days_of(year, month, day)
  if month <= 2 then year, month = year - 1, month + 12 end
  local leaps = math.floor(year / 4) - math.floor(year / 100) + math.floor(year / 400)
  return 365 * year + leaps + math.floor((153 * (month - 3) + 2) / 5) + day - 1 - 719468
end

local function date_of(days)
  days = days + 719468
  local era = math.floor(days / 146097)
  local rest = days - era * 146097
  local year = math.floor((rest - math.floor(rest / 1460) + math.floor(rest / 36524) - math.floor(rest / 146096)) / 365)
  rest = rest - (365 * year + math.floor(year / 4) - math.floor(year / 100))
  local month = math.floor((5 * rest + 2) / 153)
  local day = rest - math.floor((153 * month + 2) / 5) + 1
  year = year + era * 400
  if month >= 10 then return year + 1, month - 9, day end
  return year, month + 3, day
end

local PATTERN = "^(%d%d%d%d)-(%d%d)-(%d%d)[Tt](%d%d):(%d%d):(%d%d)(%.?)(%d*)(.*)$"

-- Seconds that a zone is ahead of UTC, or nil.
local function offset_of(zone)
  if zone == "Z" or zone == "z" then return 0 end
  local sign, hours, minutes = zone:match("^([+-])(%d%d):(%d%d)$")
  if not sign or tonumber(hours) > 23 or tonumber(minutes) > 59 then return nil end
  return (sign == "-" and -1 or 1) * (hours * 3600 + minutes * 60)
end

local function days_in(year, month)
  local next_year, next_month = year, month + 1
  if next_month > 12 then next_year, next_month = year + 1, 1 end
  return days_of(next_year, next_month, 1) - days_of(year, month, 1)
end

--- Whole seconds since 1970, and the digits of the fraction as text ("" without). nil when it is no time.
---@param text string
---@return integer?
---@return string? fraction
function M.parse(text)
  local year, month, day, hour, minute, second, dot, fraction, zone = text:match(PATTERN)
  if not year or (dot == ".") ~= (fraction ~= "") then return nil end
  year, month, day = tonumber(year), tonumber(month), tonumber(day)
  local offset = offset_of(zone)
  if not offset or month < 1 or month > 12 or day < 1 or day > days_in(year, month) then return nil end
  if tonumber(hour) > 23 or tonumber(minute) > 59 or tonumber(second) > 59 then return nil end
  return days_of(year, month, day) * DAY + hour * 3600 + minute * 60 + second - offset, fraction
end

--- The text in UTC of whole seconds since 1970; fraction is the digits behind the point, "" for none.
---@param seconds integer
---@param fraction string
---@return string
function M.format(seconds, fraction)
  local days = math.floor(seconds / DAY)
  local rest = seconds - days * DAY
  local year, month, day = date_of(days)
  return ("%04d-%02d-%02dT%02d:%02d:%02d%s%sZ"):format(year, month, day, math.floor(rest / 3600),
    math.floor(rest / 60) % 60, rest % 60, fraction ~= "" and "." or "", fraction)
end

return M
