-- Reads the protobuf messages of Kubernetes' Go modules: numbers and types from generated.proto, and
-- from the tags of the Go structs what a number's JSON field is called and when it is left out.
--
-- A message is an object from number to [json name, type, flags?]. The type is a scalar of protobuf, a
-- message's name in its own package, or a full name in the spelling of OpenAPI. An empty JSON name
-- means that the fields of the message are fields of the outer object. Flags:
--   r repeated    m map<string, type>
--   p pointer: what is on the wire was set, also when it is zero
--   k kept: Go writes the field also when it is empty
--   z omitted: a struct that Go leaves out when nothing is set in it; it writes all others
local proto = {}

local function lines_of(path)
  local file = assert(io.open(path))
  local text = file:read("*a")
  file:close()
  return text:gmatch("[^\n]+")
end

local function files(pattern)
  local found = {}
  local pipe = assert(io.popen(pattern))
  for path in pipe:lines() do found[#found + 1] = path end
  pipe:close()
  return found
end

-- "k8s.io.api.core.v1" -> "io.k8s.api.core.v1", as OpenAPI spells it.
local function openapi_name(name)
  return (name:gsub("^%.?k8s%.io%.", "io.k8s."):gsub("_", "-"))
end

local SCALARS = { string = true, bytes = true, bool = true, int32 = true, int64 = true, double = true }

local function parse_field(line)
  local key, of, name, number = line:match("^  map<(%w+), ([%w._]+)> (%w+) = (%d+);")
  if key then
    assert(key == "string", line)
    return number, { name = name, type = of, flags = "m" }
  end
  local label
  label, of, name, number = line:match("^  (%w+) ([%w._]+) (%w+) = (%d+);")
  if label then return number, { name = name, type = of, flags = label == "repeated" and "r" or "" } end
end

-- Full name -> number -> { name, type, flags }.
local function read_messages(modules)
  local messages = {}
  for _, module in ipairs(modules) do
    for _, path in ipairs(files("find '" .. module .. "' -name generated.proto")) do
      local package, message
      for line in lines_of(path) do
        package = package or line:match("^package ([%w._]+);")
        local opened = line:match("^message (%w+)")
        if opened then
          message = { directory = path:match("^(.*)/"), struct = opened, package = openapi_name(package), fields = {} }
          messages[message.package .. "." .. opened] = message
        end
        local number, field = parse_field(line)
        if number then message.fields[number] = field end
      end
    end
  end
  return messages
end

-- Struct -> number -> { json, pointer, kept, omitted } of the structs in a directory.
local function read_structs(directory)
  local structs = {}
  for _, path in ipairs(files("ls '" .. directory .. "'/*.go | grep -v generated")) do
    local struct
    for line in lines_of(path) do
      struct = line:match("^type (%w+) struct {") or struct
      local declared, json, number = line:match("^\t(.*)`.*json:\"([^\"]*)\".*protobuf:\"%w+,(%d+),")
      if declared and struct then
        structs[struct] = structs[struct] or {}
        structs[struct][number] = {
          json = json:match("^[^,]*"),
          pointer = declared:match("^%w*%s*%*") ~= nil,
          kept = not json:find(",omit", 1, true) and not json:find(",inline", 1, true),
          omitted = json:find(",omitzero", 1, true) ~= nil,
        }
      end
    end
  end
  return structs
end

-- Messages that the decoder knows by name; their fields are of no interest.
local SPECIAL = {
  ["io.k8s.apimachinery.pkg.apis.meta.v1.Time"] = true,
  ["io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime"] = true,
  ["io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1"] = true,
  ["io.k8s.apimachinery.pkg.api.resource.Quantity"] = true,
  ["io.k8s.apimachinery.pkg.util.intstr.IntOrString"] = true,
  ["io.k8s.apimachinery.pkg.runtime.RawExtension"] = true,
  ["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON"] = true,
}

-- The field as it is written down, and the full name of the message it leads to.
local function describe(message, number, field, go)
  local full
  if not SCALARS[field.type] then
    full = field.type:find(".", 1, true) and openapi_name(field.type) or message.package .. "." .. field.type
  end
  local of = field.type
  if full then of = full:match("^(.*)%.") == message.package and full:match("[^.]*$") or full end
  -- A message without tags is one that Go writes in its own way, under the names of the proto file.
  go = go or { json = field.name }
  assert(go.json ~= "-", message.struct .. "." .. number)
  local flags = field.flags .. (go.pointer and "p" or "") .. (go.kept and "k" or "") .. (go.omitted and "z" or "")
  return go.json, of, flags, full
end

--- The messages that the roots lead to, by full name; a root that is no message is left out.
function proto.read(modules, roots, codec)
  local messages, structs, result, queue = read_messages(modules), {}, {}, {}
  for i, root in ipairs(roots) do queue[i] = root end
  while #queue > 0 do
    local name = table.remove(queue)
    local message = messages[name]
    if message and not result[name] and not SPECIAL[name] then
      structs[message.directory] = structs[message.directory] or read_structs(message.directory)
      local fields = codec.object {}
      local go = structs[message.directory][message.struct] or {}
      for number, field in pairs(message.fields) do
        local json, of, flags, full = describe(message, number, field, go[number])
        fields[number] = codec.array { json, of, flags ~= "" and flags or nil }
        if full then queue[#queue + 1] = full end
      end
      result[name] = fields
    end
  end
  return result
end

return proto
