-- kube._core.codec for specs (see luaopen_codec.c), a generator of random documents, and a
-- comparison that tells arrays from objects and null from nothing.
local build = os.getenv("MOONWATCH_BUILD") or "build"
local library = build .. "/libmoonwatch_unit.so"

-- The spec file gets the object-aware pairs, next ...; they do what they always did. So does the
-- encode of a cjson that is there by then.
require "cjson"
local codec = assert(package.loadlib(library, "luaopen_mw_codec_spec"))()

local support = { codec = codec, library = library }

local function kind(v)
  if type(v) ~= "table" then return type(v) end
  return codec.is_array(v) and "array" or "object"
end

--- nil when a and b are the same document, else the path of the first difference.
function support.difference(a, b, path)
  path = path or "$"
  if kind(a) ~= kind(b) then
    return ("%s: %s (%s) against %s (%s)"):format(path, tostring(a), kind(a), tostring(b), kind(b))
  end
  if type(a) ~= "table" then
    if a == b then return nil end
    return ("%s: %s against %s"):format(path, tostring(a), tostring(b))
  end
  for k, v in pairs(a) do
    if rawget(b, k) == nil then return ("%s.%s is missing"):format(path, tostring(k)) end
    local found = support.difference(v, b[k], path .. "." .. tostring(k))
    if found then return found end
  end
  for k in pairs(b) do
    if rawget(a, k) == nil then return ("%s.%s is extra"):format(path, tostring(k)) end
  end
end

local words = { "name", "spec", "app.kubernetes.io/name", "x", "", "ключ", "a b", "q\"uote", "back\\slash",
  "line\nbreak", "\1", "emoji 😀", "replicas", "image" }

local function scalar(random, opts)
  local pick = random(opts.plain and 5 or 9)
  if pick == 1 then return tostring(random(-1000, 1000)) end
  if pick == 2 then return random(2) == 1 and "true" or "false" end
  if pick == 3 then return tostring(random(-99999, 99999) / 128) end
  if pick <= 5 then return codec.encode(words[random(#words)] .. random(99)) end
  if pick == 6 then return "null" end
  if pick == 7 then return ("%d%015d"):format(random(1, 9220), random(0, 999999)) end
  if pick == 8 then return ("0.%d%08d%08d"):format(random(1, 9), random(0, 99999999), random(0, 99999999)) end
  return random(2) == 1 and "[]" or "{}"
end

local function value(random, opts, depth)
  if depth == 0 or random(3) == 1 then return scalar(random, opts) end
  local n = random(opts.plain and 1 or 0, 5)
  local parts = {}
  local array = random(2) == 1
  for i = 1, n do
    local v = value(random, opts, depth - 1)
    parts[i] = array and v or ('%s:%s'):format(codec.encode(words[random(#words)] .. i), v)
  end
  local space = random(4) == 1 and not opts.tight and " " or ""
  return (array and "[%s]" or "{%s}"):format(space .. table.concat(parts, space .. "," .. space) .. space)
end

--- A random JSON document. opts.plain leaves out what lua-cjson does not keep: empty containers,
--- null and large numbers; opts.tight has no white space.
function support.document(random, opts, depth)
  return value(random, opts or {}, depth or 5)
end

--- A random Kubernetes object, as JSON.
function support.object(random, n)
  local parts = { ('"metadata":{"name":"o%d","namespace":"ns","uid":"u%d","resourceVersion":"%d","labels":%s}')
    :format(n, n, n, random(2) == 1 and '{"app":"web"}' or "{}") }
  for _, member in ipairs { "thing", "spec", "status", "data", "extra", "roleRef" } do
    local pick = random(4)
    if pick == 1 then parts[#parts + 1] = ('"%s":%s'):format(member, support.document(random, {}, 3)) end
    if pick == 2 then
      local members = {}
      for i = 1, random(0, random(10) == 1 and 90 or 8) do
        members[i] = ('"f%d":%s'):format(i, support.document(random, {}, 2))
      end
      parts[#parts + 1] = ('"%s":{%s}'):format(member, table.concat(members, ","))
    end
  end
  for i = #parts, 2, -1 do
    local j = random(i)
    parts[i], parts[j] = parts[j], parts[i]
  end
  return "{" .. table.concat(parts, ",") .. "}"
end

--- A generator of its own, so that a failure can be repeated: random(n), random(low, high).
function support.random(seed)
  local state = seed
  return function(low, high)
    if not high then low, high = 1, low end
    state = (state * 16807) % 2147483647
    return low + state % (high - low + 1)
  end
end

return support
