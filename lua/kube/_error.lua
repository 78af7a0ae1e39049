-- Errors: tables with a code and a message, which print as one sentence.
local core = require "kube._core"

local errors = {}

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
  is_not_found = predicate "not_found",
  is_already_exists = predicate "already_exists",
  is_conflict = predicate "conflict",
  is_forbidden = predicate "forbidden",
  is_unauthorized = predicate "unauthorized",
  is_invalid = predicate "invalid",
  is_bad_request = predicate "bad_request",
  is_method_not_allowed = predicate "method_not_allowed",
  is_gone = predicate "gone",
  is_resource_expired = predicate("expired", "gone"),
  is_too_many_requests = predicate "too_many_requests",
  is_server_timeout = predicate "server_timeout",
  is_timeout = predicate("timeout"),
  is_internal_error = predicate "internal",
  is_service_unavailable = predicate "unavailable",
  is_cancelled = predicate "cancelled",
  is_not_leading = predicate "not_leading",
  is_no_match = predicate "no_match", -- no such kind or resource
}

return errors
