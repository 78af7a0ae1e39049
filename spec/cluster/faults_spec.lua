-- What only a real cluster has: an old etcd, users, refusals.
local cluster = require "spec.support.cluster"
local cleanup = require "spec.support.cleanup"
local follower = require("spec.support.scripts").follower

cluster.real()

local start, stop = cluster.start, cluster.stop

describe("a real kube-apiserver", function()
  cleanup.install()

  it("refuses streaming lists on an old etcd, and the informer falls back to pages", function()
    local state = os.tmpname()
    os.remove(state)
    local prefix = "MOONWATCH_KUBE_STATE=" .. state
    cluster.kube("start --etcd debian", prefix)
    cleanup.later(function() cluster.kube("stop", prefix) end)
    local env = cluster.kube("env", prefix)
    local kubeconfig = env:match("KUBECONFIG=(%S+)"):gsub("['\"]", "")
    local proc = start(follower:format("kube-system"), { kubeconfig = kubeconfig })
    proc:wait_line("^synced\t[1-9]", 30)
    proc:wait_line("^stats lists=[1-9]%d* watches=%d+ expired=0 fallback=[1-9]", 10)
    stop(proc)
  end)

  for _, context in ipairs { "cert", "cert-data", "viewer" } do
    it(("takes the %s user"):format(context), function()
      local proc = start(follower:format("kube-system"), { args = { "--context", context } })
      proc:wait_line("^synced\t[1-9]", 20)
      stop(proc)
    end)
  end

  it("forbids, which is a state that is retried and heals when the right is given", function()
    local ns = cluster.namespace()
    cluster.kubectl(("-n %s create configmap one"):format(ns))
    local proc = start(follower:format(ns), { args = { "--context", "nobody" } })
    proc:wait_stderr('cannot list resource', 20)
    cluster.kubectl(("-n %s create role reader --verb=get,list,watch --resource=configmaps"):format(ns))
    local user = cluster.kubectl("--context nobody auth whoami -o jsonpath='{.status.userInfo.username}'")
    cluster.kubectl(("-n %s create rolebinding reader --role=reader --user=%s"):format(ns, user))
    proc:wait_line("^add\tone\t", 30)
    stop(proc)
  end)
end)
