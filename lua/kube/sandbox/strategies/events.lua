-- Events: one stored object (as core/v1 writes it) with two faces, kept for an hour.
local always = require "kube.sandbox.always"
local field = require "kube.sandbox.field"
local json = require "kube.sandbox.json"
local object = require "kube.sandbox.object"

local events = {}

local LIFETIME = 3600

-- events.k8s.io/v1 on the left, v1 on the right.
local NAMES = {
  regarding = "involvedObject",
  note = "message",
  deprecatedSource = "source",
  deprecatedFirstTimestamp = "firstTimestamp",
  deprecatedLastTimestamp = "lastTimestamp",
  deprecatedCount = "count",
  reportingController = "reportingComponent",
}

local BACK = {}
for new, old in pairs(NAMES) do BACK[old] = new end

local function renamed(document, names)
  local out = json.object {}
  for key, value in pairs(document) do out[names[key] or key] = value end
  return out
end

local CORE = { definition = "io.k8s.api.core.v1.Event" }
local NEW = { definition = "io.k8s.api.events.v1.Event" }

local function from_storage(stored)
  local out = renamed(stored, BACK)
  out.apiVersion = "events.k8s.io/v1"
  return always.fill(NEW, out)
end

local function to_storage(document)
  local out = renamed(document, NAMES)
  out.apiVersion = "v1"
  return always.fill(CORE, out)
end

local function validate_core(_, new, _, errors)
  local namespace = json.get(new, "involvedObject", "namespace") or ""
  if namespace ~= "" and namespace ~= new.metadata.namespace then
    errors[#errors + 1] = field.invalid("involvedObject.namespace", namespace, "does not match event.namespace")
  end
end

local TYPES = { Normal = true, Warning = true }

local function validate_new(_, new, old, errors)
  if not json.get(new, "eventTime") and not old then errors[#errors + 1] = field.required("eventTime") end
  if json.get(new, "eventTime") then
    for _, name in ipairs { "reportingController", "reportingInstance", "action", "reason" } do
      if (json.get(new, name) or "") == "" then errors[#errors + 1] = field.required(name) end
    end
  end
  local kind = json.get(new, "type") or ""
  if not TYPES[kind] then errors[#errors + 1] = field.invalid("type", kind, "has invalid value: " .. kind) end
end

local function after_create(ctx, stored)
  local key, uid = object.key_of(ctx.R, stored), stored.metadata.uid
  ctx.S.clock:after(LIFETIME, function()
    local found = ctx.S.store:get("events", key)
    if found and found.metadata.uid == uid then ctx.S.store:delete(ctx.R, key) end
  end)
end

function events.of(R)
  if R.group == "" then
    return { validate = validate_core, after_create = after_create }
  end
  R.from_storage, R.to_storage = from_storage, to_storage
  return { validate = validate_new, after_create = after_create }
end

return events
