-- Text from outside made fit for JSON: bytes that are not UTF-8 become U+FFFD, as in Go.
local json = require "kube.sandbox.json"

local utf8 = {}

local REPLACEMENT = "\239\191\189"

-- The range of the second byte, where it is not 0x80 to 0xBF: overlong forms, surrogates, beyond
-- U+10FFFF.
local SECOND_LOW = { [0xE0] = 0xA0, [0xF0] = 0x90 }
local SECOND_HIGH = { [0xED] = 0x9F, [0xF4] = 0x8F }

local function length_of(lead)
  if lead < 0x80 then return 1 end
  if lead >= 0xC2 and lead <= 0xDF then return 2 end
  if lead >= 0xE0 and lead <= 0xEF then return 3 end
  if lead >= 0xF0 and lead <= 0xF4 then return 4 end
end

-- The length of the character at `at`, or nil.
local function character(text, at)
  local lead = text:byte(at)
  local length = length_of(lead)
  if not length then return nil end
  for i = 1, length - 1 do
    local low = i == 1 and SECOND_LOW[lead] or 0x80
    local high = i == 1 and SECOND_HIGH[lead] or 0xBF
    local byte = text:byte(at + i)
    if not byte or byte < low or byte > high then return nil end
  end
  return length
end

--- The text with what is not UTF-8 replaced.
function utf8.valid(text)
  if not text:find("[\128-\255]") then return text end
  local out, at = {}, 1
  while at <= #text do
    local length = character(text, at)
    out[#out + 1] = length and text:sub(at, at + length - 1) or REPLACEMENT
    at = at + (length or 1)
  end
  return table.concat(out)
end

--- The document with all its texts made valid.
function utf8.valid_document(value)
  if type(value) == "string" then return utf8.valid(value) end
  if type(value) ~= "table" then return value end
  local copy = json.is_array(value) and json.array {} or json.object {}
  for key, child in pairs(value) do
    copy[type(key) == "string" and utf8.valid(key) or key] = utf8.valid_document(child)
  end
  return copy
end

return utf8
