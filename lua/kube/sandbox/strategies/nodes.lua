-- Nodes: nothing runs on them here, but they look as they do before a kubelet has reported.
local json = require "kube.sandbox.json"

local nodes = {}

local NOT_READY = "node.kubernetes.io/not-ready"

local function prepare_create(_, document)
  local spec = json.shallow(document.spec)
  local taints = spec.taints and json.shallow(spec.taints) or json.array {}
  local there
  for _, taint in ipairs(taints) do there = there or taint.key == NOT_READY end
  if not there then taints[#taints + 1] = json.object { key = NOT_READY, effect = "NoSchedule" } end
  spec.taints = taints
  document.spec = spec
  return document
end

-- What there is can be used, unless somebody says otherwise.
local function default(_, document)
  local capacity = json.get(document, "status", "capacity")
  if capacity and not json.get(document, "status", "allocatable") then
    document.status = json.with(document.status, "allocatable", capacity)
  end
  return document
end

function nodes.of() return { default = default, prepare_create = prepare_create, keeps_status = true } end

return nodes
