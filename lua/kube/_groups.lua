-- The groups, versions and kinds that a factory knows by name, as client-go of Kubernetes 1.36 has
-- them. A kind is named in snake_case; the plural of the API is the name without underscores.
local groups = {
  admissionregistration = {
    group = "admissionregistration.k8s.io",
    v1 = "mutating_admission_policies mutating_admission_policy_bindings "
      .. "mutating_webhook_configurations validating_admission_policies "
      .. "validating_admission_policy_bindings validating_webhook_configurations",
    v1alpha1 = "mutating_admission_policies mutating_admission_policy_bindings "
      .. "validating_admission_policies validating_admission_policy_bindings",
    v1beta1 = "mutating_admission_policies mutating_admission_policy_bindings "
      .. "mutating_webhook_configurations validating_admission_policies "
      .. "validating_admission_policy_bindings validating_webhook_configurations",
  },
  apps = {
    group = "apps",
    v1 = "controller_revisions daemon_sets deployments replica_sets stateful_sets",
    v1beta1 = "controller_revisions deployments stateful_sets",
    v1beta2 = "controller_revisions daemon_sets deployments replica_sets stateful_sets",
  },
  autoscaling = {
    group = "autoscaling",
    v1 = "horizontal_pod_autoscalers",
    v2 = "horizontal_pod_autoscalers",
  },
  batch = {
    group = "batch",
    v1 = "cron_jobs jobs",
    v1beta1 = "cron_jobs",
  },
  certificates = {
    group = "certificates.k8s.io",
    v1 = "certificate_signing_requests",
    v1alpha1 = "cluster_trust_bundles",
    v1beta1 = "certificate_signing_requests cluster_trust_bundles pod_certificate_requests",
  },
  coordination = {
    group = "coordination.k8s.io",
    v1 = "leases",
    v1alpha2 = "lease_candidates",
    v1beta1 = "leases lease_candidates",
  },
  core = {
    group = "",
    v1 = "component_statuses config_maps endpoints events limit_ranges namespaces nodes "
      .. "persistent_volumes persistent_volume_claims pods pod_templates "
      .. "replication_controllers resource_quotas secrets services service_accounts",
  },
  discovery = {
    group = "discovery.k8s.io",
    v1 = "endpoint_slices",
    v1beta1 = "endpoint_slices",
  },
  events = {
    group = "events.k8s.io",
    v1 = "events",
    v1beta1 = "events",
  },
  flowcontrol = {
    group = "flowcontrol.apiserver.k8s.io",
    v1 = "flow_schemas priority_level_configurations",
    v1beta1 = "flow_schemas priority_level_configurations",
    v1beta2 = "flow_schemas priority_level_configurations",
    v1beta3 = "flow_schemas priority_level_configurations",
  },
  internal = {
    group = "internal.apiserver.k8s.io",
    v1alpha1 = "storage_versions",
  },
  networking = {
    group = "networking.k8s.io",
    v1 = "ip_addresses ingresses ingress_classes network_policies service_cidrs",
    v1beta1 = "ip_addresses ingresses ingress_classes service_cidrs",
  },
  node = {
    group = "node.k8s.io",
    v1 = "runtime_classes",
    v1alpha1 = "runtime_classes",
    v1beta1 = "runtime_classes",
  },
  policy = {
    group = "policy",
    v1 = "pod_disruption_budgets",
    v1beta1 = "pod_disruption_budgets",
  },
  rbac = {
    group = "rbac.authorization.k8s.io",
    v1 = "cluster_roles cluster_role_bindings roles role_bindings",
    v1alpha1 = "cluster_roles cluster_role_bindings roles role_bindings",
    v1beta1 = "cluster_roles cluster_role_bindings roles role_bindings",
  },
  resource = {
    group = "resource.k8s.io",
    v1 = "device_classes resource_claims resource_claim_templates resource_slices",
    v1alpha3 = "device_taint_rules resource_pool_status_requests",
    v1beta1 = "device_classes resource_claims resource_claim_templates resource_slices",
    v1beta2 = "device_classes device_taint_rules resource_claims resource_claim_templates "
      .. "resource_slices",
  },
  scheduling = {
    group = "scheduling.k8s.io",
    v1 = "priority_classes",
    v1alpha2 = "pod_groups workloads",
    v1beta1 = "priority_classes",
  },
  storage = {
    group = "storage.k8s.io",
    v1 = "csi_drivers csi_nodes csi_storage_capacities storage_classes volume_attachments "
      .. "volume_attributes_classes",
    v1alpha1 = "csi_storage_capacities volume_attachments volume_attributes_classes",
    v1beta1 = "csi_drivers csi_nodes csi_storage_capacities storage_classes volume_attachments "
      .. "volume_attributes_classes",
  },
  storagemigration = {
    group = "storagemigration.k8s.io",
    v1beta1 = "storage_version_migrations",
  },
}

