-- Who may do what. Whoever has the token may do everything; without one there are the pages that say
-- how the server is, and nothing else.
local status = require "kube.sandbox.status"

local access = {}

local ANONYMOUS = "system:anonymous"
local OPEN = { ["/healthz"] = true, ["/livez"] = true, ["/readyz"] = true, ["/version"] = true }

-- The words in which the server refuses: the user, what was asked of which resource, and where.
local function refusal(info, user)
  if not info.resource then
    local verb = info.verb == "get" and "get" or info.method:lower()
    return status.new {
      code = 403,
      reason = "Forbidden",
      message = ('forbidden: User "%s" cannot %s path "%s"'):format(user, verb, info.path),
      details = {},
    }
  end
  local named = info.subresource and info.resource .. "/" .. info.subresource or info.resource
  local place = info.namespace and ('in the namespace "%s"'):format(info.namespace) or "at the cluster scope"
  return status.forbidden({
    resource_name = info.group == "" and info.resource or info.resource .. "." .. info.group,
    plural = info.resource,
    group = info.group,
  }, info.name, ('User "%s" cannot %s resource "%s" in API group "%s" %s'):format(user, info.verb, named, info.group,
    place))
end

--- The user of a request, { name, groups }; raises 401 for a wrong token, and 403.
function access.user(S, ctx)
  if ctx.request.internal then
    return { name = "system:kube-controller-manager", groups = { "system:authenticated" } }
  end
  local given = ctx.request.header("authorization")
  local token = given and given:match("^[Bb]earer%s+(.+)$")
  if token == S.token then return { name = "sandbox-admin", groups = { "system:masters", "system:authenticated" } } end
  if token then error(status.unauthorized()) end
  if not OPEN[ctx.info.path] then error(refusal(ctx.info, ANONYMOUS)) end
  return { name = ANONYMOUS, groups = { "system:unauthenticated" } }
end

return access
