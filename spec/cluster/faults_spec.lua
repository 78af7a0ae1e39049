-- What a real cluster does to its clients: restarts, compaction, refusals, many objects.
local cluster = require "spec.support.cluster"
local cleanup = require "spec.support.cleanup"

local start, stop = cluster.start, cluster.stop

-- Follows ConfigMaps of one namespace and answers SIGTERM with nothing but a clean exit.
local follower = [[
  local kube = require "kube"
  local factory = kube.shared_informer_factory { namespace = "%s", backoff = { duration = 0.1, cap = 0.5 } }
  local informer = factory:core():v1():config_maps():informer()
  informer:add_event_handler {
    on_add = function(cm, initial) print("add", cm.metadata.name, initial) end,
    on_update = function(old, new)
      if old.metadata.resourceVersion ~= new.metadata.resourceVersion then print("update", new.metadata.name) end
    end,
    on_delete = function(cm, stale) print("delete", cm.metadata.name, stale) end,
  }
  factory:start()
  factory:wait_for_cache_sync(30)
  print("synced", informer:get_store():count())
  while true do
    kube.sleep(0.2)
    local s = informer:stats()
    local d = s.decisions
    print(("stats lists=%%d watches=%%d expired=%%d fallback=%%d objects=%%d"):format(s.lists, s.watches,
      d.WATCH_EXPIRED, d.STREAM_FALLBACK, s.objects))
  end
]]

-- Holds everything of one kind and tells how it came: lists, watches, fallbacks.
local counter = [[
  local kube = require "kube"
  local factory = kube.shared_informer_factory { namespace = "%s", streaming = %s }
  local informer = factory:core():v1():%s():informer()
  local adds = 0
  local registration = informer:add_event_handler { on_add = function() adds = adds + 1 end }
  factory:start()
  assert(factory:wait_for_cache_sync(60))
  kube.wait_for_cache_sync(nil, registration)
  local s = informer:stats()
  print("held", informer:get_store():count(), adds, s.lists, s.watches, s.decisions.STREAM_FALLBACK)
]]

describe("a real kube-apiserver", function()
  cleanup.install()

  it("restarts, and the informer goes on without losing a change", function()
    local ns = cluster.namespace()
    cluster.kubectl(("-n %s create configmap before"):format(ns))
    local proc = start(follower:format(ns))
    proc:wait_line("^add\tbefore\ttrue", 20)
    cluster.kube("restart-apiserver")
    cluster.kubectl(("-n %s create configmap after"):format(ns))
    proc:wait_line("^add\tafter\tfalse", 60)
    cluster.kubectl(("-n %s delete configmap before"):format(ns))
    proc:wait_line("^delete\tbefore\t", 30)
    stop(proc)
  end)

  it("forgets its history under a watch (410), and the cache catches up by a relist", function()
    local ns = cluster.namespace()
    cluster.kubectl(("-n %s create configmap gone"):format(ns))
    local proc = start(follower:format(ns))
    proc:wait_line("^add\tgone\ttrue", 20)
    proc:kill("sigstop")
    cluster.kubectl(("-n %s delete configmap gone"):format(ns))
    cluster.kubectl(("-n %s create configmap new"):format(ns))
    cluster.compact()
    cluster.kube("restart-apiserver")
    proc:kill("sigcont")
    proc:wait_line("^add\tnew\tfalse", 60)
    proc:wait_line("^delete\tgone\t", 30)
    proc:wait_line("^stats lists=%d+ watches=%d+ expired=[1-9]", 10)
    stop(proc)
  end)

  it("sends 5,000 objects as a streaming list, which is one request", function()
    local ns = cluster.namespace()
    cluster.configmaps(ns, 5000)
    local proc = start(counter:format(ns, "true", "config_maps"))
    proc:wait_line("^held\t5001\t5001\t0\t1\t0", 60)
    stop(proc)
  end)

  it("sends 5,000 objects in ten pages when they are listed", function()
    local ns = cluster.namespace()
    cluster.events(ns, 5000)
    local proc = start(counter:format(ns, "false", "events"))
    proc:wait_line("^held\t5000\t5000\t10\t[01]\t0", 60)
    stop(proc)
  end)

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

  it("with a certificate of another CA is refused with a message that says so", function()
    local proc = start(follower:format("default"), { args = { "--context", "wrong-ca" } })
    proc:wait_stderr("certificate", 20)
    assert.is_truthy(proc.stderr:find("certificate%-authority") or proc.stderr:find("not signed"), proc.stderr)
    stop(proc)
  end)

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
