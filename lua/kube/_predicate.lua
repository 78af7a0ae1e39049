-- Predicates: which events of an informer matter. They are data that the core tests without entering
-- Lua, except for functions.
local core = require "kube._core"
local errors = require "kube._error"
local options = require "kube._options"

local predicate = {}

local DEPTH_MAX = 16

---@class kube.EventPredicate
local Event = {}
Event.__index = Event
Event.__tostring = function(self) return "predicate " .. self[1] end

local function new(...) return setmetatable({ ... }, Event) end

local match_options = { selector = "string|table|null", namespace = "string", path = "string",
  label = "string", owner = "string", equals = "string|number|boolean", one_of = "table",
  negate = "boolean" }

local SCALARS = { string = true, number = true, boolean = true }

-- What is behind a hole would not be seen.
local function check_whole(what, list)
  local numbered, listed = 0, 0
  for key in pairs(list) do
    if type(key) == "number" then
      if key < 1 or key % 1 ~= 0 then
        errors.misuse("%s is a list from 1 on, and %s is no index", what, tostring(key))
      end
      numbered = numbered + 1
    end
  end
  for i in ipairs(list) do listed = i end
  if listed < numbered then errors.misuse("%s has nothing at %d, and more behind it", what, listed + 1) end
end

local function check_values(list)
  for key, value in pairs(list) do
    if type(key) ~= "number" then
      errors.misuse("predicate: one_of is a list of values, and '%s' is no index", tostring(key))
    elseif not SCALARS[type(value)] then
      errors.misuse("predicate: one_of[%s] must be a string or number or boolean, not %s", tostring(key),
        options.shown_type(value))
    end
  end
  check_whole("predicate: one_of", list)
end

-- The values that a part of a predicate wants, as the texts that the core compares.
local function wanted(part)
  if part.equals ~= nil and part.one_of ~= nil then
    errors.misuse("predicate: give equals or one_of, not both")
  end
  if part.one_of == nil then return { part.equals ~= nil and tostring(part.equals) or nil } end
  check_values(part.one_of)
  local values = {}
  for i, value in ipairs(part.one_of) do values[i] = tostring(value) end
  if #values == 0 then errors.misuse("predicate: one_of is a list with at least one value") end
  return values
end

local function check_owner(owner)
  if owner == nil or owner == "controller" or owner == "any" then return end
  errors.misuse("predicate: owner is \"controller\" or \"any\", not \"%s\"; the uid goes into equals",
    owner)
end

-- Adds a part to `out`: what holds for the whole object goes to the top, the rest is a test of its
-- own.
local function add_part(out, given)
  options.check("predicate", given, match_options)
  core.informer.check_namespace("predicate: option 'namespace'", given.namespace)
  for _, name in ipairs { "selector", "namespace" } do
    if given[name] ~= nil and out[name] ~= nil then
      errors.misuse("predicate: '%s' is given twice", name)
    end
    if given[name] ~= nil then out[name] = given[name] end
  end
  local looks_at = 0
  for _, name in ipairs { "path", "label", "owner" } do
    if given[name] ~= nil then looks_at = looks_at + 1 end
  end
  local asks = given.equals ~= nil or given.one_of ~= nil or given.negate ~= nil
  if looks_at == 0 and not asks then return end
  if looks_at ~= 1 then
    errors.misuse("predicate: give one of path, label and owner (and equals, one_of or neither); "
      .. "for more than one, a list of such tables")
  end
  check_owner(given.owner)
  out[#out + 1] = { path = given.path, label = given.label, owner = given.owner,
    values = wanted(given), negate = given.negate }
end

-- Whether it is one of kube.predicate, or a list with one.
local function has_event(given)
  if getmetatable(given) == Event then return true end
  for _, part in ipairs(given) do
    if getmetatable(part) == Event then return true end
  end
  return false
end

