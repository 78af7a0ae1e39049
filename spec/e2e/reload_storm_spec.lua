-- Many reloads back to back while objects change all the time: nothing is lost, doubled or left behind.
-- MOONWATCH_RELOADS says how many (default 100).
local cjson = require "cjson"
local cleanup = require "spec.support.cleanup"
local reload_storm = require "spec.support.reload_storm"
local run = require "spec.support.run"

local RELOADS = tonumber(os.getenv("MOONWATCH_RELOADS") or 100)
local KEYS = 60
local RETIRING = 4 -- MW_PROGRAM_RETIRING
local PLAIN = not os.getenv("LD_PRELOAD") -- sanitizers keep memory of their own

-- Reloads so often; what was seen of the process after the first fifth and at the end.
local function reload(storm)
  local seen = { retiring = 0 }
  local function look()
    return { descriptors = storm:descriptors(), memory = storm:memory() }
  end
  for i = 1, RELOADS do
    storm:reload()
    if i == math.ceil(RELOADS / 5) then seen.early = look() end
    if i % 5 == 0 then
      seen.retiring = math.max(seen.retiring, #storm:status().scripts[1].retiring)
    end
  end
  storm:settle()
  seen.late = look()
  return seen
end

-- The events of each key, one revision behind the other, each in the order of the ledger; without what was replayed.
-- What was queued for a revision when it was replaced is still its own, so two of them may write side by side.
local function events_by_key(storm, ledger)
  local by_revision = {}
  for _, words in ipairs(ledger) do
    if words[1] == "event" then
      local n = tonumber(words[2])
      by_revision[n] = by_revision[n] or {}
      table.insert(by_revision[n], words)
    end
  end
  local events = {}
  for _, name in ipairs(storm.names) do events[name] = {} end
  for n = 1, storm.revision do
    for _, words in ipairs(by_revision[n] or {}) do table.insert(events[words[4]], words) end
  end
  return events
end

-- Every change has reached one revision, in order and without a gap.
local function check_events(storm, ledger)
  for name, got in pairs(events_by_key(storm, ledger)) do
    for i, sent in ipairs(storm.sent[name]) do
      local words = got[i] or {}
      assert.are.equal(("%s %d"):format(sent[1], sent[2]), ("%s %s"):format(words[3], words[5]),
        ("event %d of %s, in revision %s"):format(i, name, tostring(words[2])))
    end
    assert.are.equal(#storm.sent[name], #got, name)
  end
end

-- Which version each change of a key came after: by key and version; 0: there was no such pod.
local function versions_before(storm)
  local before = {}
  for _, name in ipairs(storm.names) do
    local at = storm.first[name]
    for _, sent in ipairs(storm.sent[name]) do
      before[name .. " " .. sent[2]] = at
      at = sent[1] == "DELETED" and 0 or sent[2]
    end
  end
  return before
end

-- A revision is first told once what is cached, and its own events begin right behind.
local function check_replays(storm, ledger)
  local before, replayed, begun = versions_before(storm), {}, {}
  for _, words in ipairs(ledger) do
    if words[1] == "replay" then
      local key = words[2] .. " " .. words[3]
      assert.is_nil(replayed[key], key .. " was replayed twice")
      assert.is_nil(begun[key], key .. " was replayed behind an event")
      replayed[key] = tonumber(words[4])
    elseif words[1] == "event" then
      local key = words[2] .. " " .. words[4]
      local follows = not begun[key] and before[words[4] .. " " .. words[5]]
      begun[key] = true
      if follows then assert.are.equal(follows, replayed[key] or 0, key) end
    end
  end
end

local function check_reconciles(storm, ledger)
  local running, most, generations = {}, 0, {}
  for _, words in ipairs(ledger) do
    local key = words[3]
    if words[1] == "begin" then
      assert.is_nil(running[key], ("%s began in revision %s while it ran in %s"):format(key, words[2],
        tostring(running[key])))
      running[key] = words[2]
      generations[words[2]] = true
    elseif words[1] == "end" then
      assert.are.equal(words[2], running[key], key)
      running[key] = nil
    end
    local count = 0
    for _ in pairs(running) do count = count + 1 end
    most = math.max(most, count)
  end
  assert.is_true(most > 1)
  assert.is_nil(next(running))
  local count = 0
  for _ in pairs(generations) do count = count + 1 end
  assert.is_true(count > RELOADS / 10, "the reloads came before the reconciles")
  for _, name in ipairs(storm.names) do assert.are.equal(storm:version_of(name), storm.reconciled[name]) end
end

describe("reloads without a pause", function()
  cleanup.install()

  it("lose, double and leave nothing behind", function()
    local storm = reload_storm.start { keys = KEYS }
    local seen = reload(storm)
    local told = run.run_command({ "status", "--control", storm.socket, "-o", "json" })
    local script = cjson.decode(told.stdout).scripts[1]
    assert.are.equal(RELOADS, script.reloads)
    assert.are.equal(0, script.failures)
    assert.are.same({}, script.retiring)
    assert.is_true(seen.retiring <= RETIRING)
    assert.are.equal(seen.early.descriptors, seen.late.descriptors)
    if PLAIN then
      assert.is_true(seen.late.memory < 1.5 * seen.early.memory + 8192,
        ("%d KiB became %d"):format(seen.early.memory, seen.late.memory))
    end
    local ledger = storm:stop()
    assert.are.same({ list = 0, watch = 0, stream = 1 }, storm.server.count)
    check_events(storm, ledger)
    check_replays(storm, ledger)
    check_reconciles(storm, ledger)
  end)
end)
