-- Walks over documents with their schema: the set of their fields, and what differs between two.
-- Raises a text when a list's items have no path elements.
local atom = require "kube.sandbox.apply.atom"
local item = require "kube.sandbox.apply.item"
local json = require "kube.sandbox.json"

local walk = {}

local NULL = json.null

-- Puts a node under a path element: `own` says that the field itself belongs in.
local function place(set, pe, own, below)
  if below and next(below) ~= nil then
    if own then below["."] = true end
    set[pe] = below
  elseif own then
    set[pe] = true
  end
end

-- ---- the fields of a document ----

local fields

local function list_fields(list, values)
  local elements, count, out = item.elements(list, values), {}, {}
  for _, pe in ipairs(elements) do count[pe] = (count[pe] or 0) + 1 end
  local of_item = atom.element(list)
  for i, pe in ipairs(elements) do
    if count[pe] > 1 then
      out[pe] = true
    else
      local _, below = fields(values[i], of_item)
      place(out, pe, true, below)
    end
  end
  return out
end

local function map_fields(map, values)
  local out = {}
  for name, value in pairs(values) do
    local of_member, declared = atom.member(map, name)
    local own, below
    if of_member then own, below = fields(value, of_member) end
    own = own or not declared or value == NULL or atom.object(value) and next(value) == nil
    place(out, "f:" .. name, own, below)
  end
  return out
end

-- Whether the field itself is in the set, and what is below it.
function fields(value, self)
  local kind = atom.kind(self, value)
  if kind == "scalar" or self[kind].atomic then return true end
  if kind == "list" then
    local values = atom.array(value)
    return false, values and list_fields(self.list, values)
  end
  local values = atom.object(value)
  return false, values and map_fields(self.map, values)
end

--- The set of all fields of a document.
function walk.fields(document, self)
  local _, set = fields(document, self)
  return set or {}
end

-- ---- what differs ----

-- A comparison collects nodes of three sets: what only the new one has, only the old one, and both
-- with different values.
local compare

local function collect(out, pe, added, removed, modified)
  if added ~= nil then out.added[pe] = added end
  if removed ~= nil then out.removed[pe] = removed end
  if modified ~= nil then out.modified[pe] = modified end
end

local function group(elements, values)
  local groups = {}
  for i, pe in ipairs(elements) do
    local members = groups[pe]
    if members then members[#members + 1] = values[i] else groups[pe] = { values[i] } end
  end
  return groups
end

local function with_self(node)
  if node == nil or node == true then return true end
  node["."] = true
  return node
end

-- Items that share a path element are one thing.
local function compare_group(out, pe, old, new, of_item)
  local n_old, n_new = old and #old or 0, new and #new or 0
  if n_old <= 1 and n_new <= 1 then
    collect(out, pe, compare(old and old[1], new and new[1], of_item))
  elseif n_old >= 2 and n_new >= 2 then
    if not json.equal(json.array(old), json.array(new)) then out.modified[pe] = true end
  elseif n_old >= 2 then
    local added, removed, modified
    if new then added, removed, modified = compare(nil, new[1], of_item) end
    collect(out, pe, added, with_self(removed), modified)
  else
    local added, removed, modified
    if old then added, removed, modified = compare(old[1], nil, of_item) end
    collect(out, pe, with_self(added), removed, modified)
  end
end

local function compare_items(out, list, old, new)
  local groups_old = group(item.elements(list, old), old)
  local groups_new = group(item.elements(list, new), new)
  local of_item = atom.element(list)
  for pe, members in pairs(groups_old) do compare_group(out, pe, members, groups_new[pe], of_item) end
  for pe, members in pairs(groups_new) do
    if not groups_old[pe] then compare_group(out, pe, nil, members, of_item) end
  end
end

local function compare_members(out, map, old, new)
  for name, value in pairs(old) do
    local other = new[name]
    if value ~= other then
      local of_member = atom.member(map, name)
      if of_member then collect(out, "f:" .. name, compare(value, other, of_member)) end
    end
  end
  for name, value in pairs(new) do
    if old[name] == nil then
      local of_member = atom.member(map, name)
      if of_member then collect(out, "f:" .. name, compare(nil, value, of_member)) end
    end
  end
end

local function is_empty(values) return values == nil or next(values) == nil end

local NONE = {}

-- Compares as one kind; true when the value is one thing.
local function compare_as(kind, old, new, self, out)
  if kind == "scalar" or self[kind].atomic then return true end
  local read = kind == "list" and atom.array or atom.object
  local values_old, values_new = read(old), read(new)
  -- Empty against empty or null is one thing, so that the two can be told apart.
  if is_empty(values_old) and is_empty(values_new) then return true end
  if kind == "list" then
    compare_items(out, self.list, values_old or NONE, values_new or NONE)
  else
    compare_members(out, self.map, values_old or NONE, values_new or NONE)
  end
  return false
end

local function node_of(set) return next(set) ~= nil and set or nil end

-- The nodes of added, removed and modified for one field.
function compare(old, new, self)
  if type(old) ~= "table" and type(new) ~= "table" then
    if old == nil then return true end
    if new == nil then return nil, true end
    return nil, nil, not json.equal(old, new) or nil
  end
  local out = { added = {}, removed = {}, modified = {} }
  local kind_old, kind_new = atom.kind(self, old), atom.kind(self, new)
  local leaf
  if new == nil then
    leaf = compare_as(kind_old, old, nil, self, out)
  elseif old == nil or kind_old == kind_new then
    leaf = compare_as(kind_new, old, new, self, out)
  else
    local leaf_old = compare_as(kind_old, old, new, self, out)
    leaf = compare_as(kind_new, old, new, self, out) or leaf_old
  end
  local added, removed, modified = node_of(out.added), node_of(out.removed), node_of(out.modified)
  if old == nil then
    added = with_self(added)
  elseif new == nil then
    removed = with_self(removed)
  elseif leaf and not json.equal(old, new) then
    modified = with_self(modified)
  end
  return added, removed, modified
end

--- What differs between two documents: { added =, removed =, modified = }, field sets.
function walk.compare(old, new, self)
  local added, removed, modified = compare(old, new, self)
  return { added = added or {}, removed = removed or {}, modified = modified or {} }
end

return walk
