-- Every example does its work on an API server as an account that holds the role which `moonwatch rbac` printed
-- for it, and nothing else. The sandbox does not look at roles: there they are only made.
local cleanup = require "spec.support.cleanup"
local cluster = require "spec.support.cluster"
local operators = require "spec.support.operators"
local run = require "spec.support.run"

local kubectl, eventually, stop = cluster.kubectl, operators.eventually, cluster.stop

local on_cluster = os.getenv("MOONWATCH_KUBE_DIR") ~= nil

local function read(path)
  local file = assert(io.open(path))
  local text = file:read("*a")
  file:close()
  return text
end

-- A kubeconfig like the specs' own, but with another token. The sandbox has one token for all.
local function kubeconfig_of(token)
  if not on_cluster then return cluster.kubeconfig end
  local path = os.tmpname()
  cleanup.later(function() os.remove(path) end)
  local file = assert(io.open(path, "w"))
  file:write(read(cluster.kubeconfig))
  file:close()
  local result = run.sh(("KUBECONFIG=%s sh -c '%s config set-credentials spec --token=%s && "
    .. "%s config set-context --current --user=spec'"):format(path, os.getenv("MOONWATCH_KUBECTL"), token,
    os.getenv("MOONWATCH_KUBECTL")))
  assert(result.code == 0, result.stdout .. result.stderr)
  return path
end

-- Binds the roles of a text to an account.
local function bind(roles, name, home, account)
  local subject = ("--serviceaccount=%s:%s"):format(home, account)
  for role in (roles .. "---\n"):gmatch("(.-)%-%-%-\n") do
    local namespace = role:match('\n  namespace: "(.-)"')
    if role:find("\nkind: ClusterRole\n", 1, true) then
      kubectl(("create clusterrolebinding %s --clusterrole=%s %s"):format(name, name, subject))
      cleanup.later(function()
        kubectl("delete clusterrolebinding " .. name)
        kubectl("delete clusterrole " .. name)
      end)
    else
      kubectl(("-n %s create rolebinding %s --role=%s %s"):format(namespace, name, name, subject))
    end
  end
end

local function can(account, question)
  local result = run.sh(("KUBECONFIG=%s %s auth can-i --as=%s %s"):format(cluster.kubeconfig,
    os.getenv("MOONWATCH_KUBECTL"), account, question))
  return result.stdout:match("%l+") == "yes"
end

-- The kubeconfig of a fresh account that may do what `rbac` says that the script needs. `example`: something that it
-- is allowed by that, as kubectl asks for it.
local function account_for(path, example)
  local home = cluster.namespace()
  local name, user = "rbac-" .. home, ("system:serviceaccount:%s:runner"):format(home)
  kubectl(("-n %s create serviceaccount runner"):format(home))
  local printed = run.run_command { "rbac", path, "--name", name }
  assert.equal(0, printed.code, printed.stderr)
  assert.is_false(on_cluster and can(user, example))
  kubectl("apply -f -", printed.stdout)
  bind(printed.stdout, name, home, "runner")
  if not on_cluster then return cluster.kubeconfig end
  eventually("the right to " .. example, function() return can(user, example) end)
  assert.is_false(can(user, "create pods --all-namespaces"))
  local answer = kubectl(("create --raw /api/v1/namespaces/%s/serviceaccounts/runner/token -f -"):format(home),
    '{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}')
  return kubeconfig_of(assert(answer:match('"token":"([^"]+)"'), answer))
end

local WEBS = [[
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: webs.example.com }
spec:
  group: example.com
  scope: Namespaced
  names: { plural: webs, singular: web, kind: Web }
  versions:
    - name: v1
      served: true
      storage: true
      schema: { openAPIV3Schema: { type: object, x-kubernetes-preserve-unknown-fields: true } }
]]

local started = {} -- processes of the running spec

