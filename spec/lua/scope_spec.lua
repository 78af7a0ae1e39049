-- Tasks that belong to tasks: kube.spawn, all, any, all_settled, timeout, shield, defer, yield.
local cleanup = require "spec.support.cleanup"
local outcome = require "spec.support.outcome"
local rig = require "spec.support.script_rig"
local fails, prints = outcome.fails, outcome.prints

local function has(text, wanted) assert.is_truthy(text:find(wanted, 1, true), wanted .. "\nnot in:\n" .. text) end

describe("kube.spawn", function()
  it("runs a function beside the task, and wait() returns its results", function()
    prints("child\t1\nparent\n2\tnil\t3\n2\tnil\t3\n", [[
      local task = kube.spawn(function(n) print("child", n) kube.sleep(0) return n + 1, nil, 3 end, 1)
      print("parent")
      print(task:wait())
      print(task:wait())
    ]])
  end)

  it("keeps the parent until the last child has ended", function()
    prints("returned\ngrandchild\nended\n", [[
      local parent = kube.background("parent", function()
        kube.spawn(function()
          kube.spawn(function() kube.sleep(0.02) print("grandchild") end)
        end)
        print("returned")
      end)
      kube.sleep(0)
      assert(not parent:is_done())
      parent:wait()
      print("ended")
    ]])
  end)

  it("raises the child's error in wait(), as it was, and the report has both tracebacks", function()
    local err = fails("script failed: told\nstack traceback:\n", [[
      local wanted = setmetatable({ code = "x" }, { __tostring = function() return "told" end })
      local function fail() kube.sleep(0) error(wanted) end
      local child = kube.spawn(fail)
      local ok, err = pcall(child.wait, child)
      assert(not ok and err == wanted)
      local function wait() return child:wait(), 1 end
      wait()
    ]], { args = { "--log-format=text" } })
    local inner = err:find("script.lua:3: in function", 1, true)
    local place = err:find("in task script.lua:3", 1, true)
    local outer = err:find("script.lua:7: in function 'wait'", 1, true)
    local last = err:find("in task main", 1, true)
    assert(inner and place and outer and last, err)
    assert(inner < place and place < outer and outer < last, err)
  end)

  it("fails the parent at its end when a child failed and nobody waited for it", function()
    local err = fails("script failed: [^\n]*script%.lua:2: lost\nstack traceback:", [[
      kube.spawn(function() kube.sleep(0) error("lost") end)
      kube.spawn(function() local _, err = pcall(kube.sleep, 60) print(err.code) end)
    ]], { args = { "--log-format=text" } })
    has(err, "in task script.lua:2")
    has(err, "in task main")
  end)

  it("logs at once what nobody waited for when there is much of it, for the parent may never end", function()
    local err = fails("script failed: lost 1\nstack traceback:", [[
      for i = 1, 105 do kube.spawn(function() error("lost " .. i, 0) end) end
      kube.log.info("still running")
    ]], { args = { "--log-format=text" } })
    local running = err:find("still running", 1, true)
    local _, told = err:sub(1, running):gsub("nobody waited for it: lost 10[1-5]\n", "")
    local _, later = err:sub(running):gsub("nobody waited for it", "")
    assert.are.same({ 5, 99 }, { told, later })
  end)

  it("logs further failures that nobody waited for, and those of a parent that failed itself", function()
    local err = fails("script failed: [^\n]*script%.lua:4: mine", [[
      kube.spawn(function() error("first") end)
      kube.spawn(function() error("second") end)
      error("mine")
    ]], { args = { "--log-format=text" } })
    has(err, "task failed, and nobody waited for it:")
    has(err, "script.lua:2: first")
    has(err, "script.lua:3: second")
  end)

  it("is no failure of the parent when somebody looked", function()
    prints("sibling\tfalse\tgone\nfalse\tgone\n", [[
      local child = kube.spawn(function() kube.sleep(0) error("gone", 0) end)
      kube.spawn(function() print("sibling", pcall(child.wait, child)) end)
      print(pcall(child.wait, child))
    ]])
  end)

  it("cancels the children of a parent that fails, and their children, before it has ended", function()
    prints("inner\tcancelled\nouter\tcancelled\nover\tboom\n", [[
      local parent = kube.spawn(function()
        kube.spawn(function()
          kube.spawn(function() local _, err = pcall(kube.sleep, 60) print("inner", err.code) end)
          local _, err = pcall(kube.sleep, 60)
          kube.defer(function() print("outer", err.code) end)
        end)
        error("boom", 0)
      end)
      local _, err = pcall(parent.wait, parent)
      print("over", err)
    ]])
  end)

  it("gives a task that waits for another its own cancellation", function()
    prints("cancelled\ntrue\n", [[
      local slow = kube.spawn(function() kube.sleep(0.05) return true end)
      local waiter = kube.spawn(function()
        local _, err = pcall(slow.wait, slow)
        print(err.code)
      end)
      waiter:cancel()
      print(slow:wait())
    ]])
  end)

  it("is cancelled from its first await when its parent is already", function()
    prints("started\tcancelled\n", [[
      local task = kube.background("x", function()
        pcall(kube.sleep, 60)
        kube.spawn(function()
          local _, err = pcall(kube.sleep, 0)
          print("started", err.code)
        end)
      end)
      kube.sleep(0)
      task:cancel()
    ]])
  end)

  it("names the ways it can be misused", function()
    fails("kube%.spawn%(%) takes a function first, got nil", "kube.spawn()")
    fails("call it with a colon: task:wait", "local t = kube.spawn(print) t.wait()")
    fails("task has no 'await'", "kube.spawn(print):await()")
    fails("call it with a dot: kube%.spawn", "kube:spawn(print)")
  end)
end)

