-- What others see of a running script: /metrics, the probes, the log level.
local cjson = require "cjson"
local cleanup = require "spec.support.cleanup"
local exposition = require "spec.support.exposition"
local http_client = require "spec.support.http_client"
local rig = require "spec.support.script_rig"
local run = require "spec.support.run"
local scrape = require "spec.support.scrape"
local uv = require "luv"

local idle = "kube.informer('v1/pods')"

local function start(server, source, args)
  local all = { unpack(scrape.args) }
  for _, arg in ipairs(args or {}) do all[#all + 1] = arg end
  local proc = rig.start(server, source, { args = all })
  return proc, scrape.of(proc)
end

local function says(seen, path, status, body)
  local got, text = seen:get(path)
  assert.are.same({ status, body }, { got, text })
end

describe("the metrics listener", function()
  cleanup.install()

  it("is not there unless it is asked for", function()
    local proc = rig.start(rig.pods { a = {} }, idle)
    proc:wait_stderr("synced", 10)
    rig.stop(proc)
    assert.is_nil(proc.stderr:find("serving metrics", 1, true))
  end)

  it("answers probes whoever else only connects, and begins to ask", function()
    local proc, seen = start(rig.pods { a = {} }, idle)
    local host, port = seen.address:match("^(.*):(%d+)$")
    for i = 1, 70 do
      local socket, connected = uv.new_tcp(), false
      cleanup.later(function() socket:close() end)
      socket:connect(host, tonumber(port), function(err) connected = assert(not err, err) end)
      while not connected do uv.run("once") end
      if i % 2 == 0 then socket:write("GET ") end
    end
    says(seen, "/healthz", 200, "ok")
    rig.stop(proc)
  end)

  it("serves metrics of the process in Prometheus' text format", function()
    local proc, seen = start(rig.pods { a = {} }, idle)
    seen:wait_status(200, "/readyz")
    local status, body, headers = seen:get("/metrics")
    assert.are.equal(200, status)
    assert.are.equal("text/plain; version=0.0.4; charset=utf-8", headers["content-type"][1])
    local families = exposition.parse(body)
    local function value(name, labels) return exposition.value(families, name, labels) end
    assert.is_true(math.abs(value("process_start_time_seconds") - os.time()) < 60)
    assert.is_true(value("process_resident_memory_bytes") > 2e6)
    assert.is_true(value("process_virtual_memory_bytes") >= value("process_resident_memory_bytes"))
    assert.is_true(value("process_open_fds") >= 5 and value("process_open_fds") < value("process_max_fds"))
    assert.is_true(value("process_cpu_seconds_total") > 0)
    local script = families.moonwatch_bundle_info.samples[1].labels.script
    assert.is_true(value("moonwatch_lua_memory_bytes", { script = script }) > 1e5)
    assert.are.equal(64 * 1024 * 1024, value("moonwatch_lua_memory_limit_bytes", { script = script }))
    assert.are.equal(0, value("moonwatch_lua_memory_limit_hits_total", { script = script }))
    assert.is_true(value("moonwatch_http_requests_total") >= 1)
    assert.is_true(value("moonwatch_http_connections_total") >= 1)
    local build = families.moonwatch_build_info.samples[1]
    assert.are.equal("moonwatch " .. build.labels.version .. "\n",
      run.run_command({ "version" }).stdout)
    assert.is_truthy(build.labels.lua:find("LuaJIT", 1, true))
    rig.stop(proc)
  end)

  it("knows its paths and methods, and refuses the rest", function()
    local proc, seen = start(rig.pods { a = {} }, idle)
    assert.are.equal(404, (seen:get("/")))
    assert.are.equal(404, (seen:get("/metrics/")))
    local status, _, headers = seen:request("POST", "/metrics", "x")
    assert.are.equal(405, status)
    assert.are.equal("GET, HEAD", headers.allow[1])
    status = seen:request("DELETE", "/debug/loglevel")
    assert.are.equal(405, status)
    local body
    status, body = seen:request("HEAD", "/metrics")
    assert.are.same({ 200, "" }, { status, body })
    rig.stop(proc)
  end)

  it("names an address that it cannot have, and nothing runs then", function()
    local server = rig.pods { a = {} }
    local proc, seen = start(server, idle)
    local other = rig.start(server, "print('ran')", { args = { "--metrics-listen", seen.address } })
    assert.are.equal(1, other:wait_exit(10))
    assert.are.equal("", other.stdout)
    assert.is_truthy(other.stderr:find(
      "cannot serve metrics: cannot listen on 127.0.0.1 port %d+: Address already in use"), other.stderr)
    rig.stop(proc)
    for _, address in ipairs { "localhost:1", "127.0.0.1", "127.0.0.1:70000", "::1:80" } do
      local result = run.run_command({ "run", "x.lua", "--metrics-listen", address })
      assert.are.equal(2, result.code)
      assert.is_truthy(result.stderr:find("--metrics-listen takes a numeric ADDRESS:PORT", 1, true), result.stderr)
    end
  end)

  it("sets the log level of the running process", function()
    local proc, seen = start(rig.pods { a = {} }, [[
      kube.informer("v1/pods"):add_event_handler { on_add = function(pod)
        kube.log.debug("debug of " .. pod.metadata.name)
        print(pod.metadata.name)
      end }
    ]])
    proc:wait_line("^a$", 10)
    says(seen, "/debug/loglevel", 200, "info\n")
    assert.are.equal(400, (seen:request("PUT", "/debug/loglevel", "loud")))
    local status, body = seen:request("PUT", "/debug/loglevel", "debug\n")
    assert.are.same({ 200, "debug\n" }, { status, body })
    rig.stop(proc)
    assert.is_nil(proc.stderr:find("debug of a", 1, true))
    local level
    for line in proc.stderr:gmatch("[^\n]+") do
      local fields = cjson.decode(line)
      if fields.msg == "log level set" then level = fields.level end
    end
    assert.is_not_nil(level)
  end)
end)

describe("a probe", function()
  cleanup.install()

  it("of readiness fails until informers have synced, and says which has not", function()
    local server = rig.pods { a = {} }
    server:fail("stream", { chunks = {}, open = true })
    local proc, seen = start(server, idle)
    local body = seen:wait_status(503, "/readyz")
    assert.is_truthy(body:find("[+]script ok\n", 1, true), body)
    body = select(2, seen:wait(function() return seen:get("/readyz") end,
      function(_, text) return text:find("v1/pods has not synced yet", 1, true) end, "the reason"))
    assert.is_truthy(body:find("[-]informers failed: v1/pods has not synced yet\n[+]shutdown ok\nreadyz check failed\n",
      1, true), body)
    says(seen, "/healthz", 200, "ok")
    assert.is_true(http_client.wait(function() return server:open_watches() == 1 end, 10))
    server:cut()
    assert.are.equal("ok", seen:wait_status(200, "/readyz"))
    says(seen, "/readyz?verbose", 200, "[+]script ok\n[+]informers ok\n[+]shutdown ok\nreadyz check passed\n")
    rig.stop(proc)
  end)

  it("of readiness waits for handlers to have got the initial list", function()
    local server = rig.pods { a = {} }
    local proc, seen = start(server, [[
      local pods = kube.informer("v1/pods")
      local open = false
      pods:add_event_handler { name = "slow", on_add = function(pod)
        if pod.metadata.name == "a" then eventually(function() return open end) end
      end }
      kube.wait_for_cache_sync(nil, pods)
      print("synced")
      eventually(function() return pods:get_indexer():get("default/b") end)
      open = true
    ]])
    proc:wait_line("synced", 10)
    local _, body = seen:wait(function() return seen:get("/readyz") end,
      function(_, text) return text:find("initial list", 1, true) end, "the reason")
    assert.are.equal(503, _)
    assert.is_truthy(body:find("a handler of v1/pods (slow) has not got the initial list yet", 1, true), body)
    server:put("b")
    seen:wait_status(200, "/readyz")
    rig.stop(proc)
  end)

  it("of readiness fails while the process shuts down, that of health does not", function()
    local proc, seen = start(rig.pods { a = {} }, [[
      kube.informer("v1/pods")
      kube.background("last words", function()
        if not pcall(kube.sleep, 60) then
          local over = os.clock() + 0.3
          repeat until os.clock() > over
        end
      end)
    ]])
    seen:wait_status(200, "/readyz")
    proc:kill("sigterm")
    local body = seen:wait_status(503, "/readyz")
    assert.is_truthy(body:find("[-]shutdown failed: shutting down\n", 1, true), body)
    assert.are.equal(200, (seen:get("/healthz")))
    rig.finish(proc)
  end)

  it("has the check of a leader election, when the script takes part in one", function()
    local args = { "--sandbox", unpack(scrape.args) }
    local proc = run.start_script([[
      local kube = require "kube"
      kube.leader_election { name = "web", namespace = "default" }
      kube.informer("v1/configmaps")
    ]], { args = args })
    cleanup.later(function() proc:kill("sigkill") end)
    local seen = scrape.of(proc)
    seen:wait_status(200, "/readyz")
    says(seen, "/readyz?verbose", 200,
      "[+]script ok\n[+]informers ok\n[+]shutdown ok\n[+]leader-election ok\nreadyz check passed\n")
    says(seen, "/healthz?verbose", 200, "[+]script ok\n[+]leader-election ok\nhealthz check passed\n")
    seen:wait_value(1, "leader_election_master_status", { name = "web" })
    rig.stop(proc)
  end)

  it("answers while a script computes", function()
    local proc, seen = start(rig.pods { a = {} }, [[
      kube.informer("v1/pods"):add_event_handler { on_add = function()
        print("busy")
        while true do end
      end }
    ]])
    proc:wait_line("busy", 10)
    says(seen, "/healthz", 200, "ok")
    says(seen, "/livez?verbose=1", 200, "[+]script ok\nlivez check passed\n")
    seen:metrics()
    assert.is_nil(proc.stderr:find("cpu budget exceeded", 1, true))
    proc:wait_stderr("cpu budget exceeded", 10)
    rig.stop(proc)
  end)

  it("of health fails when the script never returns to its loop", function()
    local proc, seen = start(rig.pods { a = {} }, [[
      kube.jit "on"
      kube.sleep(0)
      print("busy")
      while true do end
    ]])
    proc:wait_line("busy", 10)
    assert.are.equal(200, (seen:get("/healthz")))
    local body = seen:wait_status(500, "/healthz")
    assert.is_truthy(body:find("^%[%-%]script failed: the script has kept its thread busy for %d+ s\n"), body)
    proc:kill("sigkill")
  end)
end)

describe("the metrics of an informer", function()
  cleanup.install()

  local name = { name = "v1/pods" }

  it("follow its store, its requests and its handlers", function()
    local server = rig.pods { a = {}, b = {} }
    local proc, seen = start(server, [[
      local pods = kube.informer("v1/pods")
      pods:add_event_handler { name = "counter", on_add = function() end, on_delete = function() end }
      kube.wait_for_cache_sync(nil, pods)
    ]])
    local handler = { name = "v1/pods", handler = "counter" }
    seen:wait_value(2, "moonwatch_handler_delivered_total", handler)
    server:put("c")
    local last = server:remove("a")
    seen:wait_value(4, "moonwatch_handler_delivered_total", handler)
    seen:wait_value(last, "informer_store_resource_version",
      { name = "v1/pods", group = "", version = "v1", resource = "pods" })
    local families = seen:metrics()
    local function value(family, labels) return exposition.value(families, family, labels or name) end
    assert.are.equal(2, value("moonwatch_informer_objects"))
    assert.is_true(value("moonwatch_informer_store_bytes") > 100)
    assert.are.equal(1, value("moonwatch_informer_synced"))
    assert.are.equal(last, value("reflector_last_resource_version"))
    assert.are.equal(1, value("reflector_watches_total"))
    assert.are.equal(0, value("reflector_lists_total"))
    assert.are.equal(1, value("reflector_list_duration_seconds_count"))
    assert.are.equal(2, value("reflector_items_per_list_sum"))
    assert.are.equal(0, value("reflector_watch_duration_seconds_count"))
    assert.are.equal(0, value("moonwatch_informer_errors_total"))
    assert.are.equal(0, value("moonwatch_handler_pending", handler))
    local whole = { name = "v1/pods", group = "", version = "v1", resource = "pods" }
    assert.are.equal(0, value("informer_queued_items", whole))
    -- The snapshot and two events.
    assert.are.equal(3, value("informer_processing_latency_seconds_count", whole))
    -- A watch that ends is one that lasted; the next one goes on.
    server:cut()
    seen:wait_value(1, "reflector_watch_duration_seconds_count", name)
    seen:wait_value(2, "reflector_watches_total", name)
    assert.are.equal(2, exposition.value(seen:metrics(), "reflector_items_per_watch_sum", name))
    rig.stop(proc)
  end)

  it("count what fails", function()
    local server = rig.pods { a = {} }
    server:fail("stream", { status = 500, body = "no" })
    server:fail("list", { status = 500, body = "no" })
    local proc, seen = start(server, idle)
    seen:wait_value(2, "moonwatch_informer_errors_total", name)
    seen:wait_value(1, "reflector_lists_total", name)
    seen:wait_value(1, "moonwatch_informer_synced", name)
    rig.stop(proc)
  end)

  it("tell informers of one resource apart, and go with the informer or the handler", function()
    local server = rig.pods { a = {}, b = { ns = "other" } }
    local proc, seen = start(server, [[
      local stop = kube.stop_channel()
      local function informer(namespace)
        local factory = kube.shared_informer_factory { namespace = namespace }
        local inf = factory:core():v1():pods():informer()
        return factory, inf
      end
      kube.informer("v1/pods")
      local one, first = informer("default")
      local two = informer("default")
      local registration = first:add_event_handler { name = "h", on_add = function() end }
      one:start() two:start(stop)
      kube.sleep(0)
      two:wait_for_cache_sync()
      eventually(function() return registration:has_synced() end)
      print("synced")
      eventually(function() return first:get_indexer():get("default/go") end)
      registration:remove()
      stop:close()
      print("stopped")
    ]])
    local function objects(labels) return exposition.value(seen:metrics(), "moonwatch_informer_objects", labels) end
    proc:wait_line("synced", 10)
    seen:wait_value(1, "moonwatch_informer_objects", { name = "v1/pods in default" })
    seen:wait_value(1, "moonwatch_informer_objects", { name = "v1/pods in default #2" })
    seen:wait_value(2, "moonwatch_informer_objects", { name = "v1/pods" })
    seen:wait_value(1, "moonwatch_handler_delivered_total", { name = "v1/pods in default", handler = "h" })
    server:put("go")
    proc:wait_line("stopped", 10)
    seen:wait(function() return objects { name = "v1/pods in default #2" } end,
      function(value) return value == nil end, "the end of the second")
    seen:wait(function() return seen:metrics().moonwatch_handler_pending end,
      function(family) return family == nil end, "the end of the handler")
    assert.are.equal(2, objects { name = "v1/pods in default" })
    rig.stop(proc)
  end)

  it("and all others are listed in README.md, and what is listed there exists", function()
    local proc = run.start_script([[
      local kube = require "kube"
      kube.leader_election { name = "web", namespace = "default" }
      kube.informer("v1/configmaps"):add_event_handler { on_add = function() end }
      local queue = kube.workqueue { name = "web" }
      kube.controller { resource = "v1/services", reconcile = function() end }
      kube.sleep(0)
      kube.request { path = "/version" }
      queue:add("a")
      queue:done((queue:get()))
    ]], { args = { "--sandbox", unpack(scrape.args) } })
    cleanup.later(function() proc:kill("sigkill") end)
    local seen = scrape.of(proc)
    local families = seen:wait(function() return seen:metrics() end, function(got)
      return got.moonwatch_handler_pending and got.rest_client_requests_total and got.moonwatch_events_total
        and got.controller_runtime_active_workers and got.workqueue_adds_total
    end, "everybody's metrics")
    local exists, listed = {}, {}
    for _, family in ipairs(families) do exists[family] = true end
    local file = assert(io.open("README.md"))
    local section = file:read("*a"):match("\n## Watching it\n(.-)\n## ")
    file:close()
    for family in section:gmatch("`(%l+_[%l_]+)`") do listed[family] = true end
    assert.are.same(exists, listed)
    rig.stop(proc)
  end)
end)

describe("the metrics of a script", function()
  cleanup.install()

  it("count its slices, its tasks and what the watchdog stops", function()
    local proc, seen = start(rig.pods { a = {} }, [[
      kube.informer("v1/pods"):add_event_handler { on_add = function() while true do end end }
      for i = 1, 3 do kube.background("sleeper", function() kube.sleep(1000) end) end
    ]])
    seen:wait_value(1, "moonwatch_lua_watchdog_total")
    local families = seen:metrics()
    seen:wait_value(3, "moonwatch_tasks", { script = families.moonwatch_bundle_info.samples[1].labels.script })
    families = seen:metrics()
    assert.is_true(exposition.value(families, "moonwatch_lua_slice_seconds_sum") >= 1)
    assert.are.equal(1, exposition.value(families, "moonwatch_lua_slice_seconds_count")
      - exposition.value(families, "moonwatch_lua_slice_seconds_bucket", { le = "0.5" }))
    rig.stop(proc)
  end)
end)
