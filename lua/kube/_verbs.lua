-- The verbs of the API on sessions: a client, and what its requests have in common. kube.client and the clients of
-- kube.new_client{} have one of their own without further ado; each controller has one with its name.
--
-- A verb raises what goes wrong; its twin with try_ returns nil and the error. Both raise misuse and the end of the
-- task.
local apply = require "kube._apply"
local client = require "kube._client"
local core = require "kube._core"
local discovery = require "kube._discovery"
local errors = require "kube._error"
local options = require "kube._options"
local pages = require "kube._pages"
local resources = require "kube._resource"
local verb_options = require "kube._verb_options"

local M = {}

---@class kube.Session
---@field get fun(self, resource: string, key: string, opts?: kube.VerbOptions): table
local Session = {}
Session.__index = Session

local PATCH_TYPES = {
  merge = "application/merge-patch+json", json = "application/json-patch+json",
  strategic = "application/strategic-merge-patch+json",
}
local APPLY_TYPE = "application/apply-patch+yaml"

-- A call of a verb: what all that it needs to know of one.
local function begin(session, verb, what, given)
  client.check_loaded(what)
  local opts = verb_options.check(verb, what, given)
  return {
    session = session, client = session._client, verb = verb, what = what, opts = opts,
    timeout = client.timeout(what, opts.timeout),
    manager = opts.field_manager or session._manager,
  }
end

-- Namespaced things are asked for with their namespace. nil, err when the server could not be asked.
local function check_scope(call, resource, namespace, advice)
  if namespace and namespace ~= "" then
    if resources.is_builtin(resource) and not discovery.is_namespaced(call.client, resource, call) then
      errors.misuse("%s: %s are in no namespace, not in '%s'", call.what, resource, namespace)
    end
    return true
  end
  local namespaced, err = discovery.is_namespaced(call.client, resource, call)
  if namespaced == nil then return nil, err end
  if namespaced then errors.misuse("%s: %s are in namespaces: %s", call.what, resource, advice) end
  return true
end

-- Where a call goes, of a resource and a key.
local function aim_at_key(call, resource, key)
  call.resource = resources.check(call.what, resource)
  call.namespace, call.name = resources.split_key(call.what, key, call.opts.namespace)
  call.key = resources.join_key(call.namespace, call.name)
  return check_scope(call, resource, call.namespace, "write the key as \"namespace/name\"")
end

local function check_object(call, object)
  if type(object) ~= "table" then
    errors.misuse("%s takes an object, { apiVersion =, kind =, metadata = { name = } }, not a %s", call.what,
      type(object))
  end
  for _, name in ipairs { "apiVersion", "kind" } do
    if type(object[name]) ~= "string" or object[name] == "" then
      errors.misuse("%s: the object has no %s", call.what, name)
    end
  end
  local metadata = object.metadata
  if type(metadata) ~= "table" then errors.misuse("%s: the object has no metadata", call.what) end
  local generated = call.verb == "create" and not call.opts.subresource and type(metadata.generateName) == "string"
  if type(metadata.name) ~= "string" and not generated then
    errors.misuse("%s: the object has no metadata.name%s", call.what,
      call.verb == "create" and " and no metadata.generateName" or "")
  end
end

-- The namespace of the object, or the one of the options, which then goes into the object.
local function place(call, object)
  local namespace, wanted = object.metadata.namespace, call.opts.namespace
  if namespace == "" then namespace = nil end
  if namespace and wanted and namespace ~= wanted then
    errors.misuse("%s: the object is in namespace '%s', not in '%s'", call.what, namespace, wanted)
  end
  if not namespace and wanted and wanted ~= "" then
    object = core.codec.copy(object)
    object.metadata.namespace, namespace = wanted, wanted
  end
  return object, namespace
end

-- Where a call goes, of an object; the object as it is sent.
local function aim_at_object(call, object)
  check_object(call, object)
  local resource, err = call.opts.resource
  if resource then
    resources.check(call.what, resource)
  else
    resource, err = discovery.resource_of(call.client, object.apiVersion, object.kind, call)
    if not resource then return nil, err end
  end
  object, call.namespace = place(call, object)
  call.resource, call.name = resource, object.metadata.name
  call.key = call.name and resources.join_key(call.namespace, call.name)
  local ok
  ok, err = check_scope(call, resource, call.namespace, "set metadata.namespace of the object, or namespace = \"...\"")
  if not ok then return nil, err end
  return object
end

-- Whether the answer is the object of this resource, and not the Scale or the Status of a subresource.
local function is_object(call, answer)
  return type(answer) == "table" and type(answer.metadata) == "table" and answer.metadata.name ~= nil
    and answer.apiVersion == resources.api_version(call.resource)
end

