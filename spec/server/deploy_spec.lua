-- Scripts that are kept in a ConfigMap, against an API server (see spec/support/cluster.lua).
local cleanup = require "spec.support.cleanup"
local cluster = require "spec.support.cluster"
local run = require "spec.support.run"
local uv = require "luv"

local function script(word, more)
  return ([[
    local text = require "lib.text"
    kube.controller { name = "greeter", resource = "v1/secrets", namespaces = { NAMESPACE },
      reconcile = function(ctx, object)
        if object and ctx.name:find("^s") then print(text("%s", ctx.name)) end
      end }
    %s
  ]]):format(word, more or "")
end

local function indented(text) return (text:gsub("[^\n]+", "    %0")) end

describe("a script in a ConfigMap", function()
  cluster.install()
  cleanup.install()

  it("is active a moment after kubectl apply, and the ConfigMap says so", function()
    local namespace = cluster.namespace()
    local function apply(text)
      cluster.kubectl("apply -f -", ([[
apiVersion: v1
kind: ConfigMap
metadata: { name: operator, namespace: %s }
data:
  main.lua: |
%s
  lib.text.lua: |
    return function(...) return table.concat({ ... }, " ") end
]]):format(namespace, indented(text:gsub("NAMESPACE", ("%q"):format(namespace)))))
    end
    local proc
    local function annotation(name)
      return cluster.kubectl(("get configmap operator -n %s -o 'jsonpath={.metadata.annotations.moonwatch\\.dev/%s}'")
        :format(namespace, name))
    end
    local function wait_for(ask, pattern)
      local last
      for _ = 1, 100 do
        last = ask()
        if last:find(pattern) then return last end
        uv.sleep(100)
      end
      error(("no %q in %s\n%s"):format(pattern, last, proc and proc.stderr or ""), 2)
    end

    proc = run.start_command { "run", "configmap:" .. namespace .. "/operator", "--kubeconfig",
      cluster.kubeconfig }
    cleanup.later(function()
      if not proc.code then proc:kill("sigkill") end
    end)
    proc:wait_stderr("there is no such ConfigMap yet", 30)
    cluster.kubectl(("create secret generic s1 -n %s --from-literal=a=b"):format(namespace))
    apply(script "one")
    proc:wait_line("^one s1$", 30)
    wait_for(function() return annotation "status" end, "^active$")
    assert.matches("^%x+$", annotation "active-revision")

    apply(script "two")
    local applied = uv.hrtime()
    proc:wait_line("^two s1$", 30)
    print(("  a new script reconciles %.0f ms after kubectl apply has returned"):format((uv.hrtime() - applied) / 1e6))

    apply(script("three", "kube.contrller {}"))
    proc:wait_stderr("reload failed[^\n]*did you mean 'controller'", 30)
    wait_for(function() return annotation "status" end, "^failed: .*main%.lua:%d+.*did you mean")
    cluster.kubectl(("create secret generic s2 -n %s --from-literal=a=b"):format(namespace))
    proc:wait_line("^two s2$", 30)
    local events = wait_for(function()
      return cluster.kubectl("get events -n " .. namespace .. " -o jsonpath='{.items[*].reason}'")
    end, "ReloadFailed")
    assert.matches("Reloaded", events)
    proc:kill("sigterm")
    assert.are.equal(0, proc:wait_exit(30))
  end)
end)
