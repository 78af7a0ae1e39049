-- The options of lists and watches, read and checked in the server's order: numbers, selectors,
-- what may go together, and which fields the kind can be selected by.
local field = require "kube.sandbox.field"
local field_selector = require "kube.sandbox.field_selector"
local request = require "kube.sandbox.request"
local selector = require "kube.sandbox.selector"
local status = require "kube.sandbox.status"

local list_options = {}

--- A resourceVersion as a number, nil for none; or nil and the server's text.
function list_options.revision(text)
  if text == nil or text == "" then return nil end
  local number, problem = request.unsigned(text)
  if number then return number end
  return nil, "resourceVersion: " .. field.invalid("resourceVersion", text, problem).message
end

local function parsed(parser, text)
  local result, problem = parser.parse(text or "")
  return result or error(status.bad_request("%s", problem))
end

local function forbid(errors, name, text) errors[#errors + 1] = field.forbidden(name, text) end

local MATCH = "resourceVersionMatch"

local function check_list(options, errors)
  local match = options.match
  if match ~= "" then
    if options.version == "" then
      forbid(errors, MATCH, "resourceVersionMatch is forbidden unless resourceVersion is provided")
    end
    if options.continue ~= "" then
      forbid(errors, MATCH, "resourceVersionMatch is forbidden when continue is provided")
    end
    if match ~= "Exact" and match ~= "NotOlderThan" then
      errors[#errors + 1] = field.not_supported(MATCH, match, { "Exact", "NotOlderThan", "" })
    end
    if match == "Exact" and options.version == "0" then
      forbid(errors, MATCH, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
    end
  end
  if options.initial ~= nil then
    forbid(errors, "sendInitialEvents", "sendInitialEvents is forbidden for list")
  end
end

local function check_watch(options, errors)
  local match = options.match
  if options.initial ~= nil and match ~= "NotOlderThan" then
    forbid(errors, MATCH, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
  end
  if match == "" then return end
  if options.initial == nil then
    forbid(errors, MATCH, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
  end
  if match ~= "NotOlderThan" then errors[#errors + 1] = field.not_supported(MATCH, match, { "NotOlderThan" }) end
  if options.continue ~= "" then
    forbid(errors, MATCH, "resourceVersionMatch is forbidden when continue is provided")
  end
end

-- A watch from nowhere in particular is one that begins with what is there.
local function default_watch(options)
  local nowhere = options.version == "" or options.version == "0"
  if nowhere and options.initial == nil and options.match == "" then
    options.initial, options.match = true, "NotOlderThan"
  end
end

--- { labels, fields (selectors), version (text), match, limit, continue, initial, bookmarks, timeout }.
function list_options.parse(ctx, is_watch)
  local info = ctx.info
  local options = {
    version = request.text(info, "resourceVersion") or "",
    match = request.text(info, MATCH) or "",
    timeout = request.integer(info, "timeoutSeconds"),
    limit = request.integer(info, "limit") or 0,
    continue = request.text(info, "continue") or "",
    initial = request.flag(info, "sendInitialEvents"),
    bookmarks = request.flag(info, "allowWatchBookmarks"),
    labels = parsed(selector, request.text(info, "labelSelector")),
    fields = parsed(field_selector, request.text(info, "fieldSelector")),
  }
  local errors = {}
  if is_watch then
    default_watch(options)
    check_watch(options, errors)
  else
    check_list(options, errors)
  end
  if errors[1] then error(status.invalid({ kind = "ListOptions", group = "meta.k8s.io" }, "", errors)) end
  local ok, problem = options.fields:resolve(ctx.R)
  if not ok then error(status.bad_request("%s", problem)) end
  return options
end

--- Whether a stored document is selected.
function list_options.selects(options, doc)
  return options.labels:matches(doc.metadata.labels) and options.fields:matches(doc)
end

--- Checks the options of a GET of one object: a resourceVersion that is none, or that is not
--- reached yet.
function list_options.check_get(ctx)
  if request.flag(ctx.info, "export") then
    error(status.bad_request("the export parameter, deprecated since v1.14, is no longer supported"))
  end
  local text = request.text(ctx.info, "resourceVersion")
  local revision, problem = list_options.revision(text)
  if problem then error(status.unclassified(problem)) end
  local current = ctx.S.store.revision
  if revision and revision > current then error(status.too_large_resource_version(text, current)) end
end

return list_options
