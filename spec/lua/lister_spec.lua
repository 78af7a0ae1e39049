-- Listers, stores and indexes as a script reads them: real binary, real HTTP, leak check on.
local cleanup = require "spec.support.cleanup"
local rig = require "spec.support.script_rig"

local synced = [[
  local stop = kube.stop_channel()
  local factory = kube.shared_informer_factory {}
  local informer = factory:core():v1():pods():informer()
  local lister = factory:core():v1():pods():lister()
  factory:start(stop)
  factory:wait_for_cache_sync()
  local function names(objects)
    local list = {}
    for i, object in ipairs(objects) do list[i] = object.metadata.name end
    table.sort(list)
    return list
  end
]]

local function three()
  local server = rig.pods { a = { app = "web" }, b = { app = "db", node = "n2" } }
  server:put("a", { app = "web", ns = "other", uid = "uid-other" })
  return server
end

describe("a lister", function()
  cleanup.install()

  it("gives everything, what a selector chooses, or nothing", function() -- row 81
    rig.run(three(), synced .. [[
      same({ "a", "a", "b" }, names(lister:list()))
      same({ "a", "a", "b" }, names(lister:list("")))
      same({ "a", "a", "b" }, names(lister:list {}))
      same({ "a", "a" }, names(lister:list("app=web")))
      same({ "b" }, names(lister:list("app in (db,api)")))
      same({ "a", "a" }, names(lister:list { selector = { app = "web" } }))
      same({ "b" }, names(lister:list { selector = { matchLabels = { app = "db" } } }))
      same({ "a", "a" }, names(lister:list { selector = {
        matchExpressions = { { key = "app", operator = "NotIn", values = { "db" } } } } }))
      same({ "a", "a", "b" }, names(lister:list { selector = {} }))
      same({}, names(lister:list { selector = kube.null }))
      same({}, names(lister:list("app=nobody")))
      same({}, names(lister:list("nolabel")))
      stop:close()
    ]])
  end)

  it("gives objects that cjson encodes whole, whenever it is required", function()
    rig.run(three(), synced .. [[
      local cjson = require "cjson"
      local text = cjson.encode(lister:list("app=db"))
      same("b", cjson.decode(text)[1].metadata.name)
      same("n2", cjson.decode(text)[1].spec.nodeName)
      stop:close()
    ]])
  end)

  it("keeps to a namespace when told to", function() -- row 82
    rig.run(three(), synced .. [[
      same({ "a", "b" }, names(lister:list { namespace = "default" }))
      same({ "a" }, names(lister:list { namespace = "default", selector = "app=web" }))
      same({}, names(lister:list { namespace = "nowhere" }))
      same({ 3, 2, 1, 0 }, { lister:count(), lister:count("app=web"), lister:count("app=db"), lister:count("app=x") })
      same({ 2, 1 }, { lister:count { namespace = "default" },
        lister:count { namespace = "default", selector = { app = "web" } } })
      same({ 3, 0 }, { lister:count {}, lister:count { selector = kube.null } })
      local other = lister:namespace("other")
      same({ 1, 0, 1 }, { other:count("app=web"), other:count("app=db"), other:count { namespace = "other" } })
      same({ "a" }, names(other:list()))
      same({ "other/a" }, other:list_keys())
      same({}, names(other:list("app=db")))
      same(1, other:count())
      same(3, lister:namespace(""):count())
      same({ "a" }, names(other:list { namespace = "other" }))
      same(1, other:namespace("other"):count())
      for _, call in ipairs {
        function() other:list { namespace = "default" } end,
        function() other:keys { namespace = "" } end,
        function() other:count { namespace = "default" } end,
        function() other:namespace("default") end,
      } do
        local ok, message = pcall(call)
        assert(not ok and message:find("this reader is of the namespace 'other'"), message)
      end
      stop:close()
    ]])
  end)

  it("of one namespace reads indexes for that namespace alone", function()
    rig.run(three(), synced .. [[
      informer:add_indexers { by_app = { label = "app" }, by_node = { path = "spec.nodeName" } }
      local other, default = lister:namespace("other"), lister:namespace("default")
      same({ "default/a", "other/a" }, lister:index_keys("by_app", "web"))
      same({ "other/a" }, other:index_keys("by_app", "web"))
      same({}, other:index_keys("by_app", "db"))
      same("uid-other", other:by_index("by_app", "web")[1].metadata.uid)
      same(1, #other:by_index("by_app", "web"))
      same(0, #other:by_index("by_app", "db"))
      same({ "web" }, other:index_values("by_app"))
      same({ "web" }, other:list_index_func_values("by_app"))
      same(2, #default:index_values("by_app"))
      same(0, #lister:namespace("nowhere"):index_values("by_app"))
      same({ "a" }, names(other:index("by_app", lister:get("default/a"))))
      same({ "a", "a" }, names(lister:index("by_app", lister:get("default/a"))))
      stop:close()
    ]])
  end)

  it("finds by key, by name within a namespace, and gives nil for a miss", function() -- row 83
    rig.run(three(), synced .. [[
      same("uid-a", lister:get("default/a").metadata.uid)
      same("uid-other", lister:get("other/a").metadata.uid)
      same("uid-other", lister:get_by_key("other/a").metadata.uid)
      same(nil, lister:get("a"))
      same(nil, lister:get("default/"))
      same(nil, lister:get("/a"))
      same(nil, lister:get("default/nobody"))
      same(2, select("#", "a", lister:get("default/nobody")))  -- a value, where one is needed
      same(nil, lister:get(""))
      local other = lister:namespace("other")
      same("uid-other", other:get("a").metadata.uid)
      same(nil, other:get("b"))
      same(2, select("#", "a", other:get(("x"):rep(600))))
      same(nil, other:get(""))
      local object = other:get("a")
      assert(rawequal(lister:get(object), object) and rawequal(other:get(object), object))
      same(nil, other:get(lister:get("default/a")))
      same("uid-a", lister:get { metadata = { name = "a", namespace = "default" } }.metadata.uid)
      for _, namespace in ipairs { "", kube.null, false, {} } do
        same("uid-other", other:get { metadata = { name = "a", namespace = namespace } }.metadata.uid)
        same(nil, lister:get { metadata = { name = "a", namespace = namespace } })
      end
      local ok, message = pcall(lister.get, lister, 5)
      assert(not ok and tostring(message):find("get takes a key"), message)
      for sentence, object in pairs {
        ["get: the metadata of the object must be a table, not a number"] = { metadata = 3 },
        ["get: the object has no metadata.name"] = { metadata = { namespace = "default" } },
      } do
        ok, message = pcall(lister.get, lister, object)
        assert(not ok and message:find("^[^\n]*script%.lua:%d+: ") and message:find(sentence, 1, true), message)
      end
      stop:close()
    ]])
  end)

  it("has keys that are namespace/name, or the name alone", function() -- rows 46, 56
    rig.run(three(), synced .. [[
      local keys = lister:list_keys()
      table.sort(keys)
      same({ "default/a", "default/b", "other/a" }, keys)
      same({ "default/b" }, lister:list_keys("app=db"))
      local walked = {}
      for key in lister:keys { namespace = "default" } do walked[#walked + 1] = key end
      table.sort(walked)
      same({ "default/a", "default/b" }, walked)
      same("default/b", kube.key(lister:get("default/b")))
      same("node-1", kube.key { metadata = { name = "node-1" } })
      same("node-1", kube.key { metadata = { name = "node-1", namespace = "" } })
      same("x/y", kube.key { metadata = { name = "y", namespace = "x" } })
      for _, bad in ipairs { {}, { metadata = {} }, { metadata = { namespace = "x" } } } do
        assert(not pcall(kube.key, bad))
      end
      stop:close()
    ]])
  end)

  it("iterates over what was there when it began, while the store changes", function()
    local server = three()
    local proc = rig.start(server, synced .. [[
      local seen = {}
      for pod in lister:each() do
        if #seen == 0 then
          print("first")
          eventually(function() return lister:count() == 2 end)
        end
        seen[#seen + 1] = pod.metadata.name
      end
      table.sort(seen)
      same({ "a", "a", "b" }, seen)
      same({ "a", "b" }, names(lister:list()))
      same({ "b" }, (function()
        local list = {}
        for pod in lister:each("app=db") do list[#list + 1] = pod.metadata.name end
        return list
      end)())
      stop:close()
    ]])
    proc:wait_line("^first")
    server:remove("a", { ns = "other" })
    rig.finish(proc)
  end)

  it("can be read before the sync and after the stop", function() -- row 71
    rig.run(three(), [[
      local stop = kube.stop_channel()
      local factory = kube.shared_informer_factory {}
      local lister = factory:core():v1():pods():lister()
      same(0, #lister:list())
      same(nil, lister:get("default/a"))
      same("", lister:resource_version())
      factory:start(stop)
      factory:wait_for_cache_sync()
      same("103", lister:resource_version())
      stop:close()
      factory:shutdown()
      same(3, #lister:list())
      same("uid-b", lister:get("default/b").metadata.uid)
    ]])
  end)

  it("refuses unknown options and bad selectors, with the place", function()
    rig.run(three(), synced .. [[
      for _, case in ipairs {
        { { namespaces = "x" }, "no option 'namespaces' %(did you mean 'namespace'%?%)" },
        { { selector = 5 }, "must be a string or table or null" },
        { "app=(", "column" },
        { { selector = { matchExpressions = { { key = "a", operator = "Near" } } } }, "operator 'Near'" },
        { { selector = { app = 5 } }, "maps label names to strings" },
      } do
        for _, method in ipairs { "list", "each", "keys", "list_keys" } do
          local ok, message = pcall(lister[method], lister, case[1])
          assert(not ok and tostring(message):find(case[2]), method .. ": " .. tostring(message))
        end
      end
      stop:close()
    ]])
  end)
end)

describe("an index", function()
  cleanup.install()

  it("added before the start, or later with data present, is usable at once", function() -- row 62
    rig.run(three(), [[
      local stop = kube.stop_channel()
      local factory = kube.shared_informer_factory {}
      local informer = factory:core():v1():pods():informer()
      informer:add_indexers {
        by_node = { path = "spec.nodeName" },
        by_first = function(pod) return { pod.metadata.name:sub(1, 1) } end,
      }
      factory:start(stop)
      factory:wait_for_cache_sync()
      local store = informer:get_indexer()
      same({ "default/a", "other/a" }, store:index_keys("by_node", "n1"))
      same({ "default/b" }, store:index_keys("by_first", "b"))
      informer:add_indexers { by_app = { label = "app" } }
      same({ "default/a", "other/a" }, store:index_keys("by_app", "web"))
      same("uid-b", store:by_index("by_app", "db")[1].metadata.uid)
      local known = store:get_indexers()
      table.sort(known)
      same({ "by_app", "by_first", "by_node", "namespace" }, known)
      same(#known, #store:index_names())
      same({ "default/a", "default/b" }, store:index_keys("namespace", "default"))
      stop:close()
    ]])
  end)

  it("follows updates and deletes, and forgets values that nobody has", function() -- rows 57, 60
    local server = three()
    local proc = rig.start(server, synced .. [[
      informer:add_indexers { by_app = { label = "app" } }
      local store = informer:get_indexer()
      local function values()
        local list = store:list_index_func_values("by_app")
        table.sort(list)
        return table.concat(list, " ")
      end
      same("db web", values())
      same("db web", (function(v) table.sort(v) return v end)(store:index_values("by_app")))
      print("before")
      eventually(function() return lister:count() == 2 end)
      same("api web", values())
      same({}, store:index_keys("by_app", "db"))
      same({ "default/b" }, store:index_keys("by_app", "api"))
      same({ "default/a" }, store:index_keys("by_app", "web"))
      stop:close()
    ]])
    proc:wait_line("^before")
    server:put("b", { app = "api" })
    server:remove("a", { ns = "other" })
    rig.finish(proc)
  end)

  it("may have several values per object, and finds what shares one with an object", function() -- row 58
    rig.run(three(), synced .. [[
      informer:add_indexers {
        by_both = function(pod)
          return { pod.metadata.labels.app, pod.spec.nodeName, pod.spec.nodeName }
        end,
        by_app_of_db = function(pod)
          if pod.metadata.labels.app == "db" then return pod.metadata.labels.app end
        end,
      }
      local store = informer:get_indexer()
      same({ "default/b" }, store:index_keys("by_both", "n2"))
      same({ "default/b" }, store:index_keys("by_both", "db"))
      same({ "a", "a" }, names(store:index("by_both", store:get("other/a"))))
      same({ "b" }, names(store:index("by_app_of_db", store:get("default/b"))))
      same({}, names(store:index("by_app_of_db", store:get("default/a"))))
      -- What is asked about need not be in the store, or as it is there.
      local moved = kube.copy(store:get("default/a"))
      moved.metadata.labels.app = "db"
      same({ "b" }, names(store:index("by_app_of_db", moved)))
      same({ "a", "b" }, names(store:index("namespace", { metadata = { name = "new", namespace = "default" } })))
      stop:close()
    ]])
  end)

  it("whose name is taken or unknown is refused, and one can be removed", function() -- row 62
    rig.run(three(), synced .. [[
      local store = informer:get_indexer()
      informer:add_indexers { by_app = { label = "app" } }
      local function refused(pattern, fn, ...)
        local ok, message = pcall(fn, ...)
        assert(not ok and tostring(message):find(pattern), message)
      end
      refused("by_app", informer.add_indexers, informer,
        { by_app = { label = "app" }, by_node = { path = "spec.nodeName" } })
      same(2, #store:get_indexers())
      refused("by_node", store.by_index, store, "by_node", "n1")
      refused("by_node", store.index_keys, store, "by_node", "n1")
      same({}, store:list_index_func_values("by_node"))
      refused("must be a function or one of", informer.add_indexers, informer, { x = {} })
      refused("index 'x' has no option 'pth' %(did you mean 'path'%?%)", informer.add_indexers, informer,
        { x = { pth = "a" } })
      refused("given by name", informer.add_indexers, informer, { function() end })
      refused("an owner is \"controller\" or \"any\", not \"x\"", informer.add_indexers, informer,
        { by_owner = { owner = "x" } })
      refused("takes a table", informer.add_indexers, informer, "by_app")
      informer:remove_indexer("by_app")
      refused("by_app", store.index_keys, store, "by_app", "web")
      refused("by_app", informer.remove_indexer, informer, "by_app")
      local there = "the index \"namespace\" is always there, by metadata.namespace"
      refused(there .. ", and cannot be removed", informer.remove_indexer, informer, "namespace")
      refused(there .. ": leave it out, or give yours another name", informer.add_indexers, informer,
        { namespace = { label = "app" } })
      informer:add_indexers { by_app = { label = "app" } }
      same({ "default/b" }, store:index_keys("by_app", "db"))
      stop:close()
    ]])
  end)

  it("whose function fails is told of, whatever other indexes do", function()
    local _, log = rig.run(rig.pods { a = {}, b = {}, c = {}, d = {} }, [[
      local factory, stop = kube.shared_informer_factory {}, kube.stop_channel()
      local informer = factory:core():v1():pods():informer()
      informer:add_indexers {
        breaks = function() error("boom") end,
        counts = function() return 5 end,
        mixes = function() return { "x", {} } end,
      }
      factory:start(stop)
      assert(factory:wait_for_cache_sync())
      same(12, informer:stats().index_failures)
      stop:close()
    ]])
    local told = {
      breaks = "script%.lua:%d+: boom",
      counts = "script%.lua:%d+: an index function returns a list of strings, not a number",
      mixes = "script%.lua:%d+: value 2 of an index function is a table, not a string",
    }
    for index, message in pairs(told) do
      local counts = {}
      for line in log:gmatch('[^\n]*"index":"' .. index .. '"[^\n]*') do
        counts[#counts + 1] = line:match(message .. '.*"failures":(%d+)')
      end
      assert.are.same({ "1", "2", "4" }, counts, log)
    end
  end)

  it("whose function fails is refused with data present, and else leaves the object out", function() -- row 61
    local server = three()
    local proc = rig.start(server, synced .. [[
      local store = informer:get_indexer()
      local function picky(pod)
        if pod.metadata.name == "bad" then error("cannot") end
        return { "all" }
      end
      local ok, message = pcall(informer.add_indexers, informer,
        { fails = function() error("never works") end })
      assert(not ok and tostring(message):find("never works"), message)
      informer:add_indexers { picky = picky }
      print("ready")
      eventually(function() return lister:get("default/good") end)
      assert(lister:get("default/bad"))
      same({ "default/a", "default/b", "default/good", "other/a" }, store:index_keys("picky", "all"))
      same(1, informer:stats().index_failures)
      stop:close()
    ]])
    proc:wait_line("^ready")
    server:put("bad")
    server:put("good")
    rig.finish(proc)
  end)
end)
