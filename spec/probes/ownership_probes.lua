-- Who owns which field: apply in its corners.
local json = require "spec.probes.json"
local samples = require "spec.probes.samples"

local config, container = samples.config, samples.container

local function managed(path, manager, more) return ("%s?fieldManager=%s%s"):format(path, manager, more or "") end

local function deployment(name, spec)
  return { apiVersion = "apps/v1", kind = "Deployment", metadata = { name = name }, spec = spec }
end

-- A deployment that `manager` applied, and its path.
local function applied(p, manager, containers)
  local name = p:name "d"
  local path = p:path("/apis/apps/v1", "deployments", name)
  p:patch("apply", managed(path, manager), samples.deployment(name, containers))
  return path, name
end

return {
  { name = "an update with the same value shares a field, another value takes it", run = function(p)
    local name, one, two = p:draw("a", "mone", "mtwo")
    local path = p:core("configmaps", name)
    p:patch("apply", managed(path, one), config(name, nil, { k = "1", l = "1" }))
    p:patch("merge", managed(path, two), { data = { k = "1", m = "1" } })
    p:patch("merge", managed(path, two), { data = { k = "2" } })
    p:patch("apply", managed(path, one), config(name, nil, { k = "1", l = "1" }))
    p:patch("apply", managed(path, one), config(name, nil, { l = "1" }))
    p:patch("merge", managed(path, one), { data = { l = "1", n = "2" } })
    p:patch("apply", managed(path, one), config(name, nil, { n = "3" }))
    p:get(path)
  end },
  { name = "nulls and empty values in what is applied", run = function(p)
    local name, one, two = p:draw("a", "mone", "mtwo")
    local path = p:core("configmaps", name)
    p:patch("apply", managed(path, one), config(name, nil, json.object {}))
    p:patch("apply", managed(path, one), { apiVersion = "v1", kind = "ConfigMap", metadata = { name = name },
      data = { k = json.null } })
    p:patch("apply", managed(path, two), { apiVersion = "v1", kind = "ConfigMap", metadata = { name = name,
      labels = json.null, annotations = json.object {} }, data = json.null })
    p:patch("apply", managed(path, two), config(name, { labels = { a = "" } }, { k = "" }))
    p:patch("apply", managed(path, one), config(name))
    p:get(path)
  end },
  { name = "elements of lists by key go and stay", run = function(p)
    local one, two = p:draw("mone", "mtwo")
    local first, second = container "first", container "second"
    first.ports = { { containerPort = 80 }, { containerPort = 80, protocol = "UDP" }, { containerPort = 81 } }
    first.env = { { name = "A", value = "1" }, { name = "B", value = "2" } }
    local path, name = applied(p, one, { first, second })
    first.ports = { { containerPort = 80, protocol = "UDP" } }
    first.env = { { name = "B", value = "3" }, { name = "C", value = "4" } }
    p:patch("apply", managed(path, one), samples.deployment(name, { second, first }))
    p:patch("apply", managed(path, two), deployment(name, { template = { spec = { containers = {
      { name = "first", env = { { name = "D", value = "5" } } } } } } }))
    p:patch("apply", managed(path, one), samples.deployment(name, { second }))
    p:patch("apply", managed(path, two), deployment(name, { template = { spec = { containers = {
      { name = "second", image = "example.com/other:1", command = { "a", "b" } } } } } }))
    p:patch("apply", managed(path, two, "&force=true"), deployment(name, { template = { spec = { containers = {
      { name = "second", image = "example.com/other:1", command = { "a", "b" } } } } } }))
  end },
  { name = "lists by key that are wrong", run = function(p)
    local one = p:draw "mone"
    local path, name = applied(p, one)
    local function with(...)
      return deployment(name, { selector = { matchLabels = { app = name } },
        template = { metadata = { labels = { app = name } }, spec = { containers = { ... } } } })
    end
    p:patch("apply", managed(path, one), with(container "x", container "x"))
    p:patch("apply", managed(path, one), with { image = "example.com/x:1" })
    local twice = container "main"
    twice.env = { { name = "A", value = "1" }, { name = "A", value = "2" } }
    p:patch("apply", managed(path, one), with(twice))
    local portless = container "main"
    portless.ports = { { name = "x" } }
    p:patch("apply", managed(path, one), with(portless))
    p:patch("apply", managed(path, one), deployment(name, { template = { spec = { containers = "x" } } }))
    p:patch("apply", managed(path, one), deployment(name, "x"))
    local a = p:name "a"
    p:patch("apply", managed(p:core("configmaps", a), one), config(a, { finalizers = { "e.com/a", "e.com/a" } }))
  end },
  { name = "whole maps and lists conflict as one", run = function(p)
    local one, two = p:draw("mone", "mtwo")
    local path, name = applied(p, one)
    local function inner(spec) return deployment(name, { template = { spec = spec } }) end
    p:patch("apply", managed(path, two), inner { nodeSelector = { a = "1" }, tolerations = { { key = "t" } } })
    p:patch("apply", managed(path, one .. "x"), inner { nodeSelector = { b = "1" }, tolerations = { { key = "u" } } })
    p:patch("apply", managed(path, one .. "x", "&force=true"), inner { nodeSelector = { b = "1" } })
    p:patch("apply", managed(path, two), inner { tolerations = json.array {} })
    p:patch("apply", managed(path, two), deployment(name, { selector = { matchLabels = { z = "1" } } }))
  end },
  { name = "versions, uids and objects that are ending", run = function(p)
    local name, one = p:draw("a", "mone")
    local path = p:core("configmaps", name)
    p:patch("apply", managed(path, one), config(name, { uid = "11111111-0000-0000-0000-000000000000" }))
    p:patch("apply", managed(path, one), config(name, { resourceVersion = "5" }))
    local made = p:patch("apply", managed(path, one), config(name, { finalizers = { "example.com/f" } })).json
    p:release(path)
    p:patch("apply", managed(path, one), config(name, { resourceVersion = made.metadata.resourceVersion,
      finalizers = { "example.com/f" } }, { k = "1" }))
    p:patch("apply", managed(path, one), config(name, { resourceVersion = made.metadata.resourceVersion,
      finalizers = { "example.com/f" } }, { k = "2" }))
    p:patch("apply", managed(path, one), config(name, { uid = "11111111-0000-0000-0000-000000000000" }))
    p:delete(path)
    p:patch("apply", managed(path, one), config(name, { finalizers = { "example.com/f", "example.com/g" } }))
    p:patch("apply", managed(path, one), config(name, { finalizers = { "example.com/f" } }, { k = "3" }))
    p:patch("apply", managed(path, one), config(name))
    p:get(path)
  end },
  { name = "status and spec have their own owners", run = function(p)
    local one, two = p:draw("mone", "mtwo")
    local path, name = applied(p, one)
    local function status(replicas)
      return { apiVersion = "apps/v1", kind = "Deployment", metadata = { name = name },
        status = { replicas = replicas, conditions = { { type = "Available", status = "True", reason = "r" } } } }
    end
    p:patch("apply", managed(path .. "/status", one), status(1))
    p:patch("apply", managed(path .. "/status", two), status(2))
    p:patch("apply", managed(path .. "/status", two, "&force=true"), status(2))
    p:patch("apply", managed(path, two), { apiVersion = "apps/v1", kind = "Deployment", metadata = { name = name },
      status = { replicas = 5 } })
    p:patch("merge", managed(path .. "/status", one), { status = { replicas = 3 } })
    p:patch("apply", managed(path .. "/status", two), status(4))
    p:get(path)
  end },
  { name = "scales tell who owns the replicas", run = function(p)
    local one, two = p:draw("mone", "mtwo")
    local name = p:name "d"
    local path = p:path("/apis/apps/v1", "deployments", name)
    local d = samples.deployment(name)
    d.spec.replicas = 1
    p:patch("apply", managed(path, one), d)
    p:patch("merge", managed(path .. "/scale", two), { spec = { replicas = 2 } })
    p:get(path .. "/scale")
    p:patch("apply", managed(path, one), d)
    d.spec.replicas = nil
    p:patch("apply", managed(path, one), d)
    p:patch("apply", managed(path .. "/scale", one), { apiVersion = "autoscaling/v1", kind = "Scale",
      metadata = { name = name }, spec = { replicas = 3 } })
    p:get(path)
  end },
  { name = "no more than ten updaters are told apart", run = function(p)
    local name = p:name "a"
    local path = p:core("configmaps", name)
    p:post(managed(p:core "configmaps", "m00"), config(name, nil, { k0 = "0" }), { quiet = true })
    for i = 1, 12 do
      p:patch("merge", managed(path, ("m%02d"):format(i)), { data = { ["k" .. i] = "v" } }, { quiet = true })
    end
    local managers = {}
    for _, entry in ipairs(p:get(path).json.metadata.managedFields) do managers[entry.manager] = true end
    p:note("one of them is all the old ones", managers["ancient-changes"] or false)
  end },
  { name = "the first to apply to an object that nobody owns", run = function(p)
    local name, one = p:draw("a", "mone")
    local path = p:core("configmaps", name)
    p:setup("POST", p:core "configmaps", config(name, { labels = { l = "1" } }, { k = "v", n = "1" }))
    p:patch("merge", path, { metadata = { managedFields = { json.object {} } } })
    p:patch("merge", managed(path, "upd"), { data = { n = "2" } })
    p:patch("merge", path, { metadata = { managedFields = { json.object {} } } })
    p:patch("apply", managed(path, one), config(name, nil, { k = "w" }))
    p:patch("apply", managed(path, one), config(name, nil, { x = "1" }))
    p:patch("json", path, '[{"op":"replace","path":"/metadata/managedFields","value":[]}]')
    p:get(path)
  end },
  { name = "unknown fields in what is applied", run = function(p)
    local name, one = p:draw("a", "mone")
    local path = p:core("configmaps", name)
    local odd = { apiVersion = "v1", kind = "ConfigMap", metadata = { name = name, odd = "1" }, data = { k = "v" } }
    p:patch("apply", managed(path, one), odd)
    p:patch("apply", managed(path, one, "&fieldValidation=Strict"), odd)
    p:patch("apply", managed(path, one, "&fieldValidation=Ignore"), odd)
    local twice = [[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s"},"data":{"k":"1","k":"2"}}]]
    twice = twice:format(name)
    p:patch("apply", managed(path, one), twice)
    p:patch("apply", managed(path, one, "&fieldValidation=Strict"), twice)
    p:patch("apply", managed(path, one, "&fieldValidation=Bogus"), odd)
    p:get(path)
  end },
  { name = "custom resources with sets, maps and atoms", run = function(p)
    local one, two = p:draw("mone", "mtwo")
    local w = samples.widgets(p)
    local path = w.path(p:name "w")
    local function apply(manager, spec, more)
      spec.size = nil
      return p:patch("apply", managed(path, manager, more), { apiVersion = w.version, kind = w.kind,
        metadata = { name = p:name "w" }, spec = spec })
    end
    apply(one, { tags = { "a", "b" }, ports = { { name = "x", port = 1 } } })
    p:patch("apply", managed(path, one), w.object(p:name "w", { tags = { "a", "b" },
      ports = { { name = "x", port = 1 } }, any = { deep = { a = 1 } }, extra = { e = "1" } }))
    apply(two, { tags = { "c", "a" }, ports = { { name = "y", port = 2 } }, any = { deep = { b = 2 } } })
    apply(two, { tags = { "c" }, ports = { { name = "x", port = 9 } }, any = { deep = { a = 2 } } })
    apply(two, { ports = { { name = "x", port = 9 } } }, "&force=true")
    p:patch("apply", managed(path, one), w.object(p:name "w", { tags = { "b" } }))
    apply(two, { color = "blue" })
    apply(two, {})
    p:get(path)
  end },
}
