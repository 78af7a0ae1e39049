-- Every example runs as it is, without a cluster: what it prints is what its reader was promised.
local cjson = require "cjson"
local cleanup = require "spec.support.cleanup"
local http_client = require "spec.support.http_client"
local rig = require "spec.support.script_rig"
local sandboxes = require "spec.support.sandbox"
local uv = require "luv"

local function object(api_version, kind, name, rv, rest)
  return ('{"apiVersion":"%s","kind":"%s","metadata":{"name":"%s","namespace":"default",' ..
    '"uid":"uid-%s","resourceVersion":"%d"%s}%s}'):format(api_version, kind, name, name, rv,
    rest.metadata or "", rest.more or "")
end

local function service(name, rv, kind, ip)
  return object("v1", "Service", name, rv,
    { more = (',"spec":{"type":"%s","clusterIP":"%s"}'):format(kind, ip) })
end

local function pod(name, rv, node, phase, labels)
  return object("v1", "Pod", name, rv, { metadata = labels and (',"labels":%s'):format(labels) or "",
    more = (',"spec":{"nodeName":"%s"},"status":{"phase":"%s"}'):format(node, phase) })
end

local function web(name, rv, generation, image)
  return object("example.com/v1", "Web", name, rv, { metadata = (',"generation":%d'):format(generation),
    more = (',"spec":{"image":"%s"}'):format(image) })
end

local tested = {}

local function start(name, server, args)
  tested[name] = true
  return rig.start(server, ("examples/%s.lua"):format(name), { args = args })
end

