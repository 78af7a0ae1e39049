-- Field selectors: "metadata.name=x,status.phase!=Running". Which fields a kind knows, and what it
-- says of the others, is in R.rules.
local json = require "kube.sandbox.json"

local field_selector = {}

local Selector = {}
Selector.__index = Selector

-- The terms between commas that no backslash escapes.
local function split(text)
  local terms, start, at = {}, 1, 1
  while at <= #text do
    local c = text:sub(at, at)
    if c == "\\" then
      at = at + 1
    elseif c == "," then
      terms[#terms + 1] = text:sub(start, at - 1)
      start = at + 1
    end
    at = at + 1
  end
  terms[#terms + 1] = text:sub(start)
  return terms
end

-- "a!=b" -> "a", "!=", "b": the leftmost operator counts.
local function split_term(term)
  for at = 1, #term do
    for _, operator in ipairs { "!=", "==", "=" } do
      if term:sub(at, at + #operator - 1) == operator then
        return term:sub(1, at - 1), operator, term:sub(at + #operator)
      end
    end
  end
end

local ESCAPED = { ["\\"] = true, [","] = true, ["="] = true }

local function unescape(text)
  local out, at = {}, 1
  while at <= #text do
    local c = text:sub(at, at)
    if c == "\\" then
      local escaped = text:sub(at + 1, at + 1)
      if not ESCAPED[escaped] then return nil, "invalid field selector: invalid escape sequence: \\" .. escaped end
      out[#out + 1], at = escaped, at + 1
    elseif c == "," or c == "=" then
      return nil, "invalid field selector: unescaped character in value: " .. c:byte()
    else
      out[#out + 1] = c
    end
    at = at + 1
  end
  return table.concat(out)
end

--- Reads a selector; nil and the server's text when it is none.
function field_selector.parse(text)
  local terms = {}
  for _, term in ipairs(split(text)) do
    if term ~= "" then
      local label, operator, value = split_term(term)
      if not label then
        return nil, ("invalid selector: '%s'; can't understand '%s'"):format(text, term)
      end
      local unescaped, problem = unescape(value)
      if not unescaped then return nil, problem end
      -- Nothing is nothing: it selects everything.
      if label ~= "" or unescaped ~= "" then
        terms[#terms + 1] = { label = label, value = unescaped, negated = operator == "!=" }
      end
    end
  end
  return setmetatable({ terms = terms }, Selector)
end

local function path_of(label)
  local path = {}
  for part in label:gmatch("[^.]+") do path[#path + 1] = part end
  return path
end

--- Ties the labels to the fields of a kind; nil and the kind's text for one that it does not know.
function Selector:resolve(R)
  for _, term in ipairs(self.terms) do
    local field = R.rules.fields[term.label]
    if not field then return nil, R.rules.field_text:format(term.label) end
    term.path = path_of(field)
  end
  return self
end

-- Fields that read as something else than empty when they are absent.
local ABSENT = { ["spec.unschedulable"] = "false", ["spec.hostNetwork"] = "false", ["status.replicas"] = "0",
  ["status.successful"] = "0", ["status.succeeded"] = "0" }

local function text_of(term, doc)
  local value = json.get(doc, unpack(term.path))
  if value == nil then return ABSENT[term.label] or "" end
  if type(value) == "number" then return ("%.14g"):format(value) end
  return tostring(value)
end

--- True when every term holds for the stored document.
function Selector:matches(doc)
  for _, term in ipairs(self.terms) do
    if (text_of(term, doc) == term.value) == term.negated then return false end
  end
  return true
end

--- The value that a field must have to be selected, or nil.
function Selector:exactly(label)
  for _, term in ipairs(self.terms) do
    if term.label == label and not term.negated then return term.value end
  end
end

--- True when it selects everything.
function Selector:empty() return #self.terms == 0 end

return field_selector
