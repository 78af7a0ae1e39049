-- OpenAPI, as kubectl asks for it: /openapi/v3 lists one document per group and version, and small
-- ones for other paths; /openapi/v2 is one document for all. Each is made when it is first asked for,
-- and kept, packed, until the kinds in it change.
local document = require "kube.sandbox.openapi_document"
local host = require "kube._server"
local json = require "kube.sandbox.json"
local media = require "kube.sandbox.media"
local negotiate = require "kube.sandbox.negotiate"
local openapi_v2 = require "kube.sandbox.openapi_v2"
local status = require "kube.sandbox.status"
local version = require "kube.sandbox.version"

local openapi = {}

local object = json.object

-- Part of every hash: to be raised when documents of the same kinds change, since clients keep a
-- document for ever under its hash.
local FORM = "2"

-- What may be asked for -------------------------------------------------------------------------

local function path_of(group, of)
  return group == "" and "api/" .. of or "apis/" .. group .. "/" .. of
end

-- The documents of a registry: path -> { group, of } or { page }.
local function documents(registry)
  local all = {}
  for path, page in pairs(document.pages(registry)) do all[path] = { page = page } end
  for _, group in ipairs(registry:groups()) do
    for _, of in ipairs(registry:versions(group)) do all[path_of(group, of)] = { group = group, of = of } end
  end
  return all
end

-- What a document is made of, so that its name is known without making it.
local function fingerprint(registry, path, entry)
  local parts = { version.info().gitVersion, FORM, path }
  for _, R in ipairs(entry.group and registry:resources(entry.group, entry.of) or {}) do
    if not R.builtin then
      parts[#parts + 1] = R.kind .. " " .. R.list_kind .. " " .. R.plural .. " " .. tostring(R.namespaced)
      parts[#parts + 1] = table.concat(R.subresource_list, " ")
      parts[#parts + 1] = table.concat(R.verb_list, " ")
      parts[#parts + 1] = R.schema and json.encode(R.schema) or ""
    end
  end
  return host.hex(host.sha512(table.concat(parts, "\n"))):upper()
end

-- All hashes as one.
local function hash_of_all(entries)
  local hashes = {}
  for path, entry in pairs(entries) do hashes[#hashes + 1] = path .. " " .. entry.hash end
  table.sort(hashes)
  return host.hex(host.sha512(table.concat(hashes, "\n"))):upper()
end

-- Documents, packed ------------------------------------------------------------------------------

local caches = setmetatable({}, { __mode = "k" }) -- registry -> { generation, entries, hash, by_path, by_format }

local function cache_of(registry)
  local cache = caches[registry]
  if not cache then
    cache = { by_path = {}, by_format = {} }
    caches[registry] = cache
  end
  if cache.generation ~= registry.generation then
    cache.generation, cache.entries = registry.generation, documents(registry)
    for path, entry in pairs(cache.entries) do entry.hash = fingerprint(registry, path, entry) end
    cache.hash = hash_of_all(cache.entries)
    for path in pairs(cache.by_path) do
      if not cache.entries[path] then cache.by_path[path] = nil end
    end
  end
  return cache
end

-- What make() gives, packed, made anew when it is not the one of this hash.
local function packed(place, name, hash, make)
  local known = place[name]
  if not known or known.hash ~= hash then
    local text = make()
    known = { hash = hash, size = #text, bytes = host.gzip(text) }
    place[name] = known
  end
  return known
end

local function unpack_text(known) return assert(host.gunzip(known.bytes, known.size)) end

-- Version 3 --------------------------------------------------------------------------------------

local JSON_TYPE = { "Content-Type", "application/json" }
local ROOT_TYPE = { "Content-Type", "text/plain; charset=utf-8" } -- what the server calls it

--- The document of a group and version, or nil when it is not served.
openapi.document = document.of

--- The list of documents: { paths = { "apis/apps/v1" = { serverRelativeURL } } }.
function openapi.root(registry)
  local paths = object {}
  for path, entry in pairs(cache_of(registry).entries) do
    paths[path] = object { serverRelativeURL = "/openapi/v3/" .. path .. "?hash=" .. entry.hash }
  end
  return object { paths = paths }
end

local function v3(ctx, path)
  local registry = ctx.S.kinds
  local cache = cache_of(registry)
  local entry = cache.entries[path]
  if not entry then return { status = 404, headers = {}, body = "" } end
  local etag = '"' .. entry.hash .. '"'
  local given = ctx.info.query.hash and ctx.info.query.hash[1]
  local headers = {
    { "Cache-Control", given == entry.hash and "public, immutable" or "no-cache, private" },
    { "ETag", etag },
    { "Vary", "Accept" },
  }
  if given and given ~= entry.hash then
    headers[#headers + 1] = { "Location", "/openapi/v3/" .. path .. "?hash=" .. entry.hash }
    return { status = 301, headers = headers, body = "" }
  end
  if ctx.request.header("if-none-match") == etag then return { status = 304, headers = headers, body = "" } end
  headers[#headers + 1] = JSON_TYPE
  local known = packed(cache.by_path, path, entry.hash, function()
    if entry.page then return json.encode(document.of_page(path, entry.page)) end
    return json.encode(document.of(registry, entry.group, entry.of))
  end)
  return { status = 200, headers = headers, body = unpack_text(known) }
end

-- Version 2 --------------------------------------------------------------------------------------

-- Both spellings are asked for; one is answered.
local V2_PROTOBUF = "com.github.proto-openapi.spec.v2.v1.0+protobuf"
local V2_FORMATS = {
  { "json", "json" },
  { V2_PROTOBUF, "protobuf" },
  { "com.github.proto-openapi.spec.v2@v1.0+protobuf", "protobuf" },
}

local function v2_format(ctx)
  for _, clause in ipairs(media.parse(ctx.request.header("accept") or "*/*")) do
    for _, format in ipairs(V2_FORMATS) do
      if media.matches(clause, "application", format[1]) then return format[2] end
    end
  end
end

local function v2(ctx)
  local format, cache = v2_format(ctx), cache_of(ctx.S.kinds)
  local headers = { { "Vary", "Accept-Encoding" }, { "Vary", "Accept" } }
  if not format then return { status = 406, headers = headers, body = "" } end
  local etag = '"' .. cache.hash .. '"'
  headers[#headers + 1] = { "ETag", etag }
  if ctx.request.header("if-none-match") == etag then return { status = 304, headers = headers, body = "" } end
  headers[#headers + 1] = format == "json" and JSON_TYPE or { "Content-Type", "application/" .. V2_PROTOBUF }
  local known = packed(cache.by_format, format, cache.hash, function()
    return openapi_v2.encode(ctx.S.kinds, format)
  end)
  if not negotiate.accepts_gzip(ctx) then return { status = 200, headers = headers, body = unpack_text(known) } end
  headers[#headers + 1] = { "Content-Encoding", "gzip" }
  return { status = 200, headers = headers, body = known.bytes }
end

--- Answers a path under /openapi: a response, or nil when there is no such page.
function openapi.handle(ctx)
  local path = ctx.info.path
  if ctx.info.method ~= "GET" and ctx.info.method ~= "HEAD" then error(status.method_not_allowed()) end
  if path == "/openapi/v2" then return v2(ctx) end
  path = path:gsub("/$", "")
  if path == "/openapi/v3" then
    return { status = 200, headers = { ROOT_TYPE }, body = json.encode(openapi.root(ctx.S.kinds)) }
  end
  path = path:match("^/openapi/v3/(.+)$")
  return path and v3(ctx, path)
end

return openapi
