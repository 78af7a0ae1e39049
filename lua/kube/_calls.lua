-- What becomes of a call of a verb: where it goes, what is sent, and what it returns. kube._verbs has the methods.
--
-- Each function here takes the call first and returns what the verb returns, or nil and the error.
local apply = require "kube._apply"
local client = require "kube._client"
local core = require "kube._core"
local discovery = require "kube._discovery"
local errors = require "kube._error"
local groups = require "kube._groups"
local pages = require "kube._pages"
local resources = require "kube._resource"
local verb_options = require "kube._verb_options"
local writes = require "kube._writes"

local M = {}

local PATCH_TYPES = {
  merge = "application/merge-patch+json", json = "application/json-patch+json",
  strategic = "application/strategic-merge-patch+json",
}
local APPLY_TYPE = "application/apply-patch+yaml"

--- A call of a verb.
---@param session kube.Session
---@param verb string
---@param what string the name of the function in messages
---@param given? table its options
---@return table
function M.begin(session, verb, what, given)
  client.check_loaded(what)
  local opts = verb_options.check(verb, what, given)
  return {
    session = session, client = session._client, verb = verb, what = what, opts = opts,
    timeout = client.timeout(what, opts.timeout), began = core.task.now(),
    manager = opts.field_manager or session._manager,
  }
end

local function refuse_namespace(call, resource, namespace)
  errors.misuse("%s: %s are in no namespace, not in '%s'", call.what, resource, namespace)
end

-- Namespaced things are asked for with their namespace. nil, err when the server could not be asked.
local function check_scope(call, resource, namespace, advice)
  if namespace and namespace ~= "" then
    if groups.is_known(resource) and not discovery.is_namespaced(call.client, resource, call) then
      refuse_namespace(call, resource, namespace)
    end
    return true
  end
  local namespaced, err = discovery.is_namespaced(call.client, resource, call, false)
  if namespaced == nil then return nil, err end
  if namespaced then errors.misuse("%s: %s are in namespaces: %s", call.what, resource, advice) end
  return true
end

-- Where a call goes, of a resource and a key.
local function aim_at_key(call, resource, key)
  call.resource = resources.check(call.what, resource)
  call.namespace, call.name = resources.split_key(call.what, key, call.opts.namespace)
  call.key = resources.join_key(call.namespace, call.name)
  writes.check_call(call)
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
  object, call.namespace = place(call, object)
  local resource, namespaced = call.opts.resource
  if resource then
    resources.check(call.what, resource)
  else
    resource, namespaced = discovery.resource_of(call.client, object.apiVersion, object.kind, call,
      call.namespace ~= nil)
    if not resource then return nil, namespaced end
    call.by_kind = true
  end
  if namespaced == false and call.namespace then refuse_namespace(call, resource, call.namespace) end
  call.resource, call.name = resource, object.metadata.name
  call.key = call.name and resources.join_key(call.namespace, call.name)
  writes.check_call(call)
  local ok, err = check_scope(call, resource, call.namespace,
    "set metadata.namespace of the object, or namespace = \"...\"")
  if not ok then return nil, err end
  return object
end

-- Whether the answer is the object of this resource, and not the Scale or the Status of a subresource.
local function is_object(call, answer)
  return type(answer) == "table" and type(answer.metadata) == "table" and answer.metadata.name ~= nil
    and answer.apiVersion == resources.api_version(call.resource)
end

-- Completes the items of a list with apiVersion and kind; false for what is none.
local function complete(list)
  if list.items == core.codec.null then list.items = core.codec.array {} end
  if type(list.items) ~= "table" then return false end
  local kind = type(list.kind) == "string" and list.kind:match("^(.+)List$")
  for _, item in ipairs(list.items) do
    item.apiVersion, item.kind = item.apiVersion or list.apiVersion, item.kind or kind
  end
  return true
end

-- What observers call a verb, where that is not its name.
local OBSERVED = { each = "list", update_status = "update" }

local function observed(call, answer, sent)
  local observe = call.session._observe
  if not observe or call.opts.dry_run then return end
  if call.opts.subresource and not is_object(call, answer) then return end
  local object = answer
  if call.verb == "delete" and not is_object(call, answer) then object = nil end
  if call.verb == "delete_collection" and not complete(answer) then object = nil end
  local key = call.key or (object and call.verb == "create" and core.codec.object_key(object)) or nil
  observe(OBSERVED[call.verb] or call.verb, call.resource, key, object, sent)
end

-- Whether an answer says that there is no such collection: where an object or a namespace is missing, it has a name.
local function is_lost(call, err)
  return err.status == 404 and not (err.details and err.details.name) and not groups.is_known(call.resource)
end

