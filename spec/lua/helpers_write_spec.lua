-- Helpers that write: kube.condition.patch and kube.create_or_update, against a sandbox.
local cleanup = require "spec.support.cleanup"
local run = require "spec.support.run"

local prelude = [[
  local kube, sandbox = require "kube", require "kube.sandbox"
  kube.sleep(0)
  local client = kube.new_client()
  local function refused(text, fn, ...)
    local ok, err = pcall(fn, ...)
    local message = tostring(err)
    assert(not ok, "it was not refused: " .. text)
    assert(message:find("^[^\n]*script%.lua:%d+: "), "no place: " .. message)
    assert(message:find(text, 1, true), ("wanted %s\ngot %s"):format(text, message))
  end
  local function deployment(name)
    return client:create { apiVersion = "apps/v1", kind = "Deployment", metadata = { name = name or "web",
      namespace = "default" }, spec = { selector = { matchLabels = { a = "b" } }, template = {
      metadata = { labels = { a = "b" } }, spec = { containers = { { name = "c", image = "i" } } } } } }
  end
  local function types(obj)
    local list = {}
    for i, c in ipairs(kube.get(obj, "status.conditions") or {}) do list[i] = c.type .. "=" .. c.status end
    return table.concat(list, " ")
  end
  local READY = { type = "Ready", status = true, reason = "Up", message = "all" }
]]

local function passes(source)
  local result = run.run_script(prelude .. source, { args = { "--sandbox" } })
  assert.are.equal(0, result.code, result.stdout .. result.stderr)
  return result
end

describe("condition.patch", function()
  cleanup.install()

  it("writes the status when a condition changes, and sends nothing when none does", function()
    passes [[
      local web = deployment()
      local changed, now = kube.condition.patch(client, web, READY)
      assert(changed and types(now) == "Ready=True" and types(web) == "")
      local c = kube.condition.get(now, "Ready")
      assert(c.reason == "Up" and c.message == "all" and c.lastTransitionTime)
      sandbox.fault { verb = "patch", resource = "deployments", status = 500, count = 0 }
      assert(kube.condition.patch(client, now, READY) == false)
      assert(not pcall(kube.condition.patch, client, now, { type = "Ready", status = false, reason = "Down" }))
      sandbox.clear_faults()
      local _, down = kube.condition.patch({ client = client }, now, {
        { type = "Ready", status = false, reason = "Down" }, { type = "Asleep", status = "Unknown", reason = "Why" } })
      assert(types(down) == "Ready=False Asleep=Unknown")
    ]]
  end)

  it("keeps conditions that others set since the object was read", function()
    passes [[
      local web = deployment()
      kube.condition.patch(client, web, { type = "Theirs", status = true, reason = "Set" })
      local changed, now = kube.condition.patch(client, web, READY)
      assert(changed and types(now) == "Theirs=True Ready=True", types(now))
      assert(kube.condition.patch(client, web, READY) == false, "the fresh object has it already")
    ]]
  end)

  it("does the same where the list is no map for the server", function()
    passes [[
      client:create { apiVersion = "apiextensions.k8s.io/v1", kind = "CustomResourceDefinition",
        metadata = { name = "webs.example.com" }, spec = { group = "example.com", scope = "Namespaced",
        names = { plural = "webs", singular = "web", kind = "Web", listKind = "WebList" }, versions = { { name = "v1",
        served = true, storage = true, subresources = { status = {} }, schema = { openAPIV3Schema = { type = "object",
        properties = { status = { type = "object", properties = { conditions = { type = "array", items = {
        type = "object", ["x-kubernetes-preserve-unknown-fields"] = true } } } } } } } } } } }
      local web
      for _ = 1, 1000 do
        web = client:try_create { apiVersion = "example.com/v1", kind = "Web", metadata = { name = "a",
          namespace = "default" } }
        if web then break end
        kube.sleep(0.01)
      end
      kube.condition.patch(client, web, { type = "Theirs", status = true, reason = "Set" })
      local changed, now = kube.condition.patch(client, web, READY)
      assert(changed and types(now) == "Theirs=True Ready=True", types(now))
      assert(kube.condition.get(now, "Ready").observedGeneration == 1)
    ]]
  end)

  it("gives up on a conflict that stays, and on another object of the same name", function()
    passes [[
      local web = deployment()
      sandbox.fault { verb = "patch", resource = "deployments", status = 409, reason = "Conflict", count = 5 }
      local ok, err = pcall(kube.condition.patch, client, web, READY)
      assert(not ok and err.code == "conflict")
      local _, now = kube.condition.patch(client, web, READY)
      assert(types(now) == "Ready=True")
      client:delete("apps/v1/deployments", "default/web")
      deployment()
      ok, err = pcall(kube.condition.patch, client, now, { type = "Ready", status = false, reason = "Down" })
      assert(not ok and err.code == "not_found" and err.message:find("another of that name", 1, true), tostring(err))
    ]]
  end)

  it("says what it cannot take", function()
    passes [[
      refused("condition.patch takes the ctx of a controller or a client first, not a nil", kube.condition.patch, nil,
        {}, READY)
      refused("condition.patch takes the ctx", kube.condition.patch, { metadata = {} }, {}, READY)
      refused("Deployment a has no metadata.resourceVersion", kube.condition.patch, client,
        { kind = "Deployment", metadata = { name = "a" } }, READY)
      refused("the condition must be an object", kube.condition.patch, client, deployment(), "Ready")
      refused("reason is one word", kube.condition.patch, client, deployment("b"), { type = "A", status = true,
        reason = "no word" })
    ]]
  end)
end)

