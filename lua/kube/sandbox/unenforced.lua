-- What a real server would do with a write because of other objects, and the sandbox does not: quotas,
-- ranges of limits, levels of pod security, webhooks and policies of admission. Whoever writes something that
-- one of them is about is told, and so is whoever writes one of them.
local json = require "kube.sandbox.json"
local label_selector = require "kube.sandbox.label_selector"

local unenforced = {}

local ADMISSION, RBAC = "admissionregistration.k8s.io/", "rbac.authorization.k8s.io/"

-- Kinds that are there to restrain others.
local STORED_ONLY = {
  limitranges = true,
  resourcequotas = true,
  [RBAC .. "clusterrolebindings"] = true,
  [RBAC .. "clusterroles"] = true,
  [RBAC .. "rolebindings"] = true,
  [RBAC .. "roles"] = true,
  [ADMISSION .. "mutatingadmissionpolicies"] = true,
  [ADMISSION .. "mutatingadmissionpolicybindings"] = true,
  [ADMISSION .. "mutatingwebhookconfigurations"] = true,
  [ADMISSION .. "validatingadmissionpolicies"] = true,
  [ADMISSION .. "validatingadmissionpolicybindings"] = true,
  [ADMISSION .. "validatingwebhookconfigurations"] = true,
  ["apiregistration.k8s.io/apiservices"] = true,
  ["flowcontrol.apiserver.k8s.io/flowschemas"] = true,
  ["flowcontrol.apiserver.k8s.io/prioritylevelconfigurations"] = true,
}

-- ---- quotas and limits ----

-- What quotas count besides objects: patterns of keys, by storage.
local COUNTED = {
  pods = { "^cpu$", "^memory$", "^ephemeral%-storage$", "^requests%.", "^limits%.", "^hugepages%-" },
  persistentvolumeclaims = { "^requests%.storage$", "%.storageclass%.storage%.k8s%.io/" },
  services = { "^services%." },
}

local function counts(R, key)
  local name = R.group ~= "" and R.plural .. "." .. R.group or R.plural
  if key == "count/" .. name or R.group == "" and key == R.plural then return true end
  for _, pattern in ipairs(COUNTED[R.storage] or {}) do
    if key:find(pattern) then return true end
  end
  return false
end

local function add_quotas(found, ctx, namespace)
  for _, quota in ipairs((ctx.S.store:scan("resourcequotas", namespace))) do
    for key in pairs(json.get(quota, "spec", "hard") or {}) do
      if counts(ctx.R, key) then
        found[#found + 1] = ("the quota %s"):format(quota.metadata.name)
        break
      end
    end
  end
end

local LIMITED = { pods = { Pod = true, Container = true }, persistentvolumeclaims = { PersistentVolumeClaim = true } }

local function add_ranges(found, ctx, namespace)
  local types = LIMITED[ctx.R.storage]
  for _, range in ipairs(types and (ctx.S.store:scan("limitranges", namespace)) or {}) do
    for _, limit in ipairs(json.get(range, "spec", "limits") or {}) do
      if types[limit.type] then
        found[#found + 1] = ("the limit range %s"):format(range.metadata.name)
        break
      end
    end
  end
end

local LEVEL = "pod-security.kubernetes.io/enforce"

local function add_level(found, ctx, namespace)
  if ctx.R.storage ~= "pods" then return end
  local level = json.get(ctx.S.store:get("namespaces", namespace), "metadata", "labels", LEVEL)
  if level and level ~= "privileged" then found[#found + 1] = ("the pod security level %s"):format(level) end
end

-- ---- webhooks and policies ----

local function has(list, ...)
  for _, value in ipairs(list or {}) do
    for _, wanted in ipairs { ... } do
      if value == wanted then return true end
    end
  end
  return false
end

local function is_about(rule, R, operation, subresource)
  local plural, part = R.plural, subresource
  local wide = part and { plural .. "/" .. part, plural .. "/*", "*/" .. part, "*/*" } or { plural, "*", "*/*" }
  return has(rule.operations, operation, "*") and has(rule.apiGroups, R.group, "*")
    and has(rule.apiVersions, R.version, "*") and has(rule.resources, unpack(wide))
end

local function selects(selector, labels)
  return not selector or label_selector.matches(selector, labels)
end

-- Whether one that asks for these rules and selectors would be asked about a document.
local function would_ask(ctx, wants, rules, document, operation, subresource)
  local namespace = document.metadata.namespace
  local place = namespace and ctx.S.store:get("namespaces", namespace)
  if not selects(json.get(wants, "objectSelector"), document.metadata.labels) then return false end
  if place and not selects(json.get(wants, "namespaceSelector"), place.metadata.labels) then return false end
  for _, rule in ipairs(rules or {}) do
    if is_about(rule, ctx.R, operation, subresource) then return true end
  end
  return false
end

local function add_webhooks(found, ctx, document, operation, subresource)
  for _, sort in ipairs { "mutating", "validating" } do
    for _, configuration in ipairs((ctx.S.store:scan(ADMISSION .. sort .. "webhookconfigurations"))) do
      for _, webhook in ipairs(json.get(configuration, "webhooks") or {}) do
        if would_ask(ctx, webhook, json.get(webhook, "rules"), document, operation, subresource) then
          found[#found + 1] = ("the webhook %s"):format(webhook.name)
        end
      end
    end
  end
end

local function add_policies(found, ctx, document, operation, subresource)
  for _, sort in ipairs { "mutating", "validating" } do
    for _, binding in ipairs((ctx.S.store:scan(ADMISSION .. sort .. "admissionpolicybindings"))) do
      local name = json.get(binding, "spec", "policyName") or ""
      local policy = ctx.S.store:get(ADMISSION .. sort .. "admissionpolicies", name)
      local wants = json.get(policy, "spec", "matchConstraints")
      if wants and would_ask(ctx, wants, json.get(wants, "resourceRules"), document, operation, subresource) then
        found[#found + 1] = ("the policy %s"):format(policy.metadata.name)
      end
    end
  end
end

-- ---- the sentence ----

local SHOWN = 3

local function warn(ctx, found)
  if not found[1] then return end
  local rest = #found - SHOWN
  ctx:warn(("sandbox: not enforced: %s%s"):format(table.concat(found, ", ", 1, math.min(SHOWN, #found)),
    rest > 0 and (" and %d more"):format(rest) or ""))
end

-- None of these is about those that are about others.
local function is_exempt(ctx) return ctx.request.internal or ctx.R.storage:find(ADMISSION, 1, true) == 1 end

--- Warns the author of a valid write: a new document, or one in place of `old`.
function unenforced.warn(ctx, new, old, subresource)
  if STORED_ONLY[ctx.R.storage] and not ctx.request.internal and subresource ~= "status" then
    ctx:warn(("sandbox: %s is stored, not enforced"):format(ctx.R.kind_name))
  end
  if is_exempt(ctx) then return end
  local found, namespace = {}, new.metadata.namespace
  if namespace and not old then
    add_quotas(found, ctx, namespace)
    add_ranges(found, ctx, namespace)
    add_level(found, ctx, namespace)
  end
  add_webhooks(found, ctx, new, old and "UPDATE" or "CREATE", subresource)
  add_policies(found, ctx, new, old and "UPDATE" or "CREATE", subresource)
  warn(ctx, found)
end

--- Warns who deletes a document.
function unenforced.warn_delete(ctx, document)
  if is_exempt(ctx) then return end
  local found = {}
  add_webhooks(found, ctx, document, "DELETE")
  add_policies(found, ctx, document, "DELETE")
  warn(ctx, found)
end

return unenforced
