-- The real API server that scripts/kube started, as the cluster specs use it.
local cleanup = require "spec.support.cleanup"
local run_script = require "spec.support.run"

local cluster = {}

local function env(name)
  return assert(os.getenv(name), name .. " is not set: run these specs with scripts/test cluster")
end

cluster.kubeconfig = env "KUBECONFIG"

local function quote(s) return "'" .. s:gsub("'", "'\\''") .. "'" end

local function run(command)
  local pipe = assert(io.popen(command .. " 2>&1; echo \"exit=$?\""))
  local out = pipe:read("*a")
  pipe:close()
  local text, code = out:match("^(.*)exit=(%d+)\n$")
  return tonumber(code), text
end

--- Runs kubectl and returns its output; raises when it fails.
function cluster.kubectl(arguments, input)
  local path
  local command = env "MOONWATCH_KUBECTL" .. " " .. arguments
  if input then
    path = os.tmpname()
    local file = assert(io.open(path, "w"))
    file:write(input)
    file:close()
    command = command .. " < " .. path
  end
  local code, out = run(command)
  if path then os.remove(path) end
  assert(code == 0, ("kubectl %s failed: %s"):format(arguments, out))
  return out
end

--- Applies a manifest (YAML or JSON text).
function cluster.apply(manifest) return cluster.kubectl("apply --server-side -f -", manifest) end

--- Starts a script (source or path) against the cluster; it is killed when the spec ends.
function cluster.start(source, options)
  options = options or {}
  options.kubeconfig = options.kubeconfig or cluster.kubeconfig
  local proc = run_script.start_script(source, options)
  cleanup.later(function() proc:kill("sigkill") end)
  return proc
end

--- Ends it as an operator would; it must leave in order.
function cluster.stop(proc)
  proc:kill("sigterm")
  local code = proc:wait_exit(15)
  assert(code == 0, ("exit code %d\n%s"):format(code, proc.stderr))
end

local counter = 0

--- A fresh namespace with its service account, deleted (without waiting) when the spec ends.
function cluster.namespace()
  counter = counter + 1
  local name = ("spec%dx%d"):format(os.time() % 100000, counter)
  cluster.kubectl("create namespace " .. name)
  cleanup.later(function() cluster.kubectl("delete namespace --wait=false " .. name) end)
  return name
end

--- Runs scripts/kube with arguments; raises when it fails.
function cluster.kube(arguments, prefix)
  local code, out = run((prefix or "") .. " scripts/kube " .. arguments)
  assert(code == 0, ("scripts/kube %s failed: %s"):format(arguments, out))
  return out
end

--- Forgets all history before now: etcd is compacted, and a new kube-apiserver has no memory of it.
function cluster.compact()
  local revision = cluster.kubectl("get --raw /api/v1/namespaces/default/configmaps?limit=1")
    :match('"resourceVersion":"(%d+)"')
  local code, out = run(("%s --endpoints %s compact %s"):format(env "MOONWATCH_ETCDCTL",
    env "MOONWATCH_KUBE_ETCD", revision))
  assert(code == 0 or out:find("has been compacted"), out)
end

--- A minimal pod that the API server accepts; nothing will run it.
function cluster.pod(namespace, name, labels)
  local lines = {}
  for key, value in pairs(labels or {}) do lines[#lines + 1] = ("    %s: %s"):format(key, quote(value)) end
  return ([[
apiVersion: v1
kind: Pod
metadata:
  namespace: %s
  name: %s
%s
spec:
  automountServiceAccountToken: false
  containers: [{ name: main, image: "example.com/none:1" }]
]]):format(namespace, name, #lines > 0 and "  labels:\n" .. table.concat(lines, "\n") or "")
end

--- Many small objects by one kubectl call. `template` is JSON with %(name) and %(namespace).
local function many(namespace, count, template)
  local items = {}
  for i = 1, count do
    items[i] = template:gsub("%%%((%w+)%)", { name = ("n-%05d"):format(i), namespace = namespace })
  end
  local list = '{"apiVersion":"v1","kind":"List","items":[' .. table.concat(items, ",") .. "]}"
  cluster.kubectl("create -f - --validate=false > /dev/null", list)
end

function cluster.configmaps(namespace, count)
  many(namespace, count, '{"apiVersion":"v1","kind":"ConfigMap","metadata":'
    .. '{"name":"%(name)","namespace":"%(namespace)"},"data":{"n":"%(name)"}}')
end

--- Events are the one built-in kind that kube-apiserver keeps no watch cache for: their lists are
--- really cut into pages, also at resourceVersion 0.
function cluster.events(namespace, count)
  many(namespace, count, '{"apiVersion":"v1","kind":"Event","metadata":'
    .. '{"name":"%(name)","namespace":"%(namespace)"},"reason":"Spec","type":"Normal","message":"%(name)",'
    .. '"involvedObject":{"kind":"Pod","namespace":"%(namespace)","name":"p"}}')
end

return cluster
