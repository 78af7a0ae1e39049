-- Bodies in protobuf, which Go clients send for built-in kinds, as the documents they stand for.
--
-- Go sends every field that is no pointer, set or not; what omitempty would leave out of JSON is left
-- out here, and so are structs in which nothing is set.
local bit = require "bit"
local ffi = require "ffi"
local clock = require "kube.sandbox.clock"
local host = require "kube._server"
local json = require "kube.sandbox.json"
local kinds = require "kube.sandbox.kinds"
local messages = require "kube.sandbox.messages"

local protobuf = {}

local MAGIC = "k8s\0"
local MAX_DEPTH = 200 -- the codec writes no deeper document
local MAX_VALUES = 200000 -- a body of empty messages costs far more memory than it has bytes

local META = "io.k8s.apimachinery.pkg.apis.meta.v1."
local CRD = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."

-- Malformed input is raised as such a table and becomes a message; anything else is a bug.
local function fail(text, ...) error({ malformed = text:format(...) }, 0) end

-- The wire ---------------------------------------------------------------------------------------

-- Ten bytes at most: a Lua number while it is exact, else a 64-bit integer.
local function read_varint(text, at, stop)
  local value, scale, first = 0, 1, at
  while true do
    if at > stop then fail("unexpected EOF") end
    local byte = text:byte(at)
    at = at + 1
    if at - first > 7 then break end
    if byte < 128 then return value + byte * scale, at end
    value, scale = value + (byte - 128) * scale, scale * 128
  end
  local wide, shift = 0LL, 0
  for i = first, first + 9 do
    if i > stop then fail("unexpected EOF") end
    local byte = text:byte(i)
    wide = bit.bor(wide, bit.lshift(0LL + bit.band(byte, 127), shift))
    shift = shift + 7
    if byte < 128 then return wide, i + 1 end
  end
  fail("proto: integer overflow")
end

local EXACT = 2 ^ 53

local function to_int64(value)
  if type(value) == "cdata" and value >= -EXACT and value <= EXACT then return tonumber(value) end
  return value
end

local function to_int32(value)
  if type(value) == "number" and value < 2 ^ 31 then return value end
  return bit.tobit(tonumber(bit.band(0LL + value, 0xffffffffLL)))
end

local VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

-- The payload of a field: a number, or where its bytes begin and end; then where the next one is.
local function read_payload(text, wire, at, stop)
  if wire == VARINT then
    local value, after = read_varint(text, at, stop)
    return value, nil, after
  end
  local size
  if wire == BYTES then
    size, at = read_varint(text, at, stop)
    if type(size) ~= "number" then fail("proto: negative length found during unmarshaling") end
  elseif wire == FIXED64 then
    size = 8
  elseif wire == FIXED32 then
    size = 4
  else
    fail("proto: illegal wireType %d", wire)
  end
  if size > stop - at + 1 then fail("unexpected EOF") end
  return at, at + size - 1, at + size
end

-- Calls each(number, wire, value or begin, end) for the fields between two positions.
local function each_field(text, at, stop, each)
  while at <= stop do
    local tag
    tag, at = read_varint(text, at, stop)
    if type(tag) ~= "number" then fail("proto: illegal tag") end
    local number, wire = math.floor(tag / 8), tag % 8
    if number == 0 then fail("proto: illegal tag 0 (wire type %d)", wire) end
    local first, last
    first, last, at = read_payload(text, wire, at, stop)
    each(number, wire, first, last)
  end
end

-- Scalars ----------------------------------------------------------------------------------------

-- Replaced by a dot each, what remains above ASCII is not UTF-8.
local SEQUENCES = {
  "[\194-\223][\128-\191]",
  "\224[\160-\191][\128-\191]",
  "[\225-\236\238\239][\128-\191][\128-\191]",
  "\237[\128-\159][\128-\191]",
  "\240[\144-\191][\128-\191][\128-\191]",
  "[\241-\243][\128-\191][\128-\191][\128-\191]",
  "\244[\128-\143][\128-\191][\128-\191]",
}

local function check_utf8(text)
  if not text:find("[\128-\255]") then return text end
  local rest = text
  for _, sequence in ipairs(SEQUENCES) do rest = rest:gsub(sequence, ".") end
  if rest:find("[\128-\255]") then fail("a string is not valid UTF-8") end
  return text
end

local function read_double(text, first)
  local buffer = ffi.new("double[1]")
  ffi.copy(buffer, text:sub(first, first + 7), 8)
  local value = buffer[0]
  if value ~= value or value == math.huge or value == -math.huge then fail("a number is not finite") end
  return value
end

