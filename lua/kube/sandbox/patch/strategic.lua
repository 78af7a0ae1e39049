-- Strategic merge patch: a merge patch that knows from the schema which lists are merged and by
-- which key, and takes directives ($patch, $retainKeys, $setElementOrder/x, $deleteFromPrimitiveList/x).
local gotext = require "kube.sandbox.patch.gotext"
local json = require "kube.sandbox.json"
local order = require "kube.sandbox.patch.strategic_order"
local schema = require "kube.sandbox.schema"

local strategic = {}

local DELETE_LIST = "$deleteFromPrimitiveList"
local SET_ORDER = "$setElementOrder"
local RETAIN_KEYS = "$retainKeys"

local BAD_ORDER = "invalid patch format of setElementOrder list"
local BAD_DELETE_LIST = "invalid patch format of primitive list"
local BAD_RETAIN = "invalid patch format of retainKeys"

-- Refusals are raised as this, and returned by strategic.apply.
local Refusal = {}

local function refuse(kind, message, ...)
  if select("#", ...) > 0 then message = message:format(...) end
  error(setmetatable({ kind = kind, message = message }, Refusal), 0)
end

local function wrong_type(expected, value)
  refuse("unclassified", "expected a %s, but received a %s", expected, gotext.type(value))
end

local function no_merge_key(element, merge_key)
  refuse("unclassified", "map: %s does not contain declared merge key: %s", gotext.value(element), merge_key)
end

local merge_map

-- ---- what the schema says ----

local function type_name(node)
  local kinds = node["x-kubernetes-group-version-kind"]
  if kinds and kinds[1] then return kinds[1].kind end
  local reference = node["$ref"]
  return reference and reference:match("[^./]+$") or ""
end

-- The node of a member, its strategy (merge, replace or nothing) and its merge key.
local function member(node, name)
  local resolved = node and schema.resolve(node)
  if not resolved or not resolved.properties then
    refuse("unclassified", "merging an object in json but data type is not struct, instead is: map")
  end
  local own = resolved.properties[name]
  if not own then
    refuse("unclassified", 'unable to find api field in struct %s for the json field "%s"', type_name(node), name)
  end
  local strategy = own["x-kubernetes-patch-strategy"] or ""
  local plain
  for word in strategy:gmatch("[^,]+") do
    if word ~= "retainKeys" then plain = word end
  end
  return own, plain, own["x-kubernetes-patch-merge-key"]
end

local function list_member(node, name)
  local own, strategy, merge_key = member(node, name)
  local list = schema.resolve(own)
  if list.type ~= "array" then refuse("unclassified", "expected slice or array type, but got: struct") end
  return list.items, strategy, merge_key
end

-- ---- values of the patch that meet nothing in the document ----

