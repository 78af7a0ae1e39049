-- An API server for specs: the one that scripts/kube started, when its environment is set (scripts/test
-- cluster), or else a sandbox. The same functions for both.
--
--   describe("an API server", function()
--     cluster.install()     -- there is a server while these specs run
--     cleanup.install()
--     it("...", function() cluster.kubectl("get nodes") end)
local cleanup = require "spec.support.cleanup"
local run_program = require "spec.support.run"
local sandbox = require "spec.support.sandbox"
local uv = require "luv"

local cluster = {}

local function env(name)
  return assert(os.getenv(name), name .. " is not set: run these specs with scripts/test")
end

local is_real = os.getenv("MOONWATCH_KUBE_DIR") ~= nil
local box -- the sandbox, when there is no cluster

cluster.kubeconfig = is_real and env "KUBECONFIG" or nil

--- For specs that make no sense on a sandbox: raises when there is no cluster.
function cluster.real() assert(is_real, "no cluster: run these specs with scripts/test cluster") end

--- In a describe block: there is a server while its specs run.
function cluster.install()
  if is_real then return end
  local spec = getfenv(2) -- a required module does not see busted's functions
  spec.setup(function()
    box = sandbox.start { keep = true }
    cluster.kubeconfig = box.kubeconfig
  end)
  spec.teardown(function()
    if box then box:stop() end
    box = nil
  end)
end

local function quote(s) return "'" .. s:gsub("'", "'\\''") .. "'" end

local function run(command, input)
  local result = run_program.sh(command .. " 2>&1", { stdin = input, timeout = 600 })
  return result.code, result.stdout
end

--- Runs kubectl and returns its output; raises when it fails.
function cluster.kubectl(arguments, input)
  local cache = os.getenv("KUBECACHEDIR") or cluster.kubeconfig:match("^(.*)/") .. "/cache"
  local command = ("KUBECONFIG=%s %s --cache-dir %s %s"):format(cluster.kubeconfig,
    env "MOONWATCH_KUBECTL", cache, arguments)
  local code, out = run(command, input)
  assert(code == 0, ("kubectl %s failed: %s"):format(arguments, out))
  return out
end

--- Applies a manifest (YAML or JSON text).
function cluster.apply(manifest) return cluster.kubectl("apply --server-side -f -", manifest) end

--- Starts a script (source or path) against the cluster; it is killed when the spec ends.
function cluster.start(source, options)
  options = options or {}
  options.kubeconfig = options.kubeconfig or cluster.kubeconfig
  local proc = run_program.start_script(source, options)
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

-- What nobody else has: files may follow each other within a second on one server.
local function unique()
  counter = counter + 1
  return ("%dx%dx%d"):format(os.time() % 100000, uv.os_getpid(), counter)
end

--- A fresh namespace with its service account, deleted (without waiting) when the spec ends.
function cluster.namespace()
  local name = "spec" .. unique()
  cluster.kubectl("create namespace " .. name)
  cleanup.later(function() cluster.kubectl("delete namespace --wait=false " .. name) end)
  -- Pods are refused until the account is there, which takes the controller manager a moment, and
  -- much longer on a busy machine whose API server has just been restarted.
  local stop = os.time() + 120
  while not pcall(cluster.kubectl, ("-n %s get serviceaccount default"):format(name)) do
    assert(os.time() < stop, "no service account in namespace " .. name)
  end
  return name
end

--- Runs scripts/kube with arguments; raises when it fails.
function cluster.kube(arguments, prefix)
  local code, out = run((prefix or "") .. " scripts/kube " .. arguments)
  assert(code == 0, ("scripts/kube %s failed: %s"):format(arguments, out))
  return out
end

--- Restarts the server: same address, same objects.
function cluster.restart()
  if is_real then cluster.kube("restart-apiserver") else box:restart() end
end

local function resume()
  if is_real then cluster.kube("resume-apiserver") else box.process:kill("sigcont") end
end

--- Freezes the server: connections stay open, and nothing answers. Returns what lets it go on, which the end of
--- the spec calls if nobody has.
function cluster.pause()
  if is_real then cluster.kube("pause-apiserver") else box.process:kill("sigstop") end
  local paused = true
  local function go_on()
    if paused then resume() end
    paused = false
  end
  cleanup.later(go_on)
  return go_on
end

-- etcd forgets; kube-apiserver remembers until it is restarted.
local function compact()
  local revision = cluster.kubectl("get --raw /api/v1/namespaces/default/configmaps?limit=1")
    :match('"resourceVersion":"(%d+)"')
  local code, out = run(("%s --endpoints %s compact %s"):format(env "MOONWATCH_ETCDCTL",
    env "MOONWATCH_KUBE_ETCD", revision))
  assert(code == 0 or out:find("has been compacted"), out)
end

--- Forgets all history before now, and ends all watches: a watch or list from before gets 410.
function cluster.forget()
  if is_real then
    compact()
    cluster.restart()
  else
    box:ask("POST", "/sandbox/v1/watches", '{"action":"cut"}')
    -- What a client has read of its watch by now may be the newest there is, which is never forgotten.
    cluster.kubectl("annotate namespace default --overwrite spec=" .. unique())
    box:ask("POST", "/sandbox/v1/expire")
  end
end

--- Options of start() with which a client trusts a CA that did not sign the server's certificate.
function cluster.wrong_ca()
  if is_real then return { args = { "--context", "wrong-ca" } } end
  local path = os.tmpname()
  cleanup.later(function() os.remove(path) end)
  local code, ca = run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout /dev/null "
    .. "-subj /CN=other 2> /dev/null | base64 -w 0")
  assert(code == 0, ca)
  local input = assert(io.open(cluster.kubeconfig))
  local text = input:read("*a"):gsub("(certificate%-authority%-data: )%S+", "%1" .. ca)
  input:close()
  local output = assert(io.open(path, "w"))
  output:write(text)
  output:close()
  return { kubeconfig = path }
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

