-- Turns luv's loop until condition() holds; false when the time was over first.
local uv = require "luv"

return function(condition, seconds)
  if condition() then return true end
  local over = false
  uv.update_time() -- the loop may not have turned for long
  local timer, ms = uv.new_timer(), math.max(1, math.ceil(seconds * 1000))
  -- Repeating: a timer that is due when a turn begins is run before the loop waits for events, which would have no
  -- end then.
  timer:start(ms, ms, function() over = true end)
  while not over and not condition() do uv.run("once") end
  timer:close()
  uv.run("nowait") -- luv crashes at exit when a close is still under way
  return condition() and true or false
end
