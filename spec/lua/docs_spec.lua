-- lua/README.md, the reference: it has everything that a script can reach, nothing else, and is what
-- scripts/docs makes of the comments now.
local cleanup = require "spec.support.cleanup"
local run = require "spec.support.run"

-- Compares DOCUMENTED, a set of names, with what is there: prints "undocumented NAME", "absent NAME", and
-- in the end how many there are.
local compare = [[
  local kube = require "kube"
  local core = require "kube._core"
  local groups = require "kube._groups"
  local count = 0

  local function public(name) return type(name) == "string" and not name:find("^_") end

  local function note(name)
    count = count + 1
    if not DOCUMENTED[name] then print("undocumented " .. name) end
    DOCUMENTED[name] = nil
  end

  -- What has a text of its own is a value, other tables hold further names.
  local function fields(prefix, t)
    for name, value in pairs(t) do
      if public(name) then
        if type(value) == "table" and tostring(value):find("^table: ") then
          fields(prefix .. name .. ".", value)
        else
          note(prefix .. name)
        end
      end
    end
  end

  local function methods(prefix, class)
    for name, value in pairs(class) do
      local group = prefix == "factory:" and (groups.groups[name] or groups.refused[name])
      if public(name) and type(value) == "function" and not group then note(prefix .. name) end
    end
  end

  local leader = kube.leader_election { name = "docs" }
  local things = { leader = leader, client = kube.client, queue = kube.workqueue(), stop = kube.stop_channel(),
    selector = kube.selector.parse("a=b"), recorder = kube.events }
  things.factory = kube.shared_informer_factory()
  things.pair = things.factory:core():v1():pods()
  things.informer = things.pair:informer()
  things.lister = things.informer:lister()
  things.registration = things.informer:add_event_handler {}
  things.metric = kube.metric.counter { name = "docs_total" }
  things.series = things.metric:labels()
  things.timer = kube.every { name = "docs", interval = 1000, run = function() end }

  fields("kube.", kube)
  fields("sandbox.", require "kube.sandbox")
  for _, name in ipairs { "leader", "queue", "factory", "pair", "informer", "registration", "metric", "series",
    "timer" } do methods(name .. ":", getmetatable(things[name])) end
  methods("lister:", require "kube._indexer")
  methods("client:", core.client.methods)
  methods("task:", core.task.methods)

  local function finish(ctx)
    methods("controller:", getmetatable(things.controller))
    methods("ctx.cache:", getmetatable(ctx.cache))
    methods("ctx.log:", getmetatable(ctx.log))
    -- The rest hides its class: there must be what is documented. scripts/docs looks for the other way.
    for name in pairs(DOCUMENTED) do
      local thing, method = name:match("^(%w+)[:.]([%w_]+)$")
      local holder = thing == "ctx" and ctx or things[thing]
      local ok, found = pcall(function() return holder[method] end)
      if not ok or type(found) ~= "function" then print("absent " .. name) end
      count = count + 1
    end
    print("names " .. count)
  end

  things.controller = kube.controller { resource = "v1/namespaces", reconcile = function(ctx)
    if ctx.name ~= "default" then return end
    things.task = kube.spawn(function() end)
    finish(ctx)
  end }
]]

local function docs(option)
  local result = run.sh("scripts/docs " .. option)
  assert.equal(0, result.code, result.stderr)
  return result.stdout
end

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("*a")
  file:close()
  return text
end

describe("the reference", function()
  cleanup.install()

  local function start(source)
    local proc = run.start_script(source, { args = { "--sandbox" } })
    cleanup.later(function() proc:kill("sigkill") end)
    return proc
  end

  it("has every public name, and no other", function()
    local set = {}
    for name in docs("--names"):gmatch("[^\n]+") do
      -- kube.test is not for scripts; scripts/docs reads all of it.
      if not name:find("^kt%.") and not name:find("^t:") then set[#set + 1] = ("[%q] = true"):format(name) end
    end
    local proc = start(("local DOCUMENTED = { %s }\n%s"):format(table.concat(set, ", "), compare))
    local count = tonumber(proc:wait_line("^names %d+$", 30):match("%d+"))
    proc:kill("sigterm")
    assert.equal(0, proc:wait_exit(20), proc.stderr)
    assert.equal(("names %d\n"):format(count), proc.stdout)
    assert.equal(#set, count)
    assert.is_true(count > 250)
  end)

  it("has every option of an informer", function()
    local result = run.run_script([[
      for name in pairs(require("kube._informer_options").known) do print(name) end
    ]])
    assert.equal(0, result.code, result.stderr)
    local fields = read("lua/README.md"):match("\n#### kube%.FactoryOptions\n(.-)\n#")
    for name in result.stdout:gmatch("[^\n]+") do
      assert.is_truthy(fields:find(("| `%s?` |"):format(name), 1, true), name)
    end
  end)

  it("is what scripts/docs writes now", function()
    assert.is_true(docs("--print") == read("lua/README.md"), "lua/README.md is old: run scripts/docs")
  end)

  it("keeps its prose within 100 columns, and its links lead somewhere", function()
    local text, anchors = read("lua/README.md"), {}
    for heading in text:gmatch("\n#+ ([^\n]+)") do
      anchors[heading:lower():gsub("[^%w _-]", ""):gsub(" ", "-")] = true
    end
    for target in text:gmatch("%]%(#([^)]+)%)") do assert.is_true(anchors[target], target) end
    for target in read("README.md"):gmatch("%]%(lua/README%.md#([^)]+)%)") do
      assert.is_true(anchors[target], target)
    end
    for line in text:gmatch("[^\n]+") do
      assert.is_true(#line <= 100 or line:find("^|") ~= nil or line:find("^ *`[^`]*`[^ ]*$") ~= nil, line)
    end
  end)

  it("fails for what is public and has no words", function()
    local directory = os.tmpname()
    os.remove(directory)
    cleanup.later(function() run.sh("rm -rf " .. directory) end)
    local command = ([[mkdir -p %s/scripts %s/lua && cp scripts/docs %s/scripts && cp -r lua/kube %s/lua &&
      printf 'function Queue:peek() end\n' >> %s/lua/kube/_workqueue.lua && %s/scripts/docs]]):gsub("%%s", directory)
    local result = run.sh(command)
    assert.equal(1, result.code)
    assert.truthy(result.stderr:find("^docs: lua/kube/_workqueue.lua:%d+: queue:peek is public and has no "
      .. "sentence above it\n$"), result.stderr)
  end)
end)

-- Stands before an example, on its first line: tells when it has run for a moment.
local moment = [[require("kube").background("moment", function()
  require("kube").sleep(0.3) print("a moment later") end) ]]

describe("the examples in the documents", function()
  cleanup.install()

  for _, document in ipairs { "README.md", "lua/README.md" } do
    local number = 0
    for code in read(document):gmatch("\n```lua\n(.-)\n```") do
      number = number + 1
      -- spec/e2e/user_test_spec.lua runs what is a spec itself.
      local function test(...)
        if not code:find('require "kube.test"', 1, true) then it(...) end
      end
      test(("of %s run: %d"):format(document, number), function()
        local proc = run.start_script(moment .. code, { args = { "--sandbox" } })
        cleanup.later(function() proc:kill("sigkill") end)
        proc:wait_line("^a moment later$", 20)
        proc:kill("sigterm")
        assert.equal(0, proc:wait_exit(20), proc.stderr)
        assert.is_nil(proc.stderr:find('"level":"error"', 1, true), proc.stderr)
      end)
    end
  end
end)
