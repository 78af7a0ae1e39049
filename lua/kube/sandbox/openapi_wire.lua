-- Parts of an OpenAPI v2 document in protobuf: the messages of gnostic's openapi.v2, which is the only
-- form in which kubectl asks for it. A message is a table of its fields: number, key in JSON, writer.
--
-- What is zero, false or empty is not sent, as proto3 has it.
local ffi = require "ffi"
local json = require "kube.sandbox.json"

local wire = {}

local char, concat, floor = string.char, table.concat, math.floor

local VARINT, DOUBLE, BYTES = 0, 1, 2

local function varint(n)
  if n < 128 then return char(n) end
  local bytes = {}
  while n >= 128 do
    bytes[#bytes + 1] = char(n % 128 + 128)
    n = floor(n / 128)
  end
  bytes[#bytes + 1] = char(n)
  return concat(bytes)
end

local function tag(number, kind) return varint(number * 8 + kind) end

local function tagged(number, payload) return tag(number, BYTES) .. varint(#payload) .. payload end

-- Writers ----------------------------------------------------------------------------------------

-- A writer is { kind of the wire, function that gives the payload or nil }. Large integers and exact
-- numbers are no Lua numbers.
local function to_number(value) return tonumber(value) or tonumber(tostring(value)) or 0 end

local TEXT = { BYTES, function(value) return value ~= "" and value or nil end }
local FLAG = { VARINT, function(value) return value == true and "\1" or nil end }

local COUNT = { VARINT, function(value)
  value = to_number(value)
  return value > 0 and varint(value) or nil
end }

local NUMBER = { DOUBLE, function(value)
  value = to_number(value)
  return value ~= 0 and ffi.string(ffi.new("double[1]", value), 8) or nil
end }

-- Any value, as YAML, which JSON is.
local function any(value) return tagged(2, json.encode(value) .. "\n") end

local function bytes(encode) return { BYTES, encode } end

-- One field for each item of an array.
local function each(encode) return { BYTES, encode, repeated = true } end

local function sorted_keys(map)
  local keys = {}
  for key in pairs(map) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end

local function named(name, payload) return tagged(1, name) .. tagged(2, payload) end

-- A message with one entry { name, value } for each key of an object.
local function entries(encode)
  return function(object)
    local out = {}
    for i, key in ipairs(sorted_keys(object)) do out[i] = tagged(1, named(key, encode(object[key]))) end
    return concat(out)
  end
end

local function map(encode) return bytes(entries(encode)) end

local function add_extensions(out, number, node)
  local names = {}
  for key in pairs(node) do
    if key:sub(1, 2) == "x-" then names[#names + 1] = key end
  end
  table.sort(names)
  for _, name in ipairs(names) do out[#out + 1] = tagged(number, named(name, any(node[name]))) end
end

-- The encoder of a message: fields in the order of their numbers, keys that begin with x- in the
-- field `extensions`.
local function message(fields, extensions)
  local tags = {}
  for i, field in ipairs(fields) do tags[i] = tag(field[1], field[3][1]) end
  local function add(out, i, writer, value)
    local payload = writer[2](value)
    if not payload then return end
    out[#out + 1] = tags[i]
    if writer[1] == BYTES then out[#out + 1] = varint(#payload) end
    out[#out + 1] = payload
  end
  return function(node)
    local out = {}
    for i, field in ipairs(fields) do
      local value, writer = node[field[2]], field[3]
      if value ~= nil and writer.repeated then
        for _, item in ipairs(value) do add(out, i, writer, item) end
      elseif value ~= nil then
        add(out, i, writer, value)
      end
    end
    if extensions then add_extensions(out, extensions, node) end
    return concat(out)
  end
end

-- Messages ---------------------------------------------------------------------------------------

local function same(text) return text end

local schema -- the encoder, which needs itself

--- A schema.
function wire.schema(node) return schema(node) end

local function item(node) return tagged(1, schema(node)) end

local function additional(value)
  if type(value) == "table" then return item(value) end
  return value and tag(2, VARINT) .. "\1" or ""
end

local SCHEMA = {
  { 1, "$ref", TEXT },
  { 2, "format", TEXT },
  { 3, "title", TEXT },
  { 4, "description", TEXT },
  { 6, "multipleOf", NUMBER },
  { 7, "maximum", NUMBER },
  { 8, "exclusiveMaximum", FLAG },
  { 9, "minimum", NUMBER },
  { 10, "exclusiveMinimum", FLAG },
  { 11, "maxLength", COUNT },
  { 12, "minLength", COUNT },
  { 13, "pattern", TEXT },
  { 14, "maxItems", COUNT },
  { 15, "minItems", COUNT },
  { 16, "uniqueItems", FLAG },
  { 17, "maxProperties", COUNT },
  { 18, "minProperties", COUNT },
  { 19, "required", each(same) },
  { 20, "enum", each(any) },
  { 21, "additionalProperties", bytes(additional) },
  { 22, "type", bytes(function(value) return tagged(1, value) end) },
  { 23, "items", bytes(item) },
  { 25, "properties", map(wire.schema) },
  { 29, "externalDocs", bytes(message { { 1, "description", TEXT }, { 2, "url", TEXT } }) },
  { 30, "example", bytes(any) },
}
schema = message(SCHEMA, 31)

--- Keys that a schema has in version 2, apart from extensions.
wire.SCHEMA_KEYS = {}
for _, field in ipairs(SCHEMA) do wire.SCHEMA_KEYS[field[2]] = true end

local body_parameter = message {
  { 2, "name", TEXT },
  { 3, "in", TEXT },
  { 4, "required", FLAG },
  { 5, "schema", bytes(wire.schema) },
}

local path_parameter = message {
  { 1, "required", FLAG },
  { 2, "in", TEXT },
  { 4, "name", TEXT },
  { 5, "type", TEXT },
  { 19, "uniqueItems", FLAG },
}

local query_parameter = message {
  { 1, "required", FLAG },
  { 2, "in", TEXT },
  { 4, "name", TEXT },
  { 6, "type", TEXT },
  { 20, "uniqueItems", FLAG },
}

-- Most operations share their parameters.
local known = setmetatable({}, { __mode = "k" })

-- ParametersItem { 1: Parameter { 1: body, 2: NonBodyParameter { 3: query, 4: path } } }.
local function parameter(node)
  local place = node["in"]
  if place == "body" then return tagged(1, tagged(1, body_parameter(node))) end
  if not known[node] then
    local inner = place == "path" and tagged(4, path_parameter(node)) or tagged(3, query_parameter(node))
    known[node] = tagged(1, tagged(2, inner))
  end
  return known[node]
end

local response = message {
  { 1, "description", TEXT },
  { 2, "schema", bytes(item) },
}

local operation = message({
  { 1, "tags", each(same) },
  { 3, "description", TEXT },
  { 5, "operationId", TEXT },
  { 6, "produces", each(same) },
  { 7, "consumes", each(same) },
  { 8, "parameters", each(parameter) },
  { 9, "responses", map(function(value) return tagged(1, response(value)) end) },
  { 10, "schemes", each(same) },
}, 13)

--- A path with its operations.
wire.path = message {
  { 2, "get", bytes(operation) },
  { 3, "put", bytes(operation) },
  { 4, "post", bytes(operation) },
  { 5, "delete", bytes(operation) },
  { 8, "patch", bytes(operation) },
  { 9, "parameters", each(parameter) },
}

--- An encoded part with its name, as an entry of the definitions or of the paths.
function wire.definition_entry(name, payload) return tagged(1, named(name, payload)) end
function wire.path_entry(name, payload) return tagged(2, named(name, payload)) end

local api_key = message { { 1, "type", TEXT }, { 2, "name", TEXT }, { 3, "in", TEXT }, { 4, "description", TEXT } }

local function strings(list)
  local out = {}
  for i, text in ipairs(list) do out[i] = tagged(1, text) end
  return concat(out)
end

local outer = message {
  { 1, "swagger", TEXT },
  { 2, "info", bytes(message { { 1, "title", TEXT }, { 2, "version", TEXT } }) },
  { 12, "security", each(entries(strings)) },
  { 13, "securityDefinitions", map(function(value) return tagged(2, api_key(value)) end) },
}

-- A message of entries that are encoded already; they are many, so they are copied once.
local function add_entries(out, number, list)
  local size = 0
  for _, entry in ipairs(list) do size = size + #entry end
  out[#out + 1] = tag(number, BYTES) .. varint(size)
  for _, entry in ipairs(list) do out[#out + 1] = entry end
end

--- A document: swagger, info, security and securityDefinitions; the entries of the paths and those of
--- the definitions.
function wire.document(fields, paths, definitions)
  local out = { outer(fields) }
  add_entries(out, 8, paths)
  add_entries(out, 9, definitions)
  return concat(out)
end

return wire
