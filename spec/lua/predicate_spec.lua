-- kube.predicate: which events of a resource queue a key, told by the reconciles that follow.
local cleanup = require "spec.support.cleanup"
local run = require "spec.support.run"

-- One controller per predicate over the same ConfigMap. Each step changes it, and the next one begins when the
-- controller without a predicate has seen it; what others were queued for is in their histories.
local prelude = [[
  local kube = require "kube"
  local predicate = kube.predicate
  local KEY = "default/one"
  local controllers, seen = {}, {}

  local function controller(name, given)
    controllers[#controllers + 1] = name
    seen[name] = ""
    local step = function(object) return object and object.data and object.data.step or "-" end
    kube.controller { name = name, resource = "v1/configmaps", predicate = given,
      reconcile = function(ctx, object)
        if ctx.key == KEY then seen[name] = seen[name] .. step(object) end
      end }
  end

  -- Changes the object and waits until everybody who is queued for it is done.
  local function change(patch)
    local before = #seen.every
    kube.client:patch("v1/configmaps", KEY, patch)
    while #seen.every == before do kube.sleep(0.01) end
    for _ = 1, 3 do kube.sleep(0) end
  end

  local function steps()
    kube.client:create { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "one", namespace = "default" },
      data = { step = "a" } }
    while #seen.every == 0 do kube.sleep(0.01) end
    change { data = { step = "b" } }
    change { data = { step = "c" }, metadata = { labels = { app = "web" } } }
    change { data = { step = "d" }, metadata = { annotations = { note = "x" } } }
    change { data = { step = "e" }, metadata = { labels = { app = "shop" } } }
    kube.client:delete("v1/configmaps", KEY)
    while seen.every:sub(-1) ~= "-" do kube.sleep(0.01) end
    for _ = 1, 3 do kube.sleep(0) end
    for _, name in ipairs(controllers) do print(name, seen[name]) end
    print("end")
  end
]]

describe("kube.predicate", function()
  cleanup.install()

  -- What each controller of this text saw, by name.
  local function seen(text)
    local proc = run.start_script(prelude .. 'controller("every")\n' .. text .. '\nkube.background("steps", steps)',
      { args = { "--sandbox" } })
    cleanup.later(function() proc:kill("sigkill") end)
    proc:wait_line("^end$", 20)
    proc:kill("sigterm")
    assert.equal(0, proc:wait_exit(20), proc.stderr)
    local found = {}
    for name, letters in proc.stdout:gmatch("([%w_]+)\t(%S*)\n") do found[name] = letters end
    return found
  end

  it("tells updates by what they changed; adds and deletes pass", function()
    assert.same({ every = "abcde-", labels = "ace-", annotations = "ad-", version = "abcde-" }, seen [[
      controller("labels", predicate.labels_changed)
      controller("annotations", predicate.annotations_changed)
      controller("version", predicate.resource_version_changed)
    ]])
  end)

  it("combines predicates, also with tables and functions", function()
    assert.same({ every = "abcde-", all = "ac-", any = "acde-", negate = "bd", table = "c" }, seen [[
      controller("all", predicate.all(predicate.labels_changed, function(object, old, event)
        return event ~= "update" or object.metadata.labels.app == "web"
      end))
      controller("any", predicate.any(predicate.labels_changed, predicate.annotations_changed))
      controller("negate", predicate.negate(predicate.labels_changed))
      controller("table", predicate.all(predicate.labels_changed, predicate.match { label = "app", equals = "web" }))
    ]])
  end)

  it("matches the new object of an update, by one value or by a list of parts", function()
    assert.same({ every = "abcde-", web = "cd", label = "cde-", both = "e-" }, seen [[
      controller("web", predicate.match { label = "app", equals = "web" })
      controller("label", predicate.match { label = "app" })
      controller("both", predicate.match { { label = "app", one_of = { "shop" } },
        { path = "data.step", equals = "e" } })
    ]])
  end)
end)
