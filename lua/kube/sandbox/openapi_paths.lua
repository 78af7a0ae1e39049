-- The paths of an OpenAPI v3 document: what may be done with the resources of a group and version.
-- Clients look here for the kinds that an operation is about, its parameters and its media types.
local json = require "kube.sandbox.json"
local kinds = require "kube.sandbox.kinds"

local openapi_paths = {}

local array, object = json.array, json.object

local META = "io.k8s.apimachinery.pkg.apis.meta.v1."
local PREFIX = "#/components/schemas/"

local function parameter(name, of, place)
  return object {
    name = name,
    ["in"] = place or "query",
    required = place == "path" or nil,
    schema = object { type = of or "string", uniqueItems = true },
  }
end

local NAME, NAMESPACE = parameter("name", "string", "path"), parameter("namespace", "string", "path")
local PRETTY = parameter("pretty")
local FORCE = parameter("force", "boolean")

local function parameters(list)
  local all = array {}
  for name, of in list:gmatch("([%w]+):?(%w*)") do
    all[#all + 1] = parameter(name, of ~= "" and of or nil)
  end
  return all
end

local WRITE = parameters "dryRun fieldManager fieldValidation"
local DELETE = parameters [[dryRun gracePeriodSeconds:integer ignoreStoreReadErrorWithClusterBreakingPotential:boolean
  orphanDependents:boolean propagationPolicy]]
local LIST = parameters [[allowWatchBookmarks:boolean continue fieldSelector labelSelector limit:integer
  resourceVersion resourceVersionMatch sendInitialEvents:boolean shardSelector timeoutSeconds:integer watch:boolean]]

local function merged(...)
  local all = array {}
  for _, list in ipairs { ... } do
    for _, item in ipairs(list) do all[#all + 1] = item end
  end
  table.sort(all, function(a, b) return a.name < b.name end)
  return all
end

local PATCH = merged(WRITE, { FORCE })
local LIST_ALL = merged(LIST, { PRETTY })
local DELETE_COLLECTION = merged(DELETE, parameters [[continue fieldSelector labelSelector limit:integer
  resourceVersion resourceVersionMatch sendInitialEvents:boolean shardSelector timeoutSeconds:integer]])

local BUILTIN_TYPES = { "application/json", "application/yaml", "application/vnd.kubernetes.protobuf" }
local CUSTOM_TYPES = { "application/json", "application/yaml" }
local STREAM_TYPES = { "application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch" }
local PATCHES = { "application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json" }
local STRATEGIC = "application/strategic-merge-patch+json"

local function content(types, name)
  local by_type = object {}
  for _, of in ipairs(types) do
    by_type[of] = object { schema = object { ["$ref"] = PREFIX .. name } }
  end
  return by_type
end

local function types_of(R) return R.builtin and BUILTIN_TYPES or CUSTOM_TYPES end

local DESCRIPTIONS = { ["200"] = "OK", ["201"] = "Created", ["202"] = "Accepted" }

local function responses(R, name, codes, streams)
  local types = { unpack(types_of(R)) }
  for _, of in ipairs(streams or {}) do types[#types + 1] = of end
  local all = object { ["401"] = object { description = "Unauthorized" } }
  for _, code in ipairs(codes) do
    all[code] = object { description = DESCRIPTIONS[code], content = content(types, name) }
  end
  return all
end

local function operation(R, kind, action, fields)
  fields["x-kubernetes-action"] = action
  fields["x-kubernetes-group-version-kind"] = object {
    group = kind.group or R.group,
    version = kind.version or R.version,
    kind = kind.kind,
  }
  return object(fields)
end

local function body(R, name, required)
  return object {
    content = content(R.builtin and { "*/*" } or CUSTOM_TYPES, name),
    required = required or nil,
  }
end

-- What stands behind each verb of an item or a subresource, for a kind with the definition `name`.
local function add_item_operations(path, R, kind, verbs, name)
  if verbs.get then
    path.get = operation(R, kind, "get", { responses = responses(R, name, { "200" }) })
  end
  if verbs.create then
    path.post = operation(R, kind, "post", {
      parameters = WRITE,
      requestBody = body(R, name, true),
      responses = responses(R, name, { "200", "201", "202" }),
    })
  end
  if verbs.update then
    path.put = operation(R, kind, "put", {
      parameters = WRITE,
      requestBody = body(R, name, true),
      responses = responses(R, name, { "200", "201" }),
    })
  end
  if verbs.patch then
    local types = { unpack(PATCHES) }
    if R.builtin then types[#types + 1] = STRATEGIC end
    path.patch = operation(R, kind, "patch", {
      parameters = PATCH,
      requestBody = object { content = content(types, META .. "Patch"), required = true },
      responses = responses(R, name, { "200", R.builtin and "201" or nil }),
    })
  end
  if verbs.delete then
    path.delete = operation(R, kind, "delete", {
      parameters = DELETE,
      requestBody = body(R, META .. "DeleteOptions"),
      responses = responses(R, R.rules.returns_deleted and name or META .. "Status", { "200", "202" }),
    })
  end
end

local function list_operation(R, list_name, own)
  return operation(R, R, "list", {
    parameters = own and LIST or nil,
    responses = responses(R, list_name, { "200" }, R.builtin and STREAM_TYPES),
  })
end

local function add_collection(paths, R, prefix, names)
  local path = object { parameters = array { R.namespaced and NAMESPACE or PRETTY, R.namespaced and PRETTY or nil } }
  if R.verbs.list then path.get = list_operation(R, names.list, true) end
  if R.verbs.create then add_item_operations(path, R, R, { create = true }, names.kind) end
  if R.verbs.deletecollection then
    path.delete = operation(R, R, "deletecollection", {
      parameters = R.builtin and DELETE_COLLECTION or LIST,
      requestBody = R.builtin and body(R, META .. "DeleteOptions") or nil,
      responses = responses(R, META .. "Status", { "200" }),
    })
  end
  paths[prefix .. R.plural] = path
end

local function add_all_namespaces(paths, R, prefix, names)
  if not R.namespaced or not R.verbs.list then return end
  paths[prefix .. R.plural] = object { parameters = LIST_ALL, get = list_operation(R, names.list) }
end

local function item_parameters(R)
  local all = array { NAME }
  if R.namespaced then all[2] = NAMESPACE end
  all[#all + 1] = PRETTY
  return all
end

-- Of a custom resource's scale the server says that it is about the resource itself.
local function subresource_kind(R, sub)
  if R.builtin then return sub end
  return { kind = R.kind }
end

local function add_resource(paths, R, root, definition_of)
  local names = { kind = definition_of(R.api_version, R.kind), list = definition_of(R.api_version, R.list_kind) }
  local prefix = root .. (R.namespaced and "namespaces/{namespace}/" or "")
  add_all_namespaces(paths, R, root, names)
  add_collection(paths, R, prefix, names)
  local item = prefix .. R.plural .. "/{name}"
  local verbs = { get = R.verbs.get, update = R.verbs.update, patch = R.verbs.patch, delete = R.verbs.delete }
  if next(verbs) then
    paths[item] = object { parameters = item_parameters(R) }
    add_item_operations(paths[item], R, R, verbs, names.kind)
  end
  for name, sub in pairs(R.subresources) do
    local of = kinds.api_version(sub.group or R.group, sub.version or R.version)
    local definition = name ~= "log" and definition_of(of, sub.kind)
    -- Streams (exec, attach, proxy ...) have options for a kind, and no definition; a log is a text.
    if definition then
      local path = object { parameters = item_parameters(R) }
      add_item_operations(path, R, subresource_kind(R, sub), sub.verbs, definition)
      paths[item .. "/" .. name] = path
    end
  end
end

--- A page that can only be read: { definition (nil: a text), description, tag, id, types }.
function openapi_paths.page(page)
  local types = page.types or BUILTIN_TYPES
  local text = object { [types[1]] = object { schema = object { type = "string" } } }
  return object {
    get = object {
      tags = array { page.tag },
      description = page.description,
      operationId = page.id,
      responses = object {
        ["200"] = object { description = "OK", content = page.definition and content(types, page.definition) or text },
        ["401"] = object { description = "Unauthorized" },
      },
    },
  }
end

--- The paths for some resources of one group and version; definition_of(api_version, kind) names a
--- kind's definition.
function openapi_paths.of(resources, definition_of)
  local paths = object {}
  for _, R in ipairs(resources) do
    local root = R.group == "" and "/api/v1/" or "/apis/" .. R.api_version .. "/"
    add_resource(paths, R, root, definition_of)
  end
  return paths
end

return openapi_paths
