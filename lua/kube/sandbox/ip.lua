-- IP addresses as names of objects: only the form in which the server itself writes one.
local ip = {}

local INVALID = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"

-- "octets", or nil; and whether one of them has a leading zero.
local function ipv4(text)
  local parts, zeros = { text:match("^(%d+)%.(%d+)%.(%d+)%.(%d+)$") }, false
  if not parts[1] then return nil end
  for i, part in ipairs(parts) do
    if #part > 3 or tonumber(part) > 255 then return nil end
    zeros = zeros or part:find("^0%d") ~= nil
    parts[i] = tonumber(part)
  end
  return parts, zeros
end

local function groups_of(text)
  local out = {}
  if text == "" then return out end
  for part in (text .. ":"):gmatch("([^:]*):") do
    if not part:find("^%x%x?%x?%x?$") then return nil end
    out[#out + 1] = tonumber(part, 16)
  end
  return out
end

-- The eight groups of an address, or nil.
local function ipv6(text)
  local head, tail = text:match("^(.*)(:[^:]*)$")
  local octets = tail and tail:find(".", 1, true) and ipv4(tail:sub(2))
  if octets then
    text = ("%s:%x:%x"):format(head, octets[1] * 256 + octets[2], octets[3] * 256 + octets[4])
  end
  local left, right = text:match("^(.-)::(.*)$")
  local first, last = groups_of(left or text), groups_of(right or "")
  if not first or not last or #first + #last > 8 or (not left and #first ~= 8) or (left and #first + #last > 7) then
    return nil
  end
  local out = {}
  for i = 1, 8 do out[i] = first[i] or last[i - 8 + #last] or 0 end
  return out
end

-- The longest run of zeros, of two groups at least: where it begins, and its length.
local function longest_zeros(groups)
  local best, length, at = nil, 1, 1
  while at <= 8 do
    local stop = at
    while groups[stop] == 0 do stop = stop + 1 end
    if stop - at > length then best, length = at, stop - at end
    at = math.max(stop, at + 1)
  end
  return best, length
end

local function text_of(groups)
  local best, length = longest_zeros(groups)
  local out, i = "", 1
  while i <= 8 do
    if i == best then
      out, i = out .. "::", i + length
    else
      out = out .. ((out == "" or out:find(":$")) and "" or ":") .. ("%x"):format(groups[i])
      i = i + 1
    end
  end
  return out
end

local function is_mapped(groups)
  for i = 1, 5 do
    if groups[i] ~= 0 then return false end
  end
  return groups[6] == 0xFFFF
end

--- What keeps a text from being an address in its canonical form, or nil.
function ip.problem(text)
  local octets, zeros = ipv4(text)
  if octets then return zeros and "must not have leading 0s" or nil end
  local groups = text:find(":", 1, true) and ipv6(text)
  if not groups then return INVALID end
  if is_mapped(groups) then return "must not be an IPv4-mapped IPv6 address" end
  local canonical = text_of(groups)
  if canonical ~= text then return ('must be in canonical form ("%s")'):format(canonical) end
end

return ip
