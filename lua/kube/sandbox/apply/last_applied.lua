-- kubectl's move from client-side to server-side apply: the manager "kubectl" may take the fields that
-- the annotation of its last client-side apply names, and the annotation follows what it applies.
local field_set = require "kube.sandbox.apply.field_set"
local json = require "kube.sandbox.json"
local walk = require "kube.sandbox.apply.walk"

local last_applied = {}

local ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"

local function annotation(document)
  local text = json.get(document, "metadata", "annotations", ANNOTATION)
  return text ~= "" and text or nil
end

-- The fields of the last configuration that the live document still has as they were; nil for none.
local function unchanged(live, self, options)
  local text = annotation(live)
  local config = text and json.decode(text)
  if not json.is_object(config) or config.apiVersion ~= options.api_version then return nil end
  local set = walk.fields(config, self)
  local found = walk.compare(config, live, self)
  for _, kind in ipairs { "modified", "added", "removed" } do set = field_set.difference(set, found[kind]) end
  return set
end

--- The conflicts that remain when kubectl may take what it applied itself.
function last_applied.conflicts(live, found, self, options)
  local own = unchanged(live, self, options)
  if not own then return found end
  local rest = {}
  for id, one in pairs(found) do
    local set = field_set.difference(one.set, own)
    if not field_set.empty(set) then rest[id] = { entry = one.entry, set = set } end
  end
  return rest
end

--- The document with the annotation brought up to date, if it has one and kubectl applies.
function last_applied.refresh(document, config, options)
  if options.manager ~= "kubectl" or not annotation(document) then return document end
  local bare = config
  if json.get(config, "metadata", "annotations") then
    local annotations = json.with(config.metadata.annotations, ANNOTATION, nil)
    bare = json.with(config, "metadata", json.with(config.metadata, "annotations", annotations))
  end
  local annotations = json.with(document.metadata.annotations, ANNOTATION, json.encode(bare) .. "\n")
  return json.with(document, "metadata", json.with(document.metadata, "annotations", annotations))
end

return last_applied