local SCALARS = {
  string = { wire = BYTES, zero = "", read = function(text, first, last) return check_utf8(text:sub(first, last)) end },
  bytes = { wire = BYTES, zero = "", read = function(text, first, last) return host.base64(text:sub(first, last)) end },
  bool = { wire = VARINT, zero = false, read = function(_, value) return value ~= 0 end },
  int32 = { wire = VARINT, zero = 0, read = function(_, value) return to_int32(value) end },
  int64 = { wire = VARINT, zero = 0, read = function(_, value) return to_int64(value) end },
  double = { wire = FIXED64, zero = 0, read = read_double },
}

-- Messages that JSON writes in their own way ------------------------------------------------------

-- Number -> value of a small message whose fields are integers and byte strings.
local function plain(text, first, last)
  local values = {}
  each_field(text, first, last, function(number, wire, a, b)
    if wire == VARINT then
      values[number] = to_int64(a)
    elseif wire == BYTES then
      values[number] = text:sub(a, b)
    end
  end)
  return values
end

-- Go's zero time and the last second that four digits can name.
local FIRST_SECOND, LAST_SECOND = -62135596800, 253402300799

local function read_time(text, first, last)
  local values = plain(text, first, last)
  local seconds, nanos = values[1] or 0, values[2] or 0
  if type(seconds) ~= "number" or type(nanos) ~= "number" then fail("a time is out of range") end
  if seconds < FIRST_SECOND or seconds > LAST_SECOND or nanos < 0 or nanos > 999999999 then
    fail("a time is out of range")
  end
  -- An empty message is the zero time, which JSON writes as null.
  if first > last or seconds == FIRST_SECOND then return nil end
  return clock.rfc3339(seconds), nanos
end

local function json_text(text, first, last)
  local raw = plain(text, first, last)[1]
  if raw == nil or raw == "" then return json.null end
  if type(raw) ~= "string" then fail("proto: wrong wireType = 0 for field Raw") end
  local value, problem = json.decode(raw)
  if value == nil then fail("%s", problem) end
  return value
end

local SPECIAL = {
  [META .. "Time"] = function(_, text, first, last) return (read_time(text, first, last)) end,
  [META .. "MicroTime"] = function(_, text, first, last)
    local seconds, nanos = read_time(text, first, last)
    return seconds and ("%s.%06dZ"):format(seconds:sub(1, -2), math.floor(nanos / 1000))
  end,
  [META .. "FieldsV1"] = function(_, text, first, last) return json_text(text, first, last) end,
  [CRD .. "JSON"] = function(_, text, first, last) return json_text(text, first, last) end,
  ["io.k8s.apimachinery.pkg.api.resource.Quantity"] = function(_, text, first, last)
    local value = plain(text, first, last)[1] or "0"
    if type(value) ~= "string" then fail("proto: wrong wireType = 0 for field String") end
    return value == "" and "0" or check_utf8(value)
  end,
  ["io.k8s.apimachinery.pkg.util.intstr.IntOrString"] = function(_, text, first, last)
    local values = plain(text, first, last)
    if (values[1] or 0) == 0 then
      local number = values[2] or 0
      if type(number) == "string" then fail("proto: wrong wireType = 2 for field IntVal") end
      return to_int32(number)
    end
    local value = values[3] or ""
    if type(value) ~= "string" then fail("proto: wrong wireType = 0 for field StrVal") end
    return check_utf8(value)
  end,
}

-- What a message stands for when it is one of several forms; `fields` are those of the proto file.
local FORMS = {
  [CRD .. "JSONSchemaPropsOrBool"] = function(fields) return fields.schema or fields.allows or false end,
  [CRD .. "JSONSchemaPropsOrArray"] = function(fields) return fields.jSONSchemas or fields.schema or json.null end,
  [CRD .. "JSONSchemaPropsOrStringArray"] = function(fields) return fields.property or fields.schema or json.null end,
}
for _, group in ipairs { "authentication", "authorization", "certificates" } do
  FORMS["io.k8s.api." .. group .. ".v1.ExtraValue"] = function(fields) return fields.items or json.array {} end
end

-- Messages by their tables -----------------------------------------------------------------------

local read_message, read_envelope

local function count(state)
  state.values = state.values + 1
  if state.values > MAX_VALUES then fail("the body holds more than %d values", MAX_VALUES) end
end

-- The value of a message of any kind; nil for one that JSON writes as null.
local function read_named(state, name, text, first, last, depth)
  count(state)
  local special = SPECIAL[name]
  if special then return special(state, text, first, last) end
  if name == "io.k8s.apimachinery.pkg.runtime.RawExtension" then
    local raw = plain(text, first, last)[1]
    if type(raw) == "string" and raw:sub(1, 4) == MAGIC then return read_envelope(state, raw, nil, depth + 1) end
    return json_text(text, first, last)
  end
  local object = read_message(state, name, text, first, last, depth + 1)
  return (FORMS[name] or function(fields) return fields end)(object)
end

