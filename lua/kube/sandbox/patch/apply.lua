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

local function decode(ctx)
  local documents, problem = host.yaml_decode(ctx.request.body or "")
  if not documents then
    error(status.bad_request("error decoding YAML: error converting YAML to JSON: %s", problem))
  end
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

--- Handles the request. `subresource` is the part that is applied to; `convert` makes a configuration
--- of the object out of one of the part, where that is of another kind.
function apply.run(ctx, subresource, convert)
  local R = ctx.R
  local options = request.write_options(ctx.info, "PatchOptions", true)
  options.subresource = subresource
  local config = decode(ctx)
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
    schema = schema.of(R),
    reset_fields = reset_fields.of(R, options.subresource),
  })
  if not result then error(refusals[refusal.kind](refusal.message, refusal.causes)) end
  check_config(ctx, config, old)
  options.applied, options.managed_fields = true, result.metadata.managedFields
  result = body.conform(ctx, R, result, nil, "Ignore")
  if old then return 200, update.commit(ctx, result, old, options) end
  -- Nothing to compare with: versions and uids that are given are not conditions then.
  result.metadata = json.shallow(result.metadata)
  result.metadata.resourceVersion, result.metadata.uid = nil, nil
  return 201, create.commit(ctx, result, options)
end

return apply
