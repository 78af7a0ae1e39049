-- Objects that go by themselves: a ConfigMap or Secret that is annotated example.com/ttl: "30m" is deleted that
-- long after it was made.
--
--   moonwatch run examples/ttl/ttl.lua
local kube = require "kube"

local TTL = "example.com/ttl"

local function clean(resource)
  return function(ctx, object)
    local ttl = kube.get(object, "metadata", "annotations", TTL)
    if not ttl or object.metadata.deletionTimestamp then return end
    local seconds = kube.duration.parse(ttl)
    if not seconds then
      ctx.events:warn(object, "BadTTL", "the annotation %s must be a duration such as 30m, not '%s'", TTL, ttl)
      error(kube.terminal(("%s: '%s' is no duration"):format(TTL, ttl)))
    end
    local left = kube.time.parse(object.metadata.creationTimestamp) + seconds - kube.time.now()
    if left > 0 then return { requeue_after = left } end
    -- Only the object that was looked at, not one that has taken its name since.
    local _, err = ctx.client:try_delete(resource, ctx.key, { uid = object.metadata.uid })
    if err and not kube.is_not_found(err) and not kube.is_conflict(err) then error(err) end
    ctx.log:info("its time was over", { ttl = ttl })
  end
end

for _, resource in ipairs { "v1/configmaps", "v1/secrets" } do
  kube.controller {
    name = "ttl-" .. resource:match("[^/]+$"),
    resource = resource,
    predicate = kube.predicate.annotations_changed,
    writes = { resource .. ":delete", "v1/events" },
    reconcile = clean(resource),
  }
end
