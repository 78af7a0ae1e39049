-- What the hostile requests of spec/support/hostile.lua are derived from: valid objects by the
-- collection they belong to, valid patches, and pieces of JSON that are legal and unusual, or not legal.
local samples = {}

local POD = [[{"containers":[{"name":"c","image":"i:1","ports":[{"containerPort":80,"name":"http","protocol":"TCP"}],
  "env":[{"name":"A","value":"b"},{"name":"F","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}],
  "resources":{"requests":{"cpu":"100m","memory":"1Gi"},"limits":{"cpu":"1"}},
  "livenessProbe":{"httpGet":{"path":"/","port":"http"},"periodSeconds":5},
  "volumeMounts":[{"name":"v","mountPath":"/v"}],"securityContext":{"runAsUser":1000}}],
  "volumes":[{"name":"v","configMap":{"name":"a","items":[{"key":"k","path":"p","mode":420}]}}],
  "tolerations":[{"key":"k","operator":"Exists","effect":"NoSchedule"}],"restartPolicy":"Always",
  "terminationGracePeriodSeconds":0,"nodeSelector":{"a":"b"}}]]

local TEMPLATE = '{"metadata":{"labels":{"app":"a"}},"spec":' .. POD .. "}"

local SCHEMA = [[{"type":"object","properties":{"spec":{"type":"object","required":["size"],"properties":{
  "size":{"type":"integer","minimum":0,"maximum":100,"default":3},"name":{"type":"string","pattern":"^[a-z]+$"},
  "mode":{"type":"string","enum":["a","b"]},"when":{"type":"string","format":"date-time"},
  "ports":{"type":"array","maxItems":5,"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["port"],
    "items":{"type":"object","required":["port"],"properties":{"port":{"type":"integer"},"name":{"type":"string"}}}},
  "any":{"x-kubernetes-preserve-unknown-fields":true,"type":"object"},"either":{"x-kubernetes-int-or-string":true},
  "tags":{"type":"object","additionalProperties":{"type":"string"}}}},
  "status":{"type":"object","properties":{"replicas":{"type":"integer"},"selector":{"type":"string"}}}}}]]

--- { path of the collection, kind and version, the rest of the object beside its metadata }.
samples.objects = {
  { "/api/v1/namespaces/default/configmaps", "v1", "ConfigMap", '"data":{"k":"v","l":"w"},"binaryData":{"b":"AAEC"}' },
  { "/api/v1/namespaces/default/secrets", "v1", "Secret",
    '"type":"Opaque","data":{"k":"dg=="},"stringData":{"s":"t"}' },
  { "/api/v1/namespaces/default/pods", "v1", "Pod", '"spec":' .. POD },
  { "/api/v1/namespaces/default/services", "v1", "Service",
    '"spec":{"selector":{"app":"a"},"type":"NodePort",'
    .. '"ports":[{"name":"p","port":80,"targetPort":"http","nodePort":30080}]}' },
  { "/api/v1/namespaces/default/events", "v1", "Event",
    '"involvedObject":{"kind":"Pod","name":"a","namespace":"default"},"reason":"R","message":"m","type":"Normal",'
    .. '"count":1,"firstTimestamp":"2024-01-01T00:00:00Z"' },
  { "/api/v1/namespaces/default/serviceaccounts", "v1", "ServiceAccount", '"secrets":[{"name":"s"}]' },
  { "/api/v1/namespaces", "v1", "Namespace", '"spec":{"finalizers":["kubernetes"]}' },
  { "/api/v1/nodes", "v1", "Node", '"spec":{"podCIDR":"10.0.0.0/24","taints":[{"key":"k","effect":"NoSchedule"}]}' },
  { "/apis/apps/v1/namespaces/default/deployments", "apps/v1", "Deployment",
    '"spec":{"replicas":2,"selector":{"matchLabels":{"app":"a"}},"template":' .. TEMPLATE .. "}" },
  { "/apis/apps/v1/namespaces/default/replicasets", "apps/v1", "ReplicaSet",
    '"spec":{"replicas":1,"selector":{"matchLabels":{"app":"a"},"matchExpressions":[{"key":"x","operator":"Exists"}]},'
    .. '"template":' .. TEMPLATE .. "}" },
  { "/apis/batch/v1/namespaces/default/jobs", "batch/v1", "Job",
    '"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}' },
  { "/apis/batch/v1/namespaces/default/cronjobs", "batch/v1", "CronJob",
    '"spec":{"schedule":"*/5 * * * *","jobTemplate":{"spec":{"template":{"spec":{"restartPolicy":"Never",'
    .. '"containers":[{"name":"c","image":"i"}]}}}}}' },
  { "/apis/coordination.k8s.io/v1/namespaces/default/leases", "coordination.k8s.io/v1", "Lease",
    '"spec":{"holderIdentity":"me","leaseDurationSeconds":15,"renewTime":"2024-01-01T00:00:00.000000Z"}' },
  { "/apis/rbac.authorization.k8s.io/v1/clusterroles", "rbac.authorization.k8s.io/v1", "ClusterRole",
    '"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]' },
  { "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", "rbac.authorization.k8s.io/v1", "RoleBinding",
    '"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"r"},'
    .. '"subjects":[{"kind":"ServiceAccount","name":"a","namespace":"default"}]' },
  { "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "apiextensions.k8s.io/v1", "CustomResourceDefinition",
    '"spec":{"group":"ex.io","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget","shortNames":["w"]},'
    .. '"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":' .. SCHEMA .. '},'
    .. '"subresources":{"status":{},"scale":{"specReplicasPath":".spec.size","statusReplicasPath":".status.replicas"}},'
    .. '"additionalPrinterColumns":[{"name":"Size","type":"integer","jsonPath":".spec.size"}]}]}' },
  { "/apis/ex.io/v1/namespaces/default/widgets", "ex.io/v1", "Widget",
    '"spec":{"size":3,"name":"abc","mode":"a","ports":[{"port":1,"name":"x"}],"any":{"x":1},"either":"50%",'
    .. '"tags":{"a":"b"}}' },
  { "/apis/networking.k8s.io/v1/namespaces/default/ingresses", "networking.k8s.io/v1", "Ingress",
    '"spec":{"rules":[{"host":"a.b","http":{"paths":[{"path":"/","pathType":"Prefix","backend":{"service":'
    .. '{"name":"s","port":{"number":80}}}}]}}]}' },
  { "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "authorization.k8s.io/v1", "SelfSubjectAccessReview",
    '"spec":{"resourceAttributes":{"namespace":"default","verb":"get","resource":"pods"}}' },
}

--- Metadata, beside name and namespace.
samples.metadata = {
  "", "", '"labels":{"app":"a"}', '"annotations":{"a.b/c":"d"}', '"finalizers":["a.b/c"]', '"generateName":"g-"',
  '"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"1-2","controller":true,'
    .. '"blockOwnerDeletion":true}]',
  '"resourceVersion":"1"', '"uid":"1"', '"managedFields":[{"manager":"m","operation":"Update","apiVersion":"v1",'
    .. '"time":"2024-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:data":{".":{},"f:k":{}}}}]',
}

--- { media type, body }.
samples.patches = {
  { "application/merge-patch+json",
    '{"data":{"k":"new"},"metadata":{"labels":{"x":null,"y":"z"}},"spec":{"replicas":3}}' },
  { "application/strategic-merge-patch+json", '{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"j",'
    .. '"env":[{"name":"A","$patch":"delete"}]},{"$patch":"replace"}],'
    .. '"$setElementOrder/containers":[{"name":"c"}]}}}}' },
  { "application/strategic-merge-patch+json", '{"metadata":{"finalizers":["x.y/z"],'
    .. '"$deleteFromPrimitiveList/finalizers":["a.b/c"]},"spec":{"$retainKeys":["type"],"type":"Recreate"}}' },
  { "application/json-patch+json", '[{"op":"test","path":"/metadata/name","value":"a"},'
    .. '{"op":"add","path":"/metadata/labels","value":{"a":"b"}},{"op":"replace","path":"/data/k","value":"x"},'
    .. '{"op":"move","from":"/data/k","path":"/data/m"},{"op":"copy","from":"/data/m","path":"/data/n"},'
    .. '{"op":"remove","path":"/data/n"},{"op":"add","path":"/metadata/finalizers/-","value":"a.b/c"}]' },
}

--- Options of deletions.
samples.deletions = {
  "", '{"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Foreground"}',
  '{"propagationPolicy":"Orphan","gracePeriodSeconds":0}', '{"preconditions":{"uid":"1","resourceVersion":"2"}}',
}

samples.queries = {
  limit = { "1", "0", "-1", "99999999999999999999", "x", "" },
  continue = { "x", "", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0", "%00", "bnVsbA", "W10", "MQ",
    "eyJ2IjpudWxsLCJydiI6bnVsbH0" },
  resourceVersion = { "0", "1", "5", "-1", "x", "18446744073709551616", "1e3", "%00", "999999999" },
  resourceVersionMatch = { "Exact", "NotOlderThan", "x", "" },
  labelSelector = { "app=a", "app!=a,x", "a in (b,c)", "!a", "a in (", "a>1", "%ff", "a==", ",,", "(((((((" },
  fieldSelector = { "metadata.name=a", "metadata.namespace!=x", "spec.nodeName=", "status.phase=Running", "x=", "=",
    "a\\=b=c", "%00=1", "," },
  watch = { "1", "true", "0", "x" },
  timeoutSeconds = { "1", "0", "-1", "x", "1.5" },
  allowWatchBookmarks = { "1", "true", "x" },
  sendInitialEvents = { "true", "false", "x" },
  dryRun = { "All", "x", "" },
  fieldManager = { "m", "", "%01", ("m"):rep(200), "%ff" },
  fieldValidation = { "Strict", "Warn", "Ignore", "x" },
  force = { "true", "false", "x" },
  pretty = { "true", "0", "x" },
  includeObject = { "None", "Object", "Metadata", "x" },
  propagationPolicy = { "Foreground", "Background", "Orphan", "x" },
  gracePeriodSeconds = { "0", "30", "-1", "x", "99999999999999999999" },
  orphanDependents = { "true", "false", "x" },
  ["%00"] = { "%", "%zz", "%ff" },
}

samples.accepts = {
  "application/json", "*/*", "application/yaml", "application/vnd.kubernetes.protobuf", "", ",", ";;;", "a/b", "text/*",
  "application/json;as=Table;v=v1;g=meta.k8s.io", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
  "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json", "application/json;q=x;;=",
  "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io", "\255\254", "application/json;stream=watch",
}

--- Pieces of JSON to put in the place of any other.
samples.pieces = {
  "null", "true", "0", "-1", "1.5", '""', '"x"', "[]", "{}", "[null]", '{"":null}', '{"a":{"b":{"c":[{"d":1}]}}}',
  "[[[[]]]]", '[{"name":"a"},{"name":"a"}]', '[1,"a",null,{}]', "1e999", "-1e999", "1e-999", "-0", "9007199254740993",
  "9223372036854775807", "9223372036854775808", "-9223372036854775809", "18446744073709551616",
  ("9"):rep(400), "0." .. ("3"):rep(400), '"\\u0000"', '"\\ud800"', '"\\udc00\\ud800"', '"\\uffff"', '"\255\254"',
  '"\192\175"', '"\237\160\128"', '"' .. ("x"):rep(5000) .. '"', '"a/b"', '"../.."', '"%s%d%n"', '"-"', '"."',
  '"2024-01-01T00:00:00Z"', '"9999-99-99T99:99:99Z"', '"1Ki"', '"1e400"', '"::1"', '"0x10"', '"NaN"',
  ("["):rep(50) .. ("]"):rep(50), ('{"a":'):rep(50) .. "1" .. ("}"):rep(50), '{"$patch":"delete"}',
  '{"$patch":"replace","a":1}', '{"$patch":1}', '{"$retainKeys":[1]}', '{"$setElementOrder/a":"x"}', "[[]]",
  "01", "+1", ".5", "1.", "tru", "'a'", "{", "]", '{"a":1,"a":2}', '{"a" 1}', "//", "NaN", "Infinity", "\0", "",
}

--- Bodies that are wrong as a whole; `depth` and `size` set how much.
function samples.whole(depth, size)
  local anchors = { "a0: &a0 [x,x,x,x,x,x,x,x,x]" }
  for i = 1, 9 do anchors[i + 1] = ("a%d: &a%d [%s]"):format(i, i, (("*a%d,"):format(i - 1)):rep(9)) end
  return {
    "", " ", "null", "1", '"x"', "[]", "{", "\0", ("\0"):rep(100), "\255\254\0{", "\239\187\191{}", ("a"):rep(size),
    ("["):rep(depth), ("["):rep(depth) .. ("]"):rep(depth), ('{"a":'):rep(depth) .. "1" .. ("}"):rep(depth),
    table.concat(anchors, "\n"), "a: &a [*a]", "&a a: *a", "? ? ? ?", "- - - - -", ("- "):rep(depth),
    "!!python/object:x {}",
    "%YAML 9.9\n---\n", "---\n---\n---\n", "a: !!binary x", "a: 1e999", "{a: b", "a:\n\tb", "<<: [1]", "<<: *x",
    "k8s\0", "k8s\0\255", "k8s\0\10\255\255\255\255\15", "k8s\0\18\0", "k8s\0" .. ("\10"):rep(300),
  }
end

return samples
