-- Texts with a form of their own inside built-in objects: times, quantities, base64. Each function
-- returns nil, or the words in which Go refuses the text.
local field = require "kube.sandbox.field"

local go_parse = {}

-- ---- times ----

local DAYS = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 }

-- The elements of the layout: what the text has to look like there, and the largest value.
local function layout(micro)
  local elements = {
    { "2006", "^%d%d%d%d" }, { "-", "^%-" }, { "01", "^%d%d", 12, "month", 1 }, { "-", "^%-" },
    { "02", "^%d%d", 31, "day", 1 }, { "T", "^T" }, { "15", "^%d%d?", 23, "hour" }, { ":", "^:" },
    { "04", "^%d%d", 59, "minute" }, { ":", "^:" }, { "05", "^%d%d", 59, "second" },
  }
  if micro then elements[#elements + 1] = { ".000000", "^%.%d%d%d%d%d%d" } end
  return elements
end

local TIME, MICRO_TIME = layout(false), layout(true)
local ZONE = "Z07:00"

local function refused(text, name, rest, element)
  local show = field.show
  return ("parsing time %s as %s: cannot parse %s as %s"):format(show(text), show(name), show(rest), show(element))
end

local function zone(rest) return rest:match("^Z()") or rest:match("^[+-]%d%d:%d%d()") end

local function check_time(text, name, elements, micro)
  local rest, numbers = text, {}
  for _, element in ipairs(elements) do
    local found = rest:match(element[2])
    if not found then return refused(text, name, rest, element[1]) end
    local number = tonumber(found)
    if element[4] then
      numbers[element[4]] = number
      if number > element[3] or number < (element[5] or 0) then
        return ("parsing time %s: %s out of range"):format(field.show(text), element[4])
      end
    elseif element[1] == "2006" then
      numbers.year = number
    end
    rest = rest:sub(#found + 1)
  end
  if not micro then rest = rest:gsub("^[.,]%d+", "") end
  local after = zone(rest)
  if not after then return refused(text, name, rest, ZONE) end
  if after <= #rest then
    return ("parsing time %s: extra text: %s"):format(field.show(text), field.show(rest:sub(after)))
  end
  local leap = numbers.year % 4 == 0 and (numbers.year % 100 ~= 0 or numbers.year % 400 == 0)
  if numbers.day > DAYS[numbers.month] or numbers.month == 2 and numbers.day == 29 and not leap then
    return ("parsing time %s: day out of range"):format(field.show(text))
  end
end

--- RFC 3339, as metav1.Time reads it.
function go_parse.time(text) return check_time(text, "2006-01-02T15:04:05Z07:00", TIME, false) end

--- With exactly six digits after the second, as metav1.MicroTime reads it.
function go_parse.micro_time(text)
  return check_time(text, "2006-01-02T15:04:05.000000Z07:00", MICRO_TIME, true)
end

-- ---- quantities ----

local SUFFIXES = {
  [""] = true, n = true, u = true, m = true, k = true, M = true, G = true, T = true, P = true, E = true,
  Ki = true, Mi = true, Gi = true, Ti = true, Pi = true, Ei = true,
}

go_parse.QUANTITY = "quantities must match the regular expression "
  .. "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"

function go_parse.quantity(text)
  local number, suffix = text:match("^[+-]?(%d*%.?%d*)([eEinumkKMGTP]*[-+]?%d*)$")
  if not number or not number:find("%d") and text ~= "" then return go_parse.QUANTITY end
  if text == "" then return go_parse.QUANTITY end
  if SUFFIXES[suffix] or suffix:find("^[eE][-+]?%d+$") then return nil end
  return "unable to parse quantity's suffix"
end

-- ---- base64 ----

local function corrupt(at) return "illegal base64 data at input byte " .. at end

-- What may follow the `=` at `i` (from 1), the place'th character of a group of four.
local function after_padding(text, i, place)
  if place < 2 then return corrupt(i - 1) end
  local rest = text:sub(i + 1):gsub("[\r\n]", "")
  if place == 2 then
    if rest == "" then return corrupt(#text) end
    if rest:sub(1, 1) ~= "=" then return corrupt(i) end
    rest = rest:sub(2)
  end
  if rest ~= "" then return corrupt(#text - #rest) end
end

function go_parse.base64(text)
  local place = 0
  for i = 1, #text do
    local c = text:sub(i, i)
    if c:find("[%w+/]") then
      place = (place + 1) % 4
    elseif c == "=" then
      return after_padding(text, i, place)
    elseif c ~= "\n" and c ~= "\r" then
      return corrupt(i - 1)
    end
  end
  if place ~= 0 then return corrupt(#text - place) end
end

return go_parse
