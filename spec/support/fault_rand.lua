-- Random numbers that are the same in every run: splitmix64.
local Rand = {}
Rand.__index = Rand

local bit = require "bit"
local bxor, rshift = bit.bxor, bit.rshift

function Rand:next()
  self.state = self.state + 0x9E3779B97F4A7C15ULL
  local z = self.state
  z = bxor(z, rshift(z, 30)) * 0xBF58476D1CE4E5B9ULL
  z = bxor(z, rshift(z, 27)) * 0x94D049BB133111EBULL
  return tonumber(rshift(bxor(z, rshift(z, 31)), 12)) / 2 ^ 52
end

--- An integer from low to high, both included.
function Rand:int(low, high) return low + math.floor(self:next() * (high - low + 1)) end

--- Whether something of this probability happens.
function Rand:chance(p) return self:next() < p end

--- One element of a list.
function Rand:pick(list) return list[self:int(1, #list)] end

--- Puts a list into another order, in place.
function Rand:shuffle(list)
  for i = #list, 2, -1 do
    local j = self:int(1, i)
    list[i], list[j] = list[j], list[i]
  end
  return list
end

local rand = {}

--- A stream of numbers of its own for a seed and a purpose.
function rand.new(seed, purpose)
  local r = setmetatable({ state = 0ULL + seed * 1000003 + purpose * 7919 }, Rand)
  r:next()
  return r
end

return rand
