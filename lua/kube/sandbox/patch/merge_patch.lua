-- JSON Merge Patch (RFC 7386) as kube-apiserver applies it.
local json = require "kube.sandbox.json"

local merge_patch = {}

-- A value of the patch without the nulls of its objects, also of those inside arrays.
local function prune(value)
  if type(value) ~= "table" then return value end
  if json.is_array(value) then
    local out = json.array {}
    for i, v in ipairs(value) do out[i] = prune(v) end
    return out
  end
  local out = json.object {}
  for k, v in pairs(value) do
    if v ~= json.null then out[k] = prune(v) end
  end
  return out
end

local function merge(current, patch)
  if not json.is_object(current) then return prune(patch) end
  -- An array that takes an object's place keeps its nulls: so it is on the server.
  if not json.is_object(patch) then return patch end
  local out = json.shallow(current)
  for k, v in pairs(patch) do
    if v == json.null then
      out[k] = nil
    else
      out[k] = merge(current[k], v)
    end
  end
  return out
end

local kinds = { string = "string", number = "number", cdata = "number", boolean = "bool" }

--- The merged document, or nil, the kind of refusal (bad_request) and its text. Neither argument is
--- changed; the result shares what did not change.
function merge_patch.apply(doc, patch)
  if patch == json.null then return nil, "bad_request", "Invalid JSON Patch" end
  if not json.is_object(patch) then
    local kind = json.is_array(patch) and "array" or kinds[type(patch)]
    return nil, "bad_request",
      ("error decoding patch: json: cannot unmarshal %s into Go value of type map[string]interface {}"):format(kind)
  end
  return merge(doc, patch)
end

return merge_patch
