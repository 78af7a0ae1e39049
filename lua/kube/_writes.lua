-- `writes` of a controller: what it may write, as "v1/configmaps", "apps/v1/deployments:create,patch",
-- "example.com/v1/webs/status". Its ctx.client refuses anything else, and `moonwatch rbac` asks for no more.
local errors = require "kube._error"
local options = require "kube._options"
local resources = require "kube._resource"

local M = {}

--- The verbs of roles, in the order in which they are told. A read is one that no cache answers.
M.verbs = { "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection" }

local KNOWN = { get = true, list = true, create = true, update = true, patch = true, delete = true,
  deletecollection = true }

-- What an entry without verbs stands for.
local DEFAULT = { "get", "create", "update", "patch", "delete" }
local DEFAULT_SUBRESOURCE = { "get", "update", "patch" }
local DEFAULT_EVENTS = { "create", "patch" }

--- What a verb of the client needs.
local NEEDS = { create = "create", update = "update", update_status = "update", patch = "patch", apply = "patch",
  delete = "delete", delete_collection = "deletecollection" }

--- Whether a resource, perhaps with its subresource, is that of events.
---@param resource string
---@return boolean
function M.is_events(resource) return resource == "v1/events" or resource == "events.k8s.io/v1/events" end

-- "apps/v1/deployments", "status" of "apps/v1/deployments/status".
local function split(name)
  local resource, subresource = name:match("^(v%d[%l%d]*/[^/]+)/?(.*)$")
  if not resource then resource, subresource = name:match("^([^/]+/[^/]+/[^/]+)/?(.*)$") end
  if not resource then return name end
  return resource, subresource ~= "" and subresource or nil
end

local function check_verbs(what, text)
  local verbs = {}
  for verb in (text .. ","):gmatch("%s*(.-)%s*,") do
    if not KNOWN[verb] then
      errors.misuse("%s: '%s' is not a verb%s", what, verb, options.hint(verb, KNOWN))
    end
    verbs[#verbs + 1] = verb
  end
  return verbs
end

local function add(allowed, name, verbs)
  allowed[name] = allowed[name] or {}
  for _, verb in ipairs(verbs) do allowed[name][verb] = true end
end

--- Reads the option of a controller; nil when it was not given. Its finalizer is its own to write.
---@param what string the name of the function in messages
---@param opts kube.ControllerOptions
---@return table<string, table<string, boolean>>? allowed verbs by resource, or resource/subresource
function M.read(what, opts)
  if not opts.writes then return nil end
  local allowed = {}
  if opts.finalizer then add(allowed, opts.resource, { "patch" }) end
  for i, entry in pairs(opts.writes) do
    local here = ("%s: writes[%s]"):format(what, tostring(i))
    if type(entry) ~= "string" or type(i) ~= "number" then
      errors.misuse("%s: writes is a list of resources such as \"v1/configmaps:create,patch\", and [%s] is none", what,
        tostring(i))
    end
    local name, verbs = entry:match("^(.-):(.*)$")
    local resource, subresource = split(name or entry)
    resources.check_own(here, resources.check(here, resource))
    local default = subresource and DEFAULT_SUBRESOURCE or M.is_events(resource) and DEFAULT_EVENTS or DEFAULT
    add(allowed, name or entry, verbs and check_verbs(here, verbs) or default)
  end
  return allowed
end

--- The verbs of an entry in their order.
---@param set table<string, boolean>
---@return string[]
function M.sorted(set)
  local list = {}
  for _, verb in ipairs(M.verbs) do
    if set[verb] then list[#list + 1] = verb end
  end
  return list
end

--- The verbs that are allowed, as lists by resource.
---@param allowed table what M.read returned
---@return table<string, string[]>
function M.listed(allowed)
  local lists = {}
  for name, set in pairs(allowed) do lists[name] = M.sorted(set) end
  return lists
end

local function refuse(what, rule, name, verb)
  errors.misuse("%s: %s of %s is not in writes of controller '%s'; add \"%s:%s\"", what, verb, name, rule.controller,
    name, verb)
end

local function check(what, rule, name, verb)
  if not (rule.allowed[name] or {})[verb] then refuse(what, rule, name, verb) end
end

--- Raises unless a call of a verb is allowed. An apply of what the cache does not have creates it.
---@param call table of kube._calls
function M.check_call(call)
  local rule, verb = call.session._writes, NEEDS[call.verb]
  if not rule or not verb then return end
  local subresource = call.verb == "update_status" and "status" or call.opts.subresource
  local name = subresource and call.resource .. "/" .. subresource or call.resource
  check(call.what, rule, name, verb)
  if call.verb == "apply" and not subresource and not rule.cached(call.resource, call.key) then
    check(call.what, rule, name, "create")
  end
end

local METHODS = { POST = "create", PUT = "update", PATCH = "patch", DELETE = "delete" }

-- Subresources of namespaces, which stand where resources do in other paths.
local OF_NAMESPACES = { finalize = true, status = true }

-- The resource (perhaps with subresource) and whether there is a name, of a path; nil for what is no resource.
local function read_path(path)
  path = path:gsub("%?.*$", "")
  local prefix, rest = path:match("^/api/(v%d[%l%d]*)/(.+)$")
  if not prefix then prefix, rest = path:match("^/apis/([^/]+/[^/]+)/(.+)$") end
  if not prefix then return nil end
  local inside = rest:match("^namespaces/[^/]+/([^/]+.*)$")
  if inside and not OF_NAMESPACES[inside] then rest = inside end
  local plural, name, subresource = rest:match("^([^/]+)/?([^/]*)/?(.*)$")
  local resource = prefix .. "/" .. plural
  return subresource ~= "" and resource .. "/" .. subresource or resource, name ~= ""
end

--- The same for a request without a verb.
---@param session kube.Session
---@param request table options of client:request
---@param what string the name of the function in messages
function M.check_request(session, request, what)
  local rule, method = session._writes, type(request) == "table" and request.method
  local verb = rule and METHODS[method]
  if not verb or type(request.path) ~= "string" then return end
  local name, named = read_path(request.path)
  if not name then return end
  check(what, rule, name, verb == "delete" and not named and "deletecollection" or verb)
end

--- Raises unless events may be written.
---@param rule? table
---@param what string the name of the function in messages
function M.check_events(rule, what)
  if not rule then return end
  local allowed = rule.allowed["v1/events"] or {}
  if allowed.create and allowed.patch then return end
  errors.misuse("%s: v1/events are not in writes of controller '%s'; add \"v1/events\"", what, rule.controller)
end

return M
