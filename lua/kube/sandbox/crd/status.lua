-- The status of a definition: which names it got, whether it is served, how far its deletion is. Pure
-- steps, one for each write that the server's own controllers make.
local json = require "kube.sandbox.json"

local status = {}

--- The finalizer that keeps a definition until its objects are gone.
status.FINALIZER = "customresourcecleanup.apiextensions.k8s.io"

local function storage_version(document)
  for _, version in ipairs(json.get(document, "spec", "versions") or {}) do
    if version.storage then return version.name end
  end
end

--- The status that a new definition starts with.
function status.initial(document)
  local stored = storage_version(document)
  return json.object {
    conditions = json.null,
    acceptedNames = json.object { plural = "", kind = "" },
    storedVersions = stored and json.array { stored } or json.null,
  }
end

--- The old status on an update of the spec: a new storage version is remembered.
function status.carry(document, old)
  local kept, stored = old.status, storage_version(document)
  local versions = json.get(kept, "storedVersions") or json.array {}
  for _, name in ipairs(versions) do
    if name == stored then return kept end
  end
  if not stored then return kept end
  local longer = json.shallow(versions)
  longer[#longer + 1] = stored
  return json.with(kept or json.object {}, "storedVersions", longer)
end

--- A condition of a definition by its type, or nil.
function status.condition(document, kind)
  for _, condition in ipairs(json.get(document, "status", "conditions") or {}) do
    if condition.type == kind then return condition end
  end
end

local function is_true(document, kind)
  local condition = status.condition(document, kind)
  return condition ~= nil and condition.status == "True"
end

function status.is_established(document) return is_true(document, "Established") end

local function with_condition(document, kind, state, reason, message, now)
  local conditions, found = json.array {}, false
  for i, condition in ipairs(json.get(document, "status", "conditions") or {}) do
    if condition.type == kind then
      found = true
      condition = json.shallow(condition)
      if condition.status ~= state then condition.lastTransitionTime = now end
      condition.status, condition.reason, condition.message = state, reason, message
    end
    conditions[i] = condition
  end
  if not found then
    conditions[#conditions + 1] = json.object { type = kind, status = state, lastTransitionTime = now,
      reason = reason, message = message }
  end
  return json.with(document, "status", json.with(document.status or json.object {}, "conditions", conditions))
end

-- ---- names ----

-- The names that definitions of the group have got already.
local function taken(document, all)
  local resources, kinds = {}, {}
  for _, other in ipairs(all) do
    local names = json.get(other, "status", "acceptedNames")
    if names and json.get(other, "spec", "group") == document.spec.group then
      for _, name in ipairs { names.plural, names.singular, unpack(names.shortNames or {}) } do
        if name then resources[name] = true end
      end
      for _, name in ipairs { names.kind, names.listKind } do kinds[name] = true end
    end
  end
  return resources, kinds
end

local function conflict(wanted, have, used)
  if (wanted or "") ~= (have or "") and used[wanted] then return ('"%s" is already in use'):format(wanted) end
end

local function short_names_conflict(wanted, have, used)
  local mine, problems = {}, {}
  for _, name in ipairs(have or {}) do mine[name] = true end
  for _, name in ipairs(wanted or {}) do
    if not mine[name] then problems[#problems + 1] = conflict(name, "", used) end
  end
  if #problems < 2 then return problems[1] end
  return "[" .. table.concat(problems, ", ") .. "]"
end

local CHECKS = {
  { "plural", "PluralConflict" }, { "singular", "SingularConflict" }, { "shortNames", "ShortNamesConflict" },
  { "kind", "KindConflict" }, { "listKind", "ListKindConflict" },
}

-- The names that a definition gets, and of the last conflict the reason and the message.
local function accept(document, all)
  local wanted = document.spec.names
  local have = json.get(document, "status", "acceptedNames") or json.object {}
  local resources, kinds = taken(document, all)
  local names, reason, message = json.shallow(have), nil, nil
  for _, check in ipairs(CHECKS) do
    local key = check[1]
    local problem
    if key == "shortNames" then
      problem = short_names_conflict(wanted[key], have[key], resources)
    else
      problem = conflict(wanted[key], have[key], (key == "kind" or key == "listKind") and kinds or resources)
    end
    if problem then reason, message = check[2], problem else names[key] = wanted[key] end
  end
  names.categories = wanted.categories
  return names, reason, message
end

--- The document once its names were looked at, beside all definitions; the same table when there is
--- nothing to change. `now` is a timestamp.
function status.name(document, all, now)
  local had = json.get(document, "status", "acceptedNames")
  if had and json.equal(document.spec.names, had) then return document end
  local names, reason, message = accept(document, all)
  local state = reason and "False" or "True"
  local before = status.condition(document, "NamesAccepted")
  if had and json.equal(names, had) and before and before.status == state and before.reason == (reason or "NoConflicts")
    and before.message == (message or "no conflicts found") then
    return document
  end
  local out = json.with(document, "status", json.with(document.status or json.object {}, "acceptedNames", names))
  out = with_condition(out, "NamesAccepted", state, reason or "NoConflicts", message or "no conflicts found", now)
  if status.is_established(out) then return out end
  if reason then
    if status.condition(out, "Established") then return out end
    return with_condition(out, "Established", "False", "NotAccepted", "not all names are accepted", now)
  end
  return with_condition(out, "Established", "False", "Installing", "the initial names have been accepted", now)
end

--- The document once it is served; the same table when it cannot be, or is already.
function status.establish(document, now)
  if not is_true(document, "NamesAccepted") or status.is_established(document) then return document end
  return with_condition(document, "Established", "True", "InitialNamesAccepted",
    "the initial names have been accepted", now)
end

-- ---- deletion ----

--- The document as soon as it is to be deleted.
function status.pending(document, now)
  return with_condition(document, "Terminating", "True", "InstanceDeletionPending",
    "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon", now)
end

--- While its objects are being deleted.
function status.deleting(document, now)
  return with_condition(document, "Terminating", "True", "InstanceDeletionInProgress",
    "CustomResource deletion is in progress", now)
end

--- Once all its objects are gone (or there never were any), without the finalizer.
function status.deleted(document, now)
  local out
  if status.is_established(document) then
    out = with_condition(document, "Terminating", "False", "InstanceDeletionCompleted", "removed all instances", now)
  else
    out = with_condition(document, "Terminating", "False", "NeverEstablished", "resource was never established", now)
  end
  local left = json.array {}
  for _, name in ipairs(json.get(out, "metadata", "finalizers") or {}) do
    if name ~= status.FINALIZER then left[#left + 1] = name end
  end
  return json.with(out, "metadata", json.with(out.metadata, "finalizers", left[1] and left or nil))
end

return status
