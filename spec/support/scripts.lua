-- Scripts that several specs run.
local scripts = {}

-- Follows ConfigMaps of one namespace and answers SIGTERM with nothing but a clean exit.
scripts.follower = [[
  local kube = require "kube"
  local factory = kube.shared_informer_factory { namespace = "%s", backoff = { duration = 0.1, cap = 0.5 } }
  local informer = factory:core():v1():config_maps():informer()
  informer:add_event_handler {
    on_add = function(cm, initial) print("add", cm.metadata.name, initial) end,
    on_update = function(old, new)
      if old.metadata.resourceVersion ~= new.metadata.resourceVersion then print("update", new.metadata.name) end
    end,
    on_delete = function(cm, stale) print("delete", cm.metadata.name, stale) end,
  }
  factory:start()
  factory:wait_for_cache_sync(30)
  print("synced", informer:get_store():count())
  while true do
    kube.sleep(0.2)
    local s = informer:stats()
    local d = s.decisions
    print(("stats lists=%%d watches=%%d expired=%%d fallback=%%d objects=%%d"):format(s.lists, s.watches,
      d.WATCH_EXPIRED, d.STREAM_FALLBACK, s.objects))
  end
]]

return scripts
