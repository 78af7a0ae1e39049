-- Which fields an endpoint takes from the stored object whatever the client sends; nobody comes to own
-- them there. Paths are arrays of names.
local reset_fields = {}

local SPEC, STATUS, METADATA = { "spec" }, { "status" }, { "metadata" }

local REST = { SPEC }
local ALL_BUT_STATUS = { METADATA, SPEC }

-- The status endpoint of the kinds that differ from the rest, by resource_name.
local STATUS_ENDPOINT = {
  ["apiservices.apiregistration.k8s.io"] = ALL_BUT_STATUS,
  ["certificatesigningrequests.certificates.k8s.io"] = { SPEC, { "status", "conditions" } },
  ["deployments.apps"] = { SPEC, { "metadata", "labels" } },
  ["devicetaintrules.resource.k8s.io"] = ALL_BUT_STATUS,
  ["flowschemas.flowcontrol.apiserver.k8s.io"] = ALL_BUT_STATUS,
  ["pods"] = { SPEC, { "metadata", "deletionTimestamp" }, { "metadata", "ownerReferences" } },
  ["prioritylevelconfigurations.flowcontrol.apiserver.k8s.io"] = ALL_BUT_STATUS,
  ["resourceclaims.resource.k8s.io"] = ALL_BUT_STATUS,
  ["servicecidrs.networking.k8s.io"] = ALL_BUT_STATUS,
  ["storageversions.internal.apiserver.k8s.io"] = ALL_BUT_STATUS,
  ["validatingadmissionpolicies.admissionregistration.k8s.io"] = ALL_BUT_STATUS,
  ["volumeattachments.storage.k8s.io"] = ALL_BUT_STATUS,
}

-- The endpoints of the object itself that differ from the rest.
local MAIN_ENDPOINT = {
  ["certificatesigningrequests.certificates.k8s.io"] = { SPEC, STATUS },
}

--- The paths for a resource's own endpoint or one of its subresources ("status", "approval", ...).
function reset_fields.of(R, subresource)
  if not (R.subresources and R.subresources.status) then return {} end
  if subresource == "approval" then return { SPEC, { "status", "certificate" } } end
  if subresource == "status" then
    return R.builtin and (STATUS_ENDPOINT[R.resource_name] or REST) or ALL_BUT_STATUS
  end
  return R.builtin and MAIN_ENDPOINT[R.resource_name] or { STATUS }
end

return reset_fields
