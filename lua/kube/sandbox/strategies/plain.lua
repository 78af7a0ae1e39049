-- A kind that needs nothing but its metadata and its schema.
local plain = {}

function plain.of() return {} end

return plain
