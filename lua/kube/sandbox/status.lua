-- Status: how the API says no. Each function here returns a Status that the caller raises with
-- error(); texts, reasons and details are kube-apiserver's own.
local json = require "kube.sandbox.json"

local status = {}

local meta = { __tostring = function(e) return e.document.message end }

--- True for what this module made.
function status.is(e) return getmetatable(e) == meta end

--- { code, reason, message, details, continue, retry_after }: any Status.
function status.new(options)
  local document = json.object {
    kind = "Status",
    apiVersion = "v1",
    metadata = json.object(options.continue and { continue = options.continue } or {}),
    status = "Failure",
    message = options.message,
    reason = options.reason,
    details = options.details and json.object(options.details),
    code = options.code,
  }
  local headers = {}
  if options.retry_after then
    document.details = document.details or json.object {}
    document.details.retryAfterSeconds = options.retry_after
    headers[1] = { "Retry-After", tostring(options.retry_after) }
  end
  return setmetatable({ code = options.code, document = document, headers = headers }, meta)
end

local function details_of(R, name, extra)
  local details = extra or {}
  details.name = name ~= "" and name or nil
  details.group = R.group ~= "" and R.group or nil
  details.kind = R.plural
  return details
end

function status.bad_request(message, ...)
  return status.new { code = 400, reason = "BadRequest", message = message:format(...) }
end

function status.unauthorized()
  return status.new { code = 401, reason = "Unauthorized", message = "Unauthorized" }
end

--- `causes` are { reason, message, field } tables.
function status.forbidden(R, name, text, causes)
  local subject = name and name ~= "" and ('%s "%s"'):format(R.resource_name, name) or R.resource_name
  return status.new {
    code = 403,
    reason = "Forbidden",
    message = subject .. " is forbidden: " .. text,
    details = details_of(R, name, { causes = causes and json.array(causes) }),
  }
end

function status.not_found(R, name)
  return status.new {
    code = 404,
    reason = "NotFound",
    message = ('%s "%s" not found'):format(R.resource_name, name),
    details = details_of(R, name),
  }
end

--- No such resource under a group and version that exist.
function status.no_resource()
  return status.new {
    code = 404,
    reason = "NotFound",
    message = "the server could not find the requested resource",
    details = {},
  }
end

function status.method_not_allowed()
  return status.new {
    code = 405,
    reason = "MethodNotAllowed",
    message = "the server does not allow this method on the requested resource",
    details = {},
  }
end

function status.not_acceptable(message)
  return status.new { code = 406, reason = "NotAcceptable", message = message }
end

function status.unsupported_media_type(message)
  return status.new { code = 415, reason = "UnsupportedMediaType", message = message }
end

function status.already_exists(R, name, prefix)
  return status.new {
    code = 409,
    reason = "AlreadyExists",
    message = ('%s%s "%s" already exists'):format(prefix or "", R.resource_name, name),
    details = details_of(R, name),
  }
end

--- `kind` replaces the plural where the server names the kind (preconditions of a delete).
function status.conflict(R, name, text, kind)
  local details = details_of(R, name)
  if kind then details.kind = kind end
  local subject = kind and (R.group ~= "" and kind .. "." .. R.group or kind) or R.resource_name
  return status.new {
    code = 409,
    reason = "Conflict",
    message = ('Operation cannot be fulfilled on %s "%s": %s'):format(subject, name, text),
    details = details,
  }
end

status.MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"

function status.expired(message, continue)
  return status.new { code = 410, reason = "Expired", message = message, continue = continue }
end

function status.too_large(limit)
  return status.new {
    code = 413,
    reason = "RequestEntityTooLarge",
    message = "Request entity too large: limit is " .. limit,
  }
end

--- A resource, or a part of a custom one, that does not know a verb.
function status.not_supported(R, verb)
  return status.new {
    code = 405,
    reason = "MethodNotAllowed",
    message = ('%s is not supported on resources of kind "%s"'):format(verb, R.resource_name),
    details = { kind = R.plural, group = R.group ~= "" and R.group or nil },
  }
end

--- `subject` is { kind =, group = }, or has them as `refused_as`; `errors` come from kube.sandbox.field.
function status.invalid(subject, name, errors)
  subject = subject.refused_as or subject
  local causes, texts, seen = json.array {}, {}, {}
  for i, e in ipairs(errors) do
    causes[i] = json.object { reason = e.type, message = e.message, field = e.field }
    local text = e.field .. ": " .. e.message
    if not seen[text] then texts[#texts + 1] = text end
    seen[text] = true
  end
  local group = subject.group ~= "" and subject.group or nil
  local text = #texts == 1 and texts[1] or "[" .. table.concat(texts, ", ") .. "]"
  return status.new {
    code = 422,
    reason = "Invalid",
    message = ('%s "%s" is invalid: %s'):format(group and subject.kind .. "." .. group or subject.kind, name, text),
    details = {
      name = name ~= "" and name or nil,
      group = group,
      kind = subject.kind ~= "" and subject.kind or nil,
      causes = causes,
    },
  }
end

--- A refusal without a subject: a JSON patch that does not fit.
function status.unprocessable(message)
  return status.new { code = 422, reason = "Invalid", message = message, details = {} }
end

--- 500 as the server words its own mistakes; without `internal` the text stands alone.
function status.internal(message)
  return status.new {
    code = 500,
    reason = "InternalError",
    message = "Internal error occurred: " .. message,
    details = { causes = json.array { json.object { message = message } } },
  }
end

--- 500 without a reason: what the server does with errors that nobody classified.
function status.unclassified(message) return status.new { code = 500, message = message } end

function status.timeout(message, causes, retry_after)
  return status.new {
    code = 504,
    reason = "Timeout",
    message = "Timeout: " .. message,
    details = { causes = causes and json.array(causes) },
    retry_after = retry_after,
  }
end

--- A resourceVersion that the store has not reached.
function status.too_large_resource_version(wanted, current)
  return status.timeout(("Too large resource version: %s, current: %s"):format(wanted, current),
    { json.object { reason = "ResourceVersionTooLarge", message = "Too large resource version" } }, 1)
end

--- What a finished deletion answers.
function status.success(R, name, uid)
  return json.object {
    kind = "Status",
    apiVersion = "v1",
    metadata = json.object {},
    status = "Success",
    details = json.object(details_of(R, name, { uid = uid })),
  }
end

return status
