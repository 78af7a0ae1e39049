-- moonwatch why, enqueue and top, tried on a real process.
local cleanup = require "spec.support.cleanup"
local control_rig = require "spec.support.control_rig"
local run = require "spec.support.run"
local terminal = require "spec.support.terminal"
local uv = require "luv"

-- One key fails, one waits, one runs until another is queued by hand.
local SCRIPT = [[
  local kube = require "kube"
  local released = false
  kube.controller {
    name = "maps", resource = "v1/configmaps", workers = 2, retry = { base = 3600, max = 3600 },
    label_selector = "spec=yes",
    reconcile = function(ctx, map)
      if ctx.name == "release" then released = true end
      if not map then return end
      if map.data.act == "fail" then error("it cannot be done") end
      if map.data.act == "later" then return { requeue_after = 3600 } end
      while map.data.act == "block" and not released do kube.sleep(0.02) end
      if map.data.act == "write" then
        ctx.client:apply { apiVersion = "v1", kind = "Secret",
          metadata = { name = "written", namespace = ctx.namespace }, stringData = { a = "b" } }
      end
    end,
  }
]]

local function manifests(names)
  local out = {}
  for _, act in ipairs(names) do
    out[#out + 1] = ([[
apiVersion: v1
kind: ConfigMap
metadata: { name: %s, namespace: default, labels: { spec: "yes" } }
data: { act: %s }
]]):format(act, act)
  end
  return table.concat(out, "---\n")
end

local function start(rig, acts)
  local path = rig:write("maps.yaml", manifests(acts))
  rig:run({ ["main.lua"] = SCRIPT }, { rig.scripts, "--apply", path })
  -- Every key but the one that runs on has been worked on.
  for _, act in ipairs(acts) do
    rig:until_json(function(why) return act == "block" or #why.scripts[1].controllers[1].runs > 0 end, "why",
      "default/" .. act)
  end
end

