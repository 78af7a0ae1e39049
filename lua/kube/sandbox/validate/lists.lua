-- Lists of x-kubernetes-list-type set and map: nothing in them twice.
local json = require "kube.sandbox.json"
local field = require "kube.sandbox.field"
local values = require "kube.sandbox.validate.value"

local lists = {}

-- The places (from 0) of what is there for the second time; a third time is not told.
local function repeated(items)
  local seen, places = {}, {}
  for i, item in ipairs(items) do
    local id = json.encode(item)
    seen[id] = (seen[id] or 0) + 1
    if seen[id] == 2 then places[#places + 1] = i - 1 end
  end
  return places
end

local function keys_of(node, items)
  local out = json.array {}
  for i, item in ipairs(items) do
    local key = json.object {}
    for _, name in ipairs(node["x-kubernetes-list-map-keys"] or {}) do
      if item ~= json.null then key[name] = item[name] end
    end
    out[i] = key
  end
  return out
end

local function check_map(errors, node, items, path)
  for i, item in ipairs(items) do
    if item ~= json.null and not json.is_object(item) then
      errors[#errors + 1] = field.invalid(("%s[%d]"):format(path, i - 1), item,
        "must be an object for an array of list-type map")
      return
    end
  end
  local keys = keys_of(node, items)
  for _, place in ipairs(repeated(keys)) do
    errors[#errors + 1] = field.duplicate(("%s[%d]"):format(path, place), keys[place + 1])
  end
end

local check

local function check_list(errors, node, items, path)
  local list_type = node["x-kubernetes-list-type"]
  if list_type == "set" then
    for _, place in ipairs(repeated(items)) do
      errors[#errors + 1] = field.duplicate(("%s[%d]"):format(path, place), items[place + 1])
    end
  elseif list_type == "map" then
    check_map(errors, node, items, path)
  end
  if not node.items then return end
  for i, item in ipairs(items) do check(errors, node.items, item, ("%s[%d]"):format(path, i - 1)) end
end

function check(errors, node, value, path)
  if type(value) ~= "table" then return end
  if json.is_array(value) then
    check_list(errors, node, value, path)
    return
  end
  local additional = type(node.additionalProperties) == "table" and node.additionalProperties
  for _, key in ipairs(values.sorted_keys(value)) do
    local property = node.properties and node.properties[key]
    if property then
      check(errors, property, value[key], path == "" and key or path .. "." .. key)
    elseif additional then
      check(errors, additional, value[key], path .. "[" .. key .. "]")
    end
  end
end

--- The field errors of everything in a document that is there twice.
function lists.validate(node, value)
  local errors = {}
  check(errors, node, value, "")
  return errors
end

return lists
