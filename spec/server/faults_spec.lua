-- What an API server does to its clients: restarts, forgotten history, many objects, a wrong CA.
local cluster = require "spec.support.cluster"
local cleanup = require "spec.support.cleanup"
local follower = require("spec.support.scripts").follower

local start, stop = cluster.start, cluster.stop

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

describe("an API server", function()
  cluster.install()
  cleanup.install()

  it("restarts, and the informer goes on without losing a change", function()
    local ns = cluster.namespace()
    cluster.kubectl(("-n %s create configmap before"):format(ns))
    local proc = start(follower:format(ns))
    proc:wait_line("^add\tbefore\ttrue", 20)
    cluster.restart()
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
    -- A watch that has brought an event is not taken for one that a proxy cut, however young it is.
    cluster.kubectl(("-n %s create configmap seen"):format(ns))
    proc:wait_line("^add\tseen\tfalse", 20)
    proc:kill("sigstop")
    cluster.kubectl(("-n %s delete configmap gone"):format(ns))
    cluster.kubectl(("-n %s create configmap new"):format(ns))
    cluster.forget()
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

  it("with a certificate of another CA is refused with a message that says so", function()
    local proc = start(follower:format("default"), cluster.wrong_ca())
    proc:wait_stderr("certificate", 20)
    assert.is_truthy(proc.stderr:find("certificate%-authority") or proc.stderr:find("not signed"), proc.stderr)
    stop(proc)
  end)
end)
