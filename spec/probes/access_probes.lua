-- Who may do what: the users of the kubeconfig, a wrong token, and nobody.
local samples = require "spec.probes.samples"

return {
  { name = "a wrong token", run = function(p)
    p:get("/api/v1/namespaces", { user = "wrong" })
    p:get("/version", { user = "wrong", pick = function(v) return v.kind or "version" end })
    p:get("/healthz", { user = "wrong" })
    p:post("/api/v1/namespaces", { metadata = { name = p:name "a" } }, { user = "wrong" })
  end },
  { name = "without a token", run = function(p)
    p:get("/api/v1/namespaces", { user = false })
    p:get("/version", { user = false, pick = function(v) return v.kind or "version" end })
    p:get("/healthz", { user = false })
    p:get("/api", { user = false })
  end },
  { name = "users with few rights or none", run = function(p)
    local path = p:core "configmaps"
    p:setup("POST", path, samples.config(p:name "a"))
    p:get(path .. "/" .. p:name "a", { user = "viewer" })
    p:post(path, samples.config(p:name "b"), { user = "viewer" })
    p:put(path .. "/" .. p:name "a", samples.config(p:name "a"), { user = "viewer" })
    p:patch("merge", path .. "/" .. p:name "a", {}, { user = "viewer" })
    p:delete(path .. "/" .. p:name "a", nil, { user = "viewer" })
    p:delete(path, nil, { user = "viewer" })
    p:post("/api/v1/namespaces", { metadata = { name = p:name "b" } }, { user = "viewer" })
    p:patch("merge", p:path("/apis/apps/v1", "deployments", p:name "d") .. "/status", {}, { user = "viewer" })
    p:get("/api/v1/namespaces", { user = "nobody" })
    p:get(p:core "configmaps", { user = "nobody" })
    p:get(p:core("configmaps", p:name "a"), { user = "nobody" })
    p:get(p:core "configmaps" .. "?watch=1", { user = "nobody" })
    p:get("/apis/apps/v1/deployments", { user = "nobody" })
    p:get("/logs", { user = "nobody" })
    p:get("/api", { user = "nobody" })
  end },
}
