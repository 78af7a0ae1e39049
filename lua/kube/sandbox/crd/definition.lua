-- CustomResourceDefinitions: what is filled in, and what is wrong with one.
local json = require "kube.sandbox.json"
local field = require "kube.sandbox.field"
local names = require "kube.sandbox.names"
local default_rules = require "kube.sandbox.crd.default_rules"
local rules = require "kube.sandbox.crd.rules"
local schema_rules = require "kube.sandbox.crd.schema_rules"
local structural = require "kube.sandbox.crd.structural"
local version_rules = require "kube.sandbox.crd.version_rules"

local definition = {}

local is_set = structural.is_set

local function add(errors, e) errors[#errors + 1] = e end

local function append(to, from)
  for _, e in ipairs(from) do to[#to + 1] = e end
end

local function text(value) return type(value) == "string" and value or "" end

-- ---- defaults ----

local function storage_version(document)
  for _, version in ipairs(json.get(document, "spec", "versions") or {}) do
    if version.storage then return version.name end
  end
end
definition.storage_version = storage_version

--- The document with listKind, singular and conversion filled in.
function definition.default(document)
  if not json.is_object(document.spec) then return document end
  local spec = json.shallow(document.spec)
  local given = json.is_object(spec.names) and json.shallow(spec.names) or json.object {}
  if not is_set(given.singular) then given.singular = text(given.kind):lower() end
  if not is_set(given.listKind) and is_set(given.kind) then given.listKind = given.kind .. "List" end
  spec.names = given
  if not is_set(spec.conversion) then spec.conversion = json.object { strategy = "None" } end
  return json.with(document, "spec", spec)
end

-- ---- names ----

local function check_label(errors, path, value, prefix)
  if value == "" then return end
  local problem = names.dns1035(prefix and value:lower() or value)
  if problem then add(errors, field.invalid(path, value, (prefix or "") .. problem)) end
end

local MIXED = "may have mixed case, but should otherwise match: "

local function check_names(errors, given, path)
  for _, key in ipairs { "plural", "singular", "kind", "listKind" } do
    if text(given[key]) == "" then add(errors, field.required(path .. "." .. key)) end
  end
  check_label(errors, path .. ".plural", text(given.plural))
  check_label(errors, path .. ".singular", text(given.singular))
  check_label(errors, path .. ".kind", text(given.kind), MIXED)
  check_label(errors, path .. ".listKind", text(given.listKind), MIXED)
  local function check_each(key)
    for i, name in ipairs(given[key] or {}) do check_label(errors, ("%s.%s[%d]"):format(path, key, i - 1), name) end
  end
  check_each "shortNames"
  if is_set(given.kind) and given.kind == given.listKind then
    add(errors, field.invalid(path .. ".listKind", given.listKind, "kind and listKind may not be the same"))
  end
  check_each "categories"
end

local function check_group(errors, group)
  if group == "" then
    add(errors, field.required("spec.group"))
    return
  end
  local problem = names.subdomain(group)
  if problem then
    add(errors, field.invalid("spec.group", group, problem))
  elseif not group:find(".", 1, true) then
    add(errors, field.invalid("spec.group", group, "should be a domain with at least one dot"))
  end
end

local function check_scope(errors, scope)
  if scope == "" then
    add(errors, field.required("spec.scope"))
  elseif scope ~= "Cluster" and scope ~= "Namespaced" then
    add(errors, field.not_supported("spec.scope", scope, { "Cluster", "Namespaced" }))
  end
end

-- ---- schemas ----

-- With a status subresource the root may have only what does not get lost for the status alone.
local NOT_AT_ROOT = {
  "id", "$schema", "$ref", "nullable", "default", "enum", "maxProperties", "minProperties", "allOf", "oneOf", "anyOf",
  "not", "additionalProperties", "patternProperties", "dependencies", "additionalItems", "definitions",
  "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string", "x-kubernetes-list-map-keys",
  "x-kubernetes-list-type", "x-kubernetes-map-type",
}

local AT_ROOT = "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength "
  .. "Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example "
  .. "XPreserveUnknownFields XValidations"

local function check_root(errors, node, path)
  local earlier = is_set(node.id) or is_set(node["$schema"]) or is_set(node["$ref"])
  if is_set(node.type) and node.type ~= "object" and not earlier then
    add(errors, field.invalid(path .. ".type", node.type,
      'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'))
    return
  end
  for _, key in ipairs(NOT_AT_ROOT) do
    if is_set(node[key]) then
      add(errors, field.invalid(path, node, ("only [%s] fields are allowed at the root of the schema if the status "
        .. "subresource is enabled"):format(AT_ROOT)))
      return
    end
  end
end

local function check_schema(errors, node, path, has_status)
  path = path .. ".openAPIV3Schema"
  if has_status then check_root(errors, node, path) end
  if is_set(node.nullable) then
    add(errors, field.forbidden(path .. ".nullable", "nullable cannot be true at the root"))
  end
  local problem = structural.problem(node)
  if not problem then
    local found = structural.validate(node, path)
    if not found[1] then found = default_rules.validate(node, path) end
    append(errors, found)
  end
  append(errors, schema_rules.validate(node, path))
  if errors[1] then return end
  if problem then
    add(errors, field.invalid(path, "", problem))
  else
    append(errors, rules.check(node, path))
  end
end

-- The server keeps what all versions have alike at the top, and tells its errors there.
local function shared(versions, key)
  local first = versions[1] and versions[1][key]
  for _, version in ipairs(versions) do
    if not json.equal(version[key] or json.null, first or json.null) then return nil end
  end
  return first
end

local function schema_of(version) return json.get(version, "schema", "openAPIV3Schema") end

local function any_status(versions)
  for _, version in ipairs(versions) do
    if json.get(version, "subresources", "status") then return true end
  end
  return false
end

-- ---- versions ----

-- Versions as the server's own type prints them.
local function printed(versions)
  local parts = {}
  for i, version in ipairs(versions) do
    local function part(key) return json.encode(shared(versions, key) == nil and version[key] or json.null) end
    parts[i] = ('{"Name":%s,"Served":%s,"Storage":%s,"Deprecated":%s,"DeprecationWarning":%s,"Schema":%s,'
      .. '"Subresources":%s,"AdditionalPrinterColumns":%s,"SelectableFields":%s}'):format(
      json.encode(text(version.name)), tostring(version.served == true), tostring(version.storage == true),
      tostring(version.deprecated == true), json.encode(version.deprecationWarning or json.null), part "schema",
      part "subresources", part "additionalPrinterColumns", part "selectableFields")
  end
  return "[" .. table.concat(parts, ",") .. "]"
end

local function versions_error(versions, detail)
  return { type = "FieldValueInvalid", field = "spec.versions",
    message = ("Invalid value: %s: %s"):format(printed(versions), detail) }
end

local function check_each_version(errors, versions)
  for i, version in ipairs(versions) do
    local path = ("spec.versions[%d]"):format(i - 1)
    local problem = names.dns1035(text(version.name))
    if problem then add(errors, field.invalid(path .. ".name", text(version.name), problem)) end
    version_rules.deprecation(errors, version, path)
    if shared(versions, "schema") == nil and schema_of(version) then
      local found = {}
      check_schema(found, schema_of(version), path .. ".schema", json.get(version, "subresources", "status") ~= nil)
      append(errors, found)
    end
    if shared(versions, "subresources") == nil then version_rules.subresources(errors, version, path) end
    if shared(versions, "additionalPrinterColumns") == nil then version_rules.columns(errors, version, path) end
    if shared(versions, "selectableFields") == nil then
      local node = shared(versions, "schema") == nil and schema_of(version) or nil
      version_rules.selectable(errors, version, path, node,
        "may only be set when `version.schema.openAPIV3Schema` is not included")
    end
  end
end

local function check_counts(errors, versions)
  local seen, unique, storages = {}, true, 0
  for _, version in ipairs(versions) do
    if seen[version.name] then unique = false end
    seen[version.name or ""] = true
    if version.storage then storages = storages + 1 end
  end
  if not unique then add(errors, versions_error(versions, "must contain unique version names")) end
  if storages ~= 1 then
    add(errors, versions_error(versions, "must have exactly one version marked as storage version"))
  end
  local first = versions[1] and text(versions[1].name) or ""
  local problem = first ~= "" and names.dns1035(first)
  if problem then add(errors, field.invalid("spec.version", first, problem)) end
end

local function check_shared(errors, versions)
  local first = versions[1]
  if not first then return end
  if shared(versions, "schema") and schema_of(first) then
    local found = {}
    check_schema(found, schema_of(first), "spec.validation", any_status(versions))
    append(errors, found)
  end
  if shared(versions, "subresources") then version_rules.subresources(errors, first, "spec") end
  if shared(versions, "additionalPrinterColumns") then version_rules.columns(errors, first, "spec") end
  if shared(versions, "selectableFields") then
    local node = shared(versions, "schema") and schema_of(first)
    version_rules.selectable(errors, first, "spec", node, "may only be set when validations.schema is included")
  end
end

-- ---- the whole ----

local sets_default

function sets_default(node)
  return node.default ~= nil and node.default ~= json.null or structural.each_child(node, sets_default) or false
end

local function has_defaults(versions)
  for _, version in ipairs(versions) do
    if sets_default(schema_of(version) or {}) then return true end
  end
  return false
end

local STRATEGIES = { "None", "Webhook" }

local function check_conversion(errors, conversion)
  local path = "spec.conversion"
  local strategy, webhook = text(conversion.strategy), conversion.webhook
  if strategy == "" then
    add(errors, field.required(path .. ".strategy"))
  elseif strategy ~= "None" and strategy ~= "Webhook" then
    add(errors, field.not_supported(path .. ".strategy", strategy, STRATEGIES))
  end
  local client, versions = json.get(webhook, "clientConfig"), json.get(webhook, "conversionReviewVersions")
  if strategy ~= "Webhook" then
    local detail = "should not be set when strategy is not set to Webhook"
    if client then add(errors, field.forbidden(path .. ".webhookClientConfig", detail)) end
    if is_set(versions) then add(errors, field.forbidden(path .. ".conversionReviewVersions", detail)) end
    return
  end
  if not client then
    add(errors, field.required(path .. ".webhookClientConfig", "required when strategy is set to Webhook"))
  elseif (client.url == nil) == (client.service == nil) then
    add(errors, field.required(path .. ".webhookClientConfig", "exactly one of url or service is required"))
  end
  if not is_set(versions) then add(errors, field.required(path .. ".conversionReviewVersions")) end
  if client and is_set(versions) then
    add(errors, field.forbidden(path .. ".strategy", "the sandbox does not call conversion webhooks"))
  end
end

local MISSING = "missing from spec.versions; %s was previously a storage version, and must remain in spec.versions "
  .. "until a storage migration ensures no data remains persisted in %s and removes %s from status.storedVersions"

local function check_stored(errors, document, versions)
  local path, stored = "status.storedVersions", json.get(document, "status", "storedVersions")
  if not is_set(stored) then
    add(errors, field.invalid(path, nil, "must have at least one stored version"))
    return
  end
  local left = {}
  for _, name in ipairs(stored) do left[name] = true end
  for _, version in ipairs(versions) do
    local name = text(version.name)
    if version.storage and not left[name] then
      add(errors, field.invalid(path, stored, "must have the storage version " .. name))
    end
    left[name] = nil
  end
  for i, name in ipairs(stored) do
    if left[name] then
      add(errors, field.invalid(("%s[%d]"):format(path, i - 1), name, MISSING:format(name, name, name)))
    end
  end
end

local function is_established(document)
  for _, condition in ipairs(json.get(document, "status", "conditions") or {}) do
    if condition.type == "Established" then return condition.status == "True" end
  end
  return false
end

local function check_immutable(errors, spec, old)
  local function same(path, ...)
    local new = json.get(spec, ...)
    if new ~= json.get(old.spec, ...) then add(errors, field.immutable(path, new or "")) end
  end
  if is_established(old) then
    same("spec.scope", "scope")
    same("spec.names.kind", "names", "kind")
  end
  same("spec.group", "group")
  same("spec.names.plural", "names", "plural")
end

local APPROVAL = "api-approved.kubernetes.io"
local SEE = ", see https://github.com/kubernetes/enhancements/pull/1111"

local function check_approval(errors, document, group)
  local protected = group == "k8s.io" or group == "kubernetes.io" or group:find("%.k8s%.io$")
    or group:find("%.kubernetes%.io$")
  if not protected then return end
  local given = text(json.get(document, "metadata", "annotations", APPROVAL))
  local path = ("metadata.annotations[%s]"):format(APPROVAL)
  local needed = ('protected groups must have approval annotation "%s"'):format(APPROVAL)
  if given == "" then
    add(errors, field.required(path, needed .. SEE))
  elseif not given:find("^unapproved") and not given:find("^%a[%w+.-]*://[^/]") then
    needed = needed .. ' with either a URL or a reason starting with "unapproved"'
    add(errors, field.invalid(path, given, needed .. SEE))
  end
end

--- The field errors of a definition; `old` is nil on create. Errors in its metadata are not told here,
--- but for the name, which follows from the spec.
function definition.validate(document, old)
  local errors = {}
  local spec = json.get(document, "spec") or json.object {}
  local versions, given = json.get(spec, "versions") or json.array {}, json.get(spec, "names") or json.object {}
  local wanted = text(given.plural) .. "." .. text(spec.group)
  if not old and json.get(document, "metadata", "name") ~= wanted then
    add(errors, field.invalid("metadata.name", json.get(document, "metadata", "name") or "",
      'must be spec.names.plural+"."+spec.group'))
  end
  check_group(errors, text(spec.group))
  check_scope(errors, text(spec.scope))
  for i, version in ipairs(versions) do
    if not schema_of(version) then
      add(errors, field.required(("spec.versions[%d].schema.openAPIV3Schema"):format(i - 1)))
    end
  end
  if spec.preserveUnknownFields == true and has_defaults(versions) then
    add(errors, field.invalid("spec.preserveUnknownFields", true,
      "must be false in order to use defaults in the schema"))
  end
  check_each_version(errors, versions)
  check_counts(errors, versions)
  check_names(errors, given, "spec.names")
  check_shared(errors, versions)
  if spec.preserveUnknownFields == true and json.get(spec, "conversion", "strategy") ~= "None" then
    add(errors, field.invalid("spec.conversion.strategy", json.get(spec, "conversion", "strategy"),
      "must be None if spec.preserveUnknownFields is true"))
  end
  if spec.conversion then check_conversion(errors, spec.conversion) end
  if old then check_immutable(errors, spec, old) end
  check_stored(errors, document, versions)
  if not old then check_approval(errors, document, text(spec.group)) end
  if spec.preserveUnknownFields == true then
    add(errors, field.invalid("spec.preserveUnknownFields", true, "cannot set to true, set "
      .. "x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"))
  end
  return errors
end

return definition
