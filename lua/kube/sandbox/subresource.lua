-- Parts of objects that have a door of their own: status, scale, finalize, binding, eviction, token.
local body = require "kube.sandbox.body"
local budgets = require "kube.sandbox.budgets"
local clock = require "kube.sandbox.clock"
local delete = require "kube.sandbox.delete"
local field = require "kube.sandbox.field"
local json = require "kube.sandbox.json"
local object = require "kube.sandbox.object"
local patch = require "kube.sandbox.patch"
local request = require "kube.sandbox.request"
local scale = require "kube.sandbox.scale"
local status = require "kube.sandbox.status"
local update = require "kube.sandbox.update"

local subresource = {}

local handlers = {}

handlers.status = {
  get = function(ctx) return 200, object.get(ctx) end,
  update = update.run,
  patch = patch.run,
}

handlers.scale = { get = scale.get, update = scale.update, patch = scale.patch }

local function created()
  return 201, json.object {
    kind = "Status", apiVersion = "v1", metadata = json.object {}, status = "Success", code = 201,
  }
end

-- namespaces/finalize: replaces spec.finalizers, and nothing else.
local function finalize(ctx)
  local options = request.write_options(ctx.info, "UpdateOptions")
  options.subresource = "finalize"
  local document = body.object(ctx, ctx.R, options.field_validation)
  update.check_name(ctx, document)
  local old = object.get(ctx)
  local finalizers = json.get(document, "spec", "finalizers")
  local spec = json.object {}
  if finalizers and finalizers[1] then spec.finalizers = finalizers end
  local new = json.with(old, "spec", spec)
  new.metadata = json.with(old.metadata, "resourceVersion", json.get(document, "metadata", "resourceVersion"))
  return 200, update.commit(ctx, new, old, options)
end

handlers.finalize = { update = finalize }

local function store_pod(ctx, old, change)
  local new = change(json.copy(old))
  ctx.S.store:update(ctx.R, object.key_of(ctx.R, old), new)
end

local function set_condition(pod, condition)
  local conditions = json.get(pod, "status", "conditions") or json.array {}
  pod.status.conditions = conditions
  for i, c in ipairs(conditions) do
    if c.type == condition.type then
      conditions[i] = condition
      return
    end
  end
  conditions[#conditions + 1] = condition
end

-- The server does not class what is wrong with a binding.
local function check_target(target)
  local kind = json.get(target, "kind") or ""
  if kind ~= "" and kind ~= "Node" then
    error(status.unclassified(('target.kind: Unsupported value: %s: supported values: "Node", "<empty>"'):format(
      field.show(kind))))
  end
  if (json.get(target, "name") or "") == "" then error(status.unclassified "target.name: Required value") end
end

-- Why a pod cannot go to a node, or nil.
local function bound_problem(pod)
  local assigned = json.get(pod, "spec", "nodeName")
  if pod.metadata.deletionTimestamp then return "is being deleted, cannot be assigned to a host" end
  if assigned then return ('is already assigned to node "%s"'):format(assigned) end
  if json.get(pod, "spec", "schedulingGates", 1) then return "has non-empty .spec.schedulingGates" end
end

-- pods/binding: assigns a pod to a node, once.
local function bind(ctx)
  local binding = body.decode(ctx, ctx.R, "Binding")
  check_target(json.get(binding, "target"))
  local pod = object.get(ctx)
  local problem = bound_problem(pod)
  if problem then
    local subject = { resource_name = "pods/binding", plural = "pods/binding", group = "" }
    error(status.conflict(subject, pod.metadata.name, ("pod %s %s"):format(pod.metadata.name, problem)))
  end
  local dry = request.write_options(ctx.info, "CreateOptions").dry_run
  if not dry then
    store_pod(ctx, pod, function(new)
      new.spec.nodeName = json.get(binding, "target", "name")
      set_condition(new, json.object {
        type = "PodScheduled", status = "True", lastProbeTime = json.null, lastTransitionTime = ctx.S.clock:stamp(),
      })
      return new
    end)
  end
  return created()
end

handlers.binding = { create = bind }

-- pods/eviction: a deletion that a disruption budget may refuse.
local function evict(ctx)
  local eviction = body.decode(ctx, ctx.R, "Eviction")
  local pod = object.get(ctx)
  local dry = request.write_options(ctx.info, "CreateOptions").dry_run
  budgets.ask(ctx.S, pod, dry)
  if dry then return created() end
  if not json.get(pod, "metadata", "deletionTimestamp") or json.get(pod, "spec", "nodeName") then
    store_pod(ctx, pod, function(new)
      set_condition(new, json.object {
        type = "DisruptionTarget", status = "True", lastProbeTime = json.null,
        lastTransitionTime = ctx.S.clock:stamp(), reason = "EvictionByEvictionAPI",
        message = "Eviction API: evicting",
      })
      return new
    end)
  end
  local options = json.get(eviction, "deleteOptions") or {}
  delete.commit(ctx, object.get(ctx), options)
  return created()
end

handlers.eviction = { create = evict }

local TOKEN_SECONDS = 3600

-- serviceaccounts/token: a token in the right shape that this server does not take.
local function token(ctx)
  local review = body.decode(ctx, ctx.R, "TokenRequest")
  local account = object.get(ctx)
  local seconds = json.get(review, "spec", "expirationSeconds") or TOKEN_SECONDS
  ctx:warn("sandbox: service account tokens are not accepted by this server")
  return 201, json.object {
    kind = "TokenRequest",
    apiVersion = "authentication.k8s.io/v1",
    metadata = json.object {
      name = account.metadata.name,
      namespace = account.metadata.namespace,
      creationTimestamp = ctx.S.clock:stamp(),
    },
    spec = json.object {
      audiences = json.get(review, "spec", "audiences") or json.array { "https://kubernetes.default.svc" },
      expirationSeconds = seconds,
      boundObjectRef = json.get(review, "spec", "boundObjectRef") or json.null,
    },
    status = json.object {
      token = "sandbox." .. ctx.S.ids:uid(),
      expirationTimestamp = clock.rfc3339(ctx.S.clock:now() + seconds),
    },
  }
end

handlers.token = { create = token }

local function nothing() return { status = 204, headers = {}, body = "" } end

-- Nothing runs here: what would need a node is refused in one sentence.
local NEEDS_NODE = { log = true, exec = true, attach = true, portforward = true, proxy = true }

--- Handles a request for a part of an object.
function subresource.run(ctx)
  local R, info = ctx.R, ctx.info
  local known = R.subresources[info.subresource]
  if not known then error(R.builtin and status.no_resource() or status.not_found(R, info.name)) end
  local verb = info.verb == "deletecollection" and "delete" or info.verb
  if not known.verbs[verb] then
    error(R.builtin and status.method_not_allowed() or status.not_supported(R, verb))
  end
  if NEEDS_NODE[info.subresource] then
    local found = object.get(ctx)
    -- Nobody has started it, so it has said nothing.
    if info.subresource == "log" and not json.get(found, "spec", "nodeName") then return nothing() end
    error(status.new {
      code = 501,
      reason = "NotImplemented",
      message = ("sandbox: no node runs here, so %s/%s is not available"):format(R.plural, info.subresource),
    })
  end
  local handler = handlers[info.subresource]
  if not handler or not handler[verb] then
    error(status.new {
      code = 501,
      reason = "NotImplemented",
      message = ("sandbox: %s/%s is not available"):format(R.plural, info.subresource),
    })
  end
  return handler[verb](ctx)
end

return subresource
