-- Label and field selectors.
local samples = require "spec.probes.samples"

local function escape(text)
  return (text:gsub("[^%w%-_%.]", function(c) return ("%%%02X"):format(c:byte()) end))
end

local function names(v)
  if not v.items then return v end
  for i, item in ipairs(v.items) do v.items[i] = item.metadata.name end
  return v.items
end

local function try(p, path, kind, text)
  p:get(path .. "?" .. kind .. "=" .. escape(text), { pick = names, as = kind .. " " .. text })
end

local function fields(name, path, list, prepare)
  return { name = name, run = function(p)
    local full = path(p)
    if prepare then prepare(p, full) end
    for _, text in ipairs(list) do
      try(p, full, "fieldSelector", (text:gsub("@(%w+)", function(label) return p:name(label) end)))
    end
  end }
end

return {
  { name = "labels", run = function(p)
    local path = p:core "secrets"
    local key = p:name "key"
    p:setup("POST", path, samples.secret(p:name "a", { labels = { [key] = "x", n = "5" } }))
    p:setup("POST", path, samples.secret(p:name "b", { labels = { [key] = "y", n = "7" } }))
    p:setup("POST", path, samples.secret(p:name "c", { labels = { [key] = "", ["example.com/z"] = "1" } }))
    p:setup("POST", path, samples.secret(p:name "d"))
    for _, text in ipairs { "K=x", "K==x", "K = x", "K!=x", "K in (x,y)", "K in (x, y)", "K notin (x)", "K", "!K",
      "! K", "K=", "K in ()", "K notin (x,y),K", "n>5", "n<6", "n>4,n<6", "example.com/z", "example.com/z=1", "", " ",
      "K=x,", ",", "K=x,K=y", "K in (x", "=x", "K=x y", "K>abc", "K=x=y", "!K=x", "K in x", "bad key=1", "K!x", "/a=b",
      "K=" .. ("v"):rep(64), "a/b/c=d", "K in (,x)", "K in (x,)", "K===x", "()", "K in", "K notin", "!", "K=!" } do
      try(p, path, "labelSelector", (text:gsub("K", key)))
    end
  end },
  fields("fields of every kind", function(p) return p:core "configmaps" end, { "metadata.name=@a", "metadata.name==@a",
    "metadata.name=@a,metadata.namespace=@ns", "metadata.namespace=other", "metadata.name=@a,metadata.name=@b",
    "metadata.name=@zzz", "data.x=1", "bogus", "metadata.name", "=x", "metadata.name=a=b", ",metadata.name=@a",
    "metadata.labels.x=1", "metadata.name=a\\,b" },
    function(p, path)
      p:setup("POST", path, samples.config(p:name "a"))
      p:setup("POST", path, samples.config(p:name "b"))
    end),
  fields("inequality of fields", function(p) return p:core "secrets" end, { "metadata.name!=@a", "metadata.name!=@zzz",
    "type=Opaque", "type!=Opaque", "type=x/y", "", "metadata.uid=x" },
    function(p, path)
      p:setup("POST", path, samples.secret(p:name "a"))
      local other = samples.secret(p:name "b")
      other.type = "x/y"
      p:setup("POST", path, other)
    end),
  fields("fields of pods", function(p) return p:core "pods" end, { "spec.nodeName=", "spec.nodeName=@node",
    "spec.nodeName!=@node", "status.phase=Pending", "status.phase!=Running", "spec.restartPolicy=Never",
    "spec.restartPolicy=Always", "spec.serviceAccountName=default", "spec.schedulerName=default-scheduler",
    "spec.hostNetwork=true", "spec.hostNetwork=false", "status.podIP=", "status.nominatedNodeName=", "spec.host=@node",
    "spec.bogus=1", "metadata.name=@a", "spec.containers=x" },
    function(p, path)
      -- The admission of pods wants the namespace's service account.
      p:poll(p:core("serviceaccounts", "default"), function(a) return a.status == 200 end, { quiet = true })
      p:setup("POST", path, samples.pod(p:name "a"))
      p:setup("POST", path, samples.pod(p:name "b", nil, { nodeName = p:name "node", restartPolicy = "Never" }))
    end),
  fields("fields of events", function(p) return p:core "events" end, { "involvedObject.name=@a",
    "involvedObject.kind=Pod", "reason=@reason", "type=Normal", "type=Warning", "involvedObject.bogus=1", "source=",
    "involvedObject.uid=", "reportingComponent=", "involvedObject.namespace=@ns,involvedObject.name!=x" },
    function(p, path)
      p:setup("POST", path, { metadata = { name = p:name "e" }, reason = p:name "reason", type = "Normal",
        involvedObject = { kind = "Pod", name = p:name "a", namespace = p:namespace() } })
    end),
  fields("fields of other kinds", function() return "/api/v1/namespaces" end,
    { "status.phase=Bogus", "name=default", "metadata.name=default", "status.bogus=1", "spec.x=1" }),
  fields("fields of jobs", function(p) return p:path("/apis/batch/v1", "jobs") end,
    { "status.successful=0", "status.x=1", "metadata.name=x" }),
  fields("fields of services", function(p) return p:core "services" end,
    { "spec.type=ClusterIP", "spec.clusterIP=None", "spec.type=LoadBalancer", "spec.x=1" },
    function(p, path)
      p:setup("POST", path, { metadata = { name = p:name "a" }, spec = { clusterIP = "None" } })
    end),
  fields("fields of deployments", function(p) return p:path("/apis/apps/v1", "deployments") end,
    { "metadata.name=x", "spec.replicas=1", "status.replicas=1" }),
  fields("fields of replica sets and nodes", function(p) return p:path("/apis/apps/v1", "replicasets") end,
    { "status.replicas=0", "spec.x=1" }),
  fields("fields of nodes", function() return "/api/v1/nodes" end, { "spec.unschedulable=false", "spec.x=1" }),
}
