-- The sandbox's modules without the binary: kube._server with its pure parts (codec, tools, yaml,
-- embedded files read from the tree), so that `require "kube.sandbox.store"` works under busted.
--
--   local host = require "spec.support.sandbox_env"
--   host.timers            -- what host.after was asked for: { seconds =, fn = }, in order
--
-- As in the worker (core/script/worker.h), the compiler is off.
jit.off()

require "ffi" -- a later one would forget the types that the codec has by then
local build = os.getenv("MOONWATCH_BUILD") or "build"
local library = build .. "/libmoonwatch_unit.so"
local data = "lua/kube/sandbox/data/"

local host = assert(package.loadlib(library, "luaopen_mw_sandbox_spec"))()

host.options = {}
host.timers = {}

function host.data(name)
  local file = io.open(data .. name, "rb")
  if not file then return nil end
  local text = file:read("*a")
  file:close()
  return text
end

function host.after(seconds, fn)
  local timer = { seconds = seconds, fn = fn }
  function timer.cancel()
    for i, other in ipairs(host.timers) do
      if other == timer then table.remove(host.timers, i) end
    end
  end
  table.insert(host.timers, timer)
  return timer
end

function host.log() end

for _, path in ipairs { "lua/?/init.lua", "lua/?.lua" } do
  if not package.path:find(path, 1, true) then package.path = path .. ";" .. package.path end
end
package.preload["kube._server"] = function() return host end

return host
