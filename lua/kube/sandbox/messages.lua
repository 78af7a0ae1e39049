-- The structs of Kubernetes' Go API as its protobuf messages have them: data/proto, see
-- scripts/kinds.d/proto.lua. Read when a message of a package is first asked for.
local host = require "kube._server"
local json = require "kube.sandbox.json"

local messages = {}

local SCALARS = { string = true, bytes = true, bool = true, int32 = true, int64 = true, double = true }

local packages, compiled = {}, {}

local function raw_message(package, short)
  if packages[package] == nil then
    local text = host.data("proto/" .. package .. ".json")
    packages[package] = text and assert(json.decode(text)) or false
  end
  return packages[package] and packages[package][short]
end

local function compile(package, entry)
  local of, flags = entry[2], entry[3] or ""
  local function has(flag) return flags:find(flag, 1, true) ~= nil end
  local field = {
    name = entry[1],
    repeated = has "r",
    map = has "m",
    pointer = has "p",
    kept = has "k",
    omitted = has "z",
  }
  if SCALARS[of] then
    field.scalar = of
  else
    field.message = of:find(".", 1, true) and of or package .. "." .. of
  end
  return field
end

--- Number -> field of a message, by the full name of its definition, or nil. A field is { name (""
--- when its fields are the outer object's), scalar or message, repeated, map, pointer, kept (written
--- also when empty), omitted (a struct that is left out when empty) }.
function messages.of(name)
  if compiled[name] then return compiled[name] end
  local package, short = name:match("^(.*)%.([^.]*)$")
  local raw = package and raw_message(package, short)
  if not raw then return nil end
  local fields = {}
  for number, entry in pairs(raw) do fields[tonumber(number)] = compile(package, entry) end
  compiled[name] = fields
  return fields
end

return messages
