-- Prints what the cluster has of the website default/shop, one line whenever that changes. scripts/demo reads it.
local kube = require "kube"

local has, last = {}, nil

local function line()
  local parts = {}
  local replicas = kube.get(has.deployments, "spec.replicas")
  if replicas then parts[#parts + 1] = ("Deployment of %d"):format(replicas) end
  if has.services then parts[#parts + 1] = "Service" end
  if has.configmaps then parts[#parts + 1] = "entry" end
  local ready = kube.condition.get(has.websites, "Ready")
  if ready then parts[#parts + 1] = ("Ready=%s (%s)"):format(ready.status, ready.message:match("%d+ of %d+")) end
  return #parts > 0 and table.concat(parts, ", ") or "nothing"
end

-- Told by events, one after the other, and not by the caches, which may be ahead of them.
local function follow(resource, key)
  local kind = resource:match("[^/]+$")
  local function set(object)
    if object and kube.key(object) ~= key then return end
    has[kind] = object
    local now = line()
    if now ~= last then print(now) end
    last = now
  end
  kube.informer(resource):add_event_handler {
    on_add = set,
    on_update = function(_, object) set(object) end,
    on_delete = function(object)
      if kube.key(object) == key then set(nil) end
    end,
  }
end

follow("example.com/v1/websites", "default/shop")
follow("apps/v1/deployments", "default/shop")
follow("v1/services", "default/shop")
follow("v1/configmaps", "website-directory/default.shop")
