-- The commands of the newest kubectl on the real server and on the sandbox, with the same names: both answer alike,
-- and as recorded.
local judge = require "spec.probes.judge"

describe("the newest kubectl does the same with both:", function() judge.side_by_side { kubectl = "built" } end)
