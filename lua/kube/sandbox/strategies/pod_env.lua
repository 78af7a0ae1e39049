-- The environment of containers: names, and where values come from.
local field = require "kube.sandbox.field"
local json = require "kube.sandbox.json"
local names = require "kube.sandbox.names"

local pod_env = {}

local function add(errors, e) errors[#errors + 1] = e end

local ENV_NAME = "a valid environment variable name must consist only of printable ASCII characters other than '='"

local function is_env_name(name) return not name:find("[^ -~]") and not name:find("=", 1, true) end

local FIELDS = { "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
  "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs" }
local FIELD_KNOWN = {}
for _, name in ipairs(FIELDS) do FIELD_KNOWN[name] = true end

-- What files can show and variables cannot.
local FILE_FIELDS = { ["metadata.annotations"] = true, ["metadata.labels"] = true, ["spec.restartPolicy"] = true,
  ["spec.schedulerName"] = true, ["status.phase"] = true }

local function check_subscript(errors, map, key, whole, path)
  if map ~= "metadata.annotations" and map ~= "metadata.labels" then
    add(errors, field.invalid(path .. ".fieldPath", whole,
      "error converting fieldPath: field label does not support subscript: " .. whole))
    return
  end
  if map == "metadata.annotations" then key = key:lower() end
  for _, problem in ipairs { names.qualified(key) } do add(errors, field.invalid(path, key, problem)) end
end

local sources = {}

function sources.fieldRef(errors, ref, path)
  local name = ref.fieldPath or ""
  if name == "" then
    add(errors, field.required(path .. ".fieldPath"))
    return
  end
  if ref.apiVersion ~= "v1" then
    add(errors, field.invalid(path .. ".fieldPath", name,
      "error converting fieldPath: unsupported pod version: " .. ref.apiVersion))
    return
  end
  local map, key = name:match("^(.-)%['(.*)'%]$")
  if map then return check_subscript(errors, map, key, name, path) end
  if name == "spec.host" then name = "spec.nodeName" end
  if FIELD_KNOWN[name] then return end
  add(errors, FILE_FIELDS[name] and field.not_supported(path .. ".fieldPath", name, FIELDS)
    or field.invalid(path .. ".fieldPath", name, "error converting fieldPath: field label not supported: " .. name))
end

local function check_key_ref(errors, ref, path)
  local name, key = ref.name or "", ref.key or ""
  local problem = names.subdomain(name)
  if problem then add(errors, field.invalid(path .. ".name", name, problem)) end
  if key == "" then
    add(errors, field.required(path .. ".key"))
    return
  end
  for _, detail in ipairs { names.config_key(key) } do add(errors, field.invalid(path .. ".key", key, detail)) end
end
sources.configMapKeyRef, sources.secretKeyRef = check_key_ref, check_key_ref

local ORDER = { "fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef" }
local ONE_OF = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"

local function check_value_from(errors, variable, path)
  local count = 0
  for _, name in ipairs(ORDER) do
    local source = json.get(variable, "valueFrom", name)
    if source then
      count = count + 1
      if sources[name] then sources[name](errors, source, path .. "." .. name) end
    end
  end
  if count == 0 then
    add(errors, field.invalid(path, "", ONE_OF))
  elseif (variable.value or "") ~= "" then
    add(errors, field.invalid(path, "", "may not be specified when `value` is not empty"))
  elseif count > 1 then
    add(errors, field.invalid(path, "", "may not have more than one field specified at a time"))
  end
end

--- Adds what is wrong with the variables at `path`.
function pod_env.check(errors, env, path)
  for i, variable in ipairs(env or {}) do
    local at, name = ("%s[%d]"):format(path, i - 1), variable.name or ""
    if name == "" then
      add(errors, field.required(at .. ".name"))
    elseif not is_env_name(name) then
      add(errors, field.invalid(at .. ".name", name, ENV_NAME))
    end
    if json.get(variable, "valueFrom") then check_value_from(errors, variable, at .. ".valueFrom") end
  end
end

--- Adds what is wrong with the maps at `path` whose every key becomes a variable.
function pod_env.check_from(errors, from, path)
  for i, source in ipairs(from or {}) do
    local at, prefix, count = ("%s[%d]"):format(path, i - 1), source.prefix or "", 0
    if not is_env_name(prefix) then add(errors, field.invalid(at .. ".prefix", prefix, ENV_NAME)) end
    for _, kind in ipairs { "configMapRef", "secretRef" } do
      local ref = json.get(source, kind)
      if ref then
        count = count + 1
        local name = ref.name or ""
        local problem = name ~= "" and names.subdomain(name)
        if name == "" then add(errors, field.required(("%s.%s.name"):format(at, kind))) end
        if problem then add(errors, field.invalid(("%s.%s.name"):format(at, kind), name, problem)) end
      end
    end
    -- The server names the list, not its item.
    if count == 0 then
      add(errors, field.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
    elseif count > 1 then
      add(errors, field.invalid(path, "", "may not have more than one field specified at a time"))
    end
  end
end

return pod_env
