-- Built-in kinds of the sandbox: what their strategies fill in and refuse.
require "spec.support.sandbox_env"
local go_time = require "kube.sandbox.go_time"
local quantity = require "kube.sandbox.quantity"
local rig = require "spec.support.sandbox_rig"

local MERGE = { ["content-type"] = "application/merge-patch+json" }

describe("times", function()
  it("are written in UTC, with as many digits as their type has", function()
    assert.equal("2000-12-31T23:00:00Z", go_time.utc("2001-01-01T00:00:00+01:00", 0))
    assert.equal("2000-03-01T04:59:59.120000Z", go_time.utc("2000-02-29T23:29:59.12-05:30", 6))
    assert.equal("1969-12-31T23:59:59Z", go_time.utc("1969-12-31T23:59:59.999Z", 0))
    assert.equal("2100-03-01T00:00:00Z", go_time.utc("2100-02-28T23:00:00-01:00", 0))
    assert.equal("soon", go_time.utc("soon", 0))
  end)
end)

describe("quantities", function()
  it("are written with the largest suffix that leaves no fraction", function()
    for text, canonical in pairs {
      ["0.5Gi"] = "512Mi", ["1024Ki"] = "1Mi", ["1.5Gi"] = "1536Mi", ["0.5Ki"] = "512",
      ["1000"] = "1k", ["0.1"] = "100m", ["1500m"] = "1500m", ["1000m"] = "1",
      ["2e3"] = "2e3", ["20e2"] = "2e3", ["0"] = "0", ["0Gi"] = "0",
      ["-1.5"] = "-1500m", ["+5"] = "+5", ["1000Ki"] = "1000Ki", ["12345678901234567890"] = "12345678901234567890",
      [".5"] = "500m", ["1.234"] = "1.234", ["1.500"] = "1.500", ["0.100"] = "100m", ["+1000"] = "1k",
      ["+1.5"] = "1500m", ["1.953125Ki"] = "2000", ["1025Ki"] = "1025Ki", ["1000E"] = "1e21", ["0.1n"] = "1n",
    } do
      assert.equal(canonical, quantity.canonical(text), text)
    end
    assert.equal("1", quantity.canonical(1))
    assert.equal("1500m", quantity.canonical(1.5))
  end)
end)

