-- The work queue of scripts, in the real binary.
local cleanup = require "spec.support.cleanup"
local run = require "spec.support.run"
local scrape = require "spec.support.scrape"

-- refused(text, fn): fn fails on its own line with a message that has this text in it.
local prelude = [[
local kube = require "kube"
local function refused(text, fn, ...)
  local ok, err = pcall(fn, ...)
  local message = tostring(err)
  assert(not ok, "it was not refused: " .. text)
  assert(message:find("^[^\n]*script%.lua:%d+: "), "no place: " .. message)
  assert(message:find(text, 1, true), ("wanted %s\ngot %s"):format(text, message))
end
]]

local function outcome(code, source, options)
  local result = run.run_script(prelude .. source, options)
  assert.are.equal(code, result.code, result.stdout .. result.stderr)
  return result.stdout, result.stderr
end

local function prints(expected, source, options)
  local out, err = outcome(0, source, options)
  assert.are.equal(expected, out, err)
  return err
end

describe("kube.workqueue", function()
  cleanup.install()

  it("hands out keys by priority, with what is known of them", function()
    prints("b\t7\thigh,again\t0\na\t0\t\t0\nc\t-1\tlow\t0\nnil\ttrue\n", [[
      kube.sleep(0)
      local q = kube.workqueue { name = "x" }
      q:add("a")
      q:add("c", { priority = -1, reason = "low" })
      q:add("b", { priority = 7, reason = "high" })
      q:add("b", { priority = 3, reason = "again" })
      assert(q:len() == 3 and tostring(q) == "queue x")
      for _ = 1, 3 do
        local key, shutdown, info = q:get()
        assert(shutdown == false and info.waited >= 0 and info.waited < 5)
        print(key, info.priority, table.concat(info.reasons, ","), info.requeues)
        q:done(key)
      end
      q:shut_down()
      print(q:get())
    ]])
  end)

  it("waits for a key that a task or a timer will bring", function()
    prints("now\nlater\n", [[
      local q = kube.workqueue()
      kube.background("adder", function()
        kube.sleep(0.02)
        q:add_after("later", 0.02)
        q:add("now")
      end)
      for _ = 1, 2 do
        local key = q:get()
        print(key)
        q:done(key)
      end
    ]])
  end)

  it("serves many producers and many workers, each key by one at a time", function() -- row 84
    prints("drained\ttrue\nworkers ended\t10\nkeys\t500\n", [[
      local q = kube.workqueue { name = "many" }
      local busy, ended, seen, producing = {}, 0, {}, 50
      for w = 1, 10 do
        kube.background("worker " .. w, function()
          while true do
            local key, shutdown = q:get()
            if shutdown then ended = ended + 1 return end
            assert(not busy[key], "two work on one key")
            busy[key] = true
            seen[key] = (seen[key] or 0) + 1
            kube.sleep(0.0005 * (w % 3))
            busy[key] = nil
            q:done(key)
          end
        end)
      end
      for p = 1, 50 do
        kube.background("producer " .. p, function()
          for i = 1, 50 do
            q:add("key " .. (p * 10 + i % 10))
            if i % 10 == 0 then kube.sleep(0.001) end
          end
          producing = producing - 1
        end)
      end
      while producing > 0 do kube.sleep(0.001) end
      print("drained", q:shut_down_with_drain(10))
      q:add("after the end")
      while ended < 10 do kube.sleep(0.001) end
      print("workers ended", ended)
      local n = 0
      for _ in pairs(seen) do n = n + 1 end
      print("keys", n)
      assert(q:len() == 0)
    ]])
  end)

  it("collapses what is added while a key is worked on to one more run", function() -- row 85
    prints("run\t1\nrun\t2\nleft\t0\n", [[
      local q = kube.workqueue()
      q:add("a")
      for i = 1, 2 do
        local key = q:get()
        print("run", i)
        if i == 1 then for _ = 1, 10 do q:add(key) end assert(q:len() == 0) end
        q:done(key)
      end
      print("left", q:len())
    ]])
  end)

  it("drains when nothing is queued and nobody is at work", function() -- row 86
    prints("a\na\nb\ndrained\ttrue\n", [[
      local q = kube.workqueue()
      q:add("a")
      q:add("b")
      kube.background("worker", function()
        local first = true
        while true do
          local key, shutdown = q:get()
          if shutdown then return end
          if first then q:add("a", { priority = 1 }) end
          first = false
          kube.sleep(0.02)
          print(key)
          q:done(key)
        end
      end)
      kube.sleep(0.01)
      print("drained", q:shut_down_with_drain())
    ]])
  end)

  it("gives up draining after its time, and when the queue is shut down for good", function() -- row 86
    prints("false\nfalse\ntrue\n", [[
      local q = kube.workqueue()
      q:add("a")
      local key = q:get()
      print(q:shut_down_with_drain(0.01))
      kube.background("impatient", function() kube.sleep(0.01) q:shut_down() end)
      print(q:shut_down_with_drain(60))
      q:done(key)
      print(q:shut_down_with_drain(60))
    ]])
  end)

  it("loses no key to a task that is cancelled while it waits", function()
    prints("second\ta\n", [[
      local q = kube.workqueue()
      local first = kube.background("first", function() print("first", q:get()) end)
      kube.background("second", function() print("second", (q:get())) end)
      kube.sleep(0)
      q:add("a")
      first:cancel()
    ]])
  end)

  it("loses no key to a wait that has its deadline", function()
    prints("timeout\na\n", [[
      local q = kube.workqueue()
      kube.sleep(0)
      local ok, err = pcall(kube.timeout, 0.01, function() return q:get() end)
      assert(not ok)
      print(err.code)
      q:add("a")
      print((kube.timeout(10, function() return q:get() end)))
    ]])
  end)

  it("shows what it does at /metrics, while it is there", function()
    local proc = run.start_script(prelude .. [[
      local q = kube.workqueue { name = "jobs" }
      q:add("a", { priority = 2 })
      q:add("b", { priority = 2 })
      q:add_after("c", 3600)
      q:get()
      kube.sleep(3600)
    ]], { args = scrape.args })
    local seen = scrape.of(proc)
    seen:wait_value(1, "workqueue_depth", { name = "jobs", priority = "2" })
    seen:wait_value(2, "workqueue_adds_total", { name = "jobs" })
    seen:wait_value(1, "workqueue_retries_total", { name = "jobs" })
    seen:wait_value(1, "workqueue_queue_duration_seconds_count", { name = "jobs" })
    local function grows(v) return v > 0 end
    seen:wait_value(grows, "workqueue_unfinished_work_seconds", { name = "jobs" })
    seen:wait_value(grows, "workqueue_longest_running_processor_seconds", { name = "jobs" })
    proc:kill("sigterm")
    assert.are.equal(0, proc:wait_exit(15), proc.stderr)
  end)

  it("serves those who wait in the order of waiting", function()
    prints("1\ta\n2\tb\n3\tc\n", [[
      local q = kube.workqueue()
      kube.sleep(0)
      for i = 1, 3 do kube.background("w" .. i, function() print(i, (q:get())) end) end
      for _, key in ipairs { "a", "b", "c" } do q:add(key) end
    ]])
  end)

  it("ends every get when the script is told to stop, also where keys are left", function()
    local proc = run.start_script(prelude .. [[
      local q, held = kube.workqueue { name = "x" }, kube.workqueue()
      held:add("a")
      q:add_after("later", 3600)
      held:get()
      for i = 1, 2 do
        kube.background("w", function() print("waited", i, q:get()) held:add("b") print("held", i, held:get()) end)
      end
      print("ready")
      q:get()
      print("main ended")
    ]])
    proc:wait_line("^ready")
    proc:kill("sigterm")
    assert.are.equal(0, proc:wait_exit(5), proc.stderr)
    assert.is_truthy(proc.stdout:find("main ended", 1, true))
    for _, what in ipairs { "waited\t1", "waited\t2", "held\t1", "held\t2" } do
      assert.is_truthy(proc.stdout:find(what .. "\tnil\ttrue\n", 1, true), proc.stdout)
    end
  end)

  it("is added to at the end of the load phase, not in it", function()
    prints("0\na\tb\t1\n", [[
      local q = kube.workqueue { qps = false, base_delay = 0 }
      q:add("a")
      q:add_rate_limited("b")
      print(q:len())
      local a, b = (q:get()), (q:get())
      print(a, b, q:num_requeues("b"))
    ]])
  end)

  it("waits longer with each failure of a key, until it is forgotten", function() -- row 89
    prints("1\n2\n3\n0\n", [[
      local now = require("kube._core").task.now
      local q = kube.workqueue { base_delay = 0.01, max_delay = 0.02 }
      kube.sleep(0)
      q:add("a")
      for i, least in ipairs { 0.01, 0.02, 0.02 } do
        local key = q:get()
        local start = now()
        q:add_rate_limited(key)
        q:done(key)
        print(q:num_requeues(key))
        key = q:get()
        assert(now() - start >= least, "too early")
        q:done(key)
        q:add(key)
      end
      q:forget("a")
      print(q:num_requeues("a"))
    ]])
  end)

  it("does not stop the rest for a worker that never awaits anything else", function()
    prints("20000\ttrue\n", [[
      local q = kube.workqueue()
      local ticks, total, stop = 0, 0, false
      kube.background("ticker", function() while not stop do kube.sleep(0.001) ticks = ticks + 1 end end)
      kube.sleep(0)
      for i = 1, 20000 do q:add("key " .. i) end
      for _ = 1, 20000 do
        q:done((q:get()))
        total = total + 1
      end
      stop = true
      print(total, ticks > 3)
    ]])
  end)
end)

