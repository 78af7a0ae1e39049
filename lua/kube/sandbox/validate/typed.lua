-- A document as Go's JSON decoder would read it into the structs of a built-in kind: fields that no
-- struct has are found, values of the wrong type are refused in the decoder's words, null is nothing.
local json = require "kube.sandbox.json"
local go_parse = require "kube.sandbox.validate.go_parse"
local go_types = require "kube.sandbox.validate.go_types"
local schema = require "kube.sandbox.schema"
local values = require "kube.sandbox.validate.value"

local typed = {}

local META = "io.k8s.apimachinery.pkg.apis.meta.v1."

-- ---- Go's names ----

-- "io.k8s.api.core.v1.PodSpec" -> "v1.PodSpec"
local function short_name(definition) return definition:match("[^.]+%.[^.]+$") end

local function go_type(node)
  local ref = node["$ref"]
  if ref then return short_name(ref) end
  if node.type == "array" then return "[]" .. go_type(node.items) end
  if node.type == "object" then
    local values_of = node.additionalProperties
    return "map[string]" .. (type(values_of) == "table" and go_type(values_of) or "interface {}")
  end
  if node.type == "string" then return node.format == "byte" and "[]uint8" or "string" end
  if node.type == "boolean" then return "bool" end
  if node.type == "integer" then return node.format or "int64" end
  return "float64"
end

local json_kinds = { boolean = "bool", integer = "number", number = "number" }

-- A place in the document: path with indices, names without, and the struct that is being filled.
local function refuse(state, at, kind, type_name, fatal)
  local target = at.names == "" and "Go value" or ("Go struct field %s.%s"):format(at.struct, at.names)
  state:refuse(at.path, ("json: cannot unmarshal %s into %s of type %s"):format(kind, target, type_name), fatal)
end

local function refuse_type(state, at, value, type_name, fatal)
  local kind = values.kind(value)
  refuse(state, at, json_kinds[kind] or kind, type_name, fatal)
  return value
end

-- ---- values ----

local read

local INT_LIMITS = { int32 = 2 ^ 31 }

local function read_integer(state, node, value, at, name, fatal)
  local kind, format = values.kind(value), node.format or "int64"
  if kind ~= "integer" and kind ~= "number" then return refuse_type(state, at, value, name, fatal) end
  local limit = INT_LIMITS[format]
  local double = values.double(value)
  if kind == "number" or limit and (double >= limit or double < -limit) then
    refuse(state, at, "number " .. json.encode(value), name, fatal)
  end
  return value
end

local function read_string(state, node, value, at, name)
  if type(value) ~= "string" then return refuse_type(state, at, value, name) end
  if node.format == "byte" then
    local problem = go_parse.base64(value)
    if problem then state:refuse(at.path, problem) end
  end
  return value
end

local function parsed(parse)
  return function(state, value, at)
    if type(value) ~= "string" then return refuse_type(state, at, value, "string", true) end
    local problem = parse(value)
    if problem then state:refuse(at.path, problem, true) end
    return value
  end
end

local function free(_, value) return value end

-- Types that read themselves.
local own_readers = {
  [META .. "Time"] = parsed(go_parse.time),
  [META .. "MicroTime"] = parsed(go_parse.micro_time),
  ["io.k8s.apimachinery.pkg.api.resource.Quantity"] = function(state, value, at)
    local kind = values.kind(value)
    local problem = go_parse.QUANTITY
    if kind == "string" or kind == "integer" or kind == "number" then
      problem = go_parse.quantity(kind == "string" and value or json.encode(value))
    end
    if problem then state:refuse(at.path, problem, true) end
    return value
  end,
  ["io.k8s.apimachinery.pkg.util.intstr.IntOrString"] = function(state, value, at)
    if type(value) == "string" then return value end
    return read_integer(state, { format = "int32" }, value, at, "int32", true)
  end,
}

-- Schemas in schemas: their types read themselves and know nothing of the fields around them, nor
-- mind those that they do not know.
local SCHEMAS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
local SCHEMA = json.object { ["$ref"] = SCHEMAS }

local function read_schema(state, value, at)
  local quiet = setmetatable({ unknown = function() end }, { __index = state })
  return read(quiet, SCHEMA, value, { path = at.path, names = "", struct = "" })
end

own_readers[SCHEMAS .. "OrArray"] = function(state, value, at)
  if json.is_object(value) then return read_schema(state, value, at) end
  return json.is_array(value) and value or nil
