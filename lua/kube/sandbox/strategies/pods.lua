-- Pods: defaults, what admission adds, the grace of a deletion, and what cannot be changed.
local field = require "kube.sandbox.field"
local json = require "kube.sandbox.json"
local pod_rules = require "kube.sandbox.strategies.pod_rules"
local pod_spec = require "kube.sandbox.strategies.pod_spec"
local pod_status = require "kube.sandbox.strategies.pod_status"
local pod_warnings = require "kube.sandbox.strategies.pod_warnings"
local priorities = require "kube.sandbox.strategies.priorities"
local quantity = require "kube.sandbox.quantity"
local status = require "kube.sandbox.status"

local pods = {}

local set, each, inside = pod_spec.set, pod_spec.each, pod_spec.inside

-- What is limited and not requested is requested as much as it is limited.
local function default_requests(container)
  inside(container, "resources", function(resources)
    if not json.is_object(resources.limits) then return end
    local requests = json.is_object(resources.requests) and json.shallow(resources.requests) or json.object {}
    for name, value in pairs(resources.limits) do set(requests, name, value) end
    resources.requests = requests
  end)
end

-- One address and the list of them say the same; who writes the one means both.
local function mirror_address(document)
  local address, first = json.get(document, "status", "podIP"), json.get(document, "status", "podIPs", 1, "ip")
  if first and not address then document.status = json.with(document.status, "podIP", first) end
  if not address or address == first then return end
  document.status = json.with(document.status, "podIPs", json.array { json.object { ip = address } })
end

local function default(_, document)
  mirror_address(document)
  if not json.is_object(document.spec) then return document end
  local spec = pod_spec.default(document.spec)
  set(spec, "enableServiceLinks", true)
  each(spec, "containers", default_requests)
  each(spec, "initContainers", default_requests)
  document.spec = spec
  return document
end

local MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"

local function token_volume(name)
  return json.object {
    name = name,
    projected = json.object {
      defaultMode = 420,
      sources = json.array {
        json.object { serviceAccountToken = json.object { expirationSeconds = 3607, path = "token" } },
        json.object { configMap = json.object {
          name = "kube-root-ca.crt",
          items = json.array { json.object { key = "ca.crt", path = "ca.crt" } },
        } },
        json.object { downwardAPI = json.object { items = json.array { json.object {
          path = "namespace",
          fieldRef = json.object { apiVersion = "v1", fieldPath = "metadata.namespace" },
        } } } },
      },
    },
  }
end

local function is_mounted(container)
  for _, mount in ipairs(container.volumeMounts or {}) do
    if mount.mountPath == MOUNT then return true end
  end
  return false
end

