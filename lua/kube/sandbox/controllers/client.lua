-- How the sandbox's controllers write: as kube-controller-manager would, through the API.
local json = require "kube.sandbox.json"

local client = {}

local AGENT = "kube-controller-manager"

--- The path of an object or, without a name, of a collection.
function client.path(R, namespace, name)
  local base = R.group == "" and "/api/" .. R.version or ("/apis/%s/%s"):format(R.group, R.version)
  if R.namespaced then base = ("%s/namespaces/%s"):format(base, namespace) end
  base = base .. "/" .. R.plural
  return name and base .. "/" .. name or base
end

local function path_of(R, document) return client.path(R, document.metadata.namespace, document.metadata.name) end

function client.create(S, R, namespace, document)
  return S:call(AGENT, "POST", client.path(R, namespace), document)
end

--- Changes metadata of the very object that was seen.
function client.patch_metadata(S, R, document, metadata)
  metadata.uid = document.metadata.uid
  return S:call(AGENT, "PATCH", path_of(R, document), json.object { metadata = json.object(metadata) },
    "application/merge-patch+json")
end

--- Deletes the very object that was seen. `policy` may be nil.
function client.delete(S, R, document, policy)
  return S:call(AGENT, "DELETE", path_of(R, document), json.object {
    propagationPolicy = policy,
    preconditions = json.object { uid = document.metadata.uid },
  })
end

--- Replaces a part of an object: "status", "finalize".
function client.update_part(S, R, document, part)
  return S:call(AGENT, "PUT", path_of(R, document) .. "/" .. part, document)
end

--- The list without an item, nil when nothing is left.
function client.without(list, item)
  local kept = json.array {}
  for _, name in ipairs(list or {}) do
    if name ~= item then kept[#kept + 1] = name end
  end
  return kept[1] and kept or nil
end

--- Whether a list has an item.
function client.has(list, item)
  for _, name in ipairs(list or {}) do
    if name == item then return true end
  end
  return false
end

return client
