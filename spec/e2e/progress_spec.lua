-- How the initial sync shows: a line that is redrawn on a terminal, a line of JSON per cache elsewhere.
local cjson = require "cjson"
local cleanup = require "spec.support.cleanup"
local pod = require "spec.support.pod"
local rig = require "spec.support.script_rig"
local run = require "spec.support.run"
local script_server = require "spec.support.script_server"
local terminal = require "spec.support.terminal"
local uv = require "luv"
local wait = require "spec.support.wait"

local SCRIPT = [[
local kube = require "kube"
local stop = kube.stop_channel()
local factory = kube.shared_informer_factory { streaming = false }
factory:core():v1():pods():informer()
factory:core():v1():services():informer()
kube.background("clock", function()
  for tick = 1, math.huge do
    kube.log.info("tick", { n = tick })
    kube.sleep(0.05)
  end
end)
factory:start(stop)
factory:wait_for_cache_sync(stop)
kube.log.info("all is there")
stop:wait()
]]

-- A server whose lists come as the spec sends them: send("pods", text), and finish("pods").
local function slow_server()
  local http = script_server.new(function(request)
    if request.query.watch then return { chunks = {}, open = true } end
    local name = request.path:match("[^/]+$")
    return { chunks = { ('{"kind":"%s","apiVersion":"v1","metadata":{"resourceVersion":"100"},"items":['):format(
      name == "pods" and "PodList" or "ServiceList") }, open = true }
  end)
  cleanup.later(function() http:close() end)
  local server = {}
  function server.url() return http:url() end
  local function stream_of(name)
    local found
    assert(wait(function()
      for _, stream in ipairs(http.streams) do
        local is_list = not stream.request.query.watch
        if is_list and stream.request.path:match("[^/]+$") == name then found = stream end
      end
      return found
    end, 10), "nobody has asked for " .. name)
    return found
  end
  function server.send(name, text) stream_of(name):send(text) end
  function server.finish(name)
    server.send(name, "]}")
    stream_of(name):finish()
  end
  return server
end

local function item(name) return pod(name, 7, { ns = "default" }) end

describe("the initial sync", function()
  cleanup.install()
  local server
  before_each(function() server = slow_server() end)

  it("shows how far it is at the bottom of a terminal, and nothing when it is over", function()
    local path = os.tmpname()
    cleanup.later(function() os.remove(path) end)
    local file = assert(io.open(path, "w"))
    file:write(SCRIPT)
    file:close()
    local screen = terminal.open(150, 40, ("%s run %s --kubeconfig %s"):format(uv.fs_realpath(run.binary), path,
      rig.kubeconfig(server.url())), { MOONWATCH_LEAK_CHECK = "1" })
    -- What is shown once the last line is this one; logs go on above it, and it is there once.
    local function wait_progress(line)
      local shown = screen:wait("\n" .. line .. "\n*$")
      assert.matches("info +tick n=%d+", screen:wait("tick n=%d+[^\n]*\n" .. line .. "\n*$"))
      assert.are.equal(1, select(2, shown:gsub("syncing ", "")), shown)
      return shown
    end
    local shown = wait_progress("syncing v1/pods 0 objects, v1/services 0 objects")
    assert.is_nil(shown:find("synced", 1, true))
    server.send("pods", item("a"))
    wait_progress("syncing v1/pods 1 objects, v1/services 0 objects")
    server.send("pods", "," .. item("b") .. "," .. item("c"))
    server.send("services", item("s"))
    wait_progress("syncing v1/pods 3 objects, v1/services 1 objects")
    server.finish("pods")
    shown = wait_progress("syncing v1/services 1 objects")
    assert.matches("info +synced resource=v1/pods objects=3 seconds=", shown)
    server.finish("services")
    screen:wait("info +synced resource=v1/services objects=1 seconds=[^\n]*\n.*all is there")
    screen:wait("tick n=%d+[^\n]*\n*$")
    assert.is_nil(screen:wait("all is there.*tick n=%d+[^\n]*\n*$"):find("syncing", 1, true))
    screen:press("C-c")
    screen:wait("left with 0")
  end)

  it("is told in JSON where there is no terminal, once per cache", function()
    local proc = rig.start(server, SCRIPT)
    proc:wait_stderr('"msg":"tick","n":3')
    server.send("services", item("s"))
    server.finish("services")
    proc:wait_stderr('"msg":"synced"')
    server.send("pods", item("a") .. "," .. item("b"))
    server.finish("pods")
    proc:wait_stderr('"all is there"')
    proc:wait_stderr('"all is there".*"tick"')
    local _, log = rig.stop(proc)
    local synced = {}
    for line in log:gmatch("[^\n]+") do
      local fields = cjson.decode(line)
      if fields.msg == "synced" then
        assert.are.equal("info", fields.level)
        assert.is_true(fields.seconds > 0)
        synced[#synced + 1] = fields.resource .. " " .. fields.objects
      end
    end
    assert.are.same({ "v1/services 1", "v1/pods 2" }, synced)
    assert.is_nil(log:find("syncing", 1, true))
    assert.is_nil(log:find("[\r\27]"))
    assert.are.equal("", proc.stdout)
  end)
end)
