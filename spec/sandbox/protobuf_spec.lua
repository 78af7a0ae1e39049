-- Bodies in protobuf. The captured ones are what kubectl 1.36 sent (create) or kube-apiserver 1.36
-- answered (the last group), each with the JSON that the server stored for it.
local host = require "spec.support.sandbox_env"
local json = require "kube.sandbox.json"
local kinds = require "kube.sandbox.kinds"
local protobuf = require "kube.sandbox.protobuf"
local support = require "spec.support.codec"

local CREATED = {
  "configmap", "cronjob", "deployment", "ingress", "job", "namespace", "pdb", "priorityclass", "quota", "role",
  "rolebinding", "secret", "service", "serviceaccount",
}
local ANSWERED = { "crd", "event", "lease", "pod", "revision" }

local registry = kinds.new()

local function captured()
  local file = assert(io.open("spec/fixtures/sandbox/protobuf.json"))
  local text = file:read("*a")
  file:close()
  return assert(json.decode(text))
end

local fixtures = captured()

local function body_of(name) return host.unbase64(fixtures[name].body) end

local function resource_of(document) return assert(registry:by_kind(document.apiVersion, document.kind)) end

-- The first path where `stored` does not have what `sent` says.
local function lost(sent, stored, path)
  if type(sent) ~= "table" then
    return not json.equal(sent, stored) and ("%s: %s"):format(path, json.encode(sent)) or nil
  end
  if type(stored) ~= "table" then return path end
  for key, value in pairs(sent) do
    local found = lost(value, stored[key], path .. "." .. tostring(key))
    if found then return found end
  end
end

-- Without the structs and lists that Go writes though nothing is in them.
local function without_empty(value)
  if type(value) ~= "table" then return value end
  local copy = json.is_array(value) and json.array {} or json.object {}
  for key, item in pairs(value) do
    item = without_empty(item)
    local empty = type(item) == "table" and next(item) == nil or item == json.null
    if not empty or json.is_array(value) then copy[key] = item end
  end
  return copy
end

