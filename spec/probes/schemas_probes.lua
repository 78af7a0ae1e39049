-- Custom resources: schemas in their corners, definitions that change and go.
local json = require "spec.probes.json"
local samples = require "spec.probes.samples"

local definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

local function object(properties, more)
  local schema = { type = "object", properties = properties }
  for key, value in pairs(more or {}) do schema[key] = value end
  return schema
end

local function versioned(schema, more)
  local version = { selectableFields = json.null, schema = { openAPIV3Schema = object { spec = schema,
    status = object { phase = { type = "string" } } } } }
  for key, value in pairs(more or {}) do version[key] = value end
  return version
end

-- Widgets whose spec is of that schema; a function that creates one, and the widgets.
local function widgets(p, schema, more)
  local w = samples.widgets(p, versioned(schema, more))
  local count = 0
  return function(spec, options)
    count = count + 1
    return p:post(w.list, { apiVersion = w.version, kind = w.kind, metadata = { name = p:name("w" .. count) },
      spec = spec }, options or { pick = samples.sorted_causes })
  end, w
end

local function definition_path(w) return definitions .. "/" .. w.plural .. "." .. w.group end

return {
  { name = "defaults in depth", run = function(p)
    local create, w = widgets(p, object {
      plain = { type = "string", default = "d" },
      nested = object({ inner = { type = "integer", default = 5 } }),
      made = object({ inner = { type = "integer", default = 6 }, other = { type = "string" } },
        { default = json.object {} }),
      list = { type = "array", items = object { x = { type = "string", default = "x" } } },
      map = { type = "object", additionalProperties = object { y = { type = "boolean", default = false } } },
      nullable = { type = "string", nullable = true, default = "n" },
      array = { type = "array", items = { type = "string" }, default = { "a", "b" } },
      keyed = { type = "array", ["x-kubernetes-list-type"] = "map", ["x-kubernetes-list-map-keys"] = { "port",
        "protocol" },
        items = object({ port = { type = "integer" }, protocol = { type = "string", default = "TCP" } },
          { required = { "port" } }) },
    })
    create(json.object {})
    create { nested = json.object {}, list = { json.object {}, { x = "1" } }, map = { a = json.object {} } }
    create { plain = json.null, nullable = json.null, nested = json.null, made = json.null, list = json.null }
    create { plain = "", made = { other = "o" }, array = json.array {} }
    create { keyed = { { port = 1 }, { port = 1, protocol = "UDP" } } }
    create { keyed = { { port = 1 }, { port = 1, protocol = "TCP" } } }
    create { keyed = { { protocol = "TCP" } } }
    local path = w.path(p:name "w1")
    p:patch("merge", path, { spec = { plain = json.null, made = { inner = json.null } } })
    p:patch("apply", path .. "?fieldManager=m", { apiVersion = w.version, kind = w.kind,
      metadata = { name = p:name "w1" },
      spec = { keyed = { { port = 2 } } } })
  end },
  { name = "what is pruned and what is kept", run = function(p)
    local create, w = widgets(p, object {
      closed = object { a = { type = "string" } },
      open = object({ a = { type = "string" }, inner = object { b = { type = "string" } } },
        { ["x-kubernetes-preserve-unknown-fields"] = true }),
      map = { type = "object", additionalProperties = object { c = { type = "integer" } } },
      list = { type = "array", items = object { d = { type = "string" } } },
      template = { type = "object", ["x-kubernetes-embedded-resource"] = true,
        ["x-kubernetes-preserve-unknown-fields"] = true },
      either = { ["x-kubernetes-int-or-string"] = true },
    })
    create { closed = { a = "1", z = 1 }, open = { a = "1", z = { y = 1 }, inner = { b = "2", z = 1 } } }
    create { map = { k = { c = 1, z = 2 } }, list = { { d = "x", z = 1 } }, z = { a = 1 } }
    create { template = { apiVersion = "v1", kind = "Pod", metadata = { name = "x", odd = 1, labels = { a = "b" } },
      spec = { any = "thing" } } }
    create { template = { kind = "Pod" } }
    create { template = { apiVersion = "v1", kind = "Pod", metadata = { name = "Bad_Name" } } }
    create { either = 1 }
    create { either = "1" }
    create { either = 1.5 }
    p:post(w.list .. "?fieldValidation=Strict", { apiVersion = w.version, kind = w.kind,
      metadata = { name = p:name "s" },
      spec = { closed = { z = 1 }, list = { { z = 1 } }, map = { k = { z = 1 } } }, top = 1 })
    p:patch("merge", w.path(p:name "w1") .. "?fieldValidation=Strict", { spec = { closed = { y = 1 } } })
    p:patch("merge", w.path(p:name "w1"), { spec = { closed = { y = 1 } }, junk = 1 })
  end },
  { name = "formats and bounds", run = function(p)
    local create = widgets(p, object {
      i32 = { type = "integer", format = "int32" }, i64 = { type = "integer", format = "int64" },
      byte = { type = "string", format = "byte" }, date = { type = "string", format = "date" },
      duration = { type = "string", format = "duration" }, ipv4 = { type = "string", format = "ipv4" },
      ipv6 = { type = "string", format = "ipv6" }, cidr = { type = "string", format = "cidr" },
      uuid = { type = "string", format = "uuid" }, email = { type = "string", format = "email" },
      uri = { type = "string", format = "uri" }, hostname = { type = "string", format = "hostname" },
      when = { type = "string", format = "date-time" },
      number = { type = "number", minimum = 1, maximum = 5, exclusiveMaximum = true, multipleOf = 0.5 },
      text = { type = "string", minLength = 2, maxLength = 3, pattern = "^a" },
      list = { type = "array", minItems = 1, maxItems = 2, items = { type = "integer" } },
      map = { type = "object", minProperties = 1, maxProperties = 2, additionalProperties = { type = "string" } },
      some = { type = "object", properties = { a = { type = "integer" }, b = { type = "integer" } },
        oneOf = { { required = { "a" } }, { required = { "b" } } } },
      none = { type = "object", properties = { a = { type = "integer" } }, ["not"] = { required = { "a" } } },
      any = { type = "integer", anyOf = { { minimum = 10 }, { maximum = 2 } } },
      all = { type = "integer", allOf = { { minimum = 10 }, { maximum = 20 } } },
      set = { type = "array", ["x-kubernetes-list-type"] = "set", items = { type = "string" } },
    })
    for _, spec in ipairs { { i32 = 2147483647 }, { i32 = 2147483648 }, { i64 = 9223372036854775000 }, { byte = "!!" },
      { byte = "aGk=" }, { date = "2001-02-03" }, { date = "2001-13-03" }, { duration = "1h" }, { duration = "x" },
      { ipv4 = "10.0.0.1" }, { ipv4 = "10.0.0.256" }, { ipv6 = "::1" }, { ipv6 = "x" }, { cidr = "10.0.0.0/8" },
      { cidr = "10.0.0.0" }, { uuid = "11111111-0000-0000-0000-000000000000" }, { uuid = "x" }, { email = "a@b.c" },
      { email = "x" }, { uri = "http://a" }, { uri = "" }, { hostname = "a.b" }, { hostname = "a_b" },
      { when = "2001-01-01T00:00:00Z" }, { when = "2001-01-01" }, { number = 0.5 }, { number = 5 }, { number = 1.25 },
      { number = "1" }, { text = "a" }, { text = "abcd" }, { text = "ba" }, { text = "äa" }, { list = json.array {} },
      { list = { 1, 2, 3 } }, { list = { "x" } }, { list = "x" }, { map = json.object {} },
      { map = { a = "1", b = "2", c = "3" } }, { map = { a = 1 } }, { some = json.object {} }, { some = { a = 1,
        b = 1 } },
      { some = { a = 1 } }, { none = { a = 1 } }, { any = 5 }, { any = 1 }, { all = 5 }, { all = 15 },
      { set = { "a", "a" } }, { set = { "a", "b" } }, { text = "b", list = { 1, 2, 3 }, number = 9 } } do
      create(spec, { pick = function(v) return v.code and samples.sorted_causes(v) or v.spec end })
    end
  end },
  { name = "without a status subresource", run = function(p)
    local create, w = widgets(p, object { a = { type = "integer" } }, { subresources = json.null,
      additionalPrinterColumns = json.null, selectableFields = json.null })
    create { a = 1 }
    local path = w.path(p:name "w1")
    p:patch("merge", path, { status = { phase = "x" } })
    p:patch("merge", path .. "/status", { status = { phase = "y" } })
    p:get(path .. "/status")
    p:get(path .. "/scale")
    p:patch("merge", path, { metadata = { labels = { a = "b" }, annotations = { c = "d" } } })
    p:post(w.list, { apiVersion = w.version, kind = w.kind, metadata = { name = p:name "s" },
      status = { phase = "z" } })
    p:get(path, { accept = "application/json;as=Table;v=v1;g=meta.k8s.io" })
    p:get(w.list .. "?fieldSelector=spec.a%3D1")
  end },
  { name = "metadata of custom resources", run = function(p)
    local w = samples.widgets(p)
    local function create(metadata)
      p:post(w.list, { apiVersion = w.version, kind = w.kind, metadata = metadata, spec = { size = 1 } })
    end
    create { name = p:name "a", odd = 1, labels = { l = "1" } }
    create { name = p:name "b", labels = { l = 1 } }
    create { name = p:name "b", labels = json.array {} }
    create { name = p:name "b", annotations = { a = json.null } }
    create { name = p:name "b", creationTimestamp = "yesterday" }
    create { name = p:name "c", finalizers = { "plain" } }
    p:release(w.path(p:name "c"))
    create { name = p:name "d", ownerReferences = { { apiVersion = "v1", kind = "X", name = "x" } } }
    create { name = 5 }
    create(json.null)
    create "x"
    create { generateName = p:name "g" .. "-" }
    create { name = p:name "e", generation = 7, resourceVersion = "", uid = "x", selfLink = "y" }
    create { name = p:name "f", namespace = "other" }
    p:post(w.list, { apiVersion = w.version, kind = w.kind .. "List", metadata = { name = "x" } })
    p:post(w.list, { apiVersion = w.group .. "/v2", kind = w.kind, metadata = { name = "x" } })
  end },
  { name = "a schema changes under its objects", run = function(p)
    local create, w = widgets(p, object { a = { type = "integer" }, b = { type = "string" } })
    create { a = 1, b = "x" }
    create { a = 2 }
    local path = definition_path(w)
    p:poll(path, samples.established, { quiet = true })
    local function set(schema)
      local d = p:get(path, { quiet = "unseen" }).json
      d.spec.versions[1].schema.openAPIV3Schema.properties.spec = schema
      local answer = p:put(path, d, { quiet = "unseen" })
      p:note("the definition", answer.status)
    end
    set(object { a = { type = "integer", maximum = 1 }, c = { type = "string", default = "late" } })
    local first, second = w.path(p:name "w1"), w.path(p:name "w2")
    p:poll(first, function(answer) return json.get(answer.json, "spec", "c") == "late" end, { quiet = true })
    p:get(first)
    p:get(w.list, { pick = function(v)
      local specs = json.array {}
      for i, item in ipairs(v.items) do specs[i] = item.spec end
      return specs
    end })
    p:patch("merge", first, { metadata = { labels = { x = "1" } } })
    p:patch("merge", second, { metadata = { labels = { x = "1" } } })
    p:patch("merge", second, { spec = { a = 3 } })
    p:patch("merge", second, { spec = { a = 1 } })
    p:patch("merge", second, { spec = { a = 2 } })
  end },
  { name = "definitions that change", run = function(p)
    local w = samples.widgets(p)
    local path = definition_path(w)
    local function pick(v)
      if v.code then return samples.sorted_causes(v) end
      return { generation = v.metadata.generation, stored = v.status.storedVersions, names = v.spec.names }
    end
    local function patch(spec) p:patch("merge", path, { spec = spec }, { pick = pick }) end
    patch { scope = "Cluster" }
    patch { group = "other.example.com" }
    patch { names = { kind = "Other" .. w.kind } }
    patch { names = { categories = { "all" }, shortNames = { "x" } } }
    patch { names = { plural = "others" } }
    patch { versions = json.array {} }
    patch { conversion = { strategy = "Webhook" } }
    patch { preserveUnknownFields = true }
    p:patch("json", path, '[{"op":"replace","path":"/spec/versions/0/storage","value":false}]', { pick = pick })
    p:patch("json", path, '[{"op":"replace","path":"/spec/versions/0/served","value":false}]', { pick = pick })
    p:patch("json", path, '[{"op":"replace","path":"/spec/versions/0/name","value":"v9"}]', { pick = pick })
    p:patch("merge", path .. "/status", { status = { storedVersions = json.array {} } }, { pick = pick })
    p:patch("merge", path .. "/status", { status = { storedVersions = { "v8" } } }, { pick = pick })
  end },
  { name = "rules that look back", run = function(p)
    local create, w = widgets(p, object({
      fixed = { type = "string", ["x-kubernetes-validations"] = { { rule = "self == oldSelf",
        message = "fixed is fixed" } } },
      grows = { type = "integer", ["x-kubernetes-validations"] = { { rule = "self >= oldSelf",
        messageExpression = "self == 0 ? 'not to zero' : 'not so little'" } } },
      low = { type = "integer" }, high = { type = "integer" },
    }, { ["x-kubernetes-validations"] = {
      { rule = "!has(self.low) || !has(self.high) || self.low <= self.high", message = "low above high",
        fieldPath = ".low", reason = "FieldValueForbidden" },
    } }))
    create { fixed = "a", grows = 1, low = 1, high = 2 }
    create { low = 3, high = 2 }
    local path = w.path(p:name "w1")
    p:patch("merge", path, { spec = { fixed = "b" } })
    p:patch("merge", path, { spec = { grows = 0 } })
    p:patch("merge", path, { spec = { grows = 5 } })
    p:patch("merge", path, { spec = { low = 9 } })
    p:patch("merge", path, { spec = { fixed = json.null } })
    p:patch("merge", path, { spec = { fixed = "new" } })
    p:patch("merge", path, { metadata = { labels = { a = "b" } } })
  end },
  { name = "the end of a definition, as its watchers see it", run = function(p)
    local create, w = widgets(p, object { a = { type = "integer" } })
    create { a = 1 }
    create { a = 2 }
    local watch = p:watch(w.list, { pick = function(event) return { event.type, event.object.metadata.name } end })
    watch:take(2)
    p:delete(definition_path(w), nil, { pick = function(v) return v.metadata.finalizers end })
    watch:take(2)
    p:poll(definition_path(w), function(answer) return answer.status == 404 end)
    p:poll(w.list, function(answer) return answer.status == 404 end)
    p:post(w.list, { apiVersion = w.version, kind = w.kind, metadata = { name = "x" } })
  end },
  { name = "scale subresources in their corners", run = function(p)
    local w = samples.widgets(p)
    local name = p:name "w"
    p:post(w.list, w.object(name, { replicas = 2 }))
    local scale = w.path(name, "scale")
    p:get(scale)
    p:patch("strategic", scale, { spec = { replicas = 3 } })
    p:patch("json", scale, '[{"op":"replace","path":"/spec/replicas","value":4}]')
    p:patch("merge", scale, { spec = { replicas = json.null } })
    p:patch("merge", scale, { spec = { replicas = "x" } })
    p:patch("merge", scale, { metadata = { labels = { x = "y" } }, status = { replicas = 9 } })
    p:put(scale, { apiVersion = "autoscaling/v1", kind = "Scale", metadata = { name = name, namespace = p:namespace() },
      spec = { replicas = 6 } })
    p:put(scale, { apiVersion = "autoscaling/v1", kind = "Scale", metadata = { name = "other" },
      spec = { replicas = 6 } })
    p:post(scale, json.object {})
    p:delete(scale)
    p:patch("merge", w.path(name, "status"), { status = { replicas = 5, selector = "a=b" } },
      { pick = function(v) return { spec = v.spec, status = v.status, generation = v.metadata.generation } end })
    p:get(scale)
  end },
}
