-- Pods with a lister: wait for the cache, then read from it instead of asking the server.
--
--   moonwatch run examples/pods.lua -n default
local kube = require "kube"

local stop = kube.stop_channel()
local factory = kube.shared_informer_factory {}

local pods = factory:core():v1():pods()
local lister, informer = pods:lister(), pods:informer()
local function pods_synced() return informer:has_synced() end

informer:add_event_handler {
  on_add = function(pod, initial)
    if not initial then print("new pod", kube.key(pod)) end
  end,
  on_update = function(old, new)
    local before, after = kube.get(old, "status.phase"), kube.get(new, "status.phase")
    if before ~= after then print("phase", kube.key(new), before, after) end
  end,
  on_delete = function(pod)
    print("gone", kube.key(pod))
  end,
}

factory:start(stop)
if not kube.wait_for_cache_sync(stop, pods_synced) then return end

print(("%d pods in the cache"):format(#lister:list()))
for pod in lister:each { selector = "app" } do
  print("labelled", kube.key(pod), pod.metadata.labels.app)
end
