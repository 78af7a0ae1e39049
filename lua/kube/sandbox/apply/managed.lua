-- Who owns which field: metadata.managedFields of every write, and server-side apply.
--
-- Options of both: manager (the name), api_version, time (RFC 3339, whole seconds), schema (the kind's
-- node), reset_fields (paths of names that this endpoint does not let anybody write), subresource.
local atom = require "kube.sandbox.apply.atom"
local check = require "kube.sandbox.apply.check"
local conflict = require "kube.sandbox.apply.conflict"
local field_set = require "kube.sandbox.apply.field_set"
local json = require "kube.sandbox.json"
local last_applied = require "kube.sandbox.apply.last_applied"
local managers = require "kube.sandbox.apply.managers"
local merge = require "kube.sandbox.apply.merge"
local prune = require "kube.sandbox.apply.prune"
local skeleton = require "kube.sandbox.apply.skeleton"
local walk = require "kube.sandbox.apply.walk"

local managed = {}

-- Fields that nobody owns.
local NEVER = field_set.of {
  { "apiVersion" }, { "kind" }, { "metadata" }, { "metadata", "name" }, { "metadata", "namespace" },
  { "metadata", "creationTimestamp" }, { "metadata", "selfLink" }, { "metadata", "uid" },
  { "metadata", "clusterName" }, { "metadata", "generation" }, { "metadata", "managedFields" },
  { "metadata", "resourceVersion" },
}

local function without_managers(document)
  local metadata = document.metadata
  if not json.is_object(metadata) or metadata.managedFields == nil then return document end
  return json.with(document, "metadata", json.with(metadata, "managedFields", nil))
end

local function with_managers(document, all)
  local metadata = json.is_object(document.metadata) and document.metadata or json.object {}
  return json.with(document, "metadata", json.with(metadata, "managedFields", managers.encode(all)))
end

local function filter(set, options)
  return field_set.recursive_difference(set, field_set.of(options.reset_fields or {}))
end

-- What differs, as far as this endpoint writes it: changed (added or with another value) and removed.
local function changes(old, new, self, options)
  local found = walk.compare(old, new, self)
  return filter(field_set.union(found.modified, found.added), options), filter(found.removed, options)
end

local function new_entry(operation, name, set, options)
  return {
    manager = name ~= nil and name ~= "" and name or "unknown",
    operation = operation,
    api_version = options.api_version,
    subresource = options.subresource ~= "" and options.subresource or nil,
    time = options.time,
    set = set,
  }
end

-- The managers without what was changed and removed; `except` is left as it is.
local function give_up(all, changed, removed, except)
  local out = {}
  for id, entry in pairs(all) do
    local set = entry.set
    if id ~= except then set = field_set.difference(field_set.difference(set, changed), removed) end
    if not field_set.empty(set) then out[id] = set == entry.set and entry or managers.with_set(entry, set) end
  end
  return out
end

-- The managers after `name` wrote `new` in place of `old`.
local function record(old, new, all, name, self, options)
  local changed, removed = changes(old, new, self, options)
  local out = give_up(all, changed, removed)
  local own = field_set.difference(changed, NEVER)
  if not field_set.empty(own) then
    local entry = new_entry("Update", name, own, options)
    local id = managers.identify(entry)
    if out[id] then entry.set = field_set.union(own, out[id].set) end
    out[id] = entry
  end
  managers.cap(out)
  return out
end

-- Custom resources lose an empty list on the way in, so there it says nothing.
local function is_reset(given, options)
  if #given == 0 then return skeleton.is_builtin(options.schema) end
  return #given == 1 and json.is_object(given[1]) and next(given[1]) == nil
end

-- Whom the write begins with: what the client says, unless it says nothing that can be read.
local function beginning(old, new, options)
  local live = managers.decode(json.get(old, "metadata", "managedFields")) or {}
  if options.subresource and options.subresource ~= "" then return live end
  local given = json.get(new, "metadata", "managedFields")
  if not json.is_array(given) then return live end
  if is_reset(given, options) then return {} end
  local all = managers.decode(given)
  if not all or next(all) == nil then return live end
  return all
end

-- Documents that do not fit their schema cannot be compared; other errors are this module's own.
local function check_misfit(problem)
  if type(problem) ~= "string" or not problem:find("^element %d+: ") then error(problem, 0) end
end

--- managedFields of `new` after a create (`old` is nil), update or patch; nil for none. An object
--- that has no managers gets none by an update.
function managed.update(old, new, options)
  local all = beginning(old, new, options)
  if old and next(all) == nil then return nil end
  local live = old and without_managers(old) or skeleton.of(options.schema)
  local ok, result = pcall(record, live, without_managers(new), all, options.manager, atom.of(options.schema), options)
  if ok then return managers.encode(result) end
  check_misfit(result)
  return nil
end

