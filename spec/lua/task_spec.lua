-- Tasks, awaiting and the environment of scripts, seen from the outside: small scripts in the real
-- binary, with the leak check on.
local cleanup = require "spec.support.cleanup"
local outcome = require "spec.support.outcome"
local rig = require "spec.support.script_rig"
local run = require "spec.support.run"

local fails, prints = outcome.fails, outcome.prints

describe("a task", function()
  it("sleeps while others run, and they wake in the order of their times", function()
    prints("main\nshort\nlong\n", [[
      kube.background("long", function() kube.sleep(0.06) print("long") end)
      kube.background("short", function() kube.sleep(0.02) print("short") end)
      print("main")
    ]])
  end)

  it("that gives way again and again leaves the others their turns", function()
    prints("woken\nended\n", [[
      local stop, over = kube.stop_channel(), false
      kube.background("waiter", function() stop:wait() print("woken") over = true end)
      kube.sleep(0.001)
      stop:close()
      while not over do kube.sleep(0) end
      print("ended")
    ]])
  end)

  it("cannot wait for itself, nor for one that it belongs to", function()
    prints("script.lua:7: \ttrue\nscript.lua:13: \ttrue\n", [[
      local function report(ok, err)
        local text = tostring(err)
        print(text:match("script.lua:%d+: "), not ok and text:find("waits for itself here", 1, true) ~= nil)
      end
      local itself, above
      itself = kube.background("itself", function() kube.sleep(0) report(pcall(function() itself:wait() end)) end)
      itself:wait()
      above = kube.background("above", function()
        kube.sleep(0)
        kube.spawn(function()
          kube.spawn(function()
            report(pcall(function() above:wait() end))
          end)
        end)
      end)
    ]])
  end)

  it("that is a handler cannot wait for its own end", function()
    local out = rig.run(rig.pods { a = {} }, [[
      local stop, done = kube.stop_channel(), kube.stop_channel()
      local _, informer = kube.new_informer { resource = "v1/pods" }
      local registration
      registration = informer:add_event_handler { on_add = function()
        kube.spawn(function()
          local _, err = pcall(function() registration:shutdown() end)
          local text = tostring(err)
          print((text:match("script.lua:%d+: (registration:shutdown%(%) waits for itself in its own handler)")))
          done:close()
        end)
      end }
      kube.background("run", function() informer:run(stop) end)
      done:wait()
      registration:shutdown()
      print("over")
      stop:close()
    ]])
    assert.are.equal("registration:shutdown() waits for itself in its own handler\nover\n", out)
  end)

  it("that is cancelled while it gives way ends so", function()
    prints("false\tcancelled\n", [[
      kube.sleep(0)
      local task = kube.background("x", function()
        local ok, err = pcall(kube.sleep, 0)
        print(ok, err.code)
      end)
      task:cancel()
    ]])
  end)

  it("runs at once until its first await when the script is past its load phase", function()
    prints("before\nin task x\t1\nafter\nwoken\n", [[
      kube.sleep(0)
      print("before")
      kube.background("x", function(n) print("in task x", n) kube.sleep(0) print("woken") end, 1)
      print("after")
    ]])
  end)

  it("that is started in the load phase waits for its end", function()
    prints("loaded\ntask\t1\t2\n", [[
      kube.background("x", function(...) print("task", ...) end, 1, 2)
      print("loaded")
    ]])
  end)

  it("that fails is reported with its name and traceback and harms nobody", function()
    local err = prints("still here\n", [[
      kube.background("broken", function()
        kube.sleep(0)
        local function deep() error("boom") end
        deep()
      end)
      kube.sleep(0.02)
      print("still here")
    ]], { code = 1 })
    assert.is_truthy(err:find('script.lua:4: boom\\nstack traceback:', 1, true), err)
    assert.is_truthy(err:find('in task broken', 1, true), err)
    assert.is_truthy(err:find('"task":"broken"', 1, true), err)
  end)

  it("that fails without error() has the line on top of its traceback, too", function()
    local err = prints("", [[
      local function deep(x) return 1 + x.a.b end
      kube.background("indexes", function() kube.sleep(0) return 1 + deep {} end)
      kube.background("adds", function() return 1 + {} end)
      kube.background("spins", function()
        while true do end
      end)
      kube.background("elsewhere", function() local x x = "script.lua:7:" .. x end)
      kube.background("no place", function() error("script.lua:7: told", 0) end)
    ]], { code = 1 })
    err = err:gsub("/[^ :]-/script%.lua", "PATH"):gsub("\\n\\u0009", " | ")
    for _, text in ipairs {
      "field 'a' (a nil value)\\nstack traceback: | PATH:2: in function 'deep' | PATH:3: in function <PATH:3>\\n",
      "arithmetic on a table value\\nstack traceback: | PATH:4: in function <PATH:4>\\nin task adds",
      "is an await\\nstack traceback: | PATH:6: in function <PATH:5>\\nin task spins",
      "'x' (a nil value)\\nstack traceback: | PATH:8: in function <PATH:8>\\nin task elsewhere",
      "script.lua:7: told\\nstack traceback: | [C]: in function 'error' | PATH:9: in function <PATH:9>\\n",
    } do
      assert.is_truthy(err:find(text, 1, true), text .. "\n" .. err)
    end
  end)

  it("that has failed makes the exit code of a script with nothing left 1, unless somebody looked", function()
    fails("nothing left to run, and a task has failed", [[
      kube.background("broken", function() error("boom") end)
    ]])
    prints("false\n", [[
      local task = kube.background("broken", function() error("boom") end)
      print((pcall(task.wait, task)))
    ]])
    local proc = rig.start(rig.pods {}, [[
      kube.background("broken", function() error("boom") end)
      kube.background("runs", function() print("runs") kube.sleep(600) end)
    ]])
    proc:wait_line("^runs")
    rig.stop(proc) -- it was told to end, and not because of that
  end)

  it("that fails with a table is reported by its __tostring", function()
    local err = prints("", [[
      kube.background("broken", function()
        error(setmetatable({}, { __tostring = function() return "told by itself" end }))
      end)
    ]], { code = 1 })
    assert.is_truthy(err:find("task failed: told by itself", 1, true), err)
  end)

  it("that fails with a table without one is reported by its code and message, or by what is in it", function()
    for value, shown in pairs {
      ['{ code = "late", message = "it is late" }'] = "task failed: late: it is late",
      ['{ message = "alone" }'] = "task failed: alone",
      ['{ a = 1, c = true, b = "x", [3] = 7 }'] = 'table: {a = 1, b = \\"x\\", c = true})',
      ['{ 5, "y", {}, z = print }'] = 'table: {5, \\"y\\", table, z = function})',
      ['{ "a", "b", "c", "d", "e", "f", "g", "h", "i" }'] = '\\"g\\", \\"h\\", ...})',
      ['{ long = ("l"):rep(1e6) }'] = ('{long = \\"%s...\\"})'):format(("l"):rep(80)),
      ["{}"] = "(an error value of type table)",
      ["setmetatable({}, { __index = function() error 'no' end })"] = "whose __tostring failed",
    } do
      local err = prints("", ("kube.background('broken', function() error(%s) end)"):format(value), { code = 1 })
      assert.is_truthy(err:find(shown, 1, true), err)
    end
  end)

  it("whose error value cannot even be shown is still reported", function()
    local err = prints("", [[
      kube.background("broken", function()
        error(setmetatable({}, { __tostring = function() error("no") end }))
      end)
    ]], { code = 1 })
    assert.is_truthy(err:find("whose __tostring failed", 1, true), err)
  end)

  it("stays cancelled: a pcall cannot swallow it, and every later await fails too", function()
    prints("false\tthe task was cancelled\tcancelled\nfalse\tthe task was cancelled\tdone\n", [[
      local task = kube.background("x", function()
        local ok, err = pcall(kube.sleep, 60)
        print(ok, tostring(err), err.code)
        ok, err = pcall(kube.sleep, 0)
        print(ok, tostring(err), "done")
      end)
      kube.sleep(0)
      assert(not task:is_done())
      task:cancel()
      task:cancel()
      assert(not task:is_done(), "a cancel wakes from the loop")
      kube.sleep(0.01)
      assert(task:is_done() and task:name() == "x" and tostring(task) == "task x")
    ]])
  end)

  it("that ends by its cancellation is no failure", function()
    local err = prints("", [[
      local task = kube.background("x", function() kube.sleep(60) end)
      kube.sleep(0)
      task:cancel()
    ]])
    assert.is_nil(err:find("task failed", 1, true), err)
  end)

  it("that is cancelled before the load phase ended is never started", function()
    prints("over\n", [[
      local task = kube.background("x", function() print("started") end)
      task:cancel()
      kube.sleep(0)
      assert(task:is_done())
      print("over")
    ]])
  end)

  it("may start tasks that start tasks, a thousand deep", function()
    prints("1000\n", [[
      kube.sleep(0)
      local function nest(n)
        if n == 1000 then print(n) else kube.background("n", nest, n + 1) end
      end
      nest(0)
    ]])
  end)

  it("starts with fresh globals in the coroutine that another one left behind", function()
    prints("true\n", [[
      kube.sleep(0)
      kube.background("a", function() setfenv(0, {}) end)
      kube.background("b", function() print(getfenv(0) == _G) end)
    ]])
  end)

  it("cannot be yielded or resumed by hand", function()
    prints("nil\tfalse\nfalse\n", [[
      print(coroutine.running(), coroutine.isyieldable())
      local ok, err = pcall(coroutine.yield, 1)
      assert(err:find("outside a coroutine", 1, true), err)
      print(ok)
    ]])
  end)
end)

