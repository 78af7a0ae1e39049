-- The order of events across a reload: handlers of the new revision begin when those of the old one have finished.
local cjson = require "cjson"
local cleanup = require "spec.support.cleanup"
local reload_rig = require "spec.support.reload_rig"

-- A handler that prints `word`, what happened and to whom, for all namespaces unless one is given. What it does about a
-- ConfigMap "slow" begins with `pause`.
local function handler(word, pause, namespace)
  return ([[
    local function tell(what, object)
      local name = object.metadata.name
      if name == "kube-root-ca.crt" then return end
      if name == "slow" then %s end
      print("%s " .. what .. " " .. name .. " " .. object.data.v)
    end
    kube.informer("v1/configmaps"%s):add_event_handler {
      on_add = function(object, initial) tell(initial and "replay" or "add", object) end,
      on_update = function(_, object) tell("update", object) end,
      on_delete = function(object) tell("delete", object) end,
    }
  ]]):format(pause or "", word, namespace and (", { namespace = %q }"):format(namespace) or "")
end

local UNTIL_GO = 'print("begun") while not kube.store.get("go") do kube.sleep(0.01) end'

local function controller(word)
  return ([[
    kube.controller {
      name = "echo", resource = "v1/configmaps",
      reconcile = function(ctx, object)
        if ctx.name == "go" then kube.store.set("go", true) end
        if ctx.name ~= "kube-root-ca.crt" then print("%s run " .. ctx.name .. " " .. object.data.v) end
      end,
    }
  ]]):format(word)
end

-- For specs in which all goes well: handlers may wait long on a busy machine.
local PATIENT = { env = { MOONWATCH_HANDLER_HOLD = "30" } }

-- Starts scripts where there is a ConfigMap "slow" already.
local function start(files, options)
  options = options or {}
  local function before(server)
    server:ask("POST", "/api/v1/namespaces/default/configmaps", cjson.encode { apiVersion = "v1", kind = "ConfigMap",
      metadata = { name = "slow", namespace = "default" }, data = { v = "1" } })
  end
  return reload_rig.start(files, { before = before, env = options.env, more = options.more })
end

-- The lines of handlers, without those that match a pattern.
local function told(rig, but)
  local lines = {}
  for line in rig.process.stdout:gmatch("[^\n]+") do
    if not line:find(" run ") and line ~= "begun" and not (but and line:find(but)) then lines[#lines + 1] = line end
  end
  return lines
end

-- The lines of the log with this message.
local function logged(rig, message)
  local lines = {}
  for line in rig.process.stderr:gmatch("[^\n]+") do
    local ok, entry = pcall(cjson.decode, line)
    if ok and entry.msg:find(message, 1, true) then lines[#lines + 1] = entry end
  end
  return lines
end

-- When a line was logged, in seconds of its day.
local function seconds_of(entry)
  local hours, minutes, seconds = entry.time:match("T(%d+):(%d+):([%d.]+)")
  return hours * 3600 + minutes * 60 + seconds
end

local BESIDE = "handlers begin beside those of the revision before"

describe("across a reload", function()
  cleanup.install()

  it("handlers begin when the old ones have finished what was theirs, and controllers at once", function()
    local rig = start({ ["main.lua"] = handler("one", UNTIL_GO) .. controller "one" }, PATIENT)
    rig:line("^begun$")
    rig:create("a", { v = "1" })
    rig:update("a", { v = "2" })
    rig:line("^one run a 2$")
    rig:save("main.lua", handler "two" .. controller "two")
    rig:stderr("reloaded")
    rig:update("a", { v = "3" })
    rig:line("^two run a 3$")
    assert.are.same({}, told(rig))
    rig:create("go", { v = "1" })
    rig:line("^two add go 1$")
    assert.are.same({ ["watch configmaps"] = 1 }, rig:reads()) -- it is one informer
    assert.are.equal(0, rig:stop())
    local lines = told(rig)
    local replays = { lines[4], lines[5] }
    table.sort(replays)
    assert.are.same({ "two replay a 2", "two replay slow 1" }, replays)
    assert.are.same({ "one replay slow 1", "one add a 1", "one update a 2", "two update a 3", "two add go 1" },
      told(rig, "^two replay"))
    assert.are.same({}, logged(rig, BESIDE))
  end)

  it("handlers wait a second for one that hangs, say so, and lose nothing", function()
    local rig = start { ["main.lua"] = handler("one", UNTIL_GO, "default") .. controller "one" }
    rig:line("^begun$")
    rig:create("a", { v = "1" })
    rig:update("a", { v = "2" })
    rig:line("^one run a 2$")
    rig:save("main.lua", handler("two", "", "default") .. controller "two")
    rig:line("^two replay a 2$")
    rig:update("a", { v = "3" })
    rig:line("^two update a 3$")
    rig:create("go", { v = "1" })
    rig:line("^one update a 2$")
    rig:line("^two add go 1$")
    assert.are.equal(0, rig:stop())
    local lines = told(rig)
    table.sort(lines)
    assert.are.same({ "one add a 1", "one replay slow 1", "one update a 2", "two add go 1", "two replay a 2",
      "two replay slow 1", "two update a 3" }, lines)
    local late = logged(rig, BESIDE)
    assert.are.equal(1, #late)
    assert.are.same({ "warn", "v1/configmaps", 3 }, { late[1].level, late[1].resource, late[1].left })
    assert.matches("/main%.lua$", late[1].script)
    local delay = (seconds_of(late[1]) - seconds_of(logged(rig, "reloaded")[1])) % 86400
    assert.is_true(delay > 0.9 and delay < 3, tostring(delay))
  end)

  it("handlers of another script wait for nobody", function()
    local rig = start({ ["main.lua"] = handler("one", UNTIL_GO) .. controller "one",
      ["other.lua"] = handler "uno" }, { more = { "other.lua" } })
    rig:line("^begun$")
    rig:line("^uno replay slow 1$")
    rig:save("main.lua", handler "two" .. controller "two")
    rig:stderr("reloaded")
    rig:save("other.lua", handler "due")
    rig:line("^due replay slow 1$")
    rig:line("^two replay slow 1$")
    rig:create("go", { v = "1" })
    rig:line("^one replay slow 1$")
    assert.are.equal(0, rig:stop())
    local late = logged(rig, BESIDE)
    assert.are.equal(1, #late)
    assert.matches("/main%.lua$", late[1].script)
  end)

  it("a revision that is taken back while its handlers wait gets what was its own", function()
    local first = handler("one", UNTIL_GO) .. controller "one"
    local rig = start({ ["main.lua"] = first }, PATIENT)
    rig:line("^begun$")
    rig:save("main.lua", handler("two", "kube.sleep(0.4)") .. controller "two" .. 'kube.sleep(0.1) error("too bad")')
    rig:stderr("going back to the one before[^\n]*too bad")
    rig:stderr("reloaded")
    rig:create("go", { v = "1" })
    rig:line("^one add go 1$")
    assert.are.equal(0, rig:stop())
    assert.are.same({ "one replay slow 1", "two replay slow 1", "one replay slow 1", "one add go 1" }, told(rig))
  end)

  it("a shutdown while handlers wait is like any other: what runs ends, what is queued is not begun", function()
    local rig = start({ ["main.lua"] = handler("one", 'print("begun") kube.sleep(2)') }, PATIENT)
    rig:line("^begun$")
    rig:save("main.lua", handler "two")
    rig:stderr("reloaded")
    assert.are.equal(0, rig:stop())
    assert.are.same({ "one replay slow 1" }, told(rig))
    assert.are.same({}, logged(rig, BESIDE))
  end)
end)
