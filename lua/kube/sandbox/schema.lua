-- Schemas of kinds, built in and custom alike: OpenAPI v3 nodes (type, properties, items,
-- additionalProperties, required, enum, format, default, x-kubernetes-*).
--
-- In the data of the built-in kinds a "$ref" is the name of a definition and may have siblings; a
-- schema that came out of this module by of, named, resolve, field, items or values has none left
-- at its top. Nodes are shared: never change one.
local host = require "kube._server"
local json = require "kube.sandbox.json"
local kinds = require "kube.sandbox.kinds"

local schema = {}

local OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

local packages = {} -- package -> name -> definition, decoded by the first use of one of them
local resolved = setmetatable({}, { __mode = "k" }) -- node with $ref -> node without

--- The definitions of a package ("io.k8s.api.core.v1") by their short names, or nil; decoded for the
--- caller alone unless somebody has use for them all the time.
function schema.peek(name)
  if packages[name] ~= nil then return packages[name] or nil end
  local text = host.data("schema/" .. name .. ".json")
  return text and assert(json.decode(text))
end

--- The definitions of a package by their short names, or nil.
function schema.package(name)
  if packages[name] == nil then packages[name] = schema.peek(name) or false end
  return packages[name] or nil
end

--- The raw definition of a full name, $refs in it, or nil.
function schema.definition(name)
  local package, short = name:match("^(.*)%.([^.]*)$")
  local definitions = package and schema.package(package)
  return definitions and definitions[short]
end

--- The definition of a full name, or nil.
function schema.named(name)
  return schema.resolve(schema.definition(name))
end

--- The node, its $ref followed: what the definition says, with the node's own keys on top.
function schema.resolve(node)
  if type(node) ~= "table" or type(node["$ref"]) ~= "string" then return node end
  local found = resolved[node]
  if found then return found end
  local definition = assert(schema.named(node["$ref"]), node["$ref"])
  found = json.shallow(definition)
  for key, value in pairs(node) do
    if key ~= "$ref" then found[key] = value end
  end
  resolved[node] = found
  return found
end

local STRING = json.object { type = "string" }

-- What every custom resource has without its schema saying so.
local function custom(R)
  local node = json.shallow(R.schema or json.object {
    type = "object",
    ["x-kubernetes-preserve-unknown-fields"] = true,
  })
  node.type = "object"
  local properties = node.properties and json.shallow(node.properties) or json.object {}
  properties.apiVersion, properties.kind = STRING, STRING
  properties.metadata = json.object { ["$ref"] = OBJECT_META }
  node.properties = properties
  return node
end

local customs = setmetatable({}, { __mode = "k" })

--- The schema of a resource: of a custom one R.schema (the version's openAPIV3Schema, nil when it
--- keeps everything) with apiVersion, kind and metadata added.
function schema.of(R)
  if R.builtin then return schema.named(R.definition) end
  local node = customs[R]
  if not node then
    node = custom(R)
    customs[R] = node
  end
  return node
end

--- The schema of a built-in kind that need not be a resource ("autoscaling/v1", "Scale"), or nil.
function schema.of_kind(api_version, kind)
  local name = kinds.definition(api_version, kind)
  return name and schema.named(name)
end

--- The schema of an object's field: a property, else what any field may hold; nil when unknown.
function schema.field(node, name)
  node = schema.resolve(node)
  if not node then return nil end
  local property = node.properties and node.properties[name]
  if property then return schema.resolve(property) end
  return schema.values(node)
end

--- The schema of a map's values, or nil.
function schema.values(node)
  local values = schema.resolve(node).additionalProperties
  if type(values) ~= "table" then return nil end
  return schema.resolve(values)
end

--- The schema of a list's items, or nil.
function schema.items(node)
  return schema.resolve(schema.resolve(node).items)
end

return schema