-- What the core takes for { path = "spec.nodeName", equals = "n1" }, or for a list of such parts.
local function parts_of(given)
  local out, single = {}, {}
  for key, value in pairs(given) do
    if type(key) ~= "number" then single[key] = value end
  end
  check_whole("predicate", given)
  add_part(out, single)
  for _, part in ipairs(given) do add_part(out, part) end
  return out
end

--- What the core takes for the predicate of a handler.
---@param what string the name of the function in messages
---@param given kube.Predicate|kube.Predicate[]
function predicate.of_handler(what, given)
  if has_event(given) then
    errors.misuse("%s: kube.predicate is for controllers; the predicate of a handler is a table such as "
      .. "{ path = \"spec.paused\", equals = false }, and a function goes into filter", what)
  end
  return parts_of(given)
end

--- Whether what the core takes has a selector that asks for labels.
function predicate.selects(spec)
  local selector = spec.selector
  if type(selector) == "table" then return next(selector) ~= nil end
  return type(selector) == "string" and selector ~= ""
end

--- What the core takes for a predicate on events. `what` names the option in messages.
---@param what string
---@param given kube.EventPredicate|kube.Predicate|kube.Predicate[]|function function(object, old, event)
---@return kube.EventPredicate
function predicate.check(what, given)
  if type(given) == "function" then return new("call", given) end
  if getmetatable(given) == Event then return given end
  if type(given) == "table" and has_event(given) then
    errors.misuse("%s: for more than one of kube.predicate write kube.predicate.all(...) or any(...)", what)
  end
  if type(given) == "table" and next(given) ~= nil then return new("match", parts_of(given)) end
  errors.misuse("%s must be one of kube.predicate, a table such as { path = \"spec.paused\", equals = false }, or a "
    .. "function of object, old and event, not %s", what,
    type(given) == "table" and "an empty table" or options.shown_type(given))
end

local function depth(given)
  local deepest = 0
  for i = 2, #given do
    if getmetatable(given[i]) == Event then deepest = math.max(deepest, depth(given[i])) end
  end
  return deepest + 1
end

local function combine(kind, ...)
  local out = new(kind)
  for i = 1, select("#", ...) do
    local what = ("kube.predicate.%s: argument %d"):format(kind, i)
    out[#out + 1] = predicate.check(what, (select(i, ...)))
  end
  if depth(out) > DEPTH_MAX then
    errors.misuse("kube.predicate.%s: predicates are nested more than %d deep", kind, DEPTH_MAX)
  end
  return out
end

local M = {}

--- Passes updates that changed metadata.generation: the spec, not the status. Adds and deletes pass.
M.generation_changed = new("generation")
--- Passes updates that changed the labels. Adds and deletes pass.
M.labels_changed = new("labels")
--- Passes updates that changed the annotations. Adds and deletes pass.
M.annotations_changed = new("annotations")
--- Passes updates with another resource version, so no resyncs. Adds and deletes pass.
M.resource_version_changed = new("version")

--- Passes what all of these pass; of none, everything.
---@return kube.EventPredicate
function M.all(...) return combine("all", ...) end

--- Passes what one of these passes; of none, nothing.
---@return kube.EventPredicate
function M.any(...) return combine("any", ...) end

--- Passes what this one does not; adds and deletes, too, are turned.
---@return kube.EventPredicate
function M.negate(given, ...)
  if given == nil or select("#", ...) > 0 then errors.misuse("kube.predicate.negate takes one predicate") end
  return combine("negate", given)
end

--- Passes events whose object has these values: { path =, label =, owner =, equals =, one_of =, negate =,
--- selector =, namespace = }, or all of a list of such tables. Of an update the new object counts.
---@param given kube.Predicate|kube.Predicate[]
---@return kube.EventPredicate
function M.match(given)
  if type(given) ~= "table" then errors.misuse("kube.predicate.match takes a table, not a %s", type(given)) end
  return predicate.check("kube.predicate.match", given)
end

predicate.public = options.library(M, "kube.predicate")

return predicate
