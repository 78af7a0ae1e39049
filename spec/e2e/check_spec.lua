-- `moonwatch check`: what a script would do, or why it does not load, without a cluster.
local cjson = require "cjson"
local cleanup = require "spec.support.cleanup"
local run = require "spec.support.run"
local uv = require "luv"

-- Writes files into a directory of their own; its path.
local function directory(files)
  local path = assert(uv.fs_mkdtemp("/tmp/mw-XXXXXX"))
  for name, text in pairs(files) do
    local file = assert(io.open(path .. "/" .. name, "w"))
    file:write(text)
    file:close()
  end
  cleanup.later(function()
    for name in pairs(files) do os.remove(path .. "/" .. name) end
    uv.fs_rmdir(path)
  end)
  return path
end

-- Runs the command without any cluster to reach; stdout, stderr and the exit code.
local function moonwatch(...)
  local proc = run.start_command({ ... }, { env = { KUBECONFIG = "/nonexistent", HOME = "/nonexistent" } })
  local code = proc:wait_exit(30)
  return proc.stdout, proc.stderr, code
end

describe("moonwatch check", function()
  cleanup.install()

  it("tells of the controllers of a script", function()
    local out, err, code = moonwatch("check", "-o", "json", "examples/website/website.lua")
    assert.equal("", err)
    assert.equal(0, code)
    local controller = cjson.decode(out)[1].declared.controllers[1]
    assert.equal("website", controller.name)
    assert.equal("example.com/v1/websites", controller.resource)
    assert.same({ "apps/v1/deployments", "v1/services" }, controller.owns)
    assert.matches("^examples/website/website%.lua:%d+$", controller.place)
  end)

  it("lets nothing of the script run, not even its end", function()
    local path = directory { ["main.lua"] = [[
      local kube = require "kube"
      kube.leader_election { name = "x", on_stopped_leading = function() print("stopped") end }
      kube.every { name = "tick", interval = 0.001, immediate = true, run = function() print("timer") end }
      kube.background("task", function() print("task") end)
      kube.informer("v1/pods"):add_event_handler { on_add = print }
      kube.defer(function() print("deferred") end)
      pcall(kube.sleep, 0)
      print("behind the first await")
    ]] }
    local out, err, code = moonwatch("check", "-o", "json", path .. "/main.lua")
    assert.equal("", err)
    assert.equal(0, code)
    assert.is_true(cjson.decode(out)[1].ok)
  end)

  it("fails when one of the scripts does not load", function()
    local path = directory { ["bad.lua"] = 'kube.controller { resource = "v1/pods", reconcil = 1 }' }
    local out, _, code = moonwatch("check", "examples/greeter.lua", path .. "/bad.lua")
    assert.equal(1, code)
    assert.matches("bad.lua:1: kube.controller has no option 'reconcil' (did you mean 'reconcile'?)", out, 1, true)
  end)
end)
