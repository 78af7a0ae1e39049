-- Applies that would change nothing are not sent: both halves of the rule, each by itself.
local cleanup = require "spec.support.cleanup"
local rig = require "spec.support.client_rig"

-- sent(): how many applies the server has had.
local script = [[
  local s = session()
  local function deployment(spec)
    return { apiVersion = "apps/v1", kind = "Deployment", metadata = { namespace = "d", name = "web",
      labels = { app = "web" } }, spec = spec }
  end
  -- As the cache has objects: decoded, with fields of others and defaults.
  local function found(json) cache["apps/v1/deployments d/web"] = json and kube.json.decode(json) end
  local function sent() return kube.request({ path = "/count" }).object.count end
  local same_as_applied = '{"metadata":{"namespace":"d","name":"web","uid":"u","labels":{"app":"web","other":"x"}},'
    .. '"spec":{"replicas":2,"paused":false,"big":9007199254740993,"list":[{"name":"a","image":"i","pull":"Always"}]},'
    .. '"status":{"replicas":2}}'
  local function spec()
    return { replicas = 2, big = kube.int64("9007199254740993"), list = { { name = "a", image = "i" } } }
  end
]]

local function serve()
  local patches = 0
  return rig.serve(function(request)
    if request.path == "/count" then return { body = ('{"count":%d}'):format(patches) } end
    patches = patches + 1
    if request.query.fieldManager == "refused" then return rig.status(409, "Conflict", "somebody else's field") end
    return { body = '{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"d"}}' }
  end)
end

describe("an apply", function()
  cleanup.install()

  it("is not sent when it is the last one that was taken and the cache still has all of it", function()
    rig.run(serve(), script .. [[
      found(same_as_applied)
      s:apply(deployment(spec()))
      same(1, sent()) -- never applied before: the cache alone says nothing about who owns the fields
      local object = s:apply(deployment(spec()))
      same(1, sent())
      same("u", object.metadata.uid) -- what the cache has
      assert(rawequal(object, cache["apps/v1/deployments d/web"]))
      same("u", s:try_apply(deployment(spec())).metadata.uid)
      same("apply apps/v1/deployments d/web table table", table.concat(heard, "; "))
      session():apply(deployment(spec())) -- another session of the same manager
      same(1, sent())
    ]])
  end)

  it("is sent when another has changed, removed or reordered what it says", function()
    rig.run(serve(), script .. [[
      found(same_as_applied)
      s:apply(deployment(spec()))
      local n = 1
      for _, change in ipairs { { '"replicas":2,', '"replicas":3,' }, { '"replicas":2,', "" },
        { '"app":"web"', '"app":"x"' }, { '"labels":{[^}]*}', '"labels":null' },
        { "9007199254740993", "9007199254740992" }, { '"image":"i"', '"image":"j"' },
        { '"pull":"Always"}', '"pull":"Always"},{"name":"b"}' }, { '"list":%[.-%]', '"list":{}' } } do
        found((same_as_applied:gsub(change[1], change[2])))
        s:apply(deployment(spec()))
        n = n + 1
        same(change[1] .. n, change[1] .. sent())
      end
      found(nil)
      s:apply(deployment(spec()))
      same(n + 1, sent())
      found(same_as_applied)
      s:apply(deployment(spec()))
      same(n + 1, sent())
    ]])
  end)

  it("is sent when it says less or more than the last one, though the cache has all of it", function()
    rig.run(serve(), script .. [[
      found(same_as_applied)
      s:apply(deployment(spec()))
      s:apply(deployment({ replicas = 2 })) -- gives up the rest
      same(2, sent())
      s:apply(deployment({ replicas = 2 }))
      same(2, sent())
      s:apply(deployment(spec()))
      same(3, sent())
    ]])
  end)

  it("is sent for another manager, with another force, for a dry run, and after one that was refused", function()
    rig.run(serve(), script .. [[
      found(same_as_applied)
      s:apply(deployment(spec()))
      s:apply(deployment(spec()), { field_manager = "other" })
      same(2, sent())
      s:apply(deployment(spec()), { force = false })
      same(3, sent())
      s:apply(deployment(spec()), { dry_run = true })
      s:apply(deployment(spec()), { dry_run = true })
      same(5, sent())
      s:try_apply(deployment(spec()), { field_manager = "refused" })
      s:try_apply(deployment(spec()), { field_manager = "refused" })
      same(7, sent())
      kube.client:apply(deployment(spec())) -- no cache to look into
      kube.client:apply(deployment(spec()))
      same(9, sent())
      s:apply(deployment(spec()))
      same(9, sent())
    ]])
  end)

  it("is remembered for thousands of objects, and not for all there ever were", function()
    rig.run(serve(), script .. [[
      local apply = require "kube._apply"
      local function note(i) apply.note({ name = "n" .. i, hash = "h" .. i }, true) end
      for i = 1, 30000 do note(i) end
      local kept = apply.remembered()
      assert(kept >= 5000 and kept <= 10000, kept)
      apply.note({ name = "n30000" }, false)
      same(kept - 1, apply.remembered())
    ]])
  end)
end)
