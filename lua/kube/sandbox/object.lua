-- One stored object: where it is, how it is read, and the checks that every write shares.
local json = require "kube.sandbox.json"
local status = require "kube.sandbox.status"
local utf8 = require "kube.sandbox.utf8"

local object = {}

--- The key of a name in the request's namespace.
function object.key(R, namespace, name) return R.namespaced and namespace .. "/" .. name or name end

function object.key_of(R, document) return object.key(R, document.metadata.namespace, document.metadata.name) end

--- The stored document that the request names, as version R shows it; nil when there is none.
function object.find(ctx, name)
  local stored = ctx.S.store:get(ctx.R.storage, object.key(ctx.R, ctx.info.namespace, name or ctx.info.name))
  return stored and object.view(ctx.R, stored)
end

--- The same, or 404.
function object.get(ctx, name)
  return object.find(ctx, name) or error(status.not_found(ctx.R, name or ctx.info.name))
end

--- A stored document as version R shows it. Versions of one resource share what is stored, and the
--- only conversion is the name of the version, unless the kind brings its own.
function object.view(R, stored)
  if R.from_storage then return R.from_storage(stored) end
  if stored.apiVersion == R.api_version then return stored end
  return json.with(stored, "apiVersion", R.api_version)
end

--- What goes into the store for a document of version R.
function object.stored(R, document)
  if R.to_storage then return R.to_storage(document) end
  return document
end

-- The rules of NamespaceLifecycle: nothing new in a namespace that is missing or going.
function object.check_namespace(ctx, name)
  local R, namespace = ctx.R, ctx.info.namespace
  if not R.namespaced then return end
  local found = ctx.S.store:get("namespaces", namespace)
  if not found then
    error(status.not_found({ resource_name = "namespaces", plural = "namespaces", group = "" }, namespace))
  end
  if found.metadata.deletionTimestamp then
    error(status.forbidden(R, name, ("unable to create new content in namespace %s because it is being terminated")
      :format(namespace), { json.object {
        reason = "NamespaceTerminating",
        message = ("namespace %s is being terminated"):format(namespace),
        field = "metadata.namespace",
      } }))
  end
end

--- Puts the request's namespace into the metadata, or refuses another.
function object.place(ctx, m)
  if not ctx.R.namespaced then
    m.namespace = nil
  elseif not m.namespace then
    m.namespace = ctx.info.namespace
  elseif m.namespace ~= ctx.info.namespace then
    error(status.bad_request("the namespace of the provided object does not match the namespace sent on the request"))
  end
end

--- Who writes, for managedFields: the fieldManager, or the client's name as it calls itself.
function object.manager(ctx, options)
  if options.field_manager ~= "" then return options.field_manager end
  local agent = (ctx.request.header("user-agent") or ""):match("^([^/]*)")
  return agent ~= "" and utf8.valid(agent) or "unknown"
end

return object
