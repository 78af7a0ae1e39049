-- POST: a new object.
local body = require "kube.sandbox.body"
local json = require "kube.sandbox.json"
local managed = require "kube.sandbox.apply.managed"
local meta = require "kube.sandbox.meta"
local object = require "kube.sandbox.object"
local request = require "kube.sandbox.request"
local reset_fields = require "kube.sandbox.apply.reset_fields"
local schema = require "kube.sandbox.schema"
local status = require "kube.sandbox.status"
local strategy = require "kube.sandbox.strategy"

local create = {}

-- The longest base of a generated name: 63 less the suffix.
local GENERATED_BASE_MAX = 58
local GENERATED_TRIES = 8

local function generate_name(ctx, m)
  local base = m.generateName:sub(1, GENERATED_BASE_MAX)
  for _ = 1, GENERATED_TRIES do
    m.name = base .. ctx.S.ids:suffix()
    if not ctx.S.store:get(ctx.R.storage, object.key(ctx.R, m.namespace, m.name)) then return end
  end
  local e = status.already_exists(ctx.R, m.name)
  e.document.message = e.document.message .. ", the server was not able to generate a unique name for the object"
  e.document.details.retryAfterSeconds = 1
  error(e)
end

-- Fields that only the server sets.
local function wipe(ctx, m)
  m.uid, m.creationTimestamp = ctx.S.ids:uid(), ctx.S.clock:stamp()
  m.deletionTimestamp, m.deletionGracePeriodSeconds, m.selfLink = nil, nil, nil
end

local function refuse_twin(ctx, document)
  local existing = ctx.S.store:get(ctx.R.storage, object.key_of(ctx.R, document))
  if existing then
    local going = existing.metadata.deletionTimestamp and "object is being deleted: " or nil
    error(status.already_exists(ctx.R, document.metadata.name, going))
  end
end

local function record_manager(ctx, document, options)
  return managed.update(nil, document, {
    manager = object.manager(ctx, options),
    api_version = ctx.R.api_version,
    time = ctx.S.clock:stamp(),
    schema = schema.of(ctx.R),
    reset_fields = reset_fields.of(ctx.R),
  })
end

--- Makes `document` an object: fills in, checks and stores it. `options` are those of
--- request.write_options; with `options.applied` the owners of its fields are known: options.managed_fields.
function create.commit(ctx, document, options)
  local R = ctx.R
  document = json.with(document, "metadata", meta.normalize(document.metadata))
  local m = document.metadata
  object.place(ctx, m)
  object.check_namespace(ctx, m.name)
  if m.resourceVersion then
    error(status.unclassified("resourceVersion should not be set on objects to be created"))
  end
  wipe(ctx, m)
  local warning = meta.dedup_owners(m)
  if warning then ctx:warn(warning) end
  if not m.name and m.generateName then generate_name(ctx, m) end
  if R.rules.generation then m.generation = 1 end
  document = strategy.default(ctx, document)
  document.metadata.managedFields = options.applied and options.managed_fields
    or not options.applied and record_manager(ctx, document, options) or nil
  document = strategy.prepare_create(ctx, document)
  local errors = meta.validate(R, document)
  strategy.validate(ctx, document, nil, errors)
  if errors[1] then error(status.invalid(R, document.metadata.name or "", errors)) end
  refuse_twin(ctx, document)
  if options.dry_run then return document end
  local stored = ctx.S.store:create(R, object.key_of(R, document), object.stored(R, document))
  strategy.after_create(ctx, stored)
  return object.view(R, stored)
end

-- A question: it gets its answer at once and is not stored.
local function ask(ctx, document, options)
  document = json.with(document, "metadata", meta.normalize(document.metadata))
  document.metadata.managedFields = record_manager(ctx, document, options)
  return ctx.R.strategy.answer(ctx, document)
end

--- Handles the request.
function create.run(ctx)
  local options = request.write_options(ctx.info, "CreateOptions")
  local document = body.object(ctx, ctx.R, options.field_validation)
  if ctx.R.strategy and ctx.R.strategy.answer then return 201, ask(ctx, document, options) end
  return 201, create.commit(ctx, document, options)
end

return create
