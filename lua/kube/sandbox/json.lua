-- JSON documents as the sandbox keeps them: tables of the host's codec. Arrays and objects carry
-- their mark also when empty, null is a value, numbers keep every digit.
local host = require "kube._server"
local new_table = require "table.new"

local codec = host.codec

local json = {
  null = codec.null,
  copy = codec.copy,
  encode = codec.encode_sorted,
  duplicates = codec.duplicates,
}

-- The codec has these as well, with checks that only a stranger's script needs.
local ARRAY, OBJECT = getmetatable(codec.array {}), getmetatable(codec.object {})

--- Marks a table as a JSON array and returns it.
function json.array(t) return setmetatable(t, ARRAY) end

--- Marks a table as a JSON object and returns it.
function json.object(t) return setmetatable(t, OBJECT) end

--- True for a JSON array. A table without a mark is one if its keys are numbers.
function json.is_array(value)
  if type(value) ~= "table" then return false end
  local mark = getmetatable(value)
  if mark == ARRAY then return true end
  return mark ~= OBJECT and type(next(value)) == "number"
end

--- Decodes a text; nil and what is wrong with it when it is not JSON.
function json.decode(text)
  local ok, value = pcall(codec.decode, text)
  if ok then return value end
  return nil, (tostring(value):gsub("^.-kube%.json%.decode%(%): ", ""))
end

--- True for a JSON object (not an array, not a scalar).
function json.is_object(value) return type(value) == "table" and not json.is_array(value) end

--- Reads a path, nil where it ends early; null reads as nil.
function json.get(value, ...)
  for i = 1, select("#", ...) do
    if type(value) ~= "table" then return nil end
    value = value[(select(i, ...))]
  end
  if value == json.null then return nil end
  return value
end

--- Deep equality; an empty array is not an empty object.
function json.equal(a, b)
  if a == b then return true end
  if type(a) ~= "table" or type(b) ~= "table" then
    -- 64-bit integers are cdata and compare by value across their types.
    return type(a) == "cdata" and type(b) == "cdata" and tostring(a) == tostring(b)
  end
  if json.is_array(a) ~= json.is_array(b) then return false end
  for key, value in pairs(a) do
    local other = b[key]
    if other == nil or not json.equal(value, other) then return false end
  end
  for key in pairs(b) do
    if a[key] == nil then return false end
  end
  return true
end

--- A copy of one level: the children are shared.
function json.shallow(t)
  local copy
  if json.is_array(t) then
    copy = setmetatable(new_table(#t, 0), ARRAY)
  else
    local size = 0
    for _ in pairs(t) do size = size + 1 end
    copy = setmetatable(new_table(0, size), OBJECT)
  end
  for key, value in pairs(t) do copy[key] = value end
  return copy
end

--- A document with one field replaced (nil takes it away); the rest is shared.
function json.with(t, key, value)
  local copy = json.shallow(t)
  copy[key] = value
  return copy
end

return json
