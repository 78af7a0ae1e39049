-- Reads an OpenAPI v2 document in protobuf (gnostic's openapi.v2): what a client sees of it.
--
--   local document = require("spec.support.openapi_wire").read(bytes, host.yaml_decode)
--   document.definitions["io.k8s.api.core.v1.Pod"].properties.spec["$ref"]
--   document.paths["/api/v1/pods"].get["x-kubernetes-action"]
local ffi = require "ffi"

local openapi_wire = {}

local function varint(text, at)
  local value, scale = 0, 1
  while true do
    local byte = text:byte(at)
    at = at + 1
    value, scale = value + byte % 128 * scale, scale * 128
    if byte < 128 then return value, at end
  end
end

-- Calls each(number, value) for the fields of a message.
local function fields(text, each)
  local at = 1
  while at <= #text do
    local tag, value, size
    tag, at = varint(text, at)
    local kind = tag % 8
    if kind == 0 then
      value, at = varint(text, at)
    elseif kind == 1 then
      local number = ffi.new("double[1]")
      ffi.copy(number, text:sub(at, at + 7), 8)
      value, at = number[0], at + 8
    else
      assert(kind == 2, "wire type")
      size, at = varint(text, at)
      value, at = text:sub(at, at + size - 1), at + size
      assert(#value == size, "cut")
    end
    each((tag - kind) / 8, value)
  end
end

-- The one field of a message, whichever number it has.
local function only(text)
  local found, number
  fields(text, function(n, value) found, number = value, n end)
  return found, number
end

local function named(text, decode)
  local name, value = nil, ""
  fields(text, function(number, bytes)
    if number == 1 then name = bytes else value = bytes end
  end)
  return name, decode(value)
end

local function map(decode, number)
  return function(text)
    local all = {}
    fields(text, function(n, bytes)
      if n ~= (number or 1) then return end
      local name, value = named(bytes, decode)
      assert(all[name] == nil, name)
      all[name] = value
    end)
    return all
  end
end

local function same(value) return value end
local function flag(value) return value == 1 end

--- The document in `bytes`; yaml_decode(text) gives an array of documents.
function openapi_wire.read(bytes, yaml_decode)
  local function any(text) return assert(yaml_decode((only(text))))[1] end

  -- table: number -> { key, decode, whether it is repeated }.
  local function message(numbers, extensions)
    return function(text)
      local node = {}
      fields(text, function(number, value)
        if number == extensions then
          local name, decoded = named(value, any)
          node[name] = decoded
          return
        end
        local field = assert(numbers[number], number)
        local decoded = field[2](value)
        if not field[3] then
          assert(node[field[1]] == nil, field[1])
          node[field[1]] = decoded
        else
          node[field[1]] = node[field[1]] or {}
          table.insert(node[field[1]], decoded)
        end
      end)
      return node
    end
  end

  local read_schema
  local function schema(text) return read_schema(text) end
  read_schema = message({
    [1] = { "$ref", same }, [2] = { "format", same }, [3] = { "title", same }, [4] = { "description", same },
    [6] = { "multipleOf", same }, [7] = { "maximum", same }, [8] = { "exclusiveMaximum", flag },
    [9] = { "minimum", same }, [10] = { "exclusiveMinimum", flag }, [11] = { "maxLength", same },
    [12] = { "minLength", same }, [13] = { "pattern", same }, [14] = { "maxItems", same }, [15] = { "minItems", same },
    [16] = { "uniqueItems", flag }, [17] = { "maxProperties", same }, [18] = { "minProperties", same },
    [19] = { "required", same, true }, [20] = { "enum", any, true },
    [21] = { "additionalProperties", function(text)
      local value, number = only(text)
      if number == 1 then return schema(value) end
      return value == 1
    end },
    [22] = { "type", only },
    [23] = { "items", function(text) return schema((only(text))) end },
    [25] = { "properties", map(schema) },
    [29] = { "externalDocs", message { [1] = { "description", same }, [2] = { "url", same } } },
    [30] = { "example", any },
  }, 31)

  local body = message { [2] = { "name", same }, [3] = { "in", same }, [4] = { "required", flag },
    [5] = { "schema", schema } }
  local in_path = { [1] = { "required", flag }, [2] = { "in", same }, [3] = { "description", same },
    [4] = { "name", same }, [5] = { "type", same }, [19] = { "uniqueItems", flag } }
  local in_query = { [1] = { "required", flag }, [2] = { "in", same }, [3] = { "description", same },
    [4] = { "name", same }, [6] = { "type", same }, [20] = { "uniqueItems", flag } }

  local function parameter(text)
    local inner, reference = only(text)
    if reference == 2 then return { ["$ref"] = only(inner) } end
    local value, number = only(inner)
    if number == 1 then return body(value) end
    value, number = only(value)
    return message(number == 4 and in_path or in_query)(value)
  end

  local function response(text)
    return message { [1] = { "description", same }, [2] = { "schema", function(value)
      return schema((only(value)))
    end } }((only(text)))
  end

  local operation = message({
    [1] = { "tags", same, true }, [3] = { "description", same }, [5] = { "operationId", same },
    [6] = { "produces", same, true }, [7] = { "consumes", same, true }, [8] = { "parameters", parameter, true },
    [9] = { "responses", map(response) }, [10] = { "schemes", same, true },
  }, 13)
  local path = message { [2] = { "get", operation }, [3] = { "put", operation }, [4] = { "post", operation },
    [5] = { "delete", operation }, [6] = { "options", operation }, [7] = { "head", operation },
    [8] = { "patch", operation }, [9] = { "parameters", parameter, true } }

  return message {
    [1] = { "swagger", same },
    [2] = { "info", message { [1] = { "title", same }, [2] = { "version", same } } },
    [8] = { "paths", map(path, 2) },
    [9] = { "definitions", map(schema) },
    [10] = { "parameters", same },
    [12] = { "security", same, true },
    [13] = { "securityDefinitions", same },
  }(bytes)
end

return openapi_wire
