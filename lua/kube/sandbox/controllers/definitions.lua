-- Definitions come to life here: their names are accepted, their resources served, and when they
-- are deleted their objects go first.
local client = require "kube.sandbox.controllers.client"
local crd_status = require "kube.sandbox.crd.status"
local custom = require "kube.sandbox.strategies.custom"
local descriptor = require "kube.sandbox.crd.descriptor"

local definitions = {}

local STORAGE = "apiextensions.k8s.io/customresourcedefinitions"
local AGENT = "kube-apiserver"

local Controller = {}
Controller.__index = Controller

local function write_status(self, document)
  local path = client.path(self.R, nil, document.metadata.name) .. "/status"
  local code, answer = self.S:call(AGENT, "PUT", path, document)
  assert(code == 200, answer.message)
  return self.S.store:get(STORAGE, document.metadata.name)
end

-- What is served ---------------------------------------------------------------------------------

local function withdraw(self, name, keep)
  local kept = {}
  for _, R in ipairs(keep or {}) do kept[R.api_version] = true end
  for _, R in ipairs(self.served[name] or {}) do
    if not kept[R.api_version] then self.S.kinds:remove(R) end
  end
  self.served[name] = keep
end

local function serve(self, document)
  local list = descriptor.of(document)
  withdraw(self, document.metadata.name, list)
  for _, R in ipairs(list) do
    R.strategy = custom.of(R)
    -- Of a definition that is going, discovery lists no verbs that write, but the server takes them.
    for _, verb in ipairs { "create", "update", "patch" } do R.verbs[verb] = true end
    self.S.kinds:add(R)
  end
end

local function storage_of(document) return document.spec.group .. "/" .. document.spec.names.plural end

-- The end ----------------------------------------------------------------------------------------

-- Deletes the objects; true when none is left.
local function empty(self, document)
  local storage = storage_of(document)
  local R = (self.served[document.metadata.name] or {})[1]
  if not R then return true end
  for _, item in ipairs((self.S.store:scan(storage))) do
    if not item.metadata.deletionTimestamp then client.delete(self.S, R, item) end
  end
  return self.S.store:scan(storage)[1] == nil
end

local function finish(self, document)
  local now = self.S.clock:stamp()
  local changed = crd_status.deleting(document, now)
  if changed ~= document then document = write_status(self, changed) end
  if not document or not empty(self, document) then return end
  local name = document.metadata.name
  withdraw(self, name)
  write_status(self, crd_status.deleted(self.S.store:get(STORAGE, name), now))
  self.S.watches:finish(storage_of(document))
  self.S.store:drop(storage_of(document))
end

-- The beginning ----------------------------------------------------------------------------------

local function all_definitions(self) return (self.S.store:scan(STORAGE)) end

local function process(self, name)
  local document = self.S.store:get(STORAGE, name)
  if not document then return withdraw(self, name) end
  local now = self.S.clock:stamp()
  if document.metadata.deletionTimestamp then
    -- Its objects are gone; what still holds it is somebody else's finalizer.
    if not client.has(document.metadata.finalizers, crd_status.FINALIZER) then return withdraw(self, name) end
    if crd_status.is_established(document) then serve(self, document) end
    return finish(self, document)
  end
  local named = crd_status.name(document, all_definitions(self), now)
  if named ~= document then document = write_status(self, named) end
  local established = crd_status.establish(document, now)
  if crd_status.is_established(established) then serve(self, established) end
  if established ~= document then write_status(self, established) end
end

local function enqueue(self, name)
  if self.queued[name] then return end
  self.queued[name] = true
  self.S:later(function()
    self.queued[name] = nil
    process(self, name)
  end)
end

-- An object that was the last to hold its definition up.
local function on_deleted(self, storage)
  for name, list in pairs(self.served) do
    local document = list[1] and list[1].storage == storage and self.S.store:get(STORAGE, name)
    if document and document.metadata.deletionTimestamp then enqueue(self, name) end
  end
end

local function start_over(self)
  for name in pairs(self.served) do withdraw(self, name) end
  for _, document in ipairs(all_definitions(self)) do
    if crd_status.is_established(document) then serve(self, document) end
    enqueue(self, document.metadata.name)
  end
end

--- Follows definitions, and the objects of those that are going.
function definitions.start(S)
  local self = setmetatable({
    S = S, R = S.kinds:find("apiextensions.k8s.io", "v1", "customresourcedefinitions"), served = {}, queued = {},
  }, Controller)
  S.store:subscribe_all(function(change, storage)
    if storage == STORAGE then
      enqueue(self, change.key)
    elseif change.type == "DELETED" and not storage:find("^[^/]*$") then
      on_deleted(self, storage)
    end
  end)
  S.store:on_restore(function() start_over(self) end)
end

return definitions
