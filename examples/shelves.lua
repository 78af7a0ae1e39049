-- Every node is a shelf: drawn again when a pod is put on it, [web], begins to leave, (web), or is
-- gone. The core keeps the index; drawing asks nobody.
--
--   moonwatch run examples/shelves.lua
local kube = require "kube"

local factory = kube.shared_informer_factory {}
local pods = factory:core():v1():pods():informer()
pods:add_indexers { by_node = { path = "spec.nodeName" } }

local function is_leaving(pod) return pod.metadata.deletionTimestamp ~= nil end

local function draw(node)
  if not node then return end
  local shelf = {}
  for _, pod in ipairs(pods:get_indexer():by_index("by_node", node)) do
    shelf[#shelf + 1] = (is_leaving(pod) and "(%s)" or "[%s]"):format(pod.metadata.name)
  end
  table.sort(shelf, function(a, b) return a:sub(2) < b:sub(2) end)
  print(("%-8s %s"):format(node, #shelf > 0 and table.concat(shelf, " ") or "empty"))
end

pods:add_event_handler {
  on_add = function(pod) draw(pod.spec.nodeName) end,
  on_update = function(old, new)
    if old.spec.nodeName ~= new.spec.nodeName or is_leaving(old) ~= is_leaving(new) then draw(new.spec.nodeName) end
  end,
  on_delete = function(pod) draw(pod.spec.nodeName) end,
}

factory:start()
