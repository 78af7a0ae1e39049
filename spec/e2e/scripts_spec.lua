-- The scripts of this repository: what they are asked for, and what they say at the end.
local cleanup = require "spec.support.cleanup"
local files = require "spec.support.files"
local run = require "spec.support.run"

local build = os.getenv("MOONWATCH_BUILD") or "build"

describe("scripts/test", function()
  cleanup.install()

  local directory

  before_each(function()
    directory = files.dir()
    cleanup.later(function() directory:close() end)
  end)

  -- A spec that fails when it runs for the first time, and passes from then on.
  local fickle = [[
    %s
    it("is fickle", function()
      local path = %q
      local file = io.open(path)
      if file then file:close() return end
      assert(io.open(path, "w")):close()
      error("the first time")
    end)
  ]]

  local function test(name, text)
    directory:write(name, text)
    return run.sh("exec scripts/test " .. directory:of(name),
      { env = { MOONWATCH_BUILD = build, MOONWATCH_JOBS = "2" }, timeout = 60 })
  end

  it("names a file that passed only alone as unsteady, and counts it as passed", function()
    local result = test("x_spec.lua", fickle:format("", directory:of "ran"))
    assert.equal(0, result.code, result.stdout .. result.stderr)
    assert.truthy(result.stdout:find("\n1 passed, 0 failed\n$"), result.stdout)
    assert.truthy(result.stderr:find("UNSTEADY: " .. directory:of "x_spec.lua", 1, true), result.stderr)
  end)

  it("gives a seed that fails no second chance, and what fails beside seeds one", function()
    for _, says in ipairs { "is right (seed 7)", "replay: MOONWATCH_SEED=7 scripts/test" } do
      local seeded = fickle:gsub("is fickle", says)
      local result = test("x_spec.lua", seeded:format("", directory:of(says:match("^%a+"))))
      assert.equal(1, result.code, result.stdout .. result.stderr)
      assert.truthy(result.stdout:find("\n0 passed, 1 failed\n$"), result.stdout)
      assert.falsy(result.stderr:find("once more", 1, true), result.stderr)
    end
    local result = test("x_spec.lua", fickle:format('it("is right (seed 7)", function() end)', directory:of "ran"))
    assert.equal(0, result.code, result.stdout .. result.stderr)
    assert.truthy(result.stdout:find("\n2 passed, 0 failed\n$"), result.stdout)
  end)

  it("finds the seed in what the files here say that draw them", function()
    for _, name in ipairs { "e2e/fault_random", "e2e/hostile", "e2e/simulation", "lua/scope_random",
                            "sandbox/hostile", "unit/workqueue_model" } do
      local file = assert(io.open(("spec/%s_spec.lua"):format(name)))
      local text = file:read("*a")
      file:close()
      assert.truthy(text:find("seed %d", 1, true) or text:find("MOONWATCH_SEED=%d", 1, true), name)
    end
  end)
end)

describe("the scripts", function()
  it("refuse what they do not know before they begin", function()
    local refused = {
      ["test --fitler x"] = "test: unknown option '--fitler'; see --help",
      ["test asan --foo"] = "test: unknown option '--foo'; see --help",
      ["test spec/unit spec/nowhere_spec.lua"] = "test: no such spec: spec/nowhere_spec.lua",
      ["test spec/unit --filter"] = "test: a value is missing after --filter",
      ["build --foo"] = "build: unknown variant '--foo': use dev, asan, tsan, release or fuzz",
      ["build dev --foo"] = "build: unknown argument '--foo'; see --help",
      ["setup --foo"] = "setup: unknown argument '--foo'; see --help",
      ["setup --check --foo"] = "setup: unknown argument '--foo'; see --help",
      ["demo --foo"] = "demo: unknown argument '--foo'; see --help",
      ["bench --foo"] = "bench: unknown argument '--foo'; see --help",
      ["bench sandbox --quick --foo"] = "bench: unknown argument '--foo'; see --help",
      ["fuzz --foo"] = "fuzz: unknown option '--foo'; see --help",
      ["fuzz 5s"] = "fuzz: '5s' is no number of seconds; see --help",
      ["fuzz 5 codec nothing"] = "fuzz: no such fuzzer: nothing; they are spec/fuzz/fuzz_*.c",
      ["fuzz keep --foo"] = "fuzz: unknown option '--foo'; see --help",
      ["kube --foo"] = "kube: unknown command '--foo', see scripts/kube --help",
      ["kube start --foo"] = "kube: start: unknown option '--foo', see scripts/kube --help",
      ["lint --foo"] = "lint: unknown argument '--foo'; see --help",
      ["lint --fix --foo"] = "lint: unknown argument '--foo'; see --help",
      ["docs --foo"] = "docs: unknown argument '--foo'; see --help",
      ["docs --print --foo"] = "docs: unknown argument '--foo'; see --help",
      ["kinds --foo"] = "kinds: unknown argument '--foo'; see --help",
      ["probes --foo"] = "probes: unknown command '--foo': use record, check or sandbox",
      ["probes sandbox --foo"] = "probes: unknown argument '--foo'; see --help",
      ["probes record --only"] = "probes: a value is missing after --only",
    }
    for command, message in pairs(refused) do
      local result = run.sh("exec scripts/" .. command, { timeout = 20 })
      assert.same({ 1, "", message .. "\n" }, { result.code, result.stdout, result.stderr })
    end
  end)
end)