describe("a result", function()
  cleanup.install()

  it("that is a cached object outlives the task it came from", function()
    local out = rig.run(rig.pods { a = {} }, [[
      local factory = kube.shared_informer_factory()
      local lister = factory:core():v1():pods():lister()
      local stop = kube.stop_channel()
      factory:start(stop)
      factory:wait_for_cache_sync()
      local function read() return kube.spawn(lister.get, lister, "default/a"):wait() end
      local names = 0
      for _ = 1, 50 do
        read()
        collectgarbage("step", 200)
        if read().metadata.name == "a" then names = names + 1 end
        collectgarbage()
      end
      print(names)
      stop:close()
    ]])
    assert.are.equal("50\n", out)
  end)
end)

describe("kube.all", function()
  it("returns the first results in the order of the functions", function()
    prints("c b a|a b c\n0\n", [[
      local order = {}
      local function f(name, seconds)
        return function() kube.sleep(seconds) order[#order + 1] = name return name, "more" end
      end
      local values = kube.all { f("a", 0.06), f("b", 0.03), f("c", 0) }
      print(table.concat(order, " ") .. "|" .. table.concat(values, " "))
      print(#kube.all {})
    ]])
  end)

  it("runs no more than limit at once", function()
    prints("3\t20\n", [[
      local now, most, fns = 0, 0, {}
      for i = 1, 20 do
        fns[i] = function()
          now = now + 1
          most = math.max(most, now)
          kube.sleep(i % 3 / 1000)
          now = now - 1
          return i
        end
      end
      print(#kube.all(fns, { limit = 3 }) == 20 and most, #fns)
    ]])
  end)

  it("raises the first error, when the others are cancelled and over", function()
    prints("cancelled\nconflict\n", [[
      local _, err = pcall(kube.all, {
        function() local _, err = pcall(kube.sleep, 60) print(err.code) end,
        function() kube.sleep(0) error({ code = "conflict" }) end,
        function() kube.sleep(60) end,
      })
      print(err.code)
      kube.sleep(0) -- this task goes on
    ]])
  end)

  it("starts nothing more after an error", function()
    prints("first\nfalse\tno\n", [[
      print(pcall(kube.all, {
        function() print("first") error("no", 0) end,
        function() print("second") end,
      }, { limit = 1 }))
    ]])
  end)

  it("has the tracebacks of the child and of the caller in its report", function()
    local err = fails("script failed: [^\n]*script%.lua:2: deep", [[
      local function fail() error("deep") end
      local function gather() local r = kube.all { print, fail } return r end
      gather()
    ]], { args = { "--log-format=text" } })
    has(err, "script.lua:2: in function <")
    has(err, "in task script.lua:2")
    has(err, "script.lua:3: in function 'gather'")
  end)

  it("is cancelled with the task that called it", function()
    prints("one\tcancelled\ntwo\tcancelled\nall\tcancelled\n", [[
      local task = kube.background("x", function()
        local function f(name)
          return function() local _, err = pcall(kube.sleep, 60) print(name, err.code) error(err, 0) end
        end
        local _, err = pcall(kube.all, { f "two", f "one" })
        print("all", err.code)
      end)
      kube.sleep(0)
      task:cancel()
    ]])
  end)

  it("refuses what is not a list of functions", function()
    fails("kube%.all%(%) takes a list of functions, got function", "kube.all(print)")
    fails("kube%.all%(%) takes a function as number 2 of the list, got number", "kube.all { print, 1 }")
    fails("'a' is no index", "kube.all { a = print }")
    fails("limit must be 1 or more", "kube.all({ print }, { limit = 0 })")
    fails("did you mean 'limit'", "kube.all({ print }, { limt = 1 })")
  end)
end)

describe("kube.any", function()
  it("returns the results of the first that succeeds and cancels the rest", function()
    prints("cancelled\n7\tnil\t8\n", [[
      print(kube.any {
        function() error("no") end,
        function() local _, err = pcall(kube.sleep, 60) print(err.code) end,
        function() kube.sleep(0.01) return 7, nil, 8 end,
      })
    ]])
  end)

  it("raises all errors when none succeeds", function()
    prints("none_succeeded\ta\tb\tkube.any(): none of 2 functions succeeded; the first failed with: a\n", [[
      local _, err = pcall(kube.any, { function() kube.sleep(0) error("a", 0) end, function() error("b", 0) end })
      print(err.code, err.errors[1], err.errors[2], tostring(err))
    ]])
  end)
end)

describe("kube.all_settled", function()
  it("tells what became of each", function()
    prints("true\t1\nfalse\tx\ttrue\ntrue\tnil\n", [[
      local settled = kube.all_settled({
        function() kube.sleep(0.01) return 1 end,
        function() error({ code = "x" }) end,
        function() end,
      }, { limit = 2 })
      print(settled[1].ok, settled[1].value)
      print(settled[2].ok, settled[2].error.code, settled[2].report:find("stack traceback") ~= nil)
      print(settled[3].ok, settled[3].value)
    ]])
  end)
end)

describe("kube.timeout", function()
  it("returns the results, or raises a timeout that the task survives", function()
    prints("1\tnil\nfalse\ttimeout\ttrue\n", [[
      print(kube.timeout(5, function(a) kube.sleep(0) return a, nil end, 1))
      local ok, err = pcall(kube.timeout, 0.01, function() kube.sleep(60) end)
      print(ok, err.code, tostring(err):find("the deadline of task script.lua:3 (0.01 s) has passed", 1, true) ~= nil)
      kube.sleep(0)
    ]])
  end)

  it("ends what was spawned inside", function()
    prints("spawned\ttimeout\nfalse\ttimeout\n", [[
      local ok, err = pcall(kube.timeout, 0.01, function()
        kube.spawn(function() local _, err = pcall(kube.sleep, 60) print("spawned", err.code) end)
        kube.sleep(60)
      end)
      print(ok, err.code)
    ]])
  end)

  it("takes seconds above 0", function()
    fails("kube%.timeout%(%) takes a number of seconds above 0 first, got 0", "kube.timeout(0, print)")
    fails("kube%.timeout%(%) takes a number of seconds above 0 first, got a table", "kube.timeout({}, print)")
  end)
end)

describe("kube.shield", function()
  it("keeps a cancellation away until it is over; the next await fails", function()
    prints("saved\t5\nafter\tcancelled\n", [[
      local task = kube.background("x", function()
        print("saved", kube.shield(function(n)
          kube.all { function() kube.sleep(0.03) end }
          return n
        end, 5))
        local _, err = pcall(kube.sleep, 0)
        print("after", err.code)
      end)
      kube.sleep(0)
      task:cancel()
    ]])
  end)

  it("keeps a deadline away too", function()
    prints("saved\nfalse\ttimeout\n", [[
      local ok, err = pcall(kube.timeout, 0.01, function()
        kube.shield(function() kube.sleep(0.05) print("saved") end)
        kube.sleep(0)
      end)
      print(ok, err.code)
    ]])
  end)

  it("ends after 5 seconds", function()
    prints("shielded\tcancelled\ttrue\nouter\tcancelled\n", [[
      local task = kube.background("x", function()
        local began = os.time()
        local _, err = pcall(kube.shield, function()
          local _, err = pcall(kube.sleep, 60)
          local lasted = os.time() - began
          print("shielded", err.code, lasted >= 4 and lasted <= 20)
          error(err, 0)
        end)
        print("outer", err.code)
      end)
      kube.sleep(0)
      task:cancel()
    ]])
  end)
end)

describe("kube.defer", function()
  it("runs functions at the end of the task, the last first, after its children", function()
    prints("body\nchild\nsecond\nfirst\nresult\n", [[
      print(kube.spawn(function()
        kube.defer(function() kube.sleep(0.01) print("first") end)
        kube.defer(function() kube.sleep(0) print("second") end)
        kube.spawn(function() kube.sleep(0.01) print("child") end)
        print("body")
        return "result"
      end):wait())
    ]])
  end)

  it("runs them also after an error and a cancellation, and they may await", function()
    prints("cleaned 1\nboom\ncleaned 2\ncancelled\n", [[
      local failing = kube.spawn(function()
        kube.defer(function() kube.sleep(0.01) print("cleaned 1") end)
        error("boom", 0)
      end)
      print((select(2, pcall(failing.wait, failing))))
      local cancelled = kube.spawn(function()
        kube.defer(function() kube.sleep(0.01) print("cleaned 2") end)
        kube.sleep(60)
      end)
      cancelled:cancel()
      print(select(2, pcall(cancelled.wait, cancelled)).code)
    ]])
  end)

  it("logs an error of one, runs the others, and leaves the outcome as it was", function()
    local err = prints("other\n1\n", [[
      print(kube.spawn(function()
        kube.defer(function() print("other") end)
        kube.defer(function() error("not cleaned") end)
        return 1
      end):wait())
    ]])
    has(err, "a deferred function failed: ")
    has(err, "script.lua:4: not cleaned")
    has(err, "started by task script.lua:2 at ")
  end)

  it("has 5 seconds for all of a task, of which none is left out", function()
    prints("second\ttimeout\nfirst\ttimeout\ntrue\n", [[
      local began = os.time()
      kube.spawn(function()
        kube.defer(function() local _, err = pcall(kube.sleep, 60) print("first", err.code) end)
        kube.defer(function() local _, err = pcall(kube.sleep, 60) print("second", err.code) end)
      end):wait()
      print(os.time() - began < 9)
    ]])
  end)

  it("works at the end of the script's main part and in handlers of SIGTERM", function()
    local run = require "spec.support.run"
    local proc = run.start_script([[
      kube.defer(function() kube.sleep(0.01) print("cleaned up") end)
      print("ready")
      kube.sleep(60)
    ]])
    proc:wait_line("^ready", 5)
    proc:kill("sigterm")
    assert.are.equal(0, proc:wait_exit(10), proc.stderr)
    assert.are.equal("ready\ncleaned up\n", proc.stdout)
  end)
end)

describe("kube.yield", function()
  it("lets the others run", function()
    prints("a1\nb1\na2\nb2\n", [[
      local function twice(name)
        return function() print(name .. 1) kube.yield() print(name .. 2) end
      end
      kube.all { twice "a", twice "b" }
    ]])
  end)
end)

describe("a background task", function()
  it("can be waited for, and belongs to nobody", function()
    prints("waited\t5\nstill there\n", [[
      local inner
      kube.spawn(function()
        inner = kube.background("inner", function() kube.sleep(0.03) print("still there") end)
      end):wait()
      print("waited", kube.background("five", function() kube.sleep(0) return 5 end):wait())
      assert(not inner:is_done())
    ]])
  end)

  it("that was cancelled before it began says so to whoever waits", function()
    prints("cancelled\n", [[
      local task = kube.background("x", print)
      task:cancel()
      print(select(2, pcall(task.wait, task)).code)
    ]])
  end)
end)
