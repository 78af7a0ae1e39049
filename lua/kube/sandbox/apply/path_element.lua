-- Path elements in the form in which fieldsV1 writes them: f:name for a field, k:{...} for the
-- element of a list of type map, v:... for the element of a set, i:n for an index. The text is made
-- in one way only, so equal elements are equal strings.
local json = require "kube.sandbox.json"

local element = {}

function element.field(name) return "f:" .. name end

local MEMO_MAX = 10000
local texts, texts_size = {}, 0

-- Keys are few and come again and again.
local function encode(value)
  local text = texts[value]
  if text then return text end
  text = json.encode(value)
  if texts_size >= MEMO_MAX then texts, texts_size = {}, 0 end
  if type(value) ~= "cdata" then texts[value], texts_size = text, texts_size + 1 end
  return text
end

--- The element of a list of type map: `names` are its keys, sorted; `defaults` stand in for missing
--- ones. nil when it has none of them.
function element.key(item, names, defaults)
  local text
  for i = 1, #names do
    local name = names[i]
    local value = item[name]
    if value == nil then value = defaults[name] end
    if value ~= nil then
      text = (text and text .. ',"' or 'k:{"') .. name .. '":' .. encode(value)
    end
  end
  return text and text .. "}"
end

function element.value(value) return "v:" .. encode(value) end

local function sorted_names(t)
  local names = {}
  for name in pairs(t) do names[#names + 1] = name end
  table.sort(names)
  return names
end

local function parse(text)
  local kind, rest = text:match("^(.):(.*)$")
  if not kind then return nil, "missing colon: " .. text end
  if kind == "i" then
    local index = tonumber(rest)
    return index and "i:" .. ("%d"):format(index), "no index: " .. text
  elseif kind ~= "k" and kind ~= "v" then
    return false
  end
  local value, problem = json.decode(rest)
  if problem then return nil, problem end
  if kind == "v" then return element.value(value) end
  if not json.is_object(value) then return nil, "no keys: " .. text end
  return element.key(value, sorted_names(value), {}) or "k:{}"
end

local memo, memo_size = {}, 0

--- The one form of an element that a client may have written in another; false for a kind that is
--- unknown, nil and the problem for no element.
function element.canonical(text)
  if text:byte(1) == 102 and text:byte(2) == 58 then return text end
  local known = memo[text]
  if known ~= nil then return known end
  local result, problem = parse(text)
  if result == nil then return nil, problem end
  if memo_size >= MEMO_MAX then memo, memo_size = {}, 0 end
  memo[text], memo_size = result, memo_size + 1
  return result
end

local RANK = { f = 1, k = 2, v = 3, i = 4 }
local VALUE_RANK = { number = 1, cdata = 1, string = 2, boolean = 3 }

-- Orders scalars: numbers, texts, booleans. Negative, zero or positive.
local function compare_values(a, b)
  local ra, rb = VALUE_RANK[type(a)] or 4, VALUE_RANK[type(b)] or 4
  if ra ~= rb then return ra - rb end
  if ra == 3 then a, b = a and 1 or 0, b and 1 or 0 end
  if ra == 4 or a == b then return 0 end
  return a < b and -1 or 1
end

local function compare_keys(a, b)
  local names_a, names_b = sorted_names(a), sorted_names(b)
  for i = 1, math.max(#names_a, #names_b) do
    local x, y = names_a[i], names_b[i]
    if not x or not y then return x and 1 or -1 end
    if x ~= y then return x < y and -1 or 1 end
    local order = compare_values(a[x], b[y])
    if order ~= 0 then return order end
  end
  return 0
end

--- Whether `a` stands before `b` in a field set: "." first, fields, keys, values, indices.
function element.before(a, b)
  if a == b then return false end
  if a == "." or b == "." then return a == "." end
  local ka, kb = a:sub(1, 1), b:sub(1, 1)
  if ka ~= kb then return RANK[ka] < RANK[kb] end
  if ka == "f" then return a < b end
  local va, vb = json.decode(a:sub(3)), json.decode(b:sub(3))
  if ka == "k" then return compare_keys(va, vb) < 0 end
  return compare_values(va, vb) < 0
end

local function show_value(value)
  if type(value) == "string" then return '"' .. value:gsub('[\\"]', "\\%0") .. '"' end
  return json.encode(value)
end

--- As it stands in messages: .name, [name="c",port=80], [="x"], [0].
function element.show(text)
  local kind, rest = text:sub(1, 1), text:sub(3)
  if kind == "f" then return "." .. rest end
  if kind == "i" then return "[" .. rest .. "]" end
  local value = json.decode(rest)
  if kind == "v" then return "[=" .. show_value(value) .. "]" end
  local parts = {}
  for i, name in ipairs(sorted_names(value)) do parts[i] = name .. "=" .. show_value(value[name]) end
  return "[" .. table.concat(parts, ",") .. "]"
end

return element