describe("an await", function()
  cleanup.install()

  it("is possible inside pcall, metamethods and iterators", function()
    prints("true\t3\n9\n1\n2\n", [[
      print(pcall(function() kube.sleep(0) return 3 end))
      local adder = setmetatable({}, { __add = function(_, n) kube.sleep(0) return n end })
      print(adder + 9)
      for n in function(_, last) kube.sleep(0) if (last or 0) < 2 then return (last or 0) + 1 end end do
        print(n)
      end
    ]])
  end)

  it("is possible in a generator, also in one that another generator drives", function()
    prints("1\n2\n3\nend\n", [[
      local function inner(n)
        return coroutine.wrap(function()
          for i = 1, n do kube.sleep(0) coroutine.yield(i) end
        end)
      end
      local outer = coroutine.wrap(function()
        for i in inner(3) do kube.sleep(0) coroutine.yield(i) end
      end)
      for i in outer do print(i) end
      print("end")
    ]])
  end)

  it("passes values and errors of a coroutine on unchanged", function()
    prints("true\t1\t2\nfalse\ttrue\tdead\n", [[
      local co = coroutine.create(function(a)
        kube.sleep(0)
        local b = coroutine.yield(a, 2)
        kube.sleep(0)
        error(b)
      end)
      print(coroutine.resume(co, 1))
      local value = {}
      local ok, err = coroutine.resume(co, value)
      print(ok, err == value, coroutine.status(co))
    ]])
  end)

  it("of a coroutine cannot be answered by another task", function()
    prints("false\tcannot resume a coroutine that awaits\nslept\n", [[
      local co = coroutine.create(function() kube.sleep(0.02) print("slept") end)
      kube.background("a", function() coroutine.resume(co) end)
      kube.sleep(0)
      print(coroutine.resume(co))
    ]])
  end)

  it("in a table.sort comparator says so, with the line", function()
    fails("kube%.sleep%(%) awaits and cannot be used inside a table%.sort comparator " ..
      "%([^\n]*script%.lua:3%); do the awaiting first", [[
      kube.sleep(0)
      table.sort({ 2, 1 }, function(a, b) kube.sleep(0) return a < b end)
    ]])
  end)

  it("in a generator that a string.gsub callback drives says so too", function()
    fails("cannot be used inside .*string%.gsub callback.*script%.lua:4", [[
      kube.sleep(0)
      local _ = ("x"):gsub("x", function()
        coroutine.wrap(function() kube.sleep(0) end)()
      end)
    ]])
  end)

  it("in a required file says so", function()
    fails("kube%.sleep%(%) awaits and cannot be used inside a required file %([^\n]*lib%.lua:2%)",
      [[require "lib"]], { files = { ["lib.lua"] = "local a = 1\nkube.sleep(0)\n" } })
  end)

  it("says what it is inside of, however that was called", function()
    prints("ok\n", [[
      kube.sleep(0)
      local function awaits() kube.sleep(0) return "x" end
      local shown = setmetatable({}, { __tostring = awaits })
      local function refused(place, fn, ...)
        local ok, err = pcall(fn, ...)
        local wanted = "kube.sleep() awaits and cannot be used inside " .. place .. " ("
        assert(not ok and err:find(wanted, 1, true), wanted .. "\n" .. tostring(err))
      end
      refused("a table.sort comparator", table.sort, { 2, 1 }, awaits)
      refused("a string.gsub callback", string.gsub, "x", "x", awaits)
      refused("a __tostring that string.format calls", string.format, "%s", shown)
      refused("a table.foreach callback", table.foreach, { 1 }, awaits)
      print("ok")
    ]])
  end)

  it("in the message handler of xpcall says so, once, and xpcall returns it", function()
    prints("false\ttrue\nfalse\thandled: boom\nfalse\tin the handler\nslept\ttrue\t1\n", [[
      kube.sleep(0)
      local ok, err = xpcall(function() error("boom") end, function() kube.sleep(0) end)
      print(ok, err:find("kube.sleep() awaits and cannot be used inside an xpcall message handler (", 1, true) ~= nil)
      print(xpcall(function() error("boom", 0) end, function(e) return "handled: " .. e end))
      print(xpcall(function() error("boom") end, function() error("in the handler", 0) end))
      print("slept", xpcall(function(n) kube.sleep(0) return n end, print, 1))
    ]])
  end)

  it("in an index function, a transform or a filter says so", function()
    local _, err = rig.run(rig.pods { a = {} }, [[
        local stop = kube.stop_channel()
        local function informer(options)
          return kube.shared_informer_factory(options):core():v1():pods():informer()
        end
        local indexed, filtered, transformed = informer {}, informer {},
          informer { transform = function(pod) kube.sleep(0) return pod end }
        indexed:add_indexers { x = function() kube.sleep(0) return {} end }
        filtered:add_event_handler { filter = function() kube.sleep(0) return true end, on_add = print }
        for _, each in ipairs { indexed, filtered, transformed } do
          kube.background("run", function() each:run(stop) end)
        end
        kube.sleep(0.3)
        stop:close()
      ]])
    for _, place in ipairs { "an index function", "a transform", "a filter" } do
      assert.is_truthy(err:find("kube.sleep() awaits and cannot be used inside " .. place, 1, true), err)
    end
  end)

  it("ends the load phase wherever the main part first awaits", function()
    prints("load\nstarted\nmain\n", [[
      kube.background("x", function() print("started") end)
      print("load")
      kube.sleep(0)
      print("main")
    ]])
  end)
end)

