-- Map functions of controllers that raised: they are called again with the same object, as reconcile is for a key,
-- after delays that grow. Where controllers end with such an error, the next process sees the object again; here
-- nobody would look at it until it changes.
--
-- Each state of an object concerns keys of its own, so each for which the function raised is tried, the last few at
-- least.
local core = require "kube._core"
local task = require "kube._task"

local M = {}

local OBJECTS_MAX = 1000  -- of one source; of further ones the event is lost, and said to be
local STATES_MAX = 8      -- of one object; the oldest goes

-- The function of the source with an object, in a task of its own.
local function map_again(self, object)
  local keys = self.map(object)
  if type(keys) == "string" then keys = { keys } end
  for _, key in ipairs(type(keys) == "table" and keys or {}) do
    self.queue:add(key, { reason = "retry " .. self.resource })
  end
end

local function tell(self, key, times, delay, report)
  core.log.write("error", delay and "a map function failed again" or "a map function failed again: gave up", {
    controller = self.controller, resource = self.resource, key = key, attempt = times, retry_in = delay,
    error = report })
end

-- Of an update both states are mapped, and the older one may be here already.
local function add_state(states, object)
  local version = object.metadata.resourceVersion
  for _, state in ipairs(states) do
    if state.metadata.resourceVersion == version then return end
  end
  if #states == STATES_MAX then table.remove(states, 1) end
  states[#states + 1] = object
end

-- Those of the states for which the function raised again, and the last report.
local function try_states(self, states)
  local failed, report = {}, nil
  for _, object in ipairs(states) do
    local ok, err, text = task.run({ name = ("%s map %s"):format(self.controller, self.resource) }, map_again, self,
      object)
    if not ok and type(err) == "table" and err.code == "cancelled" then error(err, 0) end
    if not ok then failed[#failed + 1], report = object, text end
  end
  return failed, report
end

local function try_again(self, key, entry)
  local retry, times, delay = self.retry, 1, self.retry.base
  while true do
    task.sleep(delay)
    local states = entry.states
    entry.states = {}
    local failed, report = try_states(self, states)
    if not failed[1] and not entry.states[1] then return end
    times = times + 1
    local last = retry.attempts and times >= retry.attempts
    delay = math.min(retry.base * 2 ^ (times - 1), retry.max)
    if report then tell(self, key, times, not last and delay or nil, report) end
    if last then return end
    for _, object in ipairs(entry.states) do add_state(failed, object) end
    entry.states = failed
  end
end

local function run(self, key, entry)
  local ok, err = pcall(try_again, self, key, entry)
  self.entries[key] = nil
  self.count = self.count - 1
  if not ok then error(err, 0) end
end

--- What hears of objects for which the function of a source has raised.
---@return fun(object: table)
function M.missed(state, source)
  local self = { controller = state.name, resource = source.resource, map = source.map, queue = state.queue,
    retry = state.retry, entries = {}, count = 0 }
  return function(object)
    local key = core.codec.object_key(object)
    local entry = self.entries[key]
    if entry then
      add_state(entry.states, object)
    elseif self.count == OBJECTS_MAX then
      core.log.write("error", "too many objects for which a map function fails; what it concerns is not reconciled "
        .. "until it changes", { controller = self.controller, resource = self.resource, key = key })
    else
      self.entries[key], self.count = { states = { object } }, self.count + 1
      task.start(("%s map %s"):format(self.controller, self.resource), run, self, key, self.entries[key])
    end
  end
end

return M
