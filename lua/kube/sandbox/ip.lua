-- IP addresses and networks: only the form in which the server itself writes one.
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

-- ---- what an address is good for ----

-- The bytes of an address, or nil.
local function bytes_of(text)
  local octets = ipv4(text)
  if octets then return octets, "IPv4" end
  local groups = text:find(":", 1, true) and ipv6(text)
  if not groups then return nil end
  local bytes = {}
  for i, group in ipairs(groups) do
    bytes[2 * i - 1], bytes[2 * i] = math.floor(group / 256), group % 256
  end
  return bytes, "IPv6"
end

--- "IPv4", "IPv6", or nil for a text that is no address.
function ip.family(text) return select(2, bytes_of(text)) end

local UNSPECIFIED = "may not be unspecified (%s)"
local LOOPBACK = "may not be in the loopback range (127.0.0.0/8, ::1/128)"
local LINK = "may not be in the link-local range (169.254.0.0/16, fe80::/10)"
local MULTICAST = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"

local function is_all_zero(bytes, last)
  for i = 1, last do
    if bytes[i] ~= 0 then return false end
  end
  return true
end

--- Why nobody can be reached at an address, or nil.
function ip.unreachable(text)
  local b, family = bytes_of(text)
  if is_all_zero(b, #b) then return UNSPECIFIED:format(text) end
  if family == "IPv4" then
    if b[1] == 127 then return LOOPBACK end
    if b[1] == 169 and b[2] == 254 then return LINK end
    if b[1] == 224 and b[2] == 0 and b[3] == 0 then return MULTICAST end
    return nil
  end
  if is_all_zero(b, 15) and b[16] == 1 then return LOOPBACK end
  if b[1] == 0xFE and b[2] >= 0x80 and b[2] < 0xC0 then return LINK end
  if b[1] == 0xFF and b[2] % 16 == 2 then return MULTICAST end
end

-- ---- networks ----

local NETWORK = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"

-- { bytes, length, family } of "10.0.0.0/8", or nil.
local function network_of(text)
  local address, length = text:match("^(.+)/(%d+)$")
  local bytes, family
  if address then bytes, family = bytes_of(address) end
  if not bytes or tonumber(length) > 8 * #bytes then return nil end
  return { bytes = bytes, length = tonumber(length), family = family, text = length }
end

-- Whether two addresses are the same in their first bits.
local function share_bits(a, b, count)
  for i = 1, #a do
    local left = math.min(8, count - 8 * (i - 1))
    if left <= 0 then return true end
    local unit = 2 ^ (8 - left)
    if math.floor(a[i] / unit) ~= math.floor(b[i] / unit) then return false end
  end
  return true
end

local function has_bits_beyond(network)
  for i, byte in ipairs(network.bytes) do
    local kept = math.max(0, math.min(8, network.length - 8 * (i - 1)))
    if byte % 2 ^ (8 - kept) ~= 0 then return true end
  end
  return false
end

--- What keeps a text from being a network, or nil.
function ip.network_problem(text)
  local network = network_of(text)
  if not network then return NETWORK end
  local address = text:match("^(.+)/")
  if select(2, ipv4(address)) or network.text:find("^0%d") then
    return "must not have leading 0s in IP or prefix length"
  end
  local groups = ipv6(address)
  if groups and is_mapped(groups) then return "must not have an IPv4-mapped IPv6 address" end
  if has_bits_beyond(network) then return "must not have bits set beyond the prefix length" end
end

--- Whether a network has another one in it and more besides; nil when one of them cannot be read.
function ip.contains(outer, inner)
  local a, b = network_of(outer), network_of(inner)
  if not a or not b then return nil end
  return a.family == b.family and b.length > a.length and share_bits(a.bytes, b.bytes, a.length)
end

return ip
