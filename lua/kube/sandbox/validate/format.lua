-- The string formats that a schema may name, as kube-apiserver checks them. Names are compared
-- without dashes. A format that is not here is not checked.
local host = require "kube._server"
local regex = require "kube.sandbox.validate.regex"

local format = {}

local function pattern(text)
  local compiled
  return function(value)
    compiled = compiled or assert(regex.compile(text))
    return compiled:match(value)
  end
end

-- ---- addresses ----

-- Four decimal numbers; leading zeros are read as Go's older parser read them.
local function ipv4(value)
  local parts = { value:match("^(%d+)%.(%d+)%.(%d+)%.(%d+)$") }
  if #parts ~= 4 then return false end
  for _, part in ipairs(parts) do
    if tonumber(part) > 255 then return false end
  end
  return true
end

local function groups(value)
  local n = 0
  for part in (value .. ":"):gmatch("([^:]*):") do
    if not part:match("^%x%x?%x?%x?$") then return nil end
    n = n + 1
  end
  return n
end

local function ipv6(value, sloppy)
  local tail = value:match("[^:]*$")
  local embedded = tail:find(".", 1, true)
  if embedded then
    local zeros = not sloppy and ("." .. tail):find("%.0%d")
    if not ipv4(tail) or tail == value or zeros then return false end
    value = value:sub(1, #value - #tail) .. "0:0"
  end
  local head, rest = value:match("^(.-)::(.*)$")
  if not head then return groups(value) == 8 end
  if rest:find("::", 1, true) then return false end
  local before = head == "" and 0 or groups(head)
  local after = rest == "" and 0 or groups(rest)
  return before ~= nil and after ~= nil and before + after <= 7
end

local function cidr(value)
  local address, bits = value:match("^(.-)/(%d+)$")
  if not address or #bits > 5 then return false end
  if ipv4(address) then return tonumber(bits) <= 32 end
  return ipv6(address, true) and tonumber(bits) <= 128
end

local function mac(value)
  local separator = value:match("^%x%x([:-])") or value:match("^%x%x%x%x(%.)")
  if not separator then return false end
  local sizes = separator == "." and { [3] = true, [4] = true, [10] = true }
    or { [6] = true, [8] = true, [20] = true }
  local wanted, n = separator == "." and "^%x%x%x%x$" or "^%x%x$", 0
  for part in (value .. separator):gmatch("(.-)%" .. separator) do
    if not part:match(wanted) then return false end
    n = n + 1
  end
  return sizes[n] or false
end

-- ---- time ----

local month_days = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 }

local function date(value)
  local y, m, d = value:match("^(%d%d%d%d)%-(%d%d)%-(%d%d)$")
  if not y then return false end
  y, m, d = tonumber(y), tonumber(m), tonumber(d)
  local leap = y % 4 == 0 and (y % 100 ~= 0 or y % 400 == 0)
  return m >= 1 and m <= 12 and d >= 1 and d <= (leap and m == 2 and 29 or month_days[m])
end

local function date_time(value)
  local day, clock = value:lower():match("^([^t]*)t([^t]*)")
  if not day or not date(day) then return false end
  local h, m, s, rest = clock:match("^(%d%d):(%d%d):(%d%d)(.*)$")
  if not h or h > "23" or m > "59" or s > "59" then return false end
  local fraction = rest:match("^[^\n]%d+()")
  local function zone(text) return text == "z" or text:match("^[+-]%d%d:%d%d$") ~= nil end
  return zone(rest) or fraction ~= nil and zone(rest:sub(fraction))
end

local go_units = { ns = true, us = true, ["µs"] = true, ["μs"] = true, ms = true, s = true, m = true, h = true }

-- As Go's time.ParseDuration: -1.5h30m.
local function go_duration(value)
  local text = value:gsub("^[+-]", "")
  if text == "0" then return true end
  if text == "" then return false end
  while text ~= "" do
    local whole, fraction, unit, after = text:match("^(%d*)%.?(%d*)([^%d.]+)()")
    if not unit or whole == "" and fraction == "" or not go_units[unit] then return false end
    text = text:sub(after)
  end
  return true