describe("the example", function()
  cleanup.install()

  it("services says what is added, updated and deleted", function()
    local server = rig.objects { service("web", 1, "ClusterIP", "10.0.0.1") }
    local proc = start("services", server)
    proc:wait_line("^added\tdefault/web\t10%.0%.0%.1$")
    server:send("ADDED", service("db", 101, "ClusterIP", "10.0.0.2"))
    proc:wait_line("^added\tdefault/db\t10%.0%.0%.2$")
    server:send("MODIFIED", service("web", 102, "LoadBalancer", "10.0.0.1"))
    proc:wait_line("^updated\tdefault/web\tLoadBalancer$")
    server:send("DELETED", service("db", 103, "ClusterIP", "10.0.0.2"))
    proc:wait_line("^deleted\tdefault/db$")
    rig.stop(proc)
    assert.are.equal("/api/v1/services", server.http.requests[1].path)
  end)

  it("pods counts its cache, then tells new pods, phases and ends", function()
    local server = rig.objects { pod("a", 1, "n1", "Running", '{"app":"shop"}'),
      pod("b", 2, "n1", "Pending") }
    local proc = start("pods", server, { "-n", "default" })
    proc:wait_line("^2 pods in the cache$")
    proc:wait_line("^labelled\tdefault/a\tshop$")
    server:send("ADDED", pod("c", 101, "n2", "Pending"))
    proc:wait_line("^new pod\tdefault/c$")
    server:send("MODIFIED", pod("b", 102, "n1", "Pending", '{"tier":"x"}'))
    server:send("MODIFIED", pod("b", 103, "n1", "Running"))
    proc:wait_line("^phase\tdefault/b\tPending\tRunning$")
    server:send("DELETED", pod("a", 104, "n1", "Running"))
    proc:wait_line("^gone\tdefault/a$")
    rig.stop(proc)
    assert.are.equal("/api/v1/namespaces/default/pods", server.http.requests[1].path)
    local _, printed = proc.stdout:gsub("\n", "")
    assert.are.equal(5, printed, proc.stdout)
  end)

  it("pods_per_node keeps count by an index", function()
    local server = rig.objects { pod("a", 1, "n1", "Running"), pod("b", 2, "n2", "Running"),
      pod("c", 3, "n1", "Running") }
    local proc = start("pods_per_node", server)
    proc:wait_line("^n1\t2$")
    proc:wait_line("^n2\t1$")
    server:send("ADDED", pod("d", 101, "n2", "Running"))
    proc:wait_line("^n2\t2$")
    server:send("DELETED", pod("a", 102, "n1", "Running"))
    proc:wait_line("^n1\t1$")
    rig.stop(proc)
  end)

  it("nodes looks at a node once for all that happened to it", function()
    local server = rig.objects { pod("a", 1, "n1", "Running"), pod("b", 2, "n2", "Running"),
      pod("c", 3, "n1", "Running") }
    local proc = start("nodes", server)
    proc:wait_line("^n1\t2\ta pod came$")
    proc:wait_line("^n2\t1\ta pod came$")
    server:send("ADDED", object("v1", "Pod", "d", 101, { more = ',"spec":{}' }))
    server:send("MODIFIED", pod("d", 102, "n2", "Running"))
    proc:wait_line("^n2\t2\ta pod was placed$")
    server:send("DELETED", pod("a", 103, "n1", "Running"))
    proc:wait_line("^n1\t1\ta pod went$")
    rig.stop(proc)
    assert.are.equal(4, select(2, proc.stdout:gsub("\n", "")), proc.stdout)
  end)

  it("shelves draws a node when a pod comes, begins to leave, or is gone", function()
    local leaving = { metadata = ',"deletionTimestamp":"2026-01-02T03:04:05Z"',
      more = ',"spec":{"nodeName":"n1"},"status":{}' }
    local server = rig.objects { pod("b", 1, "n1", "Running") }
    local proc = start("shelves", server)
    proc:wait_line("^n1 +%[b%]$")
    server:send("ADDED", pod("a", 101, "n1", "Pending"))
    proc:wait_line("^n1 +%[a%] %[b%]$")
    server:send("MODIFIED", pod("a", 102, "n1", "Running"))
    server:send("MODIFIED", object("v1", "Pod", "a", 103, leaving))
    proc:wait_line("^n1 +%(a%) %[b%]$")
    server:send("DELETED", object("v1", "Pod", "a", 104, leaving))
    proc:wait_line("^n1 +%[b%]$")
    server:send("ADDED", object("v1", "Pod", "c", 105, { more = ',"spec":{}' }))
    server:send("DELETED", pod("b", 106, "n1", "Running"))
    proc:wait_line("^n1 +empty$")
    rig.stop(proc)
    assert.are.equal(5, select(2, proc.stdout:gsub("\n", "")), proc.stdout)
  end)

  it("custom_resource waits for the definition, then follows the objects", function()
    local server = rig.objects { web("shop", 1, 1, "shop:1") }
    server.missing = { status = 404, body = "404 page not found" }
    local proc = start("custom_resource", server)
    proc:wait_stderr('"msg":"not yet"')
    server.missing = nil
    proc:wait_line("^web\tdefault/shop\tshop:1$")
    server:send("MODIFIED", web("shop", 101, 1, "shop:1"))
    server:send("MODIFIED", web("shop", 102, 2, "shop:2"))
    proc:wait_line("^changed\tdefault/shop\tshop:1\tshop:2$")
    server:send("DELETED", web("shop", 103, 2, "shop:2"))
    proc:wait_line("^removed\tdefault/shop$")
    server:send("ADDED", object("example.com/v1", "Web", "empty", 104, {}))
    proc:wait_line("^web\tdefault/empty\tnil$")
    rig.stop(proc)
    assert.are.equal("/apis/example.com/v1/webs", server.http.requests[1].path)
  end)

  it("greeter greets every namespace, and again when a greeting was lost or spoilt", function()
    local sandbox = sandboxes.start()
    cleanup.later(function() sandbox:stop() end)
    local function of(namespace) return ("/api/v1/namespaces/%s/configmaps"):format(namespace) end
    local function greeting(namespace)
      for _, item in ipairs(cjson.decode(sandbox:ask("GET", of(namespace))).items) do
        if item.metadata.name == "greeting" then return item end
      end
    end
    local function greets(namespace, other_than)
      local deadline = uv.hrtime() + 20e9
      repeat
        local found = greeting(namespace)
        if found and found.data.hello == namespace and found.metadata.uid ~= other_than then return found.metadata end
        http_client.wait(function() return false end, 0.02)
      until uv.hrtime() > deadline
      error("no greeting in " .. namespace, 2)
    end
    tested.greeter = true
    local proc = rig.start(nil, "examples/greeter.lua", { kubeconfig = sandbox.kubeconfig })
    greets("default")
    sandbox:ask("POST", "/api/v1/namespaces", '{"metadata":{"name":"shop"}}')
    local made = greets("shop")
    local owner = made.ownerReferences[1]
    assert.are.same({ "Namespace", "shop", true }, { owner.kind, owner.name, owner.controller })
    sandbox:ask("DELETE", of "shop" .. "/greeting")
    greets("shop", made.uid)
    sandbox:ask("PUT", of "default" .. "/greeting",
      '{"metadata":{"name":"greeting"},"data":{"hello":"nobody"}}')
    greets("default")
    rig.stop(proc)
  end)
end)

describe("the examples", function()
  -- Those beside them are run by user_test_spec.lua.
  it("all have a spec above, or beside them", function()
    local missing = {}
    local function look(directory)
      for name, kind in uv.fs_scandir_next, assert(uv.fs_scandir(directory)) do
        local path = directory .. "/" .. name
        local example = path:match("^examples/(.+)%.lua$")
        if kind == "directory" then
          look(path)
        elseif example and not example:find("_spec$") and not tested[example]
          and not uv.fs_stat("examples/" .. example .. "_spec.lua") then
          missing[#missing + 1] = path
        end
      end
    end
    look("examples")
    assert.are.same({}, missing)
  end)
end)
