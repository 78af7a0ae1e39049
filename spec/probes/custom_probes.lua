-- Custom resources.
local json = require "spec.probes.json"
local samples = require "spec.probes.samples"

local as_table = "application/json;as=Table;v=v1;g=meta.k8s.io"

return {
  { name = "objects are pruned, defaulted and counted", run = function(p)
    local w = samples.widgets(p)
    local object = w.object(p:name "a", { foo = 1, any = { x = 1, y = { "z" } }, extra = { k = "v" } })
    object.junk, object.status = 1, { phase = "Mine" }
    p:post(w.list, object)
    p:get(w.path(p:name "a"))
    p:get(w.list)
    p:post(w.list, object)
  end },
  { name = "values are checked against the schema", run = function(p)
    local w = samples.widgets(p)
    local function try(spec) p:post(w.list, w.object(p:name "bad", spec), { pick = samples.sorted_causes }) end
    try { size = 0, color = "green" }
    try { size = "x" }
    try { size = 1.5 }
    try { size = json.null }
    try { color = json.null }
    try { maybe = json.null }
    try { tags = { "a", "a" } }
    try { tags = "a" }
    try { tags = { 1 } }
    try { ports = { { name = "a" }, { name = "a" } } }
    try { ports = { { port = 1 } } }
    try { extra = { k = 1 } }
    try { when = "yesterday" }
    try { code = "ABC" }
    try { code = "toolong" }
    try { either = true }
    try { any = 1 }
    try { ratio = "x" }
    p:post(w.list, { apiVersion = w.version, kind = w.kind, metadata = { name = p:name "bad" } })
    p:post(w.list, { apiVersion = w.version, kind = w.kind, metadata = { name = p:name "bad" }, spec = {} })
    p:post(w.list, { apiVersion = w.version, kind = w.kind, metadata = { name = p:name "bad" }, spec = "x" })
  end },
  { name = "bodies that are not such an object", run = function(p)
    local w = samples.widgets(p)
    p:post(w.list, { apiVersion = w.version, kind = "Gadget", metadata = { name = p:name "a" }, spec = { size = 1 } })
    p:post(w.list, { apiVersion = w.version, metadata = { name = p:name "a" }, spec = { size = 1 } })
    p:post(w.list, { kind = w.kind, metadata = { name = p:name "a" }, spec = { size = 1 } })
    p:post(w.list, { apiVersion = w.group .. "/v9", kind = w.kind, metadata = { name = p:name "a" } })
    p:post(w.list, "{bad")
    p:post(w.list, "")
    p:post(w.list, { apiVersion = w.version, kind = w.kind, metadata = { name = "Bad_Name" }, spec = { size = 1 } })
    p:post(w.list, { apiVersion = w.version, kind = w.kind, metadata = { name = p:name "a", labels = { a = 1 } },
      spec = { size = 1 } })
    p:post(w.list, w.object(p:name "a"), { type = "text/plain" })
    p:note("protobuf", p:get(w.list, { accept = "application/vnd.kubernetes.protobuf", quiet = true }).status)
    p:get(w.list, { accept = "application/vnd.kubernetes.protobuf,application/json" })
  end },
  { name = "updates need a version", run = function(p)
    local w = samples.widgets(p)
    local object = p:setup("POST", w.list, w.object(p:name "a")).json
    p:put(w.path(p:name "a"), w.object(p:name "a", { size = 4 }))
    object.spec.size = 5
    p:put(w.path(p:name "a"), object)
    p:put(w.path(p:name "a"), object)
    p:put(w.path(p:name "zzz"), w.object(p:name "zzz"))
    p:get(w.path(p:name "zzz"))
  end },
  { name = "the generation counts changes outside metadata and status", run = function(p)
    local w = samples.widgets(p)
    p:setup("POST", w.list, w.object(p:name "a"))
    local path = w.path(p:name "a")
    p:patch("merge", path, { spec = { size = 4 } })
    p:patch("merge", path, { metadata = { labels = { l = "1" }, annotations = { a = "1" } } })
    p:patch("merge", path, { status = { phase = "Ignored" } })
    p:patch("merge", path .. "/status", { status = { phase = "Set" }, spec = { size = 9 },
      metadata = { labels = { ignored = "1" }, annotations = { ignored = "1" } } })
    p:patch("merge", path, { status = { phase = "Ignored" }, spec = { size = 4 } })
    p:patch("json", path .. "/status", '[{"op":"test","path":"/status/phase","value":"Set"},'
      .. '{"op":"replace","path":"/status/phase","value":"Next"}]')
    p:patch("merge", path .. "/status", { status = { replicas = "x" } })
    p:get(path .. "/status")
    p:get(path .. "/nope")
    local object = p:get(path, { quiet = true }).json
    object.status.phase, object.spec.size = "Put", 77
    p:put(path .. "/status", object)
    p:put(path .. "/status", object)
  end },
  { name = "the kinds of patches", run = function(p)
    local w = samples.widgets(p)
    p:setup("POST", w.list, w.object(p:name "a", { tags = { "x" } }))
    local path = w.path(p:name "a")
    p:patch("strategic", path, { spec = { size = 4 } })
    p:patch("json", path, '[{"op":"add","path":"/spec/tags/-","value":"y"}]')
    p:patch("merge", path, { spec = { color = json.null } })
    p:patch("merge", path, { spec = json.null })
    p:patch("merge", path, { spec = { unknown = 1 } })
    p:patch("merge", path, { kind = "Other" })
    p:patch("merge", path, {}, { type = "application/json" })
  end },
  { name = "scale", run = function(p)
    local w = samples.widgets(p)
    p:setup("POST", w.list, w.object(p:name "a"))
    local path = w.path(p:name "a")
    p:get(path .. "/scale")
    p:patch("merge", path, { spec = { replicas = 2 } }, { quiet = true })
    local scale = p:get(path .. "/scale").json
    p:patch("merge", path .. "/status", { status = { replicas = 2, selector = "a=b" } }, { quiet = true })
    p:get(path .. "/scale")
    p:patch("merge", path .. "/scale", { spec = { replicas = 5 } })
    p:put(path .. "/scale", scale)
    scale.metadata.resourceVersion = nil
    scale.spec.replicas = 6
    p:put(path .. "/scale", scale)
    p:patch("merge", path .. "/scale", { spec = { replicas = -1 } })
    p:get(path)
  end },
  { name = "deletion", run = function(p)
    local w = samples.widgets(p)
    p:setup("POST", w.list, w.object(p:name "a", nil, { finalizers = { "example.com/f" } }))
    p:setup("POST", w.list, w.object(p:name "b"))
    p:delete(w.path(p:name "b"))
    p:delete(w.path(p:name "a"))
    p:delete(w.path(p:name "a"))
    p:patch("merge", w.path(p:name "a"), { metadata = { finalizers = json.null } })
    p:get(w.path(p:name "a"))
    p:setup("POST", w.list, w.object(p:name "c"))
    p:delete(w.list)
    p:get(w.list)
  end },
  { name = "apply", run = function(p)
    local w = samples.widgets(p)
    local path = w.path(p:name "a")
    local function apply(manager, spec, force)
      p:patch("apply", ("%s?fieldManager=%s%s"):format(path, manager, force and "&force=true" or ""),
        { apiVersion = w.version, kind = w.kind, metadata = { name = p:name "a" }, spec = spec })
    end
    apply("m1", { size = 1, tags = { "x" }, ports = { { name = "p", port = 1 } } })
    apply("m2", { size = 1, tags = { "y" }, ports = { { name = "q", port = 2 } } })
    apply("m2", { size = 2, ports = { { name = "p", port = 3 } } })
    apply("m2", { size = 2 }, true)
    apply("m1", { tags = { "z" } })
    apply("m1", { size = "x" })
    apply("m1", { tags = { "z", "z" } })
    apply("m3", { color = "blue" })
    apply("m3", { color = "blue" }, true)
    apply("m3", {})
    apply("m4", { any = { a = 1, b = { c = 2 } } })
    apply("m4", { any = { b = { d = 3 } } })
    p:patch("apply", path .. "/status?fieldManager=st", { apiVersion = w.version, kind = w.kind,
      metadata = { name = p:name "a" }, status = { phase = "Applied" } })
    p:get(path)
  end },
  { name = "selectors, tables and metadata", run = function(p)
    local w = samples.widgets(p)
    p:setup("POST", w.list, w.object(p:name "a"))
    p:setup("POST", w.list, w.object(p:name "b", { color = "blue" }, { labels = { l = "1" } }))
    p:get(w.list .. "?fieldSelector=spec.color%3Dblue", { accept = as_table })
    p:get(w.list .. "?fieldSelector=spec.size%3D3")
    p:get(w.list .. "?labelSelector=l", { accept = as_table })
    p:get(w.list, { accept = as_table })
    p:get(w.list, { accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io" })
    p:get(w.list .. "?limit=1")
    p:get(w.path(p:name "a"), { accept = "application/yaml" })
  end },
  { name = "watches", run = function(p)
    local w = samples.widgets(p)
    local first = p:setup("POST", w.list, w.object(p:name "a")).json
    local watch = p:watch(w.list .. "?resourceVersion=" .. first.metadata.resourceVersion)
    local blue = p:watch(w.list .. "?fieldSelector=spec.color%3Dblue&resourceVersion="
      .. first.metadata.resourceVersion)
    local path = w.path(p:name "a")
    p:patch("merge", path, { spec = { color = "blue" } }, { quiet = true })
    p:patch("merge", path .. "/status", { status = { phase = "x" } }, { quiet = true })
    p:patch("merge", path .. "/status", { status = { phase = "x" } }, { quiet = true })
    p:patch("merge", path, { spec = { color = "red" } }, { quiet = true })
    p:setup("DELETE", path)
    watch:take(4)
    blue:take(3)
    p:watch(w.list .. "?sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"):take(1)
  end },
  { name = "rules in CEL", run = function(p)
    local w = samples.widgets(p, { schema = { openAPIV3Schema = { type = "object", properties = { spec = {
      type = "object", properties = { a = { type = "integer" }, b = { type = "integer" }, size = { type = "integer" },
        name = { type = "string" } },
      ["x-kubernetes-validations"] = {
        { rule = "!has(self.a) || !has(self.b) || self.a <= self.b", message = "a must not exceed b" },
        { rule = "!has(self.name) || self.name.startsWith('x')" },
        { rule = "!has(oldSelf.a) || has(self.a)", message = "a stays" } } } } } },
      selectableFields = json.array {}, additionalPrinterColumns = json.array {} })
    p:post(w.list, w.object(p:name "a", { a = 2, b = 1 }))
    p:post(w.list, w.object(p:name "a", { name = "y" }))
    p:post(w.list, w.object(p:name "a", { a = 1, b = 2, name = "xx" }))
    p:patch("merge", w.path(p:name "a"), { spec = { a = json.null } })
    p:get(w.list, { accept = as_table })
  end },
}
