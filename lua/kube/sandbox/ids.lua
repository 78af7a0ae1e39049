-- What the server makes up: uids and the suffixes of generated names. With a seed, the same ones
-- in the same order.
local host = require "kube._server"
local uuid = require "kube._uuid"

local ids = {}
ids.__index = ids

-- No vowels and no digits that look like letters: no words come out.
local ALPHABET = "bcdfghjklmnpqrstvwxz2456789"

-- A small generator of its own, so that a seed gives the same ids whatever else uses math.random.
local function generator(seed)
  local state = seed % 2147483647
  if state == 0 then state = 1 end
  return function(n)
    local bytes = {}
    for i = 1, n do
      state = state * 48271 % 2147483647
      bytes[i] = string.char(math.floor(state / 128) % 256)
    end
    return table.concat(bytes)
  end
end

--- `seed` is a number, or nil for ids that nobody can guess.
function ids.new(seed) return setmetatable({ bytes = seed and generator(seed) or host.random }, ids) end

--- From now on as with this seed.
function ids:reseed(seed) self.bytes = seed and generator(seed) or host.random end

--- A random (version 4) UUID.
function ids:uid()
  return uuid.of(host.hex(self.bytes(16)))
end

--- Five characters for a generated name.
function ids:suffix()
  local b, out = { self.bytes(5):byte(1, 5) }, {}
  for i = 1, 5 do
    local at = b[i] % #ALPHABET + 1
    out[i] = ALPHABET:sub(at, at)
  end
  return table.concat(out)
end

return ids