describe("a stop channel", function()
  it("wakes who waits for it, once, and calls its functions", function()
    prints("false\ncalled\nclosed\ttrue\nlate\nwoken\ttrue\n", [[
      local stop = kube.stop_channel()
      stop:on_close(function() print("called") end)
      kube.background("waiter", function() print("woken", stop:wait()) end)
      print(stop:wait(0.01))
      stop:close()
      stop:close()
      print("closed", stop:is_closed())
      stop:on_close(function() print("late") end)
    ]])
  end)

  it("calls its other functions although one fails", function()
    local err = prints("second\n", [[
      local stop = kube.stop_channel()
      stop:on_close(function() error("first") end)
      stop:on_close(function() print("second") end)
      stop:close()
    ]])
    assert.is_truthy(err:find("script.lua:3: first", 1, true), err)
  end)

  it("reports a function that fails with its value and where it was, as any other", function()
    local err = prints("closed\n", [[
      local stop = kube.stop_channel()
      local function fails() error { a = 1 } end
      stop:on_close(function() fails() end)
      stop:on_close(function() local nothing return nothing.x end)
      stop:close()
      print("closed")
    ]])
    err = err:gsub("/[^ :]-/script%.lua", "script.lua"):gsub("\\n\\u0009", "\n")
    local prefix = '"a function for the close of a stop channel failed","error":"'
    for _, text in ipairs {
      "(an error value of type table: {a = 1})\\nstack traceback:\n[C]: in function 'error'\n"
        .. "script.lua:3: in function 'fails'\nscript.lua:4: in function",
      "script.lua:5: attempt to index local 'nothing' (a nil value)\\nstack traceback:\nscript.lua:5: in function",
    } do
      assert.is_truthy(err:find(prefix .. text, 1, true), err)
    end
  end)

  it("takes functions only", function()
    prints("ok\n", [[
      local open, closed = kube.stop_channel(), kube.stop_channel()
      closed:close()
      for _, stop in ipairs { open, closed } do
        for given, shown in pairs { none = "nil", x = "a string" } do
          local ok, err = pcall(function() stop:on_close(given ~= "none" and given or nil) end)
          local wanted = "script%.lua:6: stop:on_close%(fn%): fn must be a function, not " .. shown .. "$"
          assert(not ok and err:find(wanted), err)
        end
      end
      open:close()
      print("ok")
    ]])
  end)

  it("is closed when the script is asked to stop, and who waited for it goes on", function()
    local proc = run.start_script([[
      local stop = kube.stop_channel()
      stop:on_close(function() print("cleaned up") end)
      print("ready")
      stop:wait()
      print("and goes on")
    ]])
    proc:wait_line("^ready", 5)
    proc:kill("sigterm")
    assert.are.equal(0, proc:wait_exit(10), proc.stderr)
    assert.are.equal("ready\ncleaned up\nand goes on\n", proc.stdout)
  end)
end)