local function read_value(state, field, wire, text, first, last, depth)
  local scalar = SCALARS[field.scalar]
  if scalar then
    if wire ~= scalar.wire then fail("proto: wrong wireType = %d for field %s", wire, field.name) end
    count(state)
    return scalar.read(text, first, last)
  end
  if wire ~= BYTES then fail("proto: wrong wireType = %d for field %s", wire, field.name) end
  return read_named(state, field.message, text, first, last, depth)
end

local function read_entry(state, field, map, text, first, last, depth)
  local key, value = ""
  if field.scalar then
    value = SCALARS[field.scalar].zero
  else
    value = read_named(state, field.message, "", 1, 0, depth)
  end
  each_field(text, first, last, function(number, wire, a, b)
    if number == 1 then
      if wire ~= BYTES then fail("proto: wrong wireType = %d for field %s", wire, field.name) end
      key = check_utf8(text:sub(a, b))
    elseif number == 2 then
      value = read_value(state, field, wire, text, a, b, depth)
    end
  end)
  map[key] = value == nil and json.null or value
end

-- Packed numbers come in one run of bytes.
local function read_packed(state, field, list, text, first, last)
  while first <= last do
    local value
    value, first = read_varint(text, first, last)
    count(state)
    list[#list + 1] = SCALARS[field.scalar].read(text, value)
  end
end

local function is_set(field, value)
  if field.pointer or field.kept then return true end
  if type(value) ~= "table" then
    return value ~= "" and value ~= 0 and value ~= false and value ~= json.null
  end
  return next(value) ~= nil
end

local function set_single(state, object, field, wire, text, first, last, depth)
  local value = read_value(state, field, wire, text, first, last, depth)
  if value ~= nil and not is_set(field, value) then value = nil end
  object[field.name] = value
end

local function read_field(state, object, field, wire, text, first, last, depth)
  if field.name == "" then
    if wire ~= BYTES then fail("proto: wrong wireType = %d for field %s", wire, field.message) end
    read_message(state, field.message, text, first, last, depth + 1, object)
  elseif field.map then
    if wire ~= BYTES then fail("proto: wrong wireType = %d for field %s", wire, field.name) end
    object[field.name] = object[field.name] or json.object {}
    count(state)
    read_entry(state, field, object[field.name], text, first, last, depth)
  elseif field.repeated then
    local list = object[field.name] or json.array {}
    object[field.name] = list
    if wire == BYTES and field.scalar and SCALARS[field.scalar].wire == VARINT then
      return read_packed(state, field, list, text, first, last)
    end
    local value = read_value(state, field, wire, text, first, last, depth)
    list[#list + 1] = value == nil and json.null or value
  else
    set_single(state, object, field, wire, text, first, last, depth)
  end
end

function read_message(state, name, text, first, last, depth, into)
  if depth > MAX_DEPTH then fail("the body is nested deeper than %d levels", MAX_DEPTH) end
  local object, fields = into or json.object {}, assert(messages.of(name), name)
  each_field(text, first, last, function(number, wire, a, b)
    local field = fields[number]
    if field then read_field(state, object, field, wire, text, a, b, depth) end
  end)
  return object
end

-- Whole bodies -----------------------------------------------------------------------------------

local function type_meta(text)
  local values = plain(text, 1, #text)
  local api_version, kind = values[1] or "", values[2] or ""
  if type(api_version) ~= "string" or type(kind) ~= "string" then fail("proto: wrong wireType = 0 for TypeMeta") end
  return check_utf8(api_version), check_utf8(kind)
end

-- The options of a deletion are of every group.
local function definition(api_version, kind)
  if kind == "DeleteOptions" then return META .. kind end
  return kinds.definition(api_version, kind)
end

function read_envelope(state, text, R, depth)
  if text:sub(1, 4) ~= MAGIC then
    fail("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
  end
  local unknown = plain(text:sub(5), 1, #text - 4)
  local raw, meta = unknown[2] or "", unknown[1] or ""
  if type(raw) ~= "string" or type(meta) ~= "string" then fail("proto: wrong wireType = 0 for Unknown") end
  local api_version, kind = type_meta(meta)
  if kind == "" and R then kind = R.kind end
  if api_version == "" and R then api_version = R.api_version end
  if kind == "" then kind = "DeleteOptions" end
  local name = definition(api_version, kind)
  if not name or not messages.of(name) then
    fail('no kind "%s" is registered for version "%s" in scheme "pkg/runtime/scheme.go:111"', kind, api_version)
  end
  local document = read_message(state, name, raw, 1, #raw, depth)
  document.kind = kind
  document.apiVersion = api_version ~= "" and api_version or nil
  return document
end

--- The document of a body, as its client's JSON would be; nil and what is wrong with it. A body that
--- does not say what it is, is of kind R, or without one the options of a deletion.
function protobuf.decode(text, R)
  local ok, result = pcall(read_envelope, { values = 0 }, text, R, 1)
  if ok then return result end
  if type(result) == "table" and result.malformed then return nil, result.malformed end
  error(result, 0)
end

return protobuf
