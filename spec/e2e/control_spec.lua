-- The commands that operate a running process, tried on real ones.
local cjson = require "cjson"
local cleanup = require "spec.support.cleanup"
local control_rig = require "spec.support.control_rig"
local run = require "spec.support.run"
local sandbox = require "spec.support.sandbox"
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

describe("who may not use a running process", function()
  cleanup.install()
  local rig, path
  before_each(function()
    rig = control_rig.new()
    path = rig.directory .. "/s"
    rig:run({ ["main.lua"] = READY }, { rig.scripts, "--control", path }):wait_line("^ready", 30)
  end)

  local is_root = run.sh("id -u").stdout == "0\n"

  -- Root may open everything, so it asks as somebody else; others close the socket to themselves.
  it("hears that it belongs to another user", function()
    assert(uv.fs_chmod(rig.directory, 493))
    if not is_root then assert(uv.fs_chmod(path, 0)) end
    local as = is_root and "setpriv --reuid 65534 --clear-groups " or ""
    local answer = run.sh(("cp %s %s/moonwatch && %s%s/moonwatch status --control %s"):format(run.binary, rig.directory,
      as, rig.directory, path))
    assert.equal(1, answer.code)
    assert.matches(path .. " belongs to another user: run this as the one who runs the process", answer.stderr, 1, true)
  end)

  it("is whoever does not speak as it must", function()
    local function curl(...)
      local words = { "curl -s -w '%{http_code}' --unix-socket", path }
      for _, word in ipairs { ... } do words[#words + 1] = "'" .. word .. "'" end
      local answer = run.sh(table.concat(words, " "))
      assert.equal(0, answer.code, answer.stderr)
      local body, status = answer.stdout:match("^(.*)(%d%d%d)$")
      return tonumber(status), cjson.decode(body).error
    end
    local url = "http://moonwatch"
    assert.equal(200, (curl(url .. "/status")))
    for _, wrong in ipairs {
      { 404, "there are /status, /top", url .. "/nothing" },
      { 405, "this is for GET", "-XPOST", url .. "/status" },
      { 405, "this is for POST", url .. "/reload" },
      { 400, "which key?", url .. "/why" },
      { 400, "cannot be decoded", url .. "/why?key=%zz" },
      { 400, "cannot be decoded", url .. "/why?key=%00" },
      { 400, "too long", url .. "/why?key=" .. ("k"):rep(5000) },
      { 400, "on is true or false", "-XPOST", url .. "/hold?on=perhaps" },
      { 404, "the script has no controllers", url .. "/why?key=a" },
      { 404, "the script has no controllers", "-XPOST", url .. "/enqueue?controller=a&key=b" },
    } do
      local status, sentence = curl(unpack(wrong, 3))
      assert.equal(wrong[1], status, wrong[3])
      assert.matches(wrong[2], sentence, 1, true)
    end
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

  it("tells who leads, what a standby has queued, and what a controller waits for", function()
    local server = sandbox.start()
    cleanup.later(function() server:stop() end)
    rig:write("main.lua", 'kube.leader_election { name = "greeter", namespace = "default" }\n' .. GREETER)
    local other = rig:write("other.lua", [[
      kube.controller { name = "webs", resource = "example.com/v1/webs", reconcile = function() end }
    ]])
    local args = { rig.scripts .. "/main.lua", other, "--kubeconfig", server.kubeconfig }
    rig:run({}, args):wait_line("^ready", 30)
    local leader = rig:status_when(function(s) return s.lease.leading end)
    rig:run({}, args):wait_line("^ready", 30)
    local pids = {}
    for _, name in ipairs(sockets(rig)) do pids[#pids + 1] = tonumber(name:match("%d+")) end
    local pid = tostring(pids[1] == leader.pid and pids[2] or pids[1])
    local standby = rig:status_when(function(s)
      return s.lease.holder == leader.lease.identity and s.scripts[1].controllers[1].queue.ready > 0
        and s.scripts[2].controllers[1].missing
    end, "--pid", pid)
    assert.is_false(standby.lease.leading)
    assert.equal("standby", standby.scripts[1].controllers[1].state)
    assert.equal("syncing", standby.scripts[2].controllers[1].state)
    local out = rig:moonwatch("status", "--pid", pid)
    assert.matches("\nlease default/greeter: " .. leader.lease.identity .. " leads\n", out, 1, true)
    assert.matches("\n  webs waits for example.com/v1/webs", out, 1, true)
    out = rig:moonwatch("why", "default/kube-root-ca.crt", "--pid", pid)
    assert.matches("\n    nothing runs here: another process leads\n", out, 1, true)
    out = rig:moonwatch("status", "--pid", tostring(leader.pid))
    assert.matches("\nlease default/greeter: this process leads\n", out, 1, true)
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
      ["why"] = "which key? See moonwatch help why",
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