-- Writing protobuf by hand.
local function varint(n)
  local bytes = {}
  repeat
    local low = n % 128
    n = (n - low) / 128
    bytes[#bytes + 1] = string.char(n > 0 and low + 128 or low)
  until n == 0
  return table.concat(bytes)
end

local function bytes_field(number, text) return varint(number * 8 + 2) .. varint(#text) .. text end
local function varint_field(number, n) return varint(number * 8) .. varint(n) end

local function envelope(api_version, kind, raw)
  return "k8s\0" .. bytes_field(1, bytes_field(1, api_version) .. bytes_field(2, kind)) .. bytes_field(2, raw)
end

local function config_map(raw) return envelope("v1", "ConfigMap", raw) end

local MINUS_ONE = ("\255"):rep(9) .. "\1"

describe("a protobuf body", function()
  for _, name in ipairs(CREATED) do
    it("of kubectl create says what the server stored: " .. name, function()
      local stored = fixtures[name].stored
      local document = assert(protobuf.decode(body_of(name), resource_of(stored)))
      assert.equal(stored.kind, document.kind)
      assert.equal(stored.apiVersion, document.apiVersion)
      assert.equal(stored.metadata.name, document.metadata.name)
      assert.is_nil(lost(document, stored, "$"))
    end)
  end

  for _, name in ipairs(ANSWERED) do
    it("of the server is the same document as its JSON: " .. name, function()
      local stored = fixtures[name].stored
      local document = assert(protobuf.decode(body_of(name), resource_of(stored)))
      assert.is_nil(support.difference(without_empty(document), without_empty(stored)))
    end)
  end

  it("leaves out what omitempty would", function()
    local document = assert(protobuf.decode(body_of("configmap")))
    assert.equal('{"apiVersion":"v1","data":{"a":"b","e":""},"kind":"ConfigMap","metadata":{"name":"pb1"}}',
      json.encode(document))
  end)

  it("keeps a zero that a pointer points to, and drops others", function()
    local spec = assert(protobuf.decode(body_of("deployment"))).spec
    assert.equal(0, spec.replicas)
    assert.is_nil(spec.minReadySeconds)
    assert.is_nil(spec.strategy)
  end)

  it("of a review carries what is asked", function()
    local document = assert(protobuf.decode(body_of("review")))
    assert.equal("SelfSubjectAccessReview", document.kind)
    assert.equal("pods", document.spec.resourceAttributes.resource)
  end)

  it("may be the options of a deletion, in any group", function()
    local raw = varint_field(1, 0) .. bytes_field(2, bytes_field(1, "u-1")) .. bytes_field(4, "Foreground")
      .. bytes_field(5, "All")
    for _, version in ipairs { "v1", "apps/v1", "meta.k8s.io/v1" } do
      local options = assert(protobuf.decode(envelope(version, "DeleteOptions", raw)))
      options.apiVersion = nil
      assert.equal('{"dryRun":["All"],"gracePeriodSeconds":0,"kind":"DeleteOptions","preconditions":{"uid":"u-1"},'
        .. '"propagationPolicy":"Foreground"}', json.encode(options))
    end
  end)

  it("without a kind is of the kind that the path names", function()
    local raw = bytes_field(1, bytes_field(1, "x"))
    local document = assert(protobuf.decode("k8s\0" .. bytes_field(2, raw), registry:find("", "v1", "secrets")))
    assert.equal("Secret", document.kind)
    assert.equal("v1", document.apiVersion)
  end)

  it("keeps every digit of a 64-bit number", function()
    local function generation(bytes)
      local document = assert(protobuf.decode(config_map(bytes_field(1, varint(7 * 8) .. bytes))))
      return json.encode(document.metadata.generation)
    end
    assert.equal("9223372036854775807", generation(("\255"):rep(8) .. "\127"))
    assert.equal("-1", generation(MINUS_ONE))
    assert.equal("4503599627370497", generation(varint(2 ^ 52 + 1)))
  end)

  it("reads negative 32-bit numbers", function()
    local raw = varint(2 * 8) .. MINUS_ONE
    local document = assert(protobuf.decode(envelope("scheduling.k8s.io/v1", "PriorityClass", raw)))
    assert.equal(-1, document.value)
  end)

  it("skips fields that it does not know", function()
    local raw = bytes_field(1, bytes_field(1, "x")) .. bytes_field(1999, "abc") .. varint_field(1998, 7)
    assert.equal("x", assert(protobuf.decode(config_map(raw))).metadata.name)
  end)
end)

describe("a malformed protobuf body", function()
  local function refused(text, pattern)
    local document, problem = protobuf.decode(text)
    assert.is_nil(document)
    assert.truthy(problem:find(pattern), problem)
  end

  it("is refused with its reason", function()
    refused("", "expected prefix")
    refused('{"kind":"ConfigMap"}', "expected prefix")
    refused("k8s\0\10", "unexpected EOF")
    refused(envelope("v1", "Nonsense", ""), 'no kind "Nonsense" is registered for version "v1"')
    refused(config_map("\10\255\255\255\255\15"), "unexpected EOF")
    refused(config_map("\10\255\255\255\255\255\255\255\255\255\255\1"), "integer overflow")
    refused(config_map("\10\255\255\255\255\255\255\255\255\255\1"), "negative length")
    refused(config_map(varint_field(1, 1)), "wrong wireType = 0 for field metadata")
    refused(config_map("\11"), "illegal wireType 3")
    refused(config_map("\0\0"), "illegal tag 0")
    refused(config_map(bytes_field(1, bytes_field(1, "a\255"))), "UTF%-8")
    refused(envelope("apps/v1", "ControllerRevision", bytes_field(2, bytes_field(1, "{"))), "%S")
  end)

  it("cannot nest or repeat without end", function()
    -- properties.x.properties.x ... of a schema.
    local raw = ""
    for _ = 1, 300 do raw = bytes_field(29, bytes_field(1, "x") .. bytes_field(2, raw)) end
    raw = bytes_field(2, bytes_field(7, bytes_field(4, bytes_field(1, raw))))
    refused(envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", raw), "nested deeper")
    refused(config_map(bytes_field(1, bytes_field(13, ""):rep(250000))), "holds more than")
  end)

  it("is never a crash, whatever bytes are changed, cut or repeated", function()
    local random = support.random(20261116)
    local refusals = 0
    for _, list in ipairs { CREATED, ANSWERED } do
      for _, name in ipairs(list) do
        local body = body_of(name)
        for _ = 1, 100 do
          local at = random(#body)
          local pick = random(4)
          local mutant
          if pick == 1 then
            mutant = body:sub(1, at)
          elseif pick == 2 then
            mutant = body:sub(1, at) .. body:sub(random(#body))
          else
            mutant = body:sub(1, at - 1) .. string.char(random(0, 255)) .. body:sub(at + (pick == 3 and 1 or 0))
          end
          local document, problem = protobuf.decode(mutant)
          if document == nil then
            refusals = refusals + 1
            assert.is_string(problem)
          else
            assert.is_string(json.encode(document))
          end
        end
      end
    end
    assert.is_true(refusals > 500)
  end)
end)
