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

-- A spec has start(name), load(name) without a commit, and stop(script), watches() that were opened,
-- put(name, data) of a ConfigMap, and said(name, text), which waits.
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
local function load(name)
  local script = assert(core.test.script(DIRECTORY .. "/" .. name .. ".lua"))
  assert(script:load())
  return script
end
local sandbox = require "kube.sandbox"
local function watches()
  return #sandbox.requests({ verb = "watch", resource = "configmaps" }).items
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

  -- Says by whom the newest object was transformed, and by whom the one named `one`.
  local function transforming(who, how)
    return ([[
      local who = "%s"
      local function transform(o)
        o.data = o.data or {}
        o.data.by = who
        local t = { a = 1, b = 2, c = 3, d = 4, e = 5, f = 6 }
        o.data.sum = tostring(t.a + t.b + t.c + t.d + t.e + t.f)
        return o
      end
      %s
    ]]):format(who, how or [[
      local informer = kube.informer("v1/configmaps", { namespace = "default", transform = transform })
    ]]) .. [[
      local lister = informer:lister()
      informer:add_event_handler { replay = false, on_add = function(o)
        tell(who, o.metadata.name .. " by " .. o.data.by .. ", one by " .. lister:get("default/one").data.by)
      end }
      kube.sleep(0)
      tell(who .. "-first", "here")
    ]]
  end

  local take_over = [[
      it("takes over", function()
        put("one", { x = "1" })
        local old = start "old"
        said("old-first", "here")
        t:settle()
        put("two", { x = "1" })
        said("old", "two by old, one by old")
        local new = load "new"
        put("three", { x = "1" })
        said("old", "three by old, one by old")
        new:commit()
        said("new-first", "here")
        put("four", { x = "1" })
        said("new", "four by new, one by old")
        said("old", "four by new, one by old")
        stop(old)
        put("five", { x = "1" })
        said("new", "five by new, one by old")
        old = start "old"
        put("six", { x = "1" })
        said("new", "six by old, one by old")
        stop(old)
        put("seven", { x = "1" })
        said("new", "seven by new, one by old")
        assert.equal(1, watches())
        stop(new)
      end)
  ]]

  it("share an informer whose transforms are equal: the newer takes over at commit, and gives back", function()
    run_spec({ old = transforming "old", new = transforming "new" }, take_over)
  end)

  it("also when the transform is set behind indexes and handlers", function()
    local how = [[
      local informer = kube.informer("v1/configmaps", { namespace = "default" })
      local calls = 0
      informer:add_indexers { by = function(o) calls = calls + 1 return { o.data.by } end }
      informer:add_event_handler { on_add = function(o)
        if not o.data.by then tell(who, "untransformed") end
        if informer:get_indexer():index_keys("by", o.data.by)[1] == nil then tell(who, "no index") end
      end }
      informer:set_watch_error_handler(function() end)
      informer:set_transform(transform)
    ]]
    run_spec({ old = transforming("old", how), new = transforming("new", how) }, take_over)
  end)

  it("have informers of their own when the transforms differ", function()
    local other = transforming "new":gsub('o.data.by = who', 'o.data.by = who .. "er"')
    run_spec({ old = transforming "old", new = other }, [[
      it("reads again", function()
        put("one", { x = "1" })
        local old = start "old"
        said("old-first", "here")
        t:settle()
        local new = start "new"
        said("new-first", "here")
        t:settle()
        put("two", { x = "1" })
        said("old", "two by old, one by old")
        said("new", "two by newer, one by newer")
        assert.equal(2, watches())
        stop(old)
        put("three", { x = "1" })
        said("new", "three by newer, one by newer")
        stop(new)
      end)
    ]])
  end)

  it("hear of a failing watch, each that was committed, while it runs", function()
    local function script(who)
      return ([[
        local informer = kube.informer("v1/configmaps", { namespace = "default", backoff = { duration = 0.01 } })
        local count = 0
        informer:set_watch_error_handler(function(err)
          count = count + 1
          local text = ("%%s %%d"):format(err.place, count)
          kube.spawn(function() tell("%s", text) end)
        end)
        kube.sleep(0)
        tell("%s-first", "here")
      ]]):format(who, who)
    end
    run_spec({ old = script "old", new = script "new" }, [[
      local function fail()
        local before = watches()
        t:fail { resource = "v1/configmaps", verb = "watch", status = 403, count = 1 }
        t:cut_watches()
        t:eventually(function() return watches() >= before + 2 end)
        t:settle()
      end
      it("hears", function()
        local old = start "old"
        said("old-first", "here")
        t:settle()
        fail()
        said("old", "watch_open 1")
        local new = load "new"
        fail()
        said("old", "watch_open 2")
        new:commit()
        said("new-first", "here")
        fail()
        said("new", "watch_open 1")
        said("old", "watch_open 3")
        stop(new)
        fail()
        said("old", "watch_open 4")
        said("new", "watch_open 1")
        stop(old)
      end)
    ]])
  end)

  it("stop apart: the informer goes on with the other's handlers, while a call of the first is under way", function()
    local function script(who)
      return ([[
        local informer = kube.informer("v1/configmaps", { namespace = "default" })
        informer:add_event_handler { replay = false, on_add = function(o)
          tell("%s-begin", o.metadata.name)
          kube.sleep(0.05)
          tell("%s-end", o.metadata.name)
        end }
        kube.sleep(0)
        tell("%s-first", "here")
      ]]):format(who, who, who)
    end
    run_spec({ old = script "old", new = script "new" }, [[
      it("goes on", function()
        local old = start "old"
        said("old-first", "here")
        t:settle()
        local new = start "new"
        said("new-first", "here")
        put("one", { x = "1" })
        said("old-begin", "one")
        stop(old)
        said("old-end", "one")
        said("new-end", "one")
        put("two", { x = "1" })
        said("new-end", "two")
        said("old-begin", "one")
        stop(new)
        old = start "old"
        said("old-first", "here")
        t:settle()
        put("three", { x = "1" })
        said("old-end", "three")
        said("new-begin", "two")
        stop(old)
      end)
    ]])
  end)

  it("leave nothing when one of them is loaded and never committed", function()
    local staged = transforming("staged", [[
      local informer = kube.informer("v1/configmaps", { namespace = "default", transform = transform })
      local other = kube.informer("v1/services", { namespace = "default" })
      other:add_indexers { by = function() return { "x" } end }
      informer:add_indexers { by = function() return { "x" } end }
      informer:set_watch_error_handler(function() end)
    ]])
    local result = run_spec({ old = transforming "old", staged = staged }, [[
      it("drops it", function()
        put("one", { x = "1" })
        local old = start "old"
        said("old-first", "here")
        t:settle()
        for i = 1, 3 do
          local staged = load "staged"
          put("s" .. i, { x = "1" })
          said("old", ("s%d by old, one by old"):format(i))
          stop(staged)
          put("t" .. i, { x = "1" })
          said("old", ("t%d by old, one by old"):format(i))
        end
        assert.equal(1, watches())
        assert.same({ "v1/configmaps" }, core.test.informers())
        stop(old)
        t:eventually(function() return #core.test.informers() == 0 end)
      end)
    ]])
    assert.are.equal("", result.stderr)
  end)
end)
