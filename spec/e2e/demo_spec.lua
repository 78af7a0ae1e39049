-- scripts/demo, the first thing that people run: it shows what it promises and leaves nothing.
local cleanup = require "spec.support.cleanup"
local run = require "spec.support.run"
local uv = require "luv"

local build = os.getenv("MOONWATCH_BUILD") or "build"

local shown = {
  { "apply the website shop with 2 replicas", "Deployment of 2, Service, entry, Ready=False (0 of 2)" },
  { "2 replicas get ready", "Deployment of 2, Service, entry, Ready=True (2 of 2)" },
  { "set replicas to 3", "Deployment of 3, Service, entry, Ready=False (2 of 3)" },
  { "delete the Service behind its back", "Deployment of 3, Service, entry, Ready=False (2 of 3)" },
  { "kill -9 the operator, set replicas to 2", "the same: nobody is there" },
  { "start it again", "Deployment of 2, Service, entry, Ready=True (2 of 2)" },
  { "delete the website", "nothing" },
  { "apply it again", "Deployment of 2, Service, entry, Ready=False (0 of 2)" },
  { "save website.lua with a mistake", "the same; website.lua:21: unexpected symbol near '='" },
  { "save it: math.max(site.spec.replicas, 3)", "Deployment of 3, Service, entry, Ready=False (0 of 2)" },
}

-- The names in a directory.
local function names(path)
  local found = {}
  for name in uv.fs_scandir_next, assert(uv.fs_scandir(path)) do found[#found + 1] = name end
  return found
end

-- The command lines of living processes that name this directory.
local function processes(directory)
  local found = {}
  for _, pid in ipairs(names("/proc")) do
    local file = pid:find("^%d+$") and io.open("/proc/" .. pid .. "/cmdline", "rb")
    local text = file and file:read("*a") or ""
    if file then file:close() end
    if text:find(directory, 1, true) then found[#found + 1] = text:gsub("%z", " ") end
  end
  return found
end

describe("scripts/demo", function()
  cleanup.install()

  local directory

  before_each(function()
    directory = assert(uv.fs_mkdtemp("/tmp/mw-XXXXXX"))
    cleanup.later(function() uv.fs_rmdir(directory) end)
  end)

  local function demo(env, timeout)
    env.TMPDIR, env.MOONWATCH_BUILD = directory, build
    return run.sh("exec scripts/demo", { env = env, timeout = timeout or 60 })
  end

  local function check(result, tool)
    assert.equal(0, result.code, result.stdout .. result.stderr)
    local at = assert(result.stdout:find("done (with " .. tool .. ")", 1, true), result.stdout)
    for _, pair in ipairs(shown) do
      at = result.stdout:find(("  %-40s %s\n"):format(pair[1], pair[2]), at, true)
      assert(at, pair[1] .. "\n" .. result.stdout)
    end
    local took = result.stdout:match("\nThe new code was active (%d+) ms after it was saved%.", at)
    assert.is_true(took ~= nil and tonumber(took) > 0, result.stdout)
    assert.truthy(result.stdout:find("was asked for 0 lists and 0 watches.", at, true), result.stdout)
    local _, lines = (result.stdout .. result.stderr):gsub("\n", "")
    assert.is_true(lines <= 24)
    assert.same({ {}, {} }, { names(directory), processes(directory) })
  end

  it("shows changes beside what the operator makes of them, and leaves nothing running", function()
    check(demo { MOONWATCH_KUBECTL = "" }, "curl")
  end)

  it("makes the changes with kubectl where there is one", function()
    local path = run.sh("scripts/kubectl --path", { timeout = 120 }).stdout:match("^(%S+)\n$")
    check(demo { MOONWATCH_KUBECTL = path }, "kubectl")
  end)

  it("names commands that work", function()
    local result = demo { MOONWATCH_KUBECTL = "" }
    local first = assert(result.stdout:match("\n  (build/moonwatch run .-)  "))
    local proc = run.start_command(
      { "run", assert(first:match("run (%S+) %-%-sandbox$")), "--sandbox" })
    cleanup.later(function() proc:kill("sigkill") end)
    proc:wait_line("^added\tdefault/kubernetes\t", 30)
    proc:kill("sigterm")
    assert.equal(0, proc:wait_exit(20))
  end)

  it("says what is missing, and what went wrong", function()
    local result = run.sh("MOONWATCH_BUILD=/nowhere TMPDIR=" .. directory .. " scripts/demo")
    assert.equal(1, result.code)
    assert.equal("demo: /nowhere/moonwatch is missing: run scripts/build\n", result.stderr)
    result = demo { MOONWATCH_KUBECTL = "/bin/false" }
    assert.equal(1, result.code)
    assert.truthy(result.stderr:find("\ndemo: could not apply the definition of websites; [^\n]*\n$"), result.stderr)
    assert.same({ {}, {} }, { names(directory), processes(directory) })
  end)
end)
