-- Many reloads back to back while objects change all the time: nothing is lost, doubled or left behind.
-- MOONWATCH_RELOADS says how many (default 100).
local cjson = require "cjson"
local cleanup = require "spec.support.cleanup"
local reload_storm = require "spec.support.reload_storm"
local run = require "spec.support.run"
local uv = require "luv"

local RELOADS = tonumber(os.getenv("MOONWATCH_RELOADS") or 100)
local EARLY = math.min(math.ceil(RELOADS / 5), 500)
local KEYS = 60
local RETIRING = 4 -- MW_PROGRAM_RETIRING
local PLAIN = not os.getenv("LD_PRELOAD") -- sanitizers keep memory of their own

-- What the process holds.
local function look(storm)
  return { descriptors = storm:descriptors(), memory = storm:memory(), threads = storm:threads() }
end

-- Reloads so often; what was seen of the process after the first fifth (at most 500) and at the end, how many revisions
-- there were beside the active one, and the rate of changes.
local function reload(storm)
  local seen = { retiring = 0 }
  local since = uv.hrtime()
  for i = 1, RELOADS do
    storm:reload()
    if i == EARLY then seen.early = look(storm) end
    if i % 5 == 0 then
      seen.retiring = math.max(seen.retiring, #storm:status().scripts[1].retiring)
    end
  end
  seen.rate = storm.changes / (uv.hrtime() - since) * 1e9
  storm:settle()
  seen.late = look(storm)
  return seen
end

local function check_ledger(storm)
  local ledger = storm.ledger
  ledger:finish()
  assert.are.equal(storm.changes, ledger.events)
  assert.are.equal(RELOADS + 1, ledger.revision)
  assert.is_true(ledger.most > 1)
  assert.is_true(ledger.generations > RELOADS / 10, "the reloads came before the reconciles")
  for _, name in ipairs(storm.names) do assert.are.equal(storm:version_of(name), ledger.reconciled[name]) end
end

local function tell(storm, seen)
  print(("  %d reloads, %d events, %.0f a second, %d revisions at once; after %d and all reloads: %d, %d KiB, " ..
    "%d, %d descriptors"):format(RELOADS, storm.changes, seen.rate, seen.retiring + 1, EARLY, seen.early.memory,
    seen.late.memory, seen.early.descriptors, seen.late.descriptors))
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
    assert.is_true(seen.late.threads <= seen.early.threads)
    if PLAIN then
      assert.is_true(seen.late.memory < 1.2 * seen.early.memory + 8192,
        ("%d KiB became %d"):format(seen.early.memory, seen.late.memory))
    end
    storm:stop()
    assert.are.same({ list = 0, watch = 0, stream = 1 }, storm.server.count)
    check_ledger(storm)
    tell(storm, seen)
  end)
end)
