-- Defaults in a schema have to be valid by it: nothing that would be pruned, nothing that would fail.
local json = require "kube.sandbox.json"
local field = require "kube.sandbox.field"
local embedded = require "kube.sandbox.validate.embedded"
local prune = require "kube.sandbox.crd.prune"
local rules = require "kube.sandbox.crd.rules"
local schema = require "kube.sandbox.validate.schema"
local values = require "kube.sandbox.validate.value"

local default_rules = {}

local META = { metadata = true, kind = true, apiVersion = true }

local function append(to, from)
  for _, e in ipairs(from) do to[#to + 1] = e end
end

local function moved(errors, path)
  for i, e in ipairs(errors) do
    errors[i] = { type = e.type, message = e.message, field = e.field == "" and path or path .. "." .. e.field }
  end
  return errors
end

local function check_default(errors, node, path, in_meta)
  local value = node.default
  local at = path .. ".default"
  if not in_meta then
    local whole = node["x-kubernetes-embedded-resource"] == true
    if not json.equal(prune.prune(value, node, not whole), value) then
      errors[#errors + 1] = field.invalid(at, value, "must not have unknown fields")
    end
    local inner = moved(embedded.validate(node, value), at)
    if inner[1] then
      append(errors, inner)
      return
    end
  end
  local invalid = schema.validate(node, value, at)
  append(errors, invalid)
  if not invalid[1] and rules.present(node) then append(errors, (rules.validate(node, value, nil, at))) end
end

local function walk(errors, node, path, in_meta, root)
  local resource = root or node["x-kubernetes-embedded-resource"] == true
  if resource then in_meta = false end
  if node.default ~= nil and node.default ~= json.null then check_default(errors, node, path, in_meta) end
  if node.items then walk(errors, node.items, path .. ".items", in_meta) end
  for _, key in ipairs(values.sorted_keys(node.properties or {})) do
    local inside = in_meta or resource and META[key] or false
    walk(errors, node.properties[key], ("%s.properties[%s]"):format(path, key), inside)
  end
end

--- The field errors of the defaults in a structural schema.
function default_rules.validate(node, path)
  local errors = {}
  walk(errors, node, path, false, true)
  return errors
end


return default_rules
