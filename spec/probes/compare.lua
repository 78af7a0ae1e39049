-- The differences between two transcripts, each as one readable line.
local json = require "spec.probes.json"

local compare = {}

local most = 12  -- differences of one step that are told
local longest = 300

local function short(v)
  if v == nil then return "nothing" end
  local text = json.encode(v)
  return #text > longest and text:sub(1, longest) .. "..." or text
end

-- Two long texts from shortly before the place where they part.
local function parting(a, b)
  local at = 1
  while a:byte(at) == b:byte(at) do at = at + 1 end
  local from = math.max(1, at - 60)
  local function cut(text) return (from > 1 and "..." or "") .. text:sub(from, from + longest) end
  return cut(a), cut(b)
end

local function walk(expected, actual, path, out)
  if json.is_object(expected) and json.is_object(actual) then
    local keys = {}
    for key in pairs(expected) do keys[key] = true end
    for key in pairs(actual) do keys[key] = true end
    for _, key in ipairs(json.sorted_keys(keys)) do
      walk(expected[key], actual[key], path .. "." .. key, out)
    end
  elseif json.is_array(expected) and json.is_array(actual) then
    for i = 1, math.max(#expected, #actual) do
      walk(expected[i], actual[i], ("%s[%d]"):format(path, i - 1), out)
    end
  elseif type(expected) == "string" and type(actual) == "string" then
    if expected ~= actual then
      local a, b = parting(expected, actual)
      out[#out + 1] = ("%s: expected %s, got %s"):format(path, json.encode(a), json.encode(b))
    end
  elseif short(expected) ~= short(actual) or type(expected) ~= type(actual) then
    out[#out + 1] = ("%s: expected %s, got %s"):format(path, short(expected), short(actual))
  end
end

local function title(step)
  step = step or {}
  return step.request or step.command or (step.watch and "events of " .. step.watch) or step.note or "error"
end

--- An array of texts; empty when both are the same.
function compare.transcripts(expected, actual)
  local out = {}
  for i = 1, math.max(#expected, #actual) do
    local found = {}
    walk(expected[i] or json.object {}, actual[i] or json.object {}, "", found)
    if #found > 0 then
      out[#out + 1] = ("step %d, %s"):format(i, title(expected[i] or actual[i]))
      for n = 1, math.min(#found, most) do out[#out + 1] = "    " .. found[n]:sub(2) end
      if #found > most then out[#out + 1] = ("    and %d more"):format(#found - most) end
    end
    if actual[i] and actual[i].error then break end
  end
  return out
end

return compare
