-- The walk of examples/README.md, as a reader would take it. Its blocks are performed in their order:
--
--   console   `$ ` commands and what they print; "moonwatch run" goes on in the background
--   diff      the lines of website.lua that are replaced, and saved
--   log       lines that the running script writes
--
-- Times and revisions are compared as such.
local cleanup = require "spec.support.cleanup"
local run = require "spec.support.run"
local uv = require "luv"

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("*a")
  file:close()
  return text
end

-- Without what is different every time.
local function comparable(text)
  return (text:gsub("%d%d:%d%d:%d%d%.%d+", "TIME"):gsub(("%x"):rep(12), "REVISION")
    :gsub("seconds=[%d.e-]+", "seconds=N"):gsub("failed %S+ ago", "failed N ago"))
end

describe("the walk through an edit", function()
  cleanup.install()

  local directory, environment, process, seen

  local function shell(command)
    return run.sh(("cd %s && { %s; } 2>&1"):format(directory, command), { env = environment, timeout = 120 }).stdout
  end

  local function start(command)
    local arguments = {}
    for word in (command .. " --log-format text"):gmatch("%S+") do arguments[#arguments + 1] = word end
    table.remove(arguments, 1)
    process, seen = run.start_command(arguments, { env = environment, cwd = directory }), 1
    cleanup.later(function()
      if not process.code then process:kill("sigkill") end
    end)
    process:wait_stderr("synced resource=v1/namespaces", 30)
  end

  -- What the reader would see once the controller has done its part.
  local function see(command, wanted)
    local deadline, got = uv.hrtime() + 60e9, nil
    repeat
      if got then process:ends_within(0.1) end
      got = shell(command)
    until comparable(got) == comparable(wanted) or uv.hrtime() > deadline
    assert.are.equal(comparable(wanted), comparable(got), command)
  end

  local acts = {}

  function acts.console(block)
    for command, output in (block .. "\n"):gmatch("%$ ([^\n]+)\n([^$]*)") do
      local name, value = command:match("^export (%w+)=(%S+)$")
      if name then
        environment[name] = value
      elseif command:find("moonwatch run ", 1, true) then
        start(command)
      elseif command:find(" get ", 1, true) then
        see(command, output)
      else
        -- Other processes may run beside this one.
        if process then command = command:gsub("(moonwatch %l+)", "%1 --pid " .. process.pid) end
        assert.are.equal(comparable(output), comparable(shell(command)), command)
      end
    end
  end

  function acts.diff(block)
    local path = directory .. "/website.lua"
    local old, new = block:match("^%-([^\n]*)\n%+([^\n]*)$")
    local text = read(path)
    local from, to = text:find("\n" .. old .. "\n", 1, true)
    assert(from and not text:find("\n" .. old .. "\n", to, true), old)
    local file = assert(io.open(path .. "~", "wb"))
    file:write(text:sub(1, from), new, text:sub(to))
    file:close()
    assert(os.rename(path .. "~", path))
  end

  function acts.log(block)
    local last
    local wanted = comparable(block)
    local deadline = uv.hrtime() + 60e9
    repeat
      local text = comparable(process.stderr)
      last = select(2, text:find(wanted, seen, true))
      if not last then process:ends_within(0.05) end
    until last or process.code or uv.hrtime() > deadline
    assert(last, ("no %q in\n%s"):format(wanted, process.stderr))
    seen = last + 1
  end

  it("shows what its text says", function()
    directory = assert(uv.fs_mkdtemp("/tmp/mw-walk-XXXXXX"))
    cleanup.later(function() run.sh("rm -rf " .. directory) end)
    local kubectl = run.sh("scripts/kubectl --path", { timeout = 120 }).stdout:match("^(%S+)\n$")
    run.sh(("mkdir %s/bin && ln -s %s %s/bin/kubectl"):format(directory, kubectl, directory))
    run.sh(("ln -s $PWD/examples %s && ln -s $(realpath %s) %s/build"):format(directory, run.binary:match("^(.*)/"),
      directory))
    environment = { PATH = directory .. "/bin:" .. os.getenv("PATH"), HOME = directory, XDG_RUNTIME_DIR = directory }
    local count = 0
    for kind, block in read("examples/README.md"):gmatch("\n```(%l+)\n(.-)\n```") do
      acts[kind](block)
      count = count + 1
    end
    assert.are.equal(11, count)
    -- Who walks has seen the last of it before the end.
    local status = "build/moonwatch status --pid " .. process.pid
    local deadline = uv.hrtime() + 60e9
    while uv.hrtime() < deadline and not shell(status):find("running +4 +0 +0 +0 +0\n") do process:ends_within(0.1) end
    while uv.hrtime() < deadline and shell(status):find("\n  ending ") do process:ends_within(0.1) end
    process:kill("sigint")
    assert.are.equal(0, process:wait_exit(20), process.stderr)
  end)
end)

describe("the README of the examples", function()
  it("names all of them", function()
    local text = read("examples/README.md")
    for name in uv.fs_scandir_next, assert(uv.fs_scandir("examples")) do
      if not name:find("_spec%.lua$") and name ~= "README.md" then
        assert.truthy(text:find("[" .. name, 1, true), name)
      end
    end
  end)
end)