describe("the sandbox's", function()
  local box
  before_each(function() box = rig.new { seed = 5 } end)

  local function template(labels)
    return { metadata = { labels = labels }, spec = { restartPolicy = "Never",
      containers = { { name = "a", image = "i" } } } }
  end

  it("jobs have the labels of their pods unless they bring their own", function()
    local path = "/apis/batch/v1/namespaces/default/jobs"
    local _, bare = box:post(path, { metadata = { name = "a" }, spec = { template = template { app = "x" } } })
    assert.equal("x", bare.metadata.labels.app)
    assert.equal("a", bare.metadata.labels["job-name"])
    local _, own = box:post(path, { metadata = { name = "b", labels = { l = "1" } },
      spec = { template = template() } })
    assert.same({ l = "1" }, own.metadata.labels)
    assert.equal("b", own.spec.template.metadata.labels["job-name"])
  end)

  it("daemon sets count the changes of their template", function()
    local path = "/apis/apps/v1/namespaces/default/daemonsets"
    local key = "deprecated.daemonset.template.generation"
    local pods = template { app = "x" }
    pods.spec.restartPolicy = nil
    local _, made = box:post(path, { metadata = { name = "a" },
      spec = { selector = { matchLabels = { app = "x" } }, template = pods } })
    assert.equal("1", made.metadata.annotations[key])
    local _, same = box:request("PATCH", path .. "/a", { spec = { minReadySeconds = 3 } }, MERGE)
    assert.equal("1", same.metadata.annotations[key])
    local change = { spec = { template = { spec = { hostPID = true } } } }
    local _, changed = box:request("PATCH", path .. "/a", change, MERGE)
    assert.equal("2", changed.metadata.annotations[key])
  end)

  it("services take a new address by either of its names, and refuse it", function()
    local path = "/api/v1/namespaces/default/services"
    assert.equal(201, (box:post(path, { metadata = { name = "a" }, spec = { ports = { { port = 80 } } } })))
    local code, refusal = box:request("PATCH", path .. "/a", { spec = { clusterIP = "10.1.2.3" } }, MERGE)
    assert.equal(422, code)
    assert.equal('Invalid value: ["10.1.2.3"]: may not change once set', refusal.details.causes[1].message)
  end)

  it("services have all ports of a node between them, and no more", function()
    local path, count = "/api/v1/namespaces/default/services", 32767 - 30000 + 1
    local seen, left, n = {}, count, 0
    while left > 0 do
      local ports = {}
      for i = 1, math.min(400, left) do ports[i] = { name = "p" .. i, port = i } end
      left, n = left - #ports, n + 1
      local code, service = box:post(path, { metadata = { name = "s" .. n }, spec = { type = "NodePort",
        ports = ports } })
      assert.equal(201, code, service.message)
      for _, port in ipairs(service.spec.ports) do
        assert.truthy(port.nodePort >= 30000 and port.nodePort <= 32767 and not seen[port.nodePort], port.nodePort)
        seen[port.nodePort] = true
      end
    end
    local one = { metadata = { name = "late" }, spec = { type = "NodePort", ports = { { port = 80 } } } }
    local code, refusal = box:post(path, one)
    assert.equal(500, code)
    assert.equal("Internal error occurred: failed to allocate a nodePort: range is full", refusal.message)
    box:delete(path .. "/s2")
    assert.equal(201, (box:post(path, one)))
  end)

  it("services have addresses of their own, many of them", function()
    local path, seen = "/api/v1/namespaces/default/services", {}
    for i = 1, 300 do
      local code, service = box:post(path, { metadata = { name = "s" .. i }, spec = { ports = { { port = 80 } } } })
      assert.equal(201, code, service.message)
      assert.falsy(seen[service.spec.clusterIP])
      seen[service.spec.clusterIP] = true
    end
    assert.truthy(seen["192.0.2.254"] and seen["198.18.0.1"])
  end)

  it("autoscalers are the same in both versions, as far as the older one has words", function()
    local function path(version)
      return "/apis/autoscaling/" .. version .. "/namespaces/default/horizontalpodautoscalers"
    end
    local prefix = "autoscaling.alpha.kubernetes.io/"
    local target = { apiVersion = "apps/v1", kind = "Deployment", name = "x" }
    local metrics = {
      { type = "Resource", resource = { name = "cpu", target = { type = "Utilization", averageUtilization = 50 } } },
      { type = "Pods", pods = { metric = { name = "m", selector = { matchLabels = { a = "b" } } },
        target = { type = "AverageValue", averageValue = "5" } } },
    }
    local code, made = box:post(path "v2", { metadata = { name = "h" }, spec = { maxReplicas = 3, metrics = metrics,
      scaleTargetRef = target, behavior = { scaleDown = { stabilizationWindowSeconds = 5 } } } })
    assert.equal(201, code, made.message)
    local _, old = box:get(path "v1" .. "/h")
    assert.equal(50, old.spec.targetCPUUtilizationPercentage)
    assert.is_nil(old.spec.metrics)
    assert.equal('[{"pods":{"metricName":"m","selector":{"matchLabels":{"a":"b"}},"targetAverageValue":"5"},'
      .. '"type":"Pods"}]', old.metadata.annotations[prefix .. "metrics"])
    old.spec.maxReplicas, old.metadata.managedFields = 4, nil
    code, old = box:request("PUT", path "v1" .. "/h", old)
    assert.equal(200, code, old.message)
    local _, new = box:get(path "v2" .. "/h")
    assert.equal(4, new.spec.maxReplicas)
    assert.same(made.spec.behavior, new.spec.behavior)
    assert.equal("m", new.spec.metrics[1].pods.metric.name)
    assert.equal("AverageValue", new.spec.metrics[1].pods.target.type)
    assert.equal(50, new.spec.metrics[2].resource.target.averageUtilization)
    assert.is_nil(new.metadata.annotations)
  end)
end)
