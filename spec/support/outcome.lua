-- Small scripts in the real binary that say what they saw by printing it.
--
--   local outcome = require "spec.support.outcome"
--   outcome.prints("1\n", "print(1)")        ends with 0 and has written this; returns stderr
--   outcome.prints("1\n", source, { code = 1 })    ends with 1
--   outcome.fails("boom", "error 'boom'")    ends with 1, and the pattern is in stderr
--
-- The leak check is on, as for every script of run.lua.
local assert = require "luassert"
local run = require "spec.support.run"

local outcome = {}

--- Runs a script that must end with this code; returns stdout and stderr.
function outcome.of(code, source, options)
  local result = run.run_script('local kube = require "kube"\n' .. source, options)
  assert.are.equal(code, result.code, result.stdout .. result.stderr)
  return result.stdout, result.stderr
end

function outcome.prints(expected, source, options)
  local out, err = outcome.of(options and options.code or 0, source, options)
  assert.are.equal(expected, out, err)
  return err
end

function outcome.fails(pattern, source, options)
  local _, err = outcome.of(1, source, options)
  assert.is_truthy(err:find(pattern), ("wanted %s in:\n%s"):format(pattern, err))
  return err
end

return outcome
