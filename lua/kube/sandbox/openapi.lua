-- OpenAPI, as kubectl asks for it: /openapi/v3 lists one document per group and version, made when
-- it is first asked for; /openapi/v2 says only that it is one, which is enough for every kubectl to
-- apply, create and edit.
--
-- The documents have the kinds, the operations on them and the schemas, without descriptions: those
-- of a custom resource are its definition's own. (Version 2 has no schemas, so `kubectl explain`
-- needs 1.27 or later, which reads version 3.)
local host = require "kube._server"
local json = require "kube.sandbox.json"
local kinds = require "kube.sandbox.kinds"
local openapi_paths = require "kube.sandbox.openapi_paths"
local schema = require "kube.sandbox.schema"
local status = require "kube.sandbox.status"
local version = require "kube.sandbox.version"

local openapi = {}

local array, object = json.array, json.object

local PREFIX = "#/components/schemas/"
local META = "io.k8s.apimachinery.pkg.apis.meta.v1."

-- Definitions ------------------------------------------------------------------------------------

-- A node of the built-in data as OpenAPI has it, with the definitions that it needs in `needed`.
local function export(node, needed)
  if type(node) ~= "table" then return node end
  local copy = json.is_array(node) and array {} or object {}
  for key, value in pairs(node) do copy[key] = export(value, needed) end
  local ref = node["$ref"]
  if type(ref) == "string" then
    needed[ref] = true
    copy["$ref"] = nil
    local link = object { ["$ref"] = PREFIX .. ref }
    if next(copy) == nil then return link end
    copy.allOf = array { link }
  end
  return copy
end

-- "ex.io", "v1", "Widget" -> "io.ex.v1.Widget".
local function custom_name(R, kind)
  local parts = {}
  for part in R.group:gmatch("[^.]+") do table.insert(parts, 1, part) end
  return table.concat(parts, ".") .. "." .. R.version .. "." .. kind
end

local function kind_entry(R, kind)
  return array { object { group = R.group, version = R.version, kind = kind } }
end

local STRING = object { type = "string" }

local function custom_definitions(schemas, needed, R)
  local node = json.shallow(schema.of(R))
  node.properties = json.shallow(node.properties)
  node.properties.metadata = export(node.properties.metadata, needed)
  node["x-kubernetes-group-version-kind"] = kind_entry(R, R.kind)
  schemas[custom_name(R, R.kind)] = node
  needed[META .. "ListMeta"] = true
  schemas[custom_name(R, R.list_kind)] = object {
    type = "object",
    required = array { "items" },
    properties = object {
      apiVersion = STRING,
      kind = STRING,
      metadata = object { ["$ref"] = PREFIX .. META .. "ListMeta" },
      items = object { type = "array", items = object { ["$ref"] = PREFIX .. custom_name(R, R.kind) } },
    },
    ["x-kubernetes-group-version-kind"] = kind_entry(R, R.list_kind),
  }
end

-- Adds the definitions whose names are in `needed`, and all that those lead to.
local function add_needed(schemas, needed)
  local name = next(needed)
  while name do
    needed[name] = nil
    if not schemas[name] then
      local found = {}
      schemas[name] = export(assert(schema.definition(name), name), found)
      for other in pairs(found) do
        if not schemas[other] then needed[other] = true end
      end
    end
    name = next(needed)
  end
end

-- Documents --------------------------------------------------------------------------------------

local SECURITY = object {
  BearerToken = object { type = "apiKey", name = "authorization", ["in"] = "header" },
}

local ALWAYS = { META .. "DeleteOptions", META .. "Patch", META .. "Status" }

--- The document of a group and version, or nil when it is not served.
function openapi.document(registry, group, of)
  local resources = registry:resources(group, of)
  if not resources then return nil end
  local schemas, needed, own = object {}, {}, {}
  for _, name in ipairs(ALWAYS) do needed[name] = true end
  for _, R in ipairs(resources) do
    if not R.builtin then
      custom_definitions(schemas, needed, R)
      own[R.kind], own[R.list_kind] = custom_name(R, R.kind), custom_name(R, R.list_kind)
    end
  end
  local api_version = kinds.api_version(group, of)
  local paths = openapi_paths.of(resources, function(wanted, kind)
    local name = wanted == api_version and own[kind]
    if name then return name end
    name = kinds.definition(wanted, kind)
    if name then needed[name] = true end
    return name
  end)
  add_needed(schemas, needed)
  local info = version.info()
  return object {
    openapi = "3.0.0",
    info = object { title = "Kubernetes", version = info.major .. "." .. info.minor },
    paths = paths,
    components = object { schemas = schemas, securitySchemes = SECURITY },
  }
end

