-- What a script writes wrongly is answered where it is written: every message begins with the line of
-- the script and says what to write instead.
local cleanup = require "spec.support.cleanup"
local rig = require "spec.support.script_rig"

-- refused(pattern, fn): fn fails on its own line with a message that has this text in it.
local prelude = [[
  local function refused(text, fn, ...)
    local ok, err = pcall(fn, ...)
    local message = tostring(err)
    assert(not ok, "it was not refused: " .. text)
    assert(message:find("^[^\n]*script%.lua:%d+: "), "no place: " .. message)
    assert(message:find(text, 1, true), ("wanted %s\ngot %s"):format(text, message))
  end
]]

local function run(source, options) return rig.run(rig.pods { a = {} }, prelude .. source, options) end

describe("a method", function()
  cleanup.install()

  it("that is called with a dot says so", function()
    run [[
      local factory = kube.shared_informer_factory {}
      local pair = factory:core():v1():pods()
      local informer, lister, stop = pair:informer(), pair:lister(), kube.stop_channel()
      local registration = informer:add_event_handler {}
      local colon = "call it with a colon: "
      refused(colon .. "informer:add_event_handler(...), not informer.add_event_handler(...)",
        informer.add_event_handler, { on_add = print })
      refused(colon .. "informer:run", informer.run, stop)
      refused(colon .. "informer:has_synced", informer.has_synced)
      refused(colon .. "factory:start", factory.start, stop)
      refused(colon .. "factory:core", factory.core)
      refused(colon .. "resource:informer(...), not resource.informer(...)", pair.informer)
      refused(colon .. "registration:remove", registration.remove)
      refused(colon .. "lister:list", lister.list)
      refused(colon .. "lister:by_index", lister.by_index, "x", "y")
      refused(colon .. "stop:close(...)", stop.close)
      local client, selector = kube.client, kube.selector.parse("app=web")
      for _, name in ipairs { "server", "context", "namespace" } do
        refused(("%sclient:%s(...), not client.%s(...)"):format(colon, name, name), client[name])
      end
      refused(colon .. "selector:matches(...), not selector.matches(...)", selector.matches, { app = "web" })
      refused(colon .. "selector:text(...), not selector.text(...)", selector.text)
      assert(client:server():find("^http://127") and client:context() == "c" and client:namespace() == nil)
      assert(selector:matches { app = "web" } and selector:text() == "app=web")
      assert(not informer:is_stopped() and not stop:is_closed())
    ]]
  end)

  it("that is not there is answered with one that is", function()
    run [[
      local factory = kube.shared_informer_factory {}
      local pair = factory:core():v1():pods()
      local informer = pair:informer()
      refused("informer has no 'has_sync' (did you mean 'has_synced'?)",
        function() informer:has_sync() end)
      refused("factory has no 'begin'; it has: ", function() factory:begin() end)
      refused("write :informer():add_event_handler(...)", function() pair:add_event_handler {} end)
      refused("write :lister():list(...)", function() pair:list() end)
      refused("selector has no 'match' (did you mean 'matches'?)", function() kube.selector.parse("a"):match {} end)
      refused("lister has no 'lst'", function() pair:lister():lst() end)
      refused("controller has no 'has_sync' (did you mean 'has_synced'?)",
        function() informer:get_controller():has_sync() end)
      refused("registration has no 'removed'",
        function() informer:add_event_handler {}:removed() end)
    ]]
  end)

  it("of kube is none: it is called with a dot", function()
    run [[
      for _, name in ipairs { "new_client", "shared_informer_factory", "informer", "new_informer",
        "wait_for_cache_sync", "stop_channel", "sleep", "background" } do
        refused(("call it with a dot: kube.%s(...), not kube:%s(...)"):format(name, name),
          kube[name], kube, {})
      end
      refused("kube.get()", function() kube:get({}, "a.b") end)
      refused("kube.key()", function() kube:key({}) end)
    ]]
  end)

  it("that runs until a stop channel closes takes nothing else, and starts nothing then", function()
    run [[
      local factory = kube.shared_informer_factory {}
      local informer = factory:core():v1():pods():informer()
      for _, bad in ipairs { true, 5, "stop", {}, informer } do
        refused("informer:run(stop): stop must be what kube.stop_channel() returned",
          informer.run, informer, bad)
        refused("factory:start(stop): stop must be what kube.stop_channel() returned",
          factory.start, factory, bad)
      end
      refused("run takes a stop channel", informer.run, informer)
      kube.sleep(0.05)
      assert(not informer:has_synced() and informer:stats().watches == 0)
    ]]
  end)
end)

