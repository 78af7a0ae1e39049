-- Deadlines of tasks: inherited, only ever earlier, told from cancellation, and sticky like it.
local cleanup = require "spec.support.cleanup"
local outcome = require "spec.support.outcome"
local rig = require "spec.support.script_rig"
local script_server = require "spec.support.script_server"
local prints = outcome.prints

describe("task.run", function()
  it("returns what the function returns, nils and all", function()
    prints("4\ttrue\tnil\t2\tnil\n1\ttrue\nnil\n", [[
      local task = require "kube._task"
      local function count(...) return select("#", ...), ... end
      print(count(task.run({ name = "x" }, function(a, b) kube.sleep(0) return a, b, nil end, nil, 2)))
      print(count(task.run({}, function() end)))
      print(task.remaining())
    ]])
  end)

  it("returns the error as it was raised, and a report with both places and the trigger", function()
    prints("false\ttrue\tconflict\n", [[
      local task = require "kube._task"
      local wanted = setmetatable({ code = "conflict" }, { __tostring = function() return "told" end })
      local ok, err, report = task.run({ name = "reconcile", trigger = "controller web, key d/a, attempt 3" },
        function()
          kube.sleep(0)
          local function deep() error(wanted) end
          deep()
        end)
      print(ok, err == wanted, err.code)
      assert(report:find("^told\nstack traceback:\n[^\n]*\n[^\n]*script.lua:7: in function 'deep'"), report)
      assert(report:find("\nin task reconcile\nstarted by task main at [^\n]*script.lua:4\n" ..
        "trigger: controller web, key d/a, attempt 3$"), report)
    ]])
  end)

  it("ends a wait when the time is over, with an error that says whose it was", function()
    prints("false\ttimeout\tthe deadline of task slow (0.02 s) has passed\ntrue\n", [[
      local task = require "kube._task"
      local began = os.time()
      local ok, err = task.run({ name = "slow", timeout = 0.02 }, function() kube.sleep(60) end)
      print(ok, err.code, tostring(err))
      kube.sleep(0) -- the deadline was the child's alone
      print(os.time() - began < 30)
    ]])
  end)

  it("gives the time that is left, and a child has no more of it than its parent", function()
    prints("nil\ntrue\ntrue\ntrue\ntrue\nnil\n", [[
      local task = require "kube._task"
      print(task.remaining())
      task.run({ timeout = 10 }, function()
        print(task.remaining() > 9 and task.remaining() <= 10)
        task.run({ timeout = 60 }, function()
          print(task.remaining() <= 10)
          task.run({ timeout = 1 }, function() print(task.remaining() <= 1) end)
        end)
        print(task.remaining() > 5)
      end)
      print(task.remaining())
    ]])
  end)

  it("lets a deadline reach what is below, and stay: a pcall cannot swallow it", function()
    prints("inner\tfalse\ttimeout\tthe deadline of task outer (0.02 s) has passed\n" ..
      "again\tfalse\ttimeout\nrun\tfalse\ttimeout\nouter\ttrue\tdone\n", [[
      local task = require "kube._task"
      print("outer", task.run({ name = "outer", timeout = 0.02 }, function()
        task.run({ name = "inner", timeout = 5 }, function()
          local ok, err = pcall(kube.sleep, 60)
          print("inner", ok, err.code, tostring(err))
          ok, err = pcall(kube.sleep, 0)
          print("again", ok, err.code)
        end)
        local ok, err = pcall(task.run, {}, print, "never")
        print("run", ok, err.code)
        return "done"
      end))
    ]])
  end)

  it("notices a deadline that passed without an await, at the next one", function()
    prints("false\ttimeout\tnil\n", [[
      local task = require "kube._task"
      local ok, err = task.run({ timeout = 0.01 }, function()
        local t = os.clock()
        while os.clock() - t < 0.03 do end
        assert(task.remaining() == 0)
        kube.sleep(0)
        print("never")
      end)
      print(ok, err.code, task.remaining())
    ]])
  end)

  it("is cancelled with the task that waits for it, which waits until that has ended", function()
    prints("child\tcancelled\nparent\tfalse\tcancelled\n", [[
      local task = require "kube._task"
      local background = kube.background("parent", function()
        local ok, err = task.run({}, function()
          local _, err = pcall(kube.sleep, 60)
          print("child", err.code)
          error(err, 0)
        end)
        print("parent", ok, err.code)
      end)
      kube.sleep(0)
      background:cancel()
    ]])
  end)

  it("keeps the reason that came first", function()
    prints("timeout\n", [[
      local task = require "kube._task"
      local background
      background = kube.background("parent", function()
        local _, err = task.run({ timeout = 0.01 }, function()
          pcall(kube.sleep, 60)
          background:cancel()
          kube.sleep(0)
        end)
        print(err.code)
      end)
    ]])
  end)

  it("cannot be used where nothing can await", function()
    outcome.fails("task%.run%(%) awaits and cannot be used inside a table%.sort comparator", [[
      kube.sleep(0)
      table.sort({ 2, 1 }, function() return require("kube._task").run({}, print) end)
    ]])
  end)

  it("may be nested deeply", function()
    prints("false\tbottom\n", [[
      local task = require "kube._task"
      local function nest(n)
        if n == 0 then kube.sleep(0) error("bottom", 0) end
        local _, err = task.run({ timeout = 60 }, nest, n - 1)
        error(err, 0)
      end
      print((select(1, task.run({}, nest, 300))), (select(2, task.run({}, nest, 300))))
    ]])
  end)
end)

describe("a request", function()
  cleanup.install()

  it("does not outlive the deadline of its task, and says that it was that", function()
    local server = script_server.new(function() return { chunks = {}, open = true } end)
    cleanup.later(function() server:close() end)
    local out = rig.run(server, [[
      local function fetch() return kube.request { path = "/api/v1/pods", timeout = 60 } end
      local ok, err = pcall(kube.timeout, 0.2, fetch)
      print(ok, err.code, (tostring(err):find("deadline of ", 1, true)) ~= nil)
      ok, err = pcall(kube.timeout, 60, function() return kube.request { path = "/api/v1/pods", timeout = 0.1 } end)
      print(ok, err.code, (tostring(err):find("deadline", 1, true)) ~= nil)
    ]])
    assert.are.equal("false\ttimeout\ttrue\nfalse\ttimeout\tfalse\n", out)
  end)
end)
