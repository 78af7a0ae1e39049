-- The body of a request as a document: JSON, YAML or protobuf, of the kind that the path names.
local field = require "kube.sandbox.field"
local go_json = require "kube.sandbox.go_json"
local host = require "kube._server"
local json = require "kube.sandbox.json"
local protobuf = require "kube.sandbox.protobuf"
local shape = require "kube.sandbox.shape"
local status = require "kube.sandbox.status"
local strict = require "kube.sandbox.validate.strict"
local values = require "kube.sandbox.validate.value"

local body = {}

body.LIMIT = 3 * 1024 * 1024

body.ACCEPTED = "the body of the request was in an unknown format - accepted media types include: "
  .. "application/json, application/yaml, application/vnd.kubernetes.protobuf"

local EXCERPT = 30

-- Printed when a body cannot be read at all: as it is if it could be an object, else in hex.
local function excerpt(text)
  if text == "" then return "<empty>" end
  local head = text:sub(1, EXCERPT)
  if not text:find("^{") then head = host.hex(head) end
  return #text > EXCERPT and head .. " ..." or head
end

local function unrecognized(kind, why, text)
  return status.bad_request("%s", ("the object provided is unrecognized (must be of type %s): %s (%s)")
    :format(kind, why, excerpt(text)))
end

local GO_NAMES = { boolean = "bool", number = "number", string = "string", table = "array" }

-- Kinds of values as Go's decoder names them.
local JSON_KINDS = { boolean = "bool", integer = "number" }

--- A text as a JSON object; `refuse` makes what is raised of the reason why it is none.
function body.read_json(text, refuse)
  local document = json.decode(text)
  if document == nil then
    error(refuse("couldn't get version/kind; json parse error: " .. go_json.problem(text)))
  end
  if document == json.null then return json.object {} end
  if not json.is_object(document) then
    error(refuse(("couldn't get version/kind; json parse error: json: cannot unmarshal %s into Go "
      .. 'value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string '
      .. '"json:\\"kind,omitempty\\"" }'):format(GO_NAMES[type(document)])))
  end
  return document
end

local function decode_json(text, kind)
  return body.read_json(text, function(why) return unrecognized(kind, why, text) end)
end

local function decode_yaml(text, kind)
  local documents, problem = host.yaml_decode(text)
  if not documents then error(unrecognized(kind, problem, text)) end
  local document = documents[1] or json.object {}
  -- What the checks below say about a field is said about the same text in JSON.
  return decode_json(json.encode(document), kind)
end

--- The media type of a header value, without its parameters.
function body.media_type(value) return (value or ""):match("^%s*([^;%s]*)"):lower() end

--- The request's body as a document of some kind, whatever its own kind is; nil when it is empty.
function body.decode(ctx, R, kind)
  local text = ctx.request.body or ""
  if #text > body.LIMIT then error(status.too_large(body.LIMIT)) end
  local media = body.media_type(ctx.request.header("content-type"))
  if media == "" or media == "application/json" then
    return decode_json(text, kind), text
  elseif media == "application/yaml" then
    return decode_yaml(text, kind)
  elseif media == "application/vnd.kubernetes.protobuf" and R.builtin then
    local document, problem = protobuf.decode(text, R)
    if not document then
      error(unrecognized(kind, problem, text))
    end
    return document
  end
  error(status.unsupported_media_type(body.ACCEPTED))
end

-- The internal package that Go names when it refuses to convert between kinds.
local function go_group(R) return R.group == "" and "core" or R.group:match("^[^.]+") end

-- A text that says what the document is; nil when it is not there or empty.
local function type_text(R, document, name, text)
  local value = document[name]
  if value == nil or value == json.null or value == "" then return nil end
  if type(value) == "string" then return value end
  local kind = values.kind(value)
  local why = ("couldn't get version/kind; json parse error: json: cannot unmarshal %s into Go struct field .%s of "
    .. "type string"):format(JSON_KINDS[kind] or kind, name)
  error(unrecognized(R.kind, why, text or json.encode(document)))
end

local function check_builtin(ctx, R, document, text)
  local version = type_text(R, document, "apiVersion", text) or R.api_version
  local kind = type_text(R, document, "kind", text) or R.kind
  if kind == R.kind and version == R.api_version then return end
  local known = ctx.S.kinds:by_kind(version, kind)
  local why
  if known and known.builtin and version == R.api_version then
    why = ("converting (%s.%s) to (%s.%s): unknown conversion"):format(known.version, kind, go_group(R), R.kind)
  elseif known and known.builtin and kind == R.kind then
    error(status.bad_request("the API version in the data (%s) does not match the expected API version (%s)",
      version, R.api_version))
  else
    why = ('no kind "%s" is registered for version "%s" in scheme "pkg/runtime/scheme.go:111"'):format(kind, version)
  end
  error(status.bad_request('%s in version "%s" cannot be handled as a %s: %s', kind,
    version:match("[^/]+$") or version, R.kind, why))
end

--- Refuses a document of another kind than the custom resource R.
function body.check_kind(R, document)
  if document.apiVersion ~= R.api_version then
    error(status.bad_request("the API version in the data (%s) does not match the expected API version (%s)",
      document.apiVersion or "", R.api_version))
  end
  if document.kind ~= R.kind then
    error(status.invalid({ kind = document.kind, group = R.group }, json.get(document, "metadata", "name") or "",
      { field.invalid("kind", document.kind, "must be " .. R.kind) }))
  end
end

--- A document of kind R as it may be stored: its kind and version are right and filled in, its
--- types are those of the schema, unknown fields are gone after they were reported as
--- `field_validation` (Ignore, Warn, Strict) wants.
function body.object(ctx, R, field_validation)
  local document, text = body.decode(ctx, R, R.kind)
  if R.builtin then
    check_builtin(ctx, R, document, text)
  else
    if type(document.kind) ~= "string" or document.kind == "" then
      text = text or json.encode(document)
      error(unrecognized(R.kind, "Object 'Kind' is missing in '" .. text .. "'", text))
    end
    body.check_kind(R, document)
  end
  return body.conform(ctx, R, document, text, field_validation)
end

--- The same checks for a document that did not come as a body (a patched one).
function body.conform(ctx, R, document, text, field_validation)
  document = json.shallow(document)
  document.kind, document.apiVersion = R.kind, R.api_version
  local clean, problems, refusal = strict.check(R, document, text)
  if refusal then
    error(status.bad_request('%s in version "%s" cannot be handled as a %s: %s', R.kind, R.version, R.kind, refusal))
  end
  if problems[1] and field_validation == "Strict" then
    error(status.bad_request('%s in version "%s" cannot be handled as a %s: strict decoding error: %s', R.kind,
      R.version, R.kind, table.concat(problems, ", ")))
  elseif field_validation == "Warn" then
    for _, problem in ipairs(problems) do ctx:warn(problem) end
  end
  return shape.read(R, clean)
end

return body
