-- The limits that clients put on themselves.
local cleanup = require "spec.support.cleanup"
local rig = require "spec.support.client_rig"

describe("a client with a limit", function()
  cleanup.install()

  it("begins a burst at once and the rest at its pace", function() -- S-REST-06
    local server = rig.serve(rig.echo)
    rig.run(server, [[
      local function seconds(c, requests)
        local before = require("kube._core").task.now()
        for _ = 1, requests do c:get("v1/nodes", "n") end
        return require("kube._core").task.now() - before
      end
      local limited = kube.new_client { qps = 20, burst = 2 }
      local took = seconds(limited, 6)
      assert(took >= 0.19, "four waited 1/20 s each: " .. took)
      kube.rate_limit { qps = 0.2, burst = 1 } -- each beyond the first would wait five seconds
      assert(seconds(kube.new_client(), 6) < 4) -- is none of the host's
      assert(seconds(limited, 1) < 4)
      kube.rate_limit { qps = 20, burst = 1 }
      assert(seconds(session(), 3) + seconds(client, 2) >= 0.19) -- both are
      kube.rate_limit { qps = 0.2, burst = 1 }
      client:get("v1/nodes", "n")
      kube.rate_limit()
      assert(seconds(client, 5) < 4)
    ]])
  end)

  it("does not begin what would come too late", function()
    local server = rig.serve(rig.echo)
    rig.run(server, [[
      local limited = kube.new_client { qps = 0.1, burst = 1 }
      limited:get("v1/nodes", "a")
      local _, err = limited:try_get("v1/nodes", "b", { timeout = 1 })
      same({ "timeout", "true" }, { err.code, tostring(err.retriable) })
      assert(err.message:find("GET /api/v1/nodes/b: its turn does not come in time", 1, true), err.message)
      assert(err.message:find("the client's limit is 0.1 requests per second", 1, true), err.message)
      local task = require "kube._task"
      local ok, cut = task.run({ timeout = 1 }, function() return limited:get("v1/nodes", "c") end)
      same({ "false", "timeout" }, { tostring(ok), cut.code })
    ]])
    assert.are.equal(1, #server.requests)
  end)

  it("is refused where it stands when it is written wrongly", function()
    rig.run(rig.serve(rig.echo), [[
      local function refused(text, fn, opts)
        local err = failure(fn, opts)
        assert(err:find("script%.lua:%d+: ") and err:find(text, 1, true), err)
      end
      refused("new_client: option 'qps' must be a number above 0, not 0", kube.new_client, { qps = 0 })
      refused("new_client: option 'burst' must be a whole number from 1 on, not 0.5", kube.new_client,
        { qps = 1, burst = 0.5 })
      refused("kube.rate_limit: option 'burst' needs qps", kube.rate_limit, { burst = 1 })
      refused("kube.rate_limit has no option 'qsp' (did you mean 'qps'?)", kube.rate_limit, { qsp = 1 })
    ]])
  end)
end)
