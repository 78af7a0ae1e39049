-- ObjectMeta: what every object carries, checked and kept by the same rules for every kind.
local field = require "kube.sandbox.field"
local json = require "kube.sandbox.json"
local names = require "kube.sandbox.names"

local meta = {}

local ANNOTATIONS_MAX = 256 * 1024

-- Finalizers that need no domain.
local STANDARD = { ["kubernetes"] = true, ["orphan"] = true, ["foregroundDeletion"] = true }

local function add(errors, e) errors[#errors + 1] = e end

local function sorted_keys(t)
  local keys = {}
  for key in pairs(t) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end

local function check_labels(errors, labels, path)
  for _, key in ipairs(sorted_keys(labels)) do
    local problem = names.qualified(key)
    if problem then add(errors, field.invalid(path, key, problem)) end
    problem = names.label_value(labels[key])
    if problem then add(errors, field.invalid(path, labels[key], problem)) end
  end
end

local function check_annotations(errors, annotations, path)
  local size = 0
  for _, key in ipairs(sorted_keys(annotations)) do
    local problem = names.qualified(key:lower())
    if problem then add(errors, field.invalid(path, key, problem)) end
    size = size + #key + #annotations[key]
  end
  if size > ANNOTATIONS_MAX then add(errors, field.too_long(path, ANNOTATIONS_MAX)) end
end

local function check_owners(errors, owners, path)
  local controller
  for _, owner in ipairs(owners) do
    for _, name in ipairs { "apiVersion", "kind", "name", "uid" } do
      if (owner[name] or "") == "" then
        local text = name == "apiVersion" and "version must not be empty" or "must not be empty"
        add(errors, field.invalid(path .. "." .. name, owner[name] or "", text))
      end
    end
    if owner.controller == true then
      local this = ("%s/%s"):format(owner.kind or "", owner.name or "")
      if controller then
        add(errors, field.invalid(path, owners, ('Only one reference can have Controller set to true. Found "true" in '
          .. "references for %s and %s"):format(controller, this)))
      end
      controller = controller or this
    end
  end
end

local function check_finalizers(errors, finalizers, path, builtin)
  local both = {}
  for _, name in ipairs(finalizers) do
    local problem = names.qualified(name)
    if problem then add(errors, field.invalid(path, name, problem)) end
    both[name] = true
  end
  if both.orphan and both.foregroundDeletion then
    add(errors, field.invalid(path, finalizers, "finalizer orphan and foregroundDeletion cannot be both set"))
  end
  if not builtin then return end
  for i, name in ipairs(finalizers) do
    if not name:find("/", 1, true) and not STANDARD[name] then
      add(errors, field.invalid(("%s[%d]"):format(path, i - 1), name,
        "name is neither a standard finalizer name nor is it fully qualified"))
    end
  end
end

local function check_name(errors, R, m)
  local check = names[R.rules.name] or names.subdomain
  if m.generateName then
    -- What is generated must be able to follow it.
    local problem = check((m.generateName:gsub("-$", "a")))
    if problem then add(errors, field.invalid("metadata.generateName", m.generateName, problem)) end
  end
  if not m.name then
    add(errors, field.required("metadata.name", "name or generateName is required"))
  else
    local problem = check(m.name)
    if problem then add(errors, field.invalid("metadata.name", m.name, problem)) end
  end
end

--- The errors in a document's metadata.
function meta.validate(R, document)
  local m, errors = document.metadata, {}
  check_name(errors, R, m)
  if (tonumber(m.generation) or 0) < 0 then
    add(errors, field.invalid("metadata.generation", m.generation, "must be greater than or equal to 0"))
  end
  if m.labels then check_labels(errors, m.labels, "metadata.labels") end
  if m.annotations then check_annotations(errors, m.annotations, "metadata.annotations") end
  if m.ownerReferences then check_owners(errors, m.ownerReferences, "metadata.ownerReferences") end
  if m.finalizers then check_finalizers(errors, m.finalizers, "metadata.finalizers", R.builtin) end
  return errors
end

--- Errors in how the metadata of `new` differs from that of `old`.
function meta.validate_update(new, old)
  local errors = {}
  local n, o = new.metadata, old.metadata
  for _, name in ipairs { "name", "namespace", "uid", "deletionTimestamp", "deletionGracePeriodSeconds" } do
    if n[name] ~= o[name] then add(errors, field.immutable("metadata." .. name, n[name])) end
  end
  if o.deletionTimestamp then
    local had, added = {}, {}
    for _, name in ipairs(o.finalizers or {}) do had[name] = true end
    for _, name in ipairs(n.finalizers or {}) do
      if not had[name] then added[#added + 1] = field.show(name) end
    end
    if added[1] then
      add(errors, field.forbidden("metadata.finalizers", ("no new finalizers can be added if the object is being "
        .. "deleted, found new finalizers []string{%s}"):format(table.concat(added, ", "))))
    end
  end
  return errors
end

-- Lists and maps that Go's omitempty leaves out.
local OPTIONAL = { "labels", "annotations", "ownerReferences", "finalizers", "managedFields" }
local TEXTS = { "name", "generateName", "namespace", "uid", "resourceVersion", "selfLink" }

--- Metadata as Go would write it: null and empty values are left out.
function meta.normalize(m)
  local out = json.object {}
  for key, value in pairs(m or {}) do
    if value ~= json.null then out[key] = value end
  end
  for _, name in ipairs(OPTIONAL) do
    if type(out[name]) == "table" and next(out[name]) == nil then out[name] = nil end
  end
  for _, name in ipairs(TEXTS) do
    if out[name] == "" then out[name] = nil end
  end
  out.selfLink = nil
  if out.generation == 0 then out.generation = nil end
  return out
end

--- Takes owners out that are there twice; true when there were any.
function meta.dedup_owners(m)
  if not m.ownerReferences then return nil end
  local seen, repeated, kept = {}, {}, json.array {}
  for _, owner in ipairs(m.ownerReferences) do
    local twin
    for _, other in ipairs(kept) do twin = twin or json.equal(owner, other) end
    if twin then
      if not seen[owner.uid] then repeated[#repeated + 1] = owner.uid end
      seen[owner.uid] = true
    else
      kept[#kept + 1] = owner
    end
  end
  if not repeated[1] then return nil end
  m.ownerReferences = kept
  return (".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may "
    .. "reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: %s")
    :format(table.concat(repeated, ", "))
end

return meta
