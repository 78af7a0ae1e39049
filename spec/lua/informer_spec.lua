-- Informers and their handlers as a script sees them: real binary, real HTTP, leak check on.
local cleanup = require "spec.support.cleanup"
local rig = require "spec.support.script_rig"

-- A factory and the informer of pods; what follows may add to both before start.
local pods = [[
  local stop = kube.stop_channel()
  local factory = kube.shared_informer_factory { min_resync = 0.02 }
  local informer = factory:core():v1():pods():informer()
]]

local function lines(text)
  local list = {}
  for line in text:gmatch("[^\n]+") do list[#list + 1] = line end
  return list
end

describe("a handler", function()
  cleanup.install()

  it("gets what is there as initial, then every add, update and delete in order", function() -- row 82
    local server = rig.pods { a = {}, b = {} }
    local proc = rig.start(server, pods .. [[
      informer:add_event_handler {
        on_add = function(pod, initial) print("add", kube.key(pod), initial) end,
        on_update = function(old, new)
          print("update", kube.key(new), old.metadata.resourceVersion, new.metadata.resourceVersion)
        end,
        on_delete = function(pod, stale) print("delete", kube.key(pod), stale) end,
      }
      informer:run(stop)
    ]])
    proc:wait_line("^add\tdefault/b\ttrue")
    server:put("c")
    server:put("a")
    server:remove("b")
    proc:wait_line("^delete")
    rig.stop(proc)
    assert.are.same({ "add\tdefault/a\ttrue", "add\tdefault/b\ttrue", "add\tdefault/c\tfalse",
      "update\tdefault/a\t101\t104", "delete\tdefault/b\tfalse" }, lines(proc.stdout))
  end)

  it("that comes late gets every cached object as initial and is synced after the last", -- row 69
    function()
      rig.run(rig.pods { a = {}, b = {}, c = {} }, pods .. [[
        factory:start(stop)
        factory:wait_for_cache_sync()
        local seen = {}
        local registration = informer:add_event_handler {
          on_add = function(pod, initial)
            kube.sleep(0.01)
            seen[#seen + 1] = pod.metadata.name .. tostring(initial)
          end,
        }
        assert(not registration:has_synced())
        assert(kube.wait_for_cache_sync(stop, registration))
        table.sort(seen)
        same({ "atrue", "btrue", "ctrue" }, seen)
        same(3, registration:stats().delivered)
        same(0, registration:stats().pending)
        local fresh = 0
        informer:add_event_handler { replay = false, on_add = function() fresh = fresh + 1 end }
        kube.sleep(0.05)
        same(0, fresh)
        stop:close()
      ]])
    end)

  it("that fails loses that event alone, is named in the log, and counts as synced", function() -- row 73
    local _, log = rig.run(rig.pods { a = {}, b = {}, c = {} }, pods .. [[
      local seen, other = {}, 0
      local registration = informer:add_event_handler {
        name = "careless",
        on_add = function(pod)
          if pod.metadata.name == "b" then error("boom") end
          seen[#seen + 1] = pod.metadata.name
        end,
      }
      informer:add_event_handler { on_add = function() other = other + 1 end }
      factory:start(stop)
      assert(kube.wait_for_cache_sync(stop, registration))
      eventually(function() return other == 3 end)
      same({ "a", "c" }, seen)
      same(1, registration:stats().errors)
      stop:close()
    ]])
    assert.truthy(log:find('"handler":"careless","event":"add","key":"default/b"', 1, true), log)
    assert.truthy(log:find("script.lua:%d+: boom"), log)
  end)

  it("that fails again and again is told of more and more rarely, with the count", function()
    local pods_of_ten = {}
    for i = 1, 10 do pods_of_ten["p" .. i] = {} end
    local _, log = rig.run(rig.pods(pods_of_ten), pods .. [[
      local registration = informer:add_event_handler { on_add = function() error("boom") end }
      local filtered = informer:add_event_handler { filter = function() error("no idea") end }
      factory:start(stop)
      assert(kube.wait_for_cache_sync(stop, registration, filtered))
      same(10, registration:stats().errors)
      same(10, filtered:stats().errors)
      stop:close()
    ]])
    for _, what in ipairs { "handler failed", "filter failed" } do
      local counts = {}
      for count in log:gmatch('"' .. what .. '"[^\n]*"failures":(%d+)') do counts[#counts + 1] = count end
      assert.are.same({ "1", "2", "4", "8" }, counts)
    end
  end)

  it("may await, which delays its own next call and nobody else's", function() -- row 72
    rig.run(rig.pods { a = {}, b = {}, c = {} }, pods .. [[
      local running, most, slow, quick = 0, 0, 0, 0
      informer:add_event_handler {
        on_add = function()
          running = running + 1
          most = math.max(most, running)
          kube.sleep(0.05)
          running, slow = running - 1, slow + 1
        end,
      }
      informer:add_event_handler { on_add = function() quick = quick + 1 end }
      factory:start(stop)
      eventually(function() return quick == 3 end)
      assert(slow < 3, "the quick one had to wait")
      eventually(function() return slow == 3 end)
      same(1, most)
      stop:close()
    ]])
  end)

  it("is told of deletions that happened behind its back, as stale", function() -- row 56
    local server = rig.pods { a = {}, b = {} }
    local proc = rig.start(server, pods .. [[
      informer:add_event_handler {
        on_add = function(pod) print("add", kube.key(pod)) end,
        on_delete = function(pod, stale)
          print("delete", kube.key(pod), pod.metadata.resourceVersion, stale)
        end,
      }
      informer:run(stop)
    ]])
    proc:wait_line("^add\tdefault/b")
    server:mute()
    server:remove("a")
    server:expire()
    server:cut()
    assert.are.equal("delete\tdefault/a\t101\ttrue", proc:wait_line("^delete"))
    rig.stop(proc)
  end)

  it("has a resync of its own, or the informer's, or none", function() -- rows 63, 64
    rig.run(rig.pods { a = {} }, [[
      local stop = kube.stop_channel()
      local factory = kube.shared_informer_factory { resync = 0.05, min_resync = 0.02 }
      local informer = factory:core():v1():pods():informer()
      local count = { own = 0, default = 0, none = 0, slow = 0 }
      local function handler(name)
        return { on_update = function(old, new)
          assert(old.metadata.resourceVersion == new.metadata.resourceVersion)
          count[name] = count[name] + 1
        end }
      end
      informer:add_event_handler_with_resync_period(handler "own", 0.1)
      informer:add_event_handler(handler "default")
      informer:add_event_handler_with_resync_period(handler "none", 0)
      informer:add_event_handler_with_resync_period(handler "slow", 3600)
      factory:start(stop)
      eventually(function() return count.own >= 2 and count.default >= 4 end)
      same(0, count.none)
      same(0, count.slow)
      stop:close()
    ]])
  end)

  it("past its bound has its events merged per object, and says how many", function()
    local server = rig.pods { a = {} }
    local proc = rig.start(server, pods .. [[
      local go, last, calls = false, nil, 0
      local registration = informer:add_event_handler {
        queue_bound = 4,
        on_add = function() print("first") eventually(function() return go end) end,
        on_update = function(_, new) calls, last = calls + 1, new.metadata.resourceVersion end,
      }
      factory:start(stop)
      eventually(function() return informer:last_sync_resource_version() == "121" end)
      eventually(function() return informer:get_store():resource_version() == "121" end)
      assert(registration:stats().lag > 0)
      go = true
      eventually(function() return last == "121" end)
      assert(calls < 20, calls)
      same(20 - calls, registration:stats().coalesced)
      stop:close()
    ]])
    proc:wait_line("^first")
    for _ = 1, 20 do server:put("a") end
    rig.finish(proc)
  end)
end)

describe("a filter", function()
  cleanup.install()

  local function transitions(filter)
    local server = rig.pods { a = { app = "web" }, b = { app = "db" } }
    local proc = rig.start(server, pods .. ([[
      informer:add_event_handler {
        %s,
        on_add = function(pod, initial) print("add", pod.metadata.name, initial) end,
        on_update = function(old, new)
          print("update", new.metadata.name, old.metadata.labels.app, new.metadata.labels.app)
        end,
        on_delete = function(pod, stale) print("delete", pod.metadata.name, pod.metadata.labels.app, stale) end,
      }
      informer:add_event_handler { on_delete = function(pod) print("all", pod.metadata.name) end }
      informer:run(stop)
    ]]):format(filter))
    proc:wait_line("^add\ta\ttrue")
    server:put("a", { app = "web" })
    server:put("b", { app = "api" })
    server:put("a", { app = "db" })
    server:put("a", { app = "web" })
    server:remove("b")
    server:remove("a")
    proc:wait_line("^delete\ta\tweb")
    proc:wait_line("^all\ta")
    rig.stop(proc)
    local seen = {}
    for _, line in ipairs(lines(proc.stdout)) do
      if not line:find("^all") then seen[#seen + 1] = line end
    end
    assert.are.same({ "add\ta\ttrue", "update\ta\tweb\tweb", "delete\ta\tweb\tfalse",
      "add\ta\tfalse", "delete\ta\tweb\tfalse" }, seen)
  end

  it("turns updates across its border into adds and deletes", function() -- row 80
    transitions [[filter = function(pod) return pod.metadata.labels.app == "web" end]]
  end)

  it("that runs in C does the same", function() -- row 80
    transitions [[predicate = { label = "app", equals = "web" }]]
    transitions [[predicate = { selector = "app=web", namespace = "default" }]]
  end)

  it("that runs in C looks at a path, a label or owners, for one value, several or any", function()
    local function pod(name, node, more)
      return ('{"apiVersion":"v1","kind":"Pod","metadata":{"name":"%s","namespace":"default","uid":"%s",' ..
        '"resourceVersion":"1"%s},"spec":{"priority":7%s}}'):format(name, name, more or "",
        node and (',"nodeName":"%s"'):format(node) or "")
    end
    local owners = ',"labels":{"app":"web"},"ownerReferences":[{"uid":"u1","controller":true},{"uid":"u2"}]'
    rig.run(rig.objects { pod("a", "n1", owners), pod("b", "n2", ',"labels":{"app":"db"}'), pod("c") },
      pods .. [[
        local cases = {
          { "a", { path = "spec.nodeName", equals = "n1" } },
          { "b c", { path = "spec.nodeName", equals = "n1", negate = true } },
          { "a b", { path = "spec.nodeName" } },
          { "c", { path = "spec.nodeName", negate = true } },
          { "a b", { path = "spec.nodeName", one_of = { "n1", "n2", "n3" } } },
          { "c", { path = "spec.nodeName", one_of = { "n1", "n2" }, negate = true } },
          { "a b c", { path = "spec.priority", equals = 7 } },
          { "a", { label = "app", equals = "web" } },
          { "a b", { label = "app", one_of = { "web", "db" } } },
          { "a", { owner = "controller" } },
          { "a", { owner = "controller", equals = "u1" } },
          { "", { owner = "controller", equals = "u2" } },
          { "a", { owner = "any", equals = "u2" } },
          { "b c", { owner = "any", negate = true } },
          { "a", { { label = "app" }, { path = "spec.nodeName", equals = "n1" } } },
          { "a", { { selector = "app" }, { namespace = "default", owner = "any" } } },
          { "", { namespace = "other" } },
          { "b", { selector = { app = "db" }, { path = "spec.nodeName" } } },
          { "a b c", {} },
        }
        local registrations, seen = {}, {}
        for i, case in ipairs(cases) do
          seen[i] = {}
          registrations[i] = informer:add_event_handler {
            predicate = case[2],
            on_add = function(o) table.insert(seen[i], o.metadata.name) end,
          }
        end
        factory:start(stop)
        assert(kube.wait_for_cache_sync(stop, unpack(registrations)))
        for i, case in ipairs(cases) do
          table.sort(seen[i])
          same(i .. ": " .. case[1], i .. ": " .. table.concat(seen[i], " "))
        end
        stop:close()
      ]])
  end)

  it("that fails lets nothing through and is counted", function()
    local _, log = rig.run(rig.pods { a = {} }, pods .. [[
      local registration = informer:add_event_handler {
        filter = function() error("no idea") end,
        on_add = function() error("must not be called") end,
      }
      factory:start(stop)
      assert(kube.wait_for_cache_sync(stop, registration))
      same(1, registration:stats().errors)
      stop:close()
    ]])
    assert.truthy(log:find("filter failed", 1, true), log)
    assert.truthy(log:find("no idea", 1, true), log)
  end)
end)

describe("removing a handler", function()
  cleanup.install()

  it("ends its events, may be repeated, and leaves other registrations alone", function() -- rows 68, 70
    local server = rig.pods { a = {} }
    local proc = rig.start(server, pods .. [[
      local other = kube.shared_informer_factory { namespace = "default" }
      local foreign = other:core():v1():pods():informer()
      local seen = {}
      local handler = { on_add = function(pod) seen[#seen + 1] = pod.metadata.name end }
      local first = informer:add_event_handler(handler)
      local second = informer:add_event_handler(handler)
      factory:start(stop)
      assert(kube.wait_for_cache_sync(stop, first, second))
      same({ "a", "a" }, seen)
      foreign:remove_event_handler(first)
      informer:remove_event_handler(second)
      informer:remove_event_handler(second)
      second:remove()
      print("removed")
      eventually(function() return #informer:get_store():list() == 2 end)
      eventually(function() return #seen == 3 end)
      kube.sleep(0.02)
      same({ "a", "a", "b" }, seen)
      local ok, message = pcall(informer.remove_event_handler, informer, {})
      assert(not ok and tostring(message):find("takes what add_event_handler returned"), message)
      stop:close()
    ]])
    proc:wait_line("^removed")
    server:put("b")
    rig.finish(proc)
  end)

  it("does not wait for the call that is running; its shutdown does", function() -- row 74
    local server = rig.pods { a = {} }
    rig.run(server, pods .. [[
      local function slow()
        local state = { running = false, ended = false }
        state.registration = informer:add_event_handler {
          on_add = function()
            state.running = true
            kube.sleep(0.1)
            state.ended = true
          end,
        }
        return state
      end
      local removed, shut = slow(), slow()
      factory:start(stop)
      eventually(function() return removed.running and shut.running end)
      removed.registration:remove()
      assert(not removed.ended, "remove waited")
      shut.registration:shutdown()
      assert(shut.ended, "shutdown did not wait")
      eventually(function() return removed.ended end)
      shut.registration:shutdown()
      stop:close()
    ]])
  end)

  it("comes to its end also where the informer never started", function() -- row 74
    rig.run(rig.pods(), pods .. [[
      local registration = informer:add_event_handler { on_add = function() end }
      registration:shutdown()
      assert(not registration:has_synced())
    ]])
  end)

  it("and adding, a hundred at a time under load, costs those who stay nothing", function() -- row 72
    local server = rig.pods { p0 = {} }
    local proc = rig.start(server, pods .. [[
      local seen, twice, broken = {}, 0, {}
      informer:add_event_handler {
        on_add = function(pod)
          local name = pod.metadata.name
          if seen[name] then twice = twice + 1 end
          seen[name] = pod.metadata.resourceVersion
        end,
        on_update = function(old, new)
          if seen[new.metadata.name] ~= old.metadata.resourceVersion then twice = twice + 1 end
          seen[new.metadata.name] = new.metadata.resourceVersion
        end,
      }
      local function visitor(id)
        for round = 1, 5 do
          local known = {}
          local registration = informer:add_event_handler {
            on_add = function(pod)
              if known[pod.metadata.name] then broken[#broken + 1] = "added twice" end
              known[pod.metadata.name] = pod.metadata.resourceVersion
            end,
            on_update = function(old, new)
              if known[new.metadata.name] ~= old.metadata.resourceVersion then
                broken[#broken + 1] = "an update of what it did not know"
              end
              known[new.metadata.name] = new.metadata.resourceVersion
            end,
          }
          kube.sleep((id * round) % 7 / 500)
          if id % 2 == 0 then registration:remove() else registration:shutdown() end
        end
      end
      factory:start(stop)
      factory:wait_for_cache_sync()
      local done = 0
      for id = 1, 100 do
        kube.background("visitor", function() visitor(id) done = done + 1 end)
      end
      print("ready")
      eventually(function() return done == 100 and seen.last end)
      same({}, broken)
      same(0, twice)
      local count = 0
      for name, rv in pairs(seen) do
        count = count + 1
        same(informer:get_store():get("default/" .. name).metadata.resourceVersion, rv)
      end
      same(informer:get_store():count(), count)
      stop:close()
    ]])
    proc:wait_line("^ready")
    for round = 1, 10 do
      for i = 1, 20 do server:put("p" .. (round * i) % 50) end
      pcall(proc.wait_line, proc, "^never", 0.01)
    end
    server:put("last")
    rig.finish(proc)
  end)
end)

describe("a transform", function()
  cleanup.install()

  it("shapes streamed, listed and watched objects the same way", function() -- row 24
    for _, options in ipairs { "streaming = true", "streaming = false" } do
      local server = rig.pods { a = { app = "web" } }
      local proc = rig.start(server, ([[
        local stop = kube.stop_channel()
        local factory = kube.shared_informer_factory {
          %s,
          transform = function(pod)
            if pod.metadata.name == "hidden" then return nil end
            pod.spec = nil
            pod.metadata.labels.seen = "yes"
            return pod
          end,
        }
        local informer = factory:core():v1():pods():informer()
        local function show(pod) print(pod.metadata.name, pod.spec, pod.metadata.labels.seen) end
        informer:add_event_handler { on_add = show, on_update = function(_, new) show(new) end }
        informer:run(stop)
      ]]):format(options))
      proc:wait_line("^a\tnil\tyes")
      server:put("hidden")
      server:put("b")
      server:put("a")
      proc:wait_line("^b\tnil\tyes")
      proc:wait_line("^a\tnil\tyes")
      rig.stop(proc)
      assert.are.equal(1, server.count[options:find("true") and "stream" or "list"])
      assert.is_nil(proc.stdout:find("hidden", 1, true))
    end
  end)

  it("leaves objects of one family as small as they would be without it", function()
    local names = {}
    for i = 0, 3999 do names[("app%d-%d"):format(i % 40, i)] = {} end
    local out = rig.run(rig.pods(names), [[
      local texts = {}
      local function text_of(family)  -- 4 KB that no other family has
        local parts = {}
        math.randomseed(tonumber(family))
        for i = 1, 400 do parts[i] = ("%010d"):format(math.random(0, 9999999999)) end
        return table.concat(parts)
      end
      local stop = kube.stop_channel()
      local factory = kube.shared_informer_factory {
        transform = function(pod)
          local family = pod.metadata.name:match("app(%d+)")
          texts[family] = texts[family] or text_of(family)
          pod.spec = { text = texts[family] }
          return pod
        end,
      }
      local informer = factory:core():v1():pods():informer()
      factory:start(stop)
      factory:wait_for_cache_sync()
      local stats = informer:stats()
      print(stats.objects, stats.object_bytes / stats.objects < 2000)
      stop:close()
    ]])
    assert.equal("4000\ttrue\n", out)
  end)

  it("as lists of paths drops and keeps while it reads", function() -- row 24
    for _, streaming in ipairs { "true", "false" } do
      local out = rig.run(rig.pods { a = {} }, ([[
        local stop = kube.stop_channel()
        for _, transform in ipairs { { drop = { "metadata.labels" } }, { keep = { "metadata" } } } do
          local factory = kube.shared_informer_factory { streaming = %s, transform = transform }
          local lister = factory:core():v1():pods():lister()
          factory:start(stop)
          factory:wait_for_cache_sync()
          local pod = lister:get("default/a")
          print(pod.metadata.labels ~= nil, pod.spec ~= nil)
        end
        stop:close()
      ]]):format(streaming))
      assert.are.equal("false\ttrue\ntrue\tfalse\n", out)
    end
  end)

  it("as lists of paths does not bring managedFields back, unless they are asked for", function()
    local out = rig.run(rig.objects { '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a",' ..
      '"namespace":"default","uid":"u","resourceVersion":"1","managedFields":[{"manager":"m"}]},' ..
      '"spec":{"nodeName":"n1"},"status":{"phase":"x"}}' }, [[
        local stop = kube.stop_channel()
        for _, options in ipairs {
          {}, { transform = { drop = { "status" } } }, { transform = { keep = { "metadata" } } },
          { transform = { keep = { "spec" } } }, { transform = { drop = { "metadata.managedFields" } } },
          { keep_managed_fields = true }, { transform = { drop = { "status" } }, keep_managed_fields = true },
          { transform = { keep = { "metadata" } }, keep_managed_fields = true },
        } do
          local factory = kube.shared_informer_factory(options)
          local lister = factory:core():v1():pods():lister()
          factory:start(stop)
          factory:wait_for_cache_sync()
          local pod = lister:get("default/a")
          print(pod.metadata.managedFields ~= nil, pod.spec ~= nil, pod.status ~= nil)
        end
        stop:close()
      ]])
    assert.are.same({ "false\ttrue\ttrue", "false\ttrue\tfalse", "false\tfalse\tfalse",
      "false\ttrue\tfalse", "false\ttrue\ttrue", "true\ttrue\ttrue", "true\ttrue\tfalse",
      "true\tfalse\tfalse" }, lines(out))
  end)

  it("and a watch error handler are set before the start or not at all", function() -- row 67
    rig.run(rig.pods { a = {} }, pods .. [[
      informer:set_transform(function(pod) pod.metadata.labels.first = "x" return pod end)
      informer:set_transform(function(pod) pod.metadata.labels.last = "x" return pod end)
      informer:set_watch_error_handler(function() end)
      factory:start(stop)
      factory:wait_for_cache_sync()
      local labels = informer:get_store():get("default/a").metadata.labels
      assert(labels.last == "x" and not labels.first)
      for _, name in ipairs { "set_transform", "set_watch_error_handler" } do
        local ok, err = pcall(informer[name], informer, function() end)
        assert(not ok and tostring(err):find("is already running"), err)
        ok, err = pcall(informer[name], informer, "no function")
        assert(not ok and tostring(err):find("takes a function"), err)
      end
      stop:close()
    ]])
  end)

  it("may be set behind handlers and indexes, also by a script that runs already", function() -- row 67
    rig.run(rig.pods { a = {} }, [[
      kube.sleep(0)
    ]] .. pods .. [[
      local seen = {}
      informer:add_indexers { by = function(pod) return { pod.metadata.labels.by } end }
      informer:add_event_handler { on_add = function(pod) seen[#seen + 1] = pod.metadata.labels.by end }
      informer:set_transform(function(pod) pod.metadata.labels.by = "first" return pod end)
      informer:set_transform(function(pod) pod.metadata.labels.by = "last" return pod end)
      factory:start(stop)
      factory:wait_for_cache_sync()
      eventually(function() return #seen > 0 end)
      same({ "last" }, seen)
      same({ "default/a" }, informer:get_indexer():index_keys("by", "last"))
      stop:close()
    ]])
  end)

  it("that fails leaves the rest alone and is counted", function() -- rows 40, 52
    rig.run(rig.pods { a = {}, b = {}, c = {} }, pods .. [[
      informer:set_transform(function(pod)
        if pod.metadata.name == "b" then error("cannot") end
        return pod
      end)
      factory:start(stop)
      factory:wait_for_cache_sync()
      same({ "default/a", "default/c" }, (function(keys) table.sort(keys) return keys end)(
        informer:get_store():list_keys()))
      same(1, informer:stats().process_errors)
      stop:close()
    ]])
  end)

  it("that fails for everything is told of with its line, the 1st, 2nd, 4th... time", function()
    local some = {}
    for i = 1, 9 do some["p" .. i] = {} end
    for returned, said in pairs { ["7"] = "a transform returns an object or nil, not a number",
      ["{ metadata = {} }"] = "the object has no metadata.name",
      ['{ metadata = { name = "other" } }'] = "a transform must not change the name or namespace" } do
      local _, err = rig.run(rig.pods(some), pods .. ([[
        informer:set_transform(function()
          return %s
        end)
        factory:start(stop)
        factory:wait_for_cache_sync()
        same(9, informer:stats().process_errors)
        stop:close()
      ]]):format(returned))
      local told = {}
      for place, line in err:gmatch('([^\n"]-)' .. ": " .. said:gsub("%p", "%%%0") .. '[^\n]-"failures":(%d+)') do
        assert.truthy(place:find("script%.lua:%d+$"), place)
        told[#told + 1] = tonumber(line)
      end
      assert.are.same({ 1, 2, 4, 8 }, told, err)
    end
  end)

  it("that fails when its informer has gone with its own call is told of without its line", function()
    local _, err = rig.run(rig.pods { a = {} }, [[
      local stop = kube.stop_channel()
      local factory = kube.shared_informer_factory {}
      local informer = factory:core():v1():pods():informer()
      local called
      informer:set_transform(function()
        called = true
        stop:close()
        informer, factory = nil, nil
        collectgarbage()
        return 7
      end)
      factory:start(stop)
      eventually(function() return called end)
    ]])
    assert.truthy(err:find('"error":"a transform returns an object or nil, not a number"', 1, true), err)
  end)
end)

describe("the watch error handler", function()
  cleanup.install()

  local forbidden = { status = 403, body = '{"kind":"Status","apiVersion":"v1","status":"Failure",' ..
    '"message":"pods is forbidden","reason":"Forbidden","code":403}' }

  it("hears of lists that fail, and what happens next", function() -- row 66
    local server = rig.pods { a = {} }
    server:fail("list", forbidden)
    local out = rig.run(server, [[
      local stop = kube.stop_channel()
      local factory = kube.shared_informer_factory { streaming = false, backoff = { duration = 0.01 } }
      local informer = factory:core():v1():pods():informer()
      informer:set_watch_error_handler(function(err)
        print(err.place, err.status, err.message, err.code, type(err.again))
        assert(kube.is_forbidden(err) and err.retriable == false)
        assert(tostring(err) == err.message)
        error("even this is fine")
      end)
      factory:start(stop)
      assert(factory:wait_for_cache_sync())
      stop:close()
    ]])
    assert.truthy(out:find("^list\t403\t[^\n]*pods is forbidden[^\n]*\tforbidden\tstring\n$"), out)
  end)

  it("hears of watches that fail, not of a streaming list that a plain one replaces", function() -- row 66
    local server = rig.pods { a = {} }
    server:fail("stream", forbidden)
    local proc = rig.start(server, [[
      local stop = kube.stop_channel()
      local factory = kube.shared_informer_factory { backoff = { duration = 0.01 } }
      local informer = factory:core():v1():pods():informer()
      informer:set_watch_error_handler(function(err) print(err.place, err.status) end)
      informer:add_event_handler { on_add = function(pod) print(pod.metadata.name) end }
      factory:start(stop)
      factory:wait_for_cache_sync()
      print("synced")
    ]])
    proc:wait_line("^synced")
    server:put("b")
    proc:wait_line("^b")
    server:fail("watch", forbidden)
    server:cut()
    proc:wait_line("^watch_open\t403")
    server:put("c")
    proc:wait_line("^c")
    server:break_watches()
    proc:wait_line("^watch\t410")
    rig.stop(proc)
    assert.is_nil(proc.stdout:find("stream_list", 1, true))
  end)
end)

describe("the life of an informer", function()
  cleanup.install()

  it("goes from new to running to stopped; then handlers are refused, removal is not", function() -- row 71
    local _, log = rig.run(rig.pods { a = {} }, pods .. [[
      local registration = informer:add_event_handler {}
      assert(not informer:is_stopped() and not informer:has_synced())
      same("", informer:last_sync_resource_version())
      kube.background("run", function() informer:run(stop) print("returned") end)
      eventually(function() return registration:has_synced() end)
      local controller = informer:get_controller()
      controller:run()
      assert(controller:has_synced() and controller:last_sync_resource_version() == "101")
      assert(kube.wait_for_cache_sync(stop, controller))
      informer:run(stop)
      stop:close()
      eventually(function() return informer:is_stopped() end)
      registration:remove()
      informer:remove_event_handler(registration)
      for _, call in ipairs {
        function() informer:add_event_handler {} end,
        function() informer:add_indexers { by_app = { label = "app" } } end,
      } do
        local ok, err = pcall(call)
        assert(not ok and tostring(err):find("has been stopped"), err)
      end
      informer:run(kube.stop_channel())
      same({ "default/a" }, informer:get_store():list_keys())
      assert(informer:has_synced())
      same("informer v1/pods", tostring(informer))
      same(1, informer:stats().objects)
    ]])
    assert.truthy(log:find("informer is already running", 1, true), log)
    assert.truthy(log:find("the informer has been stopped and cannot run again", 1, true), log)
  end)

  it("ends with running handlers, not before", function() -- row 75
    local out = rig.run(rig.pods { a = {} }, pods .. [[
      informer:add_event_handler { on_add = function()
        print("in")
        kube.sleep(0.1)
        print("out")
      end }
      kube.background("run", function() informer:run(stop) print("returned") end)
      eventually(function() return informer:has_synced() end)
      kube.sleep(0.02)
      stop:close()
    ]])
    assert.are.equal("in\nout\nreturned\n", out)
  end)

  it("may end before it began", function() -- row 71
    local server = rig.pods { a = {} }
    rig.run(server, pods .. [[
      stop:close()
      informer:run(stop)
      assert(informer:is_stopped() and not informer:has_synced())
    ]])
    assert.are.equal(0, server.count.stream + server.count.list)
  end)
end)
