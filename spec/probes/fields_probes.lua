-- Field validation and warnings.
local samples = require "spec.probes.samples"

return {
  { name = "unknown and repeated fields of a built-in kind", run = function(p)
    local path = p:core "configmaps"
    local function body(label)
      return ('{"metadata":{"name":"%s","zzz":1},"data":{"a":"1","a":"2"},"foo":1,"bar":{"x":1}}'):format(p:name(label))
    end
    p:post(path .. "?fieldValidation=Warn", body "a")
    p:post(path .. "?fieldValidation=Strict", body "b")
    p:post(path .. "?fieldValidation=Ignore", body "c")
    p:post(path, body "d")
    p:post(path .. "?fieldValidation=Foo", body "e")
    p:put(path .. "/" .. p:name "a" .. "?fieldValidation=Strict", body "a")
    p:put(path .. "/" .. p:name "a" .. "?fieldValidation=Warn", body "a")
    p:post(path .. "?fieldValidation=", body "f")
  end },
  { name = "unknown fields deep inside", run = function(p)
    local d = samples.deployment(p:name "a")
    d.spec.template.spec.containers[1].bogus = 1
    d.spec.template.spec.containers[1].ports = { { containerPort = 80, zzz = 1 } }
    d.spec.nope = "x"
    p:post(p:path("/apis/apps/v1", "deployments") .. "?fieldValidation=Strict", d)
    p:post(p:path("/apis/apps/v1", "deployments") .. "?fieldValidation=Warn", d)
  end },
  { name = "letters of another case", run = function(p)
    p:post(p:core "configmaps" .. "?fieldValidation=Strict", ('{"metadata":{"Name":"%s"},"Data":{"a":"1"}}')
      :format(p:name "a"))
    p:post(p:core "configmaps", ('{"metadata":{"name":"%s"},"Data":{"a":"1"}}'):format(p:name "b"))
  end },
  { name = "unknown fields of a custom resource", run = function(p)
    local w = samples.widgets(p)
    local function body(label)
      return ('{"apiVersion":"%s","kind":"%s","metadata":{"name":"%s","zzz":1},'
        .. '"spec":{"size":1,"foo":2,"size":3},"junk":1}'):format(w.version, w.kind, p:name(label))
    end
    p:post(w.list .. "?fieldValidation=Warn", body "a")
    p:post(w.list .. "?fieldValidation=Strict", body "b")
    p:post(w.list .. "?fieldValidation=Ignore", body "c")
    p:patch("merge", w.path(p:name "a") .. "?fieldValidation=Strict", { spec = { foo = 1 } })
    p:patch("merge", w.path(p:name "a") .. "?fieldValidation=Warn", { spec = { foo = 1 } })
    p:patch("apply", w.path(p:name "a") .. "?fieldManager=mm&fieldValidation=Strict",
      { apiVersion = w.version, kind = w.kind, metadata = { name = p:name "a" }, spec = { foo = 1 } })
    p:release(w.path(p:name "f"))
    p:post(w.list, w.object(p:name "f", nil, { finalizers = { "nodomain" } }))
  end },
  { name = "warnings of built-in kinds", run = function(p)
    p:post(p:core "configmaps", samples.config(p:name "a", { ownerReferences = {
      { apiVersion = "v1", kind = "ConfigMap", name = "x", uid = "11111111-0000-0000-0000-000000000000" },
      { apiVersion = "v1", kind = "ConfigMap", name = "x", uid = "11111111-0000-0000-0000-000000000000" } } }),
      { quiet = false })
    p:get("/api/v1/componentstatuses", { pick = function(v) return v.kind end })
    p:post(p:core "endpoints", { metadata = { name = p:name "e" } })
  end },
}