end

local spelled_units = { ns = 1, us = 1, ["µs"] = 1, ms = 1, s = 1, m = 1, h = 1, hr = 1, d = 1, w = 1, wk = 1 }
local unit_prefixes = { "nano", "micro", "milli", "sec", "min", "hour", "day", "week" }

-- Or with words: "3 days 2 hours".
local function duration(value)
  if go_duration(value) then return true end
  for unit in value:gmatch("%d+%s*([%aµ]+)") do
    unit = unit:lower()
    if spelled_units[unit] then return true end
    for _, prefix in ipairs(unit_prefixes) do
      if unit:sub(1, #prefix) == prefix then return true end
    end
  end
  return false
end

-- ---- texts ----

local function escapes_are_whole(text) return not text:gsub("%%%x%x", ""):find("%", 1, true) end

local function authority(text)
  local user, rest = text:match("^(.*)@([^@]*)$")
  if user and (not user:match("^[%w%-%._:~!$&'()*+,;=%%@]*$") or not escapes_are_whole(user)) then return false end
  rest = rest or text
  local name, port = rest:match("^%[([^%]]*)%](.*)$")
  if name then return ipv6((name:gsub("%%25.+$", ""))) and (port == "" or port:match("^:%d*$") ~= nil) end
  name, port = rest:match("^([^:]*)(.*)$")
  if port ~= "" and not rest:match(":%d*$") then return false end
  return not rest:find("[ \"<>\\^`{|}%[%]]") and escapes_are_whole((name:gsub("%%[89A-Fa-f]%x", "")))
end

-- What Go's url.ParseRequestURI takes.
local function uri(value)
  if value == "" or value:find("[%z\1-\31\127]") then return false end
  if value == "*" then return true end
  local scheme, rest = value:match("^(%a[%w+.-]*):(.*)$")
  rest = rest or value
  if not scheme and value:sub(1, 1) == ":" then return false end
  rest = rest:match("^([^?]*)")
  if rest:sub(1, 1) ~= "/" then return scheme ~= nil end
  local host_text, path = rest:match("^//([^/]*)(.*)$")
  if scheme and host_text then
    if not authority(host_text) then return false end
    rest = path
  end
  return escapes_are_whole(rest)
end

local ATOM = "[%w!#$%%&'*+/=?^_`{|}~%-\128-\255]+"

local function dot_atom(text)
  for part in (text .. "."):gmatch("([^.]*)%.") do
    if not part:match("^" .. ATOM .. "$") then return false end
  end
  return true
end

local function address(text)
  local name, domain = text:match('^%s*("[^"\\]*")@(.-)%s*$')
  if not name then
    name, domain = text:match("^%s*([^@]*)@(.-)%s*$")
    if not name or not dot_atom(name) then return false end
  end
  local literal = domain:match("^%[(.*)%]$")
  if literal then return literal:find(":", 1, true) and ipv6(literal) or ipv4(literal) end
  return dot_atom(domain)
end

local function email(value)
  local name, inner = value:match("^(.-)<([^<>]*)>%s*$")
  if not inner then return address(value) end
  if not name:match('^%s*"[^"\\]*"%s*$') then
    for word in name:gmatch("%S+") do
      if not word:match("^[%w!#$%%&'*+/=?^_`{|}~%-.\128-\255]+$") then return false end
    end
  end
  return address(inner)
end

-- Letters and symbols outside ASCII count as letters.
local function hostname(value)
  if #value > 255 or value == "" then return false end
  local labels = {}
  for label in (value .. "."):gmatch("([^.]*)%.") do labels[#labels + 1] = label end
  for i, label in ipairs(labels) do
    if #label > 63 then return false end
    if #labels == 1 or i < #labels then
      local starts, fits = label:find("^[%w$+<=>^`|~\128-\255]"), label:find("^[%w$+<=>^`|~\128-\255%-]+$")
      if not starts or not fits or #labels > 1 and label:sub(-1) == "-" then return false end
    elseif not label:match("^[%a\128-\255][%a\128-\255]+$") then
      return false
    end
  end
  return #labels > 1 or pattern "^.(-?[^-]{0,62})?$"(value)
end

local function isbn10(value)
  local digits = value:gsub("[%s-]", "")
  if not digits:match("^%d%d%d%d%d%d%d%d%d[%dX]$") then return false end
  local sum = 0
  for i = 1, 10 do sum = sum + i * (digits:sub(i, i) == "X" and 10 or tonumber(digits:sub(i, i))) end
  return sum % 11 == 0
end

local function isbn13(value)
  local digits = value:gsub("[%s-]", "")
  if not digits:match("^" .. ("%d"):rep(13) .. "$") then return false end
  local sum = 0
  for i = 1, 12 do sum = sum + (i % 2 == 1 and 1 or 3) * tonumber(digits:sub(i, i)) end
  return tonumber(digits:sub(13)) == (10 - sum % 10) % 10
end

local card = pattern("^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}"
  .. "|(222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}|6(?:011|5[0-9][0-9])[0-9]{12}"
  .. "|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\\d{3})\\d{11}|6[27][0-9]{14})$")

local function creditcard(value)
  local digits = value:gsub("%D", "")
  if not card(digits) then return false end
  local sum, double = 0, false
  for i = #digits, 1, -1 do
    local digit = tonumber(digits:sub(i, i)) * (double and 2 or 1)
    sum = sum + (digit > 9 and digit % 10 + 1 or digit)
    double = not double
  end
  return sum % 10 == 0
end

local function base64(value)
  return value ~= "" and #value % 4 == 0 and value:match("^[%w+/]*=?=?$") ~= nil and host.unbase64(value) ~= nil
end

local UUID = "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?%s-?%s-?[0-9a-f]{12}$"
local ANY4, VARIANT = "[0-9a-f]{4}", "[89ab][0-9a-f]{3}"

local rgb_part = "([0-9]|[1-9][0-9]|1[0-9][0-9]|2[0-4][0-9]|25[0-5])"
local short_name = pattern "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
local long_name = pattern "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"

local checks = {
  bsonobjectid = function(value) return #value == 24 and value:match("^%x+$") ~= nil end,
  byte = base64, cidr = cidr, creditcard = creditcard, date = date, datetime = date_time, duration = duration,
  email = email, hostname = hostname, isbn10 = isbn10, isbn13 = isbn13, mac = mac, uri = uri,
  hexcolor = pattern "^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$",
  ipv4 = function(value) return ipv4(value) or value:find(".", 1, true) ~= nil and ipv6(value, true) end,
  ipv6 = function(value) return ipv6(value) end,
  isbn = function(value) return isbn10(value) or isbn13(value) end,
  k8slongname = function(value) return #value <= 253 and long_name(value) end,
  k8sshortname = function(value) return #value <= 63 and short_name(value) end,
  password = function() return true end,
  rgbcolor = pattern("^rgb\\(\\s*" .. rgb_part .. "\\s*,\\s*" .. rgb_part .. "\\s*,\\s*" .. rgb_part .. "\\s*\\)$"),
  ssn = pattern "^\\d{3}[- ]\\d{2}[- ]\\d{4}$",
  uuid = pattern(UUID:format(ANY4, ANY4)), uuid3 = pattern(UUID:format("3[0-9a-f]{3}", ANY4)),
  uuid4 = pattern(UUID:format("4[0-9a-f]{3}", VARIANT)), uuid5 = pattern(UUID:format("5[0-9a-f]{3}", VARIANT)),
}

--- The check of a format, nil for one that the server does not know either.
function format.check(name) return checks[(name:gsub("-", ""))] end

local of_type = { integer = { int32 = true, int64 = true }, number = { float = true, double = true } }

--- True when a schema of this type is checked for this format.
function format.known(name, type_name)
  if of_type[type_name] then return of_type[type_name][name] or false end
  return (type_name == nil or type_name == "" or type_name == "string") and format.check(name) ~= nil
end

return format