-- What starts an example as its own account.
local function starter(example)
  return function(path)
    started[#started + 1] = cluster.start(path, { kubeconfig = account_for(path, example) })
    return started[#started]
  end
end

describe("as an account with the role that rbac printed", function()
  cluster.install()
  cleanup.install()

  before_each(function() started = {} end)

  -- Neither the work that was looked at nor any other was refused.
  after_each(function()
    for _, proc in ipairs(started) do assert.is_nil(proc.stderr:match("[^\n]*cannot %l+ resource[^\n]*")) end
  end)

  it("the shortest controller greets every namespace", function()
    operators.greeter(starter "patch configmaps --all-namespaces")
  end)

  it("the website operator does all of its work", function()
    operators.website(starter "patch websites.example.com --subresource=status --all-namespaces")
  end)

  it("the replicator copies and takes back", function()
    operators.replicator(starter "delete secrets --all-namespaces")
  end)

  it("the cleaner deletes, and writes events", function()
    operators.ttl(starter "create events --all-namespaces")
  end)

  it("the reloader rolls out", function()
    operators.reloader(starter "patch deployments.apps --all-namespaces")
  end)

  it("the informers see what happens", function()
    local ns = cluster.namespace()
    kubectl(("-n %s apply -f -"):format(ns), cluster.pod(ns, "box", { app = "shop" }) .. "  nodeName: n1\n")
    local cases = {
      { "pods", "^labelled\t" .. ns .. "/box\tshop$" },
      { "pods_per_node", "^n1\t%d+$" },
      { "nodes", "^n1\t%d+\ta pod came" },
      { "shelves", "^n1 .*%[box%]" },
    }
    for _, case in ipairs(cases) do
      local proc = starter "watch pods --all-namespaces"(("examples/%s.lua"):format(case[1]))
      proc:wait_line(case[2], 60)
      stop(proc)
    end
    local proc = starter "watch services --all-namespaces"("examples/services.lua")
    proc:wait_line("^added\tdefault/kubernetes\t", 60)
    stop(proc)
  end)

  it("the informer of a custom resource sees it", function()
    local ns = cluster.namespace()
    kubectl("apply -f -", WEBS)
    cleanup.later(function() kubectl("delete --wait=false -f -", WEBS) end)
    eventually("the definition", function()
      return kubectl("apply -f -", ("apiVersion: example.com/v1\nkind: Web\nmetadata: { name: a, namespace: %s }\n"
        .. "spec: { image: nginx }\n"):format(ns))
    end)
    local proc = starter "watch webs.example.com --all-namespaces" "examples/custom_resource.lua"
    proc:wait_line("^web\t" .. ns .. "/a\tnginx$", 90)
    stop(proc)
  end)

  it("a controller in one namespace leads, labels, has its finalizer and tells of it", function()
    local ns = cluster.namespace()
    local path = os.tmpname() .. ".lua"
    cleanup.later(function() os.remove(path) end)
    local file = assert(io.open(path, "w"))
    file:write(([[
      local kube = require "kube"
      kube.leader_election { name = "spec", namespace = "%s" }
      kube.controller {
        name = "labels", resource = "v1/configmaps", namespaces = { "%s" }, label_selector = "spec=yes",
        writes = { "v1/configmaps:patch", "v1/events" },
        finalizer = "example.com/labels",
        finalize = function(ctx) ctx.log:info("finalized") end,
        reconcile = function(ctx, config)
          if not config then return end
          ctx.client:patch("v1/configmaps", ctx.key, { metadata = { labels = { seen = "yes" } } })
          ctx.events:normal(config, "Seen", "labelled")
        end,
      }
    ]]):format(ns, ns))
    file:close()
    local proc = starter("patch configmaps -n " .. ns)(path)
    kubectl(("-n %s create configmap a"):format(ns))
    kubectl(("-n %s label configmap a spec=yes"):format(ns))
    eventually("the label", function()
      return kubectl(("-n %s get configmap a -o jsonpath='{.metadata.labels.seen}'"):format(ns)) == "yes"
    end)
    eventually("the events", function()
      local events = kubectl(("-n %s get events"):format(ns))
      return events:find("Seen", 1, true) and events:find("became leader", 1, true)
    end)
    kubectl(("-n %s delete configmap a"):format(ns))
    stop(proc)
    assert.equal("", kubectl(("-n %s get lease spec -o jsonpath='{.spec.holderIdentity}'"):format(ns)))
  end)
end)
