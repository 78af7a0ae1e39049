-- What happens when the server has forgotten. Last, because it restarts the real one.
local samples = require "spec.probes.samples"

local names = samples.names

return {
  { name = "old versions and tokens are gone", run = function(p)
    local path = p:core "secrets"
    local first = p:setup("POST", path, samples.secret(p:name "a")).json.metadata.resourceVersion
    for _, label in ipairs { "b", "c", "d" } do p:setup("POST", path, samples.secret(p:name(label))) end
    local page = p:get(path .. "?limit=2", { pick = names })
    p:setup("DELETE", path .. "/" .. p:name "c")
    p:setup("POST", path, samples.secret(p:name "e"))
    p:expire()
    local expired = p:get(path .. "?limit=2&continue=" .. page.json.metadata.continue)
    p:get(path .. "?limit=2&continue=" .. (expired.json.metadata.continue or "none"), { pick = names })
    p:get(path .. "?resourceVersionMatch=Exact&resourceVersion=" .. first)
    p:get(path .. "?limit=1&resourceVersion=" .. first)
    p:get(path .. "?resourceVersion=" .. first, { pick = names })
    p:get(path .. "?resourceVersionMatch=Exact&resourceVersion=1")
    p:watch(path .. "?resourceVersion=" .. first):finish()
    p:watch(path .. "?resourceVersion=" .. first, { accept = "application/json;as=Table;v=v1;g=meta.k8s.io" }):finish()
    p:watch(path .. "?resourceVersion=1"):finish()
    local watch = p:watch(path .. "?resourceVersion=" .. first
      .. "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
    watch:take(5)
  end },
}
