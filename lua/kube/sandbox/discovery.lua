-- Discovery: what is served, in the older form (one document per group and version) and in the
-- aggregated one (all in one, with an ETag), and the pages that name the server.
local host = require "kube._server"
local json = require "kube.sandbox.json"
local kinds = require "kube.sandbox.kinds"
local negotiate = require "kube.sandbox.negotiate"
local status = require "kube.sandbox.status"
local version = require "kube.sandbox.version"

local discovery = {}

local AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

local array, object = json.array, json.object

-- The older documents ------------------------------------------------------------------------------

local function strings(list)
  if not list[1] then return nil end
  return array { unpack(list) }
end

local function add_resource(list, R)
  list[#list + 1] = object {
    name = R.plural,
    singularName = R.singular,
    namespaced = R.namespaced,
    kind = R.kind,
    verbs = array { unpack(R.verb_list) },
    shortNames = strings(R.short_names),
    categories = strings(R.categories),
    storageVersionHash = R.hash,
  }
  for _, name in ipairs(R.subresource_list) do
    local sub = R.subresources[name]
    list[#list + 1] = object {
      name = R.plural .. "/" .. name,
      singularName = "",
      namespaced = R.namespaced,
      group = sub.group,
      version = sub.version,
      kind = sub.kind,
      verbs = array { unpack(sub.verb_list) },
    }
  end
end

--- The resources of a group and version, or nil: APIResourceList.
function discovery.resources(registry, group, of)
  local found = registry:resources(group, of)
  if not found then return nil end
  local list = array {}
  for _, R in ipairs(found) do add_resource(list, R) end
  return object {
    kind = "APIResourceList",
    -- The core group's document has none, as it always was.
    apiVersion = group ~= "" and "v1" or nil,
    groupVersion = kinds.api_version(group, of),
    resources = list,
  }
end

local function group_entry(registry, name)
  local versions = array {}
  for i, of in ipairs(registry:versions(name)) do
    versions[i] = object { groupVersion = kinds.api_version(name, of), version = of }
  end
  if not versions[1] then return nil end
  return object { name = name, versions = versions, preferredVersion = json.shallow(versions[1]) }
end

--- One group, or nil: APIGroup.
function discovery.group(registry, name)
  local entry = group_entry(registry, name)
  if entry then entry.kind, entry.apiVersion = "APIGroup", "v1" end
  return entry
end

