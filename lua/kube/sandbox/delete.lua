-- DELETE: of one object, and of a collection.
local field = require "kube.sandbox.field"
local host = require "kube._server"
local json = require "kube.sandbox.json"
local list = require "kube.sandbox.list"
local body = require "kube.sandbox.body"
local object = require "kube.sandbox.object"
local protobuf = require "kube.sandbox.protobuf"
local request = require "kube.sandbox.request"
local status = require "kube.sandbox.status"
local unenforced = require "kube.sandbox.unenforced"
local strict = require "kube.sandbox.validate.strict"

local delete = {}

-- What strict.check needs to know of a kind.
local OPTIONS = { builtin = true, definition = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions" }

local POLICIES = { Foreground = true, Background = true, Orphan = true }

local function decode_options(ctx)
  local text = ctx.request.body or ""
  local media = body.media_type(ctx.request.header("content-type"))
  if media == "application/vnd.kubernetes.protobuf" then
    local options, problem = protobuf.decode(text, nil)
    return options or error(status.bad_request("%s", problem))
  end
  local options
  if media == "application/yaml" then
    local documents, problem = host.yaml_decode(text)
    if not documents then error(status.bad_request("%s", problem)) end
    options = documents[1]
  elseif media == "" or media == "application/json" then
    options = body.read_json(text, function(why) return status.bad_request("%s", why) end)
  else
    error(status.unsupported_media_type(body.ACCEPTED))
  end
  local kind = options.kind or ""
  if kind ~= "" and kind ~= "DeleteOptions" then
    error(status.bad_request('no kind "%s" is registered for version "%s" in scheme "pkg/runtime/scheme.go:111"', kind,
      options.apiVersion or "meta.k8s.io/v1"))
  end
  local clean, _, refusal = strict.check(OPTIONS, options, text)
  if refusal then error(status.bad_request("%s", refusal)) end
  return clean
end

local function query_options(info)
  return {
    gracePeriodSeconds = request.integer(info, "gracePeriodSeconds"),
    propagationPolicy = request.value(info, "propagationPolicy"),
    orphanDependents = request.flag(info, "orphanDependents"),
    dryRun = info.query.dryRun,
  }
end

local function check_options(options)
  local errors = {}
  local policy = options.propagationPolicy
  if policy ~= nil and options.orphanDependents ~= nil then
    errors[#errors + 1] = field.invalid("propagationPolicy", policy,
      "orphanDependents and deletionPropagation cannot be both set")
  elseif policy ~= nil and not POLICIES[policy] then
    errors[#errors + 1] = field.not_supported("propagationPolicy", policy,
      { "Foreground", "Background", "Orphan", "nil" })
  end
  for _, value in ipairs(options.dryRun or {}) do
    if value ~= "All" then
      errors[#errors + 1] = field.not_supported("dryRun", json.array(options.dryRun), { "All" })
      break
    end
  end
  if errors[1] then error(status.invalid({ kind = "DeleteOptions", group = "meta.k8s.io" }, "", errors)) end
end

--- The DeleteOptions of the request: of its body, or of its query when there is no body.
function delete.options(ctx)
  local options = (ctx.request.body or "") ~= "" and decode_options(ctx) or query_options(ctx.info)
  local plain = {}
  for key, value in pairs(options) do
    if value ~= json.null then plain[key] = value end
  end
  check_options(plain)
  plain.dry_run = plain.dryRun ~= nil and plain.dryRun[1] ~= nil
  return plain
end

local function check_preconditions(R, document, given)
  local m = document.metadata
  local uid, version = json.get(given, "uid"), json.get(given, "resourceVersion")
  if uid and uid ~= m.uid then
    error(status.conflict(R, m.name, ("the UID in the precondition (%s) does not match the UID in record (%s). The "
      .. "object might have been deleted and then recreated"):format(uid, m.uid), R.kind))
  end
  if version and version ~= m.resourceVersion then
    error(status.conflict(R, m.name, ("the ResourceVersion in the precondition (%s) does not match the ResourceVersion "
      .. "in record (%s). The object might have been modified"):format(version, m.resourceVersion), R.kind))
  end
end

-- The collector's finalizers after this request: what it asks for, else what is there, else what
-- the kind does by itself.
local function collector_finalizers(R, document, options)
  local orphan, foreground = false, false
  for _, name in ipairs(document.metadata.finalizers or {}) do
    orphan, foreground = orphan or name == "orphan", foreground or name == "foregroundDeletion"
  end
  local policy = options.propagationPolicy
  if options.orphanDependents ~= nil then policy = options.orphanDependents and "Orphan" or "Background" end
  if not policy and not orphan and not foreground then policy = R.rules.default_policy end
  if policy then orphan, foreground = policy == "Orphan", policy == "Foreground" end
  return orphan, foreground
end

local function finalizers_of(R, document, options)
  local kept = json.array {}
  for _, name in ipairs(document.metadata.finalizers or {}) do
    if name ~= "orphan" and name ~= "foregroundDeletion" then kept[#kept + 1] = name end
  end
  local orphan, foreground = collector_finalizers(R, document, options)
  if orphan then kept[#kept + 1] = "orphan" end
  if foreground then kept[#kept + 1] = "foregroundDeletion" end
  return kept[1] and kept or nil
end

-- Seconds that the object has after this request. A deletion under way can only be made shorter.
local function grace_of(ctx, document, options)
  local own = ctx.R.strategy and ctx.R.strategy.grace
  if not own then return 0 end
  local given = options.gracePeriodSeconds
  if given and given < 0 then given = 1 end
  local seconds = own(ctx, document, given)
  if document.metadata.deletionTimestamp then
    seconds = math.min(given or document.metadata.deletionGracePeriodSeconds or 0,
      document.metadata.deletionGracePeriodSeconds or 0)
  end
  return seconds
end

-- The object as it waits for its end.
local function marked(ctx, document, finalizers, seconds)
  local m = json.shallow(document.metadata)
  m.finalizers = finalizers
  local shorter = m.deletionTimestamp and seconds < (m.deletionGracePeriodSeconds or 0)
  if not m.deletionTimestamp or shorter then
    if not m.deletionTimestamp and (m.generation or 0) > 0 then m.generation = m.generation + 1 end
    m.deletionTimestamp = ctx.S.clock.rfc3339(ctx.S.clock:now() + seconds)
    m.deletionGracePeriodSeconds = seconds
  end
  return json.with(document, "metadata", m)
end

local function store(ctx, document)
  local R = ctx.R
  return object.view(R, ctx.S.store:update(R, object.key_of(R, document), object.stored(R, document)))
end

-- A kind that could have had time is marked first, so that its watchers see why it goes.
local function removed(ctx, document, options)
  local R = ctx.R
  if R.rules.graceful then
    local new = marked(ctx, document, nil, 0)
    document = options.dry_run and new or store(ctx, new)
  end
  if not options.dry_run then
    document = object.view(R, ctx.S.store:delete(R, object.key_of(R, document)))
  end
  if R.rules.returns_deleted then return 200, document end
  return 200, status.success(R, document.metadata.name, document.metadata.uid)
end

--- Deletes a document as the options want: the answer's code and document.
function delete.commit(ctx, document, options)
  local R = ctx.R
  if options.preconditions then check_preconditions(R, document, options.preconditions) end
  unenforced.warn_delete(ctx, document)
  local own = R.strategy and R.strategy.delete
  if own then
    local code, answer = own(ctx, document, options)
    if code then return code, answer end
  end
  local finalizers = finalizers_of(R, document, options)
  local seconds = grace_of(ctx, document, options)
  if not finalizers and seconds == 0 then return removed(ctx, document, options) end
  local new = marked(ctx, document, finalizers, seconds)
  if not json.equal(new, document) and not options.dry_run then new = store(ctx, new) end
  return options.orphanDependents == false and 202 or 200, new
end

--- Handles a request for one object.
function delete.run(ctx)
  local options = delete.options(ctx)
  return delete.commit(ctx, object.get(ctx), options)
end

--- Handles a request for a collection: everything that the selectors select, one by one.
function delete.collection(ctx)
  local options = delete.options(ctx)
  local code, document = list.run(ctx)
  for _, item in ipairs(document.items) do
    local m = item.metadata
    local current = ctx.S.store:get(ctx.R.storage, object.key(ctx.R, m.namespace, m.name))
    if current then delete.commit(ctx, object.view(ctx.R, current), options) end
  end
  return code, document
end

return delete