describe("the watchdog", function()
  it("stops a loop that never awaits, and the rest goes on", function()
    local err = prints("alive\n", [[
      kube.background("spin", function() kube.sleep(0) while true do end end)
      kube.sleep(0.1)
      print("alive")
    ]], { code = 1 })
    assert.is_truthy(err:find("script.lua:2: cpu budget exceeded: spin ran for more than 1 s",
      1, true), err)
    assert.is_truthy(err:find("ran long without awaiting", 1, true), err)
  end)

  it("stops a loop that catches the error", function()
    local err = prints("alive\n", [[
      kube.background("spin", function()
        kube.sleep(0)
        while true do pcall(function() while true do end end) end
      end)
      kube.sleep(0.1)
      print("alive")
    ]], { code = 1 })
    assert.is_truthy(err:find("cpu budget exceeded", 1, true), err)
  end)

  it("stops a loop in the load phase", function()
    fails("script%.lua:2: loading took longer than 0%.5 s: the load phase declares and must not compute",
      "while true do end")
  end)

  it("stops a loop in a cancelled task that keeps on trying to await", function()
    local proc = run.start_script([[
      kube.background("stubborn", function()
        while true do pcall(kube.sleep, 1) end
      end)
      print("ready")
      kube.sleep(60)
    ]])
    proc:wait_line("^ready", 5)
    proc:kill("sigterm")
    assert.are.equal(0, proc:wait_exit(10), proc.stderr)
    assert.is_truthy(proc.stderr:find("cpu budget exceeded: stubborn", 1, true), proc.stderr)
  end)

  it("leaves alone what is slow in sum but awaits", function()
    local err = prints("done\n", [[
      local t = os.clock()
      while os.clock() - t < 1.3 do
        for _ = 1, 1000 do end
        kube.sleep(0)
      end
      print("done")
    ]])
    assert.is_nil(err:find("cpu budget", 1, true), err)
  end)
end)

