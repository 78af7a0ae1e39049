-- Secrets in several namespaces: one that is annotated example.com/replicate-to: "team-*,web" has a copy in
-- every namespace of such a name, now and when one comes later, as long as it lives and says so.
--
--   moonwatch run examples/replicator/replicator.lua
local kube = require "kube"

local WANTED, SOURCE = "example.com/replicate-to", "example.com/replica-of"

local secrets = kube.informer("v1/secrets")
secrets:add_indexers {
  replicated = function(secret) return kube.get(secret, "metadata", "annotations", WANTED) and { "yes" } or {} end,
  replicas = function(secret) return { kube.get(secret, "metadata", "annotations", SOURCE) } end,
}

-- Whether one of the patterns ("web", "team-*") fits a name.
local function wanted(patterns, name)
  for pattern in (patterns or ""):gmatch("[^,%s]+") do
    local lua = pattern:gsub("%-", "%%-"):gsub("%*", ".*")
    if name:find("^" .. lua .. "$") then return true end
  end
  return false
end

local function replica(secret, namespace)
  return {
    apiVersion = "v1", kind = "Secret", type = secret.type, data = secret.data,
    metadata = { name = secret.metadata.name, namespace = namespace,
      annotations = { [SOURCE] = kube.key(secret) } },
  }
end

kube.controller {
  name = "replicator",
  resource = "v1/secrets",
  watches = {
    -- A namespace that comes may be one that secrets are waiting for.
    { resource = "v1/namespaces", map = function() return secrets:lister():index_keys("replicated", "yes") end,
      predicate = kube.predicate.labels_changed },
    -- A copy that somebody changed or removed concerns its source.
    { resource = "v1/secrets", map = function(secret) return kube.get(secret, "metadata", "annotations", SOURCE) end },
  },
  writes = { "v1/secrets:create,patch,delete" },
  reconcile = function(ctx, secret)
    if kube.get(secret, "metadata", "annotations", SOURCE) then return end
    local patterns = kube.get(secret, "metadata", "annotations", WANTED)
    local here = {}
    for _, namespace in ipairs(ctx.cache:list("v1/namespaces")) do
      local name = namespace.metadata.name
      if wanted(patterns, name) and name ~= ctx.namespace and not namespace.metadata.deletionTimestamp then
        here[name] = true
        ctx.client:apply(replica(secret, name))
      end
    end
    for _, copy in ipairs(ctx.cache:by_index("v1/secrets", "replicas", ctx.key)) do
      if not here[copy.metadata.namespace] then ctx.client:try_delete("v1/secrets", kube.key(copy)) end
    end
  end,
}
