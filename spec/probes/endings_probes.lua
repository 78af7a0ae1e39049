-- Deletion in its corners: finalizers, grace, preconditions, collections, dry runs.
local json = require "spec.probes.json"
local samples = require "spec.probes.samples"

local config, pod = samples.config, samples.pod

local names = samples.names

return {
  { name = "a pod on a node with a finalizer", run = function(p)
    local name = p:name "p"
    local path = p:core("pods", name)
    local watch = p:watch(p:core "pods" .. "?fieldSelector=metadata.name=" .. name)
    p:post(p:core "pods", pod(name, { finalizers = { "example.com/f" } }, { nodeName = "n1" }))
    p:release(path)
    p:delete(path, { gracePeriodSeconds = 60 })
    p:delete(path, { gracePeriodSeconds = 90 })
    p:delete(path, { gracePeriodSeconds = 20 })
    p:delete(path)
    p:delete(path, { gracePeriodSeconds = 0 })
    p:delete(path, { gracePeriodSeconds = 0 })
    p:patch("merge", path, { metadata = { finalizers = json.null } })
    p:get(path)
    watch:take(5)
  end },
  { name = "grace that is refused or corrected", run = function(p)
    local name = p:name "p"
    local path = p:core("pods", name)
    p:post(p:core "pods", pod(name, nil, { nodeName = "n1", terminationGracePeriodSeconds = 5 }))
    p:delete(path .. "?gracePeriodSeconds=x")
    p:delete(path, { gracePeriodSeconds = "x" })
    p:delete(path .. "?dryRun=All")
    p:delete(path, { gracePeriodSeconds = -1 })
    p:get(path)
    p:delete(path .. "?gracePeriodSeconds=0")
    p:get(path)
    local c = p:name "c"
    p:post(p:core "configmaps", config(c, { finalizers = { "example.com/f" } }))
    p:release(p:core("configmaps", c))
    p:delete(p:core("configmaps", c) .. "?gracePeriodSeconds=10")
  end },
  { name = "options of a deletion that are odd", run = function(p)
    local name = p:name "c"
    local path = p:core("configmaps", name)
    p:post(p:core "configmaps", config(name))
    p:delete(path .. "?dryRun=Some")
    p:delete(path, { dryRun = { "All" } })
    p:delete(path, { dryRun = "All" })
    p:delete(path, { orphanDependents = true, propagationPolicy = "Orphan" })
    p:delete(path, { kind = "ConfigMap", apiVersion = "v1" })
    p:delete(path, { kind = "DeleteOptions", apiVersion = "v2" })
    p:delete(path, { kind = "DeleteOptions", apiVersion = "apps/v1", dryRun = { "All" } })
    p:delete(path, "{bad")
    p:delete(path, "[]")
    p:delete(path, "kind: DeleteOptions\napiVersion: v1\ndryRun: [All]\n", { type = "application/yaml" })
    p:delete(path, "x", { type = "text/plain" })
    p:delete(path, { unknown = 1, dryRun = { "All" } })
    p:delete(path .. "?propagationPolicy=Foreground&dryRun=All")
    p:delete(path .. "?propagationPolicy=Bogus", json.object {})
    p:get(path)
  end },
  { name = "preconditions that hold and do not", run = function(p)
    local name = p:name "c"
    local path = p:core("configmaps", name)
    local made = p:post(p:core "configmaps", config(name, { finalizers = { "example.com/f" } })).json
    p:release(path)
    local version, uid = made.metadata.resourceVersion, made.metadata.uid
    p:delete(path, { preconditions = { uid = "" } })
    p:delete(path, { preconditions = { resourceVersion = "" } })
    p:delete(path, { preconditions = { resourceVersion = "1", uid = uid } })
    p:delete(path, { preconditions = { resourceVersion = version, uid = "11111111-0000-0000-0000-000000000000" } })
    p:delete(path, { preconditions = { resourceVersion = version, uid = uid }, dryRun = { "All" } })
    p:delete(path, { preconditions = { resourceVersion = version, uid = uid } })
    p:delete(path, { preconditions = { resourceVersion = version } })
    p:delete(path, { preconditions = { uid = uid } })
    p:get(path)
  end },
  { name = "policies one after another", run = function(p)
    local name = p:name "c"
    local path = p:core("configmaps", name)
    p:post(p:core "configmaps", config(name, { finalizers = { "example.com/f" } }))
    p:release(path)
    p:delete(path, { propagationPolicy = "Background" })
    p:delete(path, { propagationPolicy = "Background", gracePeriodSeconds = 0 })
    p:get(path)
  end },
  { name = "collections by field, page and policy", run = function(p)
    local path = p:core "secrets"
    for i = 1, 6 do
      p:setup("POST", path, samples.secret(p:name("s" .. i), { labels = { odd = tostring(i % 2) } }))
    end
    p:delete(path .. "?dryRun=All&labelSelector=odd%3D1", nil, { pick = names })
    p:delete(path .. "?fieldSelector=metadata.name%3D" .. p:name "s2", nil, { pick = names })
    p:delete(path .. "?limit=2", nil, { pick = names })
    p:get(path, { pick = names })
    p:delete(path .. "?fieldSelector=data.x%3D1", nil, { pick = names })
    p:delete(path .. "?labelSelector=a%3D%3D%3Db", nil, { pick = names })
    p:delete(path, { propagationPolicy = "Bogus" }, { pick = names })
    p:delete(path, { preconditions = { uid = "11111111-0000-0000-0000-000000000000" } }, { pick = names })
    p:get(path, { pick = names })
    p:delete(path, nil, { pick = names })
    p:get(path, { pick = names })
  end },
  { name = "finalizers that are strange, repeated or the server's own", run = function(p)
    local name = p:name "c"
    local path = p:core("configmaps", name)
    p:post(p:core "configmaps", config(p:name "x", { finalizers = { "plain" } }))
    p:post(p:core "configmaps", config(p:name "x", { finalizers = { "" } }))
    p:post(p:core "configmaps", config(p:name "x", { finalizers = { "a/b/c" } }))
    p:post(p:core "configmaps", config(p:name "x", { finalizers = { "Example.com/F" } }))
    p:post(p:core "configmaps", config(name, { finalizers = { "example.com/a", "example.com/a" } }))
    p:release(path)
    p:patch("merge", path, { metadata = { finalizers = { "orphan", "foregroundDeletion" } } })
    p:patch("merge", path, { metadata = { finalizers = { "example.com/b", "example.com/a" } } })
    p:delete(path)
    p:patch("merge", path, { metadata = { finalizers = { "example.com/a" } } })
    p:patch("merge", path, { metadata = { labels = { still = "here" } } })
    p:patch("merge", path, { metadata = { finalizers = { "example.com/b" } } })
    p:patch("json", path, '[{"op":"remove","path":"/metadata/finalizers/0"}]')
    p:get(path)
  end },
  { name = "dry runs of every verb", run = function(p)
    local name = p:name "d"
    local list = p:path("/apis/apps/v1", "deployments")
    local path = list .. "/" .. name
    p:post(list .. "?dryRun=All", samples.deployment(name))
    p:post(list .. "?dryRun=All", { metadata = { generateName = p:name "x" .. "-" },
      spec = samples.deployment("x").spec })
    p:patch("apply", path .. "?dryRun=All&fieldManager=m", samples.deployment(name))
    local made = p:setup("POST", list, samples.deployment(name)).json
    p:post(list .. "?dryRun=All", samples.deployment(name))
    local function changed()
      local copy = json.decode(json.encode(made))
      copy.spec.replicas = 4
      return copy
    end
    p:put(path .. "?dryRun=All", changed())
    p:patch("merge", path .. "?dryRun=All", { spec = { replicas = 5 } })
    p:patch("strategic", path .. "?dryRun=All", { spec = { replicas = 6 } })
    p:patch("json", path .. "?dryRun=All", '[{"op":"replace","path":"/spec/replicas","value":7}]')
    p:patch("merge", path .. "/status?dryRun=All", { status = { replicas = 5 } })
    p:patch("merge", path .. "/scale?dryRun=All", { spec = { replicas = 5 } })
    p:patch("merge", path .. "?dryRun=All", { spec = { replicas = -5 } })
    p:patch("merge", path .. "?dryRun=", { metadata = { labels = { real = "1" } } })
    p:delete(path .. "?dryRun=All")
    p:get(path)
  end },
  { name = "an object that comes back under its name", run = function(p)
    local name = p:name "c"
    local path = p:core("configmaps", name)
    local first = p:post(p:core "configmaps", config(name)).json
    p:delete(path)
    local second = p:post(p:core "configmaps", config(name, nil, { k = "v" })).json
    p:put(path, first)
    p:patch("merge", path, { metadata = { uid = first.metadata.uid } })
    p:delete(path, { preconditions = { uid = first.metadata.uid } })
    p:note("uids differ", first.metadata.uid ~= second.metadata.uid)
    local watch = p:watch(p:core "configmaps" .. "?fieldSelector=metadata.name=" .. name
      .. "&resourceVersion=" .. first.metadata.resourceVersion)
    watch:take(2)
  end },
}