describe("moonwatch why", function()
  cleanup.install()
  local rig
  before_each(function() rig = control_rig.new() end)

  local function why(key) return rig:json("why", key).scripts[1].controllers[1] end

  it("tells of a key that fails: the error, the tries, and when the next one is", function()
    start(rig, { "fail" })
    local maps = why("default/fail")
    assert.equal("maps", maps.name)
    assert.equal(1, maps.queued.failures)
    assert.is_true(maps.queued.ready_in > 0 and maps.queued.ready_in <= 3600)
    assert.same({ "retry" }, maps.queued.reasons)
    local last = maps.runs[1]
    assert.equal("error", last.result)
    assert.matches("main.lua:%d+: it cannot be done", last.error)
    assert.same({ "initial v1/configmaps" }, last.reasons)
    assert.equal(3600, last.next)
    assert.equal(rig:json("status").scripts[1].revision, rig:json("why", "default/fail").scripts[1].revision)
    local out = rig:moonwatch("why", "default/fail")
    assert.matches("\n    queue   waits %d+m%d+s, because of retry, 1 failure so far\n", out)
    assert.matches("error +1 .* initial v1/configmaps\n      .*main.lua:%d+: it cannot be done\n", out)
  end)

  it("tells of a key that waits, of what was written, and of the object", function()
    start(rig, { "later", "write" })
    assert.same({ "requeue_after" }, why("default/later").queued.reasons)
    local maps = why("default/write")
    assert.is_nil(maps.queued)
    assert.same({ "apply v1/secrets default/written" }, maps.runs[1].writes)
    assert.matches("^%d+$", maps.object.resource_version)
    local out = rig:moonwatch("why", "default/write", "--controller", "maps")
    assert.matches("object  in the cache, resourceVersion " .. maps.object.resource_version, out, 1, true)
    assert.matches("queue   not queued: it waits for its next event", out, 1, true)
    assert.matches("      wrote: apply v1/secrets default/written\n", out, 1, true)
  end)

  it("tells of a key that runs, and that is to run again", function()
    start(rig, { "block" })
    local maps = rig:until_json(function(w) return w.scripts[1].controllers[1].queued ~= nil end, "why",
      "default/block").scripts[1].controllers[1]
    rig:until_json(function(w) return w.scripts[1].controllers[1].queued.running_for ~= nil end, "why", "default/block")
    assert.same({}, maps.runs)
    rig:moonwatch("enqueue", "maps", "default/block")
    local out = rig:moonwatch("why", "default/block")
    assert.matches("queue   running for %S+, will run again after that, because of enqueue\n", out)
    rig:moonwatch("enqueue", "maps", "default/release")
    maps = rig:until_json(function(w) return #w.scripts[1].controllers[1].runs == 2 end, "why", "default/block")
      .scripts[1].controllers[1]
    assert.same({ "enqueue" }, maps.runs[2].reasons)
  end)

  it("remembers what revisions did that have ended", function()
    start(rig, { "fail" })
    local before = rig:json("status").scripts[1].revision
    rig:write("main.lua", (SCRIPT:gsub("it cannot be done", "it still cannot")))
    local after = rig:json("reload").scripts[1].active
    local runs = rig:until_json(function(w)
      local found = w.scripts[1].controllers[1].runs
      return #found >= 2 and found[1].revision == before and found[#found].revision == after
    end, "why", "default/fail").scripts[1].controllers[1].runs
    assert.matches("it cannot be done", runs[1].error, 1, true)
    assert.matches("it still cannot", runs[#runs].error, 1, true)
    local out = rig:moonwatch("why", "default/fail")
    assert.matches("initial v1/configmaps (revision " .. before .. ")\n", out, 1, true)
  end)

  it("says when nobody knows the key, and which one was perhaps meant", function()
    start(rig, { "later" })
    for arguments, sentence in pairs {
      ["why default/none"] = "no controller knows 'default/none': it is not cached, not queued, and was not",
      ["why later"] = "no controller knows 'later' (did you mean 'default/later'?)",
      ["why default/later --controller map"] = "there is no controller 'map' (did you mean 'maps'?)",
      ["enqueue map default/later"] = "there is no controller 'map' (did you mean 'maps'?)",
      ["enqueue nothing default/later"] = "there is no controller 'nothing'; it has: maps",
    } do
      local words = {}
      for word in arguments:gmatch("%S+") do words[#words + 1] = word end
      local out, err, code = rig:moonwatch(unpack(words))
      assert.equal("", out)
      assert.equal(1, code, arguments)
      assert.matches(sentence, err, 1, true)
    end
  end)
end)

describe("moonwatch enqueue", function()
  cleanup.install()

  it("runs a key at once that would have waited", function()
    local rig = control_rig.new()
    start(rig, { "fail" })
    local out, err, code = rig:moonwatch("enqueue", "maps", "default/fail")
    assert.equal("", err)
    assert.equal(0, code)
    assert.equal("default/fail is queued for maps\n", out)
    local runs = rig:until_json(function(w) return #w.scripts[1].controllers[1].runs == 2 end, "why", "default/fail")
      .scripts[1].controllers[1].runs
    assert.equal(2, runs[2].attempt)
    out = rig:moonwatch("enqueue", "maps", "default/strange key?&=%")
    assert.matches("there is no such object in the cache, so reconcile gets nil", out, 1, true)
    rig:until_json(function(w) return #w.scripts[1].controllers[1].runs == 1 end, "why", "default/strange key?&=%")
  end)
end)

describe("moonwatch top", function()
  cleanup.install()
  local rig
  before_each(function() rig = control_rig.new() end)

  it("tells of rates, queues, and of keys that run, fail or are slow", function()
    start(rig, { "block", "fail", "later" })
    local top = rig:until_json(function(t)
      local maps = t.scripts[1].controllers[1]
      if maps.running[1] and maps.rates.errors > 0 then return true end
      rig:moonwatch("enqueue", "maps", "default/fail")  -- rates are those of the last seconds
    end, "top")
    local maps = top.scripts[1].controllers[1]
    assert.equal("default/block", maps.running[1].key)
    assert.equal("default/fail", maps.failing[1].key)
    assert.is_true(maps.queue.processing >= 1)
    assert.is_true(maps.queue.waiting >= 1)
    assert.is_true(maps.rates.reconciles >= maps.rates.errors)
    assert.equal(2, #maps.slow)
    assert.is_true(top.scripts[1].memory_bytes > 0)
    local out, err, code = rig:moonwatch("top")
    assert.equal("", err)
    assert.equal(0, code)
    assert.matches("\nmaps +running .* 1/2 ", out)
    assert.matches("\nFAILING +CONTROLLER +TRIES +AGO +ERROR\ndefault/fail +maps +%d+ .*it cannot be done\n", out)
    rig:moonwatch("enqueue", "maps", "default/release")
  end)

  local function top_in_terminal(columns, rows)
    return terminal.open(columns, rows, ("%s top"):format(uv.fs_realpath(run.binary)), rig.env)
  end

  it("redraws on a terminal, fits its window, and gives it back", function()
    start(rig, { "fail", "later" })
    local screen = top_in_terminal(100, 30)
    local shown = screen:wait("default/fail")
    assert.matches("^moonwatch %S+, process %d+", shown)
    assert.matches("\nmaps +running ", shown)
    assert.matches("\nq ends", shown)
    rig:moonwatch("enqueue", "maps", "default/fail")
    screen:wait("default/fail +maps +2 ")  -- the second try, without a key being pressed
    screen:resize(40, 8)
    shown = screen:wait("the window is too low")
    assert.matches("^moonwatch ", shown)
    for line in shown:gmatch("[^\n]+") do assert.is_true(#line <= 40, line) end
    screen:press("q")
    shown = screen:wait("left with 0")
    assert.is_nil(shown:find("moonwatch", 1, true))
  end)

  it("ends with Ctrl-C, and when the process does", function()
    start(rig, { "later" })
    local screen = top_in_terminal(100, 30)
    screen:wait("maps +running")
    screen:press("C-c")
    screen:wait("left with 0")
    screen:close()
    local other = control_rig.new()
    rig = other
    local proc = other:run({ ["main.lua"] = SCRIPT })
    other:until_json(function(t) return t.scripts[1].controllers[1].state == "running" end, "top")
    screen = top_in_terminal(100, 30)
    screen:wait("maps +running")
    proc:kill("sigterm")
    assert.equal(0, proc:wait_exit(30))
    screen:wait("nothing listens at .*left with 1")
  end)
end)
