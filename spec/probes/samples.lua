-- Objects that several probes send.
local json = require "spec.probes.json"

local samples = {}

local function merged(base, more)
  for key, value in pairs(more or {}) do base[key] = value end
  return base
end

--- A ConfigMap of that name; `metadata` and `data` add to it.
function samples.config(name, metadata, data)
  return { apiVersion = "v1", kind = "ConfigMap", metadata = merged({ name = name }, metadata), data = data }
end

--- A Secret: no controller makes any by itself, so lists of them hold only what a probe put there.
function samples.secret(name, metadata, data)
  return { apiVersion = "v1", kind = "Secret", metadata = merged({ name = name }, metadata), stringData = data }
end

function samples.container(name, image) return { name = name, image = image or "example.com/" .. name .. ":1" } end

--- A pod that nothing will run and no service account is asked for.
function samples.pod(name, metadata, spec)
  return { apiVersion = "v1", kind = "Pod", metadata = merged({ name = name }, metadata),
    spec = merged({ automountServiceAccountToken = false, containers = { samples.container "main" } }, spec) }
end

function samples.deployment(name, containers, metadata)
  return { apiVersion = "apps/v1", kind = "Deployment", metadata = merged({ name = name }, metadata),
    spec = { selector = { matchLabels = { app = name } },
      template = { metadata = { labels = { app = name } },
        spec = { containers = containers or { samples.container "main" } } } } }
end

function samples.owner(kind, object, more)
  local version = object.apiVersion
  return merged({ apiVersion = version, kind = kind, name = object.metadata.name, uid = object.metadata.uid }, more)
end

--- For `pick`: the causes of a refusal sorted, in the message too. Where a schema is checked, the
--- order of what is wrong is luck.
function samples.sorted_causes(v)
  local causes = json.get(v, "details", "causes")
  local head = type(v.message) == "string" and v.message:match("^(.- is invalid: )%[.*%]$")
  if not head or not causes then return v end
  local function text(cause) return ("%s: %s"):format(cause.field, cause.message) end
  table.sort(causes, function(a, b) return text(a) < text(b) end)
  local texts, length = {}, #head + 2
  for i, cause in ipairs(causes) do
    texts[i] = text(cause)
    length = length + #texts[i] + (i > 1 and 2 or 0)
  end
  if length == #v.message then v.message = head .. "[" .. table.concat(texts, ", ") .. "]" end
  return v
end

--- For `pick`: a list with the names of its items in place of them.
function samples.names(v)
  if v.items then
    for i, item in ipairs(v.items) do v.items[i] = item.metadata.name end
  end
  return v
end

local spec_schema = {
  type = "object",
  required = { "size" },
  properties = {
    size = { type = "integer", minimum = 1 },
    color = { type = "string", enum = { "red", "blue" }, default = "red" },
    replicas = { type = "integer" },
    ratio = { type = "number" },
    tags = { type = "array", items = { type = "string" }, ["x-kubernetes-list-type"] = "set" },
    ports = { type = "array", ["x-kubernetes-list-type"] = "map", ["x-kubernetes-list-map-keys"] = { "name" },
      items = { type = "object", required = { "name" },
        properties = { name = { type = "string" }, port = { type = "integer" } } } },
    extra = { type = "object", additionalProperties = { type = "string" } },
    when = { type = "string", format = "date-time" },
    code = { type = "string", pattern = "^[a-z]+$", maxLength = 5 },
    either = { ["x-kubernetes-int-or-string"] = true },
    any = { type = "object", ["x-kubernetes-preserve-unknown-fields"] = true },
    maybe = { type = "string", nullable = true },
  },
}

local status_schema = { type = "object", properties = { replicas = { type = "integer" },
  selector = { type = "string" }, phase = { type = "string" } } }

--- The definition of a custom resource with most of what a definition can say.
function samples.definition(group, plural, kind, version)
  -- A copy, because probes break it.
  local schema = json.decode(json.encode { type = "object",
    properties = { spec = spec_schema, status = status_schema } })
  return { apiVersion = "apiextensions.k8s.io/v1", kind = "CustomResourceDefinition",
    metadata = { name = plural .. "." .. group },
    spec = { group = group, scope = "Namespaced",
      names = { plural = plural, kind = kind, shortNames = { plural .. "sh" } },
      versions = { merged({ name = "v1", served = true, storage = true,
        schema = { openAPIV3Schema = schema },
        subresources = { status = json.object {}, scale = { specReplicasPath = ".spec.replicas",
          statusReplicasPath = ".status.replicas", labelSelectorPath = ".status.selector" } },
        selectableFields = { { jsonPath = ".spec.color" } },
        additionalPrinterColumns = { { name = "Size", type = "integer", jsonPath = ".spec.size" },
          { name = "Color", type = "string", jsonPath = ".spec.color", priority = 1 },
          { name = "Age", type = "date", jsonPath = ".metadata.creationTimestamp" } } }, version) } } }
end

local function established(answer)
  for _, condition in ipairs(json.get(answer.json, "status", "conditions") or {}) do
    if condition.type == "Established" and condition.status == "True" then return true end
  end
  return false
end

samples.established = established

--- Makes the custom resource Widget of a random group and waits until it serves. Returns
--- { group, kind, version, path(name) } with paths in the probe's namespace.
function samples.widgets(p, version)
  local group, kind = p:name "group" .. ".example.com", "W" .. p:name "widget"
  local plural = p:name "plural"
  local definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
  p:setup("POST", definitions, samples.definition(group, plural, kind, version))
  p:later(function() p:quiet("DELETE", definitions .. "/" .. plural .. "." .. group) end)
  p:poll(definitions .. "/" .. plural .. "." .. group, established, { quiet = true })
  local base = "/apis/" .. group .. "/v1"
  local path = p:path(base, plural)
  p:poll(path, function(answer) return answer.status == 200 end, { quiet = true })
  local w = { group = group, kind = kind, plural = plural, version = group .. "/v1", base = base, list = path }
  function w.path(name, sub) return path .. "/" .. name .. (sub and "/" .. sub or "") end
  function w.object(name, spec, metadata)
    return { apiVersion = w.version, kind = kind, metadata = merged({ name = name }, metadata),
      spec = merged({ size = 3 }, spec) }
  end
  return w
end

return samples
