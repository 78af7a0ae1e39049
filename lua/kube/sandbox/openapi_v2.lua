-- The OpenAPI v2 document, one for all kinds: what version 3 says in the older form, in JSON and in
-- protobuf. kubectl before 1.27 explains kinds with it, checks manifests against it before it sends
-- them, and looks there for the keys that lists are merged by.
--
-- Every definition and every path is written as soon as it is made: the whole of it is only ever
-- there as text.
local definitions = require "kube.sandbox.openapi_definitions"
local document = require "kube.sandbox.openapi_document"
local json = require "kube.sandbox.json"
local wire = require "kube.sandbox.openapi_wire"

local openapi_v2 = {}

local array, object = json.array, json.object

-- Schemas ----------------------------------------------------------------------------------------

local convert

-- Required fields without those that may be null, which version 2 cannot say.
local function required(node)
  local names = array {}
  for _, name in ipairs(node.required) do
    local property = node.properties and node.properties[name]
    if not (property and property.nullable == true) then names[#names + 1] = name end
  end
  return #names > 0 and names or nil
end

local function each_converted(map)
  local copy = object {}
  for name, node in pairs(map) do copy[name] = convert(node) end
  return copy
end

-- What may be anything has no type, lest clients refuse it.
local function is_open(node)
  return node.nullable == true or node["x-kubernetes-preserve-unknown-fields"] == true
end

local function type_of(node)
  if node.type or not node.oneOf then return node.type end
  return "string" -- Quantity and IntOrString: numbers, too, which version 2 cannot say
end

--- A schema of version 3 in version 2: without defaults, alternatives and nulls.
function convert(node)
  if type(node) ~= "table" then return node end
  local link = node["$ref"] or json.get(node, "allOf", 1, "$ref")
  local copy = object { ["$ref"] = link and "#/definitions/" .. link:sub(#definitions.PREFIX + 1) }
  for key, value in pairs(node) do
    if key ~= "$ref" and (wire.SCHEMA_KEYS[key] or key:sub(1, 2) == "x-") then copy[key] = value end
  end
  if link then return copy end
  copy.additionalProperties = convert(node.additionalProperties)
  copy.required = node.required and required(node)
  copy.type, copy.items, copy.properties = nil, nil, nil
  if is_open(node) then
    if node["x-kubernetes-embedded-resource"] then copy.required = nil end
    return copy
  end
  copy.type, copy.items = type_of(node), convert(node.items)
  copy.properties = node.properties and each_converted(node.properties)
  return copy
end

local function convert_custom(node)
  if node["x-kubernetes-preserve-unknown-fields"] ~= true then return convert(node) end
  return object {
    type = "object",
    ["x-kubernetes-group-version-kind"] = node["x-kubernetes-group-version-kind"],
  }
end

-- Paths ------------------------------------------------------------------------------------------

local function sorted_keys(map)
  local keys = array {}
  for key in pairs(map) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end

-- The schema that all media types share.
local function schema_of(content)
  local _, one = next(content)
  return convert(one.schema)
end

-- Most operations share their parameters.
local known = setmetatable({}, { __mode = "k" })

local function convert_parameter(parameter)
  local found = known[parameter]
  if not found then
    found = object {
      name = parameter.name,
      ["in"] = parameter["in"],
      required = parameter.required,
      type = parameter.schema.type,
      uniqueItems = parameter.schema.uniqueItems,
    }
    known[parameter] = found
  end
  return found
end

local function convert_parameters(list, body)
  local all = array {}
  if body then
    all[1] = object { name = "body", ["in"] = "body", required = body.required, schema = schema_of(body.content) }
  end
  for _, parameter in ipairs(list or {}) do all[#all + 1] = convert_parameter(parameter) end
  return #all > 0 and all or nil
end

local SCHEMES = array { "https" }

local function convert_operation(operation)
  local copy, body = object { schemes = SCHEMES }, operation.requestBody
  for key, value in pairs(operation) do
    if key:sub(1, 2) == "x-" then copy[key] = value end
  end
  copy.tags, copy.description, copy.operationId = operation.tags, operation.description, operation.operationId
  copy.parameters = convert_parameters(operation.parameters, body)
  copy.consumes = body and sorted_keys(body.content)
  copy.responses = object {}
  for code, response in pairs(operation.responses) do
    copy.responses[code] = object {
      description = response.description,
      schema = response.content and schema_of(response.content),
    }
    if response.content then copy.produces = sorted_keys(response.content) end
  end
  return copy
end

local OPERATIONS = { "get", "put", "post", "delete", "patch" }

local function convert_path(path)
  local copy = object { parameters = convert_parameters(path.parameters) }
  for _, name in ipairs(OPERATIONS) do copy[name] = path[name] and convert_operation(path[name]) end
  return copy
end

-- Writing ----------------------------------------------------------------------------------------

local function outer(info)
  return object {
    swagger = "2.0",
    info = info,
    securityDefinitions = document.SECURITY,
    security = array { object { BearerToken = array {} } },
  }
end

local function json_entry(name, node) return json.encode(name) .. ":" .. json.encode(node) end

local FORMATS = {
  json = {
    path = json_entry,
    definition = json_entry,
    document = function(fields, paths, entries)
      local head = json.encode(fields):sub(1, -2)
      return table.concat { head, ',"paths":{', table.concat(paths, ","), '},"definitions":{',
        table.concat(entries, ","), "}}" }
    end,
  },
  protobuf = {
    path = function(name, node) return wire.path_entry(name, wire.path(node)) end,
    definition = function(name, node) return wire.definition_entry(name, wire.schema(node)) end,
    document = wire.document,
  },
}

--- The document of a registry in a format, "json" or "protobuf".
function openapi_v2.encode(registry, format)
  local writer = FORMATS[format]
  local source, needed, paths, entries = definitions.open(), {}, {}, {}
  local function add_paths(some)
    for path, item in pairs(some) do paths[#paths + 1] = writer.path(path, convert_path(item)) end
  end
  for _, group in ipairs(registry:groups()) do
    for _, version in ipairs(registry:versions(group)) do
      local some, own = document.parts(registry, group, version, source, needed)
      add_paths(some)
      for name, node in pairs(own) do entries[#entries + 1] = writer.definition(name, convert_custom(node)) end
    end
  end
  for path, page in pairs(document.pages(registry)) do
    add_paths(document.page_paths(path, page))
    if page.definition then needed[page.definition] = true end
  end
  source:each(needed, function(name, node) entries[#entries + 1] = writer.definition(name, convert(node)) end)
  -- The names come in any order; the same document is to be the same text.
  table.sort(paths)
  table.sort(entries)
  return writer.document(outer(document.info()), paths, entries)
end

return openapi_v2