describe("the end of a script", function()
  it("is orderly on SIGTERM: tasks are cancelled, nothing is left, the code is 0", function()
    local proc = run.start_script([[
      for i = 1, 10 do
        kube.background("t" .. i, function()
          local ok, err = pcall(kube.sleep, 60)
          if i == 1 then print("cancelled", ok, tostring(err)) end
        end)
      end
      kube.sleep(0)
      print("ready")
      kube.sleep(60)
    ]])
    proc:wait_line("^ready", 5)
    proc:kill("sigterm")
    assert.are.equal(0, proc:wait_exit(10), proc.stderr)
    assert.are.equal("ready\ncancelled\tfalse\tthe task was cancelled\n", proc.stdout)
    local _, times = proc.stderr:gsub("shutting down", "")
    assert.are.equal(1, times)
  end)

  -- ThreadSanitizer keeps signals back while a thread only computes, so this is not for its build.
  if not run.binary:find("tsan", 1, true) then
    it("comes at once with a second signal, even when Lua does not give way", function()
      local proc = run.start_script([[
        kube.jit "on"
        kube.sleep(0)
        print("ready")
        while true do end
      ]])
      proc:wait_line("^ready", 5)
      local sent = 0
      repeat
        proc:kill("sigint")
        sent = sent + 1
      until proc:ends_within(0.05) or sent == 100
      assert.are.equal(130, proc:wait_exit(5))
    end)
  end

  it("is orderly when the one signal comes twice at once", function()
    local proc = run.start_script("print('ready') kube.sleep(60)")
    proc:wait_line("^ready", 5)
    proc:kill("sigterm")
    proc:kill("sigint")
    assert.are.equal(0, proc:wait_exit(5), proc.stderr)
  end)

  it("comes by itself when nothing is left to run", function()
    assert.is_truthy(prints("", ""):find("nothing left to run", 1, true))
  end)

  it("fails with 1 when the main part fails after its load phase", function()
    local err = fails("script failed: [^\n]*script%.lua:4: late", [[
      kube.background("other", function() kube.sleep(60) end)
      kube.sleep(0)
      error("late")
    ]])
    assert.is_truthy(err:find("in task main", 1, true), err)
  end)

  it("fails with 1 and one message when the main part fails while loading", function()
    local err = fails("^moonwatch: [^\n]*script%.lua:3: early\n +3 | [^\n]*\nstack traceback:", [[
      kube.background("other", function() print("never") end)
      error("early")
    ]])
    local _, times = err:gsub(": early", "")
    assert.are.equal(1, times)
  end)
end)

