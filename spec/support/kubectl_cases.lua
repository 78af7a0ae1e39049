-- What people do with kubectl, as probes (spec/probes/probe.lua): each command's output and exit
-- code is a step. The target's `kubectl` says which one runs.
local kubectl = require "spec.support.kubectl"
local uv = require "luv"

-- What the sandbox says of itself, that it did not check something, is no other server's to say.
local function without_confessions(text) return (text:gsub("Warning: sandbox: [^\n]*\n", "")) end

-- Runs a command in the probe's namespace and notes what came of it.
local function run(p, line, options)
  local result = p.target.kubectl:run("-n " .. p:namespace() .. " " .. line, options)
  p:add_step { command = "kubectl " .. line, code = result.code, stdout = kubectl.plain(result.stdout),
    stderr = kubectl.plain(without_confessions(result.stderr)) }
  return result
end

local function manifest(kind, version, name, rest)
  return ("apiVersion: %s\nkind: %s\nmetadata:\n  name: %s\n%s"):format(version, kind, name, rest)
end

local function config(value, more)
  return manifest("ConfigMap", "v1", "c", ("data:\n  k: %s\n%s"):format(value, more or ""))
end

local function deployment(image)
  return manifest("Deployment", "apps/v1", "d", ([[
  labels: {app: d}
spec:
  selector: {matchLabels: {app: d}}
  template:
    metadata: {labels: {app: d}}
    spec:
      containers:
      - name: main
        image: %s
        ports: [{containerPort: 80}]
      - name: side
        image: example.com/side:1
]]):format(image or "example.com/main:1"))
end

local function definition(p)
  local group, plural = p:name "group" .. ".example.com", p:name "gadgets"
  return group, plural, manifest("CustomResourceDefinition", "apiextensions.k8s.io/v1", plural .. "." .. group, ([[
spec:
  group: %s
  scope: Namespaced
  names: {plural: %s, singular: %s, kind: Gadget, shortNames: [%s]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Wide, type: string, jsonPath: .spec.color, priority: 1}
    schema:
      openAPIV3Schema:
        type: object
        description: A gadget.
        properties:
          spec:
            type: object
            description: What it should be.
            properties:
              size: {type: integer, minimum: 1, description: How large it is.}
              color: {type: string, default: red}
              replicas: {type: integer}
          status: {type: object, properties: {replicas: {type: integer}}}
]]):format(group, plural, p:name "gadget", p:name "gd"))
end

