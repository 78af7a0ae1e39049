-- Definitions of custom resources.
local json = require "spec.probes.json"
local samples = require "spec.probes.samples"

local definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

local function draw(p) return p:name "group" .. ".example.com", p:name "plural", "K" .. p:name "kind" end

-- A definition that `change` broke, posted.
local function broken(name, change)
  return { name = name, run = function(p)
    local group, plural, kind = draw(p)
    local d = samples.definition(group, plural, kind)
    change(d, d.spec.versions[1], d.spec.versions[1].schema.openAPIV3Schema)
    local answer = p:post(definitions, d)
    if answer.status < 300 then p:quiet("DELETE", definitions .. "/" .. d.metadata.name) end
  end }
end

return {
  { name = "a definition is accepted and established", run = function(p)
    local group, plural, kind = draw(p)
    local path = definitions .. "/" .. plural .. "." .. group
    local answer = p:post(definitions, samples.definition(group, plural, kind))
    local watch = p:watch(definitions .. "?fieldSelector=metadata.name%3D" .. plural .. "." .. group
      .. "&resourceVersion=" .. (json.get(answer.json, "metadata", "resourceVersion") or "0"),
      { pick = function(event)
        local conditions = json.array {}
        for i, c in ipairs(json.get(event.object, "status", "conditions") or {}) do
          conditions[i] = c.type .. "=" .. c.status
        end
        return json.object { type = event.type, conditions = conditions }
      end })
    p:poll(path, samples.established, { pick = function(v)
      -- The order in which the two conditions come varies.
      table.sort(v.status.conditions, function(a, b) return a.type < b.type end)
      v.metadata.resourceVersion = nil
      return v
    end })
    watch:take(1)
    p:quiet("DELETE", path)
  end },
  broken("the name must be made of plural and group", function(d) d.metadata.name = "x." .. d.spec.group end),
  broken("a schema is required", function(_, version) version.schema = nil end),
  broken("types are required", function(_, _, schema) schema.properties.spec.type = nil end),
  broken("the root must be an object", function(_, _, schema) schema.type = "string" end),
  broken("types of items are required", function(_, _, schema) schema.properties.spec.properties.tags.items = {} end),
  broken("one version is stored", function(_, version) version.storage = false end),
  broken("scope is required", function(d) d.spec.scope = nil end),
  broken("scope is one of two", function(d) d.spec.scope = "Bogus" end),
  broken("names are required", function(d) d.spec.names = { plural = d.spec.names.plural } end),
  broken("names have a form", function(d) d.spec.names.kind = "bad_kind" end),
  broken("no versions", function(d) d.spec.versions = json.array {} end),
  broken("the group is a domain", function(d)
    d.spec.group = "nodots"
    d.metadata.name = d.spec.names.plural .. ".nodots"
  end),
  broken("protected groups need an approval", function(d)
    d.spec.group = "x.k8s.io"
    d.metadata.name = d.spec.names.plural .. ".x.k8s.io"
  end),
  broken("defaults must fit", function(_, _, schema) schema.properties.spec.properties.size.default = 0 end),
  broken("lists of maps need keys", function(_, _, schema)
    schema.properties.spec.properties.ports["x-kubernetes-list-map-keys"] = nil
  end),
  broken("paths of scale have a form", function(_, version)
    version.subresources.scale.specReplicasPath = "spec.replicas"
  end),
  broken("columns have a type", function(_, version) version.additionalPrinterColumns[1].type = "bogus" end),
  broken("selectable fields have a path", function(_, version)
    version.selectableFields = { { jsonPath = ".spec.nope" } }
  end),
  broken("conversion by webhook needs one", function(d) d.spec.conversion = { strategy = "Webhook" } end),
  broken("unknown types", function(_, _, schema) schema.properties.spec.properties.size.type = "bogus" end),
  broken("rules that do not compile", function(_, _, schema)
    schema.properties.spec["x-kubernetes-validations"] = { { rule = "self.nope > 1" } }
  end),
  broken("metadata cannot be restricted but by name", function(_, _, schema)
    schema.properties.metadata = { type = "object", properties = { labels = { type = "object" } } }
  end),
  { name = "two definitions of one name", run = function(p)
    local group, plural, kind = draw(p)
    local d = samples.definition(group, plural, kind)
    p:setup("POST", definitions, d)
    p:post(definitions, d)
    p:quiet("DELETE", definitions .. "/" .. d.metadata.name)
  end },
  { name = "a second kind of the same name is not accepted", run = function(p)
    local w = samples.widgets(p)
    local other = samples.definition(w.group, p:name "second", w.kind)
    p:setup("POST", definitions, other)
    p:poll(definitions .. "/" .. other.metadata.name, function(a)
      return #(json.get(a.json, "status", "conditions") or {}) == 2
    end, { pick = function(v)
      table.sort(v.status.conditions, function(a, b) return a.type < b.type end)
      return v.status
    end })
    p:quiet("DELETE", definitions .. "/" .. other.metadata.name)
  end },
  { name = "a definition goes with its objects, which may hold it up", run = function(p)
    local w = samples.widgets(p)
    local path = definitions .. "/" .. w.plural .. "." .. w.group
    p:release(w.path(p:name "a"))
    p:setup("POST", w.list, w.object(p:name "a", nil, { finalizers = { "example.com/f" } }))
    p:setup("POST", w.list, w.object(p:name "b"))
    p:delete(path, nil, { pick = function(v)
      -- Whether the other writers came first is luck.
      return json.object { finalizers = v.metadata.finalizers, deleted = v.metadata.deletionTimestamp, kind = v.kind }
    end })
    p:poll(w.path(p:name "b"), function(a) return a.status == 404 end)
    p:poll(path, function(a)
      for _, c in ipairs(json.get(a.json, "status", "conditions") or {}) do
        if c.type == "Terminating" then return c.reason == "InstanceDeletionInProgress" end
      end
    end, { pick = function(v)
      for _, c in ipairs(v.status.conditions) do
        if c.type == "Terminating" then return c end
      end
    end })
    p:post(w.list, w.object(p:name "c"))
    p:get(w.path(p:name "a"), { pick = function(v)
      return json.object { deleted = v.metadata.deletionTimestamp, finalizers = v.metadata.finalizers }
    end })
    p:patch("merge", w.path(p:name "a"), { metadata = { finalizers = json.null } }, { quiet = "unseen" })
    p:poll(path, function(a) return a.status == 404 end)
    p:poll(w.base, function(a) return a.status == 404 end)
    p:get(w.list)
  end },
  { name = "cluster scope, several versions, one of them deprecated", run = function(p)
    local group, plural, kind = draw(p)
    local d = samples.definition(group, plural, kind)
    d.spec.scope = "Cluster"
    local old = json.decode(json.encode(d.spec.versions[1]))
    old.name, old.storage, old.deprecated = "v1alpha1", false, true
    local custom = json.decode(json.encode(old))
    custom.name, custom.deprecationWarning = "v1beta1", "use " .. p:name "warning"
    local off = json.decode(json.encode(old))
    off.name, off.served = "v0", false
    table.insert(d.spec.versions, old)
    table.insert(d.spec.versions, custom)
    table.insert(d.spec.versions, off)
    p:setup("POST", definitions, d)
    p:poll(definitions .. "/" .. d.metadata.name, samples.established, { quiet = true })
    local base = "/apis/" .. group .. "/"
    p:poll(base .. "v1/" .. plural, function(a) return a.status == 200 end)
    p:post(base .. "v1/" .. plural, { apiVersion = group .. "/v1", kind = kind, metadata = { name = p:name "a" },
      spec = { size = 1 } })
    p:get(base .. "v1alpha1/" .. plural .. "/" .. p:name "a")
    p:get(base .. "v1beta1/" .. plural)
    p:get(base .. "v0/" .. plural)
    p:put(base .. "v1/" .. plural .. "/" .. p:name "a", { apiVersion = group .. "/v1beta1", kind = kind,
      metadata = { name = p:name "a" }, spec = { size = 1 } })
    p:poll("/apis/" .. group, function(a) return a.status == 200 end)
    p:quiet("DELETE", definitions .. "/" .. d.metadata.name)
  end },
}
