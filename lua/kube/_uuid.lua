-- UUIDs. Pure: the random bytes come from outside.
local M = {}

-- The first digit of a UUID's fourth group.
local VARIANTS = { "8", "9", "a", "b" }

--- A random (version 4) UUID of 32 hexadecimal digits.
---@param hex string
---@return string
function M.of(hex)
  local variant = VARIANTS[tonumber(hex:sub(17, 17), 16) % 4 + 1]
  return ("%s-%s-4%s-%s%s-%s"):format(hex:sub(1, 8), hex:sub(9, 12), hex:sub(14, 16), variant, hex:sub(18, 20),
    hex:sub(21))
end

return M
