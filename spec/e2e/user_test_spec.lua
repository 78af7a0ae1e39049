-- `moonwatch test`: specs of scripts, run by the binary.
local cleanup = require "spec.support.cleanup"
local run = require "spec.support.run"
local uv = require "luv"

-- Puts files by name into a directory of their own, until the spec is over.
local function place(files)
  local directory = assert(uv.fs_mkdtemp("/tmp/mw-XXXXXX"))
  for name, text in pairs(files) do
    local file = assert(io.open(directory .. "/" .. name, "wb"))
    file:write(text)
    file:close()
  end
  cleanup.later(function()
    for name in pairs(files) do os.remove(directory .. "/" .. name) end
    uv.fs_rmdir(directory)
  end)
  return directory
end

-- Runs specs: files by name, or those of a directory of this repository.
local function run_specs(specs, options)
  options = options or {}
  local args = { "test", type(specs) == "string" and specs or place(specs) }
  for _, word in ipairs(options.args or {}) do args[#args + 1] = word end
  return run.run_command(args, { timeout = 60, env = options.env })
end

local controller = [[
  local kube = require "kube"
  kube.controller { name = "labels", resource = "v1/configmaps", reconcile = function(ctx, config)
    if config and config.data and config.data.wanted then
      ctx.client:apply { apiVersion = "v1", kind = "ConfigMap",
        metadata = { name = ctx.name, namespace = ctx.namespace, labels = { wanted = config.data.wanted } } }
    end
  end }
]]

describe("moonwatch test", function()
  cleanup.install()

  it("runs the specs of the examples", function()
    local result = run_specs("examples")
    assert.are.equal("", result.stderr:gsub("[^\n]*not now[^\n]*\n", ""):gsub("[^\n]*is no duration[^\n]*\n", ""))
    assert.matches("%d%d successes / 0 failures / 0 errors / 0 pending", result.stdout)
    assert.are.equal(0, result.code)
  end)

  it("says which method was meant", function()
    local result = run_specs { ["a.lua"] = controller, ["a_spec.lua"] = [[
      local t = require("kube.test").new { script = "a.lua" }
      it("misspells", function() t:setle() end)
      it("calls with a dot", function() t.settle() end)
    ]] }
    assert.matches("t has no 'setle' (did you mean 'settle'?)", result.stdout, 1, true)
    assert.matches("call it with a colon: t:settle(...)", result.stdout, 1, true)
  end)

  it("lets specs await, and tells what failed, where", function()
    local result = run_specs { ["a_spec.lua"] = [[
      local kube = require "kube"
      local here = {}
      before_each(function() kube.sleep(0.001) here[#here + 1] = #kube.client:list("v1/namespaces") end)
      it("passes", function()
        local task = kube.spawn(function() kube.sleep(0.001) return "done" end)
        assert.equal("done", task:wait())
        assert.equal(4, here[1])
      end)
      it("fails", function() kube.sleep(0.001) assert.equal(1, 2) end)
      it("is in error", function() kube.sleep(0.001) kube.client:get("v1/namespaces", "nowhere") end)
    ]] }
    assert.matches("1 success / 1 failure / 1 error", result.stdout)
    assert.matches("a_spec.lua:9: Expected objects to be equal", result.stdout)
    assert.matches('a_spec.lua:10: namespaces "nowhere" not found', result.stdout)
    assert.are.equal(1, result.code)
  end)

  it("tells of a spec that is no Lua, and of a directory without specs", function()
    local result = run_specs { ["a_spec.lua"] = "it('x', function(" }
    assert.matches("a_spec.lua:1: ", result.stdout)
    assert.are.equal(1, result.code)
    result = run_specs { ["a.lua"] = "" }
    assert.matches("No test files found matching Lua pattern: _spec%%.lua%$", result.stdout)
    assert.are.equal(1, result.code)
  end)

  it("hands options to busted behind --", function()
    local result = run_specs({ ["a_spec.lua"] = [[
      it("one", function() end)
      it("two", function() error("not this one") end)
    ]] }, { args = { "--", "--filter=one", "--output=TAP" } })
    assert.matches("ok 1 %- one", result.stdout)
    assert.are.equal(0, result.code)
  end)

  it("runs all specs below the current directory when none is given", function()
    local directory = place { ["a_spec.lua"] = 'it("one", function() end)',
      ["b_spec.lua"] = 'it("two", function() end)', ["spec.lua"] = "error('not this one')" }
    local binary = assert(uv.fs_realpath(run.binary))
    local result = run.sh(("cd %s && %s test && %s test -- -o TAP"):format(directory, binary, binary))
    assert.matches("2 successes / 0 failures / 0 errors", result.stdout)
    assert.matches("ok 1 %- one\nok 2 %- two\n", result.stdout)
    assert.are.equal(0, result.code)
  end)

  it("does what README.md shows", function()
    local file = assert(io.open("README.md"))
    local text = file:read("*a")
    file:close()
    local script, spec = text:match('\n## Testing a controller\n.-```lua\n(.-)```.-```lua\n(.-)```')
    local result = run_specs { ["labels.lua"] = script, ["labels_spec.lua"] = spec }
    assert.matches("2 successes / 0 failures / 0 errors", result.stdout)
    assert.are.equal(0, result.code)
  end)

  it("runs on when a spec calls os.exit", function()
    local result = run_specs { ["a_spec.lua"] = [[
      it("leaves", function() os.exit(0) end)
      it("stays", function() end)
    ]] }
    assert.matches("1 success / 0 failures / 1 error", result.stdout)
    assert.matches("a_spec.lua:1: os.exit%(%) is not for specs", result.stdout)
    assert.are.equal(1, result.code)
  end)

  it("says what to install when there is no busted", function()
    local result = run_specs({ ["a_spec.lua"] = "" }, { env = { LUA_PATH = "/nowhere/?.lua" } })
    assert.are.equal("moonwatch: the specs need busted, which is not installed: apt-get install lua-busted, or "
      .. "luarocks --lua-version 5.1 install busted\n", result.stderr)
    assert.are.equal(1, result.code)
  end)

  it("does not call it a success when a signal stopped it", function()
    local directory = place { ["idle.lua"] = 'require("kube").sleep(0)', ["a_spec.lua"] = [[
      it("waits", function()
        require("kube.test").new { script = "idle.lua" }
        print("waiting")
        require("kube").sleep(60)
      end)
    ]] }
    local proc = run.start_command { "test", directory }
    cleanup.later(function() proc:kill("sigkill") end)
    proc:wait_line("^waiting$", 20)
    proc:kill("sigterm")
    assert.are.equal(130, proc:wait_exit(20))
  end)

  it("has options of its own, and refuses others", function()
    local result = run.run_command({ "help", "test" })
    assert.matches("^Usage: moonwatch test", result.stdout)
    result = run.run_command({ "test", "--sandbox" })
    assert.matches("unknown option '%-%-sandbox'", result.stderr)
    assert.are.equal(2, result.code)
  end)
end)

describe("kube.test", function()
  cleanup.install()

  -- Runs the text of a spec beside controller.lua; kube and kt are there.
  local function check(source, files)
    local all = { ["controller.lua"] = controller,
      ["a_spec.lua"] = 'local kube, kt = require "kube", require "kube.test"\n' .. source }
    for name, text in pairs(files or {}) do all[name] = text end
    return run_specs(all)
  end

  local function passes(source, files)
    local result = check(source, files)
    assert.matches(" 0 failures / 0 errors", result.stdout .. result.stderr)
    assert.are.equal("", result.stderr)
    assert.are.equal(0, result.code)
  end

  it("is for specs alone", function()
    local result = run.run_script('require "kube.test"')
    assert.matches('script.lua:1: require "kube.test" is for specs: `moonwatch test` runs them', result.stderr)
    assert.are.equal(1, result.code)
  end)

  it("begins each time with an untouched sandbox, and stops the script before", function()
    passes [[
      for i = 1, 3 do
        it("number " .. i, function()
          local t = kt.new { script = "controller.lua" }
          assert.same({}, kt.summary(t:settle()))
          assert.is_nil(t:get("v1/configmaps", "default/a"))
          t:create { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "a" }, data = { wanted = "x" } }
          t:fail { verb = "delete", resource = "v1/configmaps", status = 500, count = 0 }
          assert.same({ "apply v1/configmaps default/a" }, kt.summary(t:settle()))
          assert.same({}, t:settle())
        end)
      end
    ]]
  end)

  it("tells of a script that does not load", function()
    local result = check([[
      it("a", function() kt.new { script = "broken.lua" } end)
      it("b", function() kt.new { script = "missing.lua" } end)
      it("c", function() kt.new { script = "raising.lua" } end)
      it("d", function() kt.new { scrip = "controller.lua" } end)
      it("e", function() assert.same({}, kt.new({ script = "controller.lua" }):settle()) end)
    ]], { ["broken.lua"] = "local x = = 1", ["raising.lua"] = "\nerror('on purpose')" })
    assert.matches("1 success / 0 failures / 4 errors", result.stdout)
    assert.matches("a_spec.lua:2: the script does not load: [^\n]*broken.lua:1: unexpected symbol", result.stdout)
    assert.matches("a_spec.lua:3: the script does not load: cannot open [^\n]*missing.lua", result.stdout)
    assert.matches("a_spec.lua:4: the script does not load: [^\n]*raising.lua:2: on purpose", result.stdout)
    assert.matches("a_spec.lua:5: kube.test.new has no option 'scrip' %(did you mean 'script'%?%)", result.stdout)
    assert.are.equal(1, result.code)
  end)

  it("tells of a script that fails later, and goes on with the next", function()
    passes([[
      it("fails", function()
        local t = kt.new { script = "later.lua" }
        t:create { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "go", namespace = "default" } }
        local ok, err = pcall(t.eventually, t, function() return false end)
        assert.is_false(ok)
        assert.matches("the script has failed: .*later.lua:4: on purpose", err)
        assert.matches("on purpose", t:failed())
      end)
      it("goes on", function()
        local t = kt.new { script = "controller.lua" }
        assert.is_nil(t:failed())
        t:stop()
        t:stop()
      end)
    ]], { ["later.lua"] = [[
      local kube = require "kube"
      kube.sleep(0)
      while not kube.client:try_get("v1/configmaps", "default/go") do kube.sleep(0.005) end
      error("on purpose")
    ]] })
  end)

  it("says what goes on when a script does not come to rest", function()
    local result = check([[
      it("never rests", function()
        local t = kt.new { script = "busy.lua" }
        t:create { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "a" } }
        t:settle(0.3)
      end)
    ]], { ["busy.lua"] = [[
      local kube = require "kube"
      kube.controller { name = "busy", resource = "v1/configmaps", reconcile = function() kube.sleep(30) end }
    ]] })
    assert.matches("a_spec.lua:5: t:settle%(%): still not at rest after 0.3 s: keys in the work queue busy",
      result.stdout)
    assert.are.equal(1, result.code)
  end)

  it("settles over watches that were cut and over refusals", function()
    passes [[
      it("settles", function()
        local t = kt.new { script = "controller.lua", seed = 3, manifests = {
          { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "a" }, data = { wanted = "1" } } } }
        assert.same({ "apply v1/configmaps default/a" }, kt.summary(t:settle()))
        t:cut_watches()
        t:patch("v1/configmaps", "default/a", { data = { wanted = "2" } })
        local writes = t:settle()
        assert.same({ "apply v1/configmaps default/a" }, kt.summary(writes))
        assert.equal("2", writes[1].object.metadata.labels.wanted)
        assert.equal(200, writes[1].status)
      end)
    ]]
  end)
end)