local function observed(call, answer, sent)
  local observe = call.session._observe
  if not observe or call.opts.dry_run then return end
  if call.opts.subresource and not is_object(call, answer) then return end
  local object = answer
  if call.verb == "delete" and not is_object(call, answer) then object = nil end
  local key = call.key or (object and call.verb == "create" and core.codec.object_key(object)) or nil
  observe(call.verb == "update_status" and "update" or call.verb, call.resource, key, object, sent)
end

-- Sends what a call has become. Its answer: the object, or the text of what is none.
local function send(call, method, more)
  local query = verb_options.query(call.opts, method)
  for name, value in pairs(more.query or {}) do query[name] = value end
  local path = resources.path(call.resource, call.namespace, more.name, more.subresource or call.opts.subresource)
  local parameters = client.query_text(call.what, query)
  local response, err = client.exchange(call.client, {
    what = call.what, method = method, timeout = call.timeout, accept = more.accept,
    path = parameters ~= "" and path .. "?" .. parameters or path,
    content_type = more.content_type or "application/json",
    body = more.body and client.encoded(call.what, more.body),
  })
  if not response then return nil, err end
  local answer = response.object
  if answer == nil then answer = response.body end
  observed(call, answer, more.sent)
  return answer
end

local verbs = {}

function verbs.get(call, resource, key)
  local ok, err = aim_at_key(call, resource, key)
  if not ok then return nil, err end
  return send(call, "GET", { name = call.name, query = { resourceVersion = call.opts.resource_version },
    accept = call.opts.subresource and "application/json, */*" or nil })
end

function verbs.create(call, object)
  local sent, err = aim_at_object(call, object)
  if not sent then return nil, err end
  return send(call, "POST", { name = call.opts.subresource and call.name, body = sent, sent = sent,
    query = { fieldManager = call.manager } })
end

-- What a PUT leaves out is deleted.
local function check_whole(call, object)
  local only_metadata = type(object) == "table" and object.kind == "PartialObjectMetadata"
  if not only_metadata and not core.codec.is_partial(object) then return end
  errors.misuse("%s: the object is not whole, and what is missing would be deleted: its informer has %s. Use "
    .. "client:apply or client:patch with the fields that are yours, or read it whole with client:get", call.what,
    only_metadata and "metadata only" or "a transform")
end

local function update(call, object, subresource)
  check_whole(call, object)
  local sent, err = aim_at_object(call, object)
  if not sent then return nil, err end
  return send(call, "PUT", { name = call.name, body = sent, sent = sent, subresource = subresource,
    query = { fieldManager = call.manager } })
end

function verbs.update(call, object) return update(call, object) end

function verbs.update_status(call, object) return update(call, object, "status") end

function verbs.patch(call, resource, key, patch)
  local kind = call.opts.type or "merge"
  if type(patch) ~= "table" and type(patch) ~= "string" then
    errors.misuse("%s takes the patch third, a table or JSON, not a %s", call.what, type(patch))
  end
  if kind == "json" and type(patch) == "table" then
    if next(patch) ~= nil and patch[1] == nil then
      errors.misuse("%s: a JSON patch is a list of { op =, path =, value = }", call.what)
    end
    patch = core.codec.array(patch)
  end
  local ok, err = aim_at_key(call, resource, key)
  if not ok then return nil, err end
  return send(call, "PATCH", { name = call.name, body = patch, sent = patch, content_type = PATCH_TYPES[kind],
    query = { fieldManager = call.manager } })
end

function verbs.apply(call, object)
  local sent, err = aim_at_object(call, object)
  if not sent then return nil, err end
  local force = call.opts.force
  if force == nil then force = call.session._manager ~= nil end
  call.manager = call.manager or "moonwatch"
  local noted, known = apply.look(call, sent, force)
  if known then return known end
  local answer
  answer, err = send(call, "PATCH", { name = call.name, body = noted.text or sent, sent = sent,
    content_type = APPLY_TYPE, query = { fieldManager = call.manager, force = force or nil } })
  apply.note(noted, answer ~= nil)
  return answer, err
end

-- All of them go into the body: with one, servers do not look at the query.
local function delete_options(opts)
  local body = { kind = "DeleteOptions", apiVersion = "v1", gracePeriodSeconds = opts.grace,
    propagationPolicy = opts.propagation, dryRun = opts.dry_run and core.codec.array { "All" } or nil }
  if opts.uid or opts.resource_version then
    body.preconditions = { uid = opts.uid, resourceVersion = opts.resource_version }
  end
  return body
end

function verbs.delete(call, resource, key)
  local ok, err = aim_at_key(call, resource, key)
  if not ok then return nil, err end
  return send(call, "DELETE", { name = call.name, body = delete_options(call.opts) })
end

