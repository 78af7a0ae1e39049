-- Deployments that follow their configuration: one that is annotated example.com/reload: "settings,flags" gets new
-- pods when one of these ConfigMaps of its namespace changes.
--
--   moonwatch run examples/reloader/reloader.lua
--
-- The pod template carries a hash of their content; a template that changes is rolled out by the cluster.
local kube = require "kube"

local RELOAD, HASH = "example.com/reload", "example.com/config-hash"

-- The keys of the ConfigMaps that a Deployment follows, in the order of their names.
local function followed(deployment)
  local keys = {}
  local names = kube.get(deployment, "metadata", "annotations", RELOAD) or ""
  for name in names:gmatch("[^,%s]+") do keys[#keys + 1] = deployment.metadata.namespace .. "/" .. name end
  table.sort(keys)
  return keys
end

local deployments = kube.informer("apps/v1/deployments")
deployments:add_indexers { by_config = followed }

kube.controller {
  name = "reloader",
  resource = "apps/v1/deployments",
  predicate = kube.predicate.any(kube.predicate.generation_changed, kube.predicate.annotations_changed),
  watches = { {
    resource = "v1/configmaps",
    map = function(config) return deployments:lister():index_keys("by_config", kube.key(config)) end,
  } },
  writes = { "apps/v1/deployments:patch", "v1/events" },
  reconcile = function(ctx, deployment)
    local keys = deployment and followed(deployment) or {}
    if #keys == 0 then return end
    local parts = {}
    for _, key in ipairs(keys) do
      local config = ctx.cache:get("v1/configmaps", key)
      if not config then
        ctx.log:info("waits for its configuration", { configmap = key })
        return
      end
      parts[#parts + 1] = kube.json.encode({ key, config.data or {}, config.binaryData or {} })
    end
    local hash = kube.sha256(table.concat(parts, "\n"))
    if kube.get(deployment, "spec", "template", "metadata", "annotations", HASH) == hash then return end
    ctx.client:patch("apps/v1/deployments", ctx.key,
      { spec = { template = { metadata = { annotations = { [HASH] = hash } } } } }, { type = "merge" })
    ctx.events:normal(deployment, "Reloaded", "the configuration has changed")
  end,
}
