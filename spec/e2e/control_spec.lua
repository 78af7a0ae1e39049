-- The commands that operate a running process, tried on real ones.
local cjson = require "cjson"
local cleanup = require "spec.support.cleanup"
local control_rig = require "spec.support.control_rig"
local run = require "spec.support.run"
local scrape = require "spec.support.scrape"
local uv = require "luv"

local READY = [[
  kube.background("ready", function()
    print("ready")
    kube.sleep(3600)
  end)
]]

local GREETER = [[
  local kube = require "kube"
  kube.controller {
    name = "greeter", resource = "v1/configmaps", workers = 2,
    reconcile = function(ctx, map)
      if not map then return end
      if map.data and map.data.fail then error(map.data.fail, 0) end
      if map.data and map.data.later then return { requeue_after = 3600 } end
    end,
  }
]] .. READY

local function mode(path) return ("%o"):format(assert(uv.fs_lstat(path)).mode % 4096) end

local function sockets(rig)
  local names = {}
  for name in uv.fs_scandir_next, (uv.fs_scandir(rig.runtime .. "/moonwatch")) do names[#names + 1] = name end
  table.sort(names)
  return names
end

describe("the socket of a running process", function()
  cleanup.install()
  local rig
  before_each(function() rig = control_rig.new() end)

  it("is its owner's alone, in a directory that is, too, and goes with the process", function()
    local proc = rig:run { ["main.lua"] = READY }
    proc:wait_line("^ready", 30)
    local name = assert(sockets(rig)[1])
    assert.matches("^%d+%.sock$", name)
    assert.equal("600", mode(rig.runtime .. "/moonwatch/" .. name))
    assert.equal("700", mode(rig.runtime .. "/moonwatch"))
    proc:kill("sigterm")
    assert.equal(0, proc:wait_exit(30))
    assert.same({}, sockets(rig))
  end)

  it("is not put into a directory that others can write to; the process runs all the same", function()
    assert(uv.fs_mkdir(rig.runtime .. "/moonwatch", 511))
    assert(uv.fs_chmod(rig.runtime .. "/moonwatch", 511))
    local uid = run.sh("id -u").stdout:match("%d+")
    assert(uv.fs_mkdir(rig.runtime .. "/moonwatch-" .. uid, 511))
    assert(uv.fs_chmod(rig.runtime .. "/moonwatch-" .. uid, 511))
    local proc = rig:run { ["main.lua"] = READY }
    proc:wait_line("^ready", 30)
    local _, warnings = proc.stderr:gsub('"level":"warn"', "")
    assert.equal(1, warnings)
    assert.matches("others can look into it; run chmod 700 on it", proc.stderr, 1, true)
    local _, err, code = rig:moonwatch("status")
    assert.equal(1, code)
    assert.matches("nothing is running", err, 1, true)
  end)

  it("can be elsewhere, or not be at all", function()
    local path = rig.directory .. "/s"
    local proc = rig:run({ ["main.lua"] = READY }, { rig.scripts, "--control", path })
    proc:wait_line("^ready", 30)
    assert.equal("600", mode(path))
    assert.equal(rig.scripts, rig:json("status", "--control", path).scripts[1].script)
    proc:kill("sigterm")
    assert.equal(0, proc:wait_exit(30))
    assert.is_nil(uv.fs_lstat(path))
    local silent = rig:run({}, { rig.scripts, "--control", "none" })
    silent:wait_line("^ready", 30)
    assert.is_nil(uv.fs_lstat(rig.runtime .. "/moonwatch"))
  end)

  it("that was asked for and cannot be ends the process", function()
    local proc = rig:run({ ["main.lua"] = READY }, { rig.scripts, "--control", rig.directory .. "/no/s" })
    proc.fails = true
    assert.equal(1, proc:wait_exit(30))
    assert.matches("moonwatch: %-%-control: cannot listen on .*/no/s: No such file or directory", proc.stderr)
  end)

  it("of a process that was killed goes when another one starts", function()
    local first = rig:run { ["main.lua"] = READY }
    first.fails = true
    first:wait_line("^ready", 30)
    local stale = sockets(rig)[1]
    first:kill("sigkill")
    assert.same({ stale }, sockets(rig))
    local _, err, code = rig:moonwatch("status")
    assert.equal(1, code)
    assert.matches("nothing is running", err, 1, true)
    assert.same({}, sockets(rig))
    io.open(rig.runtime .. "/moonwatch/" .. stale, "w"):close()  -- no socket: none of ours
    rig:run({}):wait_line("^ready", 30)
    assert.equal(2, #sockets(rig))
  end)
end)

describe("moonwatch status", function()
  cleanup.install()
  local rig
  before_each(function() rig = control_rig.new() end)

  it("tells of scripts, controllers and informers", function()
    rig:run { ["main.lua"] = 'require "lib"\n' .. GREETER, ["lib.lua"] = "return {}" }:wait_line("^ready", 30)
    local status = rig:status_when(function(s) return s.scripts[1].controllers[1].state == "running" end)
    local script = status.scripts[1]
    assert.equal(rig.scripts, script.script)
    assert.equal("active", script.state)
    assert.matches("^%x+$", script.revision)
    assert.equal(2, #script.files)
    assert.same({}, script.history)
    assert.equal("greeter", script.controllers[1].name)
    assert.equal("v1/configmaps", script.controllers[1].resource)
    assert.is_true(status.informers[1].synced)
    local out, err, code = rig:moonwatch("status")
    assert.equal("", err)
    assert.equal(0, code)
    assert.matches("revision  " .. script.revision .. ", active for .*2 files", out)
    assert.matches("\n  greeter +v1/configmaps +running +2 ", out)
    assert.matches("\nv1/configmaps +yes ", out)
  end)

  it("is served beside the metrics, which name the revision", function()
    local proc = rig:run({ ["main.lua"] = GREETER }, { rig.scripts, "--no-reload", unpack(scrape.args) })
    local seen = scrape.of(proc)
    proc:wait_line("^ready", 30)
    local function served(revision)
      local status, body
      for _ = 1, 1000 do
        status, body = seen:get("/status")
        if status == 200 and cjson.decode(body).scripts[1].revision == revision then return cjson.decode(body) end
        uv.sleep(20)
      end
      error("not served: " .. body)
    end
    local function info()
      local _, body = seen:get("/metrics")
      local _, count = body:gsub("\nmoonwatch_bundle_info{", "")
      return body:match("\n(moonwatch_bundle_info{[^\n]*)"), count
    end
    local revision = rig:json("status").scripts[1].revision
    assert.equal("greeter", served(revision).scripts[1].controllers[1].name)
    assert.same({ ('moonwatch_bundle_info{script="%s",revision="%s"} 1'):format(rig.scripts, revision), 1 }, { info() })
    assert.equal(405, (seen:request("POST", "/status")))
    rig:write("main.lua", "-- changed\n" .. GREETER)
    local after = rig:json("reload").scripts[1].revision
    served(after)
    assert.same({ ('moonwatch_bundle_info{script="%s",revision="%s"} 1'):format(rig.scripts, after), 1 }, { info() })
  end)

  it("says when nothing runs, and which there are when several do", function()
    local _, err, code = rig:moonwatch("status")
    assert.equal(1, code)
    assert.matches("nothing is running: start a script with moonwatch run", err, 1, true)
    rig:run { ["main.lua"] = READY }:wait_line("^ready", 30)
    rig:run {}:wait_line("^ready", 30)
    _, err, code = rig:moonwatch("status")
    assert.equal(1, code)
    local first, second = err:match("say which:\n  %-%-pid (%d+)  /tmp/%S+\n  %-%-pid (%d+)  /tmp/%S+\n")
    assert.equal(tonumber(first), rig:json("status", "--pid", first).pid)
    assert.equal(tonumber(second), rig:json("status", "--pid", second).pid)
    _, err, code = rig:moonwatch("status", "--pid", "1")
    assert.equal(1, code)
    assert.matches("no process 1 of yours", err, 1, true)
  end)

  it("says what is wrong with its arguments", function()
    for arguments, sentence in pairs {
      ["status x"] = "what is to be done with x",
      ["status --pid x"] = "--pid takes the number of a process, not x",
      ["status --pid 1 --control x"] = "give one of them",
      ["status --once"] = "unknown option '--once'",
      ["hold maybe"] = "hold takes on or off, not maybe",
      ["why"] = "which key?",
      ["enqueue greeter"] = "which controller and key?",
      ["statsu"] = "did you mean 'status'?",
    } do
      local words = {}
      for word in arguments:gmatch("%S+") do words[#words + 1] = word end
      local _, err, code = rig:moonwatch(unpack(words))
      assert.equal(2, code, arguments)
      assert.matches(sentence, err, 1, true)
    end
    local _, err, code = rig:moonwatch("status", "--control", rig.directory .. "/none")
    assert.equal(1, code)
    assert.matches("nothing listens at", err, 1, true)
  end)
end)

describe("another revision, asked for by hand,", function()
  cleanup.install()
  local rig, proc
  -- A script that says on demand which one it is.
  local function version(n) return ('local kube = require "kube"\nprint("version %d")\n'):format(n) .. READY end

  before_each(function()
    rig = control_rig.new()
    proc = rig:run({ ["main.lua"] = version(1) }, { rig.scripts, "--no-reload" })
    proc:wait_line("^ready", 30)
  end)

  local function active() return rig:json("status").scripts[1] end

  it("is active when reload has answered", function()
    local before = active().revision
    rig:write("main.lua", version(2))
    local out, err, code = rig:moonwatch("reload")
    assert.equal("", err)
    assert.equal(0, code)
    local now = active()
    assert.equal(("%s: revision %s is active, in place of %s\n"):format(rig.scripts, now.revision, before), out)
    assert.same({ before }, now.history)
    assert.equal(1, now.reloads)
    assert.is_true(now.probation)
    proc:wait_line("^version 2", 30)
    assert.matches("is active already; nothing has changed\n$", (rig:moonwatch("reload")))
  end)

  it("that fails changes nothing, and the whole report is told and stays", function()
    local before = active().revision
    rig:write("main.lua", "local x = = 1\n")
    rig:write("other.lua", "return )\n")
    local out, err, code = rig:moonwatch("reload")
    assert.equal("", out)
    assert.equal(1, code)
    assert.matches("failed, and " .. before .. " goes on:\n", err, 1, true)
    assert.matches("main.lua:1: unexpected symbol near '='", err, 1, true)
    assert.matches("other.lua:1: unexpected symbol near ')'", err, 1, true)
    local script = active()
    assert.equal("failed", script.state)
    assert.equal(before, script.revision)
    assert.equal(1, script.failures)
    assert.equal(script.pending.revision, script.failure.revision)
    assert.matches("other.lua:1", script.pending.why, 1, true)
    local text = rig:moonwatch("status")
    assert.matches("pending   " .. script.pending.revision .. ", not active because it failed", text, 1, true)
    assert.matches("\n    .*main.lua:1: unexpected symbol", text)
    os.remove(rig.scripts .. "/other.lua")
    rig:write("main.lua", version(3))
    assert.equal("active", rig:json("reload").scripts[1].result)
    assert.is_nil(active().pending)
  end)

  it("that cannot even be read is told, too", function()
    os.remove(rig.scripts .. "/main.lua")
    local _, err, code = rig:moonwatch("reload")
    assert.equal(1, code)
    assert.matches("cannot be read, and revision %x+ goes on:\n  ", err)
    assert.matches(rig.scripts, err, 1, true)
  end)

  it("can be one that ran before, by the beginning of its name", function()
    local first = active().revision
    local _, err, code = rig:moonwatch("rollback")
    assert.equal(1, code)
    assert.matches("has no revision to go back to", err, 1, true)
    rig:write("main.lua", version(2))
    rig:json("reload")
    local second = active().revision
    rig:write("main.lua", version(3))
    rig:json("reload")
    assert.same({ second, first }, active().history)
    local out
    out, err, code = rig:moonwatch("rollback")
    assert.equal("", err)
    assert.equal(0, code)
    assert.matches("revision " .. second .. " is active", out, 1, true)
    assert.equal(first, rig:json("rollback", first:sub(1, 8)).scripts[1].active)
    _, err, code = rig:moonwatch("rollback", "nothex")
    assert.equal(1, code)
    assert.matches("remembers no revision nothex; it has: ", err, 1, true)
    _, err, code = rig:moonwatch("rollback", first)
    assert.equal(1, code)
    assert.matches("is the active revision", err, 1, true)
  end)

  it("waits while reloads are held, and rollback does not", function()
    local first = active().revision
    rig:write("main.lua", version(2))
    rig:json("reload")
    local out, err, code = rig:moonwatch("hold")
    assert.equal("", err)
    assert.equal(0, code)
    assert.matches("reloads are held; release them with: moonwatch hold off", out, 1, true)
    rig:write("main.lua", version(3))
    out, err, code = rig:moonwatch("reload")
    assert.equal("", out)
    assert.equal(1, code)
    assert.matches("because reloads are held", err, 1, true)
    assert.equal("held", active().state)
    assert.matches("reloads are held", active().pending.why, 1, true)
    assert.equal(first, rig:json("rollback").scripts[1].active)
    local pending = active().pending.revision
    rig:moonwatch("hold", "off")
    local script = rig:status_when(function(s) return s.scripts[1].revision == pending end).scripts[1]
    assert.equal("active", script.state)
    assert.is_nil(script.held_since)
  end)

  it("waits for its caches, which status names, and can be replaced meanwhile", function()
    rig:write("main.lua", [[
      local kube = require "kube"
      kube.informer("example.com/v1/nothings"):add_event_handler { on_add = print }
    ]])
    local waiting = run.start_command({ "reload" }, { env = rig.env })
    local script = rig:status_when(function(s) return s.scripts[1].state == "warming" end).scripts[1]
    assert.matches("it waits for the cache of example.com/v1/nothings", script.pending.why, 1, true)
    rig:write("main.lua", version(4))
    assert.equal("active", rig:json("reload").scripts[1].result)
    assert.equal(1, waiting:wait_exit(30))
    assert.matches("another revision came after", waiting.stderr, 1, true)
  end)

  it("does not keep a process from ending", function()
    rig:write("main.lua", [[
      local kube = require "kube"
      kube.informer("example.com/v1/nothings"):add_event_handler { on_add = print }
    ]])
    local waiting = run.start_command({ "reload" }, { env = rig.env })
    rig:status_when(function(s) return s.scripts[1].state == "warming" end)
    proc:kill("sigterm")
    assert.equal(0, proc:wait_exit(30))
    assert.equal(1, waiting:wait_exit(30))
    assert.matches("the process ends", waiting.stderr, 1, true)
  end)

  it("is for one of several scripts", function()
    local two = control_rig.new()
    local a, b = two:write("a.lua", version(1)), two:write("b.lua", version(2))
    local both = two:run({}, { a, b, "--no-reload" })
    both:wait_line("^ready", 30)
    both:wait_line("^ready", 30)
    two:write("a.lua", version(3))
    two:write("b.lua", version(4))
    local results = two:json("reload", "--script", "b").scripts
    assert.equal(1, #results)
    assert.equal(b, results[1].script)
    assert.equal("active", results[1].result)
    results = two:json("reload").scripts
    assert.same({ "active", "unchanged" }, { results[1].result, results[2].result })
    local _, err, code = two:moonwatch("rollback")
    assert.equal(1, code)
    assert.matches("which script is to go back? Say --script; it runs: " .. a, err, 1, true)
    assert.equal("active", two:json("rollback", "--script", b).scripts[1].result)
    _, err, code = two:moonwatch("hold", "--script", "c")
    assert.equal(1, code)
    assert.matches("this process runs no script c; it runs: ", err, 1, true)
  end)
end)
