-- ConfigMaps: keys that can be file names, a megabyte in all.
local field = require "kube.sandbox.field"
local json = require "kube.sandbox.json"
local host = require "kube._server"
local secrets = require "kube.sandbox.strategies.secrets"

local configmaps = {}

local DATA_MAX = 1024 * 1024

local function default(_, document)
  for _, name in ipairs { "data", "binaryData" } do
    if json.is_object(document[name]) and next(document[name]) == nil then document[name] = nil end
  end
  return document
end

local function check_frozen(new, old, errors)
  if new.immutable ~= true then
    errors[#errors + 1] = field.forbidden("immutable", "field is immutable when `immutable` is set")
  end
  for _, name in ipairs { "data", "binaryData" } do
    if not json.equal(new[name], old[name]) then
      errors[#errors + 1] = field.forbidden(name, "field is immutable when `immutable` is set")
    end
  end
end

local function validate(_, new, old, errors)
  local size = 0
  for key, value in pairs(new.data or {}) do
    secrets.check_key(errors, key, "data")
    if json.get(new, "binaryData", key) then
      errors[#errors + 1] = field.invalid(("data[%s]"):format(key), key, "duplicate of key present in binaryData")
    end
    size = size + #value
  end
  for key, value in pairs(new.binaryData or {}) do
    secrets.check_key(errors, key, "binaryData")
    size = size + #(host.unbase64(value) or "")
  end
  if size > DATA_MAX then errors[#errors + 1] = field.too_long("[]", DATA_MAX) end
  if old and old.immutable == true then check_frozen(new, old, errors) end
end

function configmaps.of() return { default = default, validate = validate } end

return configmaps
