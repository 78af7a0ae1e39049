-- The example operators against an API server, driven with kubectl as people do. Each function takes what starts a
-- script: start(path) returns its process.
local cleanup = require "spec.support.cleanup"
local cluster = require "spec.support.cluster"
local run = require "spec.support.run"

local operators = {}

local kubectl, stop = cluster.kubectl, cluster.stop

--- What fn returns once it is true; kubectl fails while a thing is not there.
function operators.eventually(what, fn, seconds)
  local deadline = os.time() + (seconds or 60)
  while true do
    local ok, value = pcall(fn)
    if ok and value then return value end
    if os.time() > deadline then error(("%s did not come true: %s"):format(what, tostring(value)), 2) end
    run.sh("sleep 0.1")
  end
end

local eventually = operators.eventually

local function field(resource, path) return kubectl(("get %s -o jsonpath='{%s}'"):format(resource, path)) end

local function becomes(wanted, resource, path)
  eventually(("%s of %s = %s"):format(path, resource, wanted), function() return field(resource, path) == wanted end)
end

local function gone(resource, seconds)
  eventually(resource .. " is gone", function()
    return kubectl(("get %s --ignore-not-found -o name"):format(resource)) == ""
  end, seconds)
end

-- The kubelet's part: says that all replicas of a Deployment are ready.
local function report_ready(key, replicas)
  local proc = cluster.start(([[
    local kube = require "kube"
    kube.sleep(0)
    kube.client:patch("apps/v1/deployments", "%s", { status = { replicas = %d, readyReplicas = %d } },
      { type = "merge", subresource = "status" })
  ]]):format(key, replicas, replicas))
  local code = proc:wait_exit(60)
  assert(code == 0, proc.stderr)
end

--- The shortest controller greets every namespace.
function operators.greeter(start)
  local proc = start("examples/greeter.lua")
  local ns = cluster.namespace()
  becomes(ns, ("-n %s configmap greeting"):format(ns), ".data.hello")
  kubectl(("-n %s delete configmap greeting"):format(ns))
  becomes(ns, ("-n %s configmap greeting"):format(ns), ".data.hello")
  stop(proc)
end

--- The website operator makes what a website asks for, repairs it, reports, and cleans up.
function operators.website(start)
  local ns = cluster.namespace()
  local site = ("-n %s website shop"):format(ns)
  -- Another spec may have left them on their way out.
  gone("crd websites.example.com", 120)
  gone("namespace website-directory", 120)
  kubectl("apply -f examples/website/crd.yaml")
  cleanup.later(function()
    kubectl("delete --ignore-not-found --wait=false namespace website-directory")
    kubectl("delete --ignore-not-found --wait=false -f examples/website/crd.yaml")
  end)
  local proc = start("examples/website/website.lua")
  eventually("the definition", function()
    return kubectl(("-n %s apply -f -"):format(ns), ([[
apiVersion: example.com/v1
kind: Website
metadata: { name: shop, namespace: %s }
spec: { host: shop.example.com, image: "nginx:1.27", replicas: 2 }
]]):format(ns))
  end)
  becomes("2", ("-n %s deployment shop"):format(ns), ".spec.replicas")
  becomes("80", ("-n %s service shop"):format(ns), ".spec.ports[0].port")
  becomes("shop.example.com", ("-n website-directory configmap %s.shop"):format(ns), ".data.host")
  becomes("0 of 2 replicas are ready", site, ".status.conditions[0].message")
  report_ready(ns .. "/shop", 2)
  becomes("True", site, ".status.conditions[0].status")
  kubectl(("-n %s patch website shop --type merge -p '{\"spec\":{\"replicas\":3}}'"):format(ns))
  becomes("3", ("-n %s deployment shop"):format(ns), ".spec.replicas")
  kubectl(("-n %s delete service shop"):format(ns))
  becomes("80", ("-n %s service shop"):format(ns), ".spec.ports[0].port")
  kubectl(("-n %s delete website shop"):format(ns))
  gone(("-n website-directory configmap %s.shop"):format(ns))
  -- A garbage collector looks for new kinds of owners every half minute only.
  gone(("-n %s deployment shop"):format(ns), 90)
  stop(proc)
end

--- The replicator copies a secret to where it is wanted, now and later, and takes it back.
function operators.replicator(start)
  local home, there = cluster.namespace(), cluster.namespace()
  kubectl(("-n %s create secret generic token --from-literal=key=one"):format(home))
  kubectl(("-n %s annotate secret token example.com/replicate-to=%s,late-%s"):format(home, there, there))
  local proc = start("examples/replicator/replicator.lua")
  becomes("b25l", ("-n %s secret token"):format(there), ".data.key")
  kubectl("create namespace late-" .. there)
  cleanup.later(function() kubectl("delete --wait=false namespace late-" .. there) end)
  becomes("b25l", ("-n late-%s secret token"):format(there), ".data.key")
  kubectl(("-n %s patch secret token -p '{\"data\":{\"key\":\"dHdv\"}}'"):format(home))
  becomes("dHdv", ("-n %s secret token"):format(there), ".data.key")
  kubectl(("-n %s delete secret token"):format(there))
  becomes("dHdv", ("-n %s secret token"):format(there), ".data.key")
  kubectl(("-n %s delete secret token"):format(home))
  gone(("-n %s secret token"):format(there))
  gone(("-n late-%s secret token"):format(there))
  stop(proc)
end

--- The cleaner deletes what has lived long enough, and says what it cannot read.
function operators.ttl(start)
  local ns = cluster.namespace()
  local proc = start("examples/ttl/ttl.lua")
  kubectl(("-n %s create configmap short"):format(ns))
  kubectl(("-n %s create configmap long"):format(ns))
  kubectl(("-n %s create configmap odd"):format(ns))
  kubectl(("-n %s annotate configmap short example.com/ttl=2s"):format(ns))
  kubectl(("-n %s annotate configmap long example.com/ttl=2h"):format(ns))
  kubectl(("-n %s annotate configmap odd example.com/ttl=soon"):format(ns))
  gone(("-n %s configmap short"):format(ns))
  eventually("the event", function() return kubectl(("-n %s get events"):format(ns)):find("BadTTL", 1, true) end)
  assert(field(("-n %s configmap long"):format(ns), ".metadata.annotations.example\\.com/ttl") == "2h")
  stop(proc)
end

--- The reloader rolls a Deployment out when its configuration changes.
function operators.reloader(start)
  local ns = cluster.namespace()
  local hash = ".spec.template.metadata.annotations.example\\.com/config-hash"
  local deployment = ("-n %s deployment app"):format(ns)
  kubectl(("-n %s create configmap settings --from-literal=a=1"):format(ns))
  kubectl(("-n %s create deployment app --image=app:1"):format(ns))
  local proc = start("examples/reloader/reloader.lua")
  kubectl(("-n %s annotate deployment app example.com/reload=settings"):format(ns))
  local first = eventually("a hash", function()
    local found = field(deployment, hash)
    return found ~= "" and found
  end)
  kubectl(("-n %s patch configmap settings -p '{\"data\":{\"a\":\"2\"}}'"):format(ns))
  eventually("another hash", function() return field(deployment, hash) ~= first end)
  kubectl(("-n %s patch configmap settings -p '{\"data\":{\"a\":\"1\"}}'"):format(ns))
  becomes(first, deployment, hash)
  stop(proc)
end

return operators
