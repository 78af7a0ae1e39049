-- Nodes: nothing runs on them here, but they look as they do before a kubelet has reported.
local json = require "kube.sandbox.json"

local nodes = {}

local INFO = {
  "machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion", "kubeletVersion",
  "kubeProxyVersion", "operatingSystem", "architecture",
}

local NOT_READY = "node.kubernetes.io/not-ready"

local function prepare_create(_, document)
  local spec = json.is_object(document.spec) and json.shallow(document.spec) or json.object {}
  local taints = spec.taints and json.shallow(spec.taints) or json.array {}
  local there
  for _, taint in ipairs(taints) do there = there or taint.key == NOT_READY end
  if not there then taints[#taints + 1] = json.object { key = NOT_READY, effect = "NoSchedule" } end
  spec.taints = taints
  document.spec = spec
  local info = json.object {}
  for _, name in ipairs(INFO) do info[name] = "" end
  local given = json.is_object(document.status) and document.status or json.object {}
  document.status = json.shallow(given)
  document.status.daemonEndpoints = given.daemonEndpoints
    or json.object { kubeletEndpoint = json.object { Port = 0 } }
  document.status.nodeInfo = given.nodeInfo or info
  return document
end

function nodes.of() return { prepare_create = prepare_create, keeps_status = true } end

return nodes
