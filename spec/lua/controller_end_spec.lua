-- What becomes of a controller's keys when its process is asked to stop, and what it tells of itself.
local cleanup = require "spec.support.cleanup"
local http_client = require "spec.support.http_client"
local run = require "spec.support.run"
local sandbox = require "spec.support.sandbox"

-- A controller whose runs take a while, and the ConfigMaps that it works on.
local script = [[
  local kube = require "kube"
  kube.controller {
    name = "slow", resource = "v1/configmaps", workers = 2, predicate = { path = "data.seconds" },
    reconcile = function(ctx, object)
      print("begin", ctx.name)
      kube.sleep(tonumber(object.data.seconds))
      print("end", ctx.name)
    end,
  }
]]

local function start(count, seconds, args)
  local box = sandbox.start { args = { "--plain-http" } }
  cleanup.later(function() box:stop() end)
  for i = 1, count do
    box:ask("POST", "/api/v1/namespaces/default/configmaps",
      ('{"metadata":{"name":"c%d"},"data":{"seconds":"%g"}}'):format(i, seconds))
  end
  local proc = run.start_script(script, { kubeconfig = box.kubeconfig, args = args })
  cleanup.later(function() proc:kill("sigkill") end)
  proc:wait_line("^begin", 10)
  return proc
end

local function count(text, pattern) return select(2, text:gsub(pattern, "")) end

describe("at the end of its process a controller", function()
  cleanup.install()

  it("works off what is queued, and leaves with code 0", function()
    local proc = start(12, 0.1)
    proc:kill("sigterm")
    assert.are.equal(0, proc:wait_exit(10), proc.stderr)
    assert.are.equal(12, count(proc.stdout, "end\tc%d+"))
  end)

  it("says what it left undone when the time was not enough, and leaves with code 5", function()
    local proc = start(12, 1, { "--shutdown-timeout", "0.3" })
    proc:kill("sigterm")
    assert.are.equal(5, proc:wait_exit(15), proc.stderr)
    assert.is_truthy(proc.stderr:find("controller slow, key default/c%d+, attempt 1"), proc.stderr)
    assert.is_truthy(proc.stderr:find("controller slow: %d+ keys"), proc.stderr)
  end)

  it("ends at once at a second signal", function()
    local proc = start(4, 30)
    proc:kill("sigterm")
    proc:wait_stderr("shutting down")
    run.sh("sleep 0.2")
    proc:kill("sigterm")
    assert.are.equal(130, proc:wait_exit(5))
  end)
end)

describe("the metrics of a controller", function()
  cleanup.install()

  it("are there at 0 from the start, and count what its runs come to", function()
    local box = sandbox.start { args = { "--plain-http" } }
    cleanup.later(function() box:stop() end)
    local proc = run.start_script([[
      local kube = require "kube"
      kube.controller {
        name = "counted", resource = "v1/configmaps", predicate = { path = "data.v" }, timeout = 0.1,
        retry = { base = 0.001, attempts = 2 }, workers = 3,
        reconcile = function(ctx, object)
          local v = object.data.v
          if v == "fail" then error("no") end
          if v == "never" then error(kube.terminal("no")) end
          if v == "later" then return { requeue_after = 60 } end
          if v == "slow" then kube.sleep(5) end
          print("done", ctx.name)
        end,
      }
    ]], { kubeconfig = box.kubeconfig, args = { "--metrics-listen", "127.0.0.1:0" } })
    cleanup.later(function() proc:kill("sigkill") end)
    proc:wait_stderr("127%.0%.0%.1:%d+")
    local port = proc.stderr:match("127%.0%.0%.1:(%d+)")
    local client = http_client.new { url = "http://127.0.0.1:" .. port }
    cleanup.later(function() client:close() end)
    local function value(name)
      local body = client:request({ method = "GET", path = "/metrics" }).body
      return tonumber(body:match("\n" .. name:gsub("[%{%}%-]", "%%%0") .. " (%S+)"))
    end
    local function becomes(wanted, name)
      local got
      for _ = 1, 200 do
        got = value(name)
        if got == wanted then return end
        run.sh("sleep 0.02")
      end
      error(("%s: wanted %s, got %s"):format(name, tostring(wanted), tostring(got)), 2)
    end
    becomes(0, 'controller_runtime_reconcile_total{controller="counted",result="success"}')
    becomes(0, 'controller_runtime_reconcile_panics_total{controller="counted"}')
    becomes(3, 'controller_runtime_max_concurrent_reconciles{controller="counted"}')
    for _, v in ipairs { "ok", "fail", "never", "later", "slow" } do
      box:ask("POST", "/api/v1/namespaces/default/configmaps",
        ('{"metadata":{"name":"%s"},"data":{"v":"%s"}}'):format(v, v))
    end
    becomes(1, 'controller_runtime_reconcile_total{controller="counted",result="success"}')
    becomes(1, 'controller_runtime_reconcile_total{controller="counted",result="requeue_after"}')
    becomes(5, 'controller_runtime_reconcile_total{controller="counted",result="error"}')
    becomes(5, 'controller_runtime_reconcile_errors_total{controller="counted"}')
    becomes(3, 'controller_runtime_terminal_reconcile_errors_total{controller="counted"}')
    becomes(1, 'controller_runtime_reconcile_timeouts_total{controller="counted"}')
    becomes(7, 'controller_runtime_reconcile_time_seconds_count{controller="counted"}')
    becomes(0, 'controller_runtime_active_workers{controller="counted"}')
    proc:kill("sigterm")
    assert.are.equal(0, proc:wait_exit(10), proc.stderr)
  end)
end)