-- Groups that a factory has no kinds of, because Kubernetes has removed them or client-go has them
-- elsewhere, and what to write instead.
local refused = {
  apiextensions = "write factory:for_resource(\"apiextensions.k8s.io/v1/customresourcedefinitions\")",
  apiregistration = "write factory:for_resource(\"apiregistration.k8s.io/v1/apiservices\")",
  auditregistration = "the group auditregistration.k8s.io was removed in Kubernetes 1.19; "
    .. "configure audit webhooks with the API server's --audit-webhook-config-file",
  extensions = "the group extensions was removed in Kubernetes 1.22; use apps():v1() for "
    .. "deployments, daemon_sets and replica_sets, networking():v1() for ingresses and network_policies",
  settings = "the group settings.k8s.io (PodPreset) was removed in Kubernetes 1.20; "
    .. "use a mutating admission webhook or policy",
}

-- What to say of a resource of the groups that no server has any more, by their names there.
local removed = {
  ["auditregistration.k8s.io"] = refused.auditregistration,
  extensions = "the group extensions was removed in Kubernetes 1.22; write apps/v1/deployments, apps/v1/daemonsets, "
    .. "apps/v1/replicasets, networking.k8s.io/v1/ingresses or networking.k8s.io/v1/networkpolicies",
  ["settings.k8s.io"] = refused.settings,
}

-- What is in no namespace, whatever namespace a factory has: plurals of the API by group.
local cluster_scoped = {
  ["admissionregistration.k8s.io"] = "mutatingadmissionpolicies mutatingadmissionpolicybindings "
    .. "mutatingwebhookconfigurations validatingadmissionpolicies "
    .. "validatingadmissionpolicybindings validatingwebhookconfigurations",
  ["apiextensions.k8s.io"] = "customresourcedefinitions",
  ["apiregistration.k8s.io"] = "apiservices",
  ["certificates.k8s.io"] = "certificatesigningrequests clustertrustbundles",
  [""] = "componentstatuses namespaces nodes persistentvolumes",
  ["flowcontrol.apiserver.k8s.io"] = "flowschemas prioritylevelconfigurations",
  ["internal.apiserver.k8s.io"] = "storageversions",
  ["networking.k8s.io"] = "ingressclasses ipaddresses servicecidrs",
  ["node.k8s.io"] = "runtimeclasses",
  ["rbac.authorization.k8s.io"] = "clusterroles clusterrolebindings",
  ["resource.k8s.io"] = "deviceclasses devicetaintrules resourcepoolstatusrequests resourceslices",
  ["scheduling.k8s.io"] = "priorityclasses",
  ["storage.k8s.io"] = "csidrivers csinodes storageclasses volumeattachments "
    .. "volumeattributesclasses",
  ["storagemigration.k8s.io"] = "storageversionmigrations",
}

--- The group of a resource: "apps" of "apps/v1/deployments", "" of "v1/pods".
local function group_of(resource) return resource:match("^(.-)/[^/]+/[^/]+$") or "" end

--- Whether a resource ("v1/nodes") is known to be in no namespace.
local function is_cluster_scoped(resource)
  local group, plural = resource:match("^(.-)/?[^/]+/([^/]+)$")
  local plurals = cluster_scoped[group]
  return plurals ~= nil and (" " .. plurals .. " "):find(" " .. plural .. " ", 1, true) ~= nil
end

--- Whether a resource is one that a factory has by name: one of Kubernetes' own, whose scope is known.
local function is_known(resource)
  local group, version, plural = resource:match("^(.-)/?([^/]+)/([^/]+)$")
  for _, spec in pairs(groups) do
    if spec.group == group then
      local plurals = (spec[version] or ""):gsub("_", "")
      return (" " .. plurals .. " "):find(" " .. plural .. " ", 1, true) ~= nil
    end
  end
  return false
end

return { groups = groups, refused = refused, removed = removed, group_of = group_of,
  is_cluster_scoped = is_cluster_scoped, is_known = is_known }
