-- Websites: a custom resource that becomes a Deployment, a Service and an entry in a directory.
--
--   moonwatch run examples/website/website.lua --sandbox --apply examples/website
--
-- Deployment and Service have the Website as their owner, so the cluster removes them with it. The
-- directory is in a namespace of its own, where owners do not reach: the finalizer sees to that entry.
local kube = require "kube"

local DIRECTORY = "website-directory"

local function labels(site) return { app = site.metadata.name, ["example.com/website"] = "true" } end

local function meta(site)
  return { name = site.metadata.name, namespace = site.metadata.namespace, labels = labels(site) }
end

local function deployment(site)
  return kube.set_owner({
    apiVersion = "apps/v1", kind = "Deployment", metadata = meta(site),
    spec = {
      replicas = site.spec.replicas,
      selector = { matchLabels = labels(site) },
      template = {
        metadata = { labels = labels(site) },
        spec = { containers = { { name = "web", image = site.spec.image, ports = { { containerPort = 80 } } } } },
      },
    },
  }, site)
end

local function service(site)
  return kube.set_owner({
    apiVersion = "v1", kind = "Service", metadata = meta(site),
    spec = { selector = labels(site), ports = { { port = 80, targetPort = 80 } } },
  }, site)
end

local function entry_key(site) return DIRECTORY .. "/" .. site.metadata.namespace .. "." .. site.metadata.name end

-- The way back: the site of an entry.
local function site_key(entry)
  if entry.metadata.namespace ~= DIRECTORY then return nil end
  return (entry.metadata.name:gsub("%.", "/", 1))
end

local function entry(site)
  return {
    apiVersion = "v1", kind = "ConfigMap",
    metadata = { name = entry_key(site):match("/(.*)"), namespace = DIRECTORY },
    data = { host = site.spec.host },
  }
end

-- What the site's status shall say, from what the cluster says of its Deployment.
local function readiness(site, live)
  local ready, wanted = kube.get(live, "status.readyReplicas") or 0, site.spec.replicas
  local all = ready >= wanted
  return { type = "Ready", status = all, reason = all and "AllReplicasReady" or "WaitingForReplicas",
    message = ("%d of %d replicas are ready"):format(ready, wanted) }
end

kube.controller {
  name = "website",
  resource = "example.com/v1/websites",
  owns = { "apps/v1/deployments", "v1/services" },
  -- An entry of the directory that somebody changes or removes concerns its site.
  watches = { { resource = "v1/configmaps", map = site_key } },
  reads = { "v1/namespaces" },
  writes = { "apps/v1/deployments:create,patch", "v1/services:create,patch", "v1/namespaces:create,patch",
    "v1/configmaps:create,patch,delete", "example.com/v1/websites/status:patch" },
  workers = 4,

  reconcile = function(ctx, site)
    if not site then return end
    ctx.client:apply { apiVersion = "v1", kind = "Namespace", metadata = { name = DIRECTORY } }
    ctx.client:apply(deployment(site))
    ctx.client:apply(service(site))
    ctx.client:apply(entry(site))
    kube.condition.patch(ctx, site, readiness(site, ctx.cache:get("apps/v1/deployments", ctx.key)))
  end,

  finalizer = "example.com/website",
  finalize = function(ctx, site)
    local _, err = ctx.client:try_delete("v1/configmaps", entry_key(site))
    if err and not kube.is_not_found(err) then error(err) end
    ctx.log:info("removed from the directory", { host = site.spec.host })
  end,
}
