-- The kinds of the recorded apply cases: how random configurations of them look, what the server adds
-- on its own, and their schemas.
local json = require "kube.sandbox.json"
local schema = require "kube.sandbox.schema"

local kinds = {}

-- Each maker returns an object from random choices out of few names, so that managers meet.
local function some(random, names, make)
  local out = json.object {}
  for _, name in ipairs(names) do
    if random(2) == 1 then out[name] = make(name) end
  end
  return out
end

local function list(random, names, make)
  local out = json.array {}
  for _, name in ipairs(names) do
    if random(2) == 1 then table.insert(out, random(#out + 1), make(name)) end
  end
  return out
end

local function maybe(random, value)
  if random(2) == 1 then return value end
end

local function digit(random) return tostring(random(3)) end

local function labels(random)
  return maybe(random, some(random, { "l1", "l2" }, function() return digit(random) end))
end

local function metadata(random)
  return json.object {
    labels = labels(random),
    annotations = maybe(random, some(random, { "a1", "a.io/x" }, function() return digit(random) end)),
    finalizers = random(4) == 1 and list(random, { "f.io/a", "f.io/b" }, function(name) return name end) or nil,
  }
end

kinds.ConfigMap = {
  typed = true,
  defaults = {},
  api_version = "v1",
  path = "/api/v1/namespaces/%s/configmaps",
  schema = function() return schema.named "io.k8s.api.core.v1.ConfigMap" end,
  reset = { [""] = {} },
  make = function(random)
    return json.object {
      metadata = metadata(random),
      data = maybe(random, some(random, { "k1", "k2", "k3" }, function() return digit(random) end)),
      binaryData = random(6) == 1 and json.object { b1 = "AA==" } or nil,
    }
  end,
}

local function ports(random, number)
  return list(random, { 80, 443, 8080 }, function(port)
    return json.object {
      [number] = port,
      name = "p" .. port,
      protocol = maybe(random, "TCP"),
      hostPort = number == "containerPort" and random(4) == 1 and port or nil,
    }
  end)
end

local function container(random, name)
  return json.object {
    name = name,
    image = "img" .. digit(random),
    args = random(3) == 1 and json.array { digit(random) } or nil,
    env = maybe(random, list(random, { "E1", "E2", "E3" }, function(env)
      return json.object { name = env, value = maybe(random, digit(random)) }
    end)),
    ports = maybe(random, ports(random, "containerPort")),
    resources = random(3) == 1 and json.object { limits = json.object { cpu = digit(random) } } or nil,
  }
end

kinds.Deployment = {
  typed = true,
  api_version = "apps/v1",
  path = "/apis/apps/v1/namespaces/%s/deployments",
  schema = function() return schema.named "io.k8s.api.apps.v1.Deployment" end,
  reset = { [""] = { { "status" } }, status = { { "spec" }, { "metadata", "labels" } } },
  make = function(random)
    local containers = list(random, { "c1", "c2", "c3" }, function(name) return container(random, name) end)
    if #containers == 0 then containers[1] = container(random, "c1") end
    return json.object {
      metadata = metadata(random),
      spec = json.object {
        replicas = maybe(random, random(3)),
        paused = random(4) == 1 or nil,
        strategy = random(4) == 1 and json.object { type = "Recreate" } or nil,
        selector = json.object { matchLabels = json.object { app = "x" } },
        template = json.object {
          metadata = json.object { labels = json.object { app = "x", l1 = maybe(random, digit(random)) } },
          spec = json.object {
            containers = containers,
            volumes = random(3) == 1 and list(random, { "v1", "v2" }, function(name)
              return json.object { name = name, emptyDir = json.object {} }
            end) or nil,
            enableServiceLinks = random(5) == 1 or nil,
          },
        },
      },
    }
  end,
  make_status = function(random)
    return json.object {
      metadata = json.object { labels = labels(random) },
      status = json.object {
        observedGeneration = 1,
        replicas = maybe(random, random(3)),
        conditions = maybe(random, list(random, { "Available", "Progressing" }, function(name)
          return json.object { type = name, status = "True", reason = maybe(random, "R" .. digit(random)) }
        end)),
      },
    }
  end,
  defaults = {
    terminationMessagePath = "/dev/termination-log", terminationMessagePolicy = "File",
    imagePullPolicy = "*", resources = json.object {}, protocol = "TCP", restartPolicy = "Always",
    terminationGracePeriodSeconds = 30, dnsPolicy = "ClusterFirst", securityContext = json.object {},
    schedulerName = "default-scheduler", replicas = 1, revisionHistoryLimit = 10, progressDeadlineSeconds = 600,
    strategy = "*", rollingUpdate = "*", type = "RollingUpdate", status = json.object {}, hostPort = "*",
    annotations = "*",
  },
}

kinds.Service = {
  typed = true,
  api_version = "v1",
  path = "/api/v1/namespaces/%s/services",
  schema = function() return schema.named "io.k8s.api.core.v1.Service" end,
  reset = { [""] = { { "status" } }, status = { { "spec" } } },
  make = function(random)
    local all = ports(random, "port")
    if #all == 0 then all[1] = json.object { port = 80, name = "p80" } end
    return json.object {
      metadata = metadata(random),
      spec = json.object {
        ports = all,
        selector = maybe(random, some(random, { "s1", "s2" }, function() return digit(random) end)),
        sessionAffinity = random(3) == 1 and "None" or nil,
        publishNotReadyAddresses = random(4) == 1 or nil,
      },
    }
  end,
  allocated = { "clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy" },
  defaults = {
    clusterIP = "*", clusterIPs = "*", ipFamilies = "*", ipFamilyPolicy = "*", internalTrafficPolicy = "Cluster",
    sessionAffinity = "None", type = "ClusterIP", protocol = "TCP", targetPort = "*", status = "*",
    loadBalancer = json.object {},
  },
}

local STRING = { type = "string" }

local function string_map(extra)
  local node = { type = "object", additionalProperties = STRING }
  for k, v in pairs(extra or {}) do node[k] = v end
  return node
end

local gadget = json.decode(json.encode {
  type = "object",
  properties = {
    spec = {
      type = "object",
      properties = {
        n = { type = "integer" },
        any = { ["x-kubernetes-int-or-string"] = true },
        text = { type = "string", nullable = true },
        obj = { type = "object", properties = { a = STRING, b = { type = "object", properties = { c = STRING } } } },
        whole = string_map { ["x-kubernetes-map-type"] = "atomic" },
        parts = string_map(),
        free = { type = "object", ["x-kubernetes-preserve-unknown-fields"] = true },
        row = { type = "array", items = STRING, ["x-kubernetes-list-type"] = "atomic" },
        plain = { type = "array", items = STRING },
        tags = { type = "array", items = STRING, ["x-kubernetes-list-type"] = "set" },
        nums = { type = "array", items = { type = "integer" }, ["x-kubernetes-list-type"] = "set" },
        items = {
          type = "array",
          ["x-kubernetes-list-type"] = "map",
          ["x-kubernetes-list-map-keys"] = { "port", "proto" },
          items = {
            type = "object",
            required = { "port" },
            properties = {
              port = { type = "integer" },
              proto = { type = "string", default = "TCP" },
              value = STRING,
              tags = { type = "array", items = STRING, ["x-kubernetes-list-type"] = "set" },
              parts = string_map(),
            },
          },
        },
      },
    },
    status = {
      type = "object",
      properties = {
        phase = STRING,
        conditions = {
          type = "array",
          ["x-kubernetes-list-type"] = "map",
          ["x-kubernetes-list-map-keys"] = { "type" },
          items = { type = "object", required = { "type" }, properties = { type = STRING, status = STRING } },
        },
      },
    },
  },
})

--- The definition of the custom kind.
kinds.definition = json.encode {
  apiVersion = "apiextensions.k8s.io/v1",
  kind = "CustomResourceDefinition",
  metadata = { name = "gadgets.apply.test" },
  spec = {
    group = "apply.test",
    scope = "Namespaced",
    names = { plural = "gadgets", singular = "gadget", kind = "Gadget", listKind = "GadgetList" },
    versions = json.array {
      {
        name = "v1",
        served = true,
        storage = true,
        subresources = { status = json.object {} },
        schema = { openAPIV3Schema = gadget },
      },
    },
  },
}

local gadget_resource = { builtin = false, schema = gadget }

local function free(random, depth)
  local pick = random(depth > 0 and 5 or 2)
  if pick <= 2 then return digit(random) end
  if pick == 3 then return json.array { digit(random), json.object { x = digit(random) } } end
  return some(random, { "x", "y" }, function() return free(random, depth - 1) end)
end

local function gadget_item(random, port)
  return json.object {
    port = port,
    proto = maybe(random, random(3) == 1 and "UDP" or "TCP"),
    value = maybe(random, digit(random)),
    tags = random(3) == 1 and list(random, { "t1", "t2" }, function(t) return t end) or nil,
    parts = random(3) == 1 and some(random, { "x", "y" }, function() return digit(random) end) or nil,
  }
end

kinds.Gadget = {
  api_version = "apply.test/v1",
  path = "/apis/apply.test/v1/namespaces/%s/gadgets",
  schema = function() return schema.of(gadget_resource) end,
  reset = { [""] = { { "status" } }, status = { { "metadata" }, { "spec" } } },
  make = function(random)
    local function word(t) return t end
    return json.object {
      metadata = metadata(random),
      spec = json.object {
        n = maybe(random, random(3)),
        any = random(3) == 1 and (random(2) == 1 and random(3) or digit(random)) or nil,
        text = random(4) == 1 and json.null or maybe(random, digit(random)),
        obj = random(3) == 1 and json.object {
          a = maybe(random, digit(random)), b = maybe(random, json.object { c = maybe(random, digit(random)) }),
        } or nil,
        whole = random(3) == 1 and some(random, { "x", "y" }, function() return digit(random) end) or nil,
        parts = random(2) == 1 and some(random, { "x", "y", "z" }, function() return digit(random) end) or nil,
        free = random(3) == 1 and some(random, { "x", "y" }, function() return free(random, 2) end) or nil,
        row = random(3) == 1 and list(random, { "r1", "r2" }, word) or nil,
        plain = random(4) == 1 and list(random, { "r1", "r2" }, word) or nil,
        tags = random(2) == 1 and list(random, { "t1", "t2", "t3", "t4" }, word) or nil,
        nums = random(3) == 1 and list(random, { 1, 2, 30 }, word) or nil,
        items = random(2) == 1 and list(random, { 80, 443, 9 }, function(p) return gadget_item(random, p) end) or nil,
      },
    }
  end,
  make_status = function(random)
    return json.object {
      status = json.object {
        phase = maybe(random, digit(random)),
        conditions = maybe(random, list(random, { "Ready", "Done" }, function(name)
          return json.object { type = name, status = maybe(random, digit(random)) }
        end)),
      },
    }
  end,
  defaults = { proto = "TCP" },
}

return kinds
