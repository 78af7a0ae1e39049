-- Secrets: stringData goes into data, the type is set for good.
local field = require "kube.sandbox.field"
local go_json = require "kube.sandbox.go_json"
local host = require "kube._server"
local json = require "kube.sandbox.json"
local names = require "kube.sandbox.names"

local secrets = {}

local DATA_MAX = 1024 * 1024

local REQUIRED = {
  ["kubernetes.io/tls"] = { "tls.crt", "tls.key" },
  ["kubernetes.io/dockercfg"] = { ".dockercfg" },
  ["kubernetes.io/dockerconfigjson"] = { ".dockerconfigjson" },
  ["kubernetes.io/ssh-auth"] = { "ssh-privatekey" },
}

local function default(_, document)
  local strings = json.get(document, "stringData")
  if strings then
    local data = json.is_object(document.data) and json.shallow(document.data) or json.object {}
    for key, value in pairs(strings) do data[key] = host.base64(value) end
    if next(data) ~= nil then document.data = data end
  end
  document.stringData = nil
  if not document.type or document.type == "" then document.type = "Opaque" end
  return document
end

--- Adds what is wrong with a key of `name`.
function secrets.check_key(errors, key, name)
  for _, problem in ipairs { names.config_key(key) } do
    errors[#errors + 1] = field.invalid(("%s[%s]"):format(name, key), key, problem)
  end
end

local REDACTED = "<secret contents redacted>"

-- A part that the type needs; what is for docker must be JSON.
local function check_part(errors, new, name)
  local path, value = "data[" .. name .. "]", json.get(new, "data", name)
  if value == nil then
    errors[#errors + 1] = field.required(path)
  elseif name:find("^%.docker") then
    local text = host.unbase64(value) or ""
    if json.decode(text) == nil then errors[#errors + 1] = field.invalid(path, REDACTED, go_json.problem(text)) end
  end
end

local ACCOUNT = "kubernetes.io/service-account.name"

-- What a type needs beyond certain keys.
local function check_type(errors, new)
  for _, name in ipairs(REQUIRED[new.type] or {}) do check_part(errors, new, name) end
  local data = json.get(new, "data") or {}
  if new.type == "kubernetes.io/basic-auth" and not data.username and not data.password then
    errors[#errors + 1] = field.required("data[username]")
    errors[#errors + 1] = field.required("data[password]")
  elseif new.type == "kubernetes.io/service-account-token"
    and not json.get(new.metadata, "annotations", ACCOUNT) then
    errors[#errors + 1] = field.required(("metadata.annotations[%s]"):format(ACCOUNT))
  end
end

local function validate(_, new, old, errors)
  local size = 0
  for key, value in pairs(json.get(new, "data") or {}) do
    secrets.check_key(errors, key, "data")
    size = size + #(host.unbase64(value) or "")
  end
  if size > DATA_MAX then errors[#errors + 1] = field.too_long("data", DATA_MAX) end
  check_type(errors, new)
  if not old then return end
  if new.type ~= old.type then errors[#errors + 1] = field.immutable("type", new.type) end
  if old.immutable == true then
    if new.immutable ~= true then
      errors[#errors + 1] = field.forbidden("immutable", "field is immutable when `immutable` is set")
    end
    if not json.equal(new.data, old.data) then
      errors[#errors + 1] = field.forbidden("data", "field is immutable when `immutable` is set")
    end
  end
end

function secrets.of() return { default = default, validate = validate } end

return secrets