-- Every container that does not bring one gets the token of the pod's account.
local function mount_token(ctx, spec)
  local volume = "kube-api-access-" .. ctx.S.ids:suffix()
  local used = false
  local function mount(container)
    if is_mounted(container) then return end
    used = true
    local mounts = container.volumeMounts and json.shallow(container.volumeMounts) or json.array {}
    mounts[#mounts + 1] = json.object { name = volume, readOnly = true, mountPath = MOUNT }
    container.volumeMounts = mounts
  end
  each(spec, "containers", mount)
  each(spec, "initContainers", mount)
  if not used then return end
  local volumes = spec.volumes and json.shallow(spec.volumes) or json.array {}
  volumes[#volumes + 1] = token_volume(volume)
  spec.volumes = volumes
end

local function give_account(ctx, document)
  local spec = document.spec
  if (spec.serviceAccountName or "") == "" then
    spec.serviceAccountName, spec.serviceAccount = "default", "default"
  end
  local namespace, name = document.metadata.namespace, spec.serviceAccountName
  local account = ctx.S.store:get("serviceaccounts", namespace .. "/" .. name)
  if not account then
    error(status.forbidden(ctx.R, document.metadata.name,
      ('error looking up service account %s/%s: serviceaccount "%s" not found'):format(namespace, name, name)))
  end
  local automount = spec.automountServiceAccountToken
  if automount == nil then automount = account.automountServiceAccountToken end
  if automount ~= false then mount_token(ctx, spec) end
end

local function tolerate(spec, key)
  local tolerations = spec.tolerations and json.shallow(spec.tolerations) or json.array {}
  for _, t in ipairs(tolerations) do
    local any = (t.key or "") == "" or t.key == key
    if any and ((t.effect or "") == "" or t.effect == "NoExecute") then return end
  end
  tolerations[#tolerations + 1] = json.object {
    key = key, operator = "Exists", effect = "NoExecute", tolerationSeconds = 300,
  }
  spec.tolerations = tolerations
end

local function tolerate_nodes(spec)
  tolerate(spec, "node.kubernetes.io/not-ready")
  tolerate(spec, "node.kubernetes.io/unreachable")
end

-- A pod behind gates says so.
local function gated(ctx)
  return json.object {
    type = "PodScheduled",
    status = "False",
    lastProbeTime = json.null,
    lastTransitionTime = ctx.S.clock:stamp(),
    reason = "SchedulingGated",
    message = "Scheduling is blocked due to non-empty scheduling gates",
  }
end

local function prepare_create(ctx, document)
  if not json.is_object(document.spec) then return document end
  local spec = json.shallow(document.spec)
  document.spec = spec
  give_account(ctx, document)
  tolerate_nodes(spec)
  if spec.terminationGracePeriodSeconds < 0 then spec.terminationGracePeriodSeconds = 1 end
  priorities.give(ctx, document.metadata.name, spec)
  document.status = json.object { phase = "Pending", qosClass = quantity.qos(spec) }
  if spec.schedulingGates and spec.schedulingGates[1] then
    document.status.conditions = json.array { gated(ctx) }
  end
  return document
end

local function prepare_update(_, new, _, subresource)
  if subresource == "status" or not json.is_object(new.spec) then return new end
  new.spec = json.shallow(new.spec)
  tolerate_nodes(new.spec)
  return new
end

local FIXED = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
  .. "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
  .. "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"

-- A spec without what an update may change.
local function fixed_part(spec)
  local copy = json.shallow(spec)
  copy.activeDeadlineSeconds, copy.tolerations, copy.schedulingGates = nil, nil, nil
  local function without_image(c) c.image = nil end
  each(copy, "containers", without_image)
  each(copy, "initContainers", without_image)
  return copy
end

local function check_gates(errors, new, old)
  local known = {}
  for _, gate in ipairs(old or {}) do known[gate.name] = true end
  for i, gate in ipairs(new or {}) do
    if not known[gate.name] then
      errors[#errors + 1] = field.forbidden(("spec.schedulingGates[%d].name"):format(i - 1),
        ("only deletion is allowed, but found new scheduling gate '%s'"):format(gate.name))
    end
  end
end

local function check_images(errors, spec, list)
  for i, c in ipairs(json.get(spec, list) or {}) do
    pod_rules.check_image(errors, c.image or "", ("spec.%s[%d].image"):format(list, i - 1))
  end
end

local LONGEST = 2147483647

local function check_deadline(errors, deadline, before)
  local path = "spec.activeDeadlineSeconds"
  if deadline and (deadline < 0 or deadline > LONGEST) then
    errors[#errors + 1] = field.invalid(path, deadline, ("must be between 0 and %d, inclusive"):format(LONGEST))
  elseif deadline and before and deadline > before then
    errors[#errors + 1] = field.invalid(path, deadline, "must be less than or equal to previous value")
  elseif before and not deadline then
    errors[#errors + 1] = field.invalid(path, nil, "must not update from a positive integer to nil value")
  end
end

local function is_same_toleration(a, b)
  for _, name in ipairs { "key", "operator", "value", "effect" } do
    if (json.get(a, name) or "") ~= (json.get(b, name) or "") then return false end
  end
  return true
end

local function check_tolerations(errors, new, old)
  for _, before in ipairs(old or {}) do
    local there = false
    for _, now in ipairs(new or {}) do there = there or is_same_toleration(now, before) end
    if not there then
      errors[#errors + 1] = field.forbidden("spec.tolerations",
        "existing toleration can not be modified except its tolerationSeconds")
      return
    end
  end
end

-- The server looks at the parts that may change, and then at all the rest at once.
local function check_change(errors, new, old)
  check_gates(errors, json.get(new, "schedulingGates"), json.get(old, "schedulingGates"))
  for _, list in ipairs { "containers", "initContainers" } do
    if #(json.get(new, list) or {}) ~= #(json.get(old, list) or {}) then
      errors[#errors + 1] = field.forbidden("spec." .. list, "pod updates may not add or remove containers")
      return
    end
    check_images(errors, new, list)
  end
  check_deadline(errors, json.get(new, "activeDeadlineSeconds"), json.get(old, "activeDeadlineSeconds"))
  check_tolerations(errors, json.get(new, "tolerations"), json.get(old, "tolerations"))
  if not json.equal(fixed_part(new), fixed_part(old)) then errors[#errors + 1] = field.forbidden("spec", FIXED) end
end

local function validate(ctx, new, old, errors, subresource)
  if subresource == "status" then return pod_status.check(errors, new, old) end
  pod_rules.check(errors, new.spec, "spec")
  if old then
    check_change(errors, new.spec or {}, old.spec or {})
  elseif not errors[1] then
    pod_warnings.warn_name(ctx, new.metadata.name)
    pod_warnings.warn(ctx, new.spec, "spec")
  end
end

local FINISHED = { Succeeded = true, Failed = true }

-- A pod on a node has time to end; one that runs nowhere has none to need.
local function grace(_, document, given)
  local seconds = given or json.get(document, "spec", "terminationGracePeriodSeconds") or 30
  if not json.get(document, "spec", "nodeName") then return 0 end
  if FINISHED[json.get(document, "status", "phase")] then return 0 end
  return seconds
end

function pods.of()
  return {
    default = default,
    prepare_create = prepare_create,
    prepare_update = prepare_update,
    validate = validate,
    grace = grace,
    status_keeps = { "ownerReferences" },
  }
end

return pods
