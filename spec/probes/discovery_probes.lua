-- What the server says it serves.
local json = require "spec.probes.json"
local samples = require "spec.probes.samples"

local aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

-- The groups without those of other probes' definitions.
local function own(list, keep)
  local out = json.array {}
  for _, item in ipairs(list) do
    local name = item.name or json.get(item, "metadata", "name") or ""
    if not name:find("example%.com$") or name == keep then out[#out + 1] = item end
  end
  return out
end

local function groups(keep)
  return function(v) v.groups = own(v.groups, keep) return v end
end

local function items(keep)
  return function(v) v.items = own(v.items, keep) return v end
end

local probes = {
  { name = "the legacy versions", run = function(p) p:get("/api") end },
  { name = "the groups", run = function(p) p:get("/apis", { pick = groups() }) end },
  { name = "single groups", run = function(p)
    for _, group in ipairs { "apps", "batch", "coordination.k8s.io", "events.k8s.io", "rbac.authorization.k8s.io",
      "apiextensions.k8s.io", "policy", "autoscaling", "networking.k8s.io", "authorization.k8s.io" } do
      p:get("/apis/" .. group)
    end
  end },
}

for _, version in ipairs { "/api/v1", "/apis/apps/v1", "/apis/batch/v1", "/apis/coordination.k8s.io/v1",
  "/apis/events.k8s.io/v1", "/apis/rbac.authorization.k8s.io/v1", "/apis/apiextensions.k8s.io/v1", "/apis/policy/v1",
  "/apis/autoscaling/v1", "/apis/autoscaling/v2", "/apis/networking.k8s.io/v1", "/apis/authorization.k8s.io/v1",
  "/apis/authentication.k8s.io/v1", "/apis/storage.k8s.io/v1", "/apis/scheduling.k8s.io/v1",
  "/apis/discovery.k8s.io/v1", "/apis/certificates.k8s.io/v1", "/apis/admissionregistration.k8s.io/v1",
  "/apis/node.k8s.io/v1", "/apis/apiregistration.k8s.io/v1", "/apis/flowcontrol.apiserver.k8s.io/v1" } do
  probes[#probes + 1] = { name = "the resources of " .. version, run = function(p) p:get(version) end }
end

local function tag_of(answer) return answer:header("etag") end

local more = {
  { name = "aggregated discovery of the core group", run = function(p)
    p:get("/api", { accept = aggregated .. ",application/json" })
  end },
  { name = "aggregated discovery of the other groups", run = function(p)
    p:get("/apis", { accept = aggregated .. ",application/json", pick = items() })
  end },
  { name = "aggregated discovery is not sent again when it did not change", run = function(p)
    local answer = p:get("/api", { accept = aggregated, quiet = true })
    p:get("/api", { accept = aggregated, headers = { { "If-None-Match", tag_of(answer) or "none" } } })
    p:get("/api", { accept = aggregated, headers = { { "If-None-Match", '"other"' } },
      pick = function(v) return v.kind end })
    p:note("the tag is in quotes", tag_of(answer) and tag_of(answer):gsub("%x+", "<hex>") or "none")
  end },
  { name = "the older aggregated discovery", run = function(p)
    p:get("/api", { accept = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
      pick = function(v) return json.object { kind = v.kind, apiVersion = v.apiVersion } end })
  end },
  { name = "a custom resource appears and has all its parts", run = function(p)
    local w = samples.widgets(p)
    p:poll(w.base, function(answer)
      return answer.status == 200 and #answer.json.resources == 3
    end, { pick = function(v)
      -- It depends on the random group.
      for _, resource in ipairs(v.resources) do
        resource.storageVersionHash = resource.storageVersionHash and #resource.storageVersionHash
      end
      return v
    end })
    p:get("/apis/" .. w.group)
    p:poll("/apis", function(answer) return answer.body:find(w.group, 1, true) ~= nil end,
      { pick = groups(w.group) })
    local accept = aggregated .. ",application/json"
    p:poll("/apis", function(answer) return answer.body:find(w.group, 1, true) ~= nil end,
      { accept = accept, quiet = true })
    p:get("/apis", { accept = accept, pick = function(v)
      for _, item in ipairs(v.items) do
        if item.metadata.name == w.group then return item end
      end
    end })
  end },
  { name = "the root lists paths", run = function(p)
    p:get("/", { pick = function(v)
      local found = json.object {}
      for _, path in ipairs(v.paths) do found[path] = true end
      local out = json.object {}
      for _, path in ipairs { "/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/healthz", "/livez",
        "/openapi/v2", "/openapi/v3", "/readyz", "/version" } do out[path] = found[path] or false end
      return out
    end })
  end },
  { name = "the index of OpenAPI documents", run = function(p)
    p:get("/openapi/v3", { pick = function(v)
      local out = json.object {}
      for path, entry in pairs(v.paths) do
        if not path:find("example%.com") then
          out[path] = (entry.serverRelativeURL:gsub("hash=%x+", "hash=<hash>"))
        end
      end
      return out
    end })
  end },
}
for _, probe in ipairs(more) do probes[#probes + 1] = probe end

return probes
