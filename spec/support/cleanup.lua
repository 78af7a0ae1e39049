-- What a spec must undo, in reverse order, whether it passed or not. busted's own finally() keeps
-- only the last function it is given.
--
--   local later = require "spec.support.cleanup".install()   -- in a describe block
--   later(function() ... end)                                -- in a spec
local cleanup = {}

local stack = {}

function cleanup.later(fn) stack[#stack + 1] = fn end

function cleanup.install()
  getfenv(2).after_each(function() -- the spec's: a required module does not see busted's functions
    local first_error
    while #stack > 0 do
      local ok, err = pcall(table.remove(stack))
      if not ok then first_error = first_error or err end
    end
    if first_error then error(first_error, 0) end
  end)
  return cleanup.later
end

return cleanup
