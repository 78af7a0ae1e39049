-- How an answer is written: JSON or YAML, plain or as a Table or as metadata only, for machines or
-- for eyes, compressed or not. A representation is { format = "json" | "yaml", pretty, as, version,
-- include }; `as` is nil, "Table", "PartialObjectMetadata" or "PartialObjectMetadataList".
local field = require "kube.sandbox.field"
local host = require "kube._server"
local json = require "kube.sandbox.json"
local media = require "kube.sandbox.media"
local request = require "kube.sandbox.request"
local status = require "kube.sandbox.status"
local utf8 = require "kube.sandbox.utf8"

local negotiate = {}

local GZIP_FROM = 128 * 1024
local META_GROUP = "meta.k8s.io"

local TYPES = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
local STREAM_TYPES = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"

local TRANSFORMS = { Table = true, PartialObjectMetadata = true, PartialObjectMetadataList = true }
local TRANSFORM_VERSIONS = { v1 = true, v1beta1 = true }

local function accept_of(ctx)
  local header = ctx.request.header("accept")
  if not header or header == "" then header = "*/*" end
  return header
end

-- Go's strconv.ParseBool: what it reads as true.
local TRUE = { ["1"] = true, t = true, T = true, ["true"] = true, TRUE = true, True = true }
local EYES = { "^curl", "^Wget", "^Mozilla/5%.0" }

local function wants_pretty(ctx)
  local asked = request.value(ctx.info, "pretty")
  if asked and asked ~= "" then return TRUE[asked] or false end
  local agent = ctx.request.header("user-agent") or ""
  for _, pattern in ipairs(EYES) do
    if agent:find(pattern) then return true end
  end
  return false
end

-- The representation that one clause of Accept asks for; nil when there is no such thing.
local function represent(clause, plain_only)
  local params = clause.params
  local as = params.as
  if as or params.g or params.v then
    if plain_only or not TRANSFORMS[as] or params.g ~= META_GROUP or not TRANSFORM_VERSIONS[params.v] then
      return nil
    end
  end
  local format = media.matches(clause, "application", "json") and "json"
    or media.matches(clause, "application", "yaml") and "yaml"
  if not format then return nil end
  return { format = format, as = as, version = params.v or "v1", pretty = TRUE[params.pretty] }
end

local function choose(ctx, plain_only)
  for _, clause in ipairs(media.parse(accept_of(ctx))) do
    local found = represent(clause, plain_only)
    if found then
      found.pretty = found.pretty or wants_pretty(ctx)
      return found
    end
  end
end

local ROUTED = {
  ["*/*"] = true,
  ["application/json"] = true,
  ["application/yaml"] = true,
  ["application/vnd.kubernetes.protobuf"] = true,
}

-- Built-in kinds sit behind a router that wants one of its types named, letter by letter.
local function check_router(ctx)
  if not ctx.R or not ctx.R.builtin then return end
  for _, clause in ipairs(media.parse(accept_of(ctx))) do
    if ROUTED[clause.name] then return end
  end
  local types = TYPES
  if ctx.info.verb == "list" or ctx.info.verb == "watch" then types = types .. ", " .. STREAM_TYPES end
  local refusal = status.not_acceptable("406: Not Acceptable\n\nAvailable representations: " .. types)
  refusal.document.details = json.object {}
  error(refusal)
end

--- The representation of the answer; raises 406.
function negotiate.check(ctx)
  if ctx.representation then return ctx.representation end
  check_router(ctx)
  local found = choose(ctx, ctx.R == nil) -- only objects and lists of them can look otherwise
  local accepted = not found and TYPES or ctx.info.verb == "watch" and found.format ~= "json" and STREAM_TYPES
  if accepted then error(status.not_acceptable("only the following media types are accepted: " .. accepted)) end
  ctx.representation = found
  return found
end

-- Transformations ----------------------------------------------------------------------------------

local function is_list(doc) return json.is_array(doc.items) and (doc.kind or ""):find("List$") ~= nil end

local function partial(doc, version)
  return json.object {
    kind = "PartialObjectMetadata",
    apiVersion = META_GROUP .. "/" .. version,
    metadata = doc.metadata,
  }
end

-- The type of the server's own that its complaint names.
local function go_type(R, doc)
  if not R.builtin then return "*unstructured.UnstructuredList" end
  local package = R.group == "" and "core" or R.group:match("^[^.]+")
  return ("*%s.%s"):format(package, doc.kind)
end

