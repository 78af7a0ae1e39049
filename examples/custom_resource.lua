-- Watches a custom resource by its name: group/version/plural. The definition may be installed
-- later; until then the informer says what is missing and tries again.
--
--   moonwatch run examples/custom_resource.lua
local kube = require "kube"

local factory = kube.shared_informer_factory {}
local webs = factory:for_resource("example.com/v1/webs"):informer()

webs:set_watch_error_handler(function(err)
  kube.log.warn("not yet", { error = err.message, next = err.again })
end)

webs:add_event_handler {
  on_add = function(web) print("web", kube.key(web), kube.get(web, "spec.image")) end,
  on_update = function(old, new)
    if old.metadata.generation ~= new.metadata.generation then
      print("changed", kube.key(new), kube.get(old, "spec.image"), kube.get(new, "spec.image"))
    end
  end,
  on_delete = function(web) print("removed", kube.key(web)) end,
}

factory:start()
