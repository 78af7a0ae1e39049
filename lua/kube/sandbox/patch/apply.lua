-- Server-side apply: the configuration of one manager, merged into what others own.
local body = require "kube.sandbox.body"
local create = require "kube.sandbox.create"
local host = require "kube._server"
local json = require "kube.sandbox.json"
local managed = require "kube.sandbox.apply.managed"
local object = require "kube.sandbox.object"
local refusals = require "kube.sandbox.patch.refusals"
local request = require "kube.sandbox.request"
local reset_fields = require "kube.sandbox.apply.reset_fields"
local schema = require "kube.sandbox.schema"
local status = require "kube.sandbox.status"
local update = require "kube.sandbox.update"

local apply = {}

-- The configuration. Of a key that is there twice the last counts, unless the client is strict.
local function decode(ctx, validation)
  local repeated = validation ~= "Strict" and {} or nil
  local documents, problem = host.yaml_decode(ctx.request.body or "", repeated)
  if not documents then
    local strictly = not repeated and problem:find("already set in map", 1, true) and "strict " or ""
    error(status.bad_request("error %sdecoding YAML: error converting YAML to JSON: %s", strictly, problem))
  end
  for _, text in ipairs(validation == "Warn" and repeated or {}) do ctx:warn(text) end
  local config = documents[1] or json.object {}
  if not json.is_object(config) then
    error(status.bad_request("error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot "
      .. "unmarshal %s into Go value of type map[string]interface {}",
      json.is_array(config) and "array" or type(config)))
  end
  return config
end

-- A new object must be named by its configuration; one that is there has its name already.
local function check_config(ctx, config, old)
  local name = json.get(config, "metadata", "name")
  if name or not old then update.check_name(ctx, config) end
  object.place(ctx, json.shallow(json.get(config, "metadata") or json.object {}))
end

--- Handles the request. `subresource` is the part that is applied to; where that is of another kind,
--- `convert` makes a configuration of the object out of one of the part, and `version` is the part's.
function apply.run(ctx, subresource, convert, version)
  local R = ctx.R
  local options = request.write_options(ctx.info, "PatchOptions", true)
  options.subresource = subresource
  local config = decode(ctx, options.field_validation)
  if convert then config = convert(config) end
  local old = object.find(ctx)
  if not old and options.subresource then error(status.not_found(R, ctx.info.name)) end
  local result, refusal = managed.apply(old, config, {
    manager = options.field_manager,
    force = options.force or false,
    api_version = R.api_version,
    kind = R.kind,
    time = subresource ~= "scale" and ctx.S.clock:stamp() or nil, -- scale keeps none
    subresource = options.subresource,
    shown_version = version,
    schema = schema.of(R),
    reset_fields = reset_fields.of(R, options.subresource),
  })
  if not result then error(refusals[refusal.kind](refusal.message, refusal.causes)) end
  check_config(ctx, config, old)
  options.applied, options.managed_fields = true, result.metadata.managedFields
  result = body.conform(ctx, R, result, nil, "Ignore")
  if old then return 200, update.commit(ctx, result, old, options) end
  local uid = result.metadata.uid
  if uid then
    error(status.conflict(R, ctx.info.name, ("uid mismatch: the provided object specified uid %s, and no existing "
      .. "object was found"):format(uid)))
  end
  -- Nothing to compare with: a version that is given is no condition then.
  result.metadata = json.with(result.metadata, "resourceVersion", nil)
  return 201, create.commit(ctx, result, options)
end

return apply
