-- kube.every: runs that never overlap, errors that stay inside, and an end with the script.
local outcome = require "spec.support.outcome"
local run = require "spec.support.run"
local fails, prints = outcome.fails, outcome.prints

describe("kube.every", function()
  it("runs a function again and again until it is stopped, at its interval", function()
    prints("timer t\n1\n2\n3\ntrue\n", [[
      local began = os.time()
      local timer
      timer = kube.every { name = "t", interval = 0.01, run = function(ctx)
        assert(ctx.name == "t")
        print(ctx.count)
        if ctx.count == 3 then timer:stop() end
      end }
      print(timer)
      kube.sleep(0.1)
      print(timer:name() == "t")
    ]])
  end)

  it("waits a period before the first run, unless it is immediate", function()
    prints("now\nslept\n", [[
      kube.every { name = "now", interval = 60, immediate = true, run = function() print("now") end }
      local later = kube.every { name = "later", interval = 60, run = function() print("later") end }
      kube.sleep(0.03)
      print("slept")
      later:stop()
      require("kube._core").task.shutdown()
    ]])
  end)

  it("never runs twice at once: what takes longer than its interval skips", function()
    prints("true\ttrue\n", [[
      local running, most, done, skipped = 0, 0, 0, 0
      local timer
      timer = kube.every { name = "t", interval = 0.01, jitter = 0, immediate = true, run = function(ctx)
        running = running + 1
        most = math.max(most, running)
        kube.sleep(0.035)
        running = running - 1
        done, skipped = done + 1, ctx.skipped
        if done == 3 then timer:stop() end
      end }
      while done < 3 do kube.sleep(0.005) end
      print(most == 1, skipped >= 4)
    ]])
  end)

  it("makes each period longer by a random part of the interval", function()
    prints("true\ttrue\n", [[
      local now = require("kube._core").task.now
      local starts, timer = {}, nil
      timer = kube.every { name = "t", interval = 0.02, jitter = 1, run = function()
        starts[#starts + 1] = now()
        if #starts == 9 then timer:stop() end
      end }
      while #starts < 9 do kube.sleep(0.01) end
      local least, most = math.huge, 0
      for i = 2, #starts do
        least, most = math.min(least, starts[i] - starts[i - 1]), math.max(most, starts[i] - starts[i - 1])
      end
      print(starts[9] - starts[1] > 8 * 0.02, most - least > 0.002)
    ]])
  end)

  it("logs an error with the timer and its run, not every one of a row, and goes on", function()
    local err = prints("", [[
      local timer
      timer = kube.every { name = "broken", interval = 0.002, run = function(ctx)
        if ctx.count == 9 then return timer:stop() end
        kube.sleep(0)
        error("no luck")
      end }
    ]])
    local _, times = err:gsub('"msg":"timer failed","error":"[^"]*script.lua:6: no luck', "")
    assert.are.equal(4, times, err) -- 1, 2, 4, 8
    assert.is_truthy(err:find("trigger: timer broken, run 1", 1, true), err)
    assert.is_truthy(err:find('"timer":"broken"', 1, true), err)
  end)

  it("ends a run that takes longer than its timeout", function()
    local err = prints("timeout\n", [[
      local timer
      timer = kube.every { name = "slow", interval = 0.01, timeout = 0.01, run = function()
        timer:stop()
        local _, err = pcall(kube.sleep, 60)
        print(err.code)
        error(err)
      end }
    ]])
    assert.is_truthy(err:find("the deadline of task timer slow (0.01 s) has passed", 1, true), err)
  end)

  it("keeps the script running, and begins no run once it is asked to stop; one in flight may finish", function()
    local proc = run.start_script([[
      local kube = require "kube"
      kube.every { name = "quick", interval = 0.05, run = function(ctx) print("quick " .. ctx.count) end }
      kube.every { name = "long", interval = 60, immediate = true, run = function()
        print("begun")
        kube.sleep(0.7)
        print("finished")
      end }
    ]])
    proc:wait_line("^begun", 5)
    proc:wait_line("^quick 2", 5)
    proc:kill("sigterm")
    assert.are.equal(0, proc:wait_exit(10), proc.stderr)
    assert.is_truthy(proc.stdout:find("finished\n$"), proc.stdout)
    local last = tonumber(proc.stdout:match(".*quick (%d+)"))
    assert.is_true(last < 10, proc.stdout)
  end)

  it("begins at once for leaders only when there is no election", function()
    prints("ran\n", [[
      local timer
      timer = kube.every { name = "t", interval = 60, immediate = true, leader_only = true, run = function()
        print("ran")
        timer:stop()
      end }
    ]])
  end)

  it("may be declared later, and again under a name that was stopped", function()
    prints("first\nsecond\n", [[
      kube.sleep(0)
      local timer = kube.every { name = "t", interval = 60, immediate = true, run = function() print("first") end }
      timer:stop()
      timer = kube.every { name = "t", interval = 60, immediate = true, run = function() print("second") end }
      timer:stop()
    ]])
  end)

  it("says what is wrong with its options", function()
    local rest = "interval = 1, run = print"
    fails("every needs name = ", "kube.every { " .. rest .. " }")
    fails("did you mean 'interval'", "kube.every { name = 't', intervall = 1, run = print }")
    fails("timer 't' needs interval = seconds and run = function", "kube.every { name = 't', interval = 1 }")
    fails("interval must be a number of seconds above 0, not 0", "kube.every { name = 't', interval = 0, run = print }")
    fails("jitter is a part of the interval, 0 to 10, not %-1",
      "kube.every { name = 't', jitter = -1, " .. rest .. " }")
    fails("there is a timer 't' already", ("for _ = 1, 2 do kube.every { name = 't', %s } end"):format(rest))
  end)
end)
