-- Where the fields of a JSON text stand in it: tables of objects have lost their order, and the
-- server tells problems in the order of the text.
local text_order = {}

local function blank(text, at) return text:find("[^ \t\r\n]", at) end

-- The string at `at` (its quote) and where the text goes on. Keys with escapes keep them.
local function string_at(text, at)
  local i = at + 1
  while true do
    local stop = text:find('["\\]', i)
    if text:sub(stop, stop) == '"' then return text:sub(at + 1, stop - 1), stop + 1 end
    i = stop + 2
  end
end

local function child(path, name) return path == "" and name or path .. "." .. name end

local function enter(frames, text, at, path)
  local c = text:sub(at, at)
  if c == "{" then
    frames[#frames + 1] = { path = path, object = true }
    return at + 1
  elseif c == "[" then
    frames[#frames + 1] = { path = path, index = 0 }
    return at + 1
  elseif c == '"' then
    local _, after = string_at(text, at)
    return after
  end
  return text:find("[,%]}%s]", at) or #text + 1
end

--- For a text that is JSON: path -> offset at which that field or item begins, and where a field does
--- so for the second time.
function text_order.of(text)
  local first, second = {}, {}
  local frames = {}
  local at = enter(frames, text, blank(text, 1), "")
  while #frames > 0 do
    local frame = frames[#frames]
    at = blank(text, at)
    local c = text:sub(at, at)
    if c == "}" or c == "]" then
      frames[#frames] = nil
      at = at + 1
    elseif c == "," then
      at = at + 1
    elseif frame.object then
      local key, after = string_at(text, at)
      local path = child(frame.path, key)
      if not first[path] then first[path] = at elseif not second[path] then second[path] = at end
      at = enter(frames, text, blank(text, text:find(":", after, true) + 1), path)
    else
      local path = ("%s[%d]"):format(frame.path, frame.index)
      first[path] = first[path] or at
      at = enter(frames, text, at, path)
      frame.index = frame.index + 1
    end
  end
  return first, second
end

return text_order
