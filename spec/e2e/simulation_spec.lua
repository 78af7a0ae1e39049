-- The website operator under random faults and interleavings: it always comes to the state that the
-- websites ask for, writes nothing more then, and never works on a key twice at once. Each seed is a
-- process of its own with a sandbox of its own.
--
--   MOONWATCH_SEED=7 scripts/test spec/e2e/simulation_spec.lua     replays one
--   MOONWATCH_SIMULATIONS=200                                      runs so many
local run = require "spec.support.run"

local function read(path)
  local file = assert(io.open(path))
  local text = file:read("*a")
  file:close()
  return text
end

local only = tonumber(os.getenv("MOONWATCH_SEED") or "")
local count = tonumber(os.getenv("MOONWATCH_SIMULATIONS") or "") or (os.getenv("LD_PRELOAD") and 8 or 30)
local source, operator = read("spec/support/simulation.lua"), read("examples/website/website.lua")

local function simulate(seed)
  local result = run.run_script(source, { files = { ["website.lua"] = operator }, timeout = 60,
    args = { "--sandbox", "--apply", "examples/website/crd.yaml", "--log-level", "warn" },
    env = { SIMULATION_SEED = tostring(seed) } })
  if result.code ~= 0 then
    error(("seed %d: exit code %d\nreplay: MOONWATCH_SEED=%d scripts/test spec/e2e/simulation_spec.lua\n%s\n%s"):format(
      seed, result.code, seed, result.stdout, result.stderr:sub(-4000)), 0)
  end
  return tonumber(result.stdout:match("converged\t(%d+)"))
end

describe("the website operator under faults", function()
  for seed = only or 1, only or count do
    it(("converges and stays so, seed %d"):format(seed), function()
      assert.is_true(simulate(seed) > 0)
    end)
  end
end)
