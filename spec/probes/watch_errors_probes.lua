-- Watches that are refused, and those that see nothing.
local samples = require "spec.probes.samples"

local function refused(p, path) p:watch(path):refusal() end

return {
  { name = "options that are refused", run = function(p)
    local path = p:core "secrets"
    refused(p, path .. "?sendInitialEvents=true")
    refused(p, path .. "?sendInitialEvents=false")
    refused(p, path .. "?resourceVersionMatch=NotOlderThan")
    refused(p, path .. "?resourceVersionMatch=NotOlderThan&resourceVersion=1")
    refused(p, path .. "?sendInitialEvents=true&resourceVersionMatch=Exact")
    refused(p, path .. "?sendInitialEvents=true&resourceVersionMatch=Bogus")
    refused(p, path .. "?resourceVersion=abc")
    refused(p, path .. "?timeoutSeconds=abc")
    refused(p, path .. "?labelSelector=%3Dx")
    refused(p, path .. "?fieldSelector=bogus%3D1")
  end },
  { name = "what counts as true", run = function(p)
    p:get(p:core "secrets" .. "?watch=abc&timeoutSeconds=1")
    p:watch(p:core "secrets" .. "?allowWatchBookmarks=abc"):take(1)
    p:get(p:core "secrets" .. "?watch=false")
    p:get(p:core "secrets" .. "?watch=0")
  end },
  { name = "a limit or token has no meaning", run = function(p)
    local path = p:core "secrets"
    p:setup("POST", path, samples.secret(p:name "a"))
    p:setup("POST", path, samples.secret(p:name "b"))
    p:watch(path .. "?limit=1&timeoutSeconds=1"):finish()
    p:watch(path .. "?continue=x&timeoutSeconds=1"):finish()
  end },
  { name = "a version of the future is silence, or an error for a streaming list", run = function(p)
    local path = p:core "secrets"
    p:setup("POST", path, samples.secret(p:name "a"))
    local silent = p:watch(path .. "?resourceVersion=999999999&timeoutSeconds=1")
    p:setup("POST", path, samples.secret(p:name "b"))
    silent:finish()
    p:watch(path .. "?resourceVersion=999999999&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
      .. "&allowWatchBookmarks=true"):finish()
  end },
  { name = "resources that cannot be watched or do not exist", run = function(p)
    refused(p, "/api/v1/namespaces/default/nopes")
    refused(p, "/api/v1/componentstatuses")
    refused(p, "/apis/nope.io/v1/things")
  end },
  { name = "a representation that is not acceptable", run = function(p)
    p:watch(p:core "secrets", { accept = "text/html" }):refusal()
    p:watch(p:core "secrets", { accept = "application/yaml" }):refusal()
  end },
}
