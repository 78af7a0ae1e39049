-- Event handlers and their registrations.
local errors = require "kube._error"
local informer_options = require "kube._informer_options"
local options = require "kube._options"
local predicate = require "kube._predicate"
local task = require "kube._task"

local handler = {}

--- A handler that was added to an informer.
---@class kube.Registration
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
  if self._core:is_calling() then
    errors.misuse("registration:shutdown() waits for itself in its own handler; call registration:remove() there, or "
      .. "shutdown() in kube.background(name, function)")
  end
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

local function read_predicate(what, informer, given)
  local spec = predicate.of_handler(what, given)
  for _, part in ipairs(spec) do informer_options.warn_unstored("the predicate of a handler", informer, part) end
  if predicate.selects(spec) then
    informer_options.warn_unstored("the selector of a handler", informer, { path = "metadata.labels" })
  end
  return spec
end

--- Adds what a script gave as a handler to an informer.
---@param what string the name of the function in messages
---@param resync? number a period of its own
function handler.add(what, informer, given, resync)
  if type(given) ~= "table" then
    errors.misuse("%s takes a table { on_add = fn, on_update = fn, on_delete = fn }", what)
  end
  options.check(what, given, handler_options)
  local spec = { what = what }
  for key, value in pairs(given) do spec[key] = value end
  if resync then spec.resync = resync end
  if given.predicate then spec.predicate = read_predicate(what, informer, given.predicate) end
  informer._declared.handlers = informer._declared.handlers + 1
  spec.name = given.name or ("%s handler"):format(informer._resource)
  return setmetatable({ _core = informer._handle:add_listener(spec), _informer = informer,
    _name = spec.name }, Registration)
end

--- Hangs a controller's source (core/bind/event_source.h) onto an informer.
---@param spec { name: string, resync: number, replay: boolean }
function handler.add_source(informer, source, spec)
  spec.source = source
  return setmetatable({ _core = informer._handle:add_listener(spec), _informer = informer, _name = spec.name },
    Registration)
end

return handler
