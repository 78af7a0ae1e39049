-- Times as Go writes them back: in UTC, with whole seconds (metav1.Time) or microseconds (MicroTime).
local rfc3339 = require "kube._rfc3339"

local go_time = {}

--- The time in UTC with that many digits of a second; what is no time comes back as it is.
function go_time.utc(text, digits)
  local seconds, fraction = rfc3339.parse(text)
  if not seconds then return text end
  return rfc3339.format(seconds, (fraction .. ("0"):rep(digits)):sub(1, digits))
end

return go_time
