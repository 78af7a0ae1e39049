-- The registry of what the server serves: descriptors of resources by group, version and plural.
--
-- A descriptor R has: group, version, api_version ("v1", "apps/v1"), plural, singular, kind,
-- list_kind, namespaced, verbs (set), verb_list (in discovery's order), short_names, categories,
-- storage ("configmaps", "apps/deployments": the same for all versions of a kind), builtin,
-- subresources (name -> { name, group, version, kind, verbs, verb_list }; group and version only
-- where the kind is of another one), subresource_list (names in discovery's order), rules
-- (kind_rules.lua), hash (storageVersionHash; nil for kinds that are not stored), resource_name
-- ("deployments.apps") and kind_name ("Deployment.apps") as errors spell them, and for a built-in
-- kind `definition`, the name of its schema. Custom resources bring `crd`, storage_version, and
-- `schema`, the version's openAPIV3Schema.
local host = require "kube._server"
local json = require "kube.sandbox.json"
local kind_rules = require "kube.sandbox.kind_rules"

local kinds = {}

local Registry = {}
Registry.__index = Registry

-- One stored object, two views.
local SHARED_STORAGE = { ["events.k8s.io/events"] = "events" }

-- What the server says to everybody who asks for these.
local DEPRECATED = {
  ComponentStatus = "v1 ComponentStatus is deprecated in v1.19+",
  Endpoints = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
}

local data -- kinds.json, decoded by the first registry

local function load_data()
  data = data or assert(json.decode(assert(host.data("kinds.json"), "kinds.json is not embedded")))
  return data
end

--- "apps", "v1" -> "apps/v1"; the core group has no name.
function kinds.api_version(group, version)
  return group == "" and version or group .. "/" .. version
end

local function set(list)
  local members = {}
  for _, item in ipairs(list) do members[item] = true end
  return members
end

--- What base64(sha256("group/version/kind")[:8]) is for: clients compare it across versions.
function kinds.storage_hash(group, version, kind)
  return host.base64(host.sha256(("%s/%s/%s"):format(group, version, kind)):sub(1, 8))
end

--- Fills in what follows from the rest of a descriptor; see the head of the file. `subresources` is
--- given as an array.
function kinds.complete(R)
  R.api_version = kinds.api_version(R.group, R.version)
  R.storage = R.storage or kinds.api_version(R.group, R.plural)
  R.singular = R.singular or R.kind:lower()
  R.list_kind = R.list_kind or R.kind .. "List"
  R.resource_name = R.group == "" and R.plural or R.plural .. "." .. R.group
  R.kind_name = R.group == "" and R.kind or R.kind .. "." .. R.group
  R.verbs = set(R.verb_list)
  R.short_names, R.categories = R.short_names or {}, R.categories or {}
  local subresources, names = {}, {}
  for i, sub in ipairs(R.subresources or {}) do
    sub.verbs = set(sub.verb_list)
    subresources[sub.name], names[i] = sub, sub.name
  end
  R.subresources, R.subresource_list = subresources, names
  if not R.builtin then R.hash = kinds.storage_hash(R.group, R.storage_version or R.version, R.kind) end
  R.rules = R.rules or (R.builtin and kind_rules.builtin or kind_rules.custom)(R)
  return R
end

local function other(text) return text ~= "" and text or nil end

local function builtin(group, version, entry)
  local subresources = {}
  for i, sub in ipairs(entry.subresources or {}) do
    local kind = sub.responseKind
    subresources[i] = {
      name = sub.subresource,
      group = other(kind.group),
      version = other(kind.version),
      kind = kind.kind,
      verb_list = sub.verbs,
    }
  end
  local plural = entry.resource
  return kinds.complete {
    builtin = true,
    group = group,
    version = version,
    plural = plural,
    singular = entry.singularResource,
    kind = entry.responseKind.kind,
    namespaced = entry.scope == "Namespaced",
    verb_list = entry.verbs,
    short_names = entry.shortNames,
    categories = entry.categories,
    subresources = subresources,
    storage = SHARED_STORAGE[kinds.api_version(group, plural)],
    hash = entry.storageVersionHash,
    deprecation_warning = group == "" and DEPRECATED[entry.responseKind.kind] or nil,
    definition = data.definitions[kinds.api_version(group, version) .. "/" .. entry.responseKind.kind],
  }
end

--- A registry of the built-in kinds.
function kinds.new()
  local self = setmetatable({ places = {}, order = {}, generation = 0 }, Registry)
  for _, group in ipairs(load_data().groups) do
    for _, version in ipairs(group.versions) do
      local api_version = kinds.api_version(group.name, version)
      for _, entry in ipairs(data.resources[api_version]) do self:add(builtin(group.name, version, entry)) end
    end
  end
  self.builtin_groups = #self.order
  return self
end

-- "v2beta1" -> 2, 1 (beta), 1; nil when a name is not a version of that form.
local STAGES = { alpha = 0, beta = 1, [""] = 2 }
local function version_rank(version)
  local major, stage, minor = version:match("^v(%d+)(%l*)(%d*)$")
  local rank = STAGES[stage or "?"]
  if not rank or (stage == "") ~= (minor == "") or major:match("^0") then return nil end
  return rank, tonumber(major), tonumber(minor) or 0
end

--- Whether version `a` is listed before `b`: stable ones first, then the higher one; names that are
--- no versions last, by the alphabet.
function kinds.precedes(a, b)
  local rank_a, major_a, minor_a = version_rank(a)
  local rank_b, major_b, minor_b = version_rank(b)
  if not rank_a or not rank_b then
    if rank_a or rank_b then return rank_a ~= nil end
    return a < b
  end
  if rank_a ~= rank_b then return rank_a > rank_b end
  if major_a ~= major_b then return major_a > major_b end
  return minor_a > minor_b
end

local function group_of(self, name)
  for i, group in ipairs(self.order) do
    if group.name == name then return group, i end
  end
end

-- Custom groups come after the built-in ones, by name.
local function new_group(self, name)
  local group = { name = name, versions = {} }
  local at = #self.order + 1
  while self.builtin_groups and at - 1 > self.builtin_groups and self.order[at - 1].name > name do at = at - 1 end
  table.insert(self.order, at, group)
  return group
end

local function new_version(self, group, version)
  local at = #group.versions + 1
  while self.builtin_groups and at > 1 and kinds.precedes(version, group.versions[at - 1]) do at = at - 1 end
  table.insert(group.versions, at, version)
end

--- Adds a completed descriptor, in the place of one of the same group, version and plural.
function Registry:add(R)
  local place = self.places[R.api_version]
  if not place then
    place = { list = {}, by_plural = {}, by_kind = {} }
    self.places[R.api_version] = place
    new_version(self, group_of(self, R.group) or new_group(self, R.group), R.version)
  end
  if place.by_plural[R.plural] then self:remove(place.by_plural[R.plural], true) end
  place.by_plural[R.plural], place.by_kind[R.kind] = R, R
  local at = #place.list + 1
  while at > 1 and place.list[at - 1].plural > R.plural do at = at - 1 end
  table.insert(place.list, at, R)
  self.generation = self.generation + 1
end

local function drop(list, wanted)
  for i, item in ipairs(list) do
    if item == wanted then return table.remove(list, i) end
  end
end

--- Takes a descriptor away again; a version and a group end with their last resource. True when it
--- was there.
function Registry:remove(R, keep_empty)
  local place = self.places[R.api_version]
  local found = place and place.by_plural[R.plural]
  if not found then return false end
  drop(place.list, found)
  place.by_plural[R.plural] = nil
  if place.by_kind[found.kind] == found then place.by_kind[found.kind] = nil end
  self.generation = self.generation + 1
  if #place.list > 0 or keep_empty then return true end
  self.places[R.api_version] = nil
  local group = group_of(self, R.group)
  drop(group.versions, R.version)
  if #group.versions == 0 then drop(self.order, group) end
  return true
end

--- The descriptor of a resource, or nil.
function Registry:find(group, version, plural)
  local place = self.places[kinds.api_version(group, version)]
  return place and place.by_plural[plural]
end

--- The descriptor that serves a kind, or nil.
function Registry:by_kind(api_version, kind)
  local place = self.places[api_version]
  return place and place.by_kind[kind]
end

--- Names of the groups in discovery's order; the core group is "".
function Registry:groups()
  local names = {}
  for i, group in ipairs(self.order) do names[i] = group.name end
  return names
end

--- Versions of a group, the preferred one first; empty for a group that is not served.
function Registry:versions(name)
  local group = group_of(self, name)
  return group and { unpack(group.versions) } or {}
end

--- Descriptors of a group and version by plural, or nil when it is not served.
function Registry:resources(group, version)
  local place = self.places[kinds.api_version(group, version)]
  return place and { unpack(place.list) }
end

--- Whether a group and version is served.
function Registry:version_exists(group, version)
  return self.places[kinds.api_version(group, version)] ~= nil
end

--- Whether a group is one of Kubernetes itself.
function Registry:is_builtin(name)
  local _, at = group_of(self, name)
  return at ~= nil and at <= self.builtin_groups
end

--- Every descriptor, in discovery's order.
function Registry:all()
  local all = {}
  for _, group in ipairs(self.order) do
    for _, version in ipairs(group.versions) do
      for _, R in ipairs(self.places[kinds.api_version(group.name, version)].list) do all[#all + 1] = R end
    end
  end
  return all
end

local columns -- columns.json, decoded by the first table

--- The columnDefinitions of a built-in resource's table, or nil.
function kinds.columns(R)
  if not columns then
    columns = assert(json.decode(assert(host.data("columns.json"), "columns.json is not embedded")))
    for name, definitions in pairs(columns) do
      if name ~= "texts" then
        for _, column in ipairs(definitions) do
          column.description = columns.texts[column.description] or column.description
        end
      end
    end
  end
  return R.builtin and columns[R.api_version .. "/" .. R.plural] or nil
end

--- The name of the definition of a built-in kind, or nil: "apps/v1", "Deployment".
function kinds.definition(api_version, kind)
  return load_data().definitions[api_version .. "/" .. kind]
end

return kinds