local function to_partial(ctx, doc, version)
  if not is_list(doc) then return partial(doc, version) end
  error(status.not_acceptable(("you requested PartialObjectMetadata, but the requested object is a list (%s)")
    :format(go_type(ctx.R, doc))))
end

local function list_metadata(doc)
  if doc.metadata.continue ~= "" then return doc.metadata end
  return json.with(doc.metadata, "continue", nil)
end

local function to_partial_list(ctx, doc, version)
  if not is_list(doc) then
    if not ctx.R.builtin then error(status.unclassified("content is not a list")) end
    error(status.not_acceptable(("you requested PartialObjectMetadataList, but the requested object is not a list (%s)")
      :format(go_type(ctx.R, doc))))
  end
  local items = json.array {}
  for i, item in ipairs(doc.items) do items[i] = partial(item, version) end
  return json.object {
    kind = "PartialObjectMetadataList",
    apiVersion = META_GROUP .. "/" .. version,
    metadata = list_metadata(doc),
    items = items,
  }
end

local INCLUDES = { Metadata = true, Object = true, None = true }

--- How much of its objects a table is to show; raises when the request says nonsense.
function negotiate.include(ctx)
  local include = request.value(ctx.info, "includeObject") or ""
  if include == "" then return "Metadata" end
  if INCLUDES[include] then return include end
  error(status.bad_request("Unable to convert to Table as requested: includeObject: %s",
    field.invalid("includeObject", include, "must be 'Metadata', 'Object', 'None', or empty").message))
end

-- Rows show whole objects, which the items of a built-in list are not.
local function named(R, items)
  local docs = {}
  for i, item in ipairs(items) do
    local doc = item
    if not item.kind then
      doc = json.shallow(item)
      doc.kind, doc.apiVersion = R.kind, R.api_version
    end
    docs[i] = doc
  end
  return docs
end

local function to_table(ctx, doc, version)
  local R, include = ctx.R, negotiate.include(ctx)
  -- A bookmark is nothing but metadata.
  if include == "None" and not is_list(doc) and not doc.metadata.name then include = "Metadata" end
  local docs, metadata = { doc }, json.object { resourceVersion = doc.metadata.resourceVersion }
  if is_list(doc) then docs, metadata = named(R, doc.items), list_metadata(doc) end
  -- The printers of all kinds are many; who asks for no table does without them.
  return require("kube.sandbox.table").of(R, docs, {
    include = include,
    version = version,
    metadata = metadata,
    now = ctx.S.clock:now(),
  })
end

local TO = {
  Table = to_table,
  PartialObjectMetadata = to_partial,
  PartialObjectMetadataList = to_partial_list,
}

--- The document as the client wants to see it. A Status stays what it is.
function negotiate.transform(ctx, representation, doc)
  local to = TO[representation.as]
  if not to or doc.kind == "Status" then return doc end
  return to(ctx, doc, representation.version)
end

-- Writing --------------------------------------------------------------------------------------------

--- Whether an answer may be packed.
function negotiate.accepts_gzip(ctx)
  for token in (ctx.request.header("accept-encoding") or ""):gmatch("[^,]+") do
    if token:match("^%s*(.-)%s*$") == "gzip" then return true end
  end
  return false
end

--- A document as text, and its media type.
function negotiate.encode(representation, doc)
  if representation.format == "yaml" then return host.yaml_encode(doc), "application/yaml" end
  local text = json.encode(doc)
  if representation.pretty then return media.indent(text), "application/json" end
  return text .. "\n", "application/json"
end

local function respond(ctx, code, representation, doc)
  local body, content_type = negotiate.encode(representation, doc)
  local headers = { { "Cache-Control", "no-cache, private" }, { "Content-Type", content_type } }
  if #body > GZIP_FROM and negotiate.accepts_gzip(ctx) then
    body = host.gzip(body)
    headers[#headers + 1] = { "Content-Encoding", "gzip" }
    headers[#headers + 1] = { "Vary", "Accept-Encoding" }
  end
  return { status = code, headers = headers, body = body }
end

--- The answer { status, headers, body } with a document.
function negotiate.response(ctx, code, doc)
  local representation = negotiate.check(ctx)
  return respond(ctx, code, representation, negotiate.transform(ctx, representation, doc))
end

--- The answer with a Status that was raised. Who accepts nothing gets JSON all the same.
function negotiate.status(ctx, e)
  -- Its text may quote what the client sent, whatever that was.
  local doc = utf8.valid_document(e.document)
  return respond(ctx, e.code, choose(ctx, true) or { format = "json", pretty = true }, doc)
end

return negotiate
