-- How many pods each node runs, the way client-go programs are written: handlers only put keys into
-- a work queue, and a worker looks at the cache when it is a key's turn. A burst of events about one
-- node is one piece of work, and a node whose work fails is tried again, later each time.
--
--   moonwatch run examples/nodes.lua
local kube = require "kube"

local stop = kube.stop_channel()
local factory = kube.shared_informer_factory { resync = 600 }
local informer = factory:core():v1():pods():informer()
informer:add_indexers { by_node = { path = "spec.nodeName" } }

local queue = kube.workqueue { name = "nodes" }

local function touch(pod, reason)
  local node = kube.get(pod, "spec.nodeName")
  if node then queue:add(node, { reason = reason }) end
end

informer:add_event_handler {
  on_add = function(pod) touch(pod, "a pod came") end,
  on_update = function(old, new)
    if kube.get(old, "spec.nodeName") ~= kube.get(new, "spec.nodeName") then touch(new, "a pod was placed") end
  end,
  on_delete = function(pod) touch(pod, "a pod went") end,
}

-- What is to be done about one node.
local function look_at(node, info)
  local pods = informer:get_indexer():index_keys("by_node", node)
  print(node, #pods, table.concat(info.reasons, ", "))
end

factory:start(stop)
factory:wait_for_cache_sync(60)

while true do
  local node, shutdown, info = queue:get()
  if shutdown then return end
  local ok, err = pcall(look_at, node, info)
  if ok then
    queue:forget(node)
  else
    kube.log.error("a node could not be looked at", { node = node, error = tostring(err) })
    queue:add_rate_limited(node)
  end
  queue:done(node)
end
