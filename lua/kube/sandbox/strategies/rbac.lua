-- Roles and their bindings: rules that say something, a reference that cannot change.
local field = require "kube.sandbox.field"
local json = require "kube.sandbox.json"
local label_selector = require "kube.sandbox.label_selector"
local names = require "kube.sandbox.names"

local rbac = {}

local GROUP = "rbac.authorization.k8s.io"

local function check_rule(errors, rule, path, namespaced)
  if not json.get(rule, "verbs", 1) then
    errors[#errors + 1] = field.required(path .. ".verbs", "verbs must contain at least one value")
  end
  if json.get(rule, "nonResourceURLs", 1) then
    local function refuse(text)
      errors[#errors + 1] = field.invalid(path .. ".nonResourceURLs", rule.nonResourceURLs, text)
    end
    if namespaced then refuse "namespaced rules cannot apply to non-resource URLs" end
    if json.get(rule, "apiGroups", 1) or json.get(rule, "resources", 1) or json.get(rule, "resourceNames", 1) then
      refuse "rules cannot apply to both regular resources and non-resource URLs"
    end
    return
  end
  if not json.get(rule, "apiGroups", 1) then
    errors[#errors + 1] = field.required(path .. ".apiGroups", "resource rules must supply at least one api group")
  end
  if not json.get(rule, "resources", 1) then
    errors[#errors + 1] = field.required(path .. ".resources", "resource rules must supply at least one resource")
  end
end

local function check_selector(errors, selector, path)
  local before = #errors
  label_selector.check(errors, selector, path)
  if #errors > before then
    errors[#errors + 1] = field.invalid(path, nil, "invalid label selector.")
  end
end

local function validate_role(ctx, new, _, errors)
  for i, rule in ipairs(json.get(new, "rules") or {}) do
    check_rule(errors, rule, ("rules[%d]"):format(i - 1), ctx.R.namespaced)
  end
  local aggregation = json.get(new, "aggregationRule")
  if not aggregation then return end
  local selectors, path = json.get(aggregation, "clusterRoleSelectors") or {}, "aggregationRule.clusterRoleSelectors"
  if not selectors[1] then
    errors[#errors + 1] = field.required(path,
      "at least one clusterRoleSelector required if aggregationRule is non-nil")
  end
  for i, selector in ipairs(selectors) do check_selector(errors, selector, ("%s[%d]"):format(path, i - 1)) end
end

local function default_binding(_, document)
  if json.is_object(document.roleRef) and (document.roleRef.apiGroup or "") == "" then
    document.roleRef = json.with(document.roleRef, "apiGroup", GROUP)
  end
  if json.is_array(document.subjects) then
    local subjects = json.array {}
    for i, subject in ipairs(document.subjects) do
      local needs = subject.kind ~= "ServiceAccount" and (subject.apiGroup or "") == ""
      subjects[i] = needs and json.with(subject, "apiGroup", GROUP) or subject
    end
    document.subjects = subjects
  end
  return document
end

local function check_subject(errors, subject, path, namespaced)
  local name, group = json.get(subject, "name") or "", json.get(subject, "apiGroup") or ""
  local function not_supported(field_name, value, known)
    errors[#errors + 1] = field.not_supported(path .. "." .. field_name, value, known)
  end
  if name == "" then errors[#errors + 1] = field.required(path .. ".name") end
  if subject.kind == "ServiceAccount" then
    for _, problem in ipairs { name ~= "" and names.subdomain(name) or nil } do
      errors[#errors + 1] = field.invalid(path .. ".name", name, problem)
    end
    if group ~= "" then not_supported("apiGroup", group, { "" }) end
    if not namespaced and (json.get(subject, "namespace") or "") == "" then
      errors[#errors + 1] = field.required(path .. ".namespace")
    end
  elseif subject.kind ~= "User" and subject.kind ~= "Group" then
    not_supported("kind", subject.kind or "", { "ServiceAccount", "User", "Group" })
  elseif group ~= GROUP then
    not_supported("apiGroup", group, { GROUP })
  end
end

local function check_reference(errors, reference, namespaced)
  local kind, name = reference.kind or "", reference.name or ""
  if reference.apiGroup ~= GROUP then
    errors[#errors + 1] = field.not_supported("roleRef.apiGroup", reference.apiGroup, { GROUP })
  end
  if kind ~= "ClusterRole" and not (namespaced and kind == "Role") then
    errors[#errors + 1] = field.not_supported("roleRef.kind", kind,
      namespaced and { "Role", "ClusterRole" } or { "ClusterRole" })
  end
  if name == "" then
    errors[#errors + 1] = field.required("roleRef.name")
  else
    for _, problem in ipairs { names.path(name) } do
      errors[#errors + 1] = field.invalid("roleRef.name", name, problem)
    end
  end
end

local function validate_binding(ctx, new, old, errors)
  local reference, namespaced = new.roleRef or json.object {}, ctx.R.namespaced
  check_reference(errors, reference, namespaced)
  for i, subject in ipairs(json.get(new, "subjects") or {}) do
    check_subject(errors, subject, ("subjects[%d]"):format(i - 1), namespaced)
  end
  if old and not json.equal(reference, old.roleRef) then
    errors[#errors + 1] = field.invalid("roleRef", json.object {
      APIGroup = reference.apiGroup, Kind = reference.kind, Name = reference.name,
    }, "cannot change roleRef")
  end
end

function rbac.of(R)
  if R.kind:find("Binding$") then return { default = default_binding, validate = validate_binding } end
  return { validate = validate_role }
end

return rbac
