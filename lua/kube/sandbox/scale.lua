-- The scale subresource: replicas of any workload, built in or custom, as one kind.
local field = require "kube.sandbox.field"
local body = require "kube.sandbox.body"
local json = require "kube.sandbox.json"
local kinds = require "kube.sandbox.kinds"
local object = require "kube.sandbox.object"
local patch = require "kube.sandbox.patch"
local patch_apply = require "kube.sandbox.patch.apply"
local request = require "kube.sandbox.request"
local status = require "kube.sandbox.status"
local update = require "kube.sandbox.update"

local scale = {}

-- What requests send, whatever is scaled.
local SCALE = {
  builtin = true,
  group = "autoscaling",
  version = "v1",
  api_version = "autoscaling/v1",
  kind = "Scale",
  definition = kinds.definition("autoscaling/v1", "Scale"),
}

local DEFAULT_PATHS = { spec = ".spec.replicas", status = ".status.replicas" }

-- Where this kind keeps its numbers: a custom one says so in its definition.
local function paths_of(R)
  local own = R.scale
  if not own then return DEFAULT_PATHS end
  return { spec = own.specReplicasPath, status = own.statusReplicasPath, selector = own.labelSelectorPath }
end

local function steps(path)
  local names = {}
  for name in path:gmatch("[^.]+") do names[#names + 1] = name end
  return names
end

local function read(document, path) return path and json.get(document, unpack(steps(path))) end

-- The document with the value at a path replaced; shares the rest.
local function write(document, names, i, value)
  local copy = json.is_object(document) and json.shallow(document) or json.object {}
  local name = names[i]
  copy[name] = i == #names and value or write(copy[name], names, i + 1, value)
  return copy
end

-- A LabelSelector as the text that clients of scale expect.
local function selector_text(selector)
  if not selector then return nil end
  local terms = {}
  for key, value in pairs(selector.matchLabels or selector) do
    if type(value) == "string" then terms[#terms + 1] = key .. "=" .. value end
  end
  table.sort(terms)
  for _, e in ipairs(selector.matchExpressions or {}) do
    local values = table.concat(e.values or {}, ",")
    if e.operator == "In" then terms[#terms + 1] = ("%s in (%s)"):format(e.key, values) end
    if e.operator == "NotIn" then terms[#terms + 1] = ("%s notin (%s)"):format(e.key, values) end
    if e.operator == "Exists" then terms[#terms + 1] = e.key end
    if e.operator == "DoesNotExist" then terms[#terms + 1] = "!" .. e.key end
  end
  return table.concat(terms, ",")
end

local function of(R, document)
  local paths = paths_of(R)
  local replicas = read(document, paths.spec)
  if replicas == nil and R.scale then
    error(status.internal(('the spec replicas field "%s" does not exist'):format(paths.spec)))
  end
  local selector
  if R.scale then selector = read(document, paths.selector) else
    selector = selector_text(json.get(document, "spec", "selector"))
  end
  local m = document.metadata
  return json.object {
    kind = "Scale",
    apiVersion = "autoscaling/v1",
    metadata = json.object {
      name = m.name,
      namespace = m.namespace,
      uid = m.uid,
      resourceVersion = m.resourceVersion,
      creationTimestamp = m.creationTimestamp,
    },
    spec = json.object { replicas = replicas ~= 0 and replicas or nil },
    status = json.object { replicas = read(document, paths.status) or 0, selector = selector },
  }
end

function scale.get(ctx) return 200, of(ctx.R, object.get(ctx)) end

-- Stores the replicas of a Scale in its parent.
local function commit(ctx, old, wanted, options)
  local replicas = json.get(wanted, "spec", "replicas") or 0
  -- A custom resource has the check of its own.
  if replicas < 0 and ctx.R.builtin then
    error(status.invalid(SCALE, old.metadata.name,
      { field.invalid("spec.replicas", replicas, "must be greater than or equal to 0") }))
  end
  local given = json.get(wanted, "metadata", "resourceVersion") or ""
  if given ~= "" and given ~= old.metadata.resourceVersion then
    error(status.conflict(ctx.R, old.metadata.name, status.MODIFIED))
  end
  options.subresource = "scale"
  local new = write(old, steps(paths_of(ctx.R).spec), 1, replicas)
  return 200, of(ctx.R, update.commit(ctx, new, old, options))
end

function scale.update(ctx)
  local options = request.write_options(ctx.info, "UpdateOptions")
  local wanted = body.object(ctx, SCALE, options.field_validation)
  update.check_name(ctx, wanted)
  return commit(ctx, object.get(ctx), wanted, options)
end

-- A configuration of the scale as one of its parent, which is what keeps the owners of the field.
local function parent_config(R, config)
  local replicas = json.get(config, "spec", "replicas")
  local parent = json.object {
    apiVersion = R.api_version,
    kind = R.kind,
    metadata = json.get(config, "metadata") or json.object {},
  }
  return replicas and write(parent, steps(paths_of(R).spec), 1, replicas) or parent
end

local function apply_scale(ctx)
  return patch_apply.run(ctx, "scale", function(config)
    if config.kind ~= SCALE.kind or config.apiVersion ~= SCALE.api_version then return config end
    return parent_config(ctx.R, config)
  end, SCALE.api_version)
end

function scale.patch(ctx)
  local media, is_apply = patch.check_type(ctx)
  if is_apply then
    local code, document = apply_scale(ctx)
    return code, of(ctx.R, document)
  end
  local options = request.write_options(ctx.info, "PatchOptions")
  local old = object.get(ctx)
  return commit(ctx, old, patch.change(ctx, SCALE, of(ctx.R, old), media, options), options)
end

return scale