end

own_readers[SCHEMAS .. "OrBool"] = function(state, value, at)
  if type(value) == "boolean" then return value end
  if json.is_object(value) then return read_schema(state, value, at) end
  state:refuse(at.path, "boolean or JSON schema expected", true)
  return value
end

local function is_free(node) return node.properties == nil and node.additionalProperties == nil end

-- Copies on the first change.
local function editor(value)
  local out
  return function(key, new)
    if rawequal(new, value[key]) then return end
    out = out or json.shallow(value)
    out[key] = new
  end, function() return out or value end
end

-- Most values are what they should be, and need no place where one could complain.
local function is_plain(node, value)
  local kind = type(value)
  if kind ~= "string" and kind ~= "boolean" then return false end
  return node.type == kind and node.format ~= "byte" and node["$ref"] == nil
end

local function child(path, name) return path == "" and name or path .. "." .. name end

local function read_struct(state, definition, node, value, at, name)
  if not json.is_object(value) then return refuse_type(state, at, value, name) end
  local struct = definition:match("[^.]+$")
  local set, result = editor(value)
  for key, item in pairs(value) do
    local property = node.properties[key]
    if not property then
      state:unknown(child(at.path, key))
      set(key, nil)
    elseif item == json.null then
      set(key, nil)
    elseif not is_plain(property, item) then
      local place = { path = child(at.path, key), names = child(at.names, key), struct = struct }
      set(key, read(state, property, item, place, go_types.of(definition, key)))
    end
  end
  return result()
end

-- What null becomes where it cannot be left out.
local function zero(node)
  node = schema.resolve(node)
  if node.type == "string" and node.format ~= "byte" then return "" end
  if node.type == "integer" then return 0 end
  if node.type == "boolean" then return false end
  if node.properties then return json.object {} end
  return json.null
end

local function element_name(name) return name and (name:match("^%[%](.*)$") or name:match("^map%[string%](.*)$")) end

local function read_elements(state, node, value, at, name, path_of)
  local set, result = editor(value)
  for key, item in pairs(value) do
    if item == json.null then
      set(key, zero(node))
    elseif not is_plain(node, item) then
      local place = { path = path_of(key), names = at.names, struct = at.struct }
      set(key, read(state, node, item, place, element_name(name)))
    end
  end
  return result()
end

local function read_array(state, node, value, at, name)
  if not json.is_array(value) then return refuse_type(state, at, value, name or go_type(node)) end
  return read_elements(state, node.items, value, at, name, function(i) return ("%s[%d]"):format(at.path, i - 1) end)
end

local function read_map(state, node, value, at, name)
  if not json.is_object(value) then return refuse_type(state, at, value, name or go_type(node)) end
  return read_elements(state, node.additionalProperties, value, at, name, function(k) return child(at.path, k) end)
end

-- `name` is the Go type where the schema cannot tell it.
function read(state, node, value, at, name)
  local ref = node["$ref"]
  if ref then
    local own = own_readers[ref]
    if own then return own(state, value, at) end
    local target = schema.resolve(node)
    if target.properties then return read_struct(state, ref, target, value, at, short_name(ref)) end
    if is_free(target) then return free(state, value) end
    node = target
  end
  if node.type == "array" then return read_array(state, node, value, at, name) end
  if node.type == "object" then
    if type(node.additionalProperties) ~= "table" then return value end
    return read_map(state, node, value, at, name)
  end
  if node.type == "string" then return read_string(state, node, value, at, name or go_type(node)) end
  if node.type == "integer" then return read_integer(state, node, value, at, name or go_type(node)) end
  if node.type == "boolean" and type(value) ~= "boolean" then return refuse_type(state, at, value, "bool") end
  if node.type == "number" then
    local kind = values.kind(value)
    if kind ~= "integer" and kind ~= "number" then return refuse_type(state, at, value, "float64") end
  end
  return value
end

--- The value as a struct of this definition keeps it. `state` is told of unknown fields and
--- refusals: state:unknown(path), state:refuse(path, text, fatal). `path` is where the value stands.
function typed.read(state, definition, value, path)
  local node = json.object { ["$ref"] = definition }
  return read(state, node, value, { path = path or "", names = "", struct = "" })
end

typed.OBJECT_META = META .. "ObjectMeta"

return typed
