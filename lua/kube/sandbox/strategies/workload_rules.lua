-- What deployments, replica sets, stateful sets, daemon sets, replication controllers and pod templates
-- must be: selectors that find their own pods, strategies that get on, and what is set for good.
local claim_rules = require "kube.sandbox.strategies.claim_rules"
local field = require "kube.sandbox.field"
local json = require "kube.sandbox.json"
local label_selector = require "kube.sandbox.label_selector"
local names = require "kube.sandbox.names"
local pod_rules = require "kube.sandbox.strategies.pod_rules"
local pod_warnings = require "kube.sandbox.strategies.pod_warnings"
local shares = require "kube.sandbox.strategies.shares"
local workload_status = require "kube.sandbox.strategies.workload_status"

local workload_rules = {}

local check_share, check_within_all, is_nothing = shares.check, shares.check_within_all, shares.is_nothing

local function add(errors, e) errors[#errors + 1] = e end

local NOT_NEGATIVE = "must be greater than or equal to 0"

local function check_counts(errors, spec, ...)
  for _, name in ipairs { ... } do
    if (tonumber(spec[name]) or 0) < 0 then add(errors, field.invalid("spec." .. name, spec[name], NOT_NEGATIVE)) end
  end
end

-- ---- selectors and templates ----

-- What an empty selector is called invalid for, and what is said of one that cannot be read. A replica
-- set takes itself for a deployment.
local SELECTORS = {
  Deployment = { "deployment", "invalid label selector" },
  ReplicaSet = { "deployment", "invalid label selector" },
  StatefulSet = { "statefulset", "" },
  DaemonSet = { "daemonset" },
}

local function check_match(errors, labels, selects)
  if selects then return end
  add(errors, field.invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`"))
end

-- A selector that is not there selects nothing.
local function check_selector(errors, spec, kind)
  local selector, words = json.get(spec, "selector"), SELECTORS[kind]
  local labels = json.get(spec, "template", "metadata", "labels")
  if not selector then
    if kind ~= "DaemonSet" then add(errors, field.required("spec.selector")) end
    return check_match(errors, labels, false)
  end
  local before = #errors
  label_selector.check(errors, selector, "spec.selector")
  local good = #errors == before
  if label_selector.is_empty(selector) then
    add(errors, field.invalid("spec.selector", selector, "empty selector is invalid for " .. words[1]))
  end
  if good then
    check_match(errors, labels, label_selector.matches(selector, labels))
  elseif words[2] then
    add(errors, field.invalid("spec.selector", selector, words[2]))
  end
end

-- Deployments say the same as what they make.
local SPOKEN_OF = { Deployment = "ReplicaSet" }

-- Pods that are to run for ever.
local function check_template(errors, spec, kind, pods)
  pod_rules.check(errors, pods, "spec.template.spec")
  if pods.restartPolicy ~= "Always" then
    add(errors, field.not_supported("spec.template.spec.restartPolicy", pods.restartPolicy, { "Always" }))
  end
  if json.get(spec, "template", "spec", "activeDeadlineSeconds") then
    add(errors, field.forbidden("spec.template.spec.activeDeadlineSeconds",
      ("activeDeadlineSeconds in %s is not Supported"):format(SPOKEN_OF[kind] or kind)))
  end
end

local function pods_of(spec) return json.get(spec, "template", "spec") or json.object {} end

-- ---- strategies ----

-- A strategy as the server's own struct has it; `members` in its order.
local function show_strategy(strategy, members)
  local update, texts = json.get(strategy, "rollingUpdate"), {}
  for i, name in ipairs(members) do
    local value = update and update[name]
    texts[i] = ('"%s":%s'):format(name:gsub("^%l", string.upper), json.encode(value == nil and json.null or value))
  end
  local inner = update and "{" .. table.concat(texts, ",") .. "}" or "null"
  return ('{"Type":%s,"RollingUpdate":%s}'):format(json.encode(strategy.type), inner), inner
end

local function shown_not_supported(path, shown, known)
  local e = field.not_supported(path, json.null, known)
  e.message = e.message:gsub("null", function() return shown end, 1)
  return e
end

local function check_deployment_strategy(errors, strategy)
  local update, path = json.get(strategy, "rollingUpdate"), "spec.strategy.rollingUpdate"
  if strategy.type == "RollingUpdate" then
    update = update or {}
    check_share(errors, update.maxUnavailable, path .. ".maxUnavailable")
    check_share(errors, update.maxSurge, path .. ".maxSurge")
    if is_nothing(update.maxUnavailable) and is_nothing(update.maxSurge) then
      add(errors, field.invalid(path .. ".maxUnavailable", update.maxUnavailable, "may not be 0 when `maxSurge` is 0"))
    end
    check_within_all(errors, update.maxUnavailable, path .. ".maxUnavailable")
  elseif strategy.type ~= "Recreate" then
    add(errors, shown_not_supported("spec.strategy", (show_strategy(strategy, { "maxUnavailable", "maxSurge" })),
      { "Recreate", "RollingUpdate" }))
  elseif update then
    add(errors, field.forbidden(path, "may not be specified when strategy `type` is 'Recreate'"))
  end
end

local function check_set_strategy(errors, strategy)
  local update, path = json.get(strategy, "rollingUpdate"), "spec.updateStrategy.rollingUpdate"
  local shown, inner = show_strategy(strategy, { "partition", "maxUnavailable" })
  if strategy.type == "OnDelete" then
    if update then
      add(errors, field.shown(path, inner, "only allowed for updateStrategy 'RollingUpdate'"))
    end
  elseif strategy.type ~= "RollingUpdate" then
    add(errors, field.shown("spec.updateStrategy", shown, "must be 'RollingUpdate' or 'OnDelete'"))
  elseif update then
    if (tonumber(update.partition) or 0) < 0 then
      add(errors, field.invalid(path .. ".partition", update.partition, NOT_NEGATIVE))
    end
  end
end

local function check_daemon_strategy(errors, strategy)
  local path = "spec.updateStrategy.rollingUpdate"
  if strategy.type == "OnDelete" then return end
  if strategy.type ~= "RollingUpdate" then
    add(errors, shown_not_supported("spec.updateStrategy", (show_strategy(strategy, { "maxUnavailable", "maxSurge" })),
      { "RollingUpdate", "OnDelete" }))
    return
  end
  local update = json.get(strategy, "rollingUpdate") or {}
  local pair = { { update.maxUnavailable, path .. ".maxUnavailable" }, { update.maxSurge, path .. ".maxSurge" } }
  for _, share in ipairs(pair) do check_share(errors, share[1], share[2]) end
  for _, share in ipairs(pair) do check_within_all(errors, share[1], share[2]) end
  local stays, grows = is_nothing(update.maxUnavailable), is_nothing(update.maxSurge)
  if not stays and not grows then
    add(errors, field.invalid(path .. ".maxSurge", update.maxSurge, "may not be set when maxUnavailable is non-zero"))
  elseif stays and grows then
    add(errors, field.required(path .. ".maxUnavailable", "cannot be 0 when maxSurge is 0"))
  end
end

-- ---- kinds ----

local checks = {}

function checks.Deployment(_, errors, spec)
  check_counts(errors, spec, "replicas")
  check_selector(errors, spec, "Deployment")
  check_template(errors, spec, "Deployment", pods_of(spec))
  check_deployment_strategy(errors, spec.strategy)
  check_counts(errors, spec, "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
  local deadline = tonumber(spec.progressDeadlineSeconds)
  if deadline and deadline <= (tonumber(spec.minReadySeconds) or 0) then
    add(errors, field.invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"))
  end
end

function checks.ReplicaSet(_, errors, spec)
  check_counts(errors, spec, "replicas", "minReadySeconds")
  check_selector(errors, spec, "ReplicaSet")
  check_template(errors, spec, "ReplicaSet", pods_of(spec))
end

function checks.DaemonSet(_, errors, spec)
  check_selector(errors, spec, "DaemonSet")
  check_template(errors, spec, "DaemonSet", pods_of(spec))
  check_counts(errors, spec, "minReadySeconds")
  check_daemon_strategy(errors, spec.updateStrategy)
  check_counts(errors, spec, "revisionHistoryLimit")
end

function checks.ReplicationController(_, errors, spec)
  local selector = json.get(spec, "selector") or {}
  check_counts(errors, spec, "minReadySeconds")
  if next(selector) == nil then add(errors, field.required("spec.selector")) end
  check_counts(errors, spec, "replicas")
  if not json.get(spec, "template") then
    add(errors, field.required("spec.template"))
    return
  end
  local labels = json.get(spec, "template", "metadata", "labels")
  check_match(errors, labels, label_selector.matches({ matchLabels = selector }, labels))
  check_template(errors, spec, "ReplicationController", pods_of(spec))
end

local RETENTIONS = { "Retain", "Delete" }

-- What the pods of a set will have: a volume for each claim, and a name from the set.
local function pods_of_set(spec)
  local pods, claims = json.shallow(pods_of(spec)), json.get(spec, "volumeClaimTemplates") or {}
  pods.hostname, pods.subdomain = nil, nil
  if not claims[1] then return pods end
  local volumes, own = json.array {}, {}
  for i, claim in ipairs(claims) do
    local name = json.get(claim, "metadata", "name") or ""
    own[name] = true
    volumes[i] = json.object { name = name, persistentVolumeClaim = json.object { claimName = name } }
  end
  for _, volume in ipairs(json.get(pods, "volumes") or {}) do
    if not own[volume.name] then volumes[#volumes + 1] = volume end
  end
  pods.volumes = volumes
  return pods
end

local function check_set_policies(errors, spec)
  local policy = spec.podManagementPolicy
  if policy ~= "OrderedReady" and policy ~= "Parallel" then
    add(errors, field.invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'"))
  end
  check_set_strategy(errors, spec.updateStrategy)
  for _, name in ipairs { "whenDeleted", "whenScaled" } do
    local value = json.get(spec, "persistentVolumeClaimRetentionPolicy", name)
    if value and value ~= "Retain" and value ~= "Delete" then
      add(errors, field.not_supported("spec.persistentVolumeClaimRetentionPolicy." .. name, value, RETENTIONS))
    end
  end
end

function checks.StatefulSet(ctx, errors, spec, old)
  check_set_policies(errors, spec)
  for i, claim in ipairs(not old and json.get(spec, "volumeClaimTemplates") or {}) do
    claim_rules.check(errors, json.get(claim, "spec") or json.object {},
      ("spec.volumeClaimTemplates[%d].spec"):format(i - 1))
  end
  check_counts(errors, spec, "replicas", "minReadySeconds")
  local start = json.get(spec, "ordinals", "start") or 0
  if start < 0 then add(errors, field.invalid("spec.ordinals.start", start, NOT_NEGATIVE)) end
  local service = json.get(spec, "serviceName") or ""
  for _, problem in ipairs { not old and service ~= "" and names.label(service) or nil } do
    add(errors, field.invalid("spec.serviceName", service, problem))
  end
  check_selector(errors, spec, "StatefulSet")
  check_template(errors, spec, "StatefulSet", pods_of_set(spec))
  if (tonumber(spec.revisionHistoryLimit) or 0) < 0 and not errors[1] then
    ctx:warn "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
  end
end

-- ---- changes ----

local SET_CHANGES = { "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
  "persistentVolumeClaimRetentionPolicy", "minReadySeconds" }
local SET_FIXED = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
  .. "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are "
  .. "forbidden"

local function set_fixed_part(spec)
  local copy = json.shallow(spec)
  for _, name in ipairs(SET_CHANGES) do copy[name] = nil end
  return copy
end

local function check_change(errors, kind, new, old)
  if kind == "StatefulSet" then
    if not json.equal(set_fixed_part(new), set_fixed_part(old)) then add(errors, field.forbidden("spec", SET_FIXED)) end
  elseif SELECTORS[kind] and not json.equal(new.selector, old.selector) then
    add(errors, field.immutable("spec.selector", new.selector))
  end
end

-- Kinds of which the server minds that their names become those of pods.
local NAMES_PODS = { Deployment = true, ReplicaSet = true, ReplicationController = true }

local function warn(ctx, new, old)
  local kind = ctx.R.kind
  if old and json.equal(new.spec, old.spec) and json.equal(new.template, old.template) then return end
  if NAMES_PODS[kind] and not old then pod_warnings.warn_name(ctx, new.metadata.name) end
  local template, path = new.template, "template"
  if kind ~= "PodTemplate" then template, path = json.get(new, "spec", "template"), "spec.template" end
  pod_warnings.warn(ctx, json.get(template, "spec"), path .. ".spec")
end

--- Adds what is wrong with one of them.
function workload_rules.validate(ctx, new, old, errors, subresource)
  local kind, spec = ctx.R.kind, new.spec or json.object {}
  if subresource == "status" then
    return workload_status.check(errors, kind, new.status or {}, old.status or {})
  elseif kind == "PodTemplate" then
    pod_rules.check(errors, json.get(new, "template", "spec") or json.object {}, "template.spec")
  else
    checks[kind](ctx, errors, spec, old)
    if old then check_change(errors, kind, spec, old.spec) end
  end
  if not errors[1] then warn(ctx, new, old) end
end

return workload_rules
