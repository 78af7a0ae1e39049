-- The schedules of cron jobs: five fields, or a word for them.
local cron_schedule = {}

local MONTHS, DAYS = {}, {}
for i, name in ipairs { "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec" } do
  MONTHS[name] = i
end
for i, name in ipairs { "sun", "mon", "tue", "wed", "thu", "fri", "sat" } do DAYS[name] = i - 1 end

-- Minute, hour, day of the month, month, day of the week: first and last value, and names.
local FIELDS = { { 0, 59 }, { 0, 23 }, { 1, 31 }, { 1, 12, MONTHS }, { 0, 6, DAYS } }

local WORDS = { ["@yearly"] = true, ["@annually"] = true, ["@monthly"] = true, ["@weekly"] = true,
  ["@daily"] = true, ["@midnight"] = true, ["@hourly"] = true }

local UNITS = { ns = true, us = true, ["µs"] = true, ms = true, s = true, m = true, h = true }

local function number(text)
  if not text:find("^[+-]?%d+$") then
    return nil, ('failed to parse int from %s: strconv.Atoi: parsing "%s": invalid syntax'):format(text, text)
  end
  local value = tonumber(text)
  if value < 0 then return nil, ("negative number (%d) not allowed: %s"):format(value, text) end
  return value
end

local function split(text, separator)
  local parts = {}
  for part in (text .. separator):gmatch("(.-)%" .. separator) do parts[#parts + 1] = part end
  return parts
end

local function value_of(text, range)
  local named = range[3] and range[3][text:lower()]
  if named then return named end
  return number(text)
end

-- The first and last value of "*", "5" or "5-7"; or nil and what is wrong.
local function ends_of(text, range, whole)
  local parts = split(text, "-")
  if parts[1] == "*" or parts[1] == "?" then return range[1], range[2] end
  local first, problem = value_of(parts[1], range)
  if not first then return nil, problem end
  if #parts > 2 then return nil, "too many hyphens: " .. whole end
  if not parts[2] then return first, first end
  local last
  last, problem = value_of(parts[2], range)
  if not last then return nil, problem end
  return first, last
end

local function range_problem(text, range)
  local parts, step = split(text, "/"), 1
  local first, last = ends_of(parts[1], range, text)
  if not first then return last end
  if #parts > 2 then return "too many slashes: " .. text end
  if parts[2] then
    local problem
    step, problem = number(parts[2])
    if not step then return problem end
    if not parts[1]:find("-", 1, true) then last = range[2] end
  end
  if first < range[1] then return ("beginning of range (%d) below minimum (%d): %s"):format(first, range[1], text) end
  if last > range[2] then return ("end of range (%d) above maximum (%d): %s"):format(last, range[2], text) end
  if first > last then return ("beginning of range (%d) beyond end of range (%d): %s"):format(first, last, text) end
  if step == 0 then return "step of range should be a positive number: " .. text end
end

local function duration_problem(text)
  local rest = text:gsub("^[+-]", "")
  if rest == "0" then return nil end
  if rest == "" then return ('time: invalid duration "%s"'):format(text) end
  while rest ~= "" do
    local amount, after = rest:match("^([%d.]+)(.*)$")
    if not amount or not amount:find("%d") or select(2, amount:gsub("%.", "")) > 1 then
      return ('time: invalid duration "%s"'):format(text)
    end
    local unit = after:match("^[^%d.]+")
    if not unit then return ('time: missing unit in duration "%s"'):format(text) end
    if not UNITS[unit] then return ('time: unknown unit "%s" in duration "%s"'):format(unit, text) end
    rest = after:sub(#unit + 1)
  end
end

local function word_problem(text)
  if WORDS[text] then return nil end
  local duration = text:match("^@every (.*)$")
  if not duration then return "unrecognized descriptor: " .. text end
  local problem = duration_problem(duration)
  return problem and ("failed to parse duration %s: %s"):format(text, problem)
end

--- What is wrong with a schedule, or nil. A time zone in it is not looked at.
function cron_schedule.problem(schedule)
  schedule = schedule:gsub("^C?R?O?N?_?TZ=%S*%s*", "")
  if schedule:find("^@") then return word_problem(schedule) end
  local fields = {}
  for text in schedule:gmatch("%S+") do fields[#fields + 1] = text end
  if #fields ~= #FIELDS then
    return ("expected exactly 5 fields, found %d: [%s]"):format(#fields, table.concat(fields, " "))
  end
  for i, text in ipairs(fields) do
    for part in text:gmatch("[^,]+") do
      local problem = range_problem(part, FIELDS[i])
      if problem then return problem end
    end
  end
end

return cron_schedule
