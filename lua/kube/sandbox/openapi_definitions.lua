-- The definitions of an OpenAPI v3 document (components.schemas): the schemas of built-in and custom
-- kinds as the server publishes them, descriptions included.
--
--   local source = definitions.open()
--   local needed = {}                        -- set of names that others refer to
--   source:custom(R, needed)                 -- name -> node of a custom resource and of its list
--   source:each(needed, function(name, node) -- these, and all that they lead to
--
-- A source has megabytes of tables; nobody keeps one for longer than a document takes.
local host = require "kube._server"
local json = require "kube.sandbox.json"
local schema = require "kube.sandbox.schema"

local definitions = {}

local Source = {}
Source.__index = Source

local array, object = json.array, json.object

local META = "io.k8s.apimachinery.pkg.apis.meta.v1."
local DESCRIPTIONS_MAX = 16 * 1024 * 1024

--- What stands before the name of a definition in a "$ref".
definitions.PREFIX = "#/components/schemas/"

local function read_descriptions()
  local text = assert(host.data("descriptions.json.gz"), "descriptions.json.gz is not embedded")
  return assert(json.decode(assert(host.gunzip(text, DESCRIPTIONS_MAX), "descriptions.json.gz is damaged")))
end

--- A source of definitions.
function definitions.open()
  return setmetatable({ packages = {}, texts = read_descriptions() }, Source)
end

-- Built-in kinds ---------------------------------------------------------------------------------

-- A node of the built-in data as OpenAPI has it, with the definitions that it needs in `needed`.
local function export(node, needed)
  if type(node) ~= "table" then return node end
  local copy = json.is_array(node) and array {} or object {}
  for key, value in pairs(node) do copy[key] = export(value, needed) end
  local ref = node["$ref"]
  if type(ref) == "string" then
    needed[ref] = true
    copy["$ref"] = nil
    local link = object { ["$ref"] = definitions.PREFIX .. ref }
    if next(copy) == nil then return link end
    copy.allOf = array { link }
  end
  return copy
end

-- A field with its text; a reference that stands alone has no room for one.
local function described(node, text)
  if not text then return node end
  if node["$ref"] then node = object { allOf = array { node } } end
  node.description = text
  return node
end

--- The definition of a built-in name.
function Source:builtin(name, needed)
  local package, short = name:match("^(.*)%.([^.]*)$")
  self.packages[package] = self.packages[package] or assert(schema.peek(package), name)
  local texts = self.texts[name] or {}
  local node = described(export(assert(self.packages[package][short], name), needed), texts[""])
  for field, property in pairs(node.properties or {}) do
    node.properties[field] = described(property, texts[field])
  end
  return node
end

--- Calls each(name, node) for the definitions in `needed`, which is empty in the end, and for all
--- that those lead to, once.
function Source:each(needed, each)
  local done = {}
  local name = next(needed)
  while name do
    needed[name], done[name] = nil, true
    local found = {}
    each(name, self:builtin(name, found))
    for other in pairs(found) do
      if not done[other] then needed[other] = true end
    end
    name = next(needed)
  end
end

-- Custom resources -------------------------------------------------------------------------------

--- "ex.io", "v1", "Widget" -> "io.ex.v1.Widget".
function definitions.custom_name(R, kind)
  local parts = {}
  for part in R.group:gmatch("[^.]+") do table.insert(parts, 1, part) end
  return table.concat(parts, ".") .. "." .. R.version .. "." .. kind
end

local function kind_entry(R, kind)
  return array { object { group = R.group, version = R.version, kind = kind } }
end

local EMBEDDED = {
  apiVersion = "apiVersion defines the versioned schema of this representation of an object. More info: "
    .. "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources",
  kind = "kind is a string value representing the type of this object. In CamelCase. More info: "
    .. "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds",
}

local function string_node(text) return object { type = "string", description = text } end

local function link(name, text)
  return described(object { ["$ref"] = definitions.PREFIX .. META .. name }, text)
end

-- The fields that every object has, where a schema says of a node that it is one.
local function add_object_fields(self, node, texts, needed)
  local properties = json.shallow(node.properties or object {})
  properties.apiVersion, properties.kind = string_node(texts.apiVersion), string_node(texts.kind)
  properties.metadata = link("ObjectMeta", self.texts["io.k8s.api.core.v1.ConfigMap"].metadata)
  needed[META .. "ObjectMeta"] = true
  node.properties = properties
end

local ANY_OF = array { object { type = "integer" }, object { type = "string" } }

local function with_names(list, names)
  local all, known = array {}, {}
  for _, source in ipairs { list or {}, names } do
    for _, name in ipairs(source) do
      if not known[name] then all[#all + 1] = name end
      known[name] = true
    end
  end
  return all
end

-- What the server publishes of a node of a custom resource's schema, which it does not change.
local function published(self, node, needed)
  if type(node) ~= "table" then return node end
  node = json.shallow(node)
  if node["x-kubernetes-int-or-string"] == true then node.anyOf = ANY_OF end
  node.items = published(self, node.items, needed)
  node.additionalProperties = published(self, node.additionalProperties, needed)
  if node.properties then
    local properties = json.shallow(node.properties)
    for name, property in pairs(properties) do properties[name] = published(self, property, needed) end
    node.properties = properties
  end
  if node["x-kubernetes-embedded-resource"] == true then
    add_object_fields(self, node, EMBEDDED, needed)
    node.required = with_names(node.required, { "kind", "apiVersion" })
  end
  return node
end

local function list_definition(self, R, needed)
  local texts = self.texts["io.k8s.api.core.v1.ConfigMapList"]
  local items = object { ["$ref"] = definitions.PREFIX .. definitions.custom_name(R, R.kind) }
  needed[META .. "ListMeta"] = true
  return object {
    type = "object",
    description = ("%s is a list of %s"):format(R.list_kind, R.kind),
    required = array { "items" },
    properties = object {
      apiVersion = string_node(texts.apiVersion),
      kind = string_node(texts.kind),
      metadata = link("ListMeta", self.texts["io.k8s.api.core.v1.NamespaceList"].metadata),
      items = object {
        type = "array",
        description = ("List of %s. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/"
          .. "api-conventions.md"):format(R.plural),
        items = items,
      },
    },
    ["x-kubernetes-group-version-kind"] = kind_entry(R, R.list_kind),
  }
end

--- The definitions of a custom resource and of its list by their names.
function Source:custom(R, needed)
  local node = published(self, R.schema or object { type = "object", ["x-kubernetes-preserve-unknown-fields"] = true },
    needed)
  add_object_fields(self, node, self.texts["io.k8s.api.core.v1.ConfigMap"], needed)
  node["x-kubernetes-group-version-kind"] = kind_entry(R, R.kind)
  return {
    [definitions.custom_name(R, R.kind)] = node,
    [definitions.custom_name(R, R.list_kind)] = list_definition(self, R, needed),
  }
end

return definitions