-- Without elements and members that are directives; with `nulls`, without null members too.
local function bare(value, nulls)
  if type(value) ~= "table" then return value end
  if json.is_array(value) then
    local out = json.array {}
    for _, v in ipairs(value) do
      local kept = bare(v, nulls)
      if kept ~= nil then out[#out + 1] = kept end
    end
    return out
  end
  if value["$patch"] ~= nil then return nil end
  local out = json.object {}
  for k, v in pairs(value) do
    if not (nulls and v == json.null) then out[k] = bare(v, nulls) end
  end
  return out
end

-- ---- lists ----

-- All elements of both lists are of one type, which is not a list. True when they are objects.
local function are_objects(original, patch)
  local first
  for _, list in ipairs { original, patch } do
    for _, element in ipairs(list) do
      local kind = gotext.type(element)
      if not first and kind == "[]interface {}" then
        refuse("unprocessable", "the server rejected our request due to an error in our request")
      elseif first and kind ~= first then
        refuse("unclassified", "list element types are not identical: [%s %s]", gotext.value(original),
          gotext.value(patch))
      end
      first = kind
    end
  end
  return first == "map[string]interface {}"
end

local function without(list, keys, merge_key)
  local out = json.array {}
  for _, element in ipairs(list) do
    if not order.index(keys, order.key_of(element, merge_key), merge_key) then out[#out + 1] = element end
  end
  return out
end

local function merge_scalars(original, patch)
  local merged = json.array {}
  for _, list in ipairs { original, patch } do
    for _, element in ipairs(list) do
      if not order.index(merged, element) then merged[#merged + 1] = element end
    end
  end
  return order.enforce(merged, patch, original)
end

-- Obeys the elements that are directives: the document's list without what they delete, and the
-- other elements of the patch. After `$patch: replace` these are the whole list.
local function obey_elements(original, patch, merge_key)
  local rest, replace = json.array {}, false
  for _, element in ipairs(patch) do
    local directive = element["$patch"]
    if directive == nil then
      rest[#rest + 1] = element
    elseif directive == "delete" then
      if element[merge_key] == nil then no_merge_key(element, merge_key) end
      original = without(original, { element }, merge_key)
    elseif directive == "replace" then
      replace = true
    elseif directive == "merge" then
      refuse("unclassified", "merging lists cannot yet be specified in the patch")
    else
      refuse("unclassified", "unknown patch type: %s in map: %s", gotext.text(directive), gotext.value(element))
    end
  end
  if replace then return rest, json.array {} end
  return original, rest
end

local function merge_objects(original, patch, node, merge_key)
  original, patch = obey_elements(original, patch, merge_key)
  local merged = json.shallow(original)
  for _, element in ipairs(patch) do
    if element[merge_key] == nil then no_merge_key(element, merge_key) end
    local i = order.index(merged, element[merge_key], merge_key)
    if i then
      merged[i] = merge_map(merged[i], element, node)
    else
      merged[#merged + 1] = element
    end
  end
  for _, element in ipairs(merged) do
    if element[merge_key] == nil then no_merge_key(element, merge_key) end
  end
  return order.enforce(merged, patch, original, merge_key)
end

local function merge_list(original, patch, node, strategy, merge_key, is_delete_list)
  if strategy ~= "merge" and not is_delete_list then return patch end
  if #original == 0 and #patch == 0 then return original end
  if not are_objects(original, patch) then
    if is_delete_list then return without(original, patch) end
    return merge_scalars(original, patch)
  end
  if not merge_key then refuse("unclassified", "cannot merge lists without merge key for struct") end
  return merge_objects(original, patch, node, merge_key)
end

-- ---- directives of maps ----

local function starts_with(text, prefix) return text:sub(1, #prefix) == prefix end

-- The name after the slash of a directive.
local function target(key, prefix, message)
  local name = key:match("^[^/]*/(.*)$")
  if not name or key:match("^[^/]*") ~= prefix then refuse("bad_request", message) end
  return name
end

-- Drops the members of `out` that the patch does not retain.
local function retain_keys(out, patch)
  local retained = patch[RETAIN_KEYS]
  if retained == nil then return end
  if not json.is_array(retained) then refuse("bad_request", BAD_RETAIN) end
  local keep = {}
  for _, name in ipairs(retained) do keep[name] = true end
  for k, v in pairs(patch) do
    local plain = k ~= RETAIN_KEYS and v ~= json.null and not starts_with(k, DELETE_LIST) and
      not starts_with(k, SET_ORDER)
    if plain and not keep[k] then refuse("bad_request", BAD_RETAIN) end
  end
  for k in pairs(json.shallow(out)) do
    if not keep[k] then out[k] = nil end
  end
end

-- The elements of the patch's list must come in $setElementOrder's order, and in no other.
local function check_order(patch, wanted, merge_key)
  if #wanted == 0 or #patch == 0 then return end
  local i = 1
  local function skip()
    while patch[i] ~= nil and merge_key and patch[i]["$patch"] ~= nil do i = i + 1 end
  end
  for _, element in ipairs { patch, wanted } do
    for _, e in ipairs(merge_key and element or {}) do
      if not json.is_object(e) then wrong_type("map[string]interface {}", e) end
      if e[merge_key] == nil and e["$patch"] == nil then no_merge_key(e, merge_key) end
    end
  end
  for _, element in ipairs(wanted) do
    skip()
    if patch[i] == nil then return end
    if order.key_of(patch[i], merge_key) == order.key_of(element, merge_key) then i = i + 1 end
  end
  skip()
  if patch[i] ~= nil then
    refuse("unclassified", "The order in patch list:\n%s\n doesn't match $setElementOrder list:\n%s\n",
      gotext.value(patch), gotext.value(wanted))
  end
end

-- One $setElementOrder/name: merges the list that it orders, which is then done with.
local function set_order(out, patch, name, wanted, node)
  local original, patched = out[name], patch[name]
  for _, list in ipairs { wanted, original or wanted, patched or wanted } do
    if not json.is_array(list) then wrong_type("[]interface {}", list) end
  end
  local items, strategy, merge_key = list_member(node, name)
  check_order(patched or json.array {}, wanted, merge_key)
  if not original and not patched then return end
  local merged
  if not patched then
    merged = original
  elseif not original then
    merged = bare(patched)
  else
    merged = merge_list(original, patched, items, strategy, merge_key)
  end
  if are_objects(original or json.array {}, patched or json.array {}) then
    for _, element in ipairs(merged) do
      if element[merge_key] == nil then no_merge_key(element, merge_key) end
    end
  elseif #(original or {}) + #(patched or {}) == 0 then
    refuse("unclassified", "no elements in any of the given slices")
  end
  out[name] = order.enforce(merged, wanted, original or json.array {}, merge_key)
end

-- ---- maps ----

local function merge_member(out, name, value, node, is_delete_list)
  local current = out[name]
  if value == json.null then
    out[name] = nil
  elseif current == nil or gotext.type(current) ~= gotext.type(value) then
    if not is_delete_list then out[name] = bare(value, true) end
  elseif json.is_array(value) then
    local items, strategy, merge_key = list_member(node, name)
    out[name] = merge_list(current, value, items, strategy, merge_key, is_delete_list)
  elseif json.is_object(value) then
    local own, strategy = member(node, name)
    out[name] = strategy == "replace" and value or merge_map(current, value, own)
  else
    out[name] = value
  end
end

local function sorted_keys(t)
  local keys = {}
  for k in pairs(t) do keys[#keys + 1] = k end
  table.sort(keys)
  return keys
end

function merge_map(original, patch, node)
  local directive = patch["$patch"]
  if directive == "replace" then return json.with(patch, "$patch", nil) end
  if directive == "delete" then return json.object {} end
  if directive ~= nil then
    refuse("unclassified", "unknown patch type: %s in map: %s", gotext.text(directive), gotext.value(patch))
  end
  local out = json.shallow(original)
  retain_keys(out, patch)
  local ordered = {}
  for _, key in ipairs(sorted_keys(patch)) do
    if starts_with(key, SET_ORDER) then
      local name = target(key, SET_ORDER, BAD_ORDER)
      set_order(out, patch, name, patch[key], node)
      ordered[key], ordered[name] = true, true
    end
  end
  for _, key in ipairs(sorted_keys(patch)) do
    if starts_with(key, DELETE_LIST) then
      merge_member(out, target(key, DELETE_LIST, BAD_DELETE_LIST), patch[key], node, true)
    elseif not ordered[key] and key ~= RETAIN_KEYS then
      merge_member(out, key, patch[key], node)
    end
  end
  return out
end

--- The patched document, or nil, the kind of refusal (bad_request 400, unprocessable 422,
--- unclassified 500) and its text. Neither argument is changed; the result shares what did not change.
function strategic.apply(doc, patch, node)
  if patch == json.null then return doc end
  if not json.is_object(patch) then
    local kind = json.is_array(patch) and "array" or type(patch)
    return nil, "bad_request", ("json: cannot unmarshal %s into Go value of type map[string]interface {}"):format(kind)
  end
  local ok, result = pcall(merge_map, doc, patch, node)
  if ok then return result end
  if getmetatable(result) ~= Refusal then error(result, 0) end
  return nil, result.kind, result.message
end

return strategic
