-- What the pools of services have in common. What is taken is what the services in the store have, so
-- nothing is to be given back. A refusal is raised: the server takes from its pools before it looks at
-- anything else.
local status = require "kube.sandbox.status"

local service_pool = { FULL = "range is full" }

--- Refuses a service if there are errors.
function service_pool.refuse(ctx, name, errors)
  if errors[1] then error(status.invalid(ctx.R, name, errors)) end
end

--- The values that read(spec, set) puts into a set, over all services.
function service_pool.taken(S, read)
  local used = {}
  for _, service in ipairs((S.store:scan("services"))) do read(service.spec or {}, used) end
  return used
end

return service_pool