describe("an option", function()
  cleanup.install()

  it("that is a number has its range, which is checked where it is written", function()
    run [[
      local factory = kube.shared_informer_factory
      for _, name in ipairs { "resync", "min_resync", "min_watch_timeout", "internal_error_budget",
        "short_watch" } do
        for _, bad in ipairs { -1, 2e9, 1 / 0, 0 / 0 } do
          refused(("shared_informer_factory: option '%s' must be a number between 0 and 1000000000"):format(name),
            factory, { [name] = bad })
        end
      end
      for _, bad in ipairs { 0, -1, 1.5, 1e30, 0 / 0 } do
        refused("shared_informer_factory: option 'queue_bound' must be a whole number between 1 and ", factory,
          { queue_bound = bad })
      end
      refused("option 'page_size' must be a whole number", factory, { page_size = 0.5 })
      refused("option 'page_size' must be a whole number", factory, { page_size = -1 })
      refused("option 'steps' must be a whole number", factory, { backoff = { steps = 1e12 } })
      refused("shared_informer_factory: backoff: option 'duration' must be a number between", factory,
        { backoff = { duration = 0 } })
      refused("backoff has no option 'durations' (did you mean 'duration'?)",
        factory, { backoff = { durations = 1 } })
      local pods = factory():core():v1():pods():informer()
      refused("add_event_handler: option 'queue_bound'", pods.add_event_handler, pods, { queue_bound = -5 })
      refused("add_event_handler: option 'resync'", pods.add_event_handler, pods, { resync = 0 / 0 })
      local with_period = pods.add_event_handler_with_resync_period
      refused("add_event_handler_with_resync_period(handler, seconds): seconds must be a number of seconds, not -1",
        with_period, pods, {}, -1)
      refused("seconds must be a number of seconds, not nil", with_period, pods, {})
      refused("add_event_handler_with_resync_period has no option 'on_ad'", with_period, pods, { on_ad = print }, 1)
      refused("new_informer: handler has no option 'on_ad'", kube.new_informer,
        { resource = "v1/pods", handler = { on_ad = print } })
      refused("for_resource: option 'resync'", function()
        factory():for_resource("v1/pods", { resync = -1 })
      end)
      refused("new_informer: option 'resync'", kube.new_informer, { resource = "v1/pods", resync = -1 })
    ]]
  end)

  it("that is a namespace must be able to be one, wherever it is given", function()
    run [[
      local bad = { "a/b", "Default", "a.b", "-a", "a-", "a b", "a\0b", ("a"):rep(64) }
      local factory = kube.shared_informer_factory {}
      local informer = factory:core():v1():pods():informer()
      for _, name in ipairs(bad) do
        local opts = { namespace = name }
        refused("shared_informer_factory: option 'namespace': '", kube.shared_informer_factory, opts)
        refused("' cannot be a namespace: write at most 63 lower-case letters, digits and '-'",
          kube.shared_informer_factory, opts)
        refused("informer: option 'namespace': '", kube.informer, "v1/pods", opts)
        refused("new_informer: option 'namespace': '", kube.new_informer,
          { resource = "v1/pods", namespace = name })
        refused("for_resource: option 'namespace': '", factory.for_resource, factory, "v1/secrets", opts)
        refused("namespace(name): '", informer:lister().namespace, informer:lister(), name)
        refused("list: option 'namespace': '", informer:lister().list, informer:lister(), opts)
        refused("predicate: option 'namespace': '", informer.add_event_handler, informer, { predicate = opts })
        refused("kube.controller: namespaces[1]: '", kube.controller,
          { resource = "v1/pods", namespaces = { name }, reconcile = print })
      end
      for _, name in ipairs { "", "default", "1", "a--b", ("a"):rep(63) } do
        kube.shared_informer_factory { namespace = name }
        informer:lister():namespace(name):list { namespace = name }
      end
      kube.sleep(0)
      refused("client:list: option 'namespace': 'A' cannot be", kube.client.list, kube.client, "v1/pods",
        { namespace = "A" })
    ]]
  end)

  it("that is a selector is checked where it is written, with the column", function()
    run [[
      local factory = kube.shared_informer_factory
      refused("label selector, column 9", factory, { label_selector = "app in (" })
      refused("maps label names to strings", factory, { label_selector = { app = 5 } })
      refused("operator 'Near'", factory, { label_selector = {
        matchExpressions = { { key = "a", operator = "Near" } } } })
      -- None of these may select more than was meant.
      local entry = { key = "a", operator = "In", values = { "x" } }
      for problem, selector in pairs {
        ["a label selector has no 'matchExpresions': it has matchLabels and matchExpressions"] =
          { matchLabels = {}, matchExpresions = { entry } },
        ["a label selector has no 'tier': it has matchLabels and matchExpressions"] =
          { matchLabels = { app = "web" }, tier = "x" },
        ["matchExpressions is a list of { key =, operator =, values = }"] = { matchExpressions = entry },
        ["an entry of matchExpressions has no 'value': it has key, operator and values"] =
          { matchExpressions = { { key = "a", operator = "Exists", value = { "x" } } } },
        ["the values of matchExpressions are a list of strings"] =
          { matchExpressions = { { key = "a", operator = "In", values = "x" } } },
        ["matchLabels maps label names to strings"] = { matchLabels = 5 },
      } do
        refused(problem, factory, { label_selector = selector })
      end
      factory { label_selector = { matchLabels = kube.null, matchExpressions = { entry } } }
      factory { label_selector = { matchLabels = "a-label-may-have-this-name" } }
      refused("field selector, column 1", factory, { field_selector = "spec.nodeName" })
      refused("maps fields to values", factory, { field_selector = { ["spec.nodeName"] = {} } })
      refused("label selector, column", kube.informer, "v1/pods", { label_selector = "a=b=c" })
      refused("label selector, column", kube.new_informer,
        { resource = "v1/pods", label_selector = "a=b=c" })
      local pods = factory {}
      refused("label selector, column", pods.for_resource, pods, "v1/pods", { label_selector = "=" })
      local tweaked = factory { tweak_list_options = function(o) o.label_selector = "in in in" end }
      refused("label selector, column", function() tweaked:core():v1():pods():informer() end)
      tweaked = factory { tweak_list_options = function(o) o.LabelSelector = "a=b" end }
      refused("did you mean 'label_selector'?", function() tweaked:core():v1():pods():informer() end)
    ]]
  end)

  it("that is a selector is sent in its one form", function()
    local server = rig.pods { a = {} }
    rig.run(server, [[
      local stop = kube.stop_channel()
      local factory = kube.shared_informer_factory {
        label_selector = { matchLabels = { app = "web" },
          matchExpressions = { { key = "tier", operator = "NotIn", values = { "b", "a" } } } },
        field_selector = { ["spec.nodeName"] = "n,1", ["metadata.name"] = "x" },
      }
      factory:core():v1():pods():informer()
      factory:start(stop)
      factory:wait_for_cache_sync()
      stop:close()
    ]])
    local query = server.http.requests[1].query
    assert.are.equal("app=web,tier notin (a,b)", query.labelSelector)
    assert.are.equal("metadata.name=x,spec.nodeName=n\\,1", query.fieldSelector)
  end)

  it("of resyncs by resource goes by whole names", function()
    run [[
      local factory = kube.shared_informer_factory
      refused('as in { ["v1/pods"] = 60 }, not \'1\'', factory, { custom_resync = { 5 } })
      for wrong, sentence in pairs {
        pods = '"pods" is not a resource: it lacks a version; write "v1/pods"',
        ["apps/deployments"] = 'write "apps/v1/deployments"',
        ["v1/Pod"] = 'write "v1/pods"',
        ["a/b/c/d"] = "it has too many slashes",
        ["v1/pod"] = "there is no 'v1/pod' (did you mean 'v1/pods'?)",
        ["apps/v1/deployment"] = "there is no 'apps/v1/deployment' (did you mean 'apps/v1/deployments'?)",
        ["v1/deployments"] = "there is no 'v1/deployments' (did you mean 'apps/v1/deployments'?)",
      } do
        refused("custom_resync: ", factory, { custom_resync = { [wrong] = 5 } })
        refused(sentence, factory, { custom_resync = { [wrong] = 5 } })
      end
      factory { custom_resync = { ["v1/pods"] = 5, ["example.com/v1/webs"] = 5, ["apps/v1/novelties"] = 5 } }
      for bad, shown in pairs { ["5m"] = "a string", [-1] = "-1", [{}] = "a table" } do
        refused("custom_resync: the period of 'v1/pods' must be a number of seconds, not " .. shown, factory,
          { custom_resync = { ["v1/pods"] = bad } })
      end
      refused("custom_resync: the period of 'v1/pods' must be a number of seconds, not nan", factory,
        { custom_resync = { ["v1/pods"] = 0 / 0 } })
      for _, bad in ipairs { math.huge, 2e9 } do
        refused("custom_resync: the period of 'v1/pods' must be 1000000000 seconds at most, not " .. bad, factory,
          { custom_resync = { ["v1/pods"] = bad } })
      end
    ]]
  end)

  it("that is a resource is checked where it is written", function()
    run [[
      local factory = kube.shared_informer_factory {}
      refused('for_resource: "Deployment" is not a resource: it lacks a version; write "apps/v1/deployments"',
        factory.for_resource, factory, "Deployment")
      refused('write "apps/v1/deployments"', factory.for_resource, factory, "apps/Deployment")
      refused('as in "v1/pods"', factory.for_resource, factory, "v1/")
      factory:for_resource("example.com/v1/webs")
    ]]
  end)

  it("that is a resource of Kubernetes' own is one that there is, or is like none", function()
    run [[
      local factory = kube.shared_informer_factory {}
      for wrong, sentence in pairs {
        ["v1/pod"] = "there is no 'v1/pod' (did you mean 'v1/pods'?)",
        ["v1/deployments"] = "there is no 'v1/deployments' (did you mean 'apps/v1/deployments'?)",
        ["networking.k8s.io/v1/networkpolicy"] = "(did you mean 'networking.k8s.io/v1/networkpolicies'?)",
        ["extensions/v1beta1/ingresses"] = "the group extensions was removed in Kubernetes 1.22; write apps/v1/deploy",
        ["settings.k8s.io/v1alpha1/podpresets"] = "the group settings.k8s.io (PodPreset) was removed in",
        ["auditregistration.k8s.io/v1alpha1/auditsinks"] = "the group auditregistration.k8s.io was removed in",
      } do
        refused("for_resource: ", factory.for_resource, factory, wrong)
        refused(sentence, factory.for_resource, factory, wrong)
        refused("informer: ", kube.informer, wrong)
        refused(sentence, kube.informer, wrong, { resync = 5 })
        refused("new_informer: ", kube.new_informer, { resource = wrong })
        refused(sentence, kube.new_informer, { resource = wrong })
        refused("custom_resync: ", kube.shared_informer_factory, { custom_resync = { [wrong] = 5 } })
      end
      for _, new in ipairs { "v1/novelties", "apps/v2/deployment", "resource.k8s.io/v1/devicetaintrules",
        "batch/v1beta1/jobs", "autoscaling/v1/verticalpodautoscalers", "networking.k8s.io/v1/clusternetworkpolicies",
        "example.com/v1/pod" } do
        factory:for_resource(new)
        kube.shared_informer_factory { custom_resync = { [new] = 5 } }
      end
    ]]
  end)

  it("that is a list of paths is checked where it is written, with the column", function()
    run [[
      local factory, expected = kube.shared_informer_factory, "column 6: expected a field name"
      refused(expected, factory, { transform = { keep = { "spec..a" } } })
      refused(expected, factory, { transform = { drop = { "spec..a" } }, keep_managed_fields = true })
      local pods = factory {}
      refused(expected, pods.for_resource, pods, "v1/pods", { transform = { drop = { "status", "spec..a" } } })
      refused(expected, kube.informer, "v1/pods", { transform = { keep = { "spec..a" } } })
      refused("shared_informer_factory: transform: option 'keep' must hold strings", factory,
        { transform = { keep = { 5 } } })
      local many = {}
      for i = 1, 256 do many[i] = "spec.a" .. i end
      factory { transform = { keep = many } }
      many[257] = "spec.a"
      refused("option 'drop' has more than 256 paths", factory, { transform = { drop = many } })
    ]]
  end)

  it("that is refused leaves nothing behind", function()
    local server = rig.pods { a = {} }
    rig.run(server, prelude .. ([[
      local function client() return kube.new_client { kubeconfig = %q, context = "c" } end
      local informer = kube.shared_informer_factory {}:core():v1():pods():informer()
      for _ = 1, 20 do
        refused("column 3: expected a field name", function()
          local factory = kube.shared_informer_factory { client = client(), transform = { drop = { "a..b" } } }
          factory:core():v1():pods():informer()
        end)
        refused("column 3: expected a field name", informer.add_event_handler, informer,
          { on_add = print, filter = print, predicate = { path = "a..b" } })
        refused("label selector", informer.add_event_handler, informer,
          { on_add = print, predicate = { selector = "a in (" } })
        refused("option 'queue_bound'", informer.add_event_handler, informer,
          { on_add = print, on_delete = print, queue_bound = -1 })
        refused("must be a function or one of", informer.add_indexers, informer,
          { x = { path = "a", label = "b" }, y = function() end })
      end
      refused("option 'client' must be a client, not a userdata", kube.shared_informer_factory,
        { client = informer:lister() })
      refused("option 'client' must be a client", kube.shared_informer_factory, { client = kube.null })
      refused("no option 'drops' (did you mean 'drop'?)", kube.shared_informer_factory,
        { transform = { drops = {} } })
    ]]):format(rig.kubeconfig(server:url())))
  end)
end)

