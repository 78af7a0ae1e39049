-- The end of a script on SIGTERM: what drains may finish, the rest is cancelled, deferred functions run, and
-- the exit code says which it was.
local cleanup = require "spec.support.cleanup"
local rig = require "spec.support.script_rig"
local run = require "spec.support.run"

-- Starts a script, asks it to stop when it is ready, and returns its exit code, stdout and stderr.
local function stopped(source, args, seconds)
  local proc = run.start_script('local kube, task = require "kube", require "kube._task"\n' .. source, { args = args })
  proc:wait_line("^ready", 5)
  proc:kill("sigterm")
  return proc:wait_exit(seconds or 10), proc.stdout, proc.stderr
end

local function has(text, wanted) assert.is_truthy(text:find(wanted, 1, true), wanted .. "\nnot in:\n" .. text) end

describe("a shutdown", function()
  cleanup.install()

  it("waits for work in flight, which may still await, and ends with 0", function()
    local code, out, err = stopped [[
      task.worker("worker", function()
        print("ready")
        kube.sleep(0.6)
        print("finished")
      end)
    ]]
    assert.are.same({ 0, "ready\nfinished\n" }, { code, out }, err)
  end)

  it("waits for task.run with drain, and with it for the task that runs it", function()
    local code, out, err = stopped [[
      kube.background("loop", function()
        local ok = task.run({ drain = true }, function()
          kube.spawn(function() kube.sleep(0.6) print("child") end)
          print("ready")
        end)
        print("run", ok)
        print(select(2, pcall(kube.sleep, 60)).code) -- nothing drains any more
      end)
    ]]
    assert.are.same({ 0, "ready\nchild\nrun\ttrue\ncancelled\n" }, { code, out }, err)
  end)

  it("cancels what does not drain meanwhile", function()
    local code, out, err = stopped [[
      task.worker("worker", function() kube.sleep(0.8) print("finished") end)
      kube.background("other", function() print(select(2, pcall(kube.sleep, 60)).code) end)
      print("ready")
    ]]
    assert.are.same({ 0, "ready\ncancelled\nfinished\n" }, { code, out }, err)
  end)

  it("cancels work that takes longer, runs what it deferred, names it and ends with 5", function()
    local code, out, err = stopped([[
      task.worker("worker web 1", function()
        task.run({ trigger = "controller web, key d/a, attempt 3", drain = true }, function()
          kube.defer(function() kube.sleep(0.01) print("cleaned up") end)
          print("ready")
          kube.sleep(60)
        end)
      end)
      task.worker("worker web 2", kube.sleep, 60)
    ]], { "--shutdown-timeout", "0.5" })
    assert.are.same({ 5, "ready\ncleaned up\n" }, { code, out }, err)
    has(err, "tasks did not end in time and are cancelled")
    has(err, '"seconds":0.5')
    has(err, "controller web, key d/a, attempt 3")
    has(err, "worker web 2")
    assert.is_nil(err:find("worker web 1", 1, true), err)
  end)

  it("ends with 5 when a function finds work left undone, and logs what it says", function()
    local code, _, err = stopped [[
      task.on_end(function() return "controller web: 2 keys are queued: d/a, d/b" end)
      task.on_end(function() end)
      print("ready")
      kube.sleep(60)
    ]]
    assert.are.equal(5, code, err)
    has(err, '"work is left undone","what":"controller web: 2 keys are queued: d/a, d/b"')
  end)

  it("keeps the code of a script that failed", function()
    local result = run.run_script([[
      local kube, task = require "kube", require "kube._task"
      task.on_end(function() return "something" end)
      kube.sleep(0)
      error("failed")
    ]])
    assert.are.equal(1, result.code, result.stderr)
    has(result.stderr, "work is left undone")
  end)

  it("starts nothing that does not drain any more, once tasks are cancelled", function()
    local code, out, err = stopped [[
      task.worker("worker", function()
        print("ready")
        kube.sleep(0.6)
        kube.background("late", function() print(select(2, pcall(kube.sleep, 60)).code) end)
      end)
    ]]
    assert.are.same({ 0, "ready\ncancelled\n" }, { code, out }, err)
  end)

  it("takes --shutdown-timeout 0, and refuses what is no time", function()
    local code, _, err = stopped('task.worker("w", function() print("ready") kube.sleep(60) end)',
      { "--shutdown-timeout=0" })
    assert.are.equal(5, code, err)
    for _, value in ipairs { "soon", "-1", "1e9", "nan" } do
      local result = run.run_command { "run", "x.lua", "--shutdown-timeout", value }
      assert.are.equal(2, result.code)
      has(result.stderr, "--shutdown-timeout takes a number of seconds")
    end
  end)

  it("ends at once with a second signal while work drains", function()
    local proc = run.start_script([[
      require("kube._task").worker("w", function() print("ready") require("kube").sleep(60) end)
    ]])
    proc:wait_line("^ready", 5)
    local sent = 0
    repeat
      proc:kill("sigterm")
      sent = sent + 1
    until proc:ends_within(0.15) or sent == 20
    assert.are.equal(130, proc:wait_exit(5))
  end)

  it("lets work in flight read the cache and send requests, and delivers no more events", function()
    local server = rig.pods { a = {}, b = {} }
    local proc = rig.start(server, [[
      local task = require "kube._task"
      local factory = kube.shared_informer_factory()
      local pods = factory:core():v1():pods()
      local stopping = false
      pods:informer():add_event_handler {
        on_add = function(pod) if stopping then print("event", kube.key(pod)) end end,
      }
      factory:start()
      factory:wait_for_cache_sync()
      local stop = kube.stop_channel()
      task.worker("worker", function()
        print("ready")
        stop:wait()
        stopping = true
        print("stopping")
        kube.sleep(0.5)
        print(pods:lister():get("default/a").metadata.name)
        print((kube.request { path = "/api/v1/pods" }).status)
      end)
    ]])
    proc:wait_line("^ready", 5)
    proc:kill("sigterm")
    proc:wait_line("^stopping", 5)
    server:put("late", {})
    rig.finish(proc)
    assert.are.equal("ready\nstopping\na\n200\n", proc.stdout, proc.stderr)
  end)
end)