function verbs.delete_collection(call, resource)
  local opts = call.opts
  call.resource, call.namespace = resources.check(call.what, resource), opts.namespace
  if not (opts.label_selector or opts.field_selector or opts.all) then
    errors.misuse("%s deletes every one of them: say which by label_selector or field_selector, or say all = true",
      call.what)
  end
  local ok, err = check_scope(call, resource, opts.namespace, "say which by namespace = \"...\"")
  if not ok then return nil, err end
  return send(call, "DELETE", { body = delete_options(opts) })
end

-- One page of a list, for pages.lua: its items, complete with apiVersion and kind, and its metadata.
local function page(call, query)
  local answer, err = send(call, "GET", { query = query })
  if not answer then return nil, err end
  if type(answer) ~= "table" or type(answer.items) ~= "table" then
    return nil, errors.new("parse", ("%s: the answer for %s is not a list"):format(call.what, call.resource),
      { retriable = false })
  end
  local kind = type(answer.kind) == "string" and answer.kind:match("^(.+)List$")
  for _, item in ipairs(answer.items) do
    item.apiVersion, item.kind = item.apiVersion or answer.apiVersion, item.kind or kind
  end
  return answer
end

local function aim_at_list(call, resource)
  call.resource, call.namespace = resources.check(call.what, resource), call.opts.namespace
  if call.namespace and call.namespace ~= "" then check_scope(call, resource, call.namespace) end
  return call
end

function verbs.list(call, resource) return pages.all(aim_at_list(call, resource), page) end

-- Returns what a verb returned, or raises its error.
local function results(first, ...)
  if first ~= nil then return first, ... end
  errors.raise((...))
end

-- The last argument of a verb is its options.
local ARGUMENTS = { get = 2, create = 1, update = 1, update_status = 1, patch = 3, apply = 1, delete = 2,
  delete_collection = 1, list = 1 }

for verb, run in pairs(verbs) do
  local count = ARGUMENTS[verb]
  local function call_verb(self, what, ...)
    if select("#", ...) > count + 1 then errors.misuse("%s takes %d arguments and options", what, count) end
    local call = begin(self, verb, what, (select(count + 1, ...)))
    return run(call, ...)
  end
  Session[verb] = function(self, ...) return results(call_verb(self, "client:" .. verb, ...)) end
  Session["try_" .. verb] = function(self, ...) return call_verb(self, "client:try_" .. verb, ...) end
end

--- Goes through the objects of a resource page by page: `for object in client:each("v1/pods", opts) do`. Where a
--- page has expired, it goes on in the state of now, where the server says; objects are never seen twice.
---@param resource string
---@param opts? kube.VerbOptions
---@return fun(): table?
function Session:each(resource, opts)
  local call = aim_at_list(begin(self, "each", "client:each", opts), resource)
  return pages.each(call, page)
end

--- A request that has no verb, as kube.request.
function Session:request(opts) return client.request(self._client, opts, "client:request") end

--- The same, but returns nil and the error.
function Session:try_request(opts) return client.try_request(self._client, opts, "client:try_request") end

-- A client has the verbs, too: on a session without a name. It is made for each call, because a table by client
-- that holds what holds the client would never let go of it.
local Client = core.client.methods
for name, verb in pairs(Session) do
  if type(verb) == "function" and rawget(Client, name) == nil then
    Client[name] = function(self, ...) return verb(setmetatable({ _client = self }, Session), ...) end
  end
end
options.guard(Client, "client", { is = function(value) return getmetatable(value) == "kube.client" end })
options.guard(Session, "client")

local session_options = { client = "client", field_manager = "string", observe = "function", cached = "function" }

--- A session: verbs with a field manager, and with eyes for what was written.
---@param opts { client?: kube.Client, field_manager?: string, observe?: function, cached?: function } observe(verb,
--- resource, key, object, sent) hears of every answered request; cached(resource, key) tells what the cache has
---@return kube.Session
function M.session(opts)
  opts = options.check("session", opts, session_options)
  return setmetatable({ _client = opts.client, _manager = opts.field_manager, _observe = opts.observe,
    _cached = opts.cached }, Session)
end

--- The resource of an object: "apps/v1/deployments". Awaits where the server has to be asked; raises.
---@param server? kube.Client
---@param object table with apiVersion and kind
---@return string resource
---@return boolean namespaced
function M.resource_of(server, object)
  local call = { what = "resource_of", verb = "get", timeout = client.timeout("resource_of"), opts = {} }
  for _, name in ipairs { "apiVersion", "kind" } do
    if type(object) ~= "table" or type(object[name]) ~= "string" then
      errors.misuse("%s: the object has no %s", call.what, name)
    end
  end
  return results(discovery.resource_of(server, object.apiVersion, object.kind, call))
end

return M