describe("misuse of a work queue", function()
  it("is answered with the place and what to do", function()
    prints("", [[
      refused("kube.workqueue has no option 'nam' (did you mean 'name'?)", kube.workqueue, { nam = "x" })
      refused("kube.workqueue takes a table of options, not a string", kube.workqueue, "x")
      refused("option 'name' must be a string, not a number", kube.workqueue, { name = 1 })
      refused("option 'name' must not be empty", kube.workqueue, { name = "" })
      refused("option 'qps' must be a number of keys per second, or false", kube.workqueue, { qps = true })
      refused("option 'qps' must be a number of keys per second between", kube.workqueue, { qps = 0 })
      refused("option 'burst' must be a whole number of keys", kube.workqueue, { burst = 1.5 })
      refused("option 'burst' needs qps", kube.workqueue, { burst = 5, qps = false })
      refused("option 'base_delay' must be a number of seconds", kube.workqueue, { base_delay = -1 })
      refused("option 'max_delay' must be a number of seconds", kube.workqueue, { max_delay = 0 / 0 })
      refused("base_delay (5) must not be longer than max_delay (1)", kube.workqueue, { base_delay = 5, max_delay = 1 })
      refused("call it with a dot: kube.workqueue(...)", kube.workqueue, kube, {})
      local q = kube.workqueue { name = "x" }
      refused("a queue named 'x' was made at", kube.workqueue, { name = "x" })
      q:shut_down()
      q = kube.workqueue { name = "x" }
      assert(not q:is_shut_down())
      refused("call it with a colon: queue:add(...)", q.add, "key")
      refused("queue has no 'push'", function() q:push("a") end)
      refused("a key is a string, not a number", q.add, q, 5)
      refused("a key is a string, not nothing", q.add, q)
      refused("write kube.key(object)", q.add, q, { metadata = { name = "a" } })
      refused("a key has 1 to 4096 bytes, this one has 0", q.add, q, "")
      refused("a key has 1 to 4096 bytes, this one has 5000", q.add_rate_limited, q, ("x"):rep(5000))
      refused("queue:add has no option 'prioritty' (did you mean 'priority'?)", q.add, q, "a", { prioritty = 1 })
      refused("option 'priority' must be a whole number between -1000 and 1000", q.add, q, "a", { priority = 1001 })
      refused("option 'priority' must be a whole number", q.add, q, "a", { priority = 0.5 })
      refused("option 'after' must be a number of seconds", q.add, q, "a", { after = 0 / 0 })
      refused("option 'reason' must be a string", q.add, q, "a", { reason = 1 })
      refused("queue:add takes a table of options, not a number", q.add, q, "a", 5)
      refused("seconds must be a number of seconds, not nil", q.add_after, q, "a")
      refused("seconds must be a number of seconds, not a table", q.add_after, q, "a", {})
      refused("seconds must be a number of seconds", q.add_after, q, "a", math.huge)
      refused("a key is a string", q.forget, q, true)
      refused("a key is a string", q.num_requeues, q)
      refused("timeout must be a number of seconds", q.shut_down_with_drain, q, -1)
      refused("queue:done(key): 'a' is not being processed", q.done, q, "a")
      q:add("a")
      refused("queue:done(key): 'a' is not being processed", q.done, q, "a")
      assert(q:get() == "a")
      q:done("a")
      refused("call it once for each key that queue:get() returned", q.done, q, "a")
      refused("queue:get() awaits and cannot be used inside", table.sort, { 2, 1 }, function() q:get() end)
    ]])
  end)

  it("in a required file is refused: it cannot wait", function()
    local _, err = outcome(1, 'require "other"', { files = {
      ["other.lua"] = 'local q = require("kube").workqueue()\nq:add("a")\nq:get()' } })
    assert.is_truthy(err:find("queue:get() awaits and cannot be used inside a required file", 1, true), err)
    assert.is_truthy(err:find("other.lua:3", 1, true), err)
  end)
end)
