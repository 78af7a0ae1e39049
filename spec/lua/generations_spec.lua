-- Two scripts in one process, each in a state of its own, that share an informer: as the old and the
-- new one of a reload do. `moonwatch test` runs them at the side of a spec.
local cleanup = require "spec.support.cleanup"
local run = require "spec.support.run"
local uv = require "luv"

-- A script has `tell(name, text)`, which the spec reads with said(name).
local script_prelude = [[
local kube = require "kube"
local function tell(name, text)
  kube.client:apply({ apiVersion = "v1", kind = "Secret", metadata = { name = name, namespace = "default" },
    stringData = { text = tostring(text) } }, { force = true })
end
local function names(objects)
  local list = {}
  for i, o in ipairs(objects) do list[i] = o.metadata.name end
  table.sort(list)
  return table.concat(list, " ")
end
]]

-- A spec has start(name) and stop(script), put(name, data) of a ConfigMap, and said(name, text), which waits.
local spec_prelude = [[
local kube = require "kube"
local core = require "kube._core"
local kt = require "kube.test"
local t = kt.new { script = "idle.lua" }
local function put(name, data)
  t:apply { apiVersion = "v1", kind = "ConfigMap", metadata = { name = name, namespace = "default" }, data = data }
end
local function start(name)
  local script = assert(core.test.script(DIRECTORY .. "/" .. name .. ".lua"))
  assert(script:start())
  return script
end
local function stop(script)
  script:stop()
  t:eventually(function() return script:has_ended() end)
end
local function said(name, wanted)
  local got
  local ok = pcall(t.eventually, t, function()
    local secret = t:get("v1/secrets", "default/" .. name)
    got = secret and kube.base64.decode(secret.data.text)
    return got == wanted
  end)
  if not ok then error(("%s said: %s\nwanted: %s"):format(name, got, wanted), 2) end
end
]]

local function run_spec(scripts, spec)
  local directory = assert(uv.fs_mkdtemp("/tmp/mw-XXXXXX"))
  local files = { ["a_spec.lua"] = ("local DIRECTORY = %q\n"):format(directory) .. spec_prelude .. spec,
    ["idle.lua"] = "local kube = require 'kube' kube.sleep(600)" }
  for name, text in pairs(scripts) do files[name .. ".lua"] = script_prelude .. text end
  for name, text in pairs(files) do
    local file = assert(io.open(directory .. "/" .. name, "wb"))
    file:write(text)
    file:close()
  end
  cleanup.later(function()
    for name in pairs(files) do os.remove(directory .. "/" .. name) end
    uv.fs_rmdir(directory)
  end)
  local result = run.run_command({ "test", directory }, { timeout = 120 })
  assert.matches("%d success[es]* / 0 failures / 0 errors", result.stdout, nil, result.stdout .. result.stderr)
  assert.are.equal(0, result.code, result.stderr)
  return result
end

describe("two generations of a script", function()
  cleanup.install()

  it("have indexes of their own on one informer, and the one that stays keeps its own", function()
    local function script(who, index)
      return ([[
        local informer = kube.informer("v1/configmaps", { namespace = "default" })
        informer:add_indexers { by = %s, ours = { path = "data.team" } }
        local lister = informer:lister()
        local indexes = lister:index_names()
        table.sort(indexes)
        local function look()
          tell("%s", names(lister:by_index("by", "%s-x")) .. ";" .. names(lister:by_index("ours", "x")) .. ";"
            .. table.concat(indexes, " "))
        end
        informer:add_event_handler { on_add = look, on_update = look, on_delete = look }
      ]]):format(index, who, who)
    end
    run_spec({
      old = script("old", 'function(o) return { "old-" .. (o.data and o.data.team or "") } end'),
      new = script("new", 'function(o) return { "new-" .. (o.data and o.data.team or "") } end'),
    }, [[
      it("shares", function()
        put("one", { team = "x" })
        local old = start "old"
        said("old", "one;one;by namespace ours")
        local new = start "new"
        said("new", "one;one;by namespace ours")
        put("two", { team = "x" })
        said("old", "one two;one two;by namespace ours")
        said("new", "one two;one two;by namespace ours")
        stop(old)
        put("three", { team = "x" })
        said("new", "one three two;one three two;by namespace ours")
        old = start "old"
        said("old", "one three two;one three two;by namespace ours")
        stop(new)
        put("four", { team = "x" })
        said("old", "four one three two;four one three two;by namespace ours")
        stop(old)
      end)
    ]])
  end)

  it("may read an index of their own before it is built, from a cache that the other keeps warm", function()
    run_spec({
      old = [[
        local informer = kube.informer("v1/configmaps", { namespace = "default" })
        local lister = informer:lister()
        informer:add_event_handler { on_add = function()
          if lister:count() >= 600 then tell("old", "full") end
        end }
      ]],
      new = [[
        local informer = kube.informer("v1/configmaps", { namespace = "default" })
        local calls = 0
        informer:add_indexers { by = function(o) calls = calls + 1 return { o.data.team } end }
        local before = calls
        local found = #informer:lister():by_index("by", "x")
        kube.sleep(0)
        tell("new", ("%s %d %s"):format(before < 600, found, calls == informer:lister():count()))
        tell("lists", informer:stats().lists)
      ]],
    }, [[
      it("reads", function()
        for i = 1, 600 do put("m" .. i, { team = i % 2 == 0 and "x" or "y" }) end
        local old = start "old"
        said("old", "full")
        local new = start "new"
        said("new", "true 300 true")
        said("lists", "0")
        stop(old)
        stop(new)
      end)
    ]])
  end)
end)
