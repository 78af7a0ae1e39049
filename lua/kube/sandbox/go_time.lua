-- Times as Go writes them back: in UTC, with whole seconds (metav1.Time) or microseconds (MicroTime).
local go_time = {}

local DAY = 86400

-- Days since 1970 of a date of the Gregorian calendar, whose years here begin in March.
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

local PATTERN = "^(%d%d%d%d)-(%d%d)-(%d%d)T(%d%d):(%d%d):(%d%d)%.?(%d*)(.*)$"

-- Seconds that a zone ("Z", "+01:00") is ahead of UTC.
local function offset_of(zone)
  local sign, hours, minutes = zone:match("^([+-])(%d%d):(%d%d)$")
  if not sign then return 0 end
  return (sign == "-" and -1 or 1) * (hours * 3600 + minutes * 60)
end

--- The time in UTC with that many digits of a second; what is no time comes back as it is.
function go_time.utc(text, digits)
  local year, month, day, hour, minute, second, fraction, zone = text:match(PATTERN)
  if not year then return text end
  local seconds = days_of(tonumber(year), tonumber(month), tonumber(day)) * DAY + hour * 3600 + minute * 60 + second
    - offset_of(zone)
  local days = math.floor(seconds / DAY)
  local rest = seconds - days * DAY
  local y, m, d = date_of(days)
  local part = digits > 0 and "." .. (fraction .. ("0"):rep(digits)):sub(1, digits) or ""
  return ("%04d-%02d-%02dT%02d:%02d:%02d%sZ"):format(y, m, d, math.floor(rest / 3600), math.floor(rest / 60) % 60,
    rest % 60, part)
end

return go_time