-- The type that a configuration says it has: /v1, Kind=ConfigMap.
local function type_of(config)
  local version, kind = json.get(config, "apiVersion"), json.get(config, "kind")
  if type(version) ~= "string" then version = "" end
  if not version:find("/", 1, true) then version = "/" .. version end
  return ("%s, Kind=%s"):format(version, type(kind) == "string" and kind or "")
end

local function subject(config)
  return ("%s/%s; %s"):format(json.get(config, "metadata", "namespace") or "",
    json.get(config, "metadata", "name") or "", type_of(config))
end

-- The merged document without what `last` has applied and nobody holds any more.
local function drop_unheld(merged, all, last, claimed, self)
  if not last or field_set.empty(field_set.difference(last.set, claimed)) then return merged end
  local held = {}
  for _, entry in pairs(all) do held = field_set.union(held, entry.set) end
  return prune(merged, last.set, held, self)
end

local function conflicts_with(all, changed, except)
  local found
  for id, entry in pairs(all) do
    local set = id ~= except and field_set.intersection(entry.set, changed)
    if set and not field_set.empty(set) then
      found = found or {}
      found[id] = { entry = entry, set = set }
    end
  end
  return found
end

-- The new document and managers, or nil and the conflicts.
local function apply(live, config, all, self, options)
  local entry = new_entry("Apply", options.manager, nil, options)
  local id = managers.identify(entry)
  local last = all[id]
  entry.set = filter(walk.fields(config, self), options)
  local claimed = {}
  for other, value in pairs(all) do claimed[other] = value end
  claimed[id] = entry
  local document = drop_unheld(merge(live, config, self), claimed, last, entry.set, self)
  local changed, removed = changes(live, document, self, options)
  local found = not options.force and conflicts_with(claimed, changed, id)
  if found then return nil, found end
  local out = give_up(claimed, changed, removed, id)
  if json.equal(live, document) then entry.time = last and last.time end
  entry.set = field_set.difference(entry.set, NEVER)
  out[id] = not field_set.empty(entry.set) and entry or nil
  return document, out
end

local function refuse(kind, message) return nil, { kind = kind, message = message } end

local function run(live, config, all, self, options)
  if next(all) == nil then
    all = record(skeleton.of(options.schema), live, all, "before-first-apply", self, options)
  end
  local document, result = apply(live, config, all, self, options)
  if document then return document, result end
  if options.manager == "kubectl" then
    local rest = last_applied.conflicts(live, result, self, options)
    if next(rest) == nil then
      options = setmetatable({ force = true }, { __index = options })
      return apply(live, config, all, self, options)
    end
    result = rest
  end
  return nil, result
end

--- Applies a configuration: the new document, managedFields in it, or nil and the refusal
--- { kind = "conflict" | "bad_request" | "unclassified", message =, causes = }. `live` is nil when
--- the object does not exist; options.force takes fields from others, options.kind is the kind that
--- the endpoint is for. The result may hold null where a map or list lost all it had.
function managed.apply(live, config, options)
  if config.apiVersion ~= options.api_version or options.kind and config.kind ~= options.kind then
    return refuse("bad_request", "invalid object type: " .. type_of(config))
  end
  if config.metadata and json.get(config.metadata, "managedFields") ~= nil then
    return refuse("bad_request", "metadata.managedFields must be nil")
  end
  local all, problem = managers.decode(json.get(live, "metadata", "managedFields"))
  if not all then return refuse("unclassified", "failed to decode managed fields: " .. problem) end
  local self = atom.of(options.schema)
  local misfit = check(config, self)
  if misfit then
    return refuse("unclassified",
      ("failed to create typed patch object (%s): %s"):format(subject(config), misfit))
  end
  live = live and without_managers(live) or skeleton.of(options.schema)
  local ok, document, result = pcall(run, live, config, all, self, options)
  if not ok then
    check_misfit(document)
    return refuse("unclassified",
      ("failed to create typed live object (%s): %s"):format(subject(live), check(live, self) or document))
  end
  if not document then return nil, conflict.refusal(result, options.shown_version) end
  return with_managers(last_applied.refresh(document, config, options), result)
end

-- Whether two entries of managedFields say the same, perhaps at other times.
local function is_same_entry(a, b)
  for name, value in pairs(a) do
    if name ~= "time" and not json.equal(value, b[name]) then return false end
  end
  for name in pairs(b) do
    if name ~= "time" and a[name] == nil then return false end
  end
  return true
end

local function entries_differ(old, new)
  if #old ~= #new then return true end
  for i, entry in ipairs(new) do
    if not is_same_entry(old[i], entry) then return true end
  end
  return false
end

--- `new`, or `old` when nothing but times in managedFields tells them apart: such a write changes
--- nothing.
function managed.settle(old, new)
  local before = json.get(old, "metadata", "managedFields")
  local after = json.get(new, "metadata", "managedFields")
  if not before or not after or entries_differ(before, after) then return new end
  if json.equal(without_managers(old), without_managers(new)) then return old end
  return new
end

return managed
