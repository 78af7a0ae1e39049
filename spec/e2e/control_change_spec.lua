-- moonwatch reload, rollback and hold, tried on real processes.
local cjson = require "cjson"
local cleanup = require "spec.support.cleanup"
local control_rig = require "spec.support.control_rig"
local run = require "spec.support.run"

local READY = [[
  kube.background("ready", function()
    print("ready")
    kube.sleep(3600)
  end)
]]

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
    assert.matches("\n  state     active, and not what was offered last\n", text, 1, true)
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

  it("waits for its indexes, and status says so", function()
    local cached = [[
      local kube = require "kube"
      local informer = kube.informer("v1/configmaps")
      informer:add_event_handler { on_add = function() end }
    ]]
    rig:write("main.lua", cached .. [[
      kube.background("fill", function()
        for i = 1, 320 do
          kube.client:create { apiVersion = "v1", kind = "ConfigMap",
            metadata = { name = "n" .. i, namespace = "default" } }
        end
      end)
    ]])
    rig:json("reload")
    rig:status_when(function(s) return s.informers[1] and s.informers[1].objects >= 320 end)
    -- The first 256 are indexed while it loads.
    rig:write("main.lua", cached .. [[
      local seen = 0
      informer:add_indexers { slow = function()
        seen = seen + 1
        local began = os.clock()
        while seen > 260 and os.clock() - began < 0.05 do end
        return {}
      end }
    ]])
    local waiting = run.start_command({ "reload" }, { env = rig.env })
    local script = rig:status_when(function(s) return s.scripts[1].state == "warming" end).scripts[1]
    assert.equal("its indexes are not built yet", script.pending.why)
    assert.is_nil(script.pending.missing)
    assert.equal(0, waiting:wait_exit(30))
  end)

  it("can be replaced also where none is active, and the process goes on", function()
    local two = control_rig.new()
    local waits = [[
      local kube = require "kube"
      kube.informer("example.com/v1/%s"):add_event_handler { on_add = print }
    ]]
    local b = two:write("b.lua", 'local kube = require "kube"\nkube.sleep(0)\nerror("b is ill")\n')
    local process = two:run({ ["a.lua"] = version(1) }, { two.scripts .. "/a.lua", b, "--no-reload" })
    process.fails = true
    two:status_when(function(s) return s.scripts[2] and s.scripts[2].state == "failed" end)
    two:write("b.lua", waits:format "nothings")
    local first = run.start_command({ "reload", "--script", "b" }, { env = two.env })
    local pending = two:status_when(function(s) return s.scripts[2].state == "warming" end).scripts[2].pending.revision
    two:write("b.lua", waits:format "others")
    local second = run.start_command({ "reload", "--script", "b" }, { env = two.env })
    assert.equal(1, first:wait_exit(30))
    assert.equal(("%s: another revision came after %s; none is active yet\n"):format(b, pending), first.stderr)
    process:kill("sigterm")
    assert.equal(1, second:wait_exit(30))
    assert.matches("the process ends", second.stderr, 1, true)
  end)

  it("that fails soon after is taken back, and status says why, until it is asked for again", function()
    local first = active().revision
    rig:write("main.lua", [[
      local kube = require "kube"
      kube.sleep(0)
      error("it broke")
    ]])
    local out = rig:moonwatch("reload", "-o", "json")
    local second = cjson.decode(out).scripts[1].revision
    local script = rig:status_when(function(s)
      return s.scripts[1].revision == first and s.scripts[1].reloads == 2
    end).scripts[1]
    assert.same({ second }, script.bad)
    assert.equal(second, script.pending.revision)
    assert.matches("it broke", script.pending.why, 1, true)
    assert.same({}, script.history)
    out = rig:moonwatch("reload", "-o", "json")
    assert.equal(second, cjson.decode(out).scripts[1].revision)
    rig:status_when(function(s) return s.scripts[1].reloads == 4 and s.scripts[1].revision == first end)
    rig:write("main.lua", version(2))
    assert.equal("active", rig:json("reload").scripts[1].result)
    assert.is_nil(active().pending)
  end)

  it("that is saved is taken by itself, unless reloads are held", function()
    local watched = control_rig.new()
    watched:run({ ["main.lua"] = version(1) }):wait_line("^ready", 30)
    local first = watched:json("status").scripts[1].revision
    watched:write("main.lua", "local x = = 1\n")
    watched:status_when(function(s) return s.scripts[1].state == "failed" end)
    watched:write("main.lua", version(1))
    local script = watched:status_when(function(s) return s.scripts[1].state == "active" end).scripts[1]
    assert.equal(first, script.revision)
    assert.is_nil(script.pending)
    watched:moonwatch("hold", "on")
    watched:write("main.lua", version(2))
    script = watched:status_when(function(s) return s.scripts[1].pending end).scripts[1]
    assert.equal(first, script.revision)
    local pending = script.pending.revision
    watched:moonwatch("hold", "off")
    watched:status_when(function(s) return s.scripts[1].revision == pending end)
    os.remove(watched.scripts .. "/main.lua")
    script = watched:status_when(function(s) return s.scripts[1].state == "failed" end).scripts[1]
    assert.equal("", script.pending.revision)
    assert.matches("what is there now cannot be read, %S+ ago:\n    ", (watched:moonwatch("status")))
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
