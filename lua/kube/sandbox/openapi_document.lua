-- OpenAPI v3 documents: one per group and version, with its kinds and what may be done with them, and
-- small ones for the paths that are no resources.
local definitions = require "kube.sandbox.openapi_definitions"
local json = require "kube.sandbox.json"
local kinds = require "kube.sandbox.kinds"
local openapi_paths = require "kube.sandbox.openapi_paths"
local version = require "kube.sandbox.version"

local openapi_document = {}

local object = json.object

local META = "io.k8s.apimachinery.pkg.apis.meta.v1."

-- Who may do anything: part of both versions.
openapi_document.SECURITY = object {
  BearerToken = object {
    description = "Bearer Token authentication",
    type = "apiKey",
    name = "authorization",
    ["in"] = "header",
  },
}

function openapi_document.info()
  local info = version.info()
  return object { title = "Kubernetes", version = info.major .. "." .. info.minor }
end

local function wrap(paths, schemas, custom)
  return object {
    openapi = "3.0.0",
    info = openapi_document.info(),
    paths = paths,
    components = object { schemas = schemas, securitySchemes = not custom and openapi_document.SECURITY or nil },
  }
end

-- "rbac.authorization.k8s.io" -> "rbacAuthorization", as tags and identifiers call a group.
local function group_word(group)
  local word = group:gsub("%.k8s%.io$", ""):gsub("[.%-](%l)", string.upper)
  return group == "" and "core" or word
end

local function capital(word) return (word:gsub("^%l", string.upper)) end

-- Groups and versions ----------------------------------------------------------------------------

local RESOURCES = META .. "APIResourceList"

-- The page that lists the resources of a built-in group and version.
local function add_resource_list(paths, group, of, needed)
  local word = group_word(group)
  needed[RESOURCES] = true
  paths[(group == "" and "/api/" or "/apis/" .. group .. "/") .. of .. "/"] = openapi_paths.page {
    definition = RESOURCES,
    description = "get available resources",
    tag = word .. "_" .. of,
    id = ("get%s%sAPIResources"):format(capital(word), capital(of)),
  }
end

local ALWAYS = { META .. "DeleteOptions", META .. "Patch", META .. "Status" }

--- The paths of a group and version and the definitions of its custom resources by name; the names of
--- the built-in definitions that these need are added to `needed`. nil when it is not served.
function openapi_document.parts(registry, group, of, source, needed)
  local resources = registry:resources(group, of)
  if not resources then return nil end
  local own, by_kind = {}, {}
  for _, name in ipairs(ALWAYS) do needed[name] = true end
  for _, R in ipairs(resources) do
    if not R.builtin then
      for name, node in pairs(source:custom(R, needed)) do own[name] = node end
      for _, kind in ipairs { R.kind, R.list_kind } do by_kind[kind] = definitions.custom_name(R, kind) end
    end
  end
  local api_version = kinds.api_version(group, of)
  local paths = openapi_paths.of(resources, function(wanted, kind)
    local name = wanted == api_version and by_kind[kind]
    if name then return name end
    name = kinds.definition(wanted, kind)
    if name then needed[name] = true end
    return name
  end)
  if registry:is_builtin(group) then add_resource_list(paths, group, of, needed) end
  return paths, own
end

--- The document of a group and version, or nil when it is not served.
function openapi_document.of(registry, group, of)
  local source, needed, schemas = definitions.open(), {}, object {}
  local paths, own = openapi_document.parts(registry, group, of, source, needed)
  if not paths then return nil end
  for name, node in pairs(own) do schemas[name] = node end
  source:each(needed, function(name, node) schemas[name] = node end)
  return wrap(paths, schemas, not registry:is_builtin(group))
end

-- Pages ------------------------------------------------------------------------------------------

local PAGES = {
  ["api"] = {
    definition = META .. "APIVersions",
    description = "get available API versions",
    tag = "core",
    id = "getCoreAPIVersions",
  },
  ["apis"] = {
    definition = META .. "APIGroupList",
    description = "get available API versions",
    tag = "apis",
    id = "getAPIVersions",
  },
  ["version"] = {
    definition = "io.k8s.apimachinery.pkg.version.Info",
    description = "get the version information for this server",
    tag = "version",
    id = "getCodeVersion",
    types = { "application/json" },
  },
  [".well-known/openid-configuration"] = {
    description = "get service account issuer OpenID configuration, also known as the 'OIDC discovery doc'",
    tag = "WellKnown",
    id = "getServiceAccountIssuerOpenIDConfiguration",
    types = { "application/json" },
  },
  ["openid/v1/jwks"] = {
    description = "get service account issuer OpenID JSON Web Key Set (contains public token verification keys)",
    tag = "openid",
    id = "getServiceAccountIssuerOpenIDKeyset",
    types = { "application/jwk-set+json" },
  },
}

local function group_page(group)
  local word = group_word(group)
  return {
    definition = META .. "APIGroup",
    description = "get information of a group",
    tag = word,
    id = "get" .. capital(word) .. "APIGroup",
  }
end

--- The pages of a registry by their paths; see openapi_paths.page.
function openapi_document.pages(registry)
  local pages = {}
  for path, page in pairs(PAGES) do pages[path] = page end
  for _, group in ipairs(registry:groups()) do
    if group ~= "" and registry:is_builtin(group) then pages["apis/" .. group] = group_page(group) end
  end
  return pages
end

--- The paths of one page.
function openapi_document.page_paths(path, page)
  return object { ["/" .. path .. "/"] = openapi_paths.page(page) }
end

--- The document of a page.
function openapi_document.of_page(path, page)
  local schemas = object {}
  if page.definition then
    definitions.open():each({ [page.definition] = true }, function(name, node) schemas[name] = node end)
  end
  return wrap(openapi_document.page_paths(path, page), schemas)
end

return openapi_document
