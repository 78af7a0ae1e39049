-- `moonwatch rbac`: the roles that scripts need. That they are enough, and on a server, is shown in
-- spec/server/rbac_spec.lua.
local cjson = require "cjson"
local cleanup = require "spec.support.cleanup"
local look = require "spec.support.look"

local moonwatch, script = look.moonwatch, look.script

local function roles(text, ...)
  local out, err, code = moonwatch("rbac", script(text), ...)
  assert.equal("", err)
  assert.equal(0, code, out)
  return out
end

describe("moonwatch rbac", function()
  cleanup.install()

  it("prints a ClusterRole for what is everywhere, and a Role for the lease", function()
    assert.equal([[
# Cannot be known, add rules for it: what is written with kube.client, if anything, by task main (MAIN:7)
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: "web"
rules:
  - apiGroups: [""]
    resources: ["configmaps"]
    verbs: ["get", "create", "update", "patch", "delete"]
  - apiGroups: [""]
    resources: ["pods"]
    verbs: ["get", "list", "watch", "delete"]
  - apiGroups: ["events.k8s.io"]
    resources: ["events"]
    verbs: ["create", "patch"]
  - apiGroups: ["example.com"]
    resources: ["webs"]
    verbs: ["get", "list", "watch", "patch"]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: "web"
  namespace: "control"
rules:
  - apiGroups: [""]
    resources: ["events"]
    verbs: ["create", "patch"]
  - apiGroups: ["coordination.k8s.io"]
    resources: ["leases"]
    verbs: ["create"]
  - apiGroups: ["coordination.k8s.io"]
    resources: ["leases"]
    resourceNames: ["web-leader"]
    verbs: ["get", "update"]
]], (roles([[
kube.controller { resource = "example.com/v1/webs", reads = { "v1/pods" }, reconcile = print,
  writes = { "v1/configmaps", "v1/pods:delete" },
  finalizer = "example.com/x", finalize = print }
kube.leader_election { name = "web-leader", namespace = "control" }
kube.recorder { name = "web", api = "events" }

kube.sleep(1)
]], "--name", "web"):gsub("%(/%S-main%.lua", "(MAIN")))
  end)

  it("prints Roles when all is in namespaces, and says where one without a namespace belongs", function()
    assert.equal([[
# For the namespace that the script runs in: kubectl apply -n NAMESPACE
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: "x"
rules:
  - apiGroups: [""]
    resources: ["events"]
    verbs: ["create", "patch"]
  - apiGroups: ["coordination.k8s.io"]
    resources: ["leases"]
    verbs: ["create"]
  - apiGroups: ["coordination.k8s.io"]
    resources: ["leases"]
    resourceNames: ["x"]
    verbs: ["get", "update"]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: "x"
  namespace: "team"
rules:
  - apiGroups: [""]
    resources: ["pods"]
    verbs: ["get", "list", "watch", "patch"]
]], roles([[
kube.leader_election { name = "x" }
kube.controller { resource = "v1/pods", namespaces = { "team" }, writes = { "v1/pods:patch" }, reconcile = print }
]], "--name", "x"))
  end)

  it("puts what the command line places into a Role of that namespace", function()
    local out = roles([[
      kube.leader_election { name = "x" }
      kube.controller { resource = "v1/pods", reads = { "v1/nodes" }, writes = { "v1/pods:patch" }, reconcile = print }
    ]], "--name=x", "--namespace=team", "-o=json")
    local list = cjson.decode(out)
    assert.equal("List", list.kind)
    assert.equal(2, #list.items)
    local all, team = unpack(list.items)
    assert.equal("ClusterRole", all.kind)
    assert.same({ { apiGroups = { "" }, resources = { "nodes" }, verbs = { "get", "list", "watch" } } }, all.rules)
    assert.same({ name = "x", namespace = "team" }, team.metadata)
    assert.same({ { apiGroups = { "" }, resources = { "events" }, verbs = { "create", "patch" } },
      { apiGroups = { "" }, resources = { "pods" }, verbs = { "get", "list", "watch", "patch" } },
      { apiGroups = { "coordination.k8s.io" }, resources = { "leases" }, verbs = { "create" } },
      { apiGroups = { "coordination.k8s.io" }, resources = { "leases" }, resourceNames = { "x" },
        verbs = { "get", "update" } } }, team.rules)
  end)

  it("is one role for several scripts, named after the first", function()
    local out = moonwatch("rbac", "examples/ttl/ttl.lua", "examples/greeter.lua")
    assert.equal([[
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: "ttl"
rules:
  - apiGroups: [""]
    resources: ["configmaps"]
    verbs: ["get", "list", "watch", "create", "patch", "delete"]
  - apiGroups: [""]
    resources: ["events"]
    verbs: ["create", "patch"]
  - apiGroups: [""]
    resources: ["namespaces"]
    verbs: ["get", "list", "watch"]
  - apiGroups: [""]
    resources: ["secrets"]
    verbs: ["get", "list", "watch", "delete"]
]], out)
  end)

  it("tells what cannot be known: as a comment, and a program on stderr", function()
    local path = script 'kube.controller { resource = "v1/pods", reconcile = print }'
    local wanted = ("cannot be known, add rules for it: what controller pods (%s:1) writes: it has no writes = { "
      .. "\"v1/configmaps:create,patch\", ... }\n"):format(path)
    local out = moonwatch("rbac", path)
    assert.equal("# C" .. wanted:sub(2), out:match("^[^\n]*\n"))
    local _, err = moonwatch("rbac", "-o", "json", path)
    assert.equal("moonwatch: " .. wanted, err)
  end)

  it("prints no role when a script does not load", function()
    local path = script 'kube.controler {}'
    local out, err, code = moonwatch("rbac", "examples/greeter.lua", path)
    assert.equal(1, code)
    assert.equal("", out)
    assert.equal(path .. ": does not load\n  " .. path .. ":1: kube has no 'controler' (did you mean 'controller'?)\n"
      .. "         1 | kube.controler {}\n", err)
  end)
end)
