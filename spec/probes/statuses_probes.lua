-- What objects say of themselves: rules of statuses, alone and against what was said before. (Those of
-- workloads and jobs are among workloads_probes and jobs_probes.)
local json = require "spec.probes.json"
local samples = require "spec.probes.samples"

local function refusal(v)
  return v.kind == "Status" and samples.sorted_causes(v) or json.object { status = v.status }
end

local function changes(p, path, document)
  p:setup("POST", path, document)
  local one = path .. "/" .. document.metadata.name .. "/status"
  return function(status, for_good)
    p:patch("merge", one .. (for_good and "" or "?dryRun=All"), { status = status }, { pick = refusal })
  end
end

local function container(state, name)
  return { name = name or "main", state = state, ready = false, restartCount = 0, image = "i", imageID = "i" }
end

return {
  { name = "pods", run = function(p)
    p:poll(p:core("serviceaccounts", "default"), function(a) return a.status == 200 end, { quiet = true })
    local change = changes(p, p:core "pods", samples.pod(p:name "a", nil, { restartPolicy = "OnFailure" }))
    change { conditions = { { type = "not a type", status = "True" }, { type = "Ready", status = "True",
      observedGeneration = -1 } } }
    change { conditions = { { type = "e.com/x", status = "True" }, { type = "Ready", status = "False" } } }
    change { nominatedNodeName = "Bad_" }
    change { nominatedNodeName = "n" }
    change { observedGeneration = -1 }
    change { qosClass = "Guaranteed" }
    change { podIPs = { { ip = "10.0.0.1" }, { ip = "10.0.0.2" } } }
    change { podIPs = { { ip = "10.0.0.1" }, { ip = "2001:db8::1" } } }
    change { podIPs = { { ip = "x" } } }
    change({ containerStatuses = { container { terminated = { exitCode = 0 } } } }, true)
    change { containerStatuses = { container { running = json.object {} } } }
    change { containerStatuses = { container { terminated = { exitCode = 1 } } } }
    change { containerStatuses = json.array {} }
    change({ containerStatuses = { container { terminated = { exitCode = 1 } } } }, true)
    change { containerStatuses = { container { running = json.object {} } } }
    local never = changes(p, p:core "pods", samples.pod(p:name "b", nil, { restartPolicy = "Never", nodeName = "n" }))
    never { nominatedNodeName = "m" }
    never({ containerStatuses = { container { terminated = { exitCode = 1 } } } }, true)
    never { containerStatuses = { container { waiting = json.object {} } } }
  end },
  { name = "services", run = function(p)
    local function service(label, kind) return changes(p, p:core "services", { metadata = { name = p:name(label) },
      spec = { type = kind, ports = { { port = 80 } } } }) end
    local function at(...) return { loadBalancer = { ingress = { ... } } } end
    local plain = service("a", "ClusterIP")
    plain(at { ip = "10.0.0.1" })
    local balancer = service("b", "LoadBalancer")
    balancer(at({ ip = "x" }, { hostname = "Bad_" }, { hostname = "10.0.0.1" }))
    balancer(at { ip = "10.0.0.1", ipMode = "Bogus" })
    balancer(at { hostname = "a.example.com", ipMode = "VIP" })
    balancer(at({ ip = "10.0.0.1" }, { ip = "10.0.0.2", ipMode = "Proxy" }, { hostname = "a.example.com" }))
  end },
  { name = "autoscalers", run = function(p)
    local change = changes(p, p:path("/apis/autoscaling/v2", "horizontalpodautoscalers"), { metadata = {
      name = p:name "a" }, spec = { maxReplicas = 2, scaleTargetRef = { kind = "Deployment", name = "x",
        apiVersion = "apps/v1" } } })
    change { currentReplicas = -1, desiredReplicas = -1 }
    change { currentReplicas = 5, desiredReplicas = 1 }
  end },
}