-- What a document is made of, so that its name is known without making it.
local function fingerprint(registry, group, of)
  local parts = { version.info().gitVersion, kinds.api_version(group, of) }
  for _, R in ipairs(registry:resources(group, of)) do
    if not R.builtin then
      parts[#parts + 1] = R.kind .. " " .. R.list_kind .. " " .. R.plural .. " " .. tostring(R.namespaced)
      parts[#parts + 1] = table.concat(R.subresource_list, " ")
      parts[#parts + 1] = table.concat(R.verb_list, " ")
      parts[#parts + 1] = json.encode(schema.of(R))
    end
  end
  return host.hex(host.sha512(table.concat(parts, "\n"))):upper()
end

local caches = setmetatable({}, { __mode = "k" }) -- registry -> { generation, hashes, bodies }

local function cache_of(registry)
  local cache = caches[registry]
  if not cache then
    cache = { bodies = {} }
    caches[registry] = cache
  end
  if cache.generation ~= registry.generation then
    cache.generation, cache.hashes = registry.generation, {}
  end
  return cache
end

local function hash_of(registry, group, of)
  local cache, api_version = cache_of(registry), kinds.api_version(group, of)
  cache.hashes[api_version] = cache.hashes[api_version] or fingerprint(registry, group, of)
  return cache.hashes[api_version]
end

local function body_of(registry, group, of)
  local cache, api_version, hash = cache_of(registry), kinds.api_version(group, of), hash_of(registry, group, of)
  local known = cache.bodies[api_version]
  if not known or known.hash ~= hash then
    known = { hash = hash, body = json.encode(openapi.document(registry, group, of)) }
    cache.bodies[api_version] = known
  end
  return known.body
end

-- Requests ---------------------------------------------------------------------------------------

local JSON_TYPE = { "Content-Type", "application/json" }

local function path_of(group, of)
  return group == "" and "api/" .. of or "apis/" .. group .. "/" .. of
end

--- The list of documents: { paths = { "apis/apps/v1" = { serverRelativeURL } } }.
function openapi.root(registry)
  local paths = object {}
  for _, group in ipairs(registry:groups()) do
    for _, of in ipairs(registry:versions(group)) do
      local path = path_of(group, of)
      paths[path] = object {
        serverRelativeURL = "/openapi/v3/" .. path .. "?hash=" .. hash_of(registry, group, of),
      }
    end
  end
  return object { paths = paths }
end

local function versioned(ctx, group, of)
  local registry = ctx.S.kinds
  if not registry:version_exists(group, of) then return nil end
  local hash = hash_of(registry, group, of)
  local etag = '"' .. hash .. '"'
  local given = ctx.info.query.hash and ctx.info.query.hash[1]
  local headers = {
    { "Cache-Control", given == hash and "public, immutable" or "no-cache, private" },
    { "ETag", etag },
    { "Vary", "Accept" },
  }
  if given and given ~= hash then
    headers[#headers + 1] = { "Location", "/openapi/v3/" .. path_of(group, of) .. "?hash=" .. hash }
    return { status = 301, headers = headers, body = "" }
  end
  if ctx.request.header("if-none-match") == etag then return { status = 304, headers = headers, body = "" } end
  headers[#headers + 1] = JSON_TYPE
  return { status = 200, headers = headers, body = body_of(registry, group, of) }
end

local V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

-- swagger = "2.0", info = { title = "Kubernetes", version = "v1.36.3" } in protobuf; all are short.
local function v2_protobuf()
  local function field(number, text) return string.char(number * 8 + 2, #text) .. text end
  return field(1, "2.0") .. field(2, field(1, "Kubernetes") .. field(2, version.info().gitVersion))
end

local function v2(ctx)
  if (ctx.request.header("accept") or ""):find("proto-openapi", 1, true) then
    return { status = 200, headers = { { "Content-Type", V2_PROTOBUF } }, body = v2_protobuf() }
  end
  local document = object {
    swagger = "2.0",
    info = object { title = "Kubernetes", version = version.info().gitVersion },
    paths = object {},
  }
  return { status = 200, headers = { JSON_TYPE }, body = json.encode(document) }
end

--- Answers a path under /openapi: a response, or nil when there is no such page.
function openapi.handle(ctx)
  local path = ctx.info.path:gsub("/$", "")
  if ctx.info.method ~= "GET" and ctx.info.method ~= "HEAD" then error(status.method_not_allowed()) end
  if path == "/openapi/v2" then return v2(ctx) end
  if path == "/openapi/v3" then
    return { status = 200, headers = { JSON_TYPE }, body = json.encode(openapi.root(ctx.S.kinds)) }
  end
  local of = path:match("^/openapi/v3/api/([^/]+)$")
  if of then return versioned(ctx, "", of) end
  local group
  group, of = path:match("^/openapi/v3/apis/([^/]+)/([^/]+)$")
  return group and versioned(ctx, group, of)
end

return openapi
