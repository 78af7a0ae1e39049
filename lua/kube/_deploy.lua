-- Scripts that are kept in ConfigMaps: `moonwatch run configmap:namespace/name`. This runs beside the scripts as a part
-- of the host: it watches each ConfigMap, offers its content as the next revision, and tells in the ConfigMap, and by
-- an Event, what became of that.
local core = require "kube._core"
local kube = require "kube"

local deploy, log = core.deploy, core.log

local LOOK = 0.05          -- seconds between looks whether a revision has become active
local REPORT_MAX = 1000    -- bytes of a report in the annotation
local REVISION, STATUS = "moonwatch.dev/active-revision", "moonwatch.dev/status"

local recorder = kube.recorder { name = "moonwatch" }

-- Waits for the end of what was begun with a revision.
local function result_of(id, revision)
  while true do
    local outcome, report = deploy.outcome(id, revision)
    if outcome ~= "pending" then return outcome, report end
    kube.sleep(LOOK)
  end
end

local function first_line(text) return (text:match("^[^\n]*")) end

-- One who stands by writes nothing: its leader has read the same.
local function tell(source, object, revision, status)
  if not core.lease.is_leading() then return end
  local _, err = kube.client:try_patch("v1/configmaps", source.key, { metadata = {
    annotations = { [REVISION] = revision, [STATUS] = status:sub(1, REPORT_MAX) } } }, { type = "merge" })
  if err then
    log.write("warn", "what became of a revision could not be written back", { script = source.path,
      error = tostring(err) })
  end
  if status == "active" then
    recorder:normal(object, "Reloaded", "revision %s is active", revision)
  else
    recorder:warn(object, "ReloadFailed", "%s", first_line(status))
  end
end

local function take(source, object)
  local text = core.codec.encode(object.data or {})
  if text == source.text then return end -- our own note, or a label
  source.text = text
  local revision, problem = deploy.offer(source.id, source.path, core.codec.decode(text))
  if not revision then
    log.write("error", "reload failed; what runs goes on", { script = source.path, error = problem })
    return tell(source, object, nil, "failed: " .. problem)
  end
  local outcome, report = result_of(source.id, revision)
  if outcome == "active" then
    tell(source, object, revision, "active")
  elseif outcome == "failed" then
    tell(source, object, nil, "failed: " .. tostring(report))
  end
end

local function watch(source)
  local namespace, name = source.path:match("^configmap:([^/]+)/([^/]+)$")
  if not namespace then
    namespace, name = core.informer.default_namespace(), source.path:match("^configmap:([^/]+)$")
  end
  if not name or namespace == "" then
    error(("%s: write configmap:NAMESPACE/NAME, or give a namespace with -n"):format(source.path), 0)
  end
  source.key = namespace .. "/" .. name
  local informer = kube.informer("v1/configmaps", { namespace = namespace,
    field_selector = "metadata.name=" .. name })
  informer:add_event_handler {
    name = source.path,
    on_add = function(object) take(source, object) end,
    on_update = function(_, object) take(source, object) end,
    on_delete = function()
      log.write("warn", "the ConfigMap of a script is gone; what runs goes on", { script = source.path })
    end,
  }
  return function()
    if informer:has_synced() and not informer:lister():get(source.key) then
      log.write("warn", "there is no such ConfigMap yet; waiting for it", { script = source.path })
    end
  end
end

local checks = {}
for _, source in ipairs(deploy.sources()) do checks[#checks + 1] = watch(source) end
kube.sleep(1)
for _, check in ipairs(checks) do check() end
