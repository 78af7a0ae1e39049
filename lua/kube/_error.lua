-- Errors: tables with a code and a message, which print as one sentence.
local core = require "kube._core"

local errors = {}

--- What goes wrong, as a table; tostring() of it is the message.
---@class kube.Error
---@field code string what went wrong, one word in snake_case: of a server's answer "not_found", "already_exists",
--- "conflict", "forbidden", "unauthorized", "invalid", "bad_request", "gone", "expired", "too_many_requests",
--- "timeout", "server_timeout", "internal", "unavailable", "method_not_allowed"...; of the connection "timeout",
--- "refused", "eof", "connect", "tls", "auth", "limit"; of a task "cancelled", "timeout"; of a leader election
--- "not_leading": a write that was not sent
---@field message string one sentence; of a server's answer its own, whole
---@field status? integer of the answer; nil when there was none
---@field reason? string the server's own word, as "AlreadyExists"
---@field details? table of the server's Status
---@field continue? string of a list that has expired: where it can go on, in the state of now
---@field retriable boolean whether the same may go well later: after a pause, or after a conflict with a fresh object

--- Makes a structured error.
---@param code string a short word: "not_found", "timeout", "cancelled"...
---@param message string one sentence for the person who reads it
---@param fields? table further fields
---@return kube.Error
function errors.new(code, message, fields)
  local err = {}
  for key, value in pairs(fields or {}) do err[key] = value end
  err.code, err.message = code, message
  return setmetatable(err, core.error_meta)
end

--- Raises misuse of the API, with the line of the script that called us.
function errors.misuse(fmt, ...)
  error(core.where() .. (select("#", ...) > 0 and fmt:format(...) or fmt), 0)
end

--- Raises an error that was returned so far, with the line of the script that called us.
---@param err kube.Error
function errors.raise(err)
  err.where = core.where()
  error(err, 0)
end

--- The line of the script that called us, for log lines.
---@return string
function errors.place() return (core.where():gsub(": $", "")) end

-- Reasons whose code is not their own name in snake_case.
local SHORT = { InternalError = "internal", ServiceUnavailable = "unavailable" }

-- For answers without a reason, and with one that says nothing.
local BY_STATUS = {
  [400] = "bad_request", [401] = "unauthorized", [403] = "forbidden", [404] = "not_found",
  [405] = "method_not_allowed", [406] = "not_acceptable", [409] = "conflict", [410] = "gone",
  [413] = "request_entity_too_large", [415] = "unsupported_media_type", [422] = "invalid",
  [429] = "too_many_requests", [503] = "unavailable", [504] = "timeout",
}

local RETRIABLE = {
  conflict = true, too_many_requests = true, timeout = true, server_timeout = true, internal = true,
  unavailable = true, refused = true, eof = true, connect = true, not_leading = true,
}

local function code_of(status, reason)
  if reason and reason ~= "Unknown" then
    return SHORT[reason] or (reason:gsub("(%l)(%u)", "%1_%2"):lower())
  end
  return BY_STATUS[status] or (status >= 500 and "internal" or "http")
end

--- The error for an answer of 400 or above.
---@param status integer
---@param reason? string the server's
---@param message string
---@param details? table
---@return kube.Error
function errors.refusal(status, reason, message, details)
  local code = code_of(status, reason)
  return errors.new(code, message, {
    status = status, reason = reason, details = details,
    retriable = RETRIABLE[code] or status == 429,
  })
end

--- Completes what listing or watching failed with, which has the server's status and not its reason.
---@param err kube.Error
---@return kube.Error
function errors.of_watch(err)
  if err.status and err.code ~= "expired" then err.code = code_of(err.status) end
  err.retriable = RETRIABLE[err.code] or err.code == "expired"
  return err
end

--- Completes what the transport failed with.
---@param err kube.Error
---@return kube.Error
function errors.of_transport(err)
  err.retriable = RETRIABLE[err.code] or false
  return err
end

-- Predicates, by what apimachinery calls them. An error that is text, or none at all, is none of these.
local function predicate(...)
  local codes = {}
  for _, code in ipairs { ... } do codes[code] = true end
  return function(err)
    if type(err) ~= "table" and type(err) ~= "userdata" then return false end
    local ok, code = pcall(function() return err.code end)
    return ok and codes[code] or false
  end
end

errors.predicates = {
  --- Whether it says that there is no such object.
  ---@param err any
  ---@return boolean
  is_not_found = predicate "not_found",
  --- Whether an object of that name was there already.
  ---@param err any
  ---@return boolean
  is_already_exists = predicate "already_exists",
  --- Whether somebody else was faster: read it anew and try again.
  ---@param err any
  ---@return boolean
  is_conflict = predicate "conflict",
  --- Whether the user may not do that.
  ---@param err any
  ---@return boolean
  is_forbidden = predicate "forbidden",
  --- Whether the server does not know the user.
  ---@param err any
  ---@return boolean
  is_unauthorized = predicate "unauthorized",
  --- Whether the server refused the object: details.causes tells which fields.
  ---@param err any
  ---@return boolean
  is_invalid = predicate "invalid",
  --- Whether the server did not understand the request.
  ---@param err any
  ---@return boolean
  is_bad_request = predicate "bad_request",
  --- Whether the resource does not have that verb.
  ---@param err any
  ---@return boolean
  is_method_not_allowed = predicate "method_not_allowed",
  --- Whether it was there, and is not any more.
  ---@param err any
  ---@return boolean
  is_gone = predicate "gone",
  --- Whether the history that was asked for is forgotten.
  ---@param err any
  ---@return boolean
  is_resource_expired = predicate("expired", "gone"),
  --- Whether the server asks to slow down.
  ---@param err any
  ---@return boolean
  is_too_many_requests = predicate "too_many_requests",
  --- Whether the server gave up; the same may go well later.
  ---@param err any
  ---@return boolean
  is_server_timeout = predicate "server_timeout",
  --- Whether the time was over: that of a request, or of a task.
  ---@param err any
  ---@return boolean
  is_timeout = predicate("timeout"),
  --- Whether something went wrong inside of the server.
  ---@param err any
  ---@return boolean
  is_internal_error = predicate "internal",
  --- Whether the server cannot answer now.
  ---@param err any
  ---@return boolean
  is_service_unavailable = predicate "unavailable",
  --- Whether the task was stopped.
  ---@param err any
  ---@return boolean
  is_cancelled = predicate "cancelled",
  --- Whether it is a write that was not sent because this process does not lead.
  ---@param err any
  ---@return boolean
  is_not_leading = predicate "not_leading",
  --- Whether the server has no such kind or resource.
  ---@param err any
  ---@return boolean
  is_no_match = predicate "no_match",
}

return errors
