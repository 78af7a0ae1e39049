-- The paths of printer columns: .spec.list[0].name, .metadata.labels.a\.b, ['x'], [*], [1:3], and
-- filters, [?(@.type=="Ready")]. Missing keys find nothing.
local json = require "kube.sandbox.json"

local jsonpath = {}

-- ---- parsing: a path becomes an array of steps ----

local parse_steps

local function unescape(name) return (name:gsub("\\(.)", "%1")) end

local function literal(source)
  local quoted = source:match('^"(.*)"$') or source:match("^'(.*)'$")
  if quoted then return { value = quoted } end
  if source == "true" or source == "false" then return { value = source == "true" } end
  if tonumber(source) then return { value = tonumber(source) } end
  local path = source:match("^@(.*)$")
  if not path then return nil end
  local steps = parse_steps(path)
  return steps and { steps = steps }
end

local function filter(source)
  local left, operator, right = source:match("^%s*(.-)%s*([=!<>]=)%s*(.-)%s*$")
  if not left then left, operator, right = source:match("^%s*(.-)%s*([<>])%s*(.-)%s*$") end
  if not left then
    local exists = literal(source:match("^%s*(.-)%s*$"))
    return exists and exists.steps and { kind = "filter", left = exists }
  end
  left, right = literal(left), literal(right)
  return left and right and { kind = "filter", left = left, operator = operator, right = right }
end

-- The step in brackets whose inside is `source`.
local function bracket(source)
  if source == "*" then return { kind = "all" } end
  local name = source:match("^'(.*)'$") or source:match('^"(.*)"$')
  if name then return { kind = "key", name = unescape(name) } end
  if source:match("^%-?%d+$") then return { kind = "index", index = tonumber(source) } end
  local from, to = source:match("^(%-?%d*):(%-?%d*)$")
  if from then return { kind = "slice", from = tonumber(from) or 0, to = tonumber(to) } end
  local condition = source:match("^%?%((.*)%)$")
  return condition and filter(condition)
end

-- Where the bracket that opens at i closes; quotes and inner brackets are passed over.
local function closing(path, i)
  local depth, quote = 0, nil
  for at = i, #path do
    local c = path:sub(at, at)
    if quote then
      if c == quote and path:sub(at - 1, at - 1) ~= "\\" then quote = nil end
    elseif c == "'" or c == '"' then
      quote = c
    elseif c == "[" then
      depth = depth + 1
    elseif c == "]" then
      depth = depth - 1
      if depth == 0 then return at end
    end
  end
end

-- The name after a dot at i, and where the path goes on.
local function dotted(path, i)
  local at = i + 1
  while at <= #path and not path:find("^[.%[]", at) do
    at = at + (path:sub(at, at) == "\\" and 2 or 1)
  end
  return path:sub(i + 1, at - 1), at
end

function parse_steps(path)
  local steps, i = {}, 1
  while i <= #path do
    local c = path:sub(i, i)
    local step
    if c == "." then
      local name
      name, i = dotted(path, i)
      if name == "*" then
        step = { kind = "all" }
      elseif name ~= "" then
        step = { kind = "key", name = unescape(name) }
      elseif path:sub(i, i) ~= "[" and i <= #path then
        return nil
      end
    elseif c == "[" then
      local stop = closing(path, i)
      step = stop and bracket(path:sub(i + 1, stop - 1))
      if not step then return nil end
      i = stop + 1
    else
      return nil
    end
    steps[#steps + 1] = step
  end
  return steps
end

-- ---- finding ----

local apply = {}

function apply.key(step, value, out)
  if json.is_object(value) and value[step.name] ~= nil then out[#out + 1] = value[step.name] end
end

function apply.all(_, value, out)
  if type(value) ~= "table" then return end
  for _, item in pairs(value) do out[#out + 1] = item end
end

function apply.index(step, value, out)
  if not json.is_array(value) then return end
  local item = value[step.index < 0 and #value + step.index + 1 or step.index + 1]
  if item ~= nil then out[#out + 1] = item end
end

function apply.slice(step, value, out)
  if not json.is_array(value) then return end
  local from = step.from < 0 and #value + step.from or step.from
  local to = not step.to and #value or step.to < 0 and #value + step.to or step.to
  for i = from + 1, math.min(to, #value) do out[#out + 1] = value[i] end
end

local function walk(steps, value)
  local found = { value }
  for _, step in ipairs(steps) do
    local out = {}
    for _, item in ipairs(found) do apply[step.kind](step, item, out) end
    found = out
  end
  return found
end

local COMPARE = {
  ["=="] = function(a, b) return a == b end,
  ["!="] = function(a, b) return a ~= b end,
  ["<"] = function(a, b) return a < b end,
  [">"] = function(a, b) return a > b end,
  ["<="] = function(a, b) return a <= b end,
  [">="] = function(a, b) return a >= b end,
}

local function operand(side, item)
  if side.steps then return walk(side.steps, item)[1] end
  return side.value
end

function apply.filter(step, value, out)
  if not json.is_array(value) then return end
  for _, item in ipairs(value) do
    local left = operand(step.left, item)
    if not step.operator then
      if left ~= nil then out[#out + 1] = item end
    elseif left ~= nil then
      local right = operand(step.right, item)
      if type(left) == type(right) and COMPARE[step.operator](left, right) then out[#out + 1] = item end
    end
  end
end

local cache = setmetatable({}, { __mode = "k" })

--- The steps of a path, nil when it is not understood. `column` remembers them.
function jsonpath.compile(path, column)
  local known = column and cache[column]
  if known then return known end
  local steps = parse_steps(path)
  if column and steps then cache[column] = steps end
  return steps
end

--- The first value at a path, nil when there is none.
function jsonpath.first(steps, document) return walk(steps, document)[1] end

return jsonpath
