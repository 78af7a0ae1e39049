-- A value against an OpenAPI v3 schema, as kube-apiserver validates custom resources: same texts, same
-- reasons, same choice among the branches of anyOf and oneOf (the one that got furthest is told).
local json = require "kube.sandbox.json"
local field = require "kube.sandbox.field"
local correlate = require "kube.sandbox.validate.correlate"
local scalar = require "kube.sandbox.validate.scalar"
local values = require "kube.sandbox.validate.value"

local schema = {}

-- ---- reports: the errors of one value, and how many checks it took part in ----

local report = {}
report.__index = report

local function new_report(path) return setmetatable({ path = path, texts = {}, count = 0 }, report) end

local function field_path(path, name)
  name = name:gsub("^%.", "")
  if name == "" then return path or "<nil>" end
  return path and path .. "." .. name or name
end

-- Adds what `make` (of kube.sandbox.field) builds, unless the same text is there already.
function report:add(text, make, name, ...)
  if self.texts[text] then return end
  self.texts[text] = true
  self[#self + 1] = { text = text, error = make(field_path(self.path, name), ...) }
end

function report:invalid(name, value, text) self:add(text, field.invalid, name, value, text) end

--- An error that the server does not place.
function report:unplaced(text) self:add(text, field.invalid, "", "", text) end

function report:merge(other)
  self.count = self.count + other.count
  for _, entry in ipairs(other) do
    if not self.texts[entry.text] then
      self.texts[entry.text] = true
      self[#self + 1] = entry
    end
  end
end

-- ---- objects and arrays ----

local check, check_child

local function is_property(node, key) return node.properties ~= nil and node.properties[key] ~= nil end

local function check_additional(result, node, value, name, pair)
  local additional = node.additionalProperties
  if additional == nil or additional == true then return end
  for _, key in ipairs(values.sorted_keys(value)) do
    if not is_property(node, key) then
      if additional == false then
        result:invalid(name, key, ("%s.%s in body is a forbidden property"):format(name, key))
      else
        result:merge(check_child(additional, value[key], name .. "." .. key, pair and pair:key(key), result.path))
      end
    end
  end
end

local function size_of(object)
  local n = 0
  for _ in pairs(object) do n = n + 1 end
  return n
end

local function check_size(result, node, value, name)
  local size = (node.minProperties or node.maxProperties) and size_of(value)
  if node.minProperties and size < node.minProperties then
    result:invalid(name, size, ("%s in body should have at least %d properties"):format(name, node.minProperties))
  end
  if node.maxProperties and size > node.maxProperties then
    local text = ("%s in body should have at most %d properties"):format(name, node.maxProperties)
    result:add(text, field.too_many, name, size, tonumber(node.maxProperties))
  end
end

local TYPE_META = { kind = true, apiVersion = true }

local function check_object(node, value, name, pair, path)
  local result = new_report(path)
  check_size(result, node, value, name)
  check_additional(result, node, value, name, pair)
  for _, key in ipairs(values.sorted_keys(node.properties or {})) do
    if value[key] ~= nil then
      local child = name == "" and key or name .. "." .. key
      local ratchets = pair and not (name == "" and TYPE_META[key])
      result:merge(check_child(node.properties[key], value[key], child, ratchets and pair:key(key), path))
    end
  end
  for _, key in ipairs(node.required or {}) do
    if value[key] == nil then
      local missing = name .. "." .. key
      result:add(missing .. " in body is required", field.required, missing)
    end
  end
  return result
end

local function has_duplicates(list)
  for i = 2, #list do
    for k = 1, i - 1 do
      if json.equal(list[i], list[k]) then return true end
    end
  end
  return false
end

local function check_array(node, value, name, pair, path)
  local result = new_report(path)
  if node.items then
    for i, item in ipairs(value) do
      result:merge(check_child(node.items, item, ("%s[%d]"):format(name, i - 1), pair and pair:index(i), path))
    end
  end
  if node.minItems and #value < node.minItems then
    result:invalid(name, #value, ("%s in body should have at least %d items"):format(name, node.minItems))
  end
  if node.maxItems and #value > node.maxItems then
    local text = ("%s in body should have at most %d items"):format(name, node.maxItems)
    result:add(text, field.too_many, name, #value, tonumber(node.maxItems))
  end
  if node.uniqueItems and has_duplicates(value) then
    result:invalid(name, "", name .. " in body shouldn't contain duplicates")
  end
  result.count = result.count + 1
  return result
end

-- ---- anyOf, oneOf, allOf, not ----

-- Runs the branches: how many held, the first that did, and of the others the one with most checks.
-- Branches do not ratchet.
local function try(branches, value, name, path, stop_at_first)
  local held, first, best = 0, nil, nil
  for _, branch in ipairs(branches) do
    local result = check(branch, value, name, nil, path)
    if #result == 0 then
      held, first, best = held + 1, first or result, nil
      if stop_at_first then break end
    elseif held == 0 and (not best or result.count > best.count) then
      best = result
    end
  end
  return held, first, best
end

local function check_any(result, node, value, name)
  local held, first, best = try(node.anyOf, value, name, result.path, true)
  if held == 0 then result:unplaced(("%s must validate at least one schema (anyOf)"):format(field.show(name))) end
  if best or first then result:merge(best or first) end
end

local function check_one(result, node, value, name)
  local held, first, best = try(node.oneOf, value, name, result.path)
  if held == 1 then
    result:merge(first)
    return
  end
  local found = held == 0 and "Found none valid" or ("Found %d valid alternatives"):format(held)
  result:unplaced(("%s must validate one and only one schema (oneOf). %s"):format(field.show(name), found))
  if best then result:merge(best) end
end

local function check_all(result, node, value, name)
  local held = 0
  for _, branch in ipairs(node.allOf) do
    local one = check(branch, value, name, nil, result.path)
    if #one == 0 then held = held + 1 end
    result:merge(one)
  end
  if held == #node.allOf then return end
  local none = held == 0 and ". None validated" or ""
  result:unplaced(("%s must validate all the schemas (allOf)%s"):format(field.show(name), none))
end

local function check_branches(node, value, name, path)
  local result = new_report(path)
  if node.anyOf and #node.anyOf > 0 then check_any(result, node, value, name) end
  if node.oneOf and #node.oneOf > 0 then check_one(result, node, value, name) end
  if node.allOf and #node.allOf > 0 then check_all(result, node, value, name) end
  if node["not"] and #check(node["not"], value, name, nil, path) == 0 then
    result:unplaced(("%s must not validate the schema (not)"):format(field.show(name)))
  end
  result.count = result.count + 1
  return result
end

-- ---- one value ----

local function resolved(node)
  if not node["$ref"] then return node end
  return require("kube.sandbox.schema").resolve(node)
end

-- The counts are the server's: they decide which branch of anyOf and oneOf is told.
function check(node, value, name, pair, path)
  node = resolved(node)
  local result = new_report(path)
  local typed = node.type or node["x-kubernetes-int-or-string"] or scalar.format(node)
  local kind = values.kind(value)
  if kind == "null" then
    if scalar.check_type(result, node, value, name) then result.count = 1 end
    scalar.check_enum(result, node, value, name)
    return result
  end
  if typed then
    result.count = scalar.check_type(result, node, value, name) and 2 or 1
  end
  result:merge(check_branches(node, value, name, path))
  result.count = result.count + 1
  if kind == "string" then
    scalar.check_string(result, node, value, name)
    result.count = result.count + (scalar.check_format(result, node, value, name) and 2 or 1)
  elseif kind == "integer" or kind == "number" then
    scalar.check_number(result, node, value, name)
    result.count = result.count + 2
  elseif kind == "array" then
    result:merge(check_array(node, value, name, pair, path))
    result.count = result.count + 1
  end
  scalar.check_enum(result, node, value, name)
  if kind == "object" then
    result:merge(check_object(node, value, name, pair, path))
    result.count = result.count + 1
  end
  result.count = result.count + 2
  return result
end

-- A field or an item: with an equal old value its errors do not count.
function check_child(node, value, name, pair, path)
  local result = check(node, value, name, pair, path)
  if pair and #result > 0 and pair:equal() then
    local forgiven = new_report(path)
    forgiven.count = result.count
    return forgiven
  end
  return result
end

--- The field errors of a value. `path` is where it stands (nil: it is the whole object); with `old`
--- what did not change is not told again.
function schema.validate(node, value, path, old)
  local pair = old ~= nil and correlate.new(node, value, old) or nil
  local errors = {}
  for i, entry in ipairs(check_child(node, value, "", pair, path)) do errors[i] = entry.error end
  return errors
end

return schema
