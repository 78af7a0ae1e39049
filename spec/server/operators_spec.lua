-- The example operators against an API server (see spec/support/cluster.lua), driven with kubectl as
-- people do.
local cleanup = require "spec.support.cleanup"
local cluster = require "spec.support.cluster"
local operators = require "spec.support.operators"

describe("on an API server", function()
  cluster.install()
  cleanup.install()

  it("the shortest controller greets every namespace", function()
    operators.greeter(cluster.start)
  end)

  it("the website operator makes what a website asks for, repairs it, reports, and cleans up", function()
    operators.website(cluster.start)
  end)

  it("the replicator copies a secret to where it is wanted, now and later, and takes it back", function()
    operators.replicator(cluster.start)
  end)

  it("the cleaner deletes what has lived long enough, and says what it cannot read", function()
    operators.ttl(cluster.start)
  end)

  it("the reloader rolls a Deployment out when its configuration changes", function()
    operators.reloader(cluster.start)
  end)
end)
