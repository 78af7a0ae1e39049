-- luajit scripts/kinds.d/generate.lua SERVER CURLRC OUT MODULE...: reads the API server at SERVER with
-- curl and the Go modules, and writes the files that the sandbox knows the kinds from:
--
--   OUT/version.json        what /version answers
--   OUT/kinds.json          groups in their order, resources in theirs, definitions by kind
--   OUT/columns.json        the columns of each resource's table; texts that repeat are in "texts"
--   OUT/schema/PACKAGE.json OpenAPI definitions by name, without prose. "$ref" is the bare name of a
--                           definition and may have siblings (the server writes allOf of one $ref)
--   OUT/descriptions.json.gz  that prose: definition -> field -> text, "" being the definition itself
--   OUT/proto/PACKAGE.json  protobuf messages, see proto.lua
--
-- The prose is several times the size of the rest and only `kubectl explain` wants it, so it is
-- packed and apart. Each file has one entry per line.
package.path = "./?.lua;scripts/kinds.d/?.lua;" .. package.path
local codec = require("spec.support.codec").codec
local proto = require "proto"

local server, curlrc, out = arg[1], arg[2], arg[3]
local modules = { select(4, unpack(arg)) }

local AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
local TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"

local function get(path, accept)
  local command = ("curl --config '%s' --header 'Accept: %s' '%s%s'")
    :format(curlrc, accept or "application/json", server, path)
  local pipe = assert(io.popen(command))
  local text = pipe:read("*a")
  pipe:close()
  return assert(codec.decode(text), path)
end

local function sorted_keys(t)
  local keys = {}
  for key in pairs(t) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end

local function to_json(value)
  if type(value) ~= "table" then return codec.encode(value) end
  local parts = {}
  if codec.is_array(value) then
    for i, item in ipairs(value) do parts[i] = to_json(item) end
    return "[" .. table.concat(parts, ",") .. "]"
  end
  for i, key in ipairs(sorted_keys(value)) do parts[i] = codec.encode(key) .. ":" .. to_json(value[key]) end
  return "{" .. table.concat(parts, ",") .. "}"
end

local function write(name, entries)
  local lines = {}
  for i, key in ipairs(sorted_keys(entries)) do lines[i] = codec.encode(key) .. ":" .. to_json(entries[key]) end
  local path = out .. "/" .. name
  assert(os.execute("mkdir -p '" .. path:match("^(.*)/") .. "'") == 0)
  local file = assert(io.open(path, "w"))
  assert(file:write("{\n", table.concat(lines, ",\n"), "\n}\n"))
  file:close()
end

local function package_of(definition) return definition:match("^(.*)%.") end

-- ---- discovery ----

local function path_of(gv) return (gv:find("/", 1, true) and "/apis/" or "/api/") .. gv end

