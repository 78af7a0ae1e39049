-- PATCH with JSON patches and merge patches.
local json = require "spec.probes.json"
local samples = require "spec.probes.samples"

local config = samples.config

local function existing(p, data, metadata)
  local name = p:name "a"
  local answer = p:setup("POST", p:core "configmaps", config(name, metadata, data or { k = "v", other = "w" }))
  return p:core("configmaps", name), answer.json
end

return {
  { name = "a merge patch sets and removes", run = function(p)
    local path = existing(p)
    local key, value = p:draw("key", "value")
    p:patch("merge", path, { data = { [key] = value } })
    p:patch("merge", path, { data = { k = json.null } })
    p:patch("merge", path, { data = { k = json.null } })
    p:patch("merge", path, { metadata = { labels = { [key] = value } } })
    p:patch("merge", path, { metadata = { labels = json.null } })
    p:patch("merge", path, { data = json.null })
  end },
  { name = "a merge patch replaces lists", run = function(p)
    local path = existing(p, nil, { finalizers = { "example.com/a", "example.com/b" } })
    p:patch("merge", path, { metadata = { finalizers = { "example.com/c" } } })
    p:patch("merge", path, { metadata = { finalizers = json.null } })
  end },
  { name = "merge patches that are refused", run = function(p)
    local path = existing(p)
    p:patch("merge", path, "[]")
    p:patch("merge", path, "{bad")
    p:patch("merge", path, "")
    p:patch("merge", path, "null")
    p:patch("merge", path, '"x"')
    p:patch("merge", path, { data = { k = 1 } })
    p:patch("merge", path, { data = "x" })
    p:patch("merge", path, { kind = "Nope" })
    p:patch("merge", path, { apiVersion = "v2" })
    p:patch("merge", path, {}, { type = "application/json" })
    p:patch("merge", path, {}, { type = "text/plain" })
    p:patch("merge", path, {}, { type = "application/merge-patch+json; charset=utf-8" })
    p:get(path)
  end },
  { name = "JSON patch operations", run = function(p)
    local path = existing(p, nil,
      { annotations = { ["example.com/a"] = "1" }, finalizers = { "example.com/a", "example.com/b" } })
    local function apply(text) return p:patch("json", path, text) end
    apply '[{"op":"add","path":"/data/n","value":"1"}]'
    apply '[{"op":"replace","path":"/data/n","value":"2"},{"op":"remove","path":"/data/other"}]'
    apply '[{"op":"test","path":"/data/n","value":"2"},{"op":"copy","from":"/data/n","path":"/data/m"}]'
    apply '[{"op":"move","from":"/data/m","path":"/data/l"}]'
    apply '[{"op":"replace","path":"/metadata/annotations/example.com~1a","value":"2"}]'
    apply '[{"op":"add","path":"/metadata/finalizers/0","value":"example.com/z"}]'
    apply '[{"op":"add","path":"/metadata/finalizers/-","value":"example.com/y"}]'
    apply '[{"op":"remove","path":"/metadata/finalizers/1"}]'
    apply '[{"op":"remove","path":"/metadata/finalizers/-1"}]'
    apply '[]'
    apply '[{"op":"remove","path":"/metadata/finalizers"}]'
  end },
  { name = "JSON patches that are refused", run = function(p)
    local path = existing(p)
    local function apply(text) return p:patch("json", path, text) end
    apply '[{"op":"test","path":"/data/k","value":"wrong"}]'
    apply '[{"op":"test","path":"/data/none","value":"x"}]'
    apply '[{"op":"remove","path":"/data/none"}]'
    apply '[{"op":"replace","path":"/data/none","value":"x"}]'
    apply '[{"op":"add","path":"/none/deep","value":"x"}]'
    apply '[{"op":"copy","from":"/data/none","path":"/data/x"}]'
    apply '[{"op":"bogus","path":"/data/k"}]'
    apply '[{"op":"add","value":"x"}]'
    apply '{"data":{}}'
    apply '{bad'
    apply ''
    apply '[{"op":"add","path":"data/k","value":"x"}]'
    apply '[{"op":"add","path":"/data/k","value":{}}]'
    p:get(path)
  end },
  { name = "identity cannot be patched away", run = function(p)
    local path, object = existing(p)
    p:patch("merge", path, { metadata = { name = p:name "b" } })
    p:patch("merge", path, { metadata = { namespace = "other" } })
    p:patch("merge", path, { metadata = { uid = "11111111-0000-0000-0000-000000000000" } })
    p:patch("merge", path, { metadata = { uid = json.null } })
    p:patch("merge", path, { data = { k = "new" } })
    p:patch("merge", path, { metadata = { resourceVersion = object.metadata.resourceVersion }, data = { k = "x" } })
    p:patch("merge", path, { metadata = { resourceVersion = json.null }, data = { k = "y" } })
    p:patch("merge", path, { metadata = { deletionTimestamp = "2001-01-01T00:00:00Z" } })
    p:patch("merge", path, { metadata = { creationTimestamp = json.null } })
    p:patch("merge", path, { metadata = { generation = 7 } })
  end },
  { name = "validation holds for patches", run = function(p)
    local path = existing(p)
    p:patch("merge", path, { metadata = { labels = { ["bad key"] = "x" } } })
    p:patch("merge", path, { data = { ["bad key"] = "x" } })
    p:patch("json", path, '[{"op":"add","path":"/metadata/finalizers","value":["nodomain"]}]')
  end },
  { name = "unknown fields in patches", run = function(p)
    local path = existing(p)
    p:patch("merge", path .. "?fieldValidation=Strict", { foo = 1 })
    p:patch("merge", path .. "?fieldValidation=Warn", { foo = 1 })
    p:patch("merge", path .. "?fieldValidation=Ignore", { foo = 1 })
    p:patch("strategic", path .. "?fieldValidation=Strict", { foo = 1 })
    p:patch("json", path .. "?fieldValidation=Strict", '[{"op":"add","path":"/foo","value":1}]')
    p:patch("merge", path .. "?fieldValidation=Bogus", { foo = 1 })
  end },
  { name = "force is for apply only", run = function(p)
    local path = existing(p)
    p:patch("merge", path .. "?force=true", {})
    p:patch("merge", path .. "?force=abc", {})
  end },
  { name = "managed fields can be reset", run = function(p)
    local path = existing(p)
    p:patch("json", path, '[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]')
    p:patch("merge", path .. "?fieldManager=mm", { data = { x = "1" } })
    p:patch("merge", path, { metadata = { managedFields = json.array {} } })
  end },
}
