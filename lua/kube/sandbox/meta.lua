-- ObjectMeta: what every object carries, checked and kept by the same rules for every kind.
local field = require "kube.sandbox.field"
local json = require "kube.sandbox.json"
local names = require "kube.sandbox.names"

local meta = {}

local ANNOTATIONS_MAX = 256 * 1024

-- Finalizers that need no domain.
local STANDARD = {
  ["kubernetes"] = true,
  ["orphan"] = true,
  ["foregroundDeletion"] = true,
  ["customresourcecleanup.apiextensions.k8s.io"] = true,
}

local function add(errors, e) errors[#errors + 1] = e end

local function sorted_keys(t)
  local keys = {}
  for key in pairs(t) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end

local function add_all(errors, path, value, ...)
  for _, problem in ipairs { ... } do add(errors, field.invalid(path, value, problem)) end
end

--- Adds what is wrong with the labels at `path`.
function meta.check_labels(errors, labels, path)
  for _, key in ipairs(sorted_keys(labels)) do
    add_all(errors, path, key, names.qualified(key, "a valid label key"))
    add_all(errors, path, labels[key], names.label_value(labels[key]))
  end
end

local function check_annotations(errors, annotations, path)
  local size = 0
  for _, key in ipairs(sorted_keys(annotations)) do
    add_all(errors, path, key, names.qualified(key:lower()))
    size = size + #key + #annotations[key]
  end
  if size > ANNOTATIONS_MAX then add(errors, field.too_long(path, ANNOTATIONS_MAX)) end
end

local OWNER_FIELDS = { "apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion" }

-- An owner as Go prints it: in the order of its struct.
local function show_owner(owner)
  local parts = {}
  for i, name in ipairs(OWNER_FIELDS) do
    local value = owner[name]
    if value == nil and i <= 4 then value = "" end
    if value ~= nil then parts[#parts + 1] = ('"%s":%s'):format(name, field.show(value)) end
  end
  return "{" .. table.concat(parts, ",") .. "}"
end

local function show_owners(owners)
  local texts = {}
  for i, owner in ipairs(owners) do texts[i] = show_owner(owner) end
  return "[" .. table.concat(texts, ",") .. "]"
end

local function check_owner(errors, owner, path)
  for _, name in ipairs { "apiVersion", "kind", "name", "uid" } do
    local value = owner[name] or ""
    local wrong = value == "" or name == "apiVersion" and select(2, value:gsub("/", "")) > 1
    if wrong then
      local text = name == "apiVersion" and "version must not be empty" or "must not be empty"
      add(errors, field.invalid(path .. "." .. name, value, text))
    end
  end
  if owner.apiVersion == "v1" and owner.kind == "Event" then
    add(errors, field.shown(path, show_owner(owner), "/v1, Kind=Event is disallowed from being an owner"))
  end
end

local function check_owners(errors, owners, path)
  local controller
  for _, owner in ipairs(owners) do
    check_owner(errors, owner, path)
    if owner.controller == true then
      local this = ("%s/%s"):format(owner.kind or "", owner.name or "")
      if controller then
        add(errors, field.shown(path, show_owners(owners),
          ('Only one reference can have Controller set to true. Found "true" in references for %s and %s')
            :format(controller, this)))
      end
      controller = controller or this
    end
  end
end

local function check_finalizers(errors, finalizers, path, builtin)
  local both = {}
  for _, name in ipairs(finalizers) do
    add_all(errors, path, name, names.qualified(name, "a valid label key"))
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
    add_all(errors, "metadata.generateName", m.generateName, check((m.generateName:gsub("-$", "a"))))
  end
  if not m.name then
    add(errors, field.required("metadata.name", "name or generateName is required"))
  else
    add_all(errors, "metadata.name", m.name, check(m.name))
  end
end

local function check_maps(errors, m)
  if m.labels then meta.check_labels(errors, m.labels, "metadata.labels") end
  if m.annotations then check_annotations(errors, m.annotations, "metadata.annotations") end
  if m.ownerReferences then check_owners(errors, m.ownerReferences, "metadata.ownerReferences") end
end

--- The errors in a document's metadata.
function meta.validate(R, document)
  local m, errors = document.metadata, {}
  check_name(errors, R, m)
  if (tonumber(m.generation) or 0) < 0 then
    add(errors, field.invalid("metadata.generation", m.generation, "must be greater than or equal to 0"))
  end
  check_maps(errors, m)
  if m.finalizers then check_finalizers(errors, m.finalizers, "metadata.finalizers", R.builtin) end
  return errors
end

--- Errors in how the metadata of `new` differs from that of `old`, and in what may differ.
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
  check_maps(errors, n)
  return errors
end

-- Lists and maps that Go's omitempty leaves out.
local OPTIONAL = { "labels", "annotations", "ownerReferences", "finalizers" }
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
