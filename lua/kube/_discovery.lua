-- Which resource a kind is, and whether it is in namespaces: known for what Kubernetes itself has, asked of the
-- server for the rest, once per group and version.
--
-- What the server answered is kept per server and user. A kind that is missing in it, or whose scope is not what a
-- script takes it for, is looked for again, at most once a second: definitions come and go, and may come back under
-- another plural or scope. Whoever finds that a collection is not there says so (M.forget). Tasks that ask at the
-- same time share one request.
local client = require "kube._client"
local core = require "kube._core"
local errors = require "kube._error"
local groups = require "kube._groups"
local options = require "kube._options"
local resources = require "kube._resource"
local task = require "kube._task"

local M = {}

local PAUSE = 1       -- seconds between two looks for the same thing
local SERVERS_MAX = 64 -- with more, all are forgotten: clients that are made again and again with fresh credentials

-- By identity of the client, then by "group/version": { at, kinds = { Kind = entry }, plurals = { plural = entry } }.
local caches, count = {}, 0

local function cache_of(server)
  local identity = core.client.identity(server)
  local cache = caches[identity]
  if cache then return cache end
  if count == SERVERS_MAX then caches, count = {}, 0 end
  cache = { versions = {}, flights = {} }
  caches[identity], count = cache, count + 1
  return cache
end

local function entries_of(list)
  local kinds, plurals = {}, {}
  local given = type(list) == "table" and list.resources
  for _, resource in ipairs(type(given) == "table" and given or {}) do
    local known = type(resource.name) == "string" and type(resource.kind) == "string"
    if known and not resource.name:find("/", 1, true) then
      local entry = { plural = resource.name, kind = resource.kind, namespaced = resource.namespaced == true }
      kinds[resource.kind], plurals[resource.name] = entry, entry
    end
  end
  return { at = core.task.now(), kinds = kinds, plurals = plurals }
end

-- Asks the server. A version that it does not serve has no kinds.
local function ask(server, api_version, request)
  local path = (api_version:find("/", 1, true) and "/apis/" or "/api/") .. api_version
  local response, err = client.exchange(server,
    { what = request.what, method = "GET", path = path, timeout = request.timeout })
  if response then return entries_of(response.object) end
  if err.status == 404 then return entries_of(nil) end
  return nil, err
end

-- The same, but one request for all who ask while it is under way. When the one that sends it is cancelled, the
-- next one sends it.
local function ask_together(server, cache, api_version, request)
  local flight = cache.flights[api_version]
  if flight then
    local waited = task.wait_until(function() return flight.over end, request.timeout, request.what)
    if not waited then
      return nil, errors.new("timeout", ("%s: the kinds of %s are not known in time"):format(request.what, api_version),
        { retriable = true })
    end
    if flight.found or flight.err then return flight.found, flight.err end
    return ask_together(server, cache, api_version, request)
  end
  flight = {}
  cache.flights[api_version] = flight
  local ok, found, err = pcall(ask, server, api_version, request)
  flight.over, cache.flights[api_version] = true, nil
  if ok then flight.found, flight.err = found, err end
  core.task.changed():fire()
  if not ok then error(found, 0) end
  if found then cache.versions[api_version] = found end
  return found, err
end

-- The entry of a version for which pick(version) is not nil, and the version for messages.
local function look_up(server, api_version, request, pick)
  local cache = cache_of(server)
  local known = cache.versions[api_version]
  local entry = known and pick(known)
  if entry or (known and core.task.now() - known.at < PAUSE) then return entry, known end
  local found, err = ask_together(server, cache, api_version, request)
  if not found then return nil, nil, err end
  return pick(found), found
end

-- Where a version that is not served comes from: from the server's own for the groups of Kubernetes.
local function where_to_look(api_version)
  return core.informer.is_own_group(api_version:match("^(.*)/") or "")
    and "kubectl api-versions shows what it serves" or "is its definition installed?"
end

local function unknown_kind(api_version, kind, version)
  local hint = ""
  local meant = resources.meant(kind)
  if next(version.kinds) and options.nearest(kind, version.kinds) then
    hint = (" (did you mean '%s'?)"):format(options.nearest(kind, version.kinds))
  elseif meant then
    hint = (" (did you mean apiVersion '%s'?)"):format(resources.api_version(meant))
  elseif not next(version.kinds) then
    hint = ": it does not serve that apiVersion; " .. where_to_look(api_version)
  end
  return errors.new("no_match", ("the server has no kind '%s' in apiVersion '%s'%s"):format(kind, api_version, hint),
    { retriable = true })
end

-- The entry of a name, looked for again when its scope is not the one that is expected. The rest as look_up().
local function look_up_name(server, api_version, request, set, name, expected)
  local entry, version, err = look_up(server, api_version, request, function(v)
    local found = v[set][name]
    if found and (expected == nil or found.namespaced == expected) then return found end
  end)
  return entry or (version and version[set][name]), version, err
end

--- Forgets what the server said of a resource's version, unless it said so after `moment`.
---@param server? kube.Client
---@param resource string
---@param moment number of core.task.now()
function M.forget(server, resource, moment)
  local versions, api_version = cache_of(server).versions, resources.api_version(resource)
  if versions[api_version] and versions[api_version].at <= moment then versions[api_version] = nil end
end

--- The resource of a kind, and whether it is in namespaces. Awaits where the server has to be asked.
---@param server? kube.Client
---@param api_version string
---@param kind string
---@param request { what: string, timeout: number }
---@param expected? boolean whether the caller takes it for one in namespaces
---@return string? resource
---@return boolean|kube.Error namespaced
function M.resource_of(server, api_version, kind, request, expected)
  local builtin = resources.builtin(api_version, kind)
  if builtin then return builtin, not groups.is_cluster_scoped(builtin) end
  local entry, version, err = look_up_name(server, api_version, request, "kinds", kind, expected)
  if entry then return api_version .. "/" .. entry.plural, entry.namespaced end
  return nil, err or unknown_kind(api_version, kind, version)
end

-- What the server says of a resource: { plural, kind, namespaced }.
local function entry_of(server, resource, request, expected)
  local api_version, plural = resource:match("^(.+)/([^/]+)$")
  local entry, version, err = look_up_name(server, api_version, request, "plurals", plural, expected)
  if entry then return entry end
  return nil, err or errors.new("no_match", ("the server has no resource '%s'%s"):format(resource,
    next(version.plurals) and options.hint(plural, version.plurals) or "; " .. where_to_look(api_version)),
    { retriable = true })
end

--- Whether a resource is in namespaces. Awaits where the server has to be asked.
---@param server? kube.Client
---@param resource string
---@param request { what: string, timeout: number }
---@param expected? boolean what the caller takes it for
---@return boolean?
---@return kube.Error?
function M.is_namespaced(server, resource, request, expected)
  if groups.is_known(resource) then return not groups.is_cluster_scoped(resource) end
  local entry, err = entry_of(server, resource, request, expected)
  if not entry then return nil, err end
  return entry.namespaced
end

--- The kind of a resource, and whether it is in namespaces. Awaits.
---@param server? kube.Client
---@param resource string
---@param request { what: string, timeout: number }
---@return string?
---@return boolean|kube.Error
function M.kind_of(server, resource, request)
  local entry, err = entry_of(server, resource, request)
  if not entry then return nil, err end
  return entry.kind, entry.namespaced
end

return M
