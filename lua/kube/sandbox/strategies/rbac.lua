-- Roles and their bindings: rules that say something, a reference that cannot change.
local field = require "kube.sandbox.field"
local json = require "kube.sandbox.json"

local rbac = {}

local GROUP = "rbac.authorization.k8s.io"

local function check_rule(errors, rule, path, namespaced)
  if not json.get(rule, "verbs", 1) then
    errors[#errors + 1] = field.required(path .. ".verbs", "verbs must contain at least one value")
  end
  if json.get(rule, "nonResourceURLs", 1) then
    if namespaced then
      errors[#errors + 1] = field.invalid(path .. ".nonResourceURLs", rule.nonResourceURLs,
        "namespaced rules cannot apply to non-resource URLs")
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

local function validate_role(ctx, new, _, errors)
  for i, rule in ipairs(json.get(new, "rules") or {}) do
    check_rule(errors, rule, ("rules[%d]"):format(i - 1), ctx.R.namespaced)
  end
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

local function validate_binding(_, new, old, errors)
  local reference = new.roleRef or json.object {}
  if (reference.name or "") == "" then errors[#errors + 1] = field.required("roleRef.name") end
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
