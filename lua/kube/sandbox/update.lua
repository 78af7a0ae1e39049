-- PUT, and what every change of an object goes through.
local body = require "kube.sandbox.body"
local create = require "kube.sandbox.create"
local field = require "kube.sandbox.field"
local json = require "kube.sandbox.json"
local managed = require "kube.sandbox.apply.managed"
local meta = require "kube.sandbox.meta"
local object = require "kube.sandbox.object"
local request = require "kube.sandbox.request"
local reset_fields = require "kube.sandbox.apply.reset_fields"
local schema = require "kube.sandbox.schema"
local status = require "kube.sandbox.status"
local strategy = require "kube.sandbox.strategy"

local update = {}

local function check_version(R, m, old)
  local given, current = m.resourceVersion, old.metadata.resourceVersion
  if given then
    if not given:find("^%d+$") then
      error(status.unclassified(("strconv.ParseUint: parsing %s: invalid syntax"):format(field.show(given))))
    end
    if given ~= current and given ~= "0" then error(status.conflict(R, m.name, status.MODIFIED)) end
  end
  if not given or given == "0" then
    if not R.rules.unconditional_update then
      error(status.invalid({ kind = R.plural, group = R.group }, m.name,
        { field.invalid("metadata.resourceVersion", 0, "must be specified for an update") }))
    end
  end
end

-- What an update cannot change is what it was; what it may say about it must be the same.
local function keep_system_fields(m, old)
  local o = old.metadata
  m.resourceVersion = o.resourceVersion
  m.generation = o.generation
  m.creationTimestamp = o.creationTimestamp
  m.uid = m.uid or o.uid
  m.deletionTimestamp = m.deletionTimestamp or o.deletionTimestamp
  m.deletionGracePeriodSeconds = m.deletionGracePeriodSeconds or o.deletionGracePeriodSeconds
end

local function validate(ctx, new, old, subresource)
  -- The server checks the metadata, and how it changed, for every kind, and most kinds do it again.
  local errors, changed, own = {}, meta.validate_update(new, old), meta.validate(ctx.R, new)
  for _, found in ipairs { own, changed, changed, own } do
    for _, e in ipairs(found) do errors[#errors + 1] = e end
  end
  strategy.validate(ctx, new, old, errors, subresource)
  if errors[1] then error(status.invalid(ctx.R, new.metadata.name, errors)) end
end

-- An object whose last finalizer goes while it is being deleted is gone with this write.
local function is_last_breath(R, new)
  local m = new.metadata
  return m.deletionTimestamp and not m.finalizers and (m.deletionGracePeriodSeconds or 0) == 0
    and not strategy.holds(R, new)
end

local function record_manager(ctx, new, old, options)
  return managed.update(old, new, {
    manager = object.manager(ctx, options),
    api_version = ctx.R.api_version,
    time = options.subresource ~= "scale" and ctx.S.clock:stamp() or nil, -- scale keeps none
    subresource = options.subresource,
    schema = schema.of(ctx.R),
    reset_fields = reset_fields.of(ctx.R, options.subresource),
  })
end

--- Stores `document` in place of `old`. `options` are those of request.write_options, and:
--- subresource: which part the request may change; applied: the owners of fields are known already,
--- managed_fields. Returns the object as it is then; an equal one is not written.
function update.commit(ctx, document, old, options)
  local R = ctx.R
  local new = json.with(document, "metadata", meta.normalize(document.metadata))
  local m = new.metadata
  object.place(ctx, m)
  check_version(R, m, old)
  local warning = meta.dedup_owners(m)
  if warning then ctx:warn(warning) end
  keep_system_fields(m, old)
  new = strategy.default(ctx, new)
  if options.applied then
    new.metadata.managedFields = options.managed_fields
  else
    new.metadata.managedFields = record_manager(ctx, new, old, options)
  end
  new = strategy.prepare_update(ctx, new, old, options.subresource)
  validate(ctx, new, old, options.subresource)
  if managed.settle(old, new) == old or json.equal(new, old) then return old end
  if options.dry_run then return new end
  local key = object.key_of(R, new)
  if is_last_breath(R, new) then
    ctx.S.store:delete(R, key)
    return new
  end
  return object.view(R, ctx.S.store:update(R, key, object.stored(R, new)))
end

local function check_name(ctx, document)
  local name = json.get(document, "metadata", "name") or ""
  if name == "" then
    error(status.bad_request("the name of the object (%s based on URL) was undeterminable: name must be provided",
      ctx.info.name))
  elseif name ~= ctx.info.name then
    error(status.bad_request("the name of the object (%s) does not match the name on the URL (%s)", name,
      ctx.info.name))
  end
end
update.check_name = check_name

local function check_uid(ctx, document, old)
  local uid = json.get(document, "metadata", "uid") or ""
  if uid == "" or uid == old.metadata.uid then return end
  local R = ctx.R
  local prefix = R.group ~= "" and not R.builtin and R.group .. "/" .. R.plural or R.plural
  error(status.conflict(R, ctx.info.name, ("StorageError: invalid object, Code: 4, Key: /registry/%s/%s, "
    .. "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: %s, UID in object meta: %s")
    :format(prefix, object.key_of(R, old), uid, old.metadata.uid)))
end

--- Handles the request, of the object or of its status.
function update.run(ctx)
  local options = request.write_options(ctx.info, "UpdateOptions")
  options.subresource = ctx.info.subresource
  local document = body.object(ctx, ctx.R, options.field_validation)
  check_name(ctx, document)
  object.place(ctx, meta.normalize(document.metadata))
  local old = object.find(ctx)
  if not old then
    if not ctx.R.rules.create_on_update or options.subresource then error(status.not_found(ctx.R, ctx.info.name)) end
    return 201, create.commit(ctx, document, options)
  end
  check_uid(ctx, document, old)
  return 200, update.commit(ctx, document, old, options)
end

return update