-- The server's refusal, with what it has instead of a collection that it does not have.
local function explained(call, err)
  if call.by_kind or not is_lost(call, err) then return err end
  discovery.forget(call.client, call.resource, call.began)
  local named = call.namespace ~= nil and call.namespace ~= ""
  local namespaced, why = discovery.is_namespaced(call.client, call.resource, call)
  if namespaced == nil and why.code == "no_match" then
    err.message = ("%s: %s"):format(err.message, why.message)
  elseif namespaced ~= nil and namespaced ~= named then
    err.message = ("%s: %s are in %s"):format(err.message, call.resource, namespaced and "namespaces" or "no namespace")
  end
  return err
end

-- Sends what a call has become. Its answer: the object, or of a subresource the text of what is none.
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
  if not response then return nil, explained(call, err) end
  local answer = response.object
  if answer == nil and call.opts.subresource then answer = response.body end
  if answer == nil then
    return nil, errors.new("parse", ("%s: the answer of %s %s is not JSON"):format(call.what, method, path),
      { status = response.status, retriable = false })
  end
  observed(call, answer, more.sent)
  return answer
end

function M.get(call, resource, key)
  local ok, err = aim_at_key(call, resource, key)
  if not ok then return nil, err end
  return send(call, "GET", { name = call.name, query = { resourceVersion = call.opts.resource_version },
    accept = call.opts.subresource and "application/json, */*" or nil })
end

-- A verb that takes an object, which go(sent) sends. A kind that is not where it was is looked for once more.
local function with_object(call, object, go)
  local sent, err = aim_at_object(call, object)
  if not sent then return nil, err end
  local answer
  answer, err = go(sent)
  if answer ~= nil or not call.by_kind or not is_lost(call, err) then return answer, err end
  local before = call.resource
  discovery.forget(call.client, before, call.began)
  local again, problem = aim_at_object(call, object)
  if not again then return nil, problem end
  if call.resource == before then return nil, err end
  return go(again)
end

function M.create(call, object)
  return with_object(call, object, function(sent)
    return send(call, "POST", { name = call.opts.subresource and call.name, body = sent, sent = sent,
      query = { fieldManager = call.manager } })
  end)
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
  return with_object(call, object, function(sent)
    return send(call, "PUT", { name = call.name, body = sent, sent = sent, subresource = subresource,
      query = { fieldManager = call.manager } })
  end)
end

function M.update(call, object) return update(call, object) end

function M.update_status(call, object) return update(call, object, "status") end

function M.patch(call, resource, key, patch)
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

local function apply_object(call, sent)
  local force = call.opts.force
  if force == nil then force = call.session._manager ~= nil end
  call.manager = call.manager or "moonwatch"
  local noted, known = apply.look(call, sent, force)
  if known then return known end
  local answer, err = send(call, "PATCH", { name = call.name, body = noted.text or sent, sent = sent,
    content_type = APPLY_TYPE, query = { fieldManager = call.manager, force = force or nil } })
  apply.note(noted, answer ~= nil)
  return answer, err
end

function M.apply(call, object)
  return with_object(call, object, function(sent) return apply_object(call, sent) end)
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

function M.delete(call, resource, key)
  local ok, err = aim_at_key(call, resource, key)
  if not ok then return nil, err end
  return send(call, "DELETE", { name = call.name, body = delete_options(call.opts) })
end

function M.delete_collection(call, resource)
  local opts = call.opts
  call.resource, call.namespace = resources.check(call.what, resource), opts.namespace
  if not (opts.label_selector or opts.field_selector or opts.all) then
    errors.misuse("%s deletes every one of them: say which by label_selector or field_selector, or say all = true",
      call.what)
  end
  writes.check_call(call)
  local ok, err = check_scope(call, resource, opts.namespace, "say which by namespace = \"...\"")
  if not ok then return nil, err end
  local body = delete_options(opts)
  return send(call, "DELETE", { body = body, sent = body })
end

-- One page of a list, for pages.lua: its items, complete with apiVersion and kind, and its metadata.
local function page(call, query)
  local answer, err = send(call, "GET", { query = query })
  if not answer then return nil, err end
  if not complete(answer) then
    return nil, errors.new("parse", ("%s: the answer for %s is not a list"):format(call.what, call.resource),
      { retriable = false })
  end
  return answer
end

local function aim_at_list(call, resource)
  call.resource, call.namespace = resources.check(call.what, resource), call.opts.namespace
  if call.namespace and call.namespace ~= "" then check_scope(call, resource, call.namespace) end
  return call
end

function M.list(call, resource) return pages.all(aim_at_list(call, resource), page) end

--- Returns an iterator, which raises.
function M.each(call, resource) return pages.each(aim_at_list(call, resource), page) end

return M
