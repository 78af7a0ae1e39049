-- The shortest controller: every namespace gets a ConfigMap that greets it.
--
--   moonwatch run examples/greeter.lua --sandbox
kube.controller {
  resource = "v1/namespaces",
  owns = { "v1/configmaps" },
  writes = { "v1/configmaps:create,patch" },
  reconcile = function(ctx, namespace)
    if not namespace or namespace.metadata.deletionTimestamp then return end
    ctx.client:apply(kube.set_owner({ apiVersion = "v1", kind = "ConfigMap", data = { hello = ctx.name },
      metadata = { name = "greeting", namespace = ctx.name } }, namespace))
  end,
}
