-- What a controller did in the last seconds: a ring of seconds that are used again, so that a run costs no memory.
local M = {}

local SECONDS = 10

local Window = {}
Window.__index = Window

function M.new()
  local self = setmetatable({}, Window)
  for i = 0, SECONDS do self[i] = { second = 0, runs = 0, errors = 0, duration = 0, longest = 0 } end
  return self
end

--- Counts a run that ended at `time`, seconds since 1970.
function Window:add(time, duration, failed)
  local second = math.floor(time)
  local slot = self[second % (SECONDS + 1)]
  if slot.second ~= second then
    slot.second, slot.runs, slot.errors, slot.duration, slot.longest = second, 0, 0, 0, 0
  end
  slot.runs = slot.runs + 1
  slot.duration = slot.duration + duration
  if failed then slot.errors = slot.errors + 1 end
  if duration > slot.longest then slot.longest = duration end
end

--- The last ten whole seconds before now: runs and errors per second, and how long a run took.
---@param now number
---@return { seconds: integer, reconciles: number, errors: number, mean: number, longest: number }
function Window:rates(now)
  local this = math.floor(now)
  local runs, errors, duration, longest = 0, 0, 0, 0
  for i = 0, SECONDS do
    local slot = self[i]
    if slot.second < this and slot.second >= this - SECONDS then
      runs, errors, duration = runs + slot.runs, errors + slot.errors, duration + slot.duration
      longest = math.max(longest, slot.longest)
    end
  end
  return { seconds = SECONDS, reconciles = runs / SECONDS, errors = errors / SECONDS,
    mean = runs > 0 and duration / runs or 0, longest = longest }
end

return M
