-- PATCH: the four kinds of patches, each ending in an ordinary update.
local apply = require "kube.sandbox.patch.apply"
local body = require "kube.sandbox.body"
local field = require "kube.sandbox.field"
local go_json = require "kube.sandbox.go_json"
local gotext = require "kube.sandbox.patch.gotext"
local json = require "kube.sandbox.json"
local json_patch = require "kube.sandbox.patch.json_patch"
local merge_patch = require "kube.sandbox.patch.merge_patch"
local object = require "kube.sandbox.object"
local request = require "kube.sandbox.request"
local refusals = require "kube.sandbox.patch.refusals"
local schema = require "kube.sandbox.schema"
local shape = require "kube.sandbox.shape"
local status = require "kube.sandbox.status"
local strategic = require "kube.sandbox.patch.strategic"
local strict = require "kube.sandbox.validate.strict"
local update = require "kube.sandbox.update"

local patch = {}

local JSON, MERGE = "application/json-patch+json", "application/merge-patch+json"
local STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"

local function refuse_media_type(R)
  if R.builtin then
    local e = status.unsupported_media_type("415: Unsupported Media Type")
    e.document.details = json.object {}
    error(e)
  end
  error(status.unsupported_media_type("the body of the request was in an unknown format - accepted media types "
    .. "include: " .. table.concat({ JSON, MERGE, APPLY }, ", ")))
end

local function decoded(text, prefix)
  local value = json.decode(text)
  if value == nil then error(status.bad_request("%s%s", prefix, go_json.problem(text))) end
  return value
end

local appliers = {}

appliers[JSON] = function(_, old, text)
  return json_patch.apply(old, decoded(text, "error decoding patch: "))
end

appliers[MERGE] = function(_, old, text)
  return merge_patch.apply(old, decoded(text, "error decoding patch: "))
end

appliers[STRATEGIC] = function(R, old, text)
  return strategic.apply(old, decoded(text, ""), schema.of(R))
end

-- What is wrong with the patch itself, as fieldValidation wants to hear it.
local function patch_problems(media, text)
  local problems = {}
  for i, path in ipairs(json.duplicates(text) or {}) do problems[i] = ('duplicate field "%s"'):format(path) end
  if media ~= JSON then return problems end
  local unknown, refusal = json_patch.check(decoded(text, "error decoding patch: "))
  if not unknown then error(status.bad_request("%s", refusal)) end
  for _, problem in ipairs(unknown) do problems[#problems + 1] = problem end
  return problems
end

local function invalid_patch(shown, detail)
  return status.invalid({ kind = "", group = "" }, "", { field.invalid("patch", shown, detail) })
end

local CONVERTED = { number = "int64", bool = "bool", string = "string", array = "slice", object = "map" }

-- A strategic patch is not read as JSON but converted, and the converter has words of its own.
local function converter_text(refusal)
  local from, to = refusal:match("^json: cannot unmarshal (%l+) into Go .- of type (.+)$")
  if not from then return refusal end
  if to:find("^%[%]") then return "cannot restore slice from " .. CONVERTED[from] end
  if to:find("^map%[") then return "cannot restore map from " .. CONVERTED[from] end
  if to:find("%.") then return "cannot restore struct from: " .. CONVERTED[from] end
  if from == "array" or from == "object" then return "unrecognized type: " .. to end
  return ("cannot convert %s to %s"):format(CONVERTED[from], to)
end

-- Reads the patched document as a body would be read, and reports in the words of a patch: of a
-- strategic one (`change`) the patch itself is shown, of any other what came out.
local function conform(ctx, R, document, problems, validation, change)
  local function refuse(detail)
    error(invalid_patch(change and gotext.value(change) or json.encode(document), detail))
  end
  if R.builtin and (document.kind ~= R.kind or document.apiVersion ~= R.api_version) then
    refuse(('no kind "%s" is registered for version "%s" in scheme "pkg/runtime/scheme.go:111"')
      :format(document.kind or "", document.apiVersion or ""))
  end
  if not R.builtin then body.check_kind(R, document) end
  local clean, found, refusal = strict.check(R, document)
  if refusal then refuse(change and converter_text(refusal) or refusal) end
  clean = shape.read(R, clean)
  for _, problem in ipairs(found) do problems[#problems + 1] = problem end
  if not problems[1] or validation == "Ignore" then return clean end
  if validation == "Strict" then refuse("strict decoding error: " .. table.concat(problems, ", ")) end
  for _, problem in ipairs(problems) do ctx:warn(problem) end
  return clean
end

local function check_identity(ctx, document)
  if json.is_object(document.metadata) then update.check_name(ctx, document) end
end

--- What the request's patch makes of `old`, a document of kind R: the resource, or a part of it. One
--- that is no apply, and of a type that check_type() took.
function patch.change(ctx, R, old, media, options)
  local text = ctx.request.body or ""
  local problems = options.field_validation ~= "Ignore" and patch_problems(media, text) or {}
  local document, kind, message = appliers[media](R, old, text)
  if not document then error(refusals[kind](message)) end
  local change = media == STRATEGIC and json.decode(text) or nil
  document = conform(ctx, R, document, problems, options.field_validation, change)
  check_identity(ctx, document)
  return document
end

--- The type of the request's patch, and whether it is an apply; raises when it cannot be one of this
--- resource.
function patch.check_type(ctx)
  local R = ctx.R
  local media = body.media_type(ctx.request.header("content-type"))
  local known = appliers[media] and (media ~= STRATEGIC or R.builtin)
  if not known and media ~= APPLY then refuse_media_type(R) end
  if #(ctx.request.body or "") > body.LIMIT then error(status.too_large(body.LIMIT)) end
  return media, media == APPLY
end

--- Handles the request, of the object or of its status.
function patch.run(ctx)
  local media, is_apply = patch.check_type(ctx)
  if is_apply then return apply.run(ctx, ctx.info.subresource) end
  local options = request.write_options(ctx.info, "PatchOptions")
  options.subresource = ctx.info.subresource
  local old = object.get(ctx)
  return 200, update.commit(ctx, patch.change(ctx, ctx.R, old, media, options), old, options)
end

return patch
