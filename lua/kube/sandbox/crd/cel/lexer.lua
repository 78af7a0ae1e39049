-- Tokens of the Common Expression Language: { kind =, value =, at = }. Kinds: ident, int, double,
-- string, op, end. Raises { cel = message } on what is none.
local ffi = require "ffi"

local lexer = {}

local int64 = ffi.typeof "int64_t"

local function fail(message) error({ cel = message }, 0) end

local ESCAPES = { a = "\a", b = "\b", f = "\f", n = "\n", r = "\r", t = "\t", v = "\v", ["\\"] = "\\", ['"'] = '"',
  ["'"] = "'", ["`"] = "`", ["?"] = "?" }

local function utf8(code)
  if code < 0x80 then return string.char(code) end
  if code < 0x800 then return string.char(0xC0 + math.floor(code / 64), 0x80 + code % 64) end
  if code < 0x10000 then
    return string.char(0xE0 + math.floor(code / 4096), 0x80 + math.floor(code / 64) % 64, 0x80 + code % 64)
  end
  return string.char(0xF0 + math.floor(code / 262144), 0x80 + math.floor(code / 4096) % 64,
    0x80 + math.floor(code / 64) % 64, 0x80 + code % 64)
end

local WIDTHS = { x = 2, X = 2, u = 4, U = 8 }

-- One escape that begins at i (after the backslash): its text and where the source goes on.
local function escape(source, i)
  local c = source:sub(i, i)
  if ESCAPES[c] then return ESCAPES[c], i + 1 end
  if WIDTHS[c] then
    local digits = source:match("^" .. ("%x"):rep(WIDTHS[c]), i + 1)
    if digits then return utf8(tonumber(digits, 16)), i + 1 + #digits end
  end
  local octal = source:match("^[0-3][0-7][0-7]", i)
  if octal then return utf8(tonumber(octal, 8)), i + 3 end
  fail("invalid escape in a string")
end

-- The string whose quote is at i.
local function string_at(source, i, raw)
  local quote = source:match('^"""', i) or source:match("^'''", i) or source:sub(i, i)
  local parts, at = {}, i + #quote
  while true do
    if at > #source then fail("a string does not end") end
    if source:sub(at, at + #quote - 1) == quote then return table.concat(parts), at + #quote end
    local c = source:sub(at, at)
    if c == "\\" and not raw then
      parts[#parts + 1], at = escape(source, at + 1)
    else
      if c == "\n" and #quote == 1 then fail("a string does not end") end
      parts[#parts + 1], at = c, at + 1
    end
  end
end

local function integer(text)
  local hex = text:match("^0[xX](%x+)$")
  local value = int64(0)
  for digit in (hex or text):gmatch("%x") do value = value * (hex and 16 or 10) + tonumber(digit, 16) end
  return value
end

local function number_at(source, i)
  local hex = source:match("^0[xX]%x+", i)
  if hex then return { kind = "int", value = integer(hex), at = i }, i + #hex end
  local double = source:match("^%d*%.%d+[eE][+-]?%d+", i) or source:match("^%d*%.%d+", i)
    or source:match("^%d+[eE][+-]?%d+", i)
  if double then return { kind = "double", value = tonumber(double), at = i }, i + #double end
  local digits = source:match("^%d+", i)
  if source:find("^[uU]", i + #digits) then fail("unsigned numbers are not supported") end
  return { kind = "int", value = integer(digits), at = i }, i + #digits
end

local OPERATORS = { "&&", "||", "==", "!=", "<=", ">=", ".?", "[?", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":",
  "(", ")", "[", "]", "{", "}", ",", "." }

local function operator_at(source, i)
  for _, operator in ipairs(OPERATORS) do
    if source:sub(i, i + #operator - 1) == operator then
      return { kind = "op", value = operator, at = i }, i + #operator
    end
  end
  fail(("unexpected character %q"):format(source:sub(i, i)))
end

local function next_token(source, i)
  if source:find("^%d", i) or source:find("^%.%d", i) then return number_at(source, i) end
  local prefix = source:match("^([rR])[\"']", i)
  if prefix or source:find("^[\"']", i) then
    local value, after = string_at(source, prefix and i + 1 or i, prefix ~= nil)
    return { kind = "string", value = value, at = i }, after
  end
  if source:find("^[bB][\"']", i) then fail("bytes are not supported") end
  local name = source:match("^[%a_][%w_]*", i)
  if name then return { kind = "ident", value = name, at = i }, i + #name end
  return operator_at(source, i)
end

--- The tokens of a source text.
function lexer.tokens(source)
  local tokens, i = {}, 1
  while true do
    i = source:match("^%s*()", i)
    local comment = source:match("^//[^\n]*()", i)
    if comment then
      i = comment
    elseif i > #source then
      tokens[#tokens + 1] = { kind = "end", at = i }
      return tokens
    else
      tokens[#tokens + 1], i = next_token(source, i)
    end
  end
end

return lexer
