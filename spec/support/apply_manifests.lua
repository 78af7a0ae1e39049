-- Objects of many built-in kinds, one each: { api_version, kind, path, the rest of the object as JSON }.
-- Left out are kinds to which the server adds fields after it wrote down who owns what.
local POD = [[{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i",
  "volumeMounts":[{"name":"v","mountPath":"/x"}],"livenessProbe":{"httpGet":{"path":"/","port":80}},
  "securityContext":{"privileged":false,"capabilities":{"add":["NET_ADMIN"]}}}],
  "volumes":[{"name":"v","configMap":{"name":"x"}}],"tolerations":[{"key":"k","operator":"Exists"}],
  "affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
    {"matchExpressions":[{"key":"a","operator":"Exists"}]}]}}}%s}}]]
local ALWAYS, NEVER = POD:format(""), POD:format(',"restartPolicy":"Never"')
local WORKLOAD = '"spec":{"selector":{"matchLabels":{"a":"b"}},"template":' .. ALWAYS .. "%s}"

local function namespaced(api_version, kind, plural, rest)
  local root = api_version == "v1" and "/api/" or "/apis/"
  return { api_version, kind, root .. api_version .. "/namespaces/default/" .. plural, rest }
end

local function cluster(api_version, kind, plural, rest)
  local root = api_version == "v1" and "/api/" or "/apis/"
  return { api_version, kind, root .. api_version .. "/" .. plural, rest }
end

return {
  namespaced("v1", "Secret", "secrets", '"data":{"a":"AA=="},"stringData":{"b":"x"},"type":"Opaque"'),
  namespaced("v1", "ServiceAccount", "serviceaccounts", '"secrets":[{"name":"x"}],"imagePullSecrets":[{"name":"y"}]'),
  namespaced("v1", "Endpoints", "endpoints", '"subsets":[{"addresses":[{"ip":"1.2.3.4"}],"ports":[{"port":80}]}]'),
  namespaced("v1", "Event", "events", [["involvedObject":{"kind":"Pod","name":"p","namespace":"default"},"reason":"R",
    "type":"Normal","source":{"component":"c"},"firstTimestamp":"2026-01-01T00:00:00Z","count":1]]),
  namespaced("v1", "LimitRange", "limitranges", '"spec":{"limits":[{"type":"Container","default":{"cpu":"1"}}]}'),
  namespaced("v1", "ResourceQuota", "resourcequotas", '"spec":{"hard":{"pods":"99"}}'),
  namespaced("v1", "PodTemplate", "podtemplates", '"template":' .. ALWAYS),
  namespaced("v1", "ReplicationController", "replicationcontrollers",
    '"spec":{"selector":{"a":"b"},"template":' .. ALWAYS .. "}"),
  cluster("v1", "Node", "nodes", [["spec":{"taints":[{"key":"a","effect":"NoSchedule"}],"podCIDR":"10.0.0.0/24"},
    "status":{"capacity":{"cpu":"1"},"conditions":[{"type":"Ready","status":"True"}]}]]),
  namespaced("apps/v1", "StatefulSet", "statefulsets", WORKLOAD:format [==[,"serviceName":"s","volumeClaimTemplates":[
    {"metadata":{"name":"d"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}]]==]),
  namespaced("apps/v1", "DaemonSet", "daemonsets", WORKLOAD:format ""),
  namespaced("apps/v1", "ReplicaSet", "replicasets", WORKLOAD:format ""),
  namespaced("apps/v1", "Deployment", "deployments", WORKLOAD:format ""),
  namespaced("apps/v1", "ControllerRevision", "controllerrevisions", '"revision":1,"data":{"a":{"b":[1,{"c":2}]}}'),
  namespaced("batch/v1", "CronJob", "cronjobs",
    '"spec":{"schedule":"* * * * *","jobTemplate":{"spec":{"template":' .. NEVER .. "}}}"),
  namespaced("rbac.authorization.k8s.io/v1", "Role", "roles",
    '"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]'),
  namespaced("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings",
    [==["roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"x"},
      "subjects":[{"kind":"User","name":"u","apiGroup":"rbac.authorization.k8s.io"}]]==]),
  cluster("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles",
    '"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"b"}}]}'),
  namespaced("networking.k8s.io/v1", "Ingress", "ingresses", [["spec":{"rules":[{"host":"h","http":{"paths":[
    {"path":"/","pathType":"Prefix","backend":{"service":{"name":"s","port":{"number":80}}}}]}}],
    "tls":[{"hosts":["h"]}]}]]),
  namespaced("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies",
    '"spec":{"podSelector":{},"ingress":[{"from":[{"podSelector":{}}]}]}'),
  namespaced("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets",
    '"spec":{"minAvailable":1,"selector":{"matchLabels":{"a":"b"}}}'),
  namespaced("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers",
    '"spec":{"maxReplicas":3,"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"}}'),
  cluster("storage.k8s.io/v1", "StorageClass", "storageclasses", '"provisioner":"x","parameters":{"a":"b"}'),
  cluster("storage.k8s.io/v1", "CSIDriver", "csidrivers", '"spec":{"attachRequired":true}'),
  namespaced("coordination.k8s.io/v1", "Lease", "leases",
    '"spec":{"holderIdentity":"x","leaseDurationSeconds":5,"acquireTime":"2026-01-01T00:00:00.000000Z"}'),
  namespaced("discovery.k8s.io/v1", "EndpointSlice", "endpointslices",
    '"addressType":"IPv4","endpoints":[{"addresses":["1.2.3.4"]}],"ports":[{"port":80}]'),
  cluster("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", '"value":5'),
  cluster("node.k8s.io/v1", "RuntimeClass", "runtimeclasses", '"handler":"x"'),
  cluster("flowcontrol.apiserver.k8s.io/v1", "FlowSchema", "flowschemas",
    '"spec":{"priorityLevelConfiguration":{"name":"exempt"}}'),
  cluster("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations",
    [==["webhooks":[{"name":"a.b.c","admissionReviewVersions":["v1"],"sideEffects":"None","failurePolicy":"Ignore",
      "clientConfig":{"url":"https://x.invalid/"},"rules":[{"apiGroups":["none.invalid"],"apiVersions":["v1"],
      "operations":["CREATE"],"resources":["x"]}]}]]==]),
}