-- Many small objects, by a script that makes several at a time: kubectl makes one after the other, which takes a
-- real server several times as long. `template` is JSON with %(name) and %(namespace).
local maker = [[
  local kube = require "kube"
  local namespace, plural, count, template = %q, %q, %d, %q
  local made = 0
  local function make()
    while made < count do
      made = made + 1
      local values = { name = ("n-%%05d"):format(made), namespace = namespace }
      kube.request { method = "POST", path = ("/api/v1/namespaces/%%s/%%s"):format(namespace, plural),
        body = (template:gsub("%%%%%%((%%w+)%%)", values)) }
    end
  end
  for i = 1, 16 do kube.background("maker " .. i, make) end
]]

local function many(namespace, count, plural, template)
  local proc = cluster.start(maker:format(namespace, plural, count, template))
  local code = proc:wait_exit(300)
  assert(code == 0, ("making %d %s: exit code %d\n%s"):format(count, plural, code, proc.stderr))
end

function cluster.configmaps(namespace, count)
  many(namespace, count, "configmaps", '{"apiVersion":"v1","kind":"ConfigMap","metadata":'
    .. '{"name":"%(name)","namespace":"%(namespace)"},"data":{"n":"%(name)"}}')
end

--- Events are the one built-in kind that kube-apiserver keeps no watch cache for: their lists are
--- really cut into pages, also at resourceVersion 0.
function cluster.events(namespace, count)
  many(namespace, count, "events", '{"apiVersion":"v1","kind":"Event","metadata":'
    .. '{"name":"%(name)","namespace":"%(namespace)"},"reason":"Spec","type":"Normal","message":"%(name)",'
    .. '"involvedObject":{"kind":"Pod","namespace":"%(namespace)","name":"p"}}')
end

return cluster