--- Every group but the core one: APIGroupList.
function discovery.groups(registry)
  local groups = array {}
  for _, name in ipairs(registry:groups()) do
    if name ~= "" then groups[#groups + 1] = group_entry(registry, name) end
  end
  return object { kind = "APIGroupList", apiVersion = "v1", groups = groups }
end

local function core_versions(ctx)
  return object {
    kind = "APIVersions",
    versions = array { "v1" },
    serverAddressByClientCIDRs = array {
      object { clientCIDR = "0.0.0.0/0", serverAddress = ctx.request.header("host") or "" },
    },
  }
end

-- The aggregated document ------------------------------------------------------------------------

local function response_kind(R, sub)
  -- Built-in kinds leave out the group and version that are the resource's own.
  local default_group, default_version = "", ""
  if not R.builtin then default_group, default_version = R.group, R.version end
  return object {
    group = sub.group or default_group,
    version = sub.version or default_version,
    kind = sub.kind,
  }
end

local function aggregated_resource(R)
  local subresources = array {}
  for i, name in ipairs(R.subresource_list) do
    local sub = R.subresources[name]
    subresources[i] = object {
      subresource = name,
      responseKind = response_kind(R, sub),
      verbs = array { unpack(sub.verb_list) },
    }
  end
  return object {
    resource = R.plural,
    responseKind = response_kind(R, { kind = R.kind }),
    scope = R.namespaced and "Namespaced" or "Cluster",
    singularResource = R.singular,
    verbs = array { unpack(R.verb_list) },
    shortNames = strings(R.short_names),
    categories = strings(R.categories),
    subresources = subresources[1] and subresources or nil,
  }
end

local function aggregated_group(registry, name)
  local versions = array {}
  for i, of in ipairs(registry:versions(name)) do
    local resources = array {}
    for j, R in ipairs(registry:resources(name, of)) do resources[j] = aggregated_resource(R) end
    versions[i] = object { version = of, resources = resources, freshness = "Current" }
  end
  return object { metadata = object { name = name ~= "" and name or nil }, versions = versions }
end

--- The core group or all others at once: APIGroupDiscoveryList.
function discovery.aggregated(registry, core)
  local items = array {}
  for _, name in ipairs(registry:groups()) do
    if (name == "") == core then items[#items + 1] = aggregated_group(registry, name) end
  end
  return object {
    kind = "APIGroupDiscoveryList",
    apiVersion = "apidiscovery.k8s.io/v2",
    metadata = object {},
    items = items,
  }
end

-- Whether a client can read the aggregated form; any such clause counts, whatever its rank.
local function wants_aggregated(accept)
  for clause in (accept or ""):gmatch("[^,]+") do
    local parameters = {}
    for name, value in clause:gmatch(";%s*(%w+)=([^;%s]*)") do parameters[name] = value end
    local media = clause:match("^%s*([^;%s]+)")
    if (media == "application/json" or media == "*/*" or media == "application/*")
      and parameters.g == "apidiscovery.k8s.io" and parameters.v == "v2"
      and parameters.as == "APIGroupDiscoveryList" then
      return true
    end
  end
  return false
end

local caches = setmetatable({}, { __mode = "k" }) -- registry -> { generation, [core] = { body, etag } }

local function aggregated_body(registry, core)
  local cache = caches[registry]
  if not cache or cache.generation ~= registry.generation then
    cache = { generation = registry.generation }
    caches[registry] = cache
  end
  if not cache[core] then
    local body = json.encode(discovery.aggregated(registry, core)) .. "\n"
    cache[core] = { body = body, etag = '"' .. host.hex(host.sha512(body)):upper() .. '"' }
  end
  return cache[core]
end

local function aggregated_response(ctx, core)
  local found = aggregated_body(ctx.S.kinds, core)
  local headers = { { "Cache-Control", "public" }, { "ETag", found.etag }, { "Vary", "Accept" } }
  if ctx.request.header("if-none-match") == found.etag then
    return { status = 304, headers = headers, body = "" }
  end
  table.insert(headers, 1, { "Content-Type", AGGREGATED })
  return { status = 200, headers = headers, body = found.body }
end

-- Requests ---------------------------------------------------------------------------------------

local function only_get(ctx)
  if ctx.info.method ~= "GET" and ctx.info.method ~= "HEAD" then error(status.method_not_allowed()) end
end

-- The document of a path, a whole response instead, or nil when there is no such page.
local function find(ctx)
  local registry, path = ctx.S.kinds, ctx.info.path:gsub("/$", "")
  if path == "/api" or path == "/apis" then
    -- The server's own oddity: the list of groups does not look at the method.
    if path == "/api" then only_get(ctx) end
    if wants_aggregated(ctx.request.header("accept")) then return nil, aggregated_response(ctx, path == "/api") end
    return path == "/api" and core_versions(ctx) or discovery.groups(registry)
  end
  local of = path:match("^/api/([^/]+)$")
  local group = of and "" or path:match("^/apis/([^/]+)")
  if not group then return nil end
  of = of or path:match("^/apis/[^/]+/([^/]+)$")
  if not of then return discovery.group(registry, group) end
  local document = discovery.resources(registry, group, of)
  if document then
    only_get(ctx)
    return document
  end
  -- A version that a built-in group does not have is a missing resource; other paths are no pages.
  if registry:is_builtin(group) then error(status.no_resource()) end
  return nil
end

--- Answers a path under /api and /apis that is not of a resource: a response, or nil when there is
--- no such page.
function discovery.handle(ctx)
  local document, response = find(ctx)
  return response or document and negotiate.response(ctx, 200, document)
end

--- /version, as the server writes it.
function discovery.version(ctx)
  only_get(ctx)
  return { status = 200, headers = { { "Content-Type", "application/json" } }, body = version.text() }
end

local function openid(ctx, content_type, document)
  only_get(ctx)
  local headers = { { "Cache-Control", "public, max-age=3600" }, { "Content-Type", content_type } }
  return { status = 200, headers = headers, body = json.encode(document) }
end

--- /.well-known/openid-configuration: who issues the tokens of service accounts.
function discovery.openid_configuration(ctx)
  return openid(ctx, "application/json", object {
    issuer = "https://kubernetes.default.svc",
    jwks_uri = "https://" .. (ctx.request.header("host") or "") .. "/openid/v1/jwks",
    response_types_supported = array { "id_token" },
    subject_types_supported = array { "public" },
    id_token_signing_alg_values_supported = array { "RS256" },
  })
end

--- /openid/v1/jwks: no keys, for the sandbox signs no tokens.
function discovery.openid_keys(ctx)
  return openid(ctx, "application/jwk-set+json", object { keys = array {} })
end

local PAGES = { "/.well-known/openid-configuration", "/api", "/api/v1", "/apis", "/apis/", "/healthz", "/livez",
  "/openapi/v2", "/openapi/v3", "/openid/v1/jwks", "/readyz", "/version" }

--- /: the paths there are.
function discovery.root(ctx)
  local paths = array { unpack(PAGES) }
  for _, name in ipairs(ctx.S.kinds:groups()) do
    if name ~= "" then
      paths[#paths + 1] = "/apis/" .. name
      for _, of in ipairs(ctx.S.kinds:versions(name)) do paths[#paths + 1] = "/apis/" .. name .. "/" .. of end
    end
  end
  table.sort(paths)
  return negotiate.response(ctx, 200, object { paths = paths })
end

return discovery
