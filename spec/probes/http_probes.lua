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
    p:get("/apis/apps/v9/namespaces/default/deployments")
    p:post("/apis/batch/v1beta1/namespaces/default/cronjobs", { metadata = { name = p:name "a" } })
    p:get("/apis/nope.io/v1/namespaces/default/things")
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
    local function note(query, agent)
      local body = p:get(path .. "/" .. name .. query, { quiet = true, agent = agent }).body
      p:note(query .. " " .. (agent or ""), body:find('\n  "metadata": {\n    "', 1, true) and "indented"
        or not body:find("\n.") and "one line" or body)
    end
    note "?pretty=true"
    note "?pretty=1"
    note("", "curl/8")
    note("", "Wget/1")
    note("", "Mozilla/5.0 x")
    note("?pretty=false", "curl/8")
    note ""
  end },
  { name = "bodies end with a line break and are safe in HTML", run = function(p)
    local path, name = p:core "configmaps", p:name "a"
    local function note(answer)
      p:note("the text", { line = answer.body:find("\n$") ~= nil,
        escaped = answer.body:match("\\u[^\"]+") or "nothing" })
    end
    note(p:post(path, samples.config(name, nil, { k = "<&>\226\128\168" }), { quiet = true }))
    note(p:get(path .. "/" .. name, { quiet = true }))
    note(p:get(path, { quiet = "unseen" }))
    note(p:get(path .. "/nope", { quiet = true }))
    note(p:delete(path .. "/" .. name, nil, { quiet = true }))
    note(p:post(path, "", { quiet = true }))
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