describe("the environment", function()
  it("refuses undeclared and undefined variables with file and line", function()
    fails("script%.lua:2: variable 'count' is not declared; write local count", "count = 1")
    fails("script%.lua:2: undefined variable 'pirnt'; did you mean 'print'%?", "pirnt(1)")
    fails("script%.lua:2: undefined variable 'qz'\n", "qz(1)")
    fails("script%.lua:2: 'log' is read%-only", "log = nil")
  end)

  it("has kube and log without require", function()
    local result = run.run_script([[kube.sleep(0) log.info("hello", { b = 1.5, a = { 1, "x" } })]])
    assert.are.equal(0, result.code, result.stderr)
    assert.is_truthy(result.stderr:find('"msg":"hello","a":[1,"x"],"b":1.5', 1, true), result.stderr)
  end)

  it("lacks what reaches past the host", function()
    prints("ok\n", [[
      for _, name in ipairs { "io", "package", "ffi", "jit", "dofile", "loadfile", "newproxy", "module" } do
        assert(rawget(_G, name) == nil, name)
      end
      for _, name in ipairs { "ffi", "io", "jit", "jit.util", "package", "socket" } do
        assert(not pcall(require, name), name)
      end
      for _, name in ipairs { "execute", "remove", "rename", "tmpname" } do
        assert(rawget(os, name) == nil, name)
      end
      assert(not pcall(os.exit, 1))
      assert(debug.sethook == nil and debug.getregistry == nil and string.dump == nil)
      assert(require "debug" == debug and require "os" == os and require "coroutine" == coroutine)
      assert(not pcall(collectgarbage, "stop") and collectgarbage("count") > 0)
      assert(not load("\27LJ") and not loadstring("\27LJ"))
      assert(load("return 1 + ...")(2) == 3)
      print("ok")
    ]])
  end)

  it("says what to use instead of what it lacks", function()
    fails("script%.lua:2: scripts have no 'io': print%(%) writes a line, log%.info%(%) logs one, and kube%.store keeps",
      "io.write('x')")
    fails("script%.lua:2: scripts have no 'dofile': require \"name\" loads the file name%.lua beside the script",
      "dofile('x.lua')")
    fails("script%.lua:2: scripts have no 'jit': kube%.jit \"on\" has the script compiled", "jit.on()")
    fails("script%.lua:2: the os of scripts has no 'execute'; it has: clock, date, difftime, exit, getenv, time",
      "os.execute('ls')")
  end)

  it("requires files beside the script, as text, and cjson", function()
    prints("lib\tdeep.mod\tinit\t[1]\n", [[
      print(require "lib", require "deep.mod", require "dir", require("cjson").encode { 1 })
    ]], { files = { ["lib.lua"] = "return ...", ["deep/mod.lua"] = "return ...",
                    ["dir/init.lua"] = "return 'init'" } })
    fails("module 'lib' not found.*no file '[^\n]*lib%.lua'", [[require "lib"]])
    fails("lib%.lua:1: ", [[require "lib"]], { files = { ["lib.lua"] = "x x x" } })
    fails("module '../lib' not found", [[require "../lib"]])
  end)

  it("has cjson once and for all, where it is installed and in one piece", function()
    prints("true\t[1]\tnil\n", [[
      local cjson = require "cjson"
      kube.sleep(0)
      print(cjson == require "cjson", require("cjson.safe").encode { 1 }, (require("cjson.safe").decode "{"))
    ]])
    fails("module 'cjson' not found", [[require "cjson"]], { env = { LUA_CPATH = "/nowhere/?.so" } })
    local empty = os.tmpname()
    fails("lua%-cjson cannot be loaded: " .. empty:gsub("%p", "%%%0") .. ": ", [[require "cjson"]],
      { env = { LUA_CPATH = empty } })
    os.remove(empty)
  end)

  it("prints tab-separated text at once", function()
    prints("1\tnil\ttrue\n\n", "print(1, nil, true) print()")
  end)
end)

