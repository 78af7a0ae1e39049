-- Parts of cells that many kinds share: ages, lists of containers, selectors.
local json = require "kube.sandbox.json"

local text = {}

-- ---- ages ----

-- Days since 1970 of a date of the Gregorian calendar.
local function days(year, month, day)
  if month <= 2 then year, month = year - 1, month + 12 end
  return 365 * year + math.floor(year / 4) - math.floor(year / 100) + math.floor(year / 400)
    + math.floor((153 * (month - 3) + 2) / 5) + day - 719469
end

--- Seconds since 1970 of an RFC 3339 time, nil when the text is none.
function text.seconds(stamp)
  if type(stamp) ~= "string" then return nil end
  local y, m, d, h, min, s, rest = stamp:match("^(%d%d%d%d)%-(%d%d)%-(%d%d)T(%d%d):(%d%d):(%d%d)(.*)$")
  if not y then return nil end
  local fraction, zone = rest:match("^(%.?%d*)(.*)$")
  local sign, zone_h, zone_m = zone:match("^([+-])(%d%d):(%d%d)$")
  if not sign and zone ~= "Z" then return nil end
  local offset = sign and (tonumber(zone_h) * 3600 + tonumber(zone_m) * 60) * (sign == "+" and 1 or -1) or 0
  return days(tonumber(y), tonumber(m), tonumber(d)) * 86400 + tonumber(h) * 3600 + tonumber(min) * 60 + tonumber(s)
    + (tonumber(fraction) or 0) - offset
end

-- "3d4h": the larger unit and what is left over in the smaller one, if anything.
local function two(large, large_unit, small, small_unit)
  if small == 0 then return ("%d%s"):format(large, large_unit) end
  return ("%d%s%d%s"):format(large, large_unit, small, small_unit)
end

--- A duration in seconds as people like to read it: about two or three digits.
function text.human(seconds)
  local whole = seconds < 0 and math.ceil(seconds) or math.floor(seconds)
  if whole < -1 then return "<invalid>" end
  if whole < 0 then return "0s" end
  if whole < 120 then return ("%ds"):format(whole) end
  local minutes, hours = math.floor(whole / 60), math.floor(whole / 3600)
  if minutes < 10 then return two(minutes, "m", whole % 60, "s") end
  if minutes < 180 then return ("%dm"):format(minutes) end
  if hours < 8 then return two(hours, "h", minutes % 60, "m") end
  if hours < 48 then return ("%dh"):format(hours) end
  local full_days = math.floor(hours / 24)
  if hours < 24 * 8 then return two(full_days, "d", hours % 24, "h") end
  if hours < 24 * 365 * 2 then return ("%dd"):format(full_days) end
  local years = math.floor(full_days / 365)
  if hours < 24 * 365 * 8 then return two(years, "y", full_days % 365, "d") end
  return ("%dy"):format(years)
end

--- How long ago a timestamp is; <unknown> when there is none.
function text.since(stamp, now)
  local seconds = text.seconds(stamp)
  if not seconds then return "<unknown>" end
  return text.human(now - seconds)
end

-- ---- lists ----

--- The values of one field of a list, joined.
function text.join(list, key, separator)
  local parts = {}
  for i, item in ipairs(list or {}) do parts[i] = key and (json.get(item, key) or "") or item end
  return table.concat(parts, separator or ",")
end

--- The value, or what stands for none.
function text.either(value, none)
  if value == nil or value == json.null or value == "" then return none end
  return value
end

function text.count(t)
  local n = 0
  for _ in pairs(t or {}) do n = n + 1 end
  return n
end

--- The first three of a list of texts and how many more there are.
function text.some(list, most)
  if #list <= most then return table.concat(list, ",") end
  return ("%s + %d more..."):format(table.concat(list, ",", 1, most), #list - most)
end

--- Labels as a=b,c=d; <none> when there are none.
function text.labels(labels)
  local parts = {}
  for key, value in pairs(labels or {}) do parts[#parts + 1] = key .. "=" .. tostring(value) end
  table.sort(parts)
  return parts[1] and table.concat(parts, ",") or "<none>"
end

local function sorted_copy(list)
  local copy = { unpack(list or {}) }
  table.sort(copy)
  return copy
end

local OPERATORS = {
  In = function(key, values) return ("%s in (%s)"):format(key, table.concat(values, ",")) end,
  NotIn = function(key, values) return ("%s notin (%s)"):format(key, table.concat(values, ",")) end,
  Exists = function(key) return key end,
  DoesNotExist = function(key) return "!" .. key end,
}

--- A LabelSelector as text; the empty one is empty.
function text.selector(selector)
  local terms = {}
  for key, value in pairs(json.get(selector, "matchLabels") or {}) do
    terms[#terms + 1] = { key, key .. "=" .. tostring(value) }
  end
  for _, e in ipairs(json.get(selector, "matchExpressions") or {}) do
    local operator = OPERATORS[e.operator]
    if not operator then return "<invalid>" end
    terms[#terms + 1] = { e.key, operator(e.key, sorted_copy(e.values)) }
  end
  table.sort(terms, function(a, b) return a[1] < b[1] end)
  local parts = {}
  for i, term in ipairs(terms) do parts[i] = term[2] end
  return table.concat(parts, ",")
end

--- The same for a column that says <none>.
function text.selector_or_none(selector)
  local found = text.selector(selector)
  return found == "" and "<none>" or found
end

--- A condition's status by its type, nil when it is not there.
function text.condition(conditions, kind)
  for _, condition in ipairs(conditions or {}) do
    if condition.type == kind then return condition.status, condition end
  end
end

--- Names and images of containers.
function text.containers(spec)
  local containers = json.get(spec, "containers")
  return text.join(containers, "name"), text.join(containers, "image")
end

return text