describe("an argument", function()
  cleanup.install()

  it("that does not fit is named with its function", function()
    run [[
      refused("kube.key() takes an object, not nothing", kube.key)
      refused("kube.key() takes an object, not a string", kube.key, "default/a")
      refused("kube.key(): the object has no metadata", kube.key, {})
      refused("kube.get() takes an object and a path", kube.get, {})
      refused("kube.get(): path 'a..b', column 3", kube.get, {}, "a..b")
      refused("kube.json.decode() takes a string, not a table", kube.json.decode, {})
      refused("kube.json.decode(): ", kube.json.decode, "{")
      refused("kube.json.encode(): ", kube.json.encode, { f = print })
      refused("kube.json.encode() takes a value", kube.json.encode)
      refused("kube.copy() takes a value", kube.copy)
      refused("kube.array() takes a table, not a number", kube.array, 5)
      refused("kube.object(): the table has a metatable", kube.object, setmetatable({}, {}))
      refused("kube.int64() takes a number or a string, not nothing", kube.int64)
      refused("kube.int64(): 1.5 is not a 64-bit integer", kube.int64, 1.5)
      refused("kube.sleep() takes a number of seconds, not a string", kube.sleep, "1s")
      refused("kube.background() takes a name first", kube.background, print)
      refused("fields must be a table, not a string", kube.log.info, "message", "fields")
      refused("stop:wait(timeout)", kube.stop_channel().wait, kube.stop_channel(), "x")
    ]]
  end)

  it("that is not there is named, with the one that was meant", function()
    run [[
      refused("kube has no 'controler' (did you mean 'controller'?)", function() kube.controler {} end)
      refused("kube has no 'frobnicate'", function() kube.frobnicate() end)
      refused("kube has no 'cliemt' (did you mean 'client'?)", function() kube.cliemt:get("v1/pods", "a/b") end)
      refused("client has no 'gett' (did you mean 'get'?)", function() kube.client:gett("v1/pods", "a/b") end)
      refused("write local sandbox = require \"kube.sandbox\"", function() kube.sandbox.expire() end)
      refused("kube.time has no 'nwo' (did you mean 'now'?)", function() kube.time.nwo() end)
      refused("kube.json has no 'parse'; it has: decode, encode", function() kube.json.parse("{}") end)
      refused("kube.http has no 'pst' (did you mean 'post'?)", function() kube.http.pst("http://a") end)
      refused("os.exit is not available to scripts: one ends when nothing", function() os.exit(1) end)
      assert(kube._private == nil)
    ]]
  end)

  it("cannot be added to kube, but for the version of what is handed over", function()
    run [[
      local before = 0
      for _ in pairs(kube) do before = before + 1 end
      refused("kube.foo cannot be set: kube takes no new names; keep the value in a local", function() kube.foo = 3 end)
      refused("kube.events cannot be set: ", function() kube.events = {} end)
      refused("kube.5 cannot be set: ", function() kube[5] = true end)
      refused("kube.state_verson cannot be set (did you mean 'state_version'?)", function() kube.state_verson = 1 end)
      refused("kube has no 'foo'", function() return kube.foo end)
      local names = {}
      for name in pairs(kube) do names[name] = true end
      for _ in pairs(names) do before = before - 1 end
      assert(before == 0 and names.sleep and names.time)
      kube.state_version = 1
      assert(kube.state_version == 1)
      kube.state_version = nil
      assert(kube.client == kube.client and kube.client:server() and kube.events == kube.events)
    ]]
  end)

  it("of a lister is named, too", function()
    run [[
      local informer = kube.shared_informer_factory {}:core():v1():pods():informer()
      local lister = informer:lister()
      refused("by_index(name, value): value must be a string, not nothing",
        function() lister:by_index("namespace") end)
      refused("by_index(name, value): name", function() lister:by_index() end)
      refused("index_keys(name, value): value", function() lister:index_keys("namespace", 5) end)
      refused("list_index_func_values takes the name of an index", function() lister:list_index_func_values() end)
      refused("index(name, object): the object has no metadata", function() lister:index("namespace", {}) end)
      refused("index(name, object): cannot encode metadata.name: a function is not JSON", function()
        lister:index("namespace", { metadata = { name = print } })
      end)
      refused("index(name, object): object must be a table, not a string",
        function() lister:index("namespace", "a") end)
      refused("get takes a key", function() lister:get() end)
      refused("count has no option 'lable'; it has: namespace, selector", function() lister:count { lable = "x" } end)
      refused("count takes a table of options, not a number", function() lister:count(5) end)
      refused("label selector, column", function() lister:count("a in (") end)
      refused("get: the object has no metadata.name", function() lister:get {} end)
      refused("get takes one key", function() lister:get("default", "a") end)
      refused("get_by_key takes a key", function() lister:get_by_key() end)
      refused("get_by_key takes a key", function() lister:get_by_key(3) end)
      refused("namespace(name): name", function() lister:namespace() end)
      refused("remove_indexer takes the name", function() informer:remove_indexer() end)
    ]]
  end)

  it("of an index is one that it knows", function()
    run [[
      local informer = kube.shared_informer_factory {}:core():v1():pods():informer()
      local function add(index) informer:add_indexers { x = index } end
      refused("index 'x' has no option 'equals'; it has: label, owner, path; index 'x' has no option 'negate'", add,
        { path = "spec.nodeName", equals = "n1", negate = true })
      refused("index 'x' has no option 'lable' (did you mean 'label'?)", add, { lable = "app" })
      refused("index 'x': option 'label' must be a string, not a number", add, { path = "spec.nodeName", label = 5 })
      refused("index 'x' has no option 'foo'", kube.new_informer,
        { resource = "v1/pods", indexers = { x = { path = "a", foo = 1 } } })
      same({ "namespace" }, informer:get_indexer():get_indexers())
    ]]
  end)

  it("of a predicate that makes no sense is refused", function()
    run [[
      local informer = kube.shared_informer_factory {}:core():v1():pods():informer()
      local function add(predicate) informer:add_event_handler { predicate = predicate } end
      refused("give one of path, label and owner", add, { equals = "x" })
      refused("give one of path, label and owner", add, { negate = true, selector = "app=web" })
      refused("give one of path, label and owner", add, { path = "spec", label = "app" })
      refused("give one of path, label and owner", add, { { path = "a" }, { one_of = { "x" } } })
      refused("equals or one_of, not both", add, { label = "a", equals = "x", one_of = { "y" } })
      refused("at least one value", add, { label = "a", one_of = {} })
      refused('owner is "controller" or "any", not "3f78"; the uid goes into equals', add, { owner = "3f78" })
      refused("'selector' is given twice", add, { selector = "a=b", { selector = "c=d" } })
      refused("did you mean 'equals'?", add, { path = "a", equal = "x" })
      refused("predicate has no option 'true'", add, { path = "a", [true] = "x" })
      refused("predicate has nothing at 2, and more behind it", add, { { path = "a" }, nil, nil, { path = "b" } })
      local function one_of(values) add { path = "spec.nodeName", one_of = values } end
      local scalar = " must be a string or number or boolean, not "
      refused("predicate: one_of[2]" .. scalar .. "a table", one_of, { "n1", {} })
      refused("predicate: one_of[2]" .. scalar .. "a function", one_of, { "n1", print, "n2" })
      refused("predicate: one_of[1]" .. scalar .. "null", one_of, { kube.null })
      refused("predicate: one_of is a list of values, and 'n1' is no index", one_of, { n1 = true, "n2" })
      refused("predicate: one_of has nothing at 2, and more behind it", one_of, { "n1", nil, nil, "n2" })
      one_of { "n1", 5, false }
      informer:add_event_handler {}
      refused("not a string", add, { "app=web" })
      local changed = kube.predicate.generation_changed
      for _, of_controllers in ipairs { changed, kube.predicate.match { path = "a" }, { { path = "a" }, changed } } do
        refused("add_event_handler: kube.predicate is for controllers; the predicate of a handler is a table such as "
          .. '{ path = "spec.paused", equals = false }, and a function goes into filter', add, of_controllers)
      end
    ]]
  end)
end)

