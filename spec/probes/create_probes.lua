-- POST.
local json = require "spec.probes.json"
local samples = require "spec.probes.samples"

local config = samples.config

return {
  { name = "a new object has what the server adds", run = function(p)
    local path = p:core "configmaps"
    local name, key, value = p:draw("a", "key", "value")
    p:post(path, config(name, { labels = { [key] = value }, annotations = { [key] = value } },
      { [key] = value, other = "x" }))
    p:get(path .. "/" .. name)
    p:post(path, config(name))
  end },
  { name = "kind and version may be left out", run = function(p)
    p:post(p:core "configmaps", { metadata = { name = p:name "a" } })
    p:post(p:core "configmaps", { kind = "ConfigMap", metadata = { name = p:name "b" } })
    p:post(p:core "configmaps", { apiVersion = "v1", metadata = { name = p:name "c" } })
    p:post(p:path("/apis/apps/v1", "deployments"), (function()
      local d = samples.deployment(p:name "d")
      d.apiVersion, d.kind = nil, nil
      return d
    end)())
  end },
  { name = "names are generated", run = function(p)
    local path, base = p:core "configmaps", p:name "gen"
    local answer = p:post(path, config(nil, { generateName = base .. "-" }))
    p:note("shape", answer.json.metadata.name:find("^" .. base .. "%-[bcdfghjklmnpqrstvwxz2456789]+$") ~= nil
      and #answer.json.metadata.name - #base)
    p:post(path, config(p:name "a", { generateName = base .. "-" }))
    local long = ("x"):rep(70)
    local cut = p:post(path, config(nil, { generateName = long }), { quiet = true })
    p:note("length of a long one", #cut.json.metadata.name)
  end },
  { name = "names are checked", run = function(p)
    local path = p:core "configmaps"
    p:post(path, config(nil))
    p:post(path, { metadata = {} })
    p:post(path, config("Bad_Name"))
    p:post(path, config("a/b"))
    p:post(path, config(".."))
    p:post(path, config(("a"):rep(254)))
    p:post(path, config("-a"))
    p:post("/api/v1/namespaces", { metadata = { name = "a.b" } })
    p:post("/api/v1/namespaces", { metadata = { name = ("a"):rep(64) } })
    p:post(p:core "services", { metadata = { name = "1a" }, spec = { ports = { { port = 80 } } } })
    p:post(p:core "serviceaccounts", { metadata = { name = "A" } })
  end },
  { name = "labels and annotations are checked", run = function(p)
    local path, name = p:core "configmaps", p:name "a"
    p:post(path, config(name, { labels = { ["bad key"] = "x" } }))
    p:post(path, config(name, { labels = { ["a/b/c"] = "x" } }))
    p:post(path, config(name, { labels = { [("k"):rep(64)] = "x" } }))
    p:post(path, config(name, { labels = { ["/x"] = "x" } }))
    p:post(path, config(name, { labels = { k = "bad value" } }))
    p:post(path, config(name, { labels = { k = ("v"):rep(64) } }))
    p:post(path, config(name, { annotations = { ["bad key"] = "x" } }))
    p:post(path, config(name, { labels = { ["bad key"] = "bad value" }, annotations = { ["!"] = "" } }))
    p:post(path, config(name, { finalizers = { "bad finalizer" } }))
    p:post(path, config(name, { finalizers = { p:name "fin" } }))
    p:post(path, config(name, { finalizers = { "" } }))
  end },
  { name = "keys of data are checked", run = function(p)
    local path, name = p:core "configmaps", p:name "a"
    p:post(path, config(name, nil, { ["bad key"] = "x" }))
    p:post(path, config(name, nil, { [".."] = "x" }))
    p:post(path, config(name, nil, { [("k"):rep(254)] = "x" }))
    local both = config(name, nil, { k = "x" })
    both.binaryData = { k = "eA==" }
    p:post(path, both)
  end },
  { name = "owner references are checked", run = function(p)
    local path, name = p:core "configmaps", p:name "a"
    local uid = "11111111-2222-3333-4444-555555555555"
    local function owned(...) return config(name, { ownerReferences = { ... } }) end
    p:post(path .. "?dryRun=All", owned({ apiVersion = "v1", kind = "ConfigMap", name = "x", uid = uid }))
    p:post(path .. "?dryRun=All", owned({ apiVersion = "", kind = "", name = "", uid = "" }))
    p:post(path .. "?dryRun=All", owned({ apiVersion = "a/b/c", kind = "ConfigMap", name = "x", uid = uid }))
    p:post(path .. "?dryRun=All", owned({ apiVersion = "v1", kind = "Event", name = "x", uid = uid }))
    local controller = { apiVersion = "v1", kind = "ConfigMap", name = "x", uid = uid, controller = true }
    local second = { apiVersion = "v1", kind = "ConfigMap", name = "y", controller = true,
      uid = "11111111-2222-3333-4444-666666666666" }
    p:post(path .. "?dryRun=All", owned(controller, second))
    p:post(path .. "?dryRun=All", owned(controller, controller))
  end },
  { name = "the namespace must agree and exist", run = function(p)
    local path, name = p:core "configmaps", p:name "a"
    p:post(path, config(name, { namespace = "other" }))
    p:post(path, config(name, { namespace = p:namespace() }))
    p:post("/api/v1/namespaces/" .. p:name "missing" .. "/configmaps", config(name))
    p:post("/api/v1/namespaces", { metadata = { name = p:name "nn", namespace = "x" } })
    p:quiet("DELETE", "/api/v1/namespaces/" .. p:name "nn")
  end },
  { name = "bodies that are not such an object", run = function(p)
    local path, name = p:core "configmaps", p:name "a"
    p:post(path, { apiVersion = "v1", kind = "Secret", metadata = { name = name } })
    p:post(path, { apiVersion = "v2", kind = "ConfigMap", metadata = { name = name } })
    p:post(path, { apiVersion = "apps/v1", kind = "ConfigMap", metadata = { name = name } })
    p:post(path, { apiVersion = "v1", kind = "Nope", metadata = { name = name } })
    p:post(path, "{bad")
    p:post(path, "")
    p:post(path, "[]")
    p:post(path, '"text"')
    p:post(path, "null")
    p:post(path, '{"metadata":{"name":"x"}} trailing')
    p:post(path, "x", { type = "text/plain" })
    p:post(path, config(name), { type = "application/xml" })
    p:post(path, config(name), { type = "application/json; charset=utf-8" })
  end },
  { name = "values of the wrong type", run = function(p)
    local path, name = p:core "configmaps", p:name "a"
    p:post(path, { metadata = { name = name }, data = { k = 1 } })
    p:post(path, { metadata = { name = name }, data = "x" })
    p:post(path, { metadata = { name = 1 } })
    p:post(path, { metadata = { name = name, labels = { a = true } } })
    p:post(path, { metadata = { name = name, labels = json.array {} } })
    p:post(path, { metadata = { name = name }, data = json.null, immutable = json.null })
    p:post(p:path("/apis/apps/v1", "deployments"), { metadata = { name = name }, spec = { replicas = "3" } })
    p:post(p:path("/apis/apps/v1", "deployments"), { metadata = { name = name }, spec = { replicas = 1.5 } })
  end },
  { name = "a body in YAML", run = function(p)
    p:post(p:core "configmaps", ("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\ndata:\n  k: 'v'\n")
      :format(p:name "a"), { type = "application/yaml" })
    p:post(p:core "configmaps", "a: [", { type = "application/yaml" })
  end },
  { name = "a body in protobuf", run = function(p)
    local name = p:name "a"
    local function field(tag, bytes) return string.char(tag, #bytes) .. bytes end
    local meta = field(0x0a, name) .. "\x12\0\x1a\0\x22\0\x2a\0\x32\0\x38\0\x42\0"
    local raw = field(0x0a, meta) .. field(0x12, field(0x0a, "a") .. field(0x12, "b"))
    local body = "k8s\0" .. field(0x0a, field(0x0a, "v1") .. field(0x12, "ConfigMap")) .. field(0x12, raw)
      .. "\x1a\0\x22\0"
    p:post(p:core "configmaps", body, { type = "application/vnd.kubernetes.protobuf" })
    p:post(p:core "configmaps", "k8s\0\255\255", { type = "application/vnd.kubernetes.protobuf" })
  end },
  { name = "system fields are replaced", run = function(p)
    local path, name = p:core "configmaps", p:name "a"
    p:post(path, config(name, { uid = "mine", creationTimestamp = "2001-01-01T00:00:00Z", selfLink = "/x",
      deletionTimestamp = "2001-01-01T00:00:00Z", deletionGracePeriodSeconds = 7, generation = 9 }))
    p:post(path, config(p:name "b", { resourceVersion = "5" }))
    p:post(path, config(p:name "c", { resourceVersion = "" }))
  end },
  { name = "nothing happens in a dry run", run = function(p)
    local path, name = p:core "configmaps", p:name "a"
    p:post(path .. "?dryRun=All", config(name, nil, { k = "v" }))
    p:get(path .. "/" .. name)
    p:post(path .. "?dryRun=Bogus", config(name))
    p:post(path .. "?dryRun=All&dryRun=All", config(name))
  end },
  { name = "field managers", run = function(p)
    local path = p:core "configmaps"
    p:post(path .. "?fieldManager=" .. p:name "manager", config(p:name "a", nil, { k = "v" }))
    p:post(path, config(p:name "b", nil, { k = "v" }), { agent = "tool" })
    p:post(path .. "?fieldManager=" .. ("m"):rep(129), config(p:name "c", nil, { k = "v" }))
    p:post(path .. "?fieldManager=bad%00name", config(p:name "d", nil, { k = "v" }))
  end },
}
