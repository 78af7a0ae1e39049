-- The website operator under random faults and interleavings: it always comes to the state that the
-- websites ask for, writes nothing more then, and never works on a key twice at once. Each seed is a
-- process of its own with a sandbox of its own. It draws the faults and what people do, and at each
-- await which of the tasks that could go on does (MOONWATCH_TASK_SEED).
--
--   MOONWATCH_SEED=7 scripts/test spec/e2e/simulation_spec.lua     replays one
--   MOONWATCH_SIMULATIONS=200                                      runs so many
local cleanup = require "spec.support.cleanup"
local run = require "spec.support.run"
local sandbox = require "spec.support.sandbox"

local function read(path)
  local file = assert(io.open(path))
  local text = file:read("*a")
  file:close()
  return text
end

local only = tonumber(os.getenv("MOONWATCH_SEED") or "")
local count = tonumber(os.getenv("MOONWATCH_SIMULATIONS") or "") or (os.getenv("LD_PRELOAD") and 8 or 30)
local source, operator = read("spec/support/simulation.lua"), read("examples/website/website.lua")

local function environment(seed, part)
  return { SIMULATION_SEED = tostring(seed), MOONWATCH_TASK_SEED = tostring(seed), SIMULATION_PART = part }
end

local function simulate(seed)
  local result = run.run_script(source, { files = { ["website.lua"] = operator }, timeout = 60,
    args = { "--sandbox", "--apply", "examples/website/crd.yaml", "--log-level", "warn" },
    env = environment(seed) })
  if result.code ~= 0 then
    error(("seed %d: exit code %d\nreplay: MOONWATCH_SEED=%d scripts/test spec/e2e/simulation_spec.lua\n%s\n%s"):format(
      seed, result.code, seed, result.stdout, result.stderr:sub(-4000)), 0)
  end
  return tonumber(result.stdout:match("converged\t(%d+)"))
end

-- The operator is told to stop in the middle of chaos, or killed; the next one must bring all to its end.
local function interrupted(seed, signal)
  local box = sandbox.start { args = { "--plain-http", "--apply", "examples/website/crd.yaml" } }
  cleanup.later(function() box:stop() end)
  local options = { files = { ["website.lua"] = operator }, timeout = 60, kubeconfig = box.kubeconfig,
    args = { "--log-level", "warn" }, env = environment(seed, "chaos") }
  local proc = run.start_script(source, options)
  cleanup.later(function() proc:kill("sigkill") end)
  proc:wait_line("^begins")
  run.sh(("sleep %g"):format(0.2 + seed % 7 * 0.15))
  proc:kill(signal)
  local code = proc:wait_exit(30)
  assert(signal == "sigkill" or code == 0 or code == 5, ("seed %d: code %d\n%s"):format(seed, code, proc.stderr))
  box:ask("DELETE", "/sandbox/v1/faults")
  box:ask("POST", "/sandbox/v1/watches", '{"action":"resume"}')
  options.env = environment(seed, "end")
  local result = run.run_script(source, options)
  assert(result.code == 0, ("seed %d, stopped by %s: code %d\nreplay: MOONWATCH_SEED=%d scripts/test "
    .. "spec/e2e/simulation_spec.lua\n%s%s"):format(seed, signal, result.code, seed, result.stdout,
    result.stderr:sub(-4000)))
end

describe("the website operator under faults", function()
  cleanup.install()

  for seed = only or 1, only or count do
    it(("converges and stays so, seed %d"):format(seed), function()
      assert.is_true(simulate(seed) > 0)
    end)
  end
  for seed = only or 1, only or math.ceil(count / 4) do
    for _, signal in ipairs { "sigterm", "sigkill" } do
      it(("loses nothing when it is stopped by %s and started again, seed %d"):format(signal, seed), function()
        interrupted(seed, signal)
      end)
    end
  end
end)
