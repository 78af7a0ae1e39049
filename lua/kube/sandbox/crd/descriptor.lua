-- The descriptors (see kube.sandbox.kinds) of the resources that a definition serves.
local default = require "kube.sandbox.crd.default"
local definition = require "kube.sandbox.crd.definition"
local json = require "kube.sandbox.json"
local kinds = require "kube.sandbox.kinds"
local prune = require "kube.sandbox.crd.prune"

local descriptor = {}

local VERBS = { "delete", "deletecollection", "get", "list", "patch", "create", "update", "watch" }
-- What is left of them while the definition is being deleted.
local TERMINATING = { "delete", "deletecollection", "get", "list", "watch" }
local PARTS = { "get", "patch", "update" }

-- "; use group/version Kind" when a newer version is served.
local function replacement(spec, version)
  local best
  for _, other in ipairs(spec.versions) do
    local newer = other.served and not other.deprecated and kinds.precedes(other.name, version.name)
    if newer and (not best or kinds.precedes(other.name, best)) then best = other.name end
  end
  return best and ("; use %s/%s %s"):format(spec.group, best, spec.names.kind) or ""
end

local function deprecation(spec, version)
  if not version.deprecated then return nil end
  if type(version.deprecationWarning) == "string" then return version.deprecationWarning end
  return ("%s/%s %s is deprecated"):format(spec.group, version.name, spec.names.kind) .. replacement(spec, version)
end

local function subresources(version, spec)
  local list = {}
  if json.get(version, "subresources", "status") then
    list[1] = { name = "status", kind = spec.names.kind, verb_list = PARTS }
  end
  if json.get(version, "subresources", "scale") then
    list[#list + 1] = { name = "scale", group = "autoscaling", version = "v1", kind = "Scale", verb_list = PARTS }
  end
  return list
end

local function selectable(version)
  local paths = {}
  for i, entry in ipairs(version.selectableFields or {}) do paths[i] = entry.jsonPath:gsub("^%.", "") end
  return paths
end

-- What is stored may be older than the schema, or of another version's: it is read as this one has
-- it, without what it does not specify and with its defaults.
local function reader(api_version, schema)
  if not schema then return nil end
  local views = setmetatable({}, { __mode = "kv" })
  return function(stored)
    local view = views[stored]
    if not view then
      view = stored.apiVersion == api_version and stored or json.with(stored, "apiVersion", api_version)
      view = default.apply(prune.prune(view, schema), schema)
      views[stored] = view
    end
    return view
  end
end

local function of_version(document, version)
  local spec = document.spec
  local names = json.get(document, "status", "acceptedNames") or spec.names
  local schema = json.get(version, "schema", "openAPIV3Schema")
  return kinds.complete {
    builtin = false,
    crd = document,
    group = spec.group,
    version = version.name,
    storage_version = definition.storage_version(document),
    plural = names.plural,
    singular = names.singular,
    kind = names.kind,
    list_kind = names.listKind,
    namespaced = spec.scope == "Namespaced",
    verb_list = json.get(document, "metadata", "deletionTimestamp") and TERMINATING or VERBS,
    short_names = names.shortNames,
    categories = names.categories,
    subresources = subresources(version, spec),
    scale = json.get(version, "subresources", "scale"),
    schema = schema,
    from_storage = reader(spec.group .. "/" .. version.name, schema),
    columns = version.additionalPrinterColumns,
    selectable_fields = selectable(version),
    deprecation_warning = deprecation(spec, version),
  }
end

--- A new descriptor for every version that a definition serves.
function descriptor.of(document)
  local list = {}
  for _, version in ipairs(document.spec.versions) do
    if version.served then list[#list + 1] = of_version(document, version) end
  end
  return list
end

return descriptor