return {
  { name = "create, get, describe, delete", run = function(p)
    run(p, "create configmap c --from-literal=k=v") -- of two keys an old kubectl describes either first
    run(p, "create configmap c")
    run(p, "get configmap c")
    run(p, "get cm c -o wide")
    run(p, "get cm c -o yaml")
    run(p, "get cm/c -o json")
    run(p, "get cm c -o name")
    run(p, "get cm c -o jsonpath='{.data.k}'")
    run(p, "get cm c -o custom-columns=NAME:.metadata.name,K:.data.k")
    run(p, "get cm c --show-labels")
    run(p, "describe cm c")
    run(p, "get cm missing")
    run(p, "get nonsense")
    run(p, "delete cm c")
    run(p, "delete cm c")
    run(p, "delete cm c --ignore-not-found")
  end },
  { name = "create from files", run = function(p)
    run(p, "create -f -", { input = config("v") })
    run(p, "create -f -", { input = config("v") })
    run(p, "replace -f -", { input = config("w") })
    run(p, "get -f - -o jsonpath='{.data.k}'", { input = config("v") })
    run(p, "create -f -", { input = config("v", "bogus: 1\n") })
    run(p, "create -f - --dry-run=server -o name", { input = manifest("Secret", "v1", "s", "stringData: {a: b}\n") })
    run(p, "create -f - --dry-run=client -o yaml", { input = manifest("ConfigMap", "v1", "n", "") })
    run(p, "delete -f -", { input = config("v") })
  end },
  { name = "apply", run = function(p)
    run(p, "apply -f -", { input = config("v") })
    run(p, "apply -f -", { input = config("v") })
    run(p, "apply -f -", { input = config("w", "  extra: x\n") })
    run(p, "get cm c -o yaml")
    run(p, "apply -f -", { input = config("w") })
    run(p, "get cm c -o jsonpath='{.data}'")
    run(p, "apply -f -", { input = deployment() })
    run(p, "apply -f -", { input = deployment("example.com/main:2") })
    run(p, "get deploy d -o jsonpath='{.spec.template.spec.containers[*].image}'")
    run(p, "apply view-last-applied cm c")
    run(p, "delete deploy d")
  end },
  { name = "server-side apply", run = function(p)
    run(p, "apply --server-side -f -", { input = config("v") })
    run(p, "apply --server-side --field-manager=other -f -", { input = config("w") })
    run(p, "apply --server-side --field-manager=other --force-conflicts -f -", { input = config("w") })
    run(p, "get cm c -o yaml")
    run(p, "apply --server-side -f -", { input = deployment() })
    run(p, "apply --server-side -f -", { input = deployment() })
  end },
  { name = "diff", run = function(p)
    run(p, "diff -f -", { input = config("v") })
    run(p, "apply -f -", { input = config("v") })
    run(p, "diff -f -", { input = config("v") })
    uv.sleep(1001) -- owners are dated in whole seconds; one must pass for the diff to show it
    run(p, "diff -f -", { input = config("w") })
  end },
  { name = "edit", run = function(p)
    run(p, "create configmap c --from-literal=k=before")
    run(p, "edit cm c", { editor = "sed -i s/before/after/" })
    run(p, "get cm c -o jsonpath='{.data.k}'")
    run(p, "edit cm c", { editor = "true" })
  end },
  { name = "patch", run = function(p)
    run(p, "create -f -", { input = deployment() })
    run(p, [=[patch deploy d --type=json -p '[{"op":"replace","path":"/spec/replicas","value":3}]']=])
    run(p, [[patch deploy d --type=merge -p '{"spec":{"replicas":4}}']])
    run(p, [[patch deploy d -p '{"spec":{"template":{"spec":{"containers":]]
      .. [=[[{"name":"side","image":"example.com/side:2"}]}}}}']=])
    run(p, [[patch deploy d -p '{"spec":{"replicas":4}}']])
    run(p, "get deploy d -o jsonpath='{.spec.replicas} {.spec.template.spec.containers[*].image}'")
    run(p, [=[patch deploy d --type=json -p '[{"op":"test","path":"/spec/replicas","value":9}]']=])
    run(p, [[patch deploy missing -p '{}']])
  end },
  { name = "label and annotate", run = function(p)
    run(p, "create configmap c")
    run(p, "label cm c a=1 b=2")
    run(p, "label cm c a=3")
    run(p, "label cm c a=3 --overwrite")
    run(p, "label cm c b-")
    run(p, "annotate cm c note='some text'")
    run(p, "annotate cm c note-")
    run(p, "get cm -l a=3 --show-labels")
    run(p, "get cm -l a=4")
    run(p, "label cm c 'bad key=1'")
  end },
  { name = "scale and rollout", run = function(p)
    run(p, "create deployment d --image=example.com/x:1")
    run(p, "scale deploy d --replicas=3")
    run(p, "get deploy d")
    run(p, "get deploy d -o wide")
    run(p, "scale deploy d --replicas=5 --current-replicas=2")
    run(p, "set image deploy/d x=example.com/x:2")
    run(p, "rollout restart deploy d")
    run(p, "rollout status deploy d --timeout=1s")
    run(p, "describe deploy d")
  end },
  { name = "custom resources", run = function(p)
    local group, plural, text = definition(p)
    local one = p:name "gadget"
    run(p, "create -f -", { input = text })
    p:later(function() p.target.kubectl:run("delete crd " .. plural .. "." .. group .. " --wait=false") end)
    run(p, "wait --for=condition=Established --timeout=10s crd/" .. plural .. "." .. group)
    local function gadget(size) return manifest("Gadget", group .. "/v1", "g", ("spec: {size: %s}\n"):format(size)) end
    run(p, "apply -f -", { input = gadget(1) })
    run(p, "apply -f -", { input = gadget(2) })
    run(p, "apply -f -", { input = gadget(0) })
    run(p, "get " .. plural)
    run(p, "get " .. p:name "gd" .. " -o wide")
    run(p, "get " .. one .. " g -o yaml")
    run(p, "patch " .. one .. " g --type=merge -p '{\"spec\":{\"replicas\":1}}'")
    run(p, "scale " .. one .. " g --replicas=2")
    run(p, "edit " .. one .. " g", { editor = "sed -i s/red/blue/" })
    run(p, "describe " .. one .. " g")
    run(p, "api-resources --api-group=" .. group)
    run(p, "delete " .. one .. " g")
  end },
  { name = "watch", run = function(p)
    run(p, "create configmap a")
    local line = "-n " .. p:namespace() .. " get cm --field-selector metadata.name!=kube-root-ca.crt -w -o name"
    local process = p.target.kubectl:start(line)
    process:wait(function(w) return w.stdout:find("configmap/a") end, 10)
    run(p, "create configmap b")
    run(p, "label cm a x=1")
    process:wait(function(w) return select(2, w.stdout:gsub("\n", "")) >= 3 end, 10)
    process:stop()
    p:note("what the watch printed", process.stdout)
  end },
  { name = "wait", run = function(p)
    run(p, "create configmap c")
    run(p, "wait --for=delete cm/gone --timeout=5s")
    local process = p.target.kubectl:start("-n " .. p:namespace() .. " -v=6 wait --for=delete cm/c --timeout=30s")
    assert(process:wait(function(w) return w.stderr:find("watch=true") end, 20), "it does not watch")
    run(p, "delete cm c")
    process:wait(function(w) return w.code end, 15)
    process:stop()
    p:note("how the wait ended", process.code)
    run(p, "create deployment d --image=example.com/x:1")
    run(p, "wait --for=condition=Available deploy/d --timeout=1s")
  end },
  { name = "explain", run = function(p)
    run(p, "explain configmap")
    run(p, "explain deployment.spec.replicas")
    run(p, "explain pod.spec.containers.image")
    run(p, "explain configmap.bogus")
    run(p, "explain ingress --recursive")
    run(p, "explain pods.spec.topologySpreadConstraints")
  end },
  { name = "explain and check custom resources", run = function(p)
    local group, plural, text = definition(p)
    local function gadget(spec) return manifest("Gadget", group .. "/v1", "g", "spec: " .. spec .. "\n") end
    p.target.kubectl:run("create -f -", { input = text })
    p:later(function() p.target.kubectl:run("delete crd " .. plural .. "." .. group .. " --wait=false") end)
    -- The server's document follows the definition in its own time.
    local stop = os.time() + 30
    while p.target.kubectl:run("explain " .. plural .. ".spec").code ~= 0 and os.time() < stop do uv.sleep(100) end
    run(p, "explain " .. plural)
    run(p, "explain " .. plural .. " --recursive")
    run(p, "explain " .. plural .. ".spec.size")
    run(p, "apply -f -", { input = gadget "{size: 1, shape: round}" })
    run(p, "apply -f -", { input = gadget "{size: large}" })
    run(p, "apply -f -", { input = gadget "{size: 1}" })
    run(p, "apply --dry-run=server -f -", { input = gadget "{size: 2}" })
    run(p, "get " .. plural .. " g -o jsonpath='{.spec.size}'")
  end },
  { name = "manifests are checked against the schema", run = function(p)
    run(p, "apply -f -", { input = deployment():gsub("ports:", "prots:") })
    run(p, "apply -f -", { input = deployment():gsub("containerPort: 80", "containerPort: eighty") })
    run(p, "apply --validate=false -f -", { input = config("v", "bogus: 1\n") })
    run(p, "apply -f -", { input = deployment() })
    run(p, "apply --dry-run=server -f -", { input = deployment("example.com/main:2") })
    run(p, "get deploy d -o jsonpath='{.spec.template.spec.containers[*].image}'")
    -- The second container is gone from the manifest; the list is merged by name.
    run(p, "apply -f -", { input = deployment("example.com/main:3"):gsub("      %- name: side.*$", "") })
    run(p, "get deploy d -o jsonpath='{.spec.template.spec.containers[*].image}'")
  end },
  { name = "what the server has", run = function(p)
    -- Definitions of other probes may not be gone yet.
    local result = p.target.kubectl:run("api-resources")
    local lines = {}
    for text in result.stdout:gmatch("[^\n]+") do
      if not text:find("example%.com") then lines[#lines + 1] = text end
    end
    p:note("api-resources", kubectl.plain(table.concat(lines, "\n")))
    run(p, "api-resources --namespaced=false --api-group=rbac.authorization.k8s.io -o wide")
    run(p, "auth can-i create pods")
    run(p, "auth can-i create pods --all-namespaces -q")
  end },
  { name = "several kinds at once", run = function(p)
    run(p, "create service clusterip s --tcp=80:8080")
    run(p, "create deployment d --image=example.com/x:1")
    run(p, "create secret generic x --from-literal=a=b")
    run(p, "create serviceaccount sa")
    run(p, "create role r --verb=get --resource=pods")
    run(p, "create rolebinding rb --role=r --serviceaccount=default:default")
    run(p, "create job j --image=example.com/x:1")
    run(p, "create cronjob cj --image=example.com/x:1 --schedule='0 0 * * *'")
    run(p, "create quota q --hard=pods=10")
    run(p, "get deploy,svc,secret,role,rolebinding,job,cronjob,quota")
    run(p, "get all")
    run(p, "describe svc s")
    run(p, "describe role r")
    run(p, "describe secret x")
    run(p, "delete deploy,svc --all")
    run(p, "delete secret,role,rolebinding,job,cronjob,quota x r rb")
  end },
  { name = "pods", run = function(p)
    p:poll(p:core("serviceaccounts", "default"), function(a) return a.status == 200 end, { quiet = true })
    run(p, "run p --image=example.com/x:1 --restart=Never")
    run(p, "get pods")
    run(p, "get pods -o wide")
    run(p, "get pods --field-selector=status.phase=Pending -o name")
    run(p, "logs p")
    run(p, "delete pod p")
    run(p, "get pods")
  end },
  { name = "sorting and paging", run = function(p)
    for _, name in ipairs { "b", "c", "a" } do
      p.target.kubectl:run("-n " .. p:namespace() .. " create secret generic " .. name .. " --from-literal=n=" .. name)
    end
    run(p, "get secrets --sort-by=.metadata.name -o name")
    run(p, "get secrets --chunk-size=2")
    run(p, "get secrets --no-headers")
    run(p, "get secrets a b")
    run(p, "get secrets a zzz")
  end },
  { name = "namespaces", run = function(p)
    local name = p:name "other"
    run(p, "create namespace " .. name)
    run(p, "get namespace " .. name)
    run(p, "create namespace " .. name)
    run(p, "delete namespace " .. name)
    run(p, "get namespace " .. name)
    run(p, "create configmap c -n " .. name)
    run(p, "delete namespace default")
  end },
  { name = "cascades", run = function(p)
    run(p, "create -f -", { input = deployment() })
    run(p, "delete deploy d --cascade=foreground")
    run(p, "create -f -", { input = deployment() })
    run(p, "delete deploy d --cascade=orphan")
    run(p, "delete cm -l none=here")
  end },
}
