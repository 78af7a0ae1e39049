-- Objects of which a part is missing are not written back whole.
local cleanup = require "spec.support.cleanup"
local rig = require "spec.support.script_rig"

local pod = '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"d","uid":"u","resourceVersion":"5",'
  .. '"managedFields":[{"manager":"m"}]},"spec":{"nodeName":"n"},"status":{"phase":"Running"}}'

local function run(options, source)
  local server = rig.objects { pod }
  local proc = rig.start(server, ([[
    local informer = kube.informer("v1/pods", { namespace = "d", %s })
    kube.wait_for_cache_sync(nil, informer)
    local object = informer:get_indexer():get("d/a")
    assert(object)
    local function refused(text, verb, o)
      for _, name in ipairs { verb, "try_" .. verb } do
        local ok, err = pcall(kube.client[name], kube.client, o)
        assert(not ok and tostring(err):find("script%%.lua:%%d+: client:" .. name .. ": the object is not whole"),
          tostring(err))
        assert(err:find(text, 1, true) and err:find("client:apply or client:patch", 1, true), err)
      end
    end
  ]]):format(options) .. source .. 'print("done")')
  proc:wait_line("^done$", 15)
  rig.stop(proc)
  local puts = {}
  for _, request in ipairs(server.http.requests) do
    if request.method == "PUT" then puts[#puts + 1] = request end
  end
  return puts
end

describe("an update of a cached object", function()
  cleanup.install()

  it("that misses its managedFields alone is sent", function()
    local puts = run("", [[
      for _, o in ipairs { object, kube.copy(object) } do
        same("timeout", select(2, kube.client:try_update(o, { timeout = 0.1 })).code)
      end
    ]])
    assert.are.equal(2, #puts)
  end)

  it("that misses more is refused, also when it was copied, and copied again", function()
    for _, transform in ipairs { 'transform = { drop = { "status" } }', 'transform = { keep = { "spec" } }',
      "transform = function(o) o.status = nil return o end" } do
      local puts = run(transform, [[
        for _, o in ipairs { object, kube.copy(object), kube.copy(kube.copy(object)) } do
          refused("its informer has a transform", "update", o)
          refused("its informer has a transform", "update_status", o)
        end
      ]])
      assert.are.equal(0, #puts)
    end
  end)
end)
