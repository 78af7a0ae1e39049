-- What the sandbox says about kinds against what the API server of the same release says: discovery,
-- schemas, columns, and protobuf read as the server reads it. Fails after scripts/kube builds a new
-- release until scripts/kinds has run.
require("spec.support.cluster").real()
local host = require "spec.support.sandbox_env"
local always = require "kube.sandbox.always"
local discovery = require "kube.sandbox.discovery"
local json = require "kube.sandbox.json"
local kinds = require "kube.sandbox.kinds"
local openapi = require "kube.sandbox.openapi"
local openapi_v2 = require "kube.sandbox.openapi_v2"
local openapi_wire = require "spec.support.openapi_wire"
local protobuf = require "kube.sandbox.protobuf"
local support = require "spec.support.codec"
local version = require "kube.sandbox.version"

local AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
local TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
local PROTOBUF = "application/vnd.kubernetes.protobuf"

local registry = kinds.new()

local function read(path)
  local file = assert(io.open(path))
  local text = file:read("*a")
  file:close()
  return text
end

local server = read(os.getenv("KUBECONFIG")):match('server: "([^"]*)"')
local directory = os.getenv("MOONWATCH_KUBE_DIR")
local config = os.tmpname()

local function get(path, accept)
  local pipe = assert(io.popen(("curl --config '%s' --header 'Accept: %s' '%s%s'")
    :format(config, accept or "application/json", server, path)))
  local text = pipe:read("*a")
  pipe:close()
  return text
end

local function get_json(path, accept) return assert(json.decode(get(path, accept)), path) end

local function root_of(R) return R.group == "" and "/api/v1/" or "/apis/" .. R.api_version .. "/" end

-- Lists of kinds that an option is for have the groups that were there first.
local function is_compared(name) return not name:find("DeleteOptions$") end

describe("the sandbox's kinds", function()
  setup(function()
    local token = read(directory .. "/tokens.csv"):match("([^,\n]*),admin,")
    local file = assert(io.open(config, "w"))
    file:write(("silent\nlocation\ncacert = \"%s/ca.crt\"\nheader = \"Authorization: Bearer %s\"\n")
      :format(directory, token))
    file:close()
  end)
  teardown(function() os.remove(config) end)

  it("are of the server's release", function()
    assert.equal(get_json("/version").gitVersion, version.info().gitVersion)
  end)

  it("are listed as the server lists them", function()
    for _, group in ipairs(registry:groups()) do
      for _, of in ipairs(registry:versions(group)) do
        local path = group == "" and "/api/" .. of or "/apis/" .. group .. "/" .. of
        assert.is_nil(support.difference(discovery.resources(registry, group, of), get_json(path)), path)
      end
    end
  end)

  it("are listed in the aggregated form too", function()
    for _, core in ipairs { true, false } do
      local theirs = {}
      for _, item in ipairs(get_json(core and "/api" or "/apis", AGGREGATED).items) do
        for _, of in ipairs(item.versions) do theirs[(item.metadata.name or "") .. "/" .. of.version] = of end
      end
      for _, item in ipairs(discovery.aggregated(registry, core).items) do
        for _, of in ipairs(item.versions) do
          local name = (item.metadata.name or "") .. "/" .. of.version
          assert.is_nil(support.difference(of, theirs[name]), name)
        end
      end
    end
  end)

  it("have the server's schemas", function()
    local count = 0
    for _, group in ipairs(registry:groups()) do
      for _, of in ipairs(registry:versions(group)) do
        local path = "/openapi/v3/" .. (group == "" and "api/" or "apis/" .. group .. "/") .. of
        local theirs = get_json(path).components.schemas
        for name, node in pairs(openapi.document(registry, group, of).components.schemas) do
          if theirs[name] and is_compared(name) then
            assert.is_nil(support.difference(node, theirs[name]), name)
            count = count + 1
          end
        end
      end
    end
    assert.is_true(count > 500)
  end)

  it("have the server's schemas in the older form, too", function()
    local accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    local theirs = openapi_wire.read(get("/openapi/v2", accept), host.yaml_decode)
    local mine = openapi_wire.read(openapi_v2.encode(registry, "protobuf"), host.yaml_decode)
    assert.same(theirs.info, mine.info)
    local count = 0
    for name, node in pairs(mine.definitions) do
      if is_compared(name) then
        assert.same(theirs.definitions[name], node, name)
        count = count + 1
      end
    end
    assert.is_true(count > 500)
    for path, item in pairs(mine.paths) do
      for method, operation in pairs(item) do
        local other = assert(theirs.paths[path][method], path .. " " .. method)
        assert.same(other["x-kubernetes-group-version-kind"], operation["x-kubernetes-group-version-kind"])
      end
    end
  end)

  it("have documents where the server has some", function()
    local theirs = get_json("/openapi/v3").paths
    for path in pairs(openapi.root(registry).paths) do assert.is_table(theirs[path], path) end
  end)

  it("have the server's columns", function()
    for _, R in ipairs(registry:all()) do
      if R.verbs.list then
        local theirs = get_json(root_of(R) .. R.plural .. "?limit=1", TABLE).columnDefinitions
        assert.is_nil(support.difference(kinds.columns(R), theirs), R.resource_name)
      end
    end
  end)

  it("are read from protobuf as the server's JSON has them", function()
    local compared = 0
    for _, R in ipairs(registry:all()) do
      local list = R.verbs.get and R.verbs.list and get_json(root_of(R) .. R.plural .. "?limit=5").items or {}
      for _, item in ipairs(list) do
        local place = R.namespaced and "namespaces/" .. item.metadata.namespace .. "/" or ""
        local path = root_of(R) .. place .. R.plural .. "/" .. item.metadata.name
        local document, bytes = get_json(path), get(path, PROTOBUF)
        -- What changed in between is no difference, and what is gone since the list is none of that kind.
        local same = document.metadata.uid == item.metadata.uid and json.equal(document, get_json(path))
        if same and bytes:sub(1, 4) == "k8s\0" then
          local mine = assert(protobuf.decode(bytes, R))
          -- Objects inside objects have a kind in JSON only.
          for _, claim in ipairs(json.get(document, "spec", "volumeClaimTemplates") or {}) do
            claim.kind, claim.apiVersion = nil, nil
          end
          assert.is_nil(support.difference(always.fill(R, mine), document), path)
          compared = compared + 1
        end
      end
    end
    assert.is_true(compared > 20)
  end)
end)