describe("create_or_update", function()
  cleanup.install()

  it("creates what is not there, updates what the function changes, and leaves the rest alone", function()
    passes [[
      local bare = { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "a", namespace = "default" } }
      local function set(value) return function(o) o.data = { key = value } end end
      local result, object = kube.create_or_update(client, bare, set "1")
      assert(result == "created" and object.metadata.uid and object.data.key == "1" and bare.data == nil)
      local first = object.metadata.resourceVersion
      result, object = kube.create_or_update({ client = client }, bare, set "1")
      assert(result == "unchanged" and object.metadata.resourceVersion == first)
      result = kube.create_or_update(client, bare, function(o) o.data.other = kube.null; o.binaryData = {} end)
      assert(result == "unchanged")
      result, object = kube.create_or_update(client, bare, set "2")
      assert(result == "updated" and object.data.key == "2" and object.metadata.resourceVersion ~= first)
    ]]
  end)

  it("raises what the server says, a conflict too", function()
    passes [[
      local bare = { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "a", namespace = "default" } }
      kube.create_or_update(client, bare, function() end)
      local ok, err = pcall(kube.create_or_update, client, bare, function(o)
        client:patch("v1/configmaps", "default/a", { data = { x = "theirs" } })
        o.data = { x = "ours" }
      end)
      assert(not ok and err.code == "conflict", tostring(err))
      sandbox.fault { verb = "get", resource = "configmaps", status = 403, reason = "Forbidden", message = "no" }
      ok, err = pcall(kube.create_or_update, client, bare, function() end)
      assert(not ok and err.code == "forbidden", tostring(err))
    ]]
  end)

  it("says what it cannot take", function()
    passes [[
      local bare = { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "a", namespace = "default" } }
      refused("set 'data' in the function", kube.create_or_update, client, { apiVersion = "v1", kind = "ConfigMap",
        metadata = { name = "a" }, data = {} }, print)
      refused("set 'metadata.labels' in the function", kube.create_or_update, client, { apiVersion = "v1",
        kind = "ConfigMap", metadata = { name = "a", labels = {} } }, print)
      refused("mutate must be a function, not a nil", kube.create_or_update, client, bare)
      refused("must not change metadata.name", kube.create_or_update, client, bare,
        function(o) o.metadata.name = "b" end)
      refused("takes the ctx of a controller or a client first", kube.create_or_update, bare, bare, print)
      refused("call it with a dot", kube.create_or_update, kube, bare)
    ]]
  end)
end)