local function read_groups()
  local groups = codec.array { codec.object { name = "", versions = codec.array { "v1" } } }
  for _, item in ipairs(get("/apis").groups) do
    local versions = codec.array {}
    for i, version in ipairs(item.versions) do versions[i] = version.version end
    groups[#groups + 1] = codec.object { name = item.name, versions = versions }
  end
  return groups
end

-- What the aggregated form says, with the hash that only the older form has.
local function read_resources()
  local all, hashes = codec.object {}, {}
  local function add(item)
    local group = item.metadata.name or ""
    for _, version in ipairs(item.versions) do
      local gv = group == "" and version.version or group .. "/" .. version.version
      all[gv] = version.resources
      for _, old in ipairs(get(path_of(gv)).resources) do hashes[gv .. "/" .. old.name] = old.storageVersionHash end
    end
  end
  for _, path in ipairs { "/api", "/apis" } do
    for _, item in ipairs(get(path, AGGREGATED).items) do add(item) end
  end
  for gv, resources in pairs(all) do
    for _, resource in ipairs(resources) do resource.storageVersionHash = hashes[gv .. "/" .. resource.resource] end
  end
  return all
end

-- ---- OpenAPI ----

local PREFIX = "#/components/schemas/"

-- Changes the node. A string that is called description is prose; a table of that name is a field's.
local function strip(node)
  if type(node) ~= "table" then return node end
  local only = node.allOf and #node.allOf == 1 and node.allOf[1]["$ref"]
  if only then node.allOf, node["$ref"] = nil, only end
  if type(node["$ref"]) == "string" then
    assert(node["$ref"]:sub(1, #PREFIX) == PREFIX)
    node["$ref"] = node["$ref"]:sub(#PREFIX + 1)
  end
  for _, key in ipairs(sorted_keys(node)) do strip(node[key]) end
  return node
end

-- Takes the prose out of a definition. Only definitions and their fields have any.
local function take_descriptions(definition)
  local texts = codec.object { [""] = definition.description }
  definition.description = nil
  for field, node in pairs(definition.properties or {}) do texts[field], node.description = node.description, nil end
  return texts
end

-- Of all documents, those about paths that are no resources included.
local function read_definitions()
  local definitions, descriptions = {}, {}
  for _, path in ipairs(sorted_keys(get("/openapi/v3").paths)) do
    for name, definition in pairs(get("/openapi/v3/" .. path).components.schemas or {}) do
      if not definitions[name] then
        descriptions[name] = take_descriptions(definition)
        definitions[name] = strip(definition)
      end
    end
  end
  return definitions, descriptions
end

-- "apps/v1/Deployment" -> name of its definition; only for kinds that have one definition to themselves.
local function by_kind(definitions)
  local found = codec.object {}
  for name, definition in pairs(definitions) do
    local kinds = definition["x-kubernetes-group-version-kind"]
    if kinds and #kinds == 1 then
      local kind = kinds[1]
      found[(kind.group == "" and "" or kind.group .. "/") .. kind.version .. "/" .. kind.kind] = name
    end
  end
  return found
end

-- ---- tables ----

local function read_columns(resources)
  local columns, counts = codec.object {}, {}
  for gv, list in pairs(resources) do
    for _, resource in ipairs(list) do
      if table.concat(resource.verbs, " "):find("list", 1, true) then
        local definitions = get(path_of(gv) .. "/" .. resource.resource .. "?limit=1", TABLE).columnDefinitions
        columns[gv .. "/" .. resource.resource] = definitions
        for _, column in ipairs(definitions) do
          counts[column.description] = (counts[column.description] or 0) + 1
        end
      end
    end
  end
  local texts, index = codec.array {}, {}
  for _, text in ipairs(sorted_keys(counts)) do
    if counts[text] > 1 then
      texts[#texts + 1] = text
      index[text] = #texts
    end
  end
  for _, definitions in pairs(columns) do
    for _, column in ipairs(definitions) do column.description = index[column.description] or column.description end
  end
  columns.texts = texts
  return columns
end

-- ---- all of it ----

local function write_by_package(directory, entries)
  local packages = {}
  for name, entry in pairs(entries) do
    local package = package_of(name)
    packages[package] = packages[package] or {}
    packages[package][name:sub(#package + 2)] = entry
  end
  for package, content in pairs(packages) do write(directory .. "/" .. package .. ".json", content) end
end

local groups = read_groups()
local resources = read_resources()
local definitions, descriptions = read_definitions()
local kinds = by_kind(definitions)
write("version.json", get("/version"))
write("kinds.json", { groups = groups, resources = resources, definitions = kinds })
write("columns.json", read_columns(resources))
write_by_package("schema", definitions)
write("descriptions.json", descriptions)
assert(os.execute(("gzip -9 --no-name '%s/descriptions.json'"):format(out)) == 0)

local roots = { "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions" }
for _, kind in ipairs(sorted_keys(kinds)) do
  if not kind:find("List$") then roots[#roots + 1] = kinds[kind] end
end
write_by_package("proto", proto.read(modules, roots, codec))
