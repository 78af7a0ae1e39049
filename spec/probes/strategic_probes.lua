-- PATCH with strategic merge patches on built-in kinds.
local json = require "spec.probes.json"
local samples = require "spec.probes.samples"

local container = samples.container

local function existing(p, ...)
  local name = p:name "d"
  local path = p:path("/apis/apps/v1", "deployments")
  p:setup("POST", path, samples.deployment(name, { ... }))
  return path .. "/" .. name
end

local function pod_patch(spec) return { spec = { template = { spec = spec } } } end

local function containers(v) return v.spec and v.spec.template.spec.containers or v end
local function pod_spec(v) return v.spec and v.spec.template.spec or v end

return {
  { name = "a deployment has its defaults", run = function(p)
    p:get(existing(p, container "main"))
  end },
  { name = "containers are merged by name", run = function(p)
    local path = existing(p, container "first", container "second")
    local function patch(body) p:patch("strategic", path, body, { pick = containers }) end
    patch(pod_patch { containers = { { name = "second", image = "example.com/new:2" } } })
    patch(pod_patch { containers = { container "third" } })
    patch(pod_patch { containers = { { name = "first", ["$patch"] = "delete" } } })
    patch(pod_patch { containers = { { name = "third", env = { { name = "A", value = "1" },
      { name = "B", value = "2" } } } } })
    patch(pod_patch { containers = { { name = "third", env = { { name = "A", value = "3" } } } } })
    patch(pod_patch { containers = { { name = "third", env = { { name = "B", ["$patch"] = "delete" } } } } })
    patch(pod_patch { containers = { { name = "third", env = json.null } } })
    patch(pod_patch { containers = { container "only", { ["$patch"] = "replace" } } })
    p:get(path)
  end },
  { name = "the order of elements can be set", run = function(p)
    local path = existing(p, container "a", container "b", container "c")
    p:patch("strategic", path, pod_patch { ["$setElementOrder/containers"] = { { name = "c" }, { name = "a" },
      { name = "b" } } }, { pick = containers })
    p:patch("strategic", path, pod_patch { ["$setElementOrder/containers"] = { { name = "b" }, { name = "d" } },
      containers = { container "d" } }, { pick = containers })
  end },
  { name = "lists of plain values and whole maps", run = function(p)
    local path = existing(p, container "main")
    local function patch(body) p:patch("strategic", path, body, { pick = pod_spec }) end
    patch(pod_patch { containers = { { name = "main", args = { "a", "b" }, command = { "x" } } } })
    patch(pod_patch { containers = { { name = "main", args = { "c" } } } })
    patch(pod_patch { nodeSelector = { a = "1", b = "2" } })
    patch(pod_patch { nodeSelector = { ["$patch"] = "replace", c = "3" } })
    patch(pod_patch { nodeSelector = { ["$patch"] = "delete" } })
    patch(pod_patch { nodeSelector = json.null })
    patch(pod_patch { tolerations = { { key = "k", operator = "Exists" } } })
    patch(pod_patch { volumes = { { name = "v", emptyDir = json.object {} } } })
    patch(pod_patch { volumes = { { name = "v", ["$retainKeys"] = { "name", "configMap" },
      configMap = { name = "c" } } } })
  end },
  { name = "values are removed from lists", run = function(p)
    local name = p:name "s"
    local path = p:core("configmaps", name)
    p:setup("POST", p:core "configmaps", samples.config(name, { finalizers = { "example.com/a", "example.com/b" } }))
    local function patch(body) p:patch("strategic", path, { metadata = body }) end
    patch { finalizers = { "example.com/c" } }
    patch { ["$deleteFromPrimitiveList/finalizers"] = { "example.com/a" } }
    patch { ["$setElementOrder/finalizers"] = { "example.com/c", "example.com/b" } }
    patch { finalizers = { ["$patch"] = "replace" } }
    patch { ["$deleteFromPrimitiveList/finalizers"] = { "example.com/b", "example.com/c" } }
  end },
  { name = "services merge their ports", run = function(p)
    local name = p:name "s"
    local path = p:core("services", name)
    p:post(p:core "services", { metadata = { name = name }, spec = { selector = { app = "x" },
      ports = { { name = "a", port = 80 }, { name = "b", port = 81, targetPort = "http" } } } })
    p:patch("strategic", path, { spec = { ports = { { port = 81, name = "c" } } } })
    p:patch("strategic", path, { spec = { ports = { { port = 80, ["$patch"] = "delete" } } } })
    p:patch("strategic", path, { spec = { ports = { { port = 80, ["$patch"] = "bogus" } } } })
    p:delete(path)
  end },
  { name = "strategic patches that are refused", run = function(p)
    local path = existing(p, container "main")
    p:patch("strategic", path, "{bad")
    p:patch("strategic", path, "[]")
    p:patch("strategic", path, pod_patch { containers = { { image = "example.com/x:1" } } })
    p:patch("strategic", path, pod_patch { containers = "x" })
    p:patch("strategic", path, { ["$patch"] = "bogus" })
    p:patch("strategic", path, pod_patch { containers = { { name = "main", image = 5 } } })
  end },
}
