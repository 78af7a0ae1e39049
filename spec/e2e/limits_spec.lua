-- What a script's mistakes cost: the task that makes them, and nobody else.
local run = require "spec.support.run"

-- Runs the source until it ends; beside it, another task counts to three and says so. code: 1 where a task fails.
local function survives(source, args, code)
  local result = run.run_script(source .. [[
    for i = 1, 3 do kube.sleep(0.01) print("beside", i) end
  ]], { args = args or {}, timeout = 60 })
  assert.are.equal(code or 0, result.code, result.stderr)
  assert.is_truthy(result.stdout:find("beside\t3\n", 1, true), result.stdout)
  return result.stderr, result.stdout
end

local function has(text, wanted)
  assert.is_truthy(text:find(wanted, 1, true), text)
end

describe("the memory limit", function()
  it("stops a task that holds too much, at its line, and the others go on", function()
    local err, out = survives([[
      kube.background("hoarder", function()
        local held = {}
        while true do
          held[#held + 1] = { #held }
        end
      end)
      print("held", collectgarbage("count") < 16 * 1024)
    ]], { "--memory-limit", "16Mi" }, 1)
    has(err, "script.lua:4: memory limit of 16 MiB reached: 1")
    has(err, "are in use when all garbage is gone; hold less at a time, or raise --memory-limit")
    has(err, "in task hoarder")
    has(out, "held\ttrue\n")
  end)

  it("refuses one piece that is larger than what is left, at its line", function()
    local err = survives([[
      kube.background("doubler", function()
        local text = "x"
        while true do text = text .. text end
      end)
    ]], { "--memory-limit", "16Mi" }, 1)
    has(err, "script.lua:3: memory limit of 16 MiB reached: ")
    has(err, "more were wanted at once; hold less at a time, or raise --memory-limit")
    has(err, "in task doubler")
  end)

  it("leaves alone what makes much garbage and holds little", function()
    local err = survives([[
      kube.sleep(0)
      local held = {}
      for i = 1, 90000 do held[i] = { i } end
      for round = 1, 40 do
        local garbage = {}
        for i = 1, 10000 do garbage[i % 100] = { tostring(i) .. ("x"):rep(50) } end
        kube.sleep(0)
      end
      assert(#held == 90000)
      kube.background("at once", function()
        for i = 1, 1000000 do local garbage = { i } end
      end)
    ]], { "--memory-limit", "16Mi" })
    assert.is_nil(err:find("memory limit", 1, true), err)
  end)

  it("is far from the garbage of a small script, which is collected seldom and in time", function()
    local _, out = survives([[
      kube.sleep(0)
      collectgarbage()
      local most = 0
      for i = 1, 200000 do
        local garbage = { tostring(i) .. ("x"):rep(200) }
        most = math.max(most, collectgarbage("count") / 1024)
        if i % 1000 == 0 then kube.sleep(0) end
      end
      print(("at most %.0f MiB"):format(most))
    ]])
    local most = tonumber(out:match("at most (%d+) MiB"))
    assert.is_true(most >= 7 and most <= 14, out)
  end)

  it("holds for compiled code", function()
    local err = survives([[
      kube.jit "on"
      kube.background("hoarder", function()
        kube.sleep(0)
        local held
        while true do held = { held } end
      end)
      kube.background("doubler", function()
        kube.sleep(0)
        local text = "x"
        while true do text = text .. text end
      end)
    ]], { "--memory-limit", "16Mi" }, 1)
    has(err, "memory limit of 16 MiB reached: 2")
    has(err, "in task hoarder")
    has(err, "in task doubler")
  end)

  -- The state is full somewhere in the host's own code, too: nothing breaks, and nothing is left behind.
  it("may be reached anywhere", function()
    local source = [[
      local kube = require "kube"
      kube.jit(os.getenv "JIT")
      local informer, held = kube.informer("v1/configmaps"), {}
      informer:add_indexers { by_size = function(map) return { tostring(#map.metadata.name) } end }
      informer:add_event_handler { on_add = function(map) return kube.copy(map) end, on_update = kube.diff }
      kube.controller { name = "marker", resource = "v1/configmaps", namespaces = { "default" },
        retry = { base = 0.01 }, reconcile = function(ctx, map)
          if map and not kube.get(map, "data.done") then
            kube.client:patch("v1/configmaps", ctx.key, { data = { done = "1" } }, { type = "merge" })
          end
        end }
      kube.sleep(0)
      print(pcall(function()
        for i = 1, 1000 do
          kube.client:create { apiVersion = "v1", kind = "ConfigMap",
            metadata = { name = "a" .. i, namespace = "default" }, data = { text = ("x"):rep(5000) } }
          local list = kube.copy(kube.client:list("v1/configmaps", { namespace = "default" }))
          held[#held + 1], held[-i] = list, kube.json.encode(list)
          kube.all { function() kube.sleep(0) end, function() return kube.json.decode(held[-i]) end }
        end
      end))
      error("this is the end")
    ]]
    for _, size in ipairs { "1Mi", "1500Ki", "1700Ki", "2Mi", "2500Ki", "3Mi", "5Mi", "9Mi" } do
      for _, mode in ipairs { "off", "on" } do
        local result = run.run_script(source, { args = { "--sandbox", "--memory-limit", size }, env = { JIT = mode },
          timeout = 60 })
        assert.are.equal(1, result.code, size .. mode .. result.stderr)
        assert.is_truthy((result.stdout .. result.stderr):find("memory", 1, true))
      end
    end
  end)

  it("is none with 0, and must be a size", function()
    local err = survives([[
      kube.sleep(0)
      local held = {}
      for i = 1, 1200000 do
        held[i] = { i }
        if i % 10000 == 0 then kube.sleep(0) end
      end
    ]], { "--memory-limit", "0" })
    assert.is_nil(err:find("memory", 1, true), err)
    for _, size in ipairs { "12Q", "Mi", "-1", "1.5Gi", "999999999999Gi" } do
      local result = run.run_script("", { args = { "--memory-limit=" .. size } })
      assert.are.equal(2, result.code)
      has(result.stderr, "--memory-limit takes bytes, or a size such as 64Mi or 1Gi, not " .. size)
    end
  end)
end)

describe("the budget for loading", function()
  it("stops a script that computes before its first await", function()
    local result = run.run_script([[
      local function count()
        while true do end
      end
      count()
    ]])
    assert.are.equal(1, result.code)
    has(result.stderr, "script.lua:2: loading took longer than 0.5 s: the load phase declares and must " ..
      "not compute; do that in a task, or behind the first await (kube.sleep(0) is one)")
  end)
end)

describe("a script that nothing can stop", function()
  local backtracks = [[
    local function search()
      local found = ("a"):rep(60):find(("a*"):rep(60) .. "b")
      return found
    end
    kube.background("searcher", function()
      kube.sleep(0)
      search()
    end)
    kube.sleep(1000)
  ]]

  it("ends the process with a code of its own and the stack", function()
    local result = run.run_script(backtracks, { args = { "--stuck-timeout", "1.2" }, timeout = 60 })
    assert.are.equal(6, result.code, result.stderr)
    has(result.stderr, "moonwatch: the script has kept its thread busy for 1.")
    has(result.stderr, ", and nothing can stop it; the process ends with code 6\nin task searcher\n")
    if run.binary:find("tsan", 1, true) then return end -- it keeps signals back while a thread only computes
    has(result.stderr, "in function 'find'\n")
    has(result.stderr, "script.lua:2: in function <")
    has(result.stderr, "script.lua:7: in function <")
  end)

  it("may also be compiled", function()
    local result = run.run_script([[
      kube.jit "on"
      kube.sleep(0)
      while true do end
    ]], { args = { "--stuck-timeout", "0.3" }, timeout = 60 })
    assert.are.equal(6, result.code, result.stderr)
    has(result.stderr, "in task main\n")
  end)

  it("may be blocked", function()
    local path = os.tmpname()
    local file = assert(io.open(path, "w"))
    file:write([[
      kube.background("teller", function()
        while true do print(("x"):rep(100000)) end
      end)
      kube.sleep(1000)
    ]])
    file:close()
    -- A pipe that nobody reads, though somebody could.
    local told = run.sh(("mkfifo %s.pipe; exec 3<> %s.pipe; %s run %s --stuck-timeout 0.5 2>&1 >&3; echo code $?; "
      .. "rm %s.pipe")
      :format(path, path, run.binary, path, path), { timeout = 60 }).stdout
    os.remove(path)
    has(told, "moonwatch: the script has been waiting within one call for 3")
    has(told, "code 6\n")
    if not run.binary:find("tsan", 1, true) then has(told, "in task teller") end
  end)

  it("is left alone with 0", function()
    local proc = run.start_script([[
      kube.jit "on"
      kube.sleep(0)
      local spent = os.clock()
      print("begins")
      while os.clock() - spent < 2 do end
      print("ends")
    ]], { args = { "--stuck-timeout", "0" } })
    assert.are.equal(0, proc:wait_exit(60), proc.stderr)
    has(proc.stdout, "ends")
  end)

  it("is one after a number of seconds", function()
    local result = run.run_script("", { args = { "--stuck-timeout", "soon" } })
    assert.are.equal(2, result.code)
    has(result.stderr, "--stuck-timeout takes a number of seconds up to 86400, not soon")
  end)
end)

describe("string.rep", function()
  it("makes no more than 16 MiB", function()
    local result = run.run_script([[
      kube.sleep(0)
      assert(#("xy"):rep(8 * 1024 * 1024) == 16 * 1024 * 1024)
      assert(("ab"):rep(3, ",") == "ab,ab,ab" and ("x"):rep(-1) == "" and (""):rep(2 ^ 31) == "")
      assert(string.rep(5, "3") == "555")
      local line = ("x"):rep(1e9)
    ]])
    assert.are.equal(1, result.code)
    has(result.stderr, "script.lua:5: string.rep would make a string of 1000000000 bytes; 16777216 are the most")
  end)
end)
