-- Representations: tables, metadata only, YAML, and what is not acceptable; compression.
local samples = require "spec.probes.samples"

local as_table = "application/json;as=Table;v=v1;g=meta.k8s.io"
local as_metadata = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
local as_metadata_list = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"

local function two(p)
  local path = p:core "secrets"
  p:setup("POST", path, samples.secret(p:name "a", { labels = { l = "1" } }, { k = "v" }))
  local last = p:setup("POST", path, samples.secret(p:name "b"))
  return path, last.json.metadata.resourceVersion
end

-- The rows of a table of that kind after one object was made.
local function table_of(path, object)
  return function(p)
    local full = path(p)
    p:release(full .. "/" .. p:name "a")
    p:setup("POST", full, object(p, p:name "a"))
    p:get(full .. "?fieldSelector=metadata.name%3D" .. p:name "a", { accept = as_table })
  end
end

local function core(resource) return function(p) return p:core(resource) end end
local function at(version, resource) return function(p) return p:path(version, resource) end end

local function template(name)
  return { metadata = { labels = { app = name } }, spec = { containers = { samples.container "main" } } }
end

return {
  { name = "tables of lists and objects", run = function(p)
    local path = two(p)
    p:get(path, { accept = as_table })
    p:get(path .. "/" .. p:name "a", { accept = as_table })
    p:get(path .. "?includeObject=None", { accept = as_table })
    p:get(path .. "?includeObject=Object", { accept = as_table })
    p:get(path .. "?includeObject=Metadata&limit=1", { accept = as_table })
    p:get(path .. "?includeObject=Bogus", { accept = as_table })
    p:get(path .. "/zzz", { accept = as_table })
    p:get(path .. "?labelSelector=none", { accept = as_table })
    p:get(path .. "/" .. p:name "a", { accept = "application/json;as=Table;v=v1beta1;g=meta.k8s.io" })
    p:get(path .. "/" .. p:name "a", { accept = "application/json;v=v1;g=meta.k8s.io;as=Table" })
  end },
  { name = "tables of writes", run = function(p)
    local path = p:core "secrets"
    p:post(path, samples.secret(p:name "a"), { accept = as_table })
    p:patch("merge", path .. "/" .. p:name "a", { metadata = { labels = { l = "1" } } }, { accept = as_table })
    p:delete(path .. "/" .. p:name "a", nil, { accept = as_table })
  end },
  { name = "tables of watches tell their columns once", run = function(p)
    local path, version = two(p)
    local watch = p:watch(path .. "?resourceVersion=" .. version, { accept = as_table })
    p:setup("POST", path, samples.secret(p:name "c"))
    p:setup("DELETE", path .. "/" .. p:name "c")
    watch:take(2)
    p:watch(path .. "?allowWatchBookmarks=true", { accept = as_table }):take(3)
    p:watch(path .. "?includeObject=None", { accept = as_table }):take(2)
  end },
  { name = "the table of config maps", run = table_of(core "configmaps", function(_, n)
    return samples.config(n, nil, { a = "1", b = "2" })
  end) },
  { name = "the table of pods", run = function(p)
    p:poll(p:core("serviceaccounts", "default"), function(a) return a.status == 200 end, { quiet = true })
    table_of(core "pods", function(_, n) return samples.pod(n) end)(p)
  end },
  { name = "the table of deployments", run = table_of(at("/apis/apps/v1", "deployments"), function(_, n)
    return samples.deployment(n)
  end) },
  { name = "the table of replica sets", run = table_of(at("/apis/apps/v1", "replicasets"), function(_, n)
    return { metadata = { name = n }, spec = { replicas = 2, selector = { matchLabels = { app = n } },
      template = template(n) } }
  end) },
  { name = "the table of stateful sets", run = table_of(at("/apis/apps/v1", "statefulsets"), function(_, n)
    return { metadata = { name = n }, spec = { serviceName = "s", selector = { matchLabels = { app = n } },
      template = template(n) } }
  end) },
  { name = "the table of daemon sets", run = table_of(at("/apis/apps/v1", "daemonsets"), function(_, n)
    return { metadata = { name = n }, spec = { selector = { matchLabels = { app = n } }, template = template(n) } }
  end) },
  { name = "the table of services", run = function(p)
    local path = p:core "services"
    p:setup("POST", path, { metadata = { name = p:name "a" }, spec = { clusterIP = "None", selector = { a = "b" },
      ports = { { port = 80, name = "http" }, { port = 53, protocol = "UDP", name = "dns" } } } })
    p:get(path, { accept = as_table })
  end },
  { name = "the table of jobs", run = table_of(at("/apis/batch/v1", "jobs"), function(_, n)
    return { metadata = { name = n }, spec = { template = { spec = { restartPolicy = "Never",
      containers = { samples.container "main" } } } } }
  end) },
  { name = "the table of cron jobs", run = table_of(at("/apis/batch/v1", "cronjobs"), function(_, n)
    return { metadata = { name = n }, spec = { schedule = "0 0 * * *", jobTemplate = { spec = { template = {
      spec = { restartPolicy = "Never", containers = { samples.container "main" } } } } } } }
  end) },
  { name = "the table of leases", run = table_of(at("/apis/coordination.k8s.io/v1", "leases"), function(_, n)
    return { metadata = { name = n }, spec = { holderIdentity = "me" } }
  end) },
  { name = "the table of events", run = table_of(core "events", function(p, n)
    return { metadata = { name = n }, reason = "Because", type = "Normal", message = "text", count = 2,
      involvedObject = { kind = "Pod", name = "x", namespace = p:namespace() } }
  end) },
  { name = "the table of roles", run = table_of(at("/apis/rbac.authorization.k8s.io/v1", "roles"), function(_, n)
    return { metadata = { name = n } }
  end) },
  { name = "the table of claims", run = table_of(core "persistentvolumeclaims", function(_, n)
    return { metadata = { name = n }, spec = { accessModes = { "ReadWriteOnce" },
      resources = { requests = { storage = "1Gi" } } } }
  end) },
  { name = "the table of namespaces", run = function(p)
    p:get("/api/v1/namespaces/" .. p:namespace(), { accept = as_table })
  end },
  { name = "the table of service accounts", run = function(p)
    p:setup("POST", p:core "serviceaccounts", { metadata = { name = p:name "a" } })
    p:get(p:core("serviceaccounts", p:name "a"), { accept = as_table })
  end },
  { name = "metadata only", run = function(p)
    local path, version = two(p)
    p:get(path .. "/" .. p:name "a", { accept = as_metadata })
    p:get(path, { accept = as_metadata_list })
    p:get(path, { accept = as_metadata })
    p:get(path .. "/" .. p:name "a", { accept = as_metadata_list })
    p:get(path .. "/zzz", { accept = as_metadata })
    local watch = p:watch(path .. "?resourceVersion=" .. version .. "&allowWatchBookmarks=true",
      { accept = as_metadata })
    p:setup("POST", path, samples.secret(p:name "c"))
    watch:take(1)
    p:watch(path .. "?allowWatchBookmarks=true", { accept = as_metadata }):take(4)
    p:post(path, samples.secret(p:name "d"), { accept = as_metadata })
    p:delete(path .. "/" .. p:name "d", nil, { accept = as_metadata })
  end },
  { name = "what is acceptable", run = function(p)
    local path = two(p)
    local item = path .. "/" .. p:name "b"
    p:get(item, { accept = "text/html" })
    -- A server may choose; clients take either.
    p:note("protobuf or JSON", p:get(item, { accept = "application/vnd.kubernetes.protobuf,application/json",
      quiet = "unseen" }).status)
    p:get(item, { accept = "application/json;q=0.1,text/html" })
    p:get(item, { accept = "*/*" })
    p:get(item, { accept = "application/*" })
    p:get(item, { accept = "text/*" })
    p:get(item, { accept = "application/json;as=Nope;v=v1;g=meta.k8s.io" })
    p:get(item, { accept = "application/json;as=Nope;v=v1;g=meta.k8s.io,application/json" })
    p:get(item, { headers = { { "Accept", false } }, accept = "" })
    p:get(item, { accept = "application/json;stream=watch" })
    p:note("indented", p:get(item, { accept = "application/json;pretty=1", quiet = "unseen" }).body:find("\n  ") ~= nil)
  end },
  { name = "YAML", run = function(p)
    local path = two(p)
    p:get(path .. "/" .. p:name "a", { accept = "application/yaml" })
    p:get(path .. "/zzz", { accept = "application/yaml" })
    p:get(path .. "?labelSelector=l", { accept = "application/yaml", quiet = true })
  end },
  { name = "large answers are compressed when asked for", run = function(p)
    local path = p:core "configmaps"
    p:setup("POST", path, samples.config(p:name "big", nil, { k = ("x"):rep(200 * 1024) }))
    p:setup("POST", path, samples.config(p:name "small", nil, { k = "x" }))
    local gzip = { { "Accept-Encoding", "gzip" } }
    local function encoding(name, headers)
      local answer = p:get(path .. "/" .. name, { headers = headers, quiet = "unseen" })
      p:note("how it comes", { encoding = answer:header "content-encoding" or "none",
        vary = answer:header "vary" or "none", smaller = #answer.body < 100 * 1024 })
    end
    encoding(p:name "big", gzip)
    encoding(p:name "big")
    encoding(p:name "small", gzip)
    p:watch(path .. "?fieldSelector=metadata.name%3D" .. p:name "small", { headers = gzip }):take(1)
  end },
}
