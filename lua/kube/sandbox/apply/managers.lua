-- The managers of a document: metadata.managedFields read into a table from identifier to
--   { manager =, operation =, api_version =, subresource =, time =, set = }
-- and written back. The identifier says who, how and (of an Update) in which version; it sorts as the
-- server's does. Entries are values: a changed one is a new one.
local field_set = require "kube.sandbox.apply.field_set"
local json = require "kube.sandbox.json"

local managers = {}

local UPDATES_MAX = 10
local ANCIENT = "ancient-changes"

local OPERATIONS = { Apply = true, Update = true }

--- The identifier of an entry.
function managers.identify(entry)
  local parts = { '{"manager":' .. json.encode(entry.manager), '"operation":"' .. entry.operation .. '"' }
  if entry.operation == "Update" then parts[3] = '"apiVersion":' .. json.encode(entry.api_version) end
  if entry.subresource then parts[#parts + 1] = '"subresource":' .. json.encode(entry.subresource) end
  return table.concat(parts, ",") .. "}"
end

-- fieldsV1 -> set; stored documents do not change, so neither does what they hold.
local sets = setmetatable({}, { __mode = "k" })

local function read_set(fields)
  if fields == nil then return {} end
  local set = sets[fields]
  if set then return set end
  local problem
  set, problem = field_set.from_fields(fields)
  if set and type(fields) == "table" then sets[fields] = set end
  return set, problem
end

local function text(value) return type(value) == "string" and value ~= "" and value or nil end

local function read_entry(given, i)
  if not json.is_object(given) or not OPERATIONS[given.operation] then
    return nil, "operation must be `Apply` or `Update`"
  elseif not text(given.apiVersion) then
    return nil, "apiVersion must not be empty"
  elseif not text(given.fieldsType) then
    return nil, ("missing fieldsType in managed fields entry %d"):format(i - 1)
  elseif given.fieldsType ~= "FieldsV1" then
    return nil, ('invalid fieldsType "%s" in managed fields entry %d'):format(given.fieldsType, i - 1)
  end
  local set, problem = read_set(given.fieldsV1)
  if not set then return nil, "error decoding set: " .. problem end
  return {
    manager = text(given.manager) or "",
    operation = given.operation,
    api_version = given.apiVersion,
    subresource = text(given.subresource),
    time = text(given.time),
    set = set,
  }
end

--- The managers that managedFields names; nil and the problem when it cannot be read.
function managers.decode(managed_fields)
  local out = {}
  if managed_fields == nil or managed_fields == json.null then return out end
  for i, given in ipairs(managed_fields) do
    local entry, problem = read_entry(given, i)
    if not entry then return nil, problem end
    out[managers.identify(entry)] = entry
  end
  return out
end

local function before(a, b)
  if a.operation ~= b.operation then return a.operation < b.operation end
  local time_a, time_b = a.time or "", b.time or ""
  if time_a ~= time_b then return time_a < time_b end
  if a.manager ~= b.manager then return a.manager < b.manager end
  if a.api_version ~= b.api_version then return a.api_version < b.api_version end
  return (a.subresource or "") < (b.subresource or "")
end

--- managedFields of the managers, or nil when there are none.
function managers.encode(all)
  local entries = {}
  for _, entry in pairs(all) do entries[#entries + 1] = entry end
  if #entries == 0 then return nil end
  table.sort(entries, before)
  local out = json.array {}
  for i, entry in ipairs(entries) do
    out[i] = json.object {
      manager = entry.manager ~= "" and entry.manager or nil,
      operation = entry.operation,
      apiVersion = entry.api_version,
      time = entry.time,
      fieldsType = "FieldsV1",
      fieldsV1 = field_set.to_fields(entry.set),
      subresource = entry.subresource,
    }
  end
  return out
end

--- An entry with another set.
function managers.with_set(entry, set)
  return {
    manager = entry.manager,
    operation = entry.operation,
    api_version = entry.api_version,
    subresource = entry.subresource,
    time = entry.time,
    set = set,
  }
end

local function updates(all)
  local list = {}
  for id, entry in pairs(all) do
    if entry.operation == "Update" then list[#list + 1] = id end
  end
  table.sort(list, function(a, b)
    local time_a, time_b = all[a].time or "", all[b].time or ""
    if time_a ~= time_b then return time_a < time_b end
    return a < b
  end)
  return list
end

--- Merges the oldest Update entries of each version into one, until there are no more than ten.
function managers.cap(all)
  local list = updates(all)
  local count, first = #list, {}
  for _, id in ipairs(list) do
    if count <= UPDATES_MAX then return end
    local entry = all[id]
    local version = entry.api_version
    if not first[version] then
      first[version] = id
    else
      local bucket = { manager = ANCIENT, operation = "Update", api_version = version, time = entry.time }
      local bucket_id = managers.identify(bucket)
      local known = all[bucket_id]
      if not known then
        known = all[first[version]]
        all[first[version]] = nil
      end
      bucket.set = field_set.union(entry.set, known.set)
      all[id] = nil
      all[bucket_id] = bucket
      count = count - 1
    end
  end
end

return managers
