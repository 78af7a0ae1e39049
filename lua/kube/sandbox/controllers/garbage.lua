-- The garbage collector: what is owned goes when the last of its owners is gone, in the order that
-- the owner's deletion asked for (background, foreground, orphan).
local client = require "kube.sandbox.controllers.client"
local json = require "kube.sandbox.json"

local garbage = {}

local Collector = {}
Collector.__index = Collector

local ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"

-- Where everything is ----------------------------------------------------------------------------

local function owners_of(document) return json.get(document, "metadata", "ownerReferences") or {} end

local function is_waiting(document, finalizer)
  local m = document.metadata
  return m.deletionTimestamp ~= nil and client.has(m.finalizers, finalizer)
end

local function link(self, uid, document)
  for _, owner in ipairs(owners_of(document)) do
    self.dependents[owner.uid] = self.dependents[owner.uid] or {}
    self.dependents[owner.uid][uid] = true
  end
end

local function unlink(self, uid, document)
  for _, owner in ipairs(owners_of(document)) do
    local set = self.dependents[owner.uid]
    if set then
      set[uid] = nil
      if next(set) == nil then self.dependents[owner.uid] = nil end
    end
  end
end

-- uids in an order that does not change from run to run.
local function dependents_of(self, uid)
  local list = {}
  for dependent in pairs(self.dependents[uid] or {}) do
    if self.objects[dependent] then list[#list + 1] = dependent end
  end
  table.sort(list, function(a, b)
    return tonumber(self.objects[a].metadata.resourceVersion) < tonumber(self.objects[b].metadata.resourceVersion)
  end)
  return list
end

local function later(self, job, uid)
  self.S:later(function() job(self, uid) end)
end

-- Owners -----------------------------------------------------------------------------------------

-- "solid", "waiting" (the owner waits for its dependents to go), "absent", or nil when it cannot be
-- known: the owner's kind is not served.
local function state_of(self, document, reference)
  local R = self.S.kinds:by_kind(reference.apiVersion, reference.kind)
  if not R then return nil end
  local owner = self.objects[reference.uid]
  local there = owner and owner.metadata.name == reference.name and owner.kind == reference.kind
    and (not R.namespaced or owner.metadata.namespace == document.metadata.namespace)
  if not there then
    -- A namespaced owner of a cluster-scoped object is a mistake that is left alone.
    if R.namespaced and not document.metadata.namespace then return nil end
    return "absent"
  end
  return is_waiting(owner, FOREGROUND) and "waiting" or "solid"
end

local function classify(self, document)
  local counts, kept = { solid = 0, waiting = 0, absent = 0 }, json.array {}
  for _, reference in ipairs(owners_of(document)) do
    local state = state_of(self, document, reference)
    if not state then return nil end
    counts[state] = counts[state] + 1
    if state == "solid" then kept[#kept + 1] = reference end
  end
  return counts, kept
end

local function policy_of(document)
  local finalizers = document.metadata.finalizers
  if client.has(finalizers, ORPHAN) then return "Orphan" end
  if client.has(finalizers, FOREGROUND) then return "Foreground" end
  return "Background"
end

-- Looks whether an object still has an owner, and acts.
local function attempt(self, uid)
  local document = self.objects[uid]
  if not document or not owners_of(document)[1] then return end
  if document.metadata.deletionTimestamp and not is_waiting(document, FOREGROUND) then return end
  local R = self.S.kinds:by_kind(document.apiVersion, document.kind)
  local counts, kept = classify(self, document)
  if not R or not counts then return end
  if counts.solid > 0 then
    if counts.waiting + counts.absent > 0 then
      client.patch_metadata(self.S, R, document, { ownerReferences = kept })
    end
  elseif document.metadata.deletionTimestamp then
    return
  elseif counts.waiting > 0 and self.dependents[uid] then
    client.delete(self.S, R, document, "Foreground")
  else
    client.delete(self.S, R, document, policy_of(document))
  end
end

-- Deletions that wait ----------------------------------------------------------------------------

local function drop_finalizer(self, document, finalizer)
  local R = self.S.kinds:by_kind(document.apiVersion, document.kind)
  local rest = client.without(document.metadata.finalizers, finalizer) or json.null
  client.patch_metadata(self.S, R, document, { finalizers = rest })
end

-- Cuts the dependents loose, then lets the owner go.
local function orphan(self, uid)
  local owner = self.objects[uid]
  if not owner or not is_waiting(owner, ORPHAN) then return end
  for _, dependent in ipairs(dependents_of(self, uid)) do
    local document = self.objects[dependent]
    local kept = json.array {}
    for _, reference in ipairs(owners_of(document)) do
      if reference.uid ~= uid then kept[#kept + 1] = reference end
    end
    local R = self.S.kinds:by_kind(document.apiVersion, document.kind)
    client.patch_metadata(self.S, R, document, { ownerReferences = kept[1] and kept or json.null })
  end
  drop_finalizer(self, owner, ORPHAN)
end

local function blocks(document, uid)
  for _, reference in ipairs(owners_of(document)) do
    if reference.uid == uid and reference.blockOwnerDeletion == true then return true end
  end
  return false
end

-- Deletes the dependents; the owner goes when none is left that blocks it.
local function foreground(self, uid)
  local owner = self.objects[uid]
  if not owner or not is_waiting(owner, FOREGROUND) then return end
  for _, dependent in ipairs(dependents_of(self, uid)) do attempt(self, dependent) end
  for _, dependent in ipairs(dependents_of(self, uid)) do
    if blocks(self.objects[dependent], uid) then return end
  end
  owner = self.objects[uid]
  if owner and is_waiting(owner, FOREGROUND) then drop_finalizer(self, owner, FOREGROUND) end
end

-- What happened ----------------------------------------------------------------------------------

local function removed(self, old)
  local uid = old.metadata.uid
  self.objects[uid] = nil
  unlink(self, uid, old)
  for _, dependent in ipairs(dependents_of(self, uid)) do later(self, attempt, dependent) end
  for _, reference in ipairs(owners_of(old)) do later(self, foreground, reference.uid) end
end

local function stored(self, old, new)
  local uid = new.metadata.uid
  if old then unlink(self, uid, old) end
  self.objects[uid] = new
  link(self, uid, new)
  if owners_of(new)[1] then later(self, attempt, uid) end
  if new.metadata.deletionTimestamp then
    if is_waiting(new, ORPHAN) then later(self, orphan, uid) end
    if is_waiting(new, FOREGROUND) then later(self, foreground, uid) end
  end
end

-- Two views of one object are one object.
local function observe(self, change)
  if change.type == "DELETED" then
    removed(self, change.old or change.new)
  else
    stored(self, change.old, change.new)
  end
end

--- Follows everything in the store from now on.
function garbage.start(S)
  local self = setmetatable({ S = S, objects = {}, dependents = {} }, Collector)
  S.store:subscribe_all(function(change) observe(self, change) end)
  S.store:on_restore(function()
    self.objects, self.dependents = {}, {}
    for _, documents in pairs(S.store:snapshot().storages) do
      for _, document in pairs(documents) do stored(self, nil, document) end
    end
  end)
  return self
end

return garbage
