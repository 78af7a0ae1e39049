-- Event handlers and their registrations.
local errors = require "kube._error"
local options = require "kube._options"
local task = require "kube._task"

local handler = {}

local Registration = {}
Registration.__index = Registration
Registration.__name = "kube.registration"
Registration.__tostring = function(self) return "registration of " .. self._name end

--- Whether this handler has seen the whole initial list (and the informer has it).
---@return boolean
function Registration:has_synced() return self._core:has_synced() end

--- Ends delivery: nothing new is delivered, a running call finishes. Idempotent.
function Registration:remove() self._core:remove() end

--- Removes the handler and waits until its last call has ended. Not from inside that handler.
function Registration:shutdown()
  self._core:remove()
  task.wait_until(function() return self._core:is_closed() end, nil, "registration:shutdown()")
end

--- Counters: pending, delivered, coalesced, errors, and lag in seconds.
---@return table
function Registration:stats() return self._core:stats() end

options.guard(Registration, "registration")
handler.registration = Registration

local handler_options = {
  on_add = "function", on_update = "function", on_delete = "function",
  filter = "function", predicate = "table", resync = "number", replay = "boolean",
  name = "string", queue_bound = "number",
}

local predicate_options = { selector = "string|table|null", namespace = "string", path = "string",
  label = "string", owner = "string", equals = "string|number|boolean", one_of = "table",
  negate = "boolean" }

-- The values that a part of a predicate wants, as the texts that the core compares.
local function wanted(part)
  if part.equals ~= nil and part.one_of ~= nil then
    errors.misuse("predicate: give equals or one_of, not both")
  end
  if part.one_of == nil then return { part.equals ~= nil and tostring(part.equals) or nil } end
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
  options.check("predicate", given, predicate_options)
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

-- { path = "spec.nodeName", equals = "n1" } or a list of such parts becomes what the core takes.
local function predicate_of(given)
  local out, single = {}, {}
  for key, value in pairs(given) do
    if type(key) == "string" then single[key] = value end
  end
  add_part(out, single)
  for _, part in ipairs(given) do add_part(out, part) end
  return out
end

--- Adds what a script gave as a handler to an informer; resync: a period of its own.
function handler.add(informer, given, resync)
  if type(given) ~= "table" then
    errors.misuse("add_event_handler takes a table { on_add = fn, on_update = fn, on_delete = fn }")
  end
  options.check("add_event_handler", given, handler_options)
  local spec = {}
  for key, value in pairs(given) do spec[key] = value end
  if resync then spec.resync = resync end
  if given.predicate then spec.predicate = predicate_of(given.predicate) end
  spec.name = given.name or ("%s handler"):format(informer._resource)
  return setmetatable({ _core = informer._handle:add_listener(spec), _informer = informer,
    _name = spec.name }, Registration)
end

return handler