describe("what looks at fields that are not stored", function()
  cleanup.install()

  -- What was warned of, in order.
  local function warned(source)
    local _, err = run(source)
    local found = {}
    for line in err:gmatch("[^\n]+") do found[#found + 1] = line:match('"msg":"(.* which is never there: [^"]*)"') end
    return found
  end

  it("is warned of where it is declared", function()
    assert.are.same({
      "index 'node' looks at spec.nodeName, which is never there: the informer has metadata_only",
      "index 'node' looks at spec.nodeName, which is never there: the transform of the informer does not keep it",
      "the predicate of a handler looks at status.phase, which is never there: the transform of the informer does not "
        .. "keep it",
      "index 'app' looks at metadata.labels[\\\"app\\\"], which is never there: the transform of the informer does not "
        .. "keep it",
      "index 'owner' looks at metadata.ownerReferences, which is never there: the transform of the informer does not "
        .. "keep it",
      "index 'image' looks at spec.containers[0].image, which is never there: the transform of the informer does not "
        .. "keep it",
      "the selector of a handler looks at metadata.labels, which is never there: the transform of the informer does "
        .. "not keep it",
      "index 'by' looks at metadata.managedFields[0].manager, which is never there: the informer has no "
        .. "keep_managed_fields",
    }, warned [[
      local function pods(options) return kube.shared_informer_factory(options):core():v1():pods():informer() end
      pods { metadata_only = true }:add_indexers { node = { path = "spec.nodeName" } }
      local kept = pods { transform = { keep = { "metadata.labels", "spec.containers" } } }
      kept:add_indexers { node = { path = "spec.nodeName" } }
      kept:add_event_handler { predicate = { { label = "app" }, { path = "status.phase", equals = "Failed" } } }
      pods { transform = { drop = { "metadata.labels" } } }:add_indexers { app = { label = "app" } }
      pods { transform = { keep = { "spec" } } }:add_indexers { owner = { owner = "any" } }
      pods { transform = { drop = { "spec.containers[*].image" } } }:add_indexers {
        image = { path = "spec.containers[0].image" } }
      local spec = { transform = { keep = { "spec" } } }
      pods(spec):add_event_handler { predicate = { selector = "app=web" } }
      pods():add_indexers { by = { path = "metadata.managedFields[0].manager" } }
    ]])
  end)

  it("is not when something may be there", function()
    assert.are.same({}, warned [[
      local function pods(options) return kube.shared_informer_factory(options):core():v1():pods():informer() end
      pods { metadata_only = true }:add_indexers { kind = { path = "kind" }, name = { path = '["metadata"].name' },
        app = { label = "app" }, owner = { owner = "any" } }
      pods { transform = { keep = { "spec.containers[*].image", "status" } } }:add_indexers { phase = {
        path = "status.phase" }, image = { path = "spec.containers[0].image" },
        all = { path = "spec.containers[*].image" }, spec = { path = "spec" }, name = { path = "metadata.name" } }
      pods { transform = { keep = { 'spec["nodeName"]' } } }:add_indexers { node = { path = "spec.nodeName" } }
      pods { transform = { keep = {}, drop = { "metadata", "spec.node" } } }:add_indexers {
        node = { path = "spec.nodeName" }, ns = { path = "metadata.namespace" } }
      pods { keep_managed_fields = true }:add_indexers { by = { path = "metadata.managedFields[0].manager" } }
      local spec = { transform = { keep = { "spec" } } }
      for _, selector in ipairs { "", {}, kube.null } do
        pods(spec):add_event_handler { predicate = { selector = selector, namespace = "default" } }
      end
    ]])
  end)
end)

describe("a client", function()
  it("has no context to choose beside a sandbox", function()
    local err = require("spec.support.controller_rig").refused [[ kube.new_client { context = "dev" } ]]
    assert.matches("script%.lua:%d+: new_client: beside a sandbox there is no context to choose: leave option "
      .. "'context' out, or name a file in option 'kubeconfig'", err)
  end)
end)

describe("an await", function()
  cleanup.install()

  it("where none can be says so with the line of the script first", function()
    run [[
      refused("kube.sleep() awaits and cannot be used inside", function()
        table.sort({ 2, 1 }, function() kube.sleep(0) end)
      end)
      kube.sleep(0)
      refused("kube.sleep() awaits and cannot be used inside", function()
        table.sort({ 2, 1 }, function() kube.sleep(0) end)
      end)
      refused("stop:wait() awaits and cannot be used inside", function()
        table.sort({ 2, 1 }, function() kube.stop_channel():wait() end)
      end)
      refused("kube.wait_for_cache_sync() awaits", function()
        table.sort({ 2, 1 }, function()
          kube.wait_for_cache_sync(nil, function() return false end)
        end)
      end)
    ]]
  end)
end)
