-- DELETE, finalizers and preconditions.
local json = require "spec.probes.json"
local samples = require "spec.probes.samples"

local config = samples.config

local function existing(p, metadata, label)
  local name = p:name(label or "a")
  local answer = p:setup("POST", p:core "configmaps", config(name, metadata, { k = "v" }))
  return p:core("configmaps", name), answer.json, name
end

local finalizer = "example.com/f"

return {
  { name = "an object goes at once", run = function(p)
    local path = existing(p)
    p:delete(path)
    p:get(path)
    p:delete(path)
  end },
  { name = "a finalizer holds it back", run = function(p)
    local path, object, name = existing(p, { finalizers = { finalizer } })
    local watch = p:watch(p:core "configmaps" .. "?fieldSelector=metadata.name=" .. name
      .. "&resourceVersion=" .. object.metadata.resourceVersion)
    p:delete(path)
    p:delete(path)
    p:post(p:core "configmaps", config(name))
    p:patch("merge", path, { metadata = { finalizers = { finalizer, "example.com/g" } } })
    p:patch("merge", path, { data = { still = "here" } })
    p:patch("merge", path, { metadata = { finalizers = json.null } })
    p:get(path)
    watch:take(3)
  end },
  { name = "an update that empties the finalizers ends it", run = function(p)
    local path, _, name = existing(p, { finalizers = { finalizer, "example.com/g" } })
    p:delete(path)
    p:put(path, config(name, { finalizers = { "example.com/g" } }))
    p:put(path, config(name, nil, { last = "words" }))
    p:get(path)
  end },
  { name = "finalizers of a living object come and go", run = function(p)
    local path = existing(p)
    p:patch("merge", path, { metadata = { finalizers = { finalizer } } })
    p:patch("merge", path, { metadata = { finalizers = json.null } })
    p:get(path)
  end },
  { name = "preconditions", run = function(p)
    local path, object = existing(p)
    p:delete(path, { preconditions = { uid = "11111111-0000-0000-0000-000000000000" } })
    p:delete(path, { preconditions = { resourceVersion = "1" } })
    p:patch("merge", path, { data = { k = "w" } })
    p:delete(path, { preconditions = { uid = object.metadata.uid, resourceVersion = object.metadata.resourceVersion } })
    p:delete(path, { preconditions = { uid = object.metadata.uid } })
    p:get(path)
  end },
  { name = "options in the query and in the body", run = function(p)
    local path = existing(p)
    p:delete(path .. "?propagationPolicy=Bogus")
    p:delete(path, { propagationPolicy = "Bogus" })
    p:delete(path, { kind = "DeleteOptions", apiVersion = "v1", orphanDependents = true, propagationPolicy = "Orphan" })
    p:delete(path .. "?dryRun=Bogus")
    p:delete(path, { gracePeriodSeconds = -1 })
    p:delete(path, "{bad")
    p:delete(path, { kind = "Nope", apiVersion = "v1" })
    p:delete(path .. "?gracePeriodSeconds=abc")
    p:delete(path, { gracePeriodSeconds = "abc" })
    p:delete(path .. "?gracePeriodSeconds=5&propagationPolicy=Background")
    p:get(path)
  end },
  { name = "policies set their finalizers", run = function(p)
    -- A finalizer of the probe's own keeps the object, whatever the garbage collector does.
    local foreground = existing(p, { finalizers = { finalizer } }, "f")
    p:delete(foreground .. "?propagationPolicy=Foreground")
    p:patch("merge", foreground, { metadata = { finalizers = json.null } }, { quiet = "unseen" })
    local orphan = existing(p, { finalizers = { finalizer } }, "o")
    p:delete(orphan, { propagationPolicy = "Orphan" })
    p:patch("merge", orphan, { metadata = { finalizers = json.null } }, { quiet = "unseen" })
    local background = existing(p, { finalizers = { finalizer } }, "b")
    p:delete(background, { propagationPolicy = "Background" })
    p:patch("merge", background, { metadata = { finalizers = json.null } }, { quiet = "unseen" })
  end },
  { name = "collections by label", run = function(p)
    local key, value = p:draw("key", "value")
    existing(p, { labels = { [key] = value } }, "a")
    existing(p, { labels = { [key] = value } }, "b")
    existing(p, { labels = { [key] = "other" } }, "c")
    local path = p:core "configmaps"
    local selector = ("?labelSelector=%s%%3D%s"):format(key, value)
    p:delete(path .. selector .. "&dryRun=All")
    p:delete(path .. selector)
    p:delete(path .. selector)
    p:get(path .. "?labelSelector=" .. key)
    p:delete(path .. "?fieldSelector=metadata.name=" .. p:name "c")
    p:get(path .. "/" .. p:name "c")
  end },
  { name = "a collection with finalizers", run = function(p)
    local path = p:core "secrets"
    p:setup("POST", path, samples.secret(p:name "a", { finalizers = { finalizer } }))
    p:setup("POST", path, samples.secret(p:name "b"))
    p:delete(path)
    p:get(path)
    p:patch("merge", path .. "/" .. p:name "a", { metadata = { finalizers = json.null } })
    p:delete(path)
  end },
  { name = "some kinds answer with the object", run = function(p)
    p:setup("POST", p:core "serviceaccounts", { metadata = { name = p:name "sa" } })
    p:delete(p:core("serviceaccounts", p:name "sa"))
    p:setup("POST", p:core "secrets", samples.secret(p:name "se"))
    p:delete(p:core("secrets", p:name "se"))
    p:setup("POST", p:core "services", { metadata = { name = p:name "sv" }, spec = { ports = { { port = 80 } } } })
    p:delete(p:core("services", p:name "sv"))
    p:setup("POST", p:path("/apis/apps/v1", "deployments"), samples.deployment(p:name "de"))
    p:delete(p:path("/apis/apps/v1", "deployments", p:name "de"))
    p:setup("POST", p:path("/apis/coordination.k8s.io/v1", "leases"), { metadata = { name = p:name "le" } })
    p:delete(p:path("/apis/coordination.k8s.io/v1", "leases", p:name "le"))
    p:release(p:core("persistentvolumeclaims", p:name "pv"))
    p:setup("POST", p:core "persistentvolumeclaims", { metadata = { name = p:name "pv" }, spec = {
      accessModes = { "ReadWriteOnce" }, resources = { requests = { storage = "1Gi" } } } })
    p:delete(p:core("persistentvolumeclaims", p:name "pv"))
    p:setup("POST", p:core "resourcequotas", { metadata = { name = p:name "rq" } })
    p:delete(p:core("resourcequotas", p:name "rq"))
    p:setup("POST", p:core "limitranges", { metadata = { name = p:name "lr" }, spec = { limits = json.array {} } })
    p:delete(p:core("limitranges", p:name "lr"))
  end },
  { name = "jobs are orphaned by default", run = function(p)
    local path = p:path("/apis/batch/v1", "jobs")
    p:post(path, { metadata = { name = p:name "j" }, spec = { template = { spec = {
      restartPolicy = "Never", containers = { samples.container "main" } } } } })
    p:delete(path .. "/" .. p:name "j" .. "?dryRun=All")
    p:delete(path .. "/" .. p:name "j" .. "?propagationPolicy=Background")
  end },
}
