-- What every namespace gets: the service account "default", and the certificate of the server.
local client = require "kube.sandbox.controllers.client"
local json = require "kube.sandbox.json"

local accounts = {}

local DESCRIPTION = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints "
  .. "such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of "
  .. "Kubernetes clusters."

local function root_ca(S)
  return json.object {
    metadata = json.object {
      name = "kube-root-ca.crt",
      annotations = json.object { ["kubernetes.io/description"] = DESCRIPTION },
    },
    data = json.object { ["ca.crt"] = S.ca },
  }
end

local function account() return json.object { metadata = json.object { name = "default" } } end

--- Follows namespaces and, in each, the two objects that must be there.
function accounts.start(S)
  local kept = {
    serviceaccounts = { R = S.kinds:find("", "v1", "serviceaccounts"), name = "default", make = account },
    configmaps = { R = S.kinds:find("", "v1", "configmaps"), name = "kube-root-ca.crt", make = root_ca },
  }
  local function ensure(namespace, storage)
    local item = kept[storage]
    S:later(function()
      local found = S.store:get("namespaces", namespace)
      if not found or found.metadata.deletionTimestamp then return end
      if not S.store:get(storage, namespace .. "/" .. item.name) then
        client.create(S, item.R, namespace, item.make(S))
      end
    end)
  end
  S.store:subscribe("namespaces", function(change)
    if change.type == "DELETED" then return end
    ensure(change.key, "configmaps")
    ensure(change.key, "serviceaccounts")
  end)
  for storage, item in pairs(kept) do
    S.store:subscribe(storage, function(change)
      local m = (change.old or change.new).metadata
      if change.type == "DELETED" and m.name == item.name then ensure(m.namespace, storage) end
    end)
  end
end

return accounts