describe("the command line", function()
  local function command(...) return run.run_command({ ... }) end

  it("loads no library for protocols that it never speaks, unless sanitizers need libcurl as one", function()
    local loaded = run.run_command({ "--version" }, { env = { LD_DEBUG = "files" } }).stderr
    local is_sanitized = loaded:find("lib[at]san%.so") ~= nil
    for _, library in ipairs { "libcurl", "libldap", "libgnutls" } do
      assert.equal(is_sanitized, loaded:find(library, 1, true) ~= nil)
    end
  end)

  it("answers a typo with what was perhaps meant", function()
    local result = command("rum")
    assert.are.same({ 2, "moonwatch: unknown command 'rum'; did you mean 'run'?\n" },
      { result.code, result.stderr })
    result = command("run", "--log-levle", "info", "x.lua")
    assert.are.same({ 2, "moonwatch: unknown option '--log-levle'; did you mean '--log-level'?\n" },
      { result.code, result.stderr })
  end)

  it("answers a value that is none of a few with all of them", function()
    for option, message in pairs {
      ["--log-level=verbose"] = "unknown log level 'verbose': use error, warn, info or debug",
      ["--log-format=xml"] = "unknown log format 'xml': use auto, text or json",
    } do
      for _, name in ipairs { "run", "sandbox", "test" } do
        local result = command(name, option, name == "run" and "x.lua" or nil)
        assert.are.same({ 2, "moonwatch: " .. message .. "\n" }, { result.code, result.stderr })
      end
    end
    local result = command("status", "-o", "yaml")
    assert.are.same({ 2, "moonwatch: unknown output format 'yaml': use text or json\n" },
      { result.code, result.stderr })
    assert.is_truthy(command("hold", "maybe").stderr:find("hold takes on or off, not maybe", 1, true))
  end)

  it("says what is missing", function()
    assert.is_truthy(command("run").stderr:find("which script", 1, true))
    assert.is_truthy(command("run", "x.lua", "-n").stderr:find("a value is missing after -n", 1, true))
    assert.are.equal(2, command().code)
  end)

  it("helps and tells its version", function()
    assert.is_truthy(command("--help").stdout:find("moonwatch run SCRIPT", 1, true))
    assert.is_truthy(command("help", "run").stdout:find("--kubeconfig FILE", 1, true))
    assert.are.equal(command("version").stdout, command("--version").stdout)
    assert.is_truthy(command("version").stdout:find("^moonwatch %d+%.%d+%.%d+\n$"))
  end)

  it("takes the level and the format of the log", function()
    local result = run.run_script("log.debug('fine')",
      { args = { "--log-level", "debug", "--log-format=text" } })
    assert.are.equal(0, result.code, result.stderr)
    assert.is_truthy(result.stderr:find("debug%s+fine"), result.stderr)
  end)
end)
