-- Strategic merge patches: directives, keys of lists, and what goes wrong with them.
local json = require "spec.probes.json"
local samples = require "spec.probes.samples"

local container = samples.container

local function strategic(p, path, patch, options) return p:patch("strategic", path, patch, options) end

local function spec_of(v) return json.get(v, "spec", "template", "spec") or v end

-- A deployment with two containers; a function that patches the spec of its pods.
local function patched(p, spec)
  local name = p:name "d"
  local first, second = container "first", container "second"
  first.env = { { name = "A", value = "1" }, { name = "B", value = "2" } }
  local d = samples.deployment(name, { first, second })
  for key, value in pairs(spec or {}) do d.spec.template.spec[key] = value end
  p:setup("POST", p:path("/apis/apps/v1", "deployments"), d)
  local path = p:path("/apis/apps/v1", "deployments", name)
  return function(patch)
    return strategic(p, path, { spec = { template = { spec = patch } } }, { pick = spec_of })
  end, path
end

return {
  { name = "replace, delete and merge of maps and lists", run = function(p)
    local patch, path = patched(p)
    patch { containers = { { name = "first", env = { { name = "A", ["$patch"] = "delete" } } } } }
    patch { containers = { { name = "first", env = { { ["$patch"] = "replace" }, { name = "Z", value = "9" } } } } }
    patch { containers = { { name = "nobody", ["$patch"] = "delete" } } }
    patch { securityContext = { runAsUser = 5, runAsNonRoot = true } }
    patch { securityContext = { ["$patch"] = "replace", fsGroup = 7 } }
    patch { securityContext = { ["$patch"] = "merge", runAsUser = 8 } }
    patch { securityContext = { ["$patch"] = "delete" } }
    patch { containers = { { ["$patch"] = "replace" }, container "third" } }
    strategic(p, path, { metadata = { labels = { ["$patch"] = "replace", only = "1" } } })
    strategic(p, path, { metadata = { labels = { ["$patch"] = "delete" } } })
  end },
  { name = "directives that make no sense", run = function(p)
    local patch, path = patched(p)
    patch { containers = { { name = "first", ["$patch"] = "explode" } } }
    patch { containers = { { ["$patch"] = "delete" } } }
    patch { containers = { { image = "example.com/x:1" } } }
    patch { containers = { "x" } }
    patch { containers = "x" }
    patch { containers = json.null }
    patch { securityContext = { ["$patch"] = 5 } }
    patch { ["$retainKeys"] = "x" }
    patch { ["$setElementOrder/containers"] = "x" }
    patch { ["$deleteFromPrimitiveList/containers"] = { "x" } }
    strategic(p, path, { metadata = { finalizers = { { a = 1 } } } })
    strategic(p, path, "[]")
    strategic(p, path, "null")
    strategic(p, path, '"x"')
  end },
  { name = "keys that are retained", run = function(p)
    local patch, path = patched(p, { volumes = { { name = "v", emptyDir = { medium = "Memory" } },
      { name = "w", configMap = { name = "c" } } } })
    patch { volumes = { { name = "v", configMap = { name = "c" }, ["$retainKeys"] = { "name", "configMap" } } } }
    patch { volumes = { { name = "w", secret = { secretName = "s" } } } }
    patch { volumes = { { name = "w", ["$patch"] = "delete" } } }
    strategic(p, path, { spec = { strategy = { ["$retainKeys"] = { "type" }, type = "Recreate" } } })
    strategic(p, path, { spec = { strategy = { ["$retainKeys"] = { "type" }, rollingUpdate = json.object {} } } })
    strategic(p, path, { spec = { strategy = { type = "RollingUpdate" } } })
    strategic(p, path, { spec = { strategy = { type = "Recreate" } } })
  end },
  { name = "the order of merged elements", run = function(p)
    local patch = patched(p)
    patch { ["$setElementOrder/containers"] = { { name = "second" }, { name = "first" } } }
    patch { ["$setElementOrder/containers"] = { { name = "third" }, { name = "first" }, { name = "second" } },
      containers = { container "third" } }
    patch { ["$setElementOrder/containers"] = { { name = "second" } }, containers = { container "fourth" } }
    patch { ["$setElementOrder/containers"] = { { name = "second" }, { name = "first" } },
      containers = { { name = "second", image = "example.com/new:1" }, { name = "first", ["$patch"] = "delete" } } }
    patch { containers = { container "aaa", container "zzz" } }
  end },
  { name = "lists with keys of every kind", run = function(p)
    local patch = patched(p)
    patch { hostAliases = { { ip = "10.0.0.1", hostnames = { "a" } } } }
    patch { hostAliases = { { ip = "10.0.0.1", hostnames = { "b" } }, { ip = "10.0.0.2", hostnames = { "c" } } } }
    patch { imagePullSecrets = { { name = "x" } } }
    patch { imagePullSecrets = { { name = "y" }, { name = "x", ["$patch"] = "delete" } } }
    patch { tolerations = { { key = "a" } } }
    patch { tolerations = { { key = "b" } } }
    local all = { matchLabels = { a = "b" } }
    patch { topologySpreadConstraints = { { topologyKey = "zone", maxSkew = 1, whenUnsatisfiable = "DoNotSchedule",
      labelSelector = all } } }
    patch { topologySpreadConstraints = { { topologyKey = "zone", maxSkew = 2, whenUnsatisfiable = "ScheduleAnyway",
      labelSelector = all } } }
    patch { containers = { { name = "first", ports = { { containerPort = 80 } } } } }
    patch { containers = { { name = "first", ports = { { containerPort = 80, name = "web" },
      { containerPort = 81 } } } } }
    patch { containers = { { name = "first", volumeMounts = { { name = "v", mountPath = "/a" } } } },
      volumes = { { name = "v", emptyDir = json.object {} } } }
    patch { containers = { { name = "first", volumeMounts = { { name = "v", mountPath = "/b" } } } } }
    patch { containers = { { name = "first", env = { { name = "A", value = json.null, valueFrom = { fieldRef = {
      fieldPath = "metadata.name" } } } } } } }
  end },
  { name = "owners, finalizers and conditions", run = function(p)
    local name = p:name "d"
    local path = p:core("pods", name)
    p:setup("POST", p:core "pods", samples.pod(name))
    p:release(path)
    -- Owners that exist, or the collector would take the pod.
    local function owner(label)
      local made = p:setup("POST", p:core "configmaps", samples.config(p:name(label))).json
      return samples.owner("ConfigMap", { apiVersion = "v1", metadata = made.metadata })
    end
    local first, second = owner "o1", owner "o2"
    strategic(p, path, { metadata = { finalizers = { "e.com/a", "e.com/b" } } })
    strategic(p, path, { metadata = { finalizers = { "e.com/c" } } })
    strategic(p, path, { metadata = { ["$deleteFromPrimitiveList/finalizers"] = { "e.com/a", "e.com/z" },
      finalizers = { "e.com/d" } } })
    strategic(p, path, { metadata = { ["$setElementOrder/finalizers"] = { "e.com/d", "e.com/b" } } })
    strategic(p, path, { metadata = { ownerReferences = { first } } })
    strategic(p, path, { metadata = { ownerReferences = { second } } })
    strategic(p, path, { metadata = { ownerReferences = { { uid = first.uid, ["$patch"] = "delete" } } } })
    strategic(p, path .. "/status", { status = { conditions = { { type = "Ready", status = "False" } } } })
    strategic(p, path .. "/status", { status = { conditions = { { type = "Ready", status = "True", reason = "r" },
      { type = "Other", status = "True" } } } })
    strategic(p, path .. "/status", { status = { conditions = { { type = "Other", ["$patch"] = "delete" } } } })
  end },
}
