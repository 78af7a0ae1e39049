-- Takes out of a document what an applier had applied before and nobody holds now.
--
-- A field goes, with all below it, when it is in `last` and not in `held`; a field that the schema names
-- is in a set as soon as anything below it is. What nobody owns goes only with a field around it. An
-- item or member in neither set that stands inside a field of `last` takes with it what `last` has there.
local atom = require "kube.sandbox.apply.atom"
local item = require "kube.sandbox.apply.item"
local json = require "kube.sandbox.json"

local NULL = json.null

local prune

local function has(node, declared)
  if node == nil then return false end
  return node == true or declared or node["."] == true
end

-- Whether anything in the value can be owned: empty lists whose items are owned one by one cannot.
local function is_ownable(value, self)
  local kind = atom.kind(self, value)
  if kind == "scalar" or self[kind].atomic or value == NULL then return true end
  if kind == "list" then return atom.array(value) ~= nil and #value > 0 end
  local values = atom.object(value)
  if not values or next(values) == nil then return values ~= nil end
  for name, v in pairs(values) do
    local of_member, declared = atom.member(self.map, name)
    if not declared or not of_member or is_ownable(v, of_member) then return true end
  end
  return false
end

-- What becomes of one member or item: nil when it goes. `state` is where it stands: nil, "inside" a field
-- of `last`, or "doomed" inside something that is in neither set.
local function keep(value, last, held, self, declared, state)
  local ownable = not declared or is_ownable(value, self)
  if has(last, declared) then
    if ownable and (state == "doomed" or not has(held, declared)) then return nil end
    state = state or "inside"
  elseif state and ownable and not has(held, declared) then
    state = "doomed"
  end
  if last == true then return value end
  return prune(value, last, held ~= true and held or nil, self, state)
end

-- Both return the values themselves when all of them stay as they are.
local function prune_items(list, values, last, held, state)
  local out, of_item, changed = json.array {}, atom.element(list), false
  for i, pe in ipairs(item.elements(list, values)) do
    local value = values[i]
    if last[pe] ~= nil then
      value = keep(value, last[pe], held[pe], of_item, false, state)
      changed = changed or value ~= values[i]
    end
    out[#out + 1] = value
  end
  return changed and out or values
end

local function prune_members(map, values, last, held, state)
  local out
  for name, value in pairs(values) do
    local node = last["f:" .. name]
    local of_member, declared = atom.member(map, name)
    if node ~= nil and of_member then
      local kept = keep(value, node, held["f:" .. name], of_member, declared, state)
      if kept ~= value then
        out = out or json.shallow(values)
        out[name] = kept
      end
    end
  end
  return out or values
end

local NOTHING = {}

-- What is left is null when it is empty: so it stands until the document is written.
function prune(value, last, held, self, state)
  local kind = atom.kind(self, value)
  if kind == "scalar" or self[kind].atomic then return value end
  local out
  if kind == "list" then
    out = atom.array(value) and prune_items(self.list, value, last, held or NOTHING, state)
  else
    out = atom.object(value) and prune_members(self.map, value, last, held or NOTHING, state)
  end
  if not out or out == value then return value end
  return next(out) ~= nil and out or NULL
end

--- The document without what is in the set `last` and not in the set `held`.
return function(document, last, held, self) return prune(document, last, held, self) end
