-- `writes` of kube.controller: what it takes, and that ctx.client lets nothing else through.
local play = require("spec.support.controller_rig").play

-- refused(text, fn, ...): fn fails with a message that begins with a place in this script and has the text.
local prelude = [[
  local function refused(text, fn, ...)
    local ok, err = pcall(fn, ...)
    local message = tostring(err)
    assert(not ok, "it was not refused: " .. text)
    assert(message:find("^[^\n]*script%.lua:%d+: "), "no place: " .. message)
    assert(message:find(text, 1, true), ("wanted %s\ngot %s"):format(text, message))
  end
]]

-- A controller "x" of ConfigMaps whose reconcile runs `body` for the key play/a, and logs how that went.
local function controller(writes, body, more)
  return prelude .. ([[
    kube.controller { name = "x", resource = "v1/configmaps", namespaces = PLAY, writes = %s, %s
      reconcile = function(ctx, object)
        if ctx.key ~= "play/a" or #log > 0 then return end
        local client, key = ctx.client, "play/a"
        local ok, err = pcall(function() %s end)
        note(ok and "done" or tostring(err))
      end }
  ]]):format(writes, more or "", body)
end

describe("writes of a controller", function()
  it("are resources, with subresources and verbs, or it is said what is wrong and where", function()
    play(prelude .. [[
      local cases = {
        [{ "v1/configmap" }] = "writes[1]: there is no 'v1/configmap' (did you mean 'v1/configmaps'?)",
        [{ "v1/pods", "Deployment" }] = "writes[2]: 'Deployment' is not a resource: write version/plural or "
          .. "group/version/plural, as in \"apps/v1/deployments\"",
        [{ "v1/deployments" }] = "writes[1]: there is no 'v1/deployments' (did you mean 'apps/v1/deployments'?)",
        [{ "v1/pods:patsh" }] = "writes[1]: 'patsh' is not a verb (did you mean 'patch'?)",
        [{ "v1/pods:" }] = "writes[1]: '' is not a verb; it has: create, delete",
        [{ "v1/pods:delete_collection" }] = "'delete_collection' is not a verb (did you mean 'deletecollection'?)",
        [{ 7 }] = "writes is a list of resources such as \"v1/configmaps:create,patch\", and [1] is none",
        [{ pods = "v1/pods" }] = "and [pods] is none",
      }
      for writes, text in pairs(cases) do
        refused("kube.controller: ", kube.controller, { resource = "v1/pods", writes = writes, reconcile = print })
        refused(text, kube.controller, { resource = "v1/pods", writes = writes, reconcile = print })
      end
    ]], "")
  end)

  it("let through what they name, by every verb", function()
    play(controller([[{ "v1/configmaps:create,update,patch,delete,deletecollection", "v1/namespaces/status:update",
      "v1/secrets" }]], [[
      client:apply(config("b", { n = "1" }))
      client:patch("v1/configmaps", "play/b", { data = { n = "2" } })
      client:update(client:get("v1/configmaps", "play/b"))
      client:delete("v1/configmaps", "play/b")
      client:create(config("c"))
      client:delete_collection("v1/configmaps", { namespace = "play", label_selector = "no=such" })
      client:update_status(client:get("v1/namespaces", "play"))
      client:request { method = "POST", path = "/api/v1/namespaces/play/secrets", body = { apiVersion = "v1",
        kind = "Secret", metadata = { name = "s" } } }
      client:delete("v1/secrets", "play/s")
    ]]), [[ create "a"; logged "done" ]])
  end)

  it("refuse everything else, and say what to add", function()
    play(controller([[{ "v1/configmaps:patch", "v1/pods" }]], [[
      refused("client:create: create of v1/configmaps is not in writes of controller 'x'; add "
        .. "\"v1/configmaps:create\"", client.create, client, config("b"))
      refused("client:try_delete: delete of v1/configmaps is not in writes of controller 'x'; add "
        .. "\"v1/configmaps:delete\"", client.try_delete, client, "v1/configmaps", key)
      refused("client:apply: patch of v1/secrets is not in writes", client.apply, client,
        { apiVersion = "v1", kind = "Secret", metadata = { name = "b", namespace = "play" } })
      refused("client:patch: patch of v1/pods/status is not in writes of controller 'x'; add "
        .. "\"v1/pods/status:patch\"", client.patch, client, "v1/pods", "play/p", {}, { subresource = "status" })
      refused("client:update_status: update of v1/configmaps/status is not in writes", client.update_status, client,
        client:get("v1/configmaps", key))
      refused("client:delete_collection: deletecollection of v1/pods is not in writes", client.delete_collection,
        client, "v1/pods", { namespace = "play", all = true })
      refused("client:request: create of apps/v1/deployments is not in writes", client.request, client,
        { method = "POST", path = "/apis/apps/v1/namespaces/play/deployments", body = {} })
      refused("client:request: deletecollection of v1/configmaps is not in writes", client.request, client,
        { method = "DELETE", path = "/api/v1/namespaces/play/configmaps?labelSelector=a" })
      refused("client:request: update of v1/namespaces/finalize is not in writes", client.request, client,
        { method = "PUT", path = "/api/v1/namespaces/play/finalize", body = {} })
      refused("ctx.events: v1/events are not in writes of controller 'x'; add \"v1/events\"", function()
        return ctx.events
      end)
      client:list("v1/secrets", { namespace = "play" })
    ]]), [[ create "a"; logged "done" ]])
  end)

  it("let an apply pass that creates nothing with patch alone", function()
    play(controller([[{ "v1/configmaps:patch" }]], [[
      client:apply(config("a", { n = "1" }))
      refused("client:apply: create of v1/configmaps is not in writes", client.apply, client, config("b"))
    ]]), [[ create "a"; logged "done" ]])
  end)

  it("include its finalizer, and events where they are named", function()
    play(controller([[{ "v1/events" }]], [[ ctx.events:normal(object, "Seen", "seen") ]],
      [[finalizer = "example.com/x", finalize = function() end,]]), [[
      create "a"
      logged "done"
      same("example.com/x", get("a").metadata.finalizers)
      eventually(function() return #kube.client:list("v1/events", { namespace = "play" }) == 1 end)
      delete "a"
      eventually(function() return not get("a") end)
    ]])
  end)

  it("of a list that is empty let nothing through", function()
    play(controller("{}", [[ refused("is not in writes", client.delete, client, "v1/configmaps", key) ]]),
      [[ create "a"; logged "done" ]])
  end)

  it("are anything when the option is not given", function()
    play(controller("nil", [[ client:create(config("b")) ]]), [[ create "a"; logged "done" ]])
  end)
end)
