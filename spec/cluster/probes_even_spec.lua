-- Every other probe, from the second, on the real server and on the sandbox, with the same names: both answer alike,
-- and as recorded.
local judge = require "spec.probes.judge"

describe("the sandbox and the real server answer alike:", function() judge.side_by_side { part = 2, parts = 2 } end)
