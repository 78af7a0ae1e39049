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

local function check_text(errors, value, path, max)
  if value == "" then
    errors[#errors + 1] = field.required(path)
  elseif #value > max then
    errors[#errors + 1] = field.invalid(path, "", ("can have at most %d characters"):format(max))
  end
end

-- What both views check, in the names of the older one.
local function check(event, errors, controller)
  local namespace = json.get(event, "involvedObject", "namespace") or ""
  local own = event.metadata.namespace
  if namespace ~= own and not (namespace == "" and own == "default") then
    errors[#errors + 1] = field.invalid("involvedObject.namespace", namespace, "does not match event.namespace")
  end
  if not json.get(event, "eventTime") then return end
  if (event.reportingComponent or "") == "" then errors[#errors + 1] = field.required(controller) end
  for _, name in ipairs { "reportingInstance", "action", "reason" } do
    check_text(errors, event[name] or "", name, 128)
  end
  if #(event.message or "") > 1024 then
    errors[#errors + 1] = field.invalid("message", "", "can have at most 1024 characters")
  end
end

local function validate_core(_, new, _, errors) check(new, errors, "reportingComponent") end

-- A series is at least two of the same.
local function check_series(errors, series)
  if not series then return end
  if (tonumber(series.count) or 0) < 2 then
    errors[#errors + 1] = field.invalid("series.count", "", "should be at least 2")
  end
  if not json.get(series, "lastObservedTime") then
    errors[#errors + 1] = field.required("series.lastObservedTime")
  end
end

-- What happened, and to whom, is said once. (Of the reason the server complains twice.)
local FIXED = { "involvedObject", "reason", "reason", "message", "reportingComponent", "reportingInstance", "action",
  "type", "eventTime", "source", "firstTimestamp", "lastTimestamp", "count", "related" }

local function check_fixed(errors, new, old)
  for _, name in ipairs(FIXED) do
    if not json.equal(new[name], old[name]) then errors[#errors + 1] = field.immutable(name, new[name]) end
  end
end

local TYPES = { Normal = true, Warning = true }

local function validate_new(_, new, old, errors)
  local event = to_storage(new)
  check(event, errors, "reportingController")
  if not json.get(event, "eventTime") then errors[#errors + 1] = field.required("eventTime") end
  local kind = event.type or ""
  if not TYPES[kind] then errors[#errors + 1] = field.invalid("type", "", "has invalid value: " .. kind) end
  check_series(errors, json.get(event, "series"))
  if old then check_fixed(errors, event, to_storage(old)) end
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
  R.refused_as = { kind = "Event", group = "" }
  return { validate = validate_new, after_create = after_create }
end

return events
