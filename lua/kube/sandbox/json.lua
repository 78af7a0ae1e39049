-- JSON documents as the sandbox keeps them: tables of the host's codec. Arrays and objects carry
-- their mark also when empty, null is a value, numbers keep every digit.
local host = require "kube._server"

local codec = host.codec

local json = {
  null = codec.null,
  array = codec.array,
  object = codec.object,
  is_array = codec.is_array,
  copy = codec.copy,
  encode = codec.encode_sorted,
  duplicates = codec.duplicates,
}

--- Decodes a text; nil and what is wrong with it when it is not JSON.
function json.decode(text)
  local ok, value = pcall(codec.decode, text)
  if ok then return value end
  return nil, (tostring(value):gsub("^.-kube%.json%.decode%(%): ", ""))
end

--- True for a JSON object (not an array, not a scalar).
function json.is_object(value) return type(value) == "table" and not codec.is_array(value) end

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
  if codec.is_array(a) ~= codec.is_array(b) then return false end
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
  local copy = codec.is_array(t) and json.array {} or json.object {}
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
