-- Label selectors: the grammar of "a=b,c in (d,e),!f,g>1" and the server's words for what is not
-- in it.
local field = require "kube.sandbox.field"
local names = require "kube.sandbox.names"

local selector = {}

local Selector = {}
Selector.__index = Selector

-- Words -------------------------------------------------------------------------------------------

local SYMBOLS = { ["="] = true, ["!"] = true, ["("] = true, [")"] = true, [","] = true, [">"] = true, ["<"] = true }
local DOUBLE = { ["=="] = true, ["!="] = true }

-- Texts of the tokens in order; a token's kind is its text, or "word". The last one is the end.
local function lex(text)
  local tokens, at = {}, 1
  while true do
    at = text:find("[^ \t\r\n]", at)
    if not at then
      tokens[#tokens + 1] = { kind = "end", text = "" }
      return tokens
    end
    local two, one = text:sub(at, at + 1), text:sub(at, at)
    local token
    if DOUBLE[two] then
      token = { kind = two, text = two }
    elseif SYMBOLS[one] then
      token = { kind = one, text = one }
    else
      token = { kind = "word", text = text:match("^[^=!(),><%s]+", at) }
    end
    tokens[#tokens + 1] = token
    at = at + #token.text
  end
end

-- What may be said -----------------------------------------------------------------------------------

local function key_problem(key)
  local prefix, name = key:match("^([^/]*)/(.*)$")
  local problems = {}
  if prefix and name:find("/", 1, true) then
    return (names.qualified(key):gsub("^a qualified name", "a valid label key"))
  end
  if prefix == "" then
    problems[1] = "prefix part must be non-empty"
  elseif prefix then
    local problem = names.subdomain(prefix)
    problems[1] = problem and "prefix part " .. problem
  end
  if name == "" then problems[#problems + 1] = "name part must be non-empty" end
  -- An empty name is also one that does not match the pattern.
  problems[#problems + 1] = names.qualified(name == "" and "-" or name or key)
  return problems[1] and table.concat(problems, "; ")
end

local function check_key(key)
  local problem = key_problem(key)
  if problem then error { text = "<nil>: " .. field.invalid("", key, problem).message } end
end

local INT64_MAX = "9223372036854775807"

-- Digits without leading zeros; nil when the text is no integer of 64 bits.
local function integer(text)
  local digits = text:match("^%d+$") and text:gsub("^0+(.)", "%1")
  if not digits then return nil end
  if #digits > #INT64_MAX or #digits == #INT64_MAX and digits > INT64_MAX then return nil end
  return digits
end

-- A sign is read as part of a number here, and then refused because a label cannot begin with it.
local function check_values(requirement)
  local errors = {}
  local values = requirement.list
  if requirement.operator == ">" or requirement.operator == "<" then
    if not integer((values[1]:gsub("^[+-]", ""))) then
      errors[1] = field.invalid("values[0]", values[1], "for 'Gt', 'Lt' operators, the value must be an integer")
    end
  end
  for i, value in ipairs(values) do
    local problem = names.label_value(value)
    if problem then
      errors[#errors + 1] = field.invalid(("values[%d][%s]"):format(i - 1, requirement.key), value, problem)
    end
  end
  if #errors == 0 then return end
  local texts = {}
  for i, e in ipairs(errors) do texts[i] = e.field .. ": " .. e.message end
  error { text = #texts == 1 and texts[1] or "[" .. table.concat(texts, ", ") .. "]" }
end

-- Sentences ------------------------------------------------------------------------------------------

local Parser = {}
Parser.__index = Parser

function Parser:peek() return self.tokens[self.at] end

function Parser:take()
  local token = self.tokens[self.at]
  self.at = math.min(self.at + 1, #self.tokens)
  return token
end

local function unexpected(token, expected)
  error { text = ("found '%s', expected: %s"):format(token.text, expected) }
end

-- "(a, b)"; nothing between two commas is an empty value.
function Parser:values()
  local open = self:take()
  if open.kind ~= "(" then error { text = ("found '%s' expected: '('"):format(open.text) } end
  local values = {}
  local token = self:peek()
  if token.kind ~= "word" and token.kind ~= "," and token.kind ~= ")" then
    unexpected(token, "',', ')' or identifier")
  end
  while true do
    if self:peek().kind == "word" then
      values[self:take().text] = true
      token = self:peek()
      if token.kind ~= "," and token.kind ~= ")" then unexpected(token, "',' or ')'") end
    else
      values[""] = true
    end
    token = self:take()
    if token.kind == ")" then return values end
    token = self:peek()
    if token.kind == ")" then
      self:take()
      values[""] = true
      return values
    end
    if token.kind ~= "word" and token.kind ~= "," then unexpected(token, "',', or identifier") end
  end
end

-- The one value of = and the like; none is an empty one.
function Parser:value()
  local token = self:peek()
  if token.kind == "end" or token.kind == "," then return { [""] = true } end
  self:take()
  if token.kind ~= "word" then unexpected(token, "identifier") end
  return { [token.text] = true }
end

local OPERATORS = { ["="] = "in", ["=="] = "in", ["!="] = "notin", [">"] = ">", ["<"] = "<" }

function Parser:requirement()
  local negated = self:peek().kind == "!"
  if negated then self:take() end
  local key = self:take()
  if key.kind ~= "word" then unexpected(key, "identifier") end
  check_key(key.text)
  if negated then return { key = key.text, operator = "!" } end
  local follows = self:peek().kind
  if follows == "end" or follows == "," then return { key = key.text, operator = "exists" } end
  local token = self:take()
  local is_set = token.kind == "word" and (token.text == "in" or token.text == "notin")
  local operator = is_set and token.text or OPERATORS[token.kind]
  if not operator then unexpected(token, "in, notin, =, ==, !=, gt, lt") end
  local requirement = { key = key.text, operator = operator, values = is_set and self:values() or self:value() }
  requirement.list = {}
  for value in pairs(requirement.values) do table.insert(requirement.list, value) end
  table.sort(requirement.list)
  check_values(requirement)
  return requirement
end

function Parser:selector()
  local requirements = {}
  while true do
    local token = self:peek()
    if token.kind == "end" then return requirements end
    if token.kind ~= "word" and token.kind ~= "!" then unexpected(token, "!, identifier, or 'end of string'") end
    local ok, requirement = pcall(self.requirement, self)
    if not ok then
      if type(requirement) ~= "table" then error(requirement, 0) end
      error { text = "unable to parse requirement: " .. requirement.text }
    end
    requirements[#requirements + 1] = requirement
    token = self:take()
    if token.kind == "end" then return requirements end
    if token.kind ~= "," then unexpected(token, "',' or 'end of string'") end
    token = self:peek()
    if token.kind ~= "word" and token.kind ~= "!" then unexpected(token, "identifier after ','") end
  end
end

--- Reads a selector; nil and the server's text when it is none.
function selector.parse(text)
  local parser = setmetatable({ tokens = lex(text), at = 1 }, Parser)
  local ok, requirements = pcall(parser.selector, parser)
  if ok then return setmetatable({ requirements = requirements }, Selector) end
  if type(requirements) ~= "table" then error(requirements, 0) end
  return nil, requirements.text
end

local function greater(a, b) return #a > #b or #a == #b and a > b end

local MATCH = {
  ["exists"] = function(value) return value ~= nil end,
  ["!"] = function(value) return value == nil end,
  ["in"] = function(value, r) return value ~= nil and r.values[value] ~= nil end,
  ["notin"] = function(value, r) return value == nil or r.values[value] == nil end,
  [">"] = function(value, r)
    local number = value and integer(value)
    return number and greater(number, integer(r.list[1])) or false
  end,
  ["<"] = function(value, r)
    local number = value and integer(value)
    return number and greater(integer(r.list[1]), number) or false
  end,
}

--- True when every requirement holds for these labels (nil: none).
function Selector:matches(labels)
  for _, r in ipairs(self.requirements) do
    local value = labels and labels[r.key]
    if not MATCH[r.operator](value, r) then return false end
  end
  return true
end

--- True when it selects everything.
function Selector:empty() return #self.requirements == 0 end

return selector
