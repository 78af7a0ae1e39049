-- Pods per node, from an index that the core keeps: no scan, no request.
--
--   moonwatch run examples/pods_per_node.lua
local kube = require "kube"

local factory = kube.shared_informer_factory {}
local pods = factory:core():v1():pods():informer()
pods:add_indexers { by_node = { path = "spec.nodeName" } }

local function report(node)
  if node then print(node, #pods:get_indexer():index_keys("by_node", node)) end
end

factory:start()
factory:wait_for_cache_sync()

for _, node in ipairs(pods:get_indexer():list_index_func_values("by_node")) do report(node) end

pods:add_event_handler {
  replay = false,
  on_add = function(pod) report(pod.spec.nodeName) end,
  on_update = function(old, new)
    if old.spec.nodeName ~= new.spec.nodeName then report(new.spec.nodeName) end
  end,
  on_delete = function(pod) report(pod.spec.nodeName) end,
}
