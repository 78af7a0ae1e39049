-- The requests that were answered, so that a spec can ask what a controller did: how many of each
-- verb and resource, and the last of them one by one. Not the sandbox's own: neither its controllers
-- nor what comes to /sandbox/v1.
--
-- An entry is { id, time, verb, group, version, resource, subresource, namespace, name, path,
-- user_agent, status, fault } and, of a write, { content_type, body, changed }: what was sent, and
-- whether anything was stored by it. The name of a create is the one that the object got. A path that
-- is no resource's has `path` alone. `status` is 0 where a fault cut the connection.
local host = require "kube._server"
local json = require "kube.sandbox.json"
local request = require "kube.sandbox.request"

local requests = {}
requests.__index = requests

requests.FIELDS = require("kube._sandbox_fields").requests

requests.LIMITS = {
  entries = 4096,
  bytes = 4 * 1024 * 1024, -- of paths and bodies together
  body = 64 * 1024,        -- a longer one is not kept
  counts = 1024,           -- different ones; a sandbox with more of them counts the rest as one
}

--- `limits` for specs that want to see them reached.
function requests.new(limits)
  local self = setmetatable({ limits = limits or requests.LIMITS, last = 0 }, requests)
  self:clear()
  return self
end

--- Forgets all of them; ids go on.
function requests:clear()
  self.first, self.dropped, self.bytes = self.last + 1, 0, 0
  self.entries, self.counts, self.by_name = {}, json.array {}, {}
end

local READS = { get = true, list = true, watch = true }

local NAMING = { "verb", "group", "version", "resource", "subresource" }

local OTHER = "other"

-- The count that a request belongs to.
local function count_of(self, entry)
  local name = table.concat({ entry.verb, entry.group, entry.version, entry.resource, entry.subresource }, "/")
  local known = self.by_name
  if not known[name] and #self.counts >= self.limits.counts then name = OTHER end
  if not known[name] then
    known[name] = json.object { verb = OTHER, count = 0 }
    for _, field in ipairs(name ~= OTHER and NAMING or {}) do known[name][field] = entry[field] end
    table.insert(self.counts, known[name])
  end
  return known[name]
end

local function slot(self, id) return (id - 1) % self.limits.entries + 1 end

local function size_of(entry) return #entry.path + (entry.body and #entry.body or 0) end

local function drop_first(self)
  local at = slot(self, self.first)
  self.bytes = self.bytes - size_of(self.entries[at])
  self.entries[at] = nil
  self.first, self.dropped = self.first + 1, self.dropped + 1
end

local function describe(ctx, response)
  local info = ctx.info
  local entry = json.object {
    time = ctx.S.clock:now(),
    verb = info.verb or info.method:lower(),
    path = ctx.request.target,
    user_agent = ctx.request.header("user-agent"),
    status = response.status,
    fault = ctx.fault and ctx.fault.id,
  }
  if info.resource then
    entry.group, entry.version, entry.resource = info.group, info.version, info.resource
    entry.subresource, entry.namespace, entry.name = info.subresource, info.namespace, info.name
    if info.verb == "create" and not info.name then entry.name = json.get(ctx.document, "metadata", "name") end
  end
  return entry
end

--- Remembers a request and its answer; `revision` is the store's before it.
function requests:add(ctx, response, revision)
  if self.last - self.first + 1 >= self.limits.entries then drop_first(self) end
  local entry = describe(ctx, response)
  local text = ctx.request.body or ""
  if ctx.info.resource and not READS[entry.verb] then
    entry.changed = ctx.S.store.revision ~= revision
    entry.content_type = ctx.request.header("content-type")
    if #text > 0 and #text <= self.limits.body then entry.body = text end
  end
  self.last = self.last + 1
  entry.id = self.last
  self.entries[slot(self, self.last)] = entry
  self.bytes = self.bytes + size_of(entry)
  while self.bytes > self.limits.bytes and self.first < self.last do drop_first(self) end
  if ctx.R then
    local count = count_of(self, entry)
    count.count = count.count + 1
  end
end

-- What was sent, as a document; nil for protobuf, and for what cannot be read.
local function document_of(entry)
  if not entry.body then return nil end
  local document = json.decode(entry.body)
  if document ~= nil or not (entry.content_type or ""):find("yaml", 1, true) then return document end
  local documents = host.yaml_decode(entry.body)
  return documents and documents[1]
end

local function is_meant(entry, filter)
  for name, wanted in pairs(filter) do
    if name ~= "since" and entry[name] ~= wanted then return false end
  end
  return true
end

--- What a query asks for: filter, or nil and what is wrong.
function requests.filter(info)
  local filter = {}
  for name in pairs(info.query) do
    local kind = requests.FIELDS[name]
    if not kind then return nil, ("unknown parameter '%s'"):format(name) end
    local value = request.value(info, name)
    filter[name] = kind ~= "number" and value or tonumber(value)
    if filter[name] == nil then return nil, ("'%s' must be a %s"):format(name, kind) end
  end
  return filter
end

--- { last, dropped, counts, items }: the entries that fit, oldest first, those after the id `since`;
--- how many are forgotten since the last clear(); how many there were since then, forgotten ones too.
function requests:list(filter)
  local items = json.array {}
  for id = math.max(self.first, math.floor(filter.since or 0) + 1), self.last do
    local entry = self.entries[slot(self, id)]
    if is_meant(entry, filter) then
      items[#items + 1] = json.with(entry, "body", document_of(entry))
    end
  end
  return { last = self.last, dropped = self.dropped, counts = self.counts, items = items }
end

return requests
