-- Repeats a recorded write (see apply_recorder.lua) with the sandbox's own functions and says where the
-- outcome differs from the server's.
local json = require "kube.sandbox.json"
local json_patch = require "kube.sandbox.patch.json_patch"
local kinds = require "spec.support.apply_kinds"
local managed = require "kube.sandbox.apply.managed"
local merge_patch = require "kube.sandbox.patch.merge_patch"
local strategic = require "kube.sandbox.patch.strategic"

local check = {}

local STRING_MAPS = { labels = true, annotations = true, data = true }

-- A typed document as a server writes it: without nulls, empty maps and lists, and directives. Null for
-- a text is the empty text.
local function written(value, name)
  if type(value) ~= "table" then return value end
  local out = json.is_array(value) and json.array {} or json.object {}
  for k, v in pairs(value) do
    if v == json.null and STRING_MAPS[name] then v = "" end
    v = written(v, k)
    local directive = type(k) == "string" and k:sub(1, 1) == "$"
    if v ~= json.null and not directive and not (type(v) == "table" and next(v) == nil) then out[k] = v end
  end
  return out
end

local function is_default(value, default)
  return default ~= nil and (default == "*" or json.equal(value, default))
end

local difference

local function object_difference(ours, theirs, kind, path)
  for name, value in pairs(theirs) do
    local own = ours[name]
    if own == nil then
      local empty = value == json.null or type(value) == "table" and next(value) == nil
      if not (kind.typed and empty) and not is_default(value, kind.defaults[name]) then
        return ("%s.%s is missing"):format(path, name)
      end
    else
      local found = difference(own, value, kind, path .. "." .. name)
      if found then return found end
    end
  end
  for name, value in pairs(ours) do
    -- A custom resource loses nulls that its schema does not allow.
    if theirs[name] == nil and value ~= json.null then return ("%s.%s is extra"):format(path, name) end
  end
end

function difference(ours, theirs, kind, path)
  if type(ours) ~= "table" or type(theirs) ~= "table" or json.is_array(ours) ~= json.is_array(theirs) then
    if json.equal(ours, theirs) then return nil end
    return ("%s: %s against %s"):format(path, json.encode(ours), json.encode(theirs))
  end
  if not json.is_array(ours) then return object_difference(ours, theirs, kind, path) end
  if #ours ~= #theirs then return ("%s: %s against %s"):format(path, json.encode(ours), json.encode(theirs)) end
  for i, value in ipairs(ours) do
    local found = difference(value, theirs[i], kind, ("%s[%d]"):format(path, i - 1))
    if found then return found end
  end
end

local function without_managers(document)
  return json.with(document, "metadata", json.with(document.metadata, "managedFields", nil))
end

local function fields_of(document) return json.get(document, "metadata", "managedFields") end

local function same_managers(ours, theirs)
  if json.equal(ours or json.array {}, theirs or json.array {}) then return nil end
  return ("managedFields:\n  %s\n  %s"):format(json.encode(ours or json.null), json.encode(theirs or json.null))
end

local function causes_of(refusal)
  local out = {}
  for i, cause in ipairs(refusal.causes or {}) do out[i] = json.encode(cause) end
  table.sort(out)
  return table.concat(out, "\n")
end

local function check_refusal(refusal, step)
  if step.code == 409 and refusal.kind == "conflict" then
    if refusal.message ~= step.result.message then
      return ("message:\n  %s\n  %s"):format(refusal.message, step.result.message)
    end
    local ours, theirs = causes_of(refusal), causes_of(step.result.details)
    if ours ~= theirs then return ("causes:\n  %s\n  %s"):format(ours, theirs) end
    return nil
  end
  if step.code == 500 and refusal.message == step.result.message then return nil end
  return ("refused with %s, the server answered %d"):format(refusal.message, step.code)
end

local function check_document(document, step, kind)
  local ours, theirs = without_managers(document), without_managers(step.result)
  if kind.typed then ours = written(ours) else ours.metadata = written(ours.metadata) end
  ours.metadata.namespace = theirs.metadata.namespace
  if step.subresource or (step.op ~= "apply" and step.op ~= "create") then ours.status = theirs.status end
  for _, name in ipairs { "creationTimestamp", "uid" } do ours.metadata[name] = nil end
  return difference(ours, theirs, kind, "$")
end

local function apply(live, step, options)
  options.force = step.force
  return managed.apply(live, step.body, options)
end

local PATCHES = { json = json_patch.apply, merge = merge_patch.apply, strategic = strategic.apply }

local function patch(live, step, kind, options)
  local document, problem, message = PATCHES[step.op](live, step.body, options.schema)
  if not document then
    local code = ({ bad_request = 400, unprocessable = 422, unclassified = 500 })[problem]
    if code == step.code and message == step.result.message then return nil end
    return ("refused with %s, the server answered %d"):format(message, step.code)
  end
  if step.code >= 300 then return nil end
  if not step.subresource then
    local found = check_document(document, step, kind)
    if found then return found end
  end
  local new = json.with(step.result, "metadata", json.with(step.result.metadata, "managedFields",
    json.get(document, "metadata", "managedFields")))
  return same_managers(managed.update(live, new, options), fields_of(step.result))
end

-- What the server gave the object only after it wrote down who owns what.
local function without_allocated(document, kind)
  if not kind.allocated then return document end
  local spec = json.shallow(document.spec)
  for _, name in ipairs(kind.allocated) do spec[name] = nil end
  return json.with(document, "spec", spec)
end

--- nil when the step has the recorded outcome, else what differs. `live` is the document before it.
function check.step(case, step, live)
  local kind = kinds[case.kind]
  local options = {
    manager = step.manager, api_version = kind.api_version, time = step.now, subresource = step.subresource,
    schema = kind.schema(), reset_fields = kind.reset[step.subresource or ""], kind = case.kind,
  }
  local before = live and json.encode(live)
  local found
  if step.op == "apply" then
    local document, refusal = apply(live, step, options)
    if refusal then
      found = check_refusal(refusal, step)
    elseif step.code < 300 then
      found = not step.subresource and check_document(document, step, kind)
        or same_managers(fields_of(document), fields_of(step.result))
    elseif step.code ~= 422 then
      found = ("accepted, the server answered %d: %s"):format(step.code, step.result.message)
    end
  elseif PATCHES[step.op] then
    found = patch(live, step, kind, options)
  elseif step.code < 300 then
    local new = json.with(step.result, "metadata",
      json.with(step.result.metadata, "managedFields", fields_of(step.body)))
    if step.op == "create" then new = without_allocated(new, kind) end
    found = same_managers(managed.update(live, new, options), fields_of(step.result))
  end
  assert(not live or json.encode(live) == before, "the live document was changed")
  return found
end

return check
