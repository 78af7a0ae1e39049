-- The verbs of the API on sessions: a client, and what its requests have in common. kube.client and the clients of
-- kube.new_client{} have one of their own without further ado; each controller has one with its name.
--
-- A verb raises what goes wrong; its twin with try_ returns nil and the error. Both raise misuse and the end of the
-- task.
local calls = require "kube._calls"
local client = require "kube._client"
local core = require "kube._core"
local discovery = require "kube._discovery"
local errors = require "kube._error"
local options = require "kube._options"
local writes = require "kube._writes"

local M = {}

--- Who has the verbs: kube.client, a client of kube.new_client, or the ctx.client of a controller.
---@class kube.Session
local Session = {}
Session.__index = Session

-- Returns what a verb returned, or raises its error.
local function results(first, ...)
  if first ~= nil then return first, ... end
  errors.raise((...))
end

local function try(self, verb, opts, ...)
  return calls[verb](calls.begin(self, verb, "client:try_" .. verb, opts), ...)
end

local function run(self, verb, opts, ...)
  return results(calls[verb](calls.begin(self, verb, "client:" .. verb, opts), ...))
end

--- Reads an object, or with subresource = "log" or so the text of what is none.
---@param resource string "v1/pods", "apps/v1/deployments"
---@param key string "ns/name", or "name"
---@param opts? kube.VerbOptions
---@return table
function Session:get(resource, key, opts) return run(self, "get", opts, resource, key) end

--- The same, but returns nil and the error.
---@param resource string "v1/pods", "apps/v1/deployments"
---@param key string "ns/name", or "name"
---@param opts? kube.VerbOptions
---@return table?
---@return kube.Error?
function Session:try_get(resource, key, opts) return try(self, "get", opts, resource, key) end

--- Reads all objects of a resource, in pages of 500, complete with apiVersion and kind. What is returned was there at
--- one moment: when a page has expired, all is read anew in one piece. With `limit` it is one page.
---@param resource string "v1/pods", "apps/v1/deployments"
---@param opts? kube.VerbOptions
---@return table[] objects
---@return table metadata with resourceVersion; with `limit` also continue
function Session:list(resource, opts) return run(self, "list", opts, resource) end

--- The same, but returns nil and the error.
---@param resource string "v1/pods", "apps/v1/deployments"
---@param opts? kube.VerbOptions
---@return table[]? objects
---@return kube.Error? err or the metadata
function Session:try_list(resource, opts) return try(self, "list", opts, resource) end

--- Goes through the objects of a resource page by page: `for object in client:each("v1/pods", opts) do`. Where a
--- page has expired it goes on in the state of now, at the place that the server names; where it names none, that is
--- raised.
---@param resource string
---@param opts? kube.VerbOptions
---@return fun(): table?
function Session:each(resource, opts) return run(self, "each", opts, resource) end

--- Creates an object; metadata.generateName will do for a name.
---@param object table with apiVersion, kind and metadata
---@param opts? kube.VerbOptions
---@return table created as the server has it
function Session:create(object, opts) return run(self, "create", opts, object) end

--- The same, but returns nil and the error.
---@param object table with apiVersion, kind and metadata
---@param opts? kube.VerbOptions
---@return table? created as the server has it
---@return kube.Error?
function Session:try_create(object, opts) return try(self, "create", opts, object) end

--- Replaces an object. It must be whole: what is missing is deleted. Of an object that was changed by others since it
--- was read this is a conflict; see kube.retry_on_conflict.
---@param object table with apiVersion, kind and metadata
---@param opts? kube.VerbOptions
---@return table updated as the server has it
function Session:update(object, opts) return run(self, "update", opts, object) end

--- The same, but returns nil and the error.
---@param object table with apiVersion, kind and metadata
---@param opts? kube.VerbOptions
---@return table? updated as the server has it
---@return kube.Error?
function Session:try_update(object, opts) return try(self, "update", opts, object) end

--- Replaces the status of an object, and nothing else.
---@param object table with apiVersion, kind and metadata
---@param opts? kube.VerbOptions
---@return table updated as the server has it
function Session:update_status(object, opts) return run(self, "update_status", opts, object) end

--- The same, but returns nil and the error.
---@param object table with apiVersion, kind and metadata
---@param opts? kube.VerbOptions
---@return table? updated as the server has it
---@return kube.Error?
function Session:try_update_status(object, opts) return try(self, "update_status", opts, object) end

--- Changes parts of an object: by a merge patch, or what `type` says.
---@param resource string "v1/pods", "apps/v1/deployments"
---@param key string "ns/name", or "name"
---@param patch table|string of type "json" a list of { op =, path =, value = }
---@param opts? kube.VerbOptions
---@return table patched as the server has it
function Session:patch(resource, key, patch, opts) return run(self, "patch", opts, resource, key, patch) end

