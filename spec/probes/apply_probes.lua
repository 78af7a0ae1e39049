-- Server-side apply.
local samples = require "spec.probes.samples"

local config = samples.config

local function managed(path, manager, force)
  return ("%s?fieldManager=%s%s"):format(path, manager, force and "&force=true" or "")
end

return {
  { name = "an object is created and its fields are owned", run = function(p)
    local name, one = p:draw("a", "mone")
    local path = p:core("configmaps", name)
    p:patch("apply", managed(path, one), config(name, { labels = { l = "1" } }, { k = "v" }))
    p:patch("apply", managed(path, one), config(name, { labels = { l = "1" } }, { k = "v" }))
    p:patch("apply", managed(path, one), config(name, nil, { k = "w", n = "1" }))
    p:get(path)
  end },
  { name = "a body in YAML", run = function(p)
    local name = p:name "a"
    p:patch("apply", managed(p:core("configmaps", name), "yy"),
      ("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\ndata:\n  k: v\n"):format(name))
  end },
  { name = "options and bodies that are refused", run = function(p)
    local name, one = p:draw("a", "mone")
    local path = p:core("configmaps", name)
    p:patch("apply", path, config(name))
    p:patch("apply", managed(path, one), config(name, { managedFields = { { manager = "x", operation = "Apply",
      apiVersion = "v1", fieldsType = "FieldsV1", fieldsV1 = { ["f:data"] = {} } } } }))
    p:patch("apply", managed(path, one), config(p:name "b"))
    p:patch("apply", managed(path, one), { apiVersion = "v1", kind = "ConfigMap" })
    p:patch("apply", managed(path, one), { kind = "ConfigMap", metadata = { name = name } })
    p:patch("apply", managed(path, one), { apiVersion = "v1", metadata = { name = name } })
    p:patch("apply", managed(path, one), { apiVersion = "v1", kind = "Secret", metadata = { name = name } })
    p:patch("apply", managed(path, one), "{bad")
    p:patch("apply", managed(path, one), "a: [")
    p:patch("apply", managed(path, one), "")
    p:patch("apply", managed(path, one), { apiVersion = "v1", kind = "ConfigMap", metadata = { name = name }, foo = 1 })
    p:patch("apply", managed(path, one), config(name, nil, { k = 1 }))
    p:patch("apply", managed(path, one), config(name, { resourceVersion = "1" }))
    p:patch("apply", managed(path, one), config(name), { type = "application/apply-patch+cbor" })
  end },
  { name = "two appliers conflict over one field", run = function(p)
    local name, one, two = p:draw("a", "mone", "mtwo")
    local path = p:core("configmaps", name)
    p:patch("apply", managed(path, one), config(name, nil, { n = "1", o = "1" }))
    p:patch("apply", managed(path, two), config(name, nil, { n = "2" }))
    p:patch("apply", managed(path, two), config(name, nil, { n = "2", o = "2" }))
    p:patch("apply", managed(path, two), config(name, nil, { n = "1" }))
    p:patch("apply", managed(path, two, true), config(name, nil, { n = "2", x = "3" }))
    p:patch("apply", managed(path, one), config(name, nil, { n = "1", o = "1" }))
  end },
  { name = "applying conflicts with updates", run = function(p)
    local name, one = p:draw("a", "mone")
    local path = p:core("configmaps", name)
    p:post(p:core "configmaps", config(name, nil, { n = "1" }))
    p:patch("apply", managed(path, one), config(name, nil, { n = "2" }))
    p:patch("apply", managed(path, one), config(name, nil, { n = "1" }))
    p:patch("apply", managed(path, one, true), config(name, nil, { n = "2" }))
    p:patch("merge", path, { data = { n = "3" } })
    p:patch("apply", managed(path, one), config(name, nil, { n = "4" }))
  end },
  { name = "fields no longer applied go, unless another owns them", run = function(p)
    local name, one, two = p:draw("a", "mone", "mtwo")
    local path = p:core("configmaps", name)
    p:patch("apply", managed(path, one), config(name, nil, { a = "1", b = "2", c = "3" }))
    p:patch("apply", managed(path, two), config(name, nil, { b = "2" }))
    p:patch("apply", managed(path, one), config(name, nil, { c = "3" }))
    p:patch("apply", managed(path, one), config(name))
    p:patch("apply", managed(path, two), config(name))
  end },
  { name = "lists merge by their keys", run = function(p)
    local name, one, two = p:draw("a", "mone", "mtwo")
    local path = p:path("/apis/apps/v1", "deployments", name)
    local function deployment(...)
      return samples.deployment(name, { ... })
    end
    p:patch("apply", managed(path, one), deployment(samples.container "first"))
    local second = samples.container "second"
    local function partly(spec, force)
      p:patch("apply", managed(path, two, force), { apiVersion = "apps/v1", kind = "Deployment",
        metadata = { name = name }, spec = spec })
    end
    partly({ template = { spec = { containers = { second } } } }, true)
    second.env = { { name = "A", value = "1" } }
    partly { template = { spec = { containers = { second } } } }
    partly { replicas = 2 }
    p:patch("apply", managed(path, one), deployment(samples.container("first", "example.com/new:2")))
  end },
  { name = "sets and whole lists", run = function(p)
    local name, one, two = p:draw("a", "mone", "mtwo")
    local path = p:core("configmaps", name)
    p:patch("apply", managed(path, one), config(name, { finalizers = { "example.com/a" } }))
    p:patch("apply", managed(path, two), config(name, { finalizers = { "example.com/b" } }))
    p:patch("apply", managed(path, one), config(name))
    p:patch("apply", managed(path, two), config(name))
    local service = p:name "s"
    p:patch("apply", managed(p:core("services", service), one), { apiVersion = "v1", kind = "Service",
      metadata = { name = service }, spec = { selector = { a = "1" }, ports = { { port = 80 } } } })
    p:patch("apply", managed(p:core("services", service), two), { apiVersion = "v1", kind = "Service",
      metadata = { name = service }, spec = { selector = { b = "1" } } })
  end },
  { name = "a dry run of apply", run = function(p)
    local name = p:name "a"
    local path = p:core("configmaps", name)
    p:patch("apply", managed(path, "dd") .. "&dryRun=All", config(name, nil, { k = "v" }))
    p:get(path)
  end },
  { name = "applying to a subresource", run = function(p)
    local name = p:name "a"
    local path = p:path("/apis/apps/v1", "deployments", name)
    p:setup("POST", p:path("/apis/apps/v1", "deployments"), samples.deployment(name))
    p:patch("apply", managed(path .. "/status", "ss"), { apiVersion = "apps/v1", kind = "Deployment",
      metadata = { name = name }, status = { observedGeneration = 1, replicas = 3 } })
    p:patch("apply", managed(path .. "/scale", "ss", true), { apiVersion = "autoscaling/v1", kind = "Scale",
      metadata = { name = name }, spec = { replicas = 4 } })
    p:get(path)
  end },
}
