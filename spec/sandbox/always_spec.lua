-- What Go writes though nobody set it, on objects that kube-apiserver 1.36 stored.
local host = require "spec.support.sandbox_env"
local always = require "kube.sandbox.always"
local json = require "kube.sandbox.json"
local kinds = require "kube.sandbox.kinds"
local protobuf = require "kube.sandbox.protobuf"
local support = require "spec.support.codec"

local registry = kinds.new()

local function fixtures()
  local file = assert(io.open("spec/fixtures/sandbox/protobuf.json"))
  local text = file:read("*a")
  file:close()
  return assert(json.decode(text))
end

local function filled(api_version, kind, text)
  local R = registry:by_kind(api_version, kind)
  return json.encode(always.fill(R, json.decode(text)))
end

describe("what Go always writes", function()
  for _, name in ipairs { "crd", "event", "lease", "pod", "revision" } do
    it("makes the server's protobuf the very document of its JSON: " .. name, function()
      local fixture = fixtures()[name]
      local stored = fixture.stored
      local R = registry:by_kind(stored.apiVersion, stored.kind)
      local document = assert(protobuf.decode(host.unbase64(fixture.body), R))
      assert.is_nil(support.difference(always.fill(R, document), stored))
    end)
  end

  it("is in what the server stored already", function()
    for name, fixture in pairs(fixtures()) do
      local stored = fixture.stored
      if stored then
        local R = registry:by_kind(stored.apiVersion, stored.kind)
        assert.equal(stored, always.fill(R, stored), name)
      end
    end
  end)

  it("are structs, zeros of fields without omitempty, and null for lists of that sort", function()
    assert.equal('{"metadata":{},"spec":{"podSelector":{}}}', filled("networking.k8s.io/v1", "NetworkPolicy", "{}"))
    assert.equal('{"metadata":{},"spec":{},"status":{"loadBalancer":{}}}', filled("v1", "Service", "{}"))
    assert.equal('{"metadata":{},"rules":null}', filled("rbac.authorization.k8s.io/v1", "Role", "{}"))
    assert.equal('{"metadata":{},"spec":{},"status":{"currentHealthy":0,"desiredHealthy":0,'
      .. '"disruptionsAllowed":0,"expectedPods":0}}', filled("policy/v1", "PodDisruptionBudget", "{}"))
  end)

  it("are found inside lists and maps too", function()
    assert.equal('{"metadata":{},"spec":{"containers":[{"image":"i","name":"c","resources":{}}]},"status":{}}',
      filled("v1", "Pod", '{"spec":{"containers":[{"name":"c","image":"i"}]}}'))
  end)

  it("leave no place for a zero that Go omits; a pointer to one is kept", function()
    assert.equal('{"metadata":{},"spec":{"containers":null,"hostUsers":false,"securityContext":{"runAsUser":0}},'
      .. '"status":{}}', filled("v1", "Pod", '{"spec":{"nodeName":"","hostNetwork":false,"hostUsers":false,'
      .. '"securityContext":{"runAsUser":0}}}'))
  end)

  it("leaves the given document as it is, and odd values to those who check them", function()
    local document = json.decode '{"spec":7,"metadata":{"labels":[]}}'
    local before = json.encode(document)
    local R = registry:find("", "v1", "pods")
    assert.equal('{"metadata":{"labels":[]},"spec":7,"status":{}}', json.encode(always.fill(R, document)))
    assert.equal(before, json.encode(document))
  end)

  it("does not concern custom resources", function()
    local R = kinds.complete { group = "ex.io", version = "v1", plural = "widgets", kind = "Widget", verb_list = {} }
    local document = json.decode '{"spec":{}}'
    assert.equal(document, always.fill(R, document))
  end)
end)
