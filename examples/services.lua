-- The classic informer demo: watch services, resync once a minute, say what happens.
--
--   moonwatch run examples/services.lua
local kube = require "kube"

local client = kube.new_client()
local stop = kube.stop_channel()

local factory = kube.shared_informer_factory { client = client, resync = 60 }
local informer = factory:core():v1():services():informer()

informer:add_event_handler {
  on_add = function(service)
    print("added", kube.key(service), service.spec.clusterIP)
  end,
  on_update = function(old, new)
    if old.metadata.resourceVersion == new.metadata.resourceVersion then
      print("resync", kube.key(new))
    else
      print("updated", kube.key(new), new.spec.type)
    end
  end,
  on_delete = function(service)
    print("deleted", kube.key(service))
  end,
}

informer:run(stop)
