-- Why a text is not JSON, in the words of Go's encoding/json, which is how the API server says it.
local go_json = {}

local ESCAPES = { ["'"] = "\\'", ["\\"] = "\\\\", ["\a"] = "\\a", ["\b"] = "\\b", ["\f"] = "\\f",
  ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t", ["\v"] = "\\v" }

-- A byte, which Go takes for the character of that number.
local function quoted(c)
  local code = c:byte()
  local text = ESCAPES[c]
  if not text and (code < 0x20 or code == 0x7F) then text = ("\\x%02x"):format(code) end
  if not text and (code >= 0x80 and code <= 0xA0 or code == 0xAD) then text = ("\\u%04x"):format(code) end
  if not text and code > 0xA0 then text = string.char(0xC0 + math.floor(code / 64), 0x80 + code % 64) end
  return "'" .. (text or c) .. "'"
end

local END = "unexpected end of JSON input"

local function unexpected(text, at, context)
  if at > #text then return END end
  return ("invalid character %s %s"):format(quoted(text:sub(at, at)), context)
end

local function blank(text, at) return text:find("[^ \t\r\n]", at) or #text + 1 end

-- Each reader returns the position after what it read, or nil and the problem.
local function string_literal(text, at)
  at = at + 1
  while true do
    local stop = text:find('[%c"\\]', at)
    if not stop then return nil, END end
    local c = text:sub(stop, stop)
    if c == '"' then return stop + 1 end
    if c ~= "\\" then return nil, unexpected(text, stop, "in string literal") end
    local escaped = text:sub(stop + 1, stop + 1)
    if escaped == "u" then
      for i = stop + 2, stop + 5 do
        if not text:sub(i, i):find("%x") then return nil, unexpected(text, i, "in \\u hexadecimal character escape") end
      end
      at = stop + 6
    elseif escaped:find('["\\/bfnrt]') then
      at = stop + 2
    else
      return nil, unexpected(text, stop + 1, "in string escape code")
    end
  end
end

local function word(text, at, literal)
  for i = 2, #literal do
    if text:sub(at + i - 1, at + i - 1) ~= literal:sub(i, i) then
      return nil, unexpected(text, at + i - 1, ("in literal %s (expecting '%s')"):format(literal, literal:sub(i, i)))
    end
  end
  return at + #literal
end

local function number(text, at)
  if text:sub(at, at) == "-" then
    at = at + 1
    if not text:find("^%d", at) then return nil, unexpected(text, at, "in numeric literal") end
  end
  at = text:match("^0()", at) or text:match("^%d+()", at)
  local fraction = text:match("^%.()", at)
  if fraction then
    at = text:match("^%d+()", fraction)
    if not at then return nil, unexpected(text, fraction, "after decimal point in numeric literal") end
  end
  local exponent = text:match("^[eE][+-]?()", at)
  if exponent then
    at = text:match("^%d+()", exponent)
    if not at then return nil, unexpected(text, exponent, "in exponent of numeric literal") end
  end
  return at
end

local WORDS = { t = "true", f = "false", n = "null" }

local function scalar(text, at)
  local c = text:sub(at, at)
  if c == '"' then return string_literal(text, at) end
  if WORDS[c] then return word(text, at, WORDS[c]) end
  if c:find("[%d-]") then return number(text, at) end
  return nil, unexpected(text, at, "looking for beginning of value")
end

-- One key and its colon; the position of the value, or nil and the problem.
local function key(text, at)
  if text:sub(at, at) ~= '"' then return nil, unexpected(text, at, "looking for beginning of object key string") end
  local after, problem = string_literal(text, at)
  if not after then return nil, problem end
  after = blank(text, after)
  if text:sub(after, after) ~= ":" then return nil, unexpected(text, after, "after object key") end
  return blank(text, after + 1)
end

local CONTEXT = { ["{"] = "after object key:value pair", ["["] = "after array element" }
local CLOSE = { ["{"] = "}", ["["] = "]" }

-- Ends what ends at `at`; the position of the next value, or nil when the text ended or is wrong.
local function after_value(text, at, stack)
  while true do
    at = blank(text, at)
    local open = stack[#stack]
    local c = text:sub(at, at)
    if not open then
      if c ~= "" then return nil, unexpected(text, at, "after top-level value") end
      return nil
    elseif c == CLOSE[open] then
      stack[#stack] = nil
      at = at + 1
    elseif c == "," then
      at = blank(text, at + 1)
      if open == "{" then return key(text, at) end
      return at
    else
      return nil, unexpected(text, at, CONTEXT[open])
    end
  end
end

-- Enters what opens at `at`: the position of its first value, or of what follows when it is empty.
local function enter(text, at, stack)
  local open = text:sub(at, at)
  local first = blank(text, at + 1)
  if text:sub(first, first) == CLOSE[open] then return after_value(text, first + 1, stack) end
  stack[#stack + 1] = open
  if open == "{" then return key(text, first) end
  return first
end

--- The problem with `text`, or "invalid JSON" when Go would find none.
function go_json.problem(text)
  local stack, problem = {}, nil
  local at = blank(text, 1)
  while at do
    if CLOSE[text:sub(at, at)] then
      at, problem = enter(text, at, stack)
    else
      local after
      after, problem = scalar(text, at)
      if not after then break end
      at, problem = after_value(text, after, stack)
    end
  end
  return problem or "invalid JSON"
end

return go_json
