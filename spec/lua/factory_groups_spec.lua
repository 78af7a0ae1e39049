-- The groups, versions and kinds that a factory has by name, beside what a real server serves (the sandbox's
-- kinds are made from one).
local cjson = require "cjson"
local cleanup = require "spec.support.cleanup"
local rig = require "spec.support.script_rig"

-- What a server serves only when told to, or did once, and client-go has.
local OTHERS = {
  ["admissionregistration.k8s.io/v1alpha1"] = "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding "
    .. "ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding",
  ["admissionregistration.k8s.io/v1beta1"] = "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding "
    .. "MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding "
    .. "ValidatingWebhookConfiguration",
  ["apps/v1beta1"] = "ControllerRevision Deployment StatefulSet",
  ["apps/v1beta2"] = "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
  ["batch/v1beta1"] = "CronJob",
  ["certificates.k8s.io/v1alpha1"] = "ClusterTrustBundle",
  ["certificates.k8s.io/v1beta1"] = "CertificateSigningRequest ClusterTrustBundle PodCertificateRequest",
  ["coordination.k8s.io/v1alpha2"] = "LeaseCandidate",
  ["coordination.k8s.io/v1beta1"] = "Lease LeaseCandidate",
  ["discovery.k8s.io/v1beta1"] = "EndpointSlice",
  ["events.k8s.io/v1beta1"] = "Event",
  ["flowcontrol.apiserver.k8s.io/v1beta1"] = "FlowSchema PriorityLevelConfiguration",
  ["flowcontrol.apiserver.k8s.io/v1beta2"] = "FlowSchema PriorityLevelConfiguration",
  ["flowcontrol.apiserver.k8s.io/v1beta3"] = "FlowSchema PriorityLevelConfiguration",
  ["internal.apiserver.k8s.io/v1alpha1"] = "StorageVersion",
  ["networking.k8s.io/v1beta1"] = "IPAddress Ingress IngressClass ServiceCIDR",
  ["node.k8s.io/v1alpha1"] = "RuntimeClass",
  ["node.k8s.io/v1beta1"] = "RuntimeClass",
  ["policy/v1beta1"] = "PodDisruptionBudget",
  ["rbac.authorization.k8s.io/v1alpha1"] = "ClusterRole ClusterRoleBinding Role RoleBinding",
  ["rbac.authorization.k8s.io/v1beta1"] = "ClusterRole ClusterRoleBinding Role RoleBinding",
  ["resource.k8s.io/v1alpha3"] = "DeviceTaintRule ResourcePoolStatusRequest",
  ["resource.k8s.io/v1beta1"] = "DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice",
  ["resource.k8s.io/v1beta2"] = "DeviceClass DeviceTaintRule ResourceClaim ResourceClaimTemplate ResourceSlice",
  ["scheduling.k8s.io/v1alpha2"] = "PodGroup Workload",
  ["scheduling.k8s.io/v1beta1"] = "PriorityClass",
  ["storage.k8s.io/v1alpha1"] = "CSIStorageCapacity VolumeAttachment VolumeAttributesClass",
  ["storage.k8s.io/v1beta1"] = "CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment "
    .. "VolumeAttributesClass",
  ["storagemigration.k8s.io/v1beta1"] = "StorageVersionMigration",
}
-- Those of them that no version that is served has, and are in no namespace.
local IN_NO_NAMESPACE = { ClusterTrustBundle = true, DeviceTaintRule = true, ResourcePoolStatusRequest = true,
  StorageVersion = true, StorageVersionMigration = true }

local NOT_IN_A_FACTORY = { ["apiextensions.k8s.io"] = true, ["apiregistration.k8s.io"] = true }
local NOT_WATCHED = { ComponentStatus = true }  -- and in client-go's factory all the same

local REFUSED = {
  apiextensions = 'write factory:for_resource("apiextensions.k8s.io/v1/customresourcedefinitions")',
  apiregistration = 'write factory:for_resource("apiregistration.k8s.io/v1/apiservices")',
  auditregistration = "the group auditregistration.k8s.io was removed in Kubernetes 1.19; configure audit "
    .. "webhooks with the API server's --audit-webhook-config-file",
  extensions = "the group extensions was removed in Kubernetes 1.22; use apps():v1() for deployments, "
    .. "daemon_sets and replica_sets, networking():v1() for ingresses and network_policies",
  settings = "the group settings.k8s.io (PodPreset) was removed in Kubernetes 1.20; use a mutating admission "
    .. "webhook or policy",
}

local function plural_of(kind)
  local word = kind:lower()
  if word:find("y$") then return (word:gsub("y$", "ies")) end
  return word .. (word:find("s$") and "es" or "s")
end

