-- The namespace controller: empties a namespace that is being deleted, then lets it go.
local client = require "kube.sandbox.controllers.client"
local json = require "kube.sandbox.json"

local namespaces = {}

local FINALIZER = "kubernetes"

-- Every kind of object that a namespace can hold, one version each; pods go first, as they do on
-- the server, so that nothing new starts.
local function contents(S)
  local seen, list = {}, {}
  for _, R in ipairs(S.kinds:all()) do
    if R.namespaced and R.verbs.delete and R.verbs.list and not seen[R.storage] then
      seen[R.storage] = true
      if R.storage == "pods" then table.insert(list, 1, R) else list[#list + 1] = R end
    end
  end
  return list
end

-- Deletes what is there: texts for what stays, and how many objects hold on by which finalizer.
local function empty(S, name)
  local remaining, finalizers = {}, {}
  for _, R in ipairs(contents(S)) do
    for _, document in ipairs((S.store:scan(R.storage, name))) do
      if not document.metadata.deletionTimestamp then client.delete(S, R, document, "Background") end
    end
    local left = S.store:scan(R.storage, name)
    if left[1] then
      local name_dot = R.group == "" and R.plural .. "." or R.resource_name
      remaining[#remaining + 1] = ("%s has %d resource instances"):format(name_dot, #left)
    end
    for _, document in ipairs(left) do
      for _, finalizer in ipairs(document.metadata.finalizers or {}) do
        finalizers[finalizer] = (finalizers[finalizer] or 0) + 1
      end
    end
  end
  return remaining, finalizers
end

local function sorted_finalizers(counts)
  local texts = {}
  for finalizer, count in pairs(counts) do
    texts[#texts + 1] = ("%s in %d resource instances"):format(finalizer, count)
  end
  table.sort(texts)
  return texts
end

-- The five conditions in the server's order: type, status, reason, message.
local function conditions_of(remaining, finalizers)
  local content = { "NamespaceContentRemaining", "False", "ContentRemoved", "All content successfully removed" }
  if remaining[1] then
    content = { content[1], "True", "SomeResourcesRemain", "Some resources are remaining: "
      .. table.concat(remaining, ", ") }
  end
  local held = { "NamespaceFinalizersRemaining", "False", "ContentHasNoFinalizers",
    "All content-preserving finalizers finished" }
  local texts = sorted_finalizers(finalizers)
  if texts[1] then
    held = { held[1], "True", "SomeFinalizersRemain", "Some content in the namespace has finalizers remaining: "
      .. table.concat(texts, ", ") }
  end
  return {
    { "NamespaceDeletionDiscoveryFailure", "False", "ResourcesDiscovered", "All resources successfully discovered" },
    { "NamespaceDeletionGroupVersionParsingFailure", "False", "ParsedGroupVersions",
      "All legacy kube types successfully parsed" },
    { "NamespaceDeletionContentFailure", "False", "ContentDeleted",
      "All content successfully deleted, may be waiting on finalization" },
    content,
    held,
  }
end

local function with_conditions(S, namespace, wanted)
  local known = {}
  for _, c in ipairs(json.get(namespace, "status", "conditions") or {}) do known[c.type] = c end
  local conditions = json.array {}
  for i, c in ipairs(wanted) do
    local old = known[c[1]]
    conditions[i] = json.object {
      type = c[1], status = c[2], reason = c[3], message = c[4],
      lastTransitionTime = old and old.status == c[2] and old.lastTransitionTime or S.clock:stamp(),
    }
  end
  return json.with(namespace, "status", json.with(namespace.status, "conditions", conditions))
end

local function process(S, R, name)
  local namespace = S.store:get("namespaces", name)
  if not namespace or not namespace.metadata.deletionTimestamp then return end
  if not client.has(json.get(namespace, "spec", "finalizers"), FINALIZER) then return end
  local remaining, finalizers = empty(S, name)
  client.update_part(S, R, with_conditions(S, namespace, conditions_of(remaining, finalizers)), "status")
  if remaining[1] then return end
  namespace = S.store:get("namespaces", name)
  local rest = client.without(namespace.spec.finalizers, FINALIZER)
  client.update_part(S, R, json.with(namespace, "spec", json.object { finalizers = rest }), "finalize")
end

--- Follows namespaces, and the objects of those that are going.
function namespaces.start(S)
  local R = S.kinds:find("", "v1", "namespaces")
  local queued = {}
  local function enqueue(name)
    if queued[name] then return end
    queued[name] = true
    S:later(function()
      queued[name] = nil
      process(S, R, name)
    end)
  end
  S.store:subscribe_all(function(change, storage)
    if storage == "namespaces" then
      if change.type ~= "DELETED" and change.new.metadata.deletionTimestamp then enqueue(change.key) end
    elseif change.type == "DELETED" then
      local name = change.old.metadata.namespace
      local namespace = name and S.store:get("namespaces", name)
      if namespace and namespace.metadata.deletionTimestamp then enqueue(name) end
    end
  end)
end

return namespaces