--- The same, but returns nil and the error.
---@param resource string "v1/pods", "apps/v1/deployments"
---@param key string "ns/name", or "name"
---@param patch table|string of type "json" a list of { op =, path =, value = }
---@param opts? kube.VerbOptions
---@return table? patched as the server has it
---@return kube.Error?
function Session:try_patch(resource, key, patch, opts) return try(self, "patch", opts, resource, key, patch) end

--- Sees to it that the fields of an object are as given, and are ours (server-side apply); fields that we gave before
--- and give no longer are removed. A controller's apply is not sent when it would change nothing; then what the cache
--- has is returned, which is read-only.
---@param object table with apiVersion, kind and metadata
---@param opts? kube.VerbOptions
---@return table applied as the server has it
function Session:apply(object, opts) return run(self, "apply", opts, object) end

--- The same, but returns nil and the error.
---@param object table with apiVersion, kind and metadata
---@param opts? kube.VerbOptions
---@return table? applied as the server has it
---@return kube.Error?
function Session:try_apply(object, opts) return try(self, "apply", opts, object) end

--- Deletes an object.
---@param resource string "v1/pods", "apps/v1/deployments"
---@param key string "ns/name", or "name"
---@param opts? kube.VerbOptions
---@return table answer the object, or a Status
function Session:delete(resource, key, opts) return run(self, "delete", opts, resource, key) end

--- The same, but returns nil and the error.
---@param resource string "v1/pods", "apps/v1/deployments"
---@param key string "ns/name", or "name"
---@param opts? kube.VerbOptions
---@return table? answer the object, or a Status
---@return kube.Error?
function Session:try_delete(resource, key, opts) return try(self, "delete", opts, resource, key) end

--- Deletes all objects that selectors choose, or with all = true every one of them.
---@param resource string "v1/pods", "apps/v1/deployments"
---@param opts? kube.VerbOptions
---@return table answer a list of what was deleted, as it was before that, or a Status
function Session:delete_collection(resource, opts) return run(self, "delete_collection", opts, resource) end

--- The same, but returns nil and the error.
---@param resource string "v1/pods", "apps/v1/deployments"
---@param opts? kube.VerbOptions
---@return table? answer a list of what was deleted, as it was before that, or a Status
---@return kube.Error?
function Session:try_delete_collection(resource, opts) return try(self, "delete_collection", opts, resource) end

--- A request that has no verb, as kube.request.
---@param opts kube.RequestOptions
---@return kube.Response
function Session:request(opts)
  writes.check_request(self, opts, "client:request")
  return client.request(self._client, opts, "client:request")
end

--- The same, but returns nil and the error.
---@param opts kube.RequestOptions
---@return kube.Response?
---@return kube.Error?
function Session:try_request(opts)
  writes.check_request(self, opts, "client:try_request")
  return client.try_request(self._client, opts, "client:try_request")
end

-- A client has the verbs, too: on a session without a name. It is made for each call, because a table by client
-- that holds what holds the client would never let go of it.
local Client = core.client.methods
for _, name in ipairs { "server", "context", "namespace" } do Client[name] = core.client[name] end
for name, verb in pairs(Session) do
  if type(verb) == "function" and rawget(Client, name) == nil then
    Client[name] = function(self, ...) return verb(setmetatable({ _client = self }, Session), ...) end
  end
end
options.guard(Client, "client", { is = function(value) return getmetatable(value) == "kube.client" end })
options.guard(Session, "client")

local session_options = { client = "client", field_manager = "string", observe = "function", cached = "function",
  writes = "table" }

--- A session: verbs with a field manager, and with eyes for what was written.
---@param opts { client?: kube.Client, field_manager?: string, observe?: function, cached?: function, writes?: table }
--- observe(verb, resource, key, object, sent) hears of every answered request; cached(resource, key) tells what the
--- cache has; writes: { controller =, allowed =, cached = }, the only writes that are let through
---@return kube.Session
function M.session(opts)
  opts = options.check("session", opts, session_options)
  return setmetatable({ _client = opts.client, _manager = opts.field_manager, _observe = opts.observe,
    _cached = opts.cached, _writes = opts.writes }, Session)
end

--- The resource of an object: "apps/v1/deployments". Awaits where the server has to be asked; raises.
---@param server? kube.Client
---@param object table with apiVersion and kind
---@return string resource
---@return boolean namespaced
function M.resource_of(server, object)
  for _, name in ipairs { "apiVersion", "kind" } do
    if type(object) ~= "table" or type(object[name]) ~= "string" then
      errors.misuse("resource_of: the object has no %s", name)
    end
  end
  return results(discovery.resource_of(server, object.apiVersion, object.kind,
    { what = "resource_of", timeout = client.timeout("resource_of") }))
end

return M
