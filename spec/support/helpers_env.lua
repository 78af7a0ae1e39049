-- The helpers of lua/kube without the binary: kube._core with the parts that need no process (codec,
-- selectors, tools), so that `require "kube._condition"` works under busted.
--
--   local core = require "spec.support.helpers_env"
--   core.codec.decode '{"a":[]}'
--   core.lines            -- what was logged: { level =, message =, fields = }, in order
require "ffi" -- a later one would forget the types that the codec has by then
local build = os.getenv("MOONWATCH_BUILD") or "build"

local core = assert(package.loadlib(build .. "/libmoonwatch_unit.so", "luaopen_mw_helpers_spec"))()

core.lines = {}
core.log = {
  write = function(level, message, fields)
    table.insert(core.lines, { level = level, message = message, fields = fields })
  end,
}

-- Without "./" in front: the place of a misuse is that of the spec, as it would be the script's.
package.path = "lua/?.lua;" .. package.path
package.preload["kube._core"] = function() return core end

return core
