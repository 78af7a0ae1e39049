-- The helpers in the real binary, where objects come from the cache. What they compute is proved in
-- spec/helpers.
local cleanup = require "spec.support.cleanup"
local rig = require "spec.support.script_rig"

local prelude = [[
  local function refused(text, fn, ...)
    local ok, err = pcall(fn, ...)
    local message = tostring(err)
    assert(not ok, "it was not refused: " .. text)
    assert(message:find("^[^\n]*script%.lua:%d+: "), "no place: " .. message)
    assert(message:find(text, 1, true), ("wanted %s\ngot %s"):format(text, message))
  end
  local stop, factory = kube.stop_channel(), kube.shared_informer_factory()
  local pods = factory:core():v1():pods()
  pods:informer()
  factory:start(stop)
  factory:wait_for_cache_sync()
  local pod = assert(pods:lister():list()[1])
]]

local function run(source) return rig.run(rig.pods { a = {} }, prelude .. source .. "\nstop:close()") end

describe("a helper", function()
  cleanup.install()

  it("reads objects of the cache, and refuses to change them", function()
    run [[
      local child = kube.set_owner({ kind = "Service", metadata = { name = "s",
        namespace = pod.metadata.namespace } }, pod)
      same({ "v1", "Pod", "a", pod.metadata.uid }, { child.metadata.ownerReferences[1].apiVersion,
        child.metadata.ownerReferences[1].kind, child.metadata.ownerReferences[1].name,
        child.metadata.ownerReferences[1].uid })
      assert(kube.is_owned_by(child, pod) and kube.controller_of(child).kind == "Pod")
      local shared = "is from the cache and shared; change a kube.copy() of it"
      refused("set_owner: the child " .. shared, kube.set_owner, pod, pod)
      refused("remove_owner: the child " .. shared, kube.remove_owner, pod, pod)
      refused("condition.set: the object " .. shared, kube.condition.set, pod, { type = "A", status = true })
      refused("condition.remove: the object " .. shared, kube.condition.remove, pod, "A")
      refused("finalizer.add: the object " .. shared, kube.finalizer.add, pod, "a/b")
      refused("finalizer.remove: the object " .. shared, kube.finalizer.remove, pod, "a/b")
      assert(kube.condition.set(kube.copy(pod), { type = "A", status = true, reason = "B" }))
    ]]
  end)

  it("compares and edits objects of the cache without changing them", function()
    run [[
      assert(kube.equal(pod, kube.copy(pod)) and #kube.diff(pod, kube.copy(pod)) == 0)
      local copy, patch = kube.edit(pod, function(o)
        o.metadata.annotations = { app = "web" }
        kube.finalizer.add(o, "example.com/x")
      end)
      same({ "/metadata/annotations", "/metadata/finalizers" }, { patch[1].path, patch[2].path })
      assert(copy.metadata.annotations.app == "web" and pod.metadata.finalizers == nil)
      same('+ metadata.annotations: {"app":"web"}\n+ metadata.finalizers: ["example.com/x"]',
        tostring(kube.diff(pod, copy)))
    ]]
  end)

  it("of kube is called with a dot", function()
    run [[
      for _, name in ipairs { "set_owner", "remove_owner", "is_owned_by", "controller_of", "edit", "merge", "diff",
        "equal", "sha256" } do
        refused(("call it with a dot: kube.%s(...), not kube:%s(...)"):format(name, name), kube[name], kube, {})
      end
    ]]
  end)
end)
