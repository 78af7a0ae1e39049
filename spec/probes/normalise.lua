-- Makes the raw steps of a probe comparable between servers, seeds and runs: what is random, or a
-- matter of time, becomes a placeholder; what must be equal within a run stays equal.
--
--   <name>   what the probe drew under that label
--   <uid1>   uids in the order of their first appearance
--   rv2      versions of objects by rank among all that the probe saw, so equality and order count
--   rv2+     the version of a list or bookmark: at least rv2, and below rv3
--   <time>   instants; those that a probe sends itself are of 2001 and stay
--   <age>    cells of tables that count time
local json = require "spec.probes.json"

local normalise = {}

local suffix = "[bcdfghjklmnpqrstvwxz2456789]"
suffix = suffix:rep(5)
local hex = "[0-9a-f]"
local uuid = ("%s%%-%s%%-%s%%-%s%%-%s"):format(hex:rep(8), hex:rep(4), hex:rep(4), hex:rep(4), hex:rep(12))
local day = "20%d%d%-%d%d%-%d%d"
local clock = "%d%d:%d%d:%d%d"

local base64_digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

local function unbase64url(text)
  local bits, count, out = 0, 0, {}
  for c in text:gmatch("[%w%-_]") do
    bits, count = bits * 64 + base64_digits:find(c, 1, true) - 1, count + 6
    if count >= 8 then
      count = count - 8
      local scale = 2 ^ count
      out[#out + 1] = string.char(math.floor(bits / scale))
      bits = bits % scale
    end
  end
  return table.concat(out)
end

-- ---- versions ----

local function is_collection(v)
  return json.is_array(v.items) or v.kind == "Table" or (type(v.kind) == "string" and v.kind:find("List$") ~= nil)
end

local function each_version(v, fn, bookmark)
  if type(v) ~= "table" or v == json.null then return end
  if json.is_object(v) then
    local version = json.get(v, "metadata", "resourceVersion")
    if type(version) == "string" and version:find("^%d+$") then
      fn(tonumber(version), bookmark or is_collection(v), v)
    end
  end
  for key, child in pairs(v) do
    if key ~= "managedFields" then each_version(child, fn, bookmark or v.type == "BOOKMARK") end
  end
end

-- The ranks of the versions that objects had.
local function rank_versions(steps)
  local seen, list = {}, {}
  local function add(version, whole)
    if not whole and not seen[version] then
      seen[version] = true
      list[#list + 1] = version
    end
  end
  for _, step in ipairs(steps) do
    each_version(step.body, add)
    local text = step.stdout or step.body
    if type(text) == "string" then
      for version in text:gmatch('resourceVersion"?:%s*"(%d+)"') do add(tonumber(version)) end
    end
  end
  table.sort(list)
  local ranks = {}
  for i, version in ipairs(list) do ranks[version] = i end
  return ranks, list
end

local Masker = {}
Masker.__index = Masker

function Masker:object_version(version)
  local rank = self.ranks[tonumber(version)]
  return rank and "rv" .. rank or version
end

function Masker:list_version(version)
  local below = 0
  for i, known in ipairs(self.versions) do
    if known <= version then below = i end
  end
  return ("rv%d+"):format(below)
end

-- ---- strings ----

-- Uids that a probe sends itself begin with 11111111 and stay.
function Masker:_uid(text)
  if text:find("^11111111") then return text end
  if not self.uids[text] then
    self.uid_count = self.uid_count + 1
    self.uids[text] = ("<uid%d>"):format(self.uid_count)
  end
  return self.uids[text]
end

local version_places = { '(resourceVersion\\?"?:%s*\\?")(%d+)(\\?")', "(record %()(%d+)(%))",
  "(precondition %()(%d+)(%))", "(resourceVersion=)(%d+)(%f[%D])" }

local function mask_time(text)
  return text:find("^2001") and text or "<time>"
end

local function mask_microtime(text)
  return text:find("^2001") and text or "<microtime>"
end

-- A refused patch shows the whole object; its keys are in whatever order the server keeps them.
local function sort_shown(head, shown, tail)
  local value = json.decode((shown:gsub('\\(["\\])', "%1")))
  return value and head .. json.encode(value) .. tail
end

function Masker:string(text)
  text = text:gsub('(Invalid value: ")({.-})(": )', sort_shown)
  for _, entry in ipairs(self.names) do
    local from, to = entry[1], entry[2]
    local at = text:find(from, 1, true)
    while at do
      text = text:sub(1, at - 1) .. to .. text:sub(at + #from)
      at = text:find(from, at + #to, true)
    end
  end
  text = text:gsub("(<[%w_]+>%-)" .. suffix .. "%f[^%w]", "%1<suffix>")
  text = text:gsub(uuid, function(found) return self:_uid(found) end)
  text = text:gsub(day .. "T" .. clock .. "%.%d%d%d%d%d%dZ", mask_microtime)
  text = text:gsub(day .. "T" .. clock .. "Z", mask_time)
  for _, place in ipairs(version_places) do
    text = text:gsub(place, function(a, version, b) return a .. self:object_version(version) .. b end)
  end
  text = text:gsub("(too old resource version: )(%d+) %(%d+%)", function(a, version)
    return a .. self:object_version(version) .. " (<rv>)"
  end)
  text = text:gsub("(Too large resource version: %d+, current: )%d+", "%1<rv>")
  text = text:gsub("(continue=)eyJ[%w%-_]+", "%1<token>")
  text = text:gsub("127%.0%.0%.1:%d+", "<address>")
  text = text:gsub('("serverAddress":")[^"]*', "%1<address>")
  return text
end

-- ---- documents ----

-- The fields of a token for the next page, in place of its text.
function Masker:token(text)
  local value = json.decode(unbase64url(text))
  if type(value) ~= "table" then return text end
  if type(value.rv) == "number" and value.rv > 0 then value.rv = self:list_version(value.rv) end
  return self:value(value)
end

local function managed_order(entry)
  local function text(name) return tostring(entry[name] or "") end
  return table.concat({ text "operation", text "manager", text "apiVersion", text "subresource",
    json.encode(entry.fieldsV1 or json.null) }, "\0")
end

-- Entries are sorted by time in whole seconds, which is a matter of luck.
local function sort_managed(list)
  table.sort(list, function(a, b) return managed_order(a) < managed_order(b) end)
  return list
end

function Masker:cells(cells)
  local out = {}
  for i, cell in ipairs(cells) do
    if type(cell) == "string" and (cell:find("^%d+[smhdy]%d*[smhd]?$")) then cell = "<age>" end
    out[i] = self:value(cell)
  end
  return json.array(out)
end

function Masker:member(key, value)
  if key == "continue" and type(value) == "string" and value ~= "" then return self:token(value) end
  if key == "cells" and json.is_array(value) then return self:cells(value) end
  if key == "serverAddress" then return "<address>" end
  if key == "clusterIP" and type(value) == "string" and value:find("^%d+%.") then return "<ip>" end
  if key == "clusterIPs" and json.is_array(value) and #value == 1 and value[1] ~= "None" then
    return json.array { "<ip>" }
  end
  local masked = self:value(value)
  if key == "managedFields" and json.is_array(masked) then sort_managed(masked) end
  return masked
end

function Masker:value(v)
  if type(v) == "string" then return self:string(v) end
  if type(v) ~= "table" or v == json.null then return v end
  local out = {}
  if json.is_array(v) then
    for i, item in ipairs(v) do out[i] = self:value(item) end
    return json.array(out)
  end
  -- In sorted order, so that uids are numbered alike.
  for _, key in ipairs(json.sorted_keys(v)) do out[self:string(key)] = self:member(key, v[key]) end
  return json.object(out)
end

-- Puts the placeholders of versions into a document; they are strings in place of strings.
function Masker:mark_versions(body)
  each_version(body, function(version, whole, object)
    object.metadata.resourceVersion = whole and self:list_version(version) or self:object_version(version)
  end)
end

--- The steps as they are compared and kept. `names` maps what the probe drew to its labels.
function normalise.steps(steps, names)
  local masker = setmetatable({ names = {}, uids = {}, uid_count = 0 }, Masker)
  for drawn, label in pairs(names) do table.insert(masker.names, { drawn, "<" .. label .. ">" }) end
  table.sort(masker.names, function(a, b) return #a[1] > #b[1] or (#a[1] == #b[1] and a[1] < b[1]) end)
  masker.ranks, masker.versions = rank_versions(steps)
  local out = {}
  for _, step in ipairs(steps) do
    if not step.hidden then
      masker:mark_versions(step.body)
      out[#out + 1] = masker:value(step)
    end
  end
  return json.array(out)
end

return normalise
