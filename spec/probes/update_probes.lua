-- PUT.
local samples = require "spec.probes.samples"

local config = samples.config

-- A ConfigMap that exists, its path, and itself.
local function existing(p, data, metadata)
  local name = p:name "a"
  local answer = p:post(p:core "configmaps", config(name, metadata, data or { k = "v" }))
  return p:core("configmaps", name), answer.json, name
end

return {
  { name = "what is not there is not found", run = function(p)
    local path = p:core("configmaps", p:name "zzz")
    p:get(path)
    p:put(path, config(p:name "zzz"))
    p:patch("merge", path, {})
    p:patch("json", path, "[]")
    p:patch("strategic", path, {})
    p:delete(path)
    p:get(p:path("/apis/apps/v1", "deployments", p:name "zzz"))
    p:get("/apis/rbac.authorization.k8s.io/v1/clusterroles/" .. p:name "zzz")
  end },
  { name = "content is replaced", run = function(p)
    local path, object, name = existing(p, { k = "v", gone = "x" }, { labels = { l = "1" } })
    object.data = { k = "w", new = "y" }
    p:put(path, object)
    p:put(path, config(name, nil, { k = "z" }))
    p:get(path)
  end },
  { name = "the name and namespace in the body must be those of the path", run = function(p)
    local path = existing(p)
    p:put(path, config(p:name "b"))
    p:put(path, config(nil))
    p:put(path, config(p:name "a", { namespace = "other" }))
    p:put(path, { apiVersion = "v1", kind = "Secret", metadata = { name = p:name "a" } })
  end },
  { name = "a stale version is a conflict, none is not", run = function(p)
    local path, object, name = existing(p)
    p:patch("merge", path, { data = { k = "w" } })
    p:put(path, object)
    p:put(path, config(name, { resourceVersion = "abc" }))
    p:put(path, config(name, { resourceVersion = "0" }, { k = "0" }))
    p:put(path, config(name, nil, { k = "u" }))
  end },
  { name = "another uid is a conflict", run = function(p)
    local path, _, name = existing(p)
    p:put(path, config(name, { uid = "11111111-0000-0000-0000-000000000000" }))
    p:put(path, config(name, { uid = "wrong" }))
  end },
  { name = "the same content changes nothing and nobody hears of it", run = function(p)
    local path, object, name = existing(p)
    local watch = p:watch(p:core("configmaps") .. "?fieldSelector=metadata.name=" .. name
      .. "&resourceVersion=" .. object.metadata.resourceVersion)
    p:put(path, object)
    p:put(path, config(name, nil, { k = "v" }))
    p:patch("merge", path, { data = { k = "v" } })
    p:patch("json", path, '[{"op":"replace","path":"/data/k","value":"v"}]')
    p:patch("strategic", path, { data = { k = "v" } })
    p:patch("merge", path, { data = { k = "changed" } })
    watch:take(1)
  end },
  { name = "system fields cannot be changed", run = function(p)
    local path, object = existing(p)
    object.metadata.creationTimestamp = "2001-01-01T00:00:00Z"
    object.metadata.generation = 5
    object.metadata.selfLink = "/x"
    p:put(path, object)
    object.metadata.resourceVersion = nil
    object.metadata.deletionTimestamp = "2001-01-01T00:00:00Z"
    p:put(path, object)
    object.metadata.deletionTimestamp = nil
    object.metadata.deletionGracePeriodSeconds = 3
    p:put(path, object)
  end },
  { name = "what is immutable stays", run = function(p)
    local name = p:name "a"
    local path = p:core("configmaps", name)
    local fixed = config(name, nil, { k = "v" })
    fixed.immutable = true
    p:post(p:core "configmaps", fixed)
    p:put(path, config(name, nil, { k = "v" }))
    p:patch("merge", path, { data = { k = "w" } })
    p:patch("merge", path, { metadata = { labels = { l = "1" } } })
  end },
  { name = "a dry run shows the change and makes none", run = function(p)
    local path, object = existing(p)
    object.data.k = "dry"
    p:put(path .. "?dryRun=All", object)
    p:patch("merge", path .. "?dryRun=All", { data = { k = "dry" } })
    p:patch("merge", path .. "?dryRun=Bogus", {})
    p:delete(path .. "?dryRun=All")
    p:get(path)
  end },
  { name = "fields belong to whoever changed them last", run = function(p)
    local path, object, name = existing(p, { a = "1", b = "2" })
    object.data.b = "3"
    p:put(path .. "?fieldManager=q" .. p:name "second", object)
    p:put(path .. "?fieldManager=r" .. p:name "third", config(name, nil, { a = "1", c = "4" }))
    p:get(path)
  end },
  { name = "some kinds are created by an update", run = function(p)
    local name = p:name "a"
    p:put(p:path("/apis/coordination.k8s.io/v1", "leases", name), { apiVersion = "coordination.k8s.io/v1",
      kind = "Lease", metadata = { name = name }, spec = { holderIdentity = "me" } })
    p:put(p:path("/apis/rbac.authorization.k8s.io/v1", "roles", name), {
      apiVersion = "rbac.authorization.k8s.io/v1", kind = "Role", metadata = { name = name } })
  end },
}
