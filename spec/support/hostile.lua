-- Hostile requests: valid ones and what becomes of them when something is replaced, torn, repeated or
-- made up. The same seed gives the same requests.
--
--   local hostile = require("spec.support.hostile").new(seed)
--   local request = hostile:next()   -- { method =, target =, headers = { name = value }, body = }
require "spec.support.sandbox_env"
local host = require "kube._server"
local json = require "kube.sandbox.json"
local rand = require "spec.support.fault_rand"
local samples = require "spec.support.hostile_samples"

local hostile = {}

local Hostile = {}
Hostile.__index = Hostile

--- `depth` and `size` (1000, 10000) of the largest bodies.
function hostile.new(seed, depth, size)
  return setmetatable({ rand = rand.new(seed, 1), whole = samples.whole(depth or 1000, size or 10000) }, Hostile)
end

local NAMES = { "a", "b", "c", "widgets.ex.io", "default", "a", "b", "A", "-", "%00", "%ff", "a%2fb", "..",
  ("n"):rep(300) }

-- Texts ------------------------------------------------------------------------------------------

-- Damages single bytes.
local function tear(r, text)
  local at = r:int(1, #text + 1)
  local act = r:int(1, 5)
  if act == 1 then return text:sub(1, at - 1) end
  if act == 2 then return text:sub(1, at - 1) .. text:sub(at + r:int(1, 5)) end
  if act == 3 then return text:sub(1, at) .. text:sub(at, at + r:int(0, 20)) .. text:sub(at + 1) end
  if act == 4 then return text:sub(1, at - 1) .. string.char(r:int(0, 255)) .. text:sub(at + 1) end
  return text:sub(1, at - 1) .. r:pick(samples.pieces) .. text:sub(at)
end

-- All places in a document: { table, key }.
local function places(value, out)
  for key, child in pairs(value) do
    out[#out + 1] = { value, key }
    if type(child) == "table" then places(child, out) end
  end
  return out
end

local function sorted_places(value)
  local found = places(value, {})
  for _, place in ipairs(found) do place.order = json.encode(json.array { tostring(place[2]), place[1] }) end
  table.sort(found, function(a, b) return a.order < b.order end)
  return found
end

-- Replaces values of a document by other pieces; the text, which may not be JSON any more.
local function disfigure(r, text)
  local document = json.decode(text)
  if type(document) ~= "table" then return tear(r, text) end
  local pieces = {}
  for _ = 1, r:int(1, 3) do
    local found = sorted_places(document)
    if not found[1] then break end
    local place = r:pick(found)
    local owner, key = place[1], place[2]
    local act = r:int(1, 6)
    if act == 1 and not json.is_array(owner) then
      owner[key] = nil
    elseif act == 2 then
      owner[key] = json.copy(document)
    elseif act == 3 and type(key) == "string" then
      owner[r:pick { "x", "", "$patch", "name", "f:x", "a.b", "metadata", key .. key }] = owner[key]
    else
      pieces[#pieces + 1] = r:pick(samples.pieces)
      owner[key] = ("@piece%d@"):format(#pieces)
    end
  end
  return (json.encode(document):gsub('"@piece(%d+)@"', function(i) return pieces[tonumber(i)] end))
end

-- Protobuf -----------------------------------------------------------------------------------------

local function field(number, text)
  assert(#text < 128 * 128)
  local low, high = #text % 128, math.floor(#text / 128)
  local length = high > 0 and string.char(low + 128, high) or string.char(low)
  return string.char(number * 8 + 2) .. length .. text
end

local function protobuf(name)
  local object = field(1, field(1, name) .. field(3, "default") .. field(11, field(1, "l") .. field(2, "v")))
    .. field(2, field(1, "k") .. field(2, "v")) .. field(3, field(1, "b") .. field(2, "\0\1"))
  local kind = field(1, "v1") .. field(2, "ConfigMap")
  return "k8s\0" .. field(1, kind) .. field(2, object) .. field(3, "") .. field(4, "")
end

-- Requests -----------------------------------------------------------------------------------------

local function object_text(r, sample, name)
  local metadata = ('"name":%s'):format(json.encode((name:gsub("%%%x%x", "x"))))
  local more = r:pick(samples.metadata)
  if more ~= "" then metadata = metadata .. "," .. more end
  return ('{"apiVersion":"%s","kind":"%s","metadata":{%s},%s}'):format(sample[2], sample[3], metadata, sample[4])
end

local function query(r)
  local names, parts = {}, {}
  for name in pairs(samples.queries) do names[#names + 1] = name end
  table.sort(names)
  for i = 1, r:int(0, 3) do
    local name = r:pick(names)
    parts[i] = name .. "=" .. r:pick(samples.queries[name])
  end
  return parts
end

local SUBRESOURCES = { "status", "scale", "finalize", "eviction", "binding", "log", "exec", "token", "x", "status/x" }

local makers = {}

function makers.create(r, sample, name)
  return { method = "POST", target = sample[1], body = object_text(r, sample, name) }
end

function makers.update(r, sample, name)
  return { method = "PUT", target = sample[1] .. "/" .. name, body = object_text(r, sample, name) }
end

function makers.patch(r, sample, name)
  local patch = r:pick(samples.patches)
  return { method = "PATCH", target = sample[1] .. "/" .. name, body = patch[2], media = patch[1] }
end

function makers.apply(r, sample, name)
  return {
    method = "PATCH",
    target = sample[1] .. "/" .. name,
    body = object_text(r, sample, name),
    media = "application/apply-patch+yaml",
    query = { "fieldManager=" .. r:pick { "m", "n", "kubectl" }, r:pick { "force=true", "force=false" } },
  }
end

function makers.read(_, sample, name) return { method = "GET", target = sample[1] .. "/" .. name, body = "" } end

function makers.list(_, sample) return { method = "GET", target = sample[1], body = "" } end

function makers.watch(_, sample)
  return { method = "GET", target = sample[1], body = "", query = { "watch=1", "timeoutSeconds=1" } }
end

function makers.delete(r, sample, name)
  local target = r:chance(0.1) and sample[1] or sample[1] .. "/" .. name
  return { method = "DELETE", target = target, body = r:pick(samples.deletions) }
end

function makers.protobuf(r, _, name)
  return {
    method = r:pick { "POST", "PUT" },
    target = "/api/v1/namespaces/default/configmaps" .. (r:chance(0.5) and "/" .. name or ""),
    body = protobuf((name:gsub("%W", "x"))),
    media = "application/vnd.kubernetes.protobuf",
  }
end

function makers.page(r)
  return {
    method = "GET",
    body = "",
    target = r:pick { "/", "/api", "/apis", "/apis/apps", "/apis/apps/v1", "/api/v1", "/openapi/v2", "/openapi/v3",
      "/openapi/v3/apis/apps/v1", "/version", "/healthz", "/readyz", "/metrics", "//", "/api//v1", "/apis/x/y/z", "*",
      "/api/v1/watch/pods", "/api/v1/watch/namespaces/default/pods/a", "/api/v1/namespaces/default/pods/a/b/c/d",
      "/sandbox/v1/faults", "/sandbox/v1/watches", "/sandbox/v1/clock", "/sandbox/v1/x", "/sandbox" },
  }
end

local KINDS = { "create", "create", "create", "update", "update", "patch", "patch", "patch", "apply", "apply", "read",
  "list", "list", "watch", "delete", "protobuf", "page" }

local MEDIA = { "application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "text/plain", "",
  "application/merge-patch+json", "application/strategic-merge-patch+json", "application/json-patch+json",
  "application/apply-patch+yaml", "application/json;;;", "\255" }

local METHODS = { "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "CONNECT" }

local function as_yaml(request)
  local document = json.decode(request.body)
  if type(document) ~= "table" then return end
  request.body = host.yaml_encode(document)
  if request.media == nil then request.media = "application/yaml" end
end

local function spoil(self, request)
  local r = self.rand
  if r:chance(0.05) then request.method = r:pick(METHODS) end
  if r:chance(0.05) then request.media = r:pick(MEDIA) end
  if r:chance(0.1) then as_yaml(request) end
  if r:chance(0.5) then request.body = disfigure(r, request.body) end
  if r:chance(0.08) then request.body = tear(r, request.body) end
  if r:chance(0.03) then request.body = r:pick(self.whole) end
  if r:chance(0.05) then request.target = request.target .. "/" .. r:pick(SUBRESOURCES) end
  if r:chance(0.02) then request.target = "/" .. tear(r, request.target):gsub("[%c%s\127-\255?#]", "%%00") end
end

--- The next request.
function Hostile:next()
  local r = self.rand
  local request = makers[r:pick(KINDS)](r, r:pick(samples.objects), r:pick(NAMES))
  spoil(self, request)
  local parts = request.query or {}
  if r:chance(0.4) then
    for _, part in ipairs(query(r)) do parts[#parts + 1] = part end
  end
  local headers = { ["content-type"] = request.media or "application/json" }
  if r:chance(0.2) then headers.accept = r:pick(samples.accepts) end
  if r:chance(0.1) then headers["user-agent"] = r:pick { "", "/", "kubectl/v1", "curl/8", "\255", ("u"):rep(500) } end
  if r:chance(0.1) then headers["accept-encoding"] = r:pick { "gzip", "x", "" } end
  return {
    method = request.method,
    target = request.target .. (parts[1] and "?" .. table.concat(parts, "&") or ""),
    headers = headers,
    body = request.body,
  }
end

return hostile
