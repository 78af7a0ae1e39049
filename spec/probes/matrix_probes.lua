-- Options of reading, all with all: versions, matches, limits, initial events, selectors.
local json = require "spec.probes.json"
local samples = require "spec.probes.samples"

local names = samples.names

local function escape(text)
  return (text:gsub("[^%w%-_%.]", function(c) return ("%%%02X"):format(c:byte()) end))
end

-- Every choice of one value for each parameter, as a query.
local function each_query(parameters, fn, i, query)
  i, query = i or 1, query or ""
  local parameter = parameters[i]
  if not parameter then return fn(query) end
  for _, value in ipairs(parameter[2]) do
    local part = value ~= "-" and ("&%s=%s"):format(parameter[1], escape(value)) or ""
    each_query(parameters, fn, i + 1, query .. part)
  end
end

local function three(p)
  local path, made = p:core "secrets", nil
  for i = 1, 3 do
    made = p:setup("POST", path, samples.secret(p:name("s" .. i), { labels = { n = tostring(i) } })).json
  end
  return path, made.metadata.resourceVersion
end

return {
  { name = "versions, matches and limits of lists", run = function(p)
    local path, version = three(p)
    p:setup("DELETE", path .. "/" .. p:name "s2")
    each_query({ { "resourceVersion", { "-", "", "0", version, "abc", "-1" } },
      { "resourceVersionMatch", { "-", "", "Exact", "NotOlderThan", "exact" } },
      { "limit", { "-", "1" } } },
      function(query) p:get(path .. "?" .. query:sub(2), { pick = names }) end)
  end },
  { name = "versions, matches and limits of one object and of pages", run = function(p)
    local path, version = three(p)
    local one = path .. "/" .. p:name "s1"
    for _, query in ipairs { "resourceVersion=" .. version, "resourceVersion=0", "resourceVersion=abc",
      "resourceVersion=" .. version .. "&resourceVersionMatch=Exact", "resourceVersionMatch=Bogus", "limit=x",
      "pretty=true&limit=1", "resourceVersion=18446744073709551616", "resourceVersion=+5" } do
      p:get(one .. "?" .. query, { pick = function(v) return v.code and v or v.metadata.name end })
    end
    local token = p:get(path .. "?limit=1", { pick = names }).json.metadata.continue
    for _, query in ipairs { "", "&limit=0", "&limit=-5", "&limit=1&labelSelector=n%3D3", "&resourceVersion=0",
      "&resourceVersion=" .. version, "&resourceVersionMatch=Exact", "&resourceVersionMatch=NotOlderThan",
      "&limit=99999999999999999999" } do
      p:get(path .. "?continue=" .. token .. query, { pick = names })
    end
    p:get(p:core "configmaps" .. "?limit=1&continue=" .. token, { pick = function(v) return v.kind end })
    for _, text in ipairs { "e30", "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ",
      "eyJ2IjoibWV0YS5rOHMuaW8vdjIiLCJydiI6MSwic3RhcnQiOiJhIn0",
      "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MCwic3RhcnQiOiJhIn0", "bm9uc2Vuc2U", "%25%25" } do
      p:get(path .. "?limit=1&continue=" .. text, { pick = names })
    end
  end },
  { name = "versions, matches and initial events of watches", run = function(p)
    local path, version = three(p)
    each_query({ { "resourceVersion", { "-", "0", version } }, { "resourceVersionMatch", { "-", "NotOlderThan",
      "Exact" } },
      { "sendInitialEvents", { "-", "true", "false" } }, { "allowWatchBookmarks", { "-", "true" } } },
      function(query)
        local watch = p:watch(path .. "?timeoutSeconds=1" .. query, { pick = function(event)
          local metadata = event.object.metadata
          return event.type == "ERROR" and event
            or { type = event.type, name = metadata.name, annotations = metadata.annotations } end })
        if watch.exchange.status ~= 200 then return watch:refusal() end
        local count = query:find("sendInitialEvents=false", 1, true) and 0
          or query:find("resourceVersion=" .. version, 1, true) and not query:find("sendInitialEvents", 1, true) and 0
          or query:find("allowWatchBookmarks", 1, true) and 4 or 3
        watch:take(count, 2)
        watch:close()
      end)
  end },
  { name = "label selectors that are odd", run = function(p)
    local path = three(p)
    p:setup("POST", path, samples.secret(p:name "s4", { labels = { ["e.com/x"] = "a", n = "10", empty = "" } }))
    for _, selector in ipairs { "", " ", ",", "n", "!n", "! n", "n,empty", "n = 1", "n=", "empty=", "empty",
      "n in (1,2)",
      "n in ( 1 , 3 )", "n in (1)", "n in ()", "n in (,)", "n in (1,)", "n in 1", "n notin (1,2)", "n notin ()",
        "n>1", "n > 2",
      "n<2", "n>a", "n>=1", "n<1,n>1", "e.com/x", "e.com/x=a", "e.com/x/y", "/x", "e.com/", "n==1", "n=1=2", "n!=1",
      "n!=1,n!=2", "=1", "n=1,", ",n=1", "n=1,,n=2", "n=b_c", "n=-", "n=a b", "n='1'", "In=1", "n IN (1)", "in",
        "in in (in)",
      "notin=1", "n in (1", "n=" .. ("x"):rep(64), ("y"):rep(64) .. "=1", "n\t=\n1", "é=1", "n=é", "(n)", "n=1;n=2" } do
      p:get(path .. "?labelSelector=" .. escape(selector), { pick = names })
    end
  end },
  { name = "field selectors that are odd", run = function(p)
    local path = three(p)
    local s1, s2 = p:name "s1", p:name "s2"
    for _, selector in ipairs { "", ",", "metadata.name", "metadata.name=", "metadata.name=" .. s1,
      "metadata.name==" .. s1,
      "metadata.name!=" .. s1, "metadata.name=" .. s1 .. ",metadata.name=" .. s2, "metadata.name = " .. s1,
      "metadata.name=" .. s1 .. ",", "metadata.name=" .. s1 .. ",,type=Opaque", "type=Opaque", "type!=Opaque", "type=",
      "metadata.namespace=other", "metadata.name in (a)", "metadata.labels.n=1", "metadata.uid=x", "!metadata.name",
      "metadata.name=a\\,b", "metadata.name=a=b", "metadata.name=a\\", "=x", "metadata.name!" } do
      p:get(path .. "?fieldSelector=" .. escape(selector), { pick = names })
    end
  end },
  { name = "field selectors of every kind that has its own", run = function(p)
    local pods = p:core "pods"
    p:setup("POST", pods, samples.pod(p:name "p1", nil, { nodeName = "n1", hostNetwork = true }))
    p:setup("POST", pods, samples.pod(p:name "p2", nil, { restartPolicy = "Never", schedulerName = "mine" }))
    for _, selector in ipairs { "spec.nodeName=n1", "spec.nodeName=", "spec.nodeName!=n1", "spec.host=n1",
      "spec.restartPolicy=Never", "spec.schedulerName=mine", "spec.serviceAccountName=default", "spec.hostNetwork=true",
      "spec.hostNetwork=false", "status.phase=Pending", "status.phase!=Pending", "status.podIP=", "status.podIPs=",
      "status.nominatedNodeName=", "spec.bogus=1", "spec.nodeName=n1,status.phase=Pending" } do
      p:get(pods .. "?fieldSelector=" .. escape(selector), { pick = names })
    end
    p:setup("POST", p:core "services", { metadata = { name = p:name "svc" }, spec = { clusterIP = "None",
      ports = { { port = 1 } } } })
    for _, case in ipairs { { "services", "spec.clusterIP=None" }, { "services", "spec.type=ClusterIP" },
      { "services", "spec.x=1" }, { "events", "involvedObject.kind=Pod" }, { "events", "reason=x" },
      { "events", "source=x" }, { "events", "reportingComponent=x" }, { "events", "type=Normal" }, { "events",
        "count=1" },
      { "replicationcontrollers", "status.replicas=0" }, { "configmaps", "data.x=1" } } do
      p:get(p:core(case[1]) .. "?fieldSelector=" .. escape(case[2]), { pick = names })
    end
    for _, case in ipairs { { "/apis/batch/v1", "jobs", "status.successful=0" }, { "/apis/batch/v1", "jobs",
      "spec.x=1" },
      { "/apis/apps/v1", "deployments", "spec.replicas=1" }, { "/apis/apps/v1", "replicasets", "status.replicas=0" },
      { "/apis/batch/v1", "cronjobs", "spec.x=1" }, { "/apis/events.k8s.io/v1", "events", "regarding.kind=Pod" },
      { "/apis/events.k8s.io/v1", "events", "reason=x" } } do
      p:get(p:path(case[1], case[2]) .. "?fieldSelector=" .. escape(case[3]), { pick = names })
    end
    for _, target in ipairs { "/api/v1/nodes?fieldSelector=spec.unschedulable%3Dtrue",
      "/api/v1/nodes?fieldSelector=spec.x%3Dtrue", "/api/v1/namespaces?fieldSelector=spec.x%3D1",
      "/api/v1/namespaces?fieldSelector=status.phase%3DTerminating,metadata.name%3Dnone",
      "/api/v1/namespaces?fieldSelector=name%3Ddefault",
      "/apis/certificates.k8s.io/v1/certificatesigningrequests?fieldSelector=spec.signerName%3Dx",
      "/apis/certificates.k8s.io/v1/certificatesigningrequests?fieldSelector=spec.x%3Dx" } do
      p:get(target, { pick = names })
    end
  end },
  { name = "objects enter and leave selectors of fields and of both", run = function(p)
    local pods, name = p:core "pods", p:name "p"
    local function note(event)
      return { type = event.type, object = { metadata = { labels = event.object.metadata.labels,
        resourceVersion = event.object.metadata.resourceVersion }, phase = json.get(event, "object", "status",
          "phase") } }
    end
    local running = p:watch(pods .. "?fieldSelector=status.phase%3DRunning", { pick = note })
    local both = p:watch(pods .. "?fieldSelector=status.phase%3DRunning&labelSelector=a", { pick = note })
    local neither = p:watch(pods .. "?fieldSelector=status.phase%21%3DRunning&labelSelector=%21a", { pick = note })
    local from = p:setup("POST", pods, samples.pod(name)).json.metadata.resourceVersion
    local path = pods .. "/" .. name
    local function phase(value) p:patch("merge", path .. "/status", { status = { phase = value } },
      { quiet = true }) end
    phase "Running"
    p:patch("merge", path, { metadata = { labels = { a = "1" } } }, { quiet = true })
    p:patch("merge", path, { metadata = { labels = { a = "2" } } }, { quiet = true })
    phase "Succeeded"
    p:patch("merge", path, { metadata = { labels = { a = json.null } } }, { quiet = true })
    phase "Running"
    p:setup("DELETE", path .. "?gracePeriodSeconds=0")
    running:take(6, 5)
    both:take(3, 5)
    neither:take(4, 5)
    p:watch(pods .. "?fieldSelector=status.phase%3DRunning&labelSelector=a&resourceVersion=" .. from,
      { pick = note }):take(3, 5)
  end },
  { name = "bookmarks in tables and metadata", run = function(p)
    local path, version = three(p)
    local table_type = "application/json;as=Table;v=v1;g=meta.k8s.io"
    local partial = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
    local stream = "?sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    p:watch(path .. stream, { accept = table_type }):take(4)
    p:watch(path .. stream, { accept = partial }):take(4)
    p:watch(path .. stream .. "&includeObject=None", { accept = table_type }):take(4)
    p:watch(path .. "?includeObject=Bogus", { accept = table_type }):refusal()
    p:watch(path .. "?timeoutSeconds=1&allowWatchBookmarks=true&resourceVersion=" .. version,
      { accept = table_type }):finish(5)
    p:watch(path .. stream, { accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io" }):refusal()
  end },
}
