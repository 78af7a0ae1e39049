-- `moonwatch check`: what a script would do, or why it does not load, without a cluster.
local cjson = require "cjson"
local cleanup = require "spec.support.cleanup"
local look = require "spec.support.look"

local directory, moonwatch, script = look.directory, look.moonwatch, look.script

-- The output for one script that loads.
local function checked(text, ...)
  local path = script(text)
  local out, err, code = moonwatch("check", path, ...)
  assert.equal("", err)
  assert.equal(0, code, out)
  return (out:gsub(path:gsub("%p", "%%%0"), "main.lua"))
end

-- The output for one script that does not.
local function refused(text)
  local path = script(text)
  local out, err, code = moonwatch("check", path)
  assert.equal("", err)
  assert.equal(1, code, out)
  return (out:gsub(path:gsub("%p", "%%%0"), "main.lua"))
end

local function has(text, wanted) assert.is_truthy(text:find(wanted, 1, true), wanted .. "\nnot in:\n" .. text) end

describe("moonwatch check", function()
  cleanup.install()

  it("tells what a script declares", function()
    assert.equal([[
main.lua: ok
  controller web (main.lua:6)
    reconciles   example.com/v1/webs
    namespaces   shop, team
    owns         apps/v1/deployments
    watches      v1/secrets
    reads        v1/nodes
    writes       apps/v1/deployments (create patch), example.com/v1/webs (patch),
                 example.com/v1/webs/status (get update patch), v1/events (create patch)
    finalizer    example.com/web
    workers      4
  controller pods (main.lua:12)
    reconciles   v1/pods
    writes       anything (it has no writes)
  informers
    v1/configmaps in kube-system: labelSelector=app%3Dx, metadata only, indexes by_app, 1 handler (main.lua:3)
    example.com/v1/webs in shop (main.lua:6)
    example.com/v1/webs in team (main.lua:6)
    apps/v1/deployments in shop (main.lua:6)
    apps/v1/deployments in team (main.lua:6)
    v1/secrets in shop (main.lua:6)
    v1/secrets in team (main.lua:6)
    v1/nodes (main.lua:6)
    v1/pods (main.lua:12)
  work queues
    extra (main.lua:13)
  timers
    sweep every 30 s while leading (main.lua:14)
  tasks
    helper (main.lua:15)
    main (main.lua:19)
  recorders of events
    web (main.lua:16)
  metrics
    webs_total (main.lua:17)
  leader election
    lease web (main.lua:18)
  needs
    events: create patch
    nodes, pods: get list watch
  needs in its own namespace
    leases.coordination.k8s.io: create
    leases.coordination.k8s.io web: get update
  needs in kube-system
    configmaps: get list watch
  needs in shop
    secrets: get list watch
    deployments.apps: get list watch create patch
    webs.example.com: get list watch patch
    webs.example.com/status: get update patch
  needs in team
    secrets: get list watch
    deployments.apps: get list watch create patch
    webs.example.com: get list watch patch
    webs.example.com/status: get update patch
  cannot be known
    what controller pods (main.lua:12) writes: it has no writes = { "v1/configmaps:create,patch", ... }
    what is written with kube.client, if anything, by timer sweep (main.lua:14), task helper (main.lua:15), ]]
  .. [[task main (main.lua:19), handler of v1/configmaps (main.lua:3)
]], checked [[
local kube = require "kube"
local f = kube.shared_informer_factory { namespace = "kube-system", label_selector = "app=x", metadata_only = true }
local maps = f:core():v1():config_maps():informer()
maps:add_indexers { by_app = { label = "app" } }
maps:add_event_handler { on_add = print }
kube.controller { name = "web", resource = "example.com/v1/webs", owns = { "apps/v1/deployments" },
  watches = { { resource = "v1/secrets", map = print } }, reads = { "v1/nodes" }, workers = 4,
  writes = { "apps/v1/deployments:patch,create", "example.com/v1/webs/status", "v1/events" },
  namespaces = { "shop", "team" },
  finalizer = "example.com/web", finalize = print, reconcile = print }

kube.controller { resource = "v1/pods", reconcile = print }
kube.workqueue { name = "extra" }
kube.every { name = "sweep", interval = 30, leader_only = true, run = print }
kube.background("helper", print)
kube.recorder { name = "web" }
kube.metric.counter { name = "webs_total" }
kube.leader_election { name = "web" }
kube.sleep(1)
error("behind the first await")
]])
  end)

  it("tells a program the same", function()
    local path = directory { ["good.lua"] = 'kube.controller { resource = "v1/pods", reconcile = print }\n',
      ["bad.lua"] = 'local x = 1\nerror("no")\n' }
    local out, err, code = moonwatch("check", "-o", "json", path .. "/good.lua", path .. "/bad.lua")
    assert.equal("", err)
    assert.equal(1, code)
    local good, bad = unpack(cjson.decode(out))
    assert.equal(path .. "/good.lua", good.file)
    assert.is_true(good.ok)
    assert.same({}, good.errors)
    assert.same({ name = "pods", resource = "v1/pods", place = path .. "/good.lua:1", workers = 1, owns = {},
      watches = {}, reads = {} }, good.declared.controllers[1])
    assert.same({ resource = "v1/pods", namespace = "", place = path .. "/good.lua:1", metadata_only = false,
      handlers = 0, indexers = {} }, good.declared.informers[1])
    assert.equal("ClusterRole", good.roles[1].kind)
    assert.same({ { apiGroups = { "" }, resources = { "pods" }, verbs = { "get", "list", "watch" } } },
      good.roles[1].rules)
    assert.equal(1, #good.unknown)
    assert.is_false(bad.ok)
    assert.same({ { message = path .. "/bad.lua:2: no", file = path .. "/bad.lua", line = 2,
      excerpt = { '     2 | error("no")' } } }, bad.errors)
  end)

  it("says what README.md shows", function()
    local file = assert(io.open("README.md"))
    local readme = file:read("*a")
    file:close()
    for _, command in ipairs { "check", "rbac" } do
      local shown = readme:match("%$ moonwatch " .. command .. " examples/greeter%.lua\n(.-)```")
      assert.equal(shown, (moonwatch(command, "examples/greeter.lua")))
    end
  end)

  it("lets nothing of the script run, not even its end", function()
    local out = checked [[
      local kube = require "kube"
      kube.leader_election { name = "x", on_stopped_leading = function() print("ran: stopped") end }
      kube.every { name = "tick", interval = 0.001, immediate = true, run = function() print("ran: timer") end }
      kube.background("task", function() print("ran: task") end)
      kube.informer("v1/pods"):add_event_handler { on_add = print }
      kube.defer(function() print("ran: deferred") end)
      kube.stop_channel():on_close(function() print("ran: closed") end)
      pcall(kube.sleep, 0)
      print("ran: behind the first await")
    ]]
    assert.is_nil(out:find("ran:", 1, true), out)
  end)

  it("needs no kubeconfig, not even one that the script names", function()
    has(checked [[
      local kube = require "kube"
      local client = kube.new_client { kubeconfig = "/nonexistent/other", context = "other" }
      kube.shared_informer_factory { client = client }:core():v1():pods():informer()
      assert(kube.client)
    ]], "v1/pods")
  end)

  it("checks several scripts, each for itself", function()
    local text = 'kube.leader_election { name = "%s" }\nkube.controller { resource = "v1/pods", reconcile = print }'
    local path = directory { ["a.lua"] = text:format("a"), ["b.lua"] = text:format("b") }
    local out, _, code = moonwatch("check", path .. "/a.lua", path .. "/b.lua")
    assert.equal(0, code, out)
    has(out, path .. "/a.lua: ok\n  controller pods")
    has(out, path .. "/b.lua: ok\n  controller pods")
  end)

  it("keeps what scripts print out of its answer", function()
    local path = script 'print("loading")\nkube.controller { resource = "v1/pods", reconcile = print }'
    local out, err, code = moonwatch("check", "-o", "json", path)
    assert.equal(0, code)
    assert.equal("loading\n", err)
    assert.is_true(cjson.decode(out)[1].ok)
    assert.is_nil(moonwatch("rbac", path):find("loading", 1, true))
  end)

  it("knows the namespace that the script will run in", function()
    local text = 'kube.controller { resource = "v1/pods", reads = { "v1/nodes" }, reconcile = print }'
    local out = checked(text, "-n", "team")
    has(out, "v1/pods in team (main.lua:1)")
    has(out, "v1/nodes (main.lua:1)")
    has(out, "needs in team\n    pods: get list watch")
    has(out, "needs\n    nodes: get list watch")
  end)
end)

describe("moonwatch check of a script that does not load", function()
  cleanup.install()

  it("shows a syntax error", function()
    assert.equal([[
main.lua: does not load
  main.lua:2: '}' expected (to close '{' at line 1) near 'reconcile'
         1 | kube.controller { resource = "v1/pods"
         2 |   reconcile = print }
           |   ^
]], refused 'kube.controller { resource = "v1/pods"\n  reconcile = print }\n')
  end)

  it("shows every syntax error of every file", function()
    local path = directory { ["main.lua"] = 'local a, b, c = require "a", require "lib.b", require "lib.c"\n',
      ["a.lua"] = "return {}\n", ["lib/b.lua"] = "return {\n", ["lib/c.lua"] = "local x\nx = = 1\n" }
    local wanted = ([[
%s: does not load
  %s/lib/b.lua:2: unexpected symbol near '<eof>'
         1 | return {
           |         ^
  %s/lib/c.lua:2: unexpected symbol near '='
         2 | x = = 1
           |     ^
]])
    for _, given in ipairs { path, path .. "/main.lua" } do
      local out, err, code = moonwatch("check", given)
      assert.equal("", err)
      assert.equal(1, code)
      assert.equal(wanted:format(given, path, path), out)
    end
    local _, err, code = moonwatch("run", path .. "/main.lua")
    assert.equal(1, code)
    has(err, path .. "/lib/b.lua:2: unexpected symbol near '<eof>'\n     1 | return {\n")
    has(err, path .. "/lib/c.lua:2: unexpected symbol near '='\n     2 | x = = 1\n")
    local errors = cjson.decode((moonwatch("check", "-o", "json", path)))[1].errors
    assert.equal(2, #errors)
    assert.equal(path .. "/lib/c.lua", errors[2].file)
    assert.equal(2, errors[2].line)
    assert.same({ "     2 | x = = 1", "       |     ^" }, errors[2].excerpt)
  end)

  it("shows where a load raises, and who called it", function()
    assert.equal([[
main.lua: does not load
  main.lua:2: attempt to index local 'a' (a nil value)
         2 |   return a.b
    called from main.lua:4
]], refused "local function f(a)\n  return a.b\nend\nlocal x = f()\n")
  end)

  it("shows an unknown option and what may be meant", function()
    has(refused '\nkube.controller { resource = "v1/pods", reconcil = print }\n',
      "main.lua:2: kube.controller has no option 'reconcil' (did you mean 'reconcile'?)\n         2 | kube")
  end)

  it("shows all that is wrong with what it declares", function()
    assert.equal([[
main.lua: does not load
  main.lua:1: kube.controller has no option 'reconcil' (did you mean 'reconcile'?); kube.controller: option 'workers' ]]
.. [[must be a number, not a string
         1 | kube.controller { resource = "v1/pods", reconcil = print, workers = "2" }
  main.lua:2: every: timer 'a': interval must be a number of seconds above 0, not -1
         2 | kube.every { name = "a", interval = -1, run = print }
  main.lua:3: leader_election has no option 'nam' (did you mean 'name'?)
         3 | kube.leader_election { nam = "x" }
  main.lua:4: and this
         4 | error("and this")
]], refused [[
kube.controller { resource = "v1/pods", reconcil = print, workers = "2" }
kube.every { name = "a", interval = -1, run = print }
kube.leader_election { nam = "x" }
error("and this")
]])
  end)

  it("leaves to the script what it catches itself", function()
    has(checked [[
      assert(not pcall(kube.controller, { resource = "v1/pods" }))
      assert(not coroutine.resume(coroutine.create(function() kube.controller { resource = "v1/pods" } end)))
      kube.controller { resource = "v1/pods", reconcile = print }
    ]], "controller pods")
  end)

  it("shows the line of a loop that does not end", function()
    has(refused "local n = 0\nwhile true do\n  n = n + 1\nend\n", "loading took longer than")
  end)

  it("shows an attempt to act while it loads", function()
    has(refused 'require("kube").client:get("v1/pods", "a/b")', "client:get cannot be used while the script loads")
  end)

  it("shows errors that are no text", function()
    has(refused "error({})", "(an error value of type table)")
  end)

  it("does not take a script for good that declares nothing", function()
    has(refused "local x = 1", "main.lua declares nothing: no kube.controller, no informer, no timer, no task")
    has(refused 'local kube = require "kube"', "main.lua declares nothing")
  end)

  it("says that there is no such file", function()
    local out, _, code = moonwatch("check", "/nonexistent.lua")
    assert.equal(1, code)
    has(out, "/nonexistent.lua: does not load\n  cannot open /nonexistent.lua: No such file")
  end)
end)

describe("the arguments of moonwatch check and rbac", function()
  it("are looked at", function()
    local cases = {
      { "moonwatch: which scripts? See moonwatch help check", "check" },
      { "moonwatch: which scripts? See moonwatch help rbac", "rbac", "--name", "x" },
      { "moonwatch: unknown option '--nam'; did you mean '--name'?", "rbac", "--nam", "x", "a.lua" },
      { "moonwatch: unknown output format 'yml': use yaml or json", "rbac", "-o", "yml", "a.lua" },
      { "moonwatch: unknown output format 'yaml': use text or json", "check", "-o", "yaml", "a.lua" },
      { "moonwatch: a role cannot have the name A b; see moonwatch help rbac", "rbac", "--name", "A b", "a.lua" },
      { "moonwatch: unknown command 'chek'; did you mean 'check'?", "chek" },
    }
    for _, case in ipairs(cases) do
      local out, err, code = moonwatch(unpack(case, 2))
      assert.equal(case[1] .. "\n", err)
      assert.equal("", out)
      assert.equal(2, code)
    end
    for _, command in ipairs { "check", "rbac" } do
      local out, _, code = moonwatch("help", command)
      assert.equal(0, code)
      has(out, "Usage: moonwatch " .. command .. " SCRIPT... [options]")
    end
  end)
end)
