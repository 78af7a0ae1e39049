-- Paths, methods and headers below the level of resources.
local json = require "spec.probes.json"
local samples = require "spec.probes.samples"

return {
  { name = "the version has its fields", run = function(p)
    p:get("/version", { pick = function(v)
      local keys = json.object {}
      for key, value in pairs(v) do keys[key] = type(value) end
      keys.major, keys.minor = v.major, v.minor
      return keys
    end })
  end },
  { name = "health endpoints say ok", run = function(p)
    p:get("/healthz")
    p:get("/livez")
    p:get("/readyz")
    p:get("/livez/ping")
  end },
  { name = "unknown paths are text, unknown resources a Status", run = function(p)
    p:get("/nope")
    p:get("/apis/nope.io/v1")
    p:get("/apis/nope.io")
    p:get("/apis/apps/v9")
    p:get("/api/v2")
    p:get("/api/v1/nopes")
    p:get("/api/v1/namespaces/default/nopes")
    p:get("/api/v1/namespaces/default/nopes/x")
    p:get("/apis/apps/v1/nopes")
    p:get("/api/v1/namespaces/default/configmaps/x/nope")
  end },
  { name = "wrong methods are refused", run = function(p)
    local path = p:core("configmaps")
    local name = p:name "a"
    p:setup("POST", path, samples.config(name))
    p:post(path .. "/" .. name, samples.config(name))
    p:put(path, samples.config(name))
    p:patch("merge", path, {})
    p:request("HEAD", path)
    p:request("OPTIONS", path)
    p:request("HEAD", path .. "/" .. name)
    p:delete("/api/v1/namespaces")
    p:delete("/api/v1/configmaps")
    p:post("/api/v1/configmaps", samples.config(name))
  end },
  { name = "cluster scope and namespaces do not mix", run = function(p)
    p:get("/api/v1/namespaces/default/nodes")
    p:get("/api/v1/configmaps/x")
    p:get(p:core "namespaces")
  end },
  { name = "pretty answers are indented", run = function(p)
    local path, name = p:core "configmaps", p:name "a"
    p:setup("POST", path, samples.config(name, nil, { k = "v" }))
    local function fields(answer) return (answer.body:gsub('"managedFields".*$', "")) end
    p:note("pretty=true", fields(p:get(path .. "/" .. name .. "?pretty=true", { quiet = true })))
    p:note("pretty=1", fields(p:get(path .. "/" .. name .. "?pretty=1", { quiet = true })))
    p:note("curl", fields(p:get(path .. "/" .. name, { quiet = true, agent = "curl/8" })))
    p:note("pretty=false", fields(p:get(path .. "/" .. name .. "?pretty=false", { quiet = true, agent = "curl/8" })))
    p:note("plain", fields(p:get(path .. "/" .. name, { quiet = true })))
  end },
  { name = "bodies end with a line break and keep the order of keys", run = function(p)
    local path, name = p:core "configmaps", p:name "a"
    p:post(path, samples.config(name, { labels = { z = "1", a = "2" }, annotations = { n = "3" } },
      { k = "<&>" }), { raw = true })
    p:get(path .. "/" .. name, { raw = true })
    p:get(path .. "/nope", { raw = true })
    p:post(path, samples.config(name), { raw = true })
    p:delete(path .. "/" .. name, nil, { raw = true })
  end },
  { name = "odd but legal paths", run = function(p)
    local path, name = p:core "configmaps", p:name "a"
    p:setup("POST", path, samples.config(name))
    p:get(path .. "/" .. name .. "/")
    p:get(path .. "/%" .. ("%02x"):format(name:byte(1)) .. name:sub(2), { as = "an escaped letter" })
    p:get("/" .. path .. "/" .. name)
    p:get(path .. "/" .. name .. "?unknown=1&&x")
  end },
}
