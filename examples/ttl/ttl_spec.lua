-- moonwatch test examples/ttl
local kube = require "kube"
local kt = require "kube.test"
local sandbox = require "kube.sandbox"

local CONFIGMAPS, SECRETS = "v1/configmaps", "v1/secrets"

local function made(kind, name, ttl)
  return { apiVersion = "v1", kind = kind, metadata = { name = name, annotations = { ["example.com/ttl"] = ttl } } }
end

describe("the ttl controller", function()
  local t

  before_each(function() t = kt.new { script = "ttl.lua" } end)

  -- What is created now was created an hour ago.
  local function an_hour_ago() sandbox.freeze(sandbox.now() - 3600) end

  it("deletes what has lived long enough, and nothing else", function()
    an_hour_ago()
    t:create { made("ConfigMap", "short", "30m"), made("ConfigMap", "long", "2h"), made("ConfigMap", "ever"),
      made("Secret", "short", "30m") }
    local writes = kt.summary(t:settle())
    table.sort(writes)
    assert.same({ "delete v1/configmaps default/short", "delete v1/secrets default/short" }, writes)
    assert.is_nil(t:get(SECRETS, "default/short"))
    assert.is_not_nil(t:get(CONFIGMAPS, "default/long"))
  end)

  it("deletes when the time has come", function()
    local blink = t:create(made("ConfigMap", "blink", "2s"))
    t:eventually(function() return not t:get(CONFIGMAPS, "default/blink") end)
    assert.is_true(kube.time.now() >= kube.time.parse(blink.metadata.creationTimestamp) + 2)
  end)

  it("heeds a new annotation", function()
    an_hour_ago()
    t:create(made("ConfigMap", "a", "2h"))
    t:settle()
    t:patch(CONFIGMAPS, "default/a", { metadata = { annotations = { ["example.com/ttl"] = "1m" } } })
    assert.same({ "delete v1/configmaps default/a" }, kt.summary(t:settle()))
  end)

  it("says what is wrong with an annotation, and leaves the object alone", function()
    t:create(made("ConfigMap", "a", "soon"))
    assert.same({}, kt.summary(t:settle()))
    t:eventually(function()
      local event = t:list("v1/events", { namespace = "default" })[1]
      return event and event.reason == "BadTTL"
    end)
  end)
end)
