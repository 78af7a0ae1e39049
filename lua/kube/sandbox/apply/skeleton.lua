-- What an object of a built-in kind has before anybody wrote anything: the parts that the kind always
-- shows. Fields of structs stand there empty, so nobody comes to own them by filling them.
local json = require "kube.sandbox.json"
local schema = require "kube.sandbox.schema"

local skeleton = {}

local made = setmetatable({}, { __mode = "k" })

local ZEROS = { [""] = true, [0] = true, [false] = true }

local function build(node)
  local out = json.object {}
  local required = {}
  for _, name in ipairs(node.required or {}) do required[name] = true end
  for name, property in pairs(node.properties or {}) do
    local default = property.default
    if json.is_object(default) and next(default) == nil then
      out[name] = build(schema.resolve(property))
    elseif default ~= nil and ZEROS[default] then
      out[name] = default
    elseif required[name] then
      out[name] = json.null
    end
  end
  return out
end

--- Whether the node describes a built-in kind.
function skeleton.is_builtin(node) return node["x-kubernetes-group-version-kind"] ~= nil end

--- The empty object of the kind that the node describes; a custom one has nothing at all.
function skeleton.of(node)
  local found = made[node]
  if not found then
    found = skeleton.is_builtin(node) and build(node) or json.object {}
    made[node] = found
  end
  return found
end

--- The document without null members. Of a built-in kind they are what nobody set, and shown only
--- because the kind always shows the field.
function skeleton.without_nulls(document)
  if type(document) ~= "table" then return document end
  local out
  for key, value in pairs(document) do
    local kept = skeleton.without_nulls(value)
    if kept == json.null and type(key) == "string" then kept = nil end
    if kept ~= value then
      out = out or json.shallow(document)
      out[key] = kept
    end
  end
  return out or document
end

return skeleton
