-- The Go types of fields whose type has a name of its own, which schemas do not tell: errors of the
-- server's JSON decoder name them. One line for each struct: Struct field=type ...; a line that
-- starts with @ names the package of those that follow.
local go_types = {}

local TEXT = [[
@io.k8s.api.admissionregistration.v1
MatchResources matchPolicy=v1.MatchPolicyType
MutatingAdmissionPolicySpec failurePolicy=v1.FailurePolicyType reinvocationPolicy=v1.ReinvocationPolicyType
MutatingWebhook failurePolicy=v1.FailurePolicyType matchPolicy=v1.MatchPolicyType
MutatingWebhook reinvocationPolicy=v1.ReinvocationPolicyType sideEffects=v1.SideEffectClass
Mutation patchType=v1.PatchType
NamedRuleWithOperations operations=[]v1.OperationType scope=v1.ScopeType
ParamRef parameterNotFoundAction=v1.ParameterNotFoundActionType
RuleWithOperations operations=[]v1.OperationType scope=v1.ScopeType
ValidatingAdmissionPolicyBindingSpec validationActions=[]v1.ValidationAction
ValidatingAdmissionPolicySpec failurePolicy=v1.FailurePolicyType
ValidatingWebhook failurePolicy=v1.FailurePolicyType matchPolicy=v1.MatchPolicyType sideEffects=v1.SideEffectClass
Validation reason=v1.StatusReason
@io.k8s.api.apps.v1
DaemonSetCondition status=v1.ConditionStatus type=v1.DaemonSetConditionType
DaemonSetUpdateStrategy type=v1.DaemonSetUpdateStrategyType
DeploymentCondition status=v1.ConditionStatus type=v1.DeploymentConditionType
DeploymentStrategy type=v1.DeploymentStrategyType
ReplicaSetCondition status=v1.ConditionStatus type=v1.ReplicaSetConditionType
StatefulSetCondition status=v1.ConditionStatus type=v1.StatefulSetConditionType
StatefulSetPersistentVolumeClaimRetentionPolicy whenDeleted=v1.PersistentVolumeClaimRetentionPolicyType
StatefulSetPersistentVolumeClaimRetentionPolicy whenScaled=v1.PersistentVolumeClaimRetentionPolicyType
StatefulSetSpec podManagementPolicy=v1.PodManagementPolicyType
StatefulSetUpdateStrategy type=v1.StatefulSetUpdateStrategyType
@io.k8s.api.authentication.v1
BoundObjectReference uid=types.UID
UserInfo extra=map[string]v1.ExtraValue
@io.k8s.api.authorization.v1
SubjectAccessReviewSpec extra=map[string]v1.ExtraValue
@io.k8s.api.autoscaling.v2
ContainerResourceMetricSource name=v1.ResourceName
ContainerResourceMetricStatus name=v1.ResourceName
HPAScalingPolicy type=v2.HPAScalingPolicyType
HPAScalingRules selectPolicy=v2.ScalingPolicySelect
HorizontalPodAutoscalerCondition status=v1.ConditionStatus type=v2.HorizontalPodAutoscalerConditionType
MetricSpec type=v2.MetricSourceType
MetricStatus type=v2.MetricSourceType
MetricTarget type=v2.MetricTargetType
ResourceMetricSource name=v1.ResourceName
ResourceMetricStatus name=v1.ResourceName
@io.k8s.api.batch.v1
CronJobSpec concurrencyPolicy=v1.ConcurrencyPolicy
JobCondition status=v1.ConditionStatus type=v1.JobConditionType
JobSpec completionMode=v1.CompletionMode podReplacementPolicy=v1.PodReplacementPolicy
PodFailurePolicyOnExitCodesRequirement operator=v1.PodFailurePolicyOnExitCodesOperator
PodFailurePolicyOnPodConditionsPattern status=v1.ConditionStatus type=v1.PodConditionType
PodFailurePolicyRule action=v1.PodFailurePolicyAction
UncountedTerminatedPods failed=[]types.UID succeeded=[]types.UID
@io.k8s.api.certificates.v1
CertificateSigningRequestCondition status=v1.ConditionStatus type=v1.RequestConditionType
CertificateSigningRequestSpec extra=map[string]v1.ExtraValue usages=[]v1.KeyUsage
@io.k8s.api.coordination.v1
LeaseSpec strategy=v1.CoordinatedLeaseStrategy
@io.k8s.api.core.v1
AppArmorProfile type=v1.AppArmorProfileType
AttachedVolume name=v1.UniqueVolumeName
AzureDiskVolumeSource cachingMode=v1.AzureDataDiskCachingMode kind=v1.AzureDataDiskKind
Capabilities add=[]v1.Capability drop=[]v1.Capability
ComponentCondition status=v1.ConditionStatus type=v1.ComponentConditionType
ConfigMapNodeConfigSource uid=types.UID
Container imagePullPolicy=v1.PullPolicy restartPolicy=v1.ContainerRestartPolicy
Container terminationMessagePolicy=v1.TerminationMessagePolicy
ContainerPort protocol=v1.Protocol
ContainerResizePolicy resourceName=v1.ResourceName restartPolicy=v1.ResourceResizeRestartPolicy
ContainerRestartRule action=v1.ContainerRestartRuleAction
ContainerRestartRuleOnExitCodes operator=v1.ContainerRestartRuleOnExitCodesOperator
ContainerStatus allocatedResources=v1.ResourceList stopSignal=v1.Signal
EmptyDirVolumeSource medium=v1.StorageMedium
EndpointPort protocol=v1.Protocol
EphemeralContainer imagePullPolicy=v1.PullPolicy restartPolicy=v1.ContainerRestartPolicy
EphemeralContainer terminationMessagePolicy=v1.TerminationMessagePolicy
HTTPGetAction scheme=v1.URIScheme
HostPathVolumeSource type=v1.HostPathType
ImageVolumeSource pullPolicy=v1.PullPolicy
Lifecycle stopSignal=v1.Signal
LimitRangeItem default=v1.ResourceList defaultRequest=v1.ResourceList max=v1.ResourceList
LimitRangeItem maxLimitRequestRatio=v1.ResourceList min=v1.ResourceList type=v1.LimitType
LoadBalancerIngress ipMode=v1.LoadBalancerIPMode
ModifyVolumeStatus status=v1.PersistentVolumeClaimModifyVolumeStatus
NamespaceCondition status=v1.ConditionStatus type=v1.NamespaceConditionType
NamespaceSpec finalizers=[]v1.FinalizerName
NamespaceStatus phase=v1.NamespacePhase
NodeAddress type=v1.NodeAddressType
NodeCondition status=v1.ConditionStatus type=v1.NodeConditionType
NodeSelectorRequirement operator=v1.NodeSelectorOperator
NodeStatus allocatable=v1.ResourceList capacity=v1.ResourceList phase=v1.NodePhase
NodeStatus volumesInUse=[]v1.UniqueVolumeName
ObjectReference uid=types.UID
PersistentVolumeClaimCondition status=v1.ConditionStatus type=v1.PersistentVolumeClaimConditionType
PersistentVolumeClaimSpec accessModes=[]v1.PersistentVolumeAccessMode volumeMode=v1.PersistentVolumeMode
PersistentVolumeClaimStatus accessModes=[]v1.PersistentVolumeAccessMode
PersistentVolumeClaimStatus allocatedResourceStatuses=map[v1.ResourceName]v1.ClaimResourceStatus
PersistentVolumeClaimStatus allocatedResources=v1.ResourceList capacity=v1.ResourceList
PersistentVolumeClaimStatus phase=v1.PersistentVolumeClaimPhase
PersistentVolumeSpec accessModes=[]v1.PersistentVolumeAccessMode capacity=v1.ResourceList
PersistentVolumeSpec persistentVolumeReclaimPolicy=v1.PersistentVolumeReclaimPolicy
PersistentVolumeSpec volumeMode=v1.PersistentVolumeMode
PersistentVolumeStatus phase=v1.PersistentVolumePhase
PodCondition status=v1.ConditionStatus type=v1.PodConditionType
PodOS name=v1.OSName
PodReadinessGate conditionType=v1.PodConditionType
PodSecurityContext fsGroupChangePolicy=v1.PodFSGroupChangePolicy seLinuxChangePolicy=v1.PodSELinuxChangePolicy
PodSecurityContext supplementalGroupsPolicy=v1.SupplementalGroupsPolicy
PodSpec dnsPolicy=v1.DNSPolicy overhead=v1.ResourceList preemptionPolicy=v1.PreemptionPolicy
PodSpec restartPolicy=v1.RestartPolicy
PodStatus allocatedResources=v1.ResourceList phase=v1.PodPhase qosClass=v1.PodQOSClass resize=v1.PodResizeStatus
PortStatus protocol=v1.Protocol
ReplicationControllerCondition status=v1.ConditionStatus type=v1.ReplicationControllerConditionType
ResourceHealth health=v1.ResourceHealthStatus resourceID=v1.ResourceID
ResourceQuotaSpec hard=v1.ResourceList scopes=[]v1.ResourceQuotaScope
ResourceQuotaStatus hard=v1.ResourceList used=v1.ResourceList
ResourceRequirements limits=v1.ResourceList requests=v1.ResourceList
ResourceStatus name=v1.ResourceName
ScopedResourceSelectorRequirement operator=v1.ScopeSelectorOperator scopeName=v1.ResourceQuotaScope
SeccompProfile type=v1.SeccompProfileType
Secret type=v1.SecretType
SecurityContext procMount=v1.ProcMountType
ServicePort protocol=v1.Protocol
ServiceSpec externalTrafficPolicy=v1.ServiceExternalTrafficPolicy
ServiceSpec internalTrafficPolicy=v1.ServiceInternalTrafficPolicy ipFamilies=[]v1.IPFamily
ServiceSpec ipFamilyPolicy=v1.IPFamilyPolicy sessionAffinity=v1.ServiceAffinity type=v1.ServiceType
Taint effect=v1.TaintEffect
Toleration effect=v1.TaintEffect operator=v1.TolerationOperator
TopologySpreadConstraint nodeAffinityPolicy=v1.NodeInclusionPolicy nodeTaintsPolicy=v1.NodeInclusionPolicy
TopologySpreadConstraint whenUnsatisfiable=v1.UnsatisfiableConstraintAction
VolumeMount mountPropagation=v1.MountPropagationMode recursiveReadOnly=v1.RecursiveReadOnlyMode
VolumeMountStatus recursiveReadOnly=v1.RecursiveReadOnlyMode
VolumeResourceRequirements limits=v1.ResourceList requests=v1.ResourceList
@io.k8s.api.discovery.v1
EndpointPort protocol=v1.Protocol
EndpointSlice addressType=v1.AddressType
@io.k8s.api.flowcontrol.v1
FlowDistinguisherMethod type=v1.FlowDistinguisherMethodType
FlowSchemaCondition status=v1.ConditionStatus type=v1.FlowSchemaConditionType
LimitResponse type=v1.LimitResponseType
PriorityLevelConfigurationCondition status=v1.ConditionStatus type=v1.PriorityLevelConfigurationConditionType
PriorityLevelConfigurationSpec type=v1.PriorityLevelEnablement
Subject kind=v1.SubjectKind
@io.k8s.api.networking.v1
HTTPIngressPath pathType=v1.PathType
IngressPortStatus protocol=v1.Protocol
NetworkPolicyPort protocol=v1.Protocol
NetworkPolicySpec policyTypes=[]v1.PolicyType
@io.k8s.api.node.v1
Overhead podFixed=v1.ResourceList
@io.k8s.api.policy.v1
PodDisruptionBudgetSpec unhealthyPodEvictionPolicy=v1.UnhealthyPodEvictionPolicyType
@io.k8s.api.resource.v1
DeviceAllocationConfiguration source=v1.AllocationConfigSource
DeviceConstraint distinctAttribute=v1.FullyQualifiedName matchAttribute=v1.FullyQualifiedName
DeviceRequestAllocationResult shareID=types.UID
DeviceSubRequest allocationMode=v1.DeviceAllocationMode
DeviceTaint effect=v1.DeviceTaintEffect
DeviceToleration effect=v1.DeviceTaintEffect operator=v1.DeviceTolerationOperator
ExactDeviceRequest allocationMode=v1.DeviceAllocationMode
NodeAllocatableResourceMapping capacityKey=v1.QualifiedName
ResourceClaimConsumerReference uid=types.UID
@io.k8s.api.scheduling.v1
PriorityClass preemptionPolicy=v1.PreemptionPolicy
@io.k8s.api.storage.v1
CSIDriverSpec fsGroupPolicy=v1.FSGroupPolicy volumeLifecycleModes=[]v1.VolumeLifecycleMode
StorageClass reclaimPolicy=v1.PersistentVolumeReclaimPolicy volumeBindingMode=v1.VolumeBindingMode
@io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1
ConversionRequest uid=types.UID
ConversionResponse uid=types.UID
CustomResourceConversion strategy=v1.ConversionStrategyType
CustomResourceDefinitionCondition status=v1.ConditionStatus type=v1.CustomResourceDefinitionConditionType
CustomResourceDefinitionSpec scope=v1.ResourceScope
JSONSchemaProps $schema=v1.JSONSchemaURL definitions=v1.JSONSchemaDefinitions dependencies=v1.JSONSchemaDependencies
JSONSchemaProps x-kubernetes-validations=v1.ValidationRules
ValidationRule reason=v1.FieldValueErrorReason
@io.k8s.apimachinery.pkg.apis.meta.v1
APIResource verbs=v1.Verbs
Condition status=v1.ConditionStatus
DeleteOptions propagationPolicy=v1.DeletionPropagation
FieldSelectorRequirement operator=v1.FieldSelectorOperator
LabelSelectorRequirement operator=v1.LabelSelectorOperator
ListOptions resourceVersionMatch=v1.ResourceVersionMatch
ManagedFieldsEntry operation=v1.ManagedFieldsOperationType
ObjectMeta uid=types.UID
OwnerReference uid=types.UID
Preconditions uid=types.UID
Status reason=v1.StatusReason
StatusCause reason=v1.CauseType
StatusDetails uid=types.UID
@io.k8s.kube-aggregator.pkg.apis.apiregistration.v1
APIServiceCondition status=v1.ConditionStatus type=v1.APIServiceConditionType
]]

local known

local function load()
  known = {}
  local package
  for line in TEXT:gmatch("[^\n]+") do
    local struct = line:match("^%S+")
    if struct:sub(1, 1) == "@" then
      package = struct:sub(2)
    else
      local fields = known[package .. "." .. struct] or {}
      known[package .. "." .. struct] = fields
      for name, type_name in line:gmatch("(%S+)=(%S+)") do fields[name] = type_name end
    end
  end
end

--- The Go type of a field of a definition ("io.k8s.api.core.v1.Secret", "type"), nil when its schema
--- says it all.
function go_types.of(definition, name)
  if not known then load() end
  local fields = known[definition]
  return fields and fields[name]
end

return go_types