-- Where a factory has a kind: "apps():v1():daemon_sets()" of apps/v1, DaemonSet, daemonsets.
local function accessor(group_version, kind, plural)
  local group, version = group_version:match("^(.*)/(.*)$")
  local words = kind:gsub("(%l)(%u)", "%1_%2"):gsub("(%u)(%u%l)", "%1_%2"):lower()
  local before, at = words:match("^(.*_)") or "", 1
  local name = before:gsub("[^_]+", function(word)
    at = at + #word
    return plural:sub(at - #word, at - 1)
  end) .. plural:sub(#before:gsub("_", "") + 1)
  return ("%s():%s():%s()"):format(group and group:match("^[^.]+") or "core", version or group_version, name)
end

local function kinds_of_server()
  local file = assert(io.open("lua/kube/sandbox/data/kinds.json", "rb"))
  local data = cjson.decode(file:read("*a"))
  file:close()
  return data.resources
end

-- The accessors that there must be: { accessor = "group/version/plural, namespaced" }.
local function wanted()
  local all, scopes, count = {}, {}, 0
  local function add(group_version, kind, plural, namespaced)
    count = count + 1
    all[accessor(group_version, kind, plural)] = ("%s/%s, %s"):format(group_version, plural,
      namespaced and "namespaced" or "in no namespace")
  end
  for group_version, resources in pairs(kinds_of_server()) do
    for _, r in ipairs(resources) do
      local kind, verbs = r.responseKind.kind, " " .. table.concat(r.verbs, " ") .. " "
      local cached = verbs:find(" watch ", 1, true) and verbs:find(" list ", 1, true) or NOT_WATCHED[kind]
      if cached and not NOT_IN_A_FACTORY[group_version:match("^[^/]+")] then
        scopes[kind] = r.scope
        add(group_version, kind, r.resource, r.scope == "Namespaced")
      end
    end
  end
  assert(count > 50, count)
  for group_version, names in pairs(OTHERS) do
    for kind in names:gmatch("%a+") do
      local scope = scopes[kind] or IN_NO_NAMESPACE[kind] and "Cluster" or "Namespaced"
      add(group_version, kind, plural_of(kind), scope == "Namespaced")
    end
  end
  return all
end

describe("a factory's groups", function()
  cleanup.install()

  it("have every built-in resource under its name, and no other", function()
    local out = rig.run(rig.pods {}, [[
      local known = require "kube._groups"
      local factory = kube.shared_informer_factory {}
      for group, versions in pairs(known.groups) do
        for version, names in pairs(versions) do
          for name in (version == "group" and "" or names):gmatch("%S+") do
            local informer = factory[group](factory)[version]()[name]():informer()
            local resource = tostring(informer):match("^informer (.+)$")
            assert(rawequal(informer, factory:for_resource(resource):informer()))
            local plural = resource:match("[^/]+$")
            assert(rawequal(informer, factory[group](factory)[version]()[plural]():informer()))
            print(("%s():%s():%s()=%s, %s"):format(group, version, name, resource,
              known.is_cluster_scoped(resource) and "in no namespace" or "namespaced"))
          end
        end
      end
    ]])
    local found = {}
    for name, what in out:gmatch("([^\n]-)=([^\n]+)\n") do found[name] = what end
    local wrong = {}
    local all = wanted()
    for name, what in pairs(all) do
      if found[name] ~= what then wrong[#wrong + 1] = ("%s is %s, not %s"):format(name, tostring(found[name]), what) end
    end
    for name in pairs(found) do
      if not all[name] then wrong[#wrong + 1] = name .. " is no resource of any server" end
    end
    table.sort(wrong)
    assert.are.same({}, wrong)
  end)

  it("that are not there say what to use instead, and that is there", function()
    local out = rig.run(rig.pods {}, [[
      local factory = kube.shared_informer_factory {}
      for name in pairs(require("kube._groups").refused) do
        local ok, message = pcall(factory[name], factory)
        assert(not ok)
        print(name .. "=" .. message)
      end
      for _, pair in ipairs { factory:for_resource "apiextensions.k8s.io/v1/customresourcedefinitions",
        factory:for_resource "apiregistration.k8s.io/v1/apiservices", factory:apps():v1():deployments(),
        factory:apps():v1():daemon_sets(), factory:apps():v1():replica_sets(),
        factory:networking():v1():ingresses(), factory:networking():v1():network_policies() } do
        pair:informer()
      end
    ]])
    local told = {}
    for name, sentence in out:gmatch("(%l+)=([^\n]+)\n") do told[name] = sentence end
    for name, sentence in pairs(REFUSED) do
      assert.matches("script%.lua:%d+: factory:" .. name .. "%(%): ", told[name])
      assert.are.equal(sentence, told[name]:match("%(%): (.*)$"))
      told[name] = nil
    end
    assert.are.same({}, told)
    local served = kinds_of_server()
    assert.are.equal("customresourcedefinitions", served["apiextensions.k8s.io/v1"][1].resource)
    assert.are.equal("apiservices", served["apiregistration.k8s.io/v1"][1].resource)
  end)
end)
