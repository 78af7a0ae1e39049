-- A first revision that does not load: on a terminal it waits to be mended, elsewhere the process ends.
local cleanup = require "spec.support.cleanup"
local control_rig = require "spec.support.control_rig"
local http_client = require "spec.support.http_client"
local run = require "spec.support.run"
local terminal = require "spec.support.terminal"
local uv = require "luv"

local GOOD = [[
local kube = require "kube"
kube.on_load(function() print("handed over") end)
kube.controller {
  name = "maps", resource = "v1/configmaps", namespaces = { "default" },
  reconcile = function(ctx) print("reconciles " .. ctx.name) end,
}
]]
local BROKEN = "local kube = require 'kube'\nkube.controller { workers = = 2 }\n"
local MISSPELT = GOOD:gsub("namespaces", "namespacse")
local WAITS = "the script does not load; it starts as soon as its files are mended"

describe("a first revision that does not load", function()
  cleanup.install()
  local rig
  before_each(function() rig = control_rig.new() end)

  -- `moonwatch run` with these arguments on a terminal whose lines are long enough for a report.
  local function start(arguments, env, before)
    local all = {}
    for name, value in pairs(rig.env) do all[name] = value end
    for name, value in pairs(env or {}) do all[name] = value end
    return terminal.open(400, 100, ("%s %s run %s"):format(before or "", uv.fs_realpath(run.binary), arguments), all)
  end

  local function state_when(condition)
    return rig:status_when(function(status) return condition(status.scripts[1]) end).scripts[1]
  end

  it("waits on a terminal until it is mended, and is the first that runs then", function()
    local path = rig:write("main.lua", BROKEN)
    local screen = start(path .. " --sandbox --metrics-listen 127.0.0.1:0")
    local shown = screen:wait(WAITS .. "[^\n]*main%.lua:2: unexpected symbol near '='\"\n +2 | [^\n]*= = 2")
    local client = http_client.new { url = "http://" .. shown:match("serving metrics and probes[^\n]*(127%S+)") }
    cleanup.later(function() client:close() end)
    local function ready() return client:request { method = "GET", path = "/readyz?verbose" } end
    assert.equal(503, ready().status)
    assert.matches("main.lua has not been loaded yet", ready().body, 1, true)

    local script = state_when(function(s) return s.failure end)
    assert.equal("waiting", script.state)
    assert.is_nil(script.revision)
    assert.matches("main%.lua:2: unexpected symbol", script.failure.report)
    local out = rig:moonwatch("status")
    assert.matches("state +waiting\n", out)
    assert.matches("not active because it failed [^\n]* ago:\n +[^\n]*main%.lua:2: unexpected symbol", out)

    -- By hand, then with another mistake.
    local _, err, code = rig:moonwatch("reload")
    assert.equal(1, code)
    assert.matches("does not load; it starts as soon as its files are mended:\n +[^\n]*main%.lua:2: unexpected", err)
    rig:write("main.lua", MISSPELT)
    screen:wait(WAITS .. "[^\n]*main%.lua:3: [^\n]*did you mean 'namespaces'")

    rig:write("main.lua", GOOD)
    shown = screen:wait("reconciles kube%-root%-ca%.crt")
    assert.matches("info +loaded ", shown)
    assert.is_nil(shown:find("handed over", 1, true))
    script = state_when(function(s) return s.state == "active" end)
    assert.same({ 0, 3 }, { script.reloads, script.failures })
    assert.is_nil(script.failure)
    for _ = 1, 500 do
      if ready().status == 200 then break end
      uv.sleep(20)
    end
    assert.equal(200, ready().status)

    -- What is saved from now on is another revision, as ever.
    rig:write("main.lua", GOOD .. "-- changed\n")
    screen:wait("handed over")
    screen:press("C-c")
    screen:wait("left with 0")
  end)

  it("may do its work and end when it is mended", function()
    local path = rig:write("main.lua", "local nobody\nnobody()\n")
    local screen = start(path .. " --sandbox")
    screen:wait(WAITS .. "[^\n]*main%.lua:2: ")
    rig:write("main.lua", 'print("all done")\n')
    local shown = screen:wait("left with %d")
    assert.matches("all done\n", shown)
    assert.matches("left with 0", shown, 1, true)
  end)

  it("may wait for caches longer than a later one when it is mended", function()
    local path = rig:write("main.lua", BROKEN)
    local screen = start(path .. " --sandbox", { MOONWATCH_WARM_UP = "0.1" })
    screen:wait(WAITS)
    rig:write("main.lua", 'kube.controller { resource = "example.com/v1/webs", reconcile = function() end }\n')
    local script = state_when(function(s) return s.state == "active" end)
    assert.equal("syncing", script.controllers[1].state)
    screen:press("C-c")
    screen:wait("left with 0")
  end)

  it("ends with 1 by Ctrl-C, as nothing has run", function()
    local screen = start(rig:write("main.lua", BROKEN) .. " --sandbox")
    screen:wait(WAITS)
    screen:press("C-c")
    screen:wait("left with 1")
  end)

  it("waits alone: other scripts run", function()
    local bad = rig:write("bad.lua", BROKEN)
    local good = rig:write("good.lua", GOOD)
    local screen = start(bad .. " " .. good .. " --sandbox")
    local shown = screen:wait("reconciles kube%-root%-ca%.crt")
    assert.matches(WAITS .. "[^\n]*bad%.lua:2: ", shown)
    rig:write("bad.lua", GOOD:gsub('"maps"', '"others"'):gsub("reconciles", "mended: %0"))
    shown = screen:wait("mended: reconciles kube%-root%-ca%.crt")
    assert.is_nil(shown:find("handed over", 1, true))
    screen:press("C-c")
    screen:wait("left with 0")
  end)

  -- What the terminal shows of a command that must end by itself.
  local function ends(code, arguments, before)
    local screen = start(arguments, nil, before)
    local shown = screen:wait("left with %d")
    assert.matches("left with " .. code, shown, 1, true)
    assert.is_nil(shown:find(WAITS, 1, true))
    screen:close()
    return shown
  end

  it("ends with 1 where nothing can mend it", function()
    local path = rig:write("main.lua", BROKEN)
    assert.matches("main.lua:2: unexpected symbol", ends(1, path .. " --sandbox --no-reload"), 1, true)
    assert.matches("main.lua:2: unexpected symbol", ends(1, path .. " --sandbox < /dev/null"), 1, true)
    local log = rig.directory .. "/log"
    assert.matches("main.lua:2: unexpected symbol", ends(1, ("%s --sandbox 2> %s || { cat %s; false; }"):format(path,
      log, log)), 1, true)
    ends(1, rig.directory .. "/nobody.lua --sandbox")
    local pipe = rig.directory .. "/pipe"
    assert(run.sh("mkfifo " .. pipe).code == 0)
    assert.matches("unexpected symbol", ends(1, pipe .. " --sandbox", ("cat %s > %s &"):format(path, pipe)), 1, true)
  end)

  it("for want of a kubeconfig ends with 3, also when it is mended", function()
    local path = rig:write("main.lua", GOOD)
    ends(3, path .. " --kubeconfig " .. rig.directory .. "/none")
    rig:write("main.lua", BROKEN)
    local screen = start(path .. " --kubeconfig " .. rig.directory .. "/none")
    screen:wait(WAITS)
    rig:write("main.lua", GOOD)
    local shown = screen:wait("left with %d")
    assert.matches("left with 3", shown, 1, true)
    assert.matches("error kubeconfig [^\n]*/none: No such file or directory\n", shown)
  end)
end)
